"""What a program does with an optimizer as a whole, and cannot do with a train state."""

from __future__ import annotations

from codemods.analysis.handling import (
    BY_PATH,
    COUNTED,
    FORMATTED,
    KEYED,
    PICKLED,
    TAKEN,
    TYPED,
)
from codemods.analysis.uses import Use
from codemods.messages import message
from codemods.model import Refusal
from codemods.rules import reasons, rule
from codemods.rules.context import Context

WHY = {
    PICKLED: (
        (
            "The optimizer is pickled here; a train state and its transformation hold functions, "
            "which cannot be."
        ),
        "Store it by `flax.serialization.to_bytes`, or pickle its `target` and its step.",
    ),
    COUNTED: (
        (
            "The leaves of the optimizer are counted or told apart here; a train state has them in "
            "another order, and counts beside."
        ),
        "Use the leaves of `optimizer.target`.",
    ),
    TYPED: (
        (
            "Its type is asked for here: legacy optimizers had a type each, and all train states "
            "have the same."
        ),
        "Tell optimizers apart by a name of their own.",
    ),
    FORMATTED: (
        "A text that is formatted here reads an attribute of the optimizer by its name.",
        'Read it in the program, and format the value: `"{}".format(optimizer.target)`.',
    ),
    BY_PATH: (
        (
            "The leaves of the optimizer are told apart by their paths here, which are others in a "
            "train state."
        ),
        "Use the paths within `optimizer.target`.",
    ),
    TAKEN: (
        "It matters here that this is no train state, tuple or function; what takes its place is.",
        "Tell them apart by something else, such as a class of your own around them.",
    ),
    KEYED: (
        (
            "The keys of the optimizer's state dict may be asked for here, which are others in "
            "that of a train state."
        ),
        'Ask for `["target"]` by that word, or use the state dict of `optimizer.target`.',
    ),
}


@rule("FO109", "an optimizer of complex parameters", "complex")
def complex_parameters(use: Use, context: Context) -> Refusal:
    """Five of the optimizers step complex parameters otherwise than optax does. Where the
    params that they are created for are made of complex numbers, these are left.
    """
    assert use.cause is not None
    return reasons.complex_parameters(
        message(
            "Complex numbers are made in {}; of a complex gradient, this optimizer took the "
            "square, and optax takes its squared modulus.",
            use.cause,
        ),
        "Keep real and imaginary parts as parameters of their own, or write the rule as a "
        "transformation.",
    )


@rule("FO216", "an optimizer as a whole", "whole")
def whole(use: Use, context: Context) -> Refusal:
    """A train state goes where its optimizer went: into and out of functions, containers, `jit`,
    `pmap`, `scan` and checkpoints. What only a legacy optimizer can do is left, with a reason.
    """
    refuse = reasons.state if use.name == KEYED else reasons.unlike
    return refuse(*WHY[use.name])
