"""Whether the params of an optimizer are made of complex numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.legacy import Unnamed
from codemods.analysis.naming import last_word
from codemods.analysis.param_types import NUMERIC, Making, ParamTypes
from codemods.analysis.uses import Use
from codemods.model import Location
from codemods.optimizers import optimizers
from codemods.sources.modules import Unit
from codemods.sources.parsing import parse


class MakingComplex(Making):
    """Follows a value back to complex numbers, and to their types wherever these are."""

    def is_typed(self, node: ast.expr, unit: Unit) -> bool:
        match node:
            # 1j
            case ast.Constant(value=complex()):
                return True
            # dtype="complex64"
            case ast.Constant(value=str() as text):
                return text in ("complex64", "complex128")
            # dtype=complex
            case ast.Name(id="complex", ctx=ast.Load()):
                # isinstance(x, complex)
                call = unit.parents.get(node)
                while isinstance(call, ast.Tuple):
                    call = unit.parents.get(call)
                is_checked = isinstance(call, ast.Call) and (
                    last_word(call.func) == "isinstance"
                )
                externals = self.facts.externals(node)
                return not is_checked and "builtins.complex" in externals
            # jnp.complex64
            case ast.Name() | ast.Attribute() if last_word(node).startswith("complex"):
                return self.facts.full_name(node).startswith(NUMERIC)
        return False

    def made_out_of_view(self, path: str, text: str) -> Iterator[Location]:
        try:
            tree = parse(text)
        except (SyntaxError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            match node:
                case (
                    ast.Constant(value=complex() | "complex64" | "complex128")
                    | ast.Attribute(attr="complex64" | "complex128")
                    | ast.Name(id="complex" | "complex64" | "complex128")
                ):
                    yield Location(path, node.lineno)


class ComplexNumbers(ParamTypes):
    """Finds the optimizers that get complex params, so that the step of optax differs."""

    named = re.compile(r"(?<!\btf\.)\bcomplex(?:64|128)?\b|\d\.?[jJ]\b")
    making = MakingComplex

    def uses(self) -> Iterator[Use]:
        """The definitions of such optimizers.

        The cause of each is where what it gets is made of complex numbers.
        """
        known = optimizers().items()
        of_reals = {Unnamed.RUN_TIME, *(name for name, one in known if one.of_reals)}
        for obj, group in self.facts.groups.items():
            if obj.kind == "definition" and obj.made_by in of_reals:
                made = self.made_of_them(self.facts.members[group])
                if made and isinstance(obj.node, ast.expr):
                    yield Use("complex", "", obj.unit, obj.node, (obj,), cause=made)
