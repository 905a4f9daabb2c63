"""The level of an optimizer: what `rewrite` emits, against what it replaces, as source texts.

The texts are evaluated outside of their program, with sampled values in the place of its names,
if they can only compute. Then `same_function` compares the two objects, and knows nothing of texts.
"""
