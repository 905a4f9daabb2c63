"""Where a program makes complex numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import LegacyName, Unnamed
from codemods.analysis.naming import last_word
from codemods.analysis.uses import Use
from codemods.model import Location
from codemods.optimizers import optimizers
from codemods.sources.modules import Unit
from codemods.sources.parsing import parse
from codemods.sources.prefilter import uses_jax

NUMERIC = ("jax.", "numpy.")
TYPES = ("complex", "complex64", "complex128")
COMPLEX = re.compile(r"\bcomplex(?:64|128)?\b|\d[jJ]\b|\d\.[jJ]\b")


class ComplexNumbers:
    """Finds the optimizers whose params may be complex, so that the step of optax differs."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def uses(self) -> Iterator[Use]:
        """The definitions of such optimizers.

        The cause of each is where its program makes complex numbers.
        """
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
        # a model with such params may be where no optimizer gets to
        for path, text in self.facts.others.items():
            if COMPLEX.search(text) is None or not uses_jax(text.encode()):
                continue
            place = _made_out_of_view(path, text)
            if place is not None:
                found[path] = place
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


def _made_out_of_view(path: str, text: str) -> Location | None:
    """The first place of a file that is not analysed that names a complex number or type."""
    try:
        tree = parse(text)
    except (SyntaxError, RecursionError, MemoryError):
        return None
    checked: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            # isinstance(x, (complex, str)), which comes ahead of what is within it
            case ast.Call(func=ast.Name(id="isinstance"), args=arguments):
                checked.update(chain.from_iterable(map(ast.walk, arguments)))
            case (
                ast.Constant(value=complex() | "complex64" | "complex128")
                | ast.Attribute(attr="complex" | "complex64" | "complex128")
                | ast.Name(id="complex" | "complex64" | "complex128")
            ) if node not in checked:
                return Location(path, node.lineno)
    return None


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
