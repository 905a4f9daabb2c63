"""Where a program makes complex numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.evidence import last_word
from codemods.analysis.facts import Facts
from codemods.analysis.legacy import LegacyName, Unnamed
from codemods.analysis.uses import Use
from codemods.model import Location
from codemods.optimizers import optimizers
from codemods.sources.modules import Unit

NUMERIC = ("jax.", "numpy.")
TYPES = ("complex", "complex64", "complex128")


class ComplexNumbers:
    """Finds the optimizers whose params may be complex, so that the step of optax differs."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def uses(self) -> Iterator[Use]:
        """The definitions of such optimizers.

        The cause of each is where its program makes complex numbers.
        """
        if not self._made:
            return
        for obj in self.facts.groups:
            if obj.kind != "definition" or obj.made_by not in self._of_reals:
                continue
            if isinstance(obj.node, ast.expr):
                program = self.facts.together(obj.unit)
                places = (
                    place for path, place in self._made.items() if path in program
                )
                made = next(places, None)
                if made:
                    yield Use("complex", "", obj.unit, obj.node, (obj,), cause=made)

    @cached_property
    def _of_reals(self) -> frozenset[LegacyName]:
        names = (name for name, known in optimizers().items() if known.of_reals)
        return frozenset((Unnamed.RUN_TIME, *names))

    @cached_property
    def _made(self) -> dict[str, Location]:
        """The first place of each file that makes complex numbers."""
        found: dict[str, Location] = {}
        for unit in self.facts.project.units:
            for node in unit.nodes:
                if isinstance(node, ast.expr) and self._is_complex(node, unit):
                    found[unit.path] = unit.location(node.lineno)
                    break
        return found

    def _is_complex(self, node: ast.expr, unit: Unit) -> bool:
        match node:
            # 1j
            case ast.Constant(value=complex()):
                return True
            # dtype="complex64"
            case ast.Constant(value=str() as text):
                return text in TYPES[1:]
            # dtype=complex
            case ast.Name(id="complex", ctx=ast.Load()):
                is_builtin = "builtins.complex" in self.facts.externals(node)
                return is_builtin and not _is_checked(node, unit)
            # jnp.complex64
            case ast.Name() | ast.Attribute() if last_word(node).startswith("complex"):
                return self.facts.full_name(node).startswith(NUMERIC)
        return False


def _is_checked(node: ast.expr, unit: Unit) -> bool:
    """Whether this is the `complex` of `isinstance(x, complex)`."""
    call = unit.parents.get(node)
    while isinstance(call, ast.Tuple):
        call = unit.parents.get(call)
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "isinstance"
    )
