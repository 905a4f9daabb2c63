"""The rules: one module per construct. A rule registers itself; nobody edits a list."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from codemods.messages import paragraphs
from codemods.model import Prose, Refusal

if TYPE_CHECKING:
    from codemods.analysis.uses import Use
    from codemods.rewriting.edits import Edit, Keep
    from codemods.rules.context import Context

Decide = Callable[["Use", "Context"], "Edit | Keep | Refusal"]


@dataclass(frozen=True)
class Rule:
    """A construct and what becomes of it; for a code of the FO9 family, a reason to leave a site.

    `kinds` are the kinds of use (see `codemods.analysis.uses.Use`) that the rule decides on, as
    `KIND` or `KIND:NAME`.
    """

    code: str
    summary: str
    explanation: str
    before: str = ""
    after: str = ""
    kinds: tuple[str, ...] = ()
    decide: Decide | None = field(default=None, compare=False)


_registered: dict[str, Rule] = {}


def rule(
    code: str,
    summary: str,
    *kinds: str,
    before: str = "",
    after: str = "",
) -> Callable[[Decide], Decide]:
    """Register a function that decides on some kinds of use; its docstring is the explanation."""

    def register(decide: Decide) -> Decide:
        _registered[code] = Rule(
            code,
            summary,
            paragraphs(decide.__doc__),
            before,
            after,
            kinds,
            decide,
        )
        return decide

    return register


def reason(
    code: str,
    summary: str,
    explanation: str,
) -> Callable[[Prose, Prose], Refusal]:
    """Register a reason of the FO9 family; the result makes refusals with it."""
    return partial(Refusal, describe(code, summary, explanation))


def describe(
    code: str,
    summary: str,
    explanation: str,
    before: str = "",
    after: str = "",
) -> str:
    """Register what the application does or refuses outside of Python code; returns the code."""
    _registered[code] = Rule(code, summary, paragraphs(explanation), before, after)
    return code


@cache
def catalogue() -> Mapping[str, Rule]:
    """Every rule and reason, by code."""
    # a module registers its rules when it is imported
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return MappingProxyType(dict(sorted(_registered.items())))


@cache
def rules_by_kind() -> Mapping[str, Rule]:
    """The rule for each kind of use."""
    return MappingProxyType(
        {kind: found for found in catalogue().values() for kind in found.kinds}
    )


def rule_for(use: Use) -> Rule | None:
    """The rule that decides on a use: the one for its kind and name, else the one for its kind."""
    rules = rules_by_kind()
    # "definition:OptimizerState", or any other "definition"
    own = rules.get(f"{use.kind}:{use.name}")
    return own or rules.get(use.kind)
