"""What a person would write in the place of a general form, and where that provably means the same.

A rule asks here before it falls back on the form that is always right. Whatever cannot prove an
idiom raises `Unproven`, and its words reach the user beside the general form.
"""

from __future__ import annotations

from codemods.messages import message
from codemods.model import Prose, Reference


class Unproven(Exception):  # noqa: N818 - no error: the general form is right, too
    """Why an idiom is not taken: one clause, without a full stop, as of `message`."""

    def __init__(self, template: str, *values: Prose | Reference) -> None:
        super().__init__(template, *values)
        self.message = message(template, *values)
