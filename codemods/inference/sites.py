"""Calls, as places: what is given, and where the result goes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from codemods.inference.objects import Place
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

Key = int | str | None


@dataclass(frozen=True, eq=False)
class CallSite:
    """A call: the places of its arguments, and of its result.

    From `starred` on, positional arguments are unpacked; `unpacked` are those behind two stars.
    `partials` are the calls that filled in arguments before, in the order of these.
    """

    unit: Unit
    node: ast.AST
    positional: tuple[Place, ...]
    keywords: dict[str, Place]
    result: Place
    starred: int | None = None
    unpacked: tuple[Place, ...] = ()
    scope: Scope | None = None
    partials: tuple[ast.Call, ...] = ()

    def argument(self, index: int, name: str) -> Place | None:
        """The place of a parameter's argument, by position or name.

        None if it is not given, or given in a container that is unpacked.
        """
        # step(state, *batch): only what is ahead of the star has a known index
        known = self.positional[: self.starred]
        if index < len(known):
            return known[index]
        return self.keywords.get(name)

    def constant(self, name: str) -> object:
        """The literal given to a keyword; None if it is not given or is no literal."""
        if not isinstance(self.node, ast.Call):
            return None
        for keyword in self.node.keywords:
            # jax.grad(loss, has_aux=True)
            if keyword.arg == name and isinstance(keyword.value, ast.Constant):
                return keyword.value.value
        return None


Effect = Literal["none", "result", "contents", "unknown"]
"""What code out of view does with its arguments.

It neither keeps nor returns them (`none`); it makes its result of them (`result`); it keeps and
gives back the very objects (`contents`); or nothing is known.
"""
