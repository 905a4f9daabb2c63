"""The nearest of some known words, for a complaint about one that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """`; did you mean A or B?` for the words closest to one, or nothing if none is close.

    `cutoff` is how similar words are at least, from 0 to 1.
    """
    import difflib

    # ADAM is as near to Adam as adam is
    by_folded = {name.casefold(): name for name in known}
    matches = difflib.get_close_matches(word.casefold(), by_folded, cutoff=cutoff)
    if not matches:
        return ""
    names = " or ".join(by_folded[match] for match in matches)
    return f"; did you mean {names}?"
