"""The verdict on two runs, by their values alone.

`compare_trajectories` and `judge` give a `Comparison`. Here it is not known what an optimizer is,
nor where values come from: there are leaves, steps, and a gate.
"""
