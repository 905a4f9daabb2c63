"""Which files of a program have questions in them: those that optimizers may get to."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.sources.relevance import CREATING, REPLACING, SHAPED, Relevance

SMALL = 1_000_000
"""The characters of a program of which all files are asked about."""


def asked_about(relevance: Relevance, texts: Mapping[str, str]) -> set[str]:
    """The paths of the files whose expressions are looked at; the others only help to answer.

    Args:
      relevance: what the texts tell of the files.
      texts: the text of each file that matters.
    """
    if sum(map(len, texts.values())) < SMALL:
        return {*texts}
    start = relevance.speaking | relevance.beside
    return {
        path
        for path, text in texts.items()
        if path in start
        or any(told.search(text) for told in (SHAPED, CREATING, REPLACING))
    }
