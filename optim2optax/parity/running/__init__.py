"""Programs and trees of the user's: processes, devices, interpreters, and working copies.

Here nothing is known of optimizers. `worker` and `stand_ins` are for interpreters with an old Flax.
"""
