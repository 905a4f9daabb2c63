"""Checks for one kind of definition."""

from __future__ import annotations

from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.rules import rule
from codemods.rules.context import Context


@rule("FO199", "a check for Adagrad", "check:Adagrad")
def adagrad(use: Use, context: Context) -> Refusal:
    """A check whether a definition is that of Adagrad is left: what it decides on, how embeddings
    are stored, has a name of its own in the program.
    """
    del context
    return Refusal(
        "FO199", f"`{use.name}` is asked for here.", "Ask for `sparse_embeddings`."
    )
