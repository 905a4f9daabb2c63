"""Which files of a program have questions in them: optimizers may get to them, or old models."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.sources.relevance import CREATING, OLD_MODELS, SHAPED, Relevance


def asked_about(relevance: Relevance, texts: Mapping[str, str]) -> set[str]:
    """The paths of the files whose expressions are looked at; the others only help to answer.

    Args:
      relevance: what the texts tell of the files.
      texts: the text of each file that matters.
    """
    start = relevance.speaking | relevance.beside
    return {
        path
        for path, text in texts.items()
        if path in start
        or any(told.search(text) for told in (SHAPED, CREATING, OLD_MODELS))
    }
