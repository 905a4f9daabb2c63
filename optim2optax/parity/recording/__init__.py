"""Every step that an optimizer takes, recorded within the process that takes it.

What is recorded goes to a `Keeper`: one in memory, or one that writes files. This code runs in
processes of the user's, an old Python with an old JAX included (from Python 3.8 on), and knows
no other room.
"""
