"""What JAX makes of a function, where that names parameters by their position or has to know which of them are static."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.origins import FunctionNode
from codemods.dataflow.program import functions_in
from codemods.flow.binding import names_by_position
from codemods.functional.interfaces import Interface
from codemods.functional.places import Group
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.rewriting.edits import MakeStatic, Replace
from codemods.sources.modules import Unit
from codemods.vocabulary import JIT

PARTIAL = "functools.partial"
BY_POSITION = ("donate_argnums", "static_argnums", "static_broadcasted_argnums", "in_axes")
BY_NAME = ("donate_argnames", "static_argnames")


class Wrappers:
    """The calls of `jax.jit`, `jax.pmap` and the like that are about a function."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.facts = group.facts

    def of(self, node: FunctionNode, unit: Unit) -> Iterator[tuple[Unit, ast.expr]]:
        """The calls that wrap a function, and its decorators."""
        for decorator in getattr(node, "decorator_list", ()):
            yield unit, decorator
        for other, call in self.facts.flow.reading.calls:
            if call.args and self.name(call) and node in self._functions(call.args[0]):
                yield other, call

    def name(self, node: ast.expr) -> str:
        """The full name of what wraps: `jax.jit` for itself, `jax.jit(f)` and `functools.partial(jax.jit, …)`; else empty."""
        if isinstance(node, ast.Call):
            name = self.name(node.func)
            return (self.name(node.args[0]) or name) if name == PARTIAL and node.args else name
        return next(
            (
                name
                for name in self.facts.externals(node)
                if name == PARTIAL or name.startswith("jax.")
            ),
            "",
        )

    def _functions(self, node: ast.expr) -> set[ast.AST]:
        return {function.node for function in functions_in(self.facts.objects(node))}

    def shift(
        self, interface: Interface, unit: Unit, edits: Edits, more: int, is_given_one: bool
    ) -> None:
        """Let positions that are given to JAX count the parts of an optimizer, of which there are `more` than one.

        A function that `is_given_one` has its transformation as a parameter, too, behind those without defaults.

        Raises:
          Unproven: if they are not plain to see.
        """
        names = parameters_by_position(interface.node)
        own = [variable.name for variable in interface.split]
        added = [required(interface.node)] if is_given_one else []
        shifts = sorted(
            [*(names.index(name) for name in own if name in names for _ in range(more)), *added]
        )
        split = [names.index(name) for name in own if name in names]
        for other, wrapper in self.of(interface.node, unit):
            for word in wrapper.keywords if isinstance(wrapper, ast.Call) else ():
                where = other.place(wrapper.lineno)
                said = {one.value for one in ast.walk(word.value) if isinstance(one, ast.Constant)}
                if word.arg in BY_NAME and said & {*own}:
                    raise Unproven(f"parameters are named in quotes at {where}")
                if word.arg in BY_POSITION:
                    if self._has_positional_partial(wrapper):
                        raise Unproven(
                            f"positions are counted behind a partial application at {where}"
                        )
                    text = _shifted(word.arg, word.value, split, shifts, more)
                    if text is None:
                        raise Unproven(f"the `{word.arg}` at {where} are not plain to see")
                    if text != ast.unparse(word.value):
                        edits.put(word.value, other, Replace(other.span(word.value), text))

    def _has_positional_partial(self, wrapper: ast.expr) -> bool:
        inner = wrapper.args[0] if isinstance(wrapper, ast.Call) and wrapper.args else None
        return (
            isinstance(inner, ast.Call) and self.name(inner.func) == PARTIAL and len(inner.args) > 1
        )

    def make_static(self, wrapper: ast.expr, unit: Unit, name: str, edits: Edits) -> None:
        """Tell `jax.jit` that a parameter is static.

        Raises:
          Unproven: if it is something else than `jax.jit`, or is told of others by name.
        """
        where = unit.place(wrapper.lineno)
        if self.name(wrapper) != JIT:
            raise Unproven(f"its transformation cannot be given to what is wrapped at {where}")
        if isinstance(wrapper, ast.Call) and any(
            word.arg in (None, "static_argnames") for word in wrapper.keywords
        ):
            raise Unproven(f"other parameters are static at {where}")
        edits.put(wrapper, unit, MakeStatic(unit.span(wrapper), (name,)))


def parameters_by_position(node: FunctionNode) -> list[str]:
    """The names of the parameters that calls may give by position."""
    names = names_by_position(node.args)
    return names[1:] if names[:1] == ["self"] else names


def required(node: FunctionNode) -> int:
    """How many of them have no default."""
    return len(parameters_by_position(node)) - len(node.args.defaults)


def _shifted(
    word: str, value: ast.expr, split: list[int], shifts: list[int], more: int
) -> str | None:
    """The positions, or the axes, with those of the parts; None if that cannot be told."""
    if isinstance(value, ast.Constant) and (value.value is None or word == "in_axes"):
        return ast.unparse(value)
    if word == "in_axes":
        if not isinstance(value, ast.Tuple | ast.List):
            return None
        axes = [ast.unparse(axis) for axis in value.elts]
        spread = [text for at, text in enumerate(axes) for _ in range(1 + more * (at in split))]
        return f"({', '.join(spread)})"
    given = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    found: list[int] = []
    for one in given:
        if not (isinstance(one, ast.Constant) and type(one.value) is int and one.value >= 0):
            return None
        if one.value in split and word != "donate_argnums":
            return None
        is_split = one.value in split
        first = one.value + sum(
            at < one.value or (at == one.value and not is_split) for at in shifts
        )
        found += range(first, first + 1 + more * is_split)
    if len(found) == 1 and not isinstance(value, ast.Tuple | ast.List):
        return str(found[0])
    texts = ", ".join(map(str, found))
    return (
        f"[{texts}]"
        if isinstance(value, ast.List)
        else f"({texts},)"
        if len(found) == 1
        else f"({texts})"
    )
