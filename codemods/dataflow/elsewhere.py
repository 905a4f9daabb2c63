"""What files that are not analysed may change in those that are, by their texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.dataflow.effects import Variable
from codemods.inference.view import View

ASSIGNED = r"[ \t]*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
SETTING = re.compile(rf"\.(\w+){ASSIGNED}")
"""train.RATE = 0.1"""

SETTING_SEVERAL = re.compile(
    r"^[ \t]*((?:[\w.]+[ \t]*,[ \t]*)+[\w.]+)[ \t]*=(?!=)", re.MULTILINE
)
"""train.RATE, train.CLIP = 0.1, 1.0"""

SETTING_BY_NAME = re.compile(r"\bsetattr\([ \t]*[\w.]+,[ \t]*[\"'](\w+)[\"']")
CHANGING = re.compile(
    rf"\]{ASSIGNED}|\.(?:add|append|clear|discard|extend|insert|pop|popitem|remove|reverse"
    r"|setdefault|sort|update)\("
)
"""CONFIG["rate"] = 0.1, train.CONFIG.update(rate=0.1)"""

PATH = re.compile(r"([\w.]+)(?:\[[^\]\n]*\]?)*$")
REACH = 100
"""How far back the owner of what is set may begin, in characters."""


class Elsewhere:
    """Tells of the variables of modules whether code that is not analysed may set or change them.

    Args:
      flow: what is known of the files that are analysed.
      texts: those of the others that import them, directly or not.
    """

    def __init__(self, flow: View, texts: Iterable[str]) -> None:
        self._flow = flow
        self._texts = list(texts)

    @cached_property
    def assigned(self) -> frozenset[Variable]:
        """The variables that it may set, also by a function in view that declares them global."""
        found = {name for text in self._texts for name in _set_in(text)}
        return frozenset(self._named(found) | self._declared)

    @cached_property
    def changed(self) -> frozenset[Variable]:
        """The variables whose objects it may change in place."""
        found = {name for text in self._texts for name in _changed_in(text)}
        return frozenset(self._named(found))

    def _named(self, names: set[str]) -> set[Variable]:
        modules = self._flow.modules.values()
        return {
            Variable(scope, name) for scope in modules for name in scope.names & names
        }

    @property
    def _declared(self) -> set[Variable]:
        found: set[Variable] = set()
        for unit, scope in self._flow.modules.items() if self._texts else ():
            for node in unit.nodes:
                if isinstance(node, ast.Global):
                    found.update(Variable(scope, name) for name in node.names)
        return found


def _set_in(text: str) -> Iterator[str]:
    """The names of attributes that a file sets, other than of `self`."""
    for match in SETTING.finditer(text):
        if _owner(text, match.start()):
            yield match[1]
    for match in SETTING_SEVERAL.finditer(text):
        for target in match[1].split(","):
            owner, _, name = target.strip().rpartition(".")
            # train.RATE, but not self.rate nor rate
            if owner.partition(".")[0] not in ("", "self", "cls"):
                yield name
    yield from SETTING_BY_NAME.findall(text)


def _changed_in(text: str) -> Iterator[str]:
    """The names on the way to objects whose attributes or elements a file sets."""
    for pattern in (SETTING, CHANGING):
        for match in pattern.finditer(text):
            yield from _owner(text, match.start())


def _owner(text: str, end: int) -> list[str]:
    """The names of `package.module.CONFIG` ahead of `.rate = 0.1`; none of `self`."""
    match = PATH.search(text, max(0, end - REACH), end)
    names = match[1].split(".") if match is not None else []
    return [] if names[:1] in (["self"], ["cls"]) else names
