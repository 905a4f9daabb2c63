"""Where a program makes complex numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.evidence import last_word
from codemods.analysis.facts import Facts
from codemods.analysis.legacy import RUN_TIME
from codemods.analysis.uses import Use
from codemods.optimizers import optimizers
from codemods.sources.modules import Unit

NUMERIC = ("jax.", "numpy.")
TYPES = ("complex", "complex64", "complex128")


class ComplexNumbers:
    """Finds the optimizers whose parameters may be complex, and are stepped otherwise by optax then."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def uses(self) -> Iterator[Use]:
        """The definitions of such optimizers, each named with the place where its program makes complex numbers."""
        if not self._made:
            return
        for thing in self.facts.groups:
            if (
                thing.kind == "definition"
                and thing.name in self._of_reals
                and isinstance(thing.node, ast.expr)
            ):
                program = self.facts.together(thing.unit)
                if made := next(
                    (place for path, place in self._made.items() if path in program), None
                ):
                    yield Use("complex", made, thing.unit, thing.node, (thing,))

    @cached_property
    def _of_reals(self) -> frozenset[str]:
        return frozenset(
            (RUN_TIME, *(name for name, known in optimizers().items() if known.of_reals))
        )

    @cached_property
    def _made(self) -> dict[str, str]:
        """The first place of each file that makes complex numbers."""
        found: dict[str, str] = {}
        for unit in self.facts.project.units:
            for node in unit.nodes:
                if (
                    unit.path not in found
                    and isinstance(node, ast.expr)
                    and self._is_complex(node, unit)
                ):
                    found[unit.path] = unit.place(node.lineno)
        return found

    def _is_complex(self, node: ast.expr, unit: Unit) -> bool:
        match node:
            case ast.Constant(value=complex()):
                return True
            case ast.Constant(value=str() as text):
                return text in TYPES[1:]
            case ast.Name(id="complex", ctx=ast.Load()):
                return "builtins.complex" in self.facts.externals(node) and not _is_checked(
                    node, unit
                )
            case ast.Name() | ast.Attribute() if last_word(node).startswith("complex"):
                return self.facts.full_name(node).startswith(NUMERIC)
        return False


def _is_checked(node: ast.expr, unit: Unit) -> bool:
    """Whether something is asked whether it is a complex number."""
    call = unit.parents.get(node)
    while isinstance(call, ast.Tuple):
        call = unit.parents.get(call)
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "isinstance"
    )
