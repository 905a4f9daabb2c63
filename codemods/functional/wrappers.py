"""What JAX makes of a function, where it is given positions or names of parameters.

They say what is donated, static or mapped over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.origins import FunctionNode
from codemods.dataflow.program import functions_in
from codemods.functional.group import Group
from codemods.functional.interfaces import Interface
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.inference.binding import names_by_position
from codemods.rewriting.edits import MakeStatic
from codemods.sources.modules import Unit
from codemods.vocabulary import JIT

PARTIAL = "functools.partial"
BY_POSITION = (
    "donate_argnums",
    "static_argnums",
    "static_broadcasted_argnums",
    "in_axes",
)
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
        # jax.jit(train_step), in any file
        for other, call in self.facts.flow.reading.calls:
            if not call.args or not self.name(call):
                continue
            if node in self._functions(call.args[0]):
                yield other, call

    def name(self, node: ast.expr) -> str:
        """The full name of what wraps a function; empty for anything else.

        It is `jax.jit` for that itself, `jax.jit(f)` and `functools.partial(jax.jit, …)`.
        """
        if isinstance(node, ast.Call):
            name = self.name(node.func)
            if name == PARTIAL and node.args:
                return self.name(node.args[0]) or name
            return name
        for name in self.facts.externals(node):
            if name == PARTIAL or name.startswith("jax."):
                return name
        return ""

    def _functions(self, node: ast.expr) -> set[ast.AST]:
        return {function.node for function in functions_in(self.facts.objects(node))}

    def shift(
        self,
        interface: Interface,
        unit: Unit,
        edits: Edits,
        more: int,
        is_given_one: bool,
    ) -> None:
        """Shift positions that JAX is given by the parts of an optimizer: `more` than one.

        A function that `is_given_one` has its transformation as a parameter, too, behind those
        without defaults.

        Raises:
          Unproven: if the positions are unknown.
        """
        names = parameters_by_position(interface.node)
        own = [variable.name for variable in interface.split]
        split = [names.index(name) for name in own if name in names]
        # the place of each new parameter among those of before
        shifts = split * more
        if is_given_one:
            shifts.append(required(interface.node))
        shifts.sort()
        for other, wrapper in self.of(interface.node, unit):
            if not isinstance(wrapper, ast.Call):
                continue
            where = other.location(wrapper.lineno)
            for word in wrapper.keywords:
                # donate_argnames=("optimizer",)
                if word.arg in BY_NAME and _names_one_of(own, word.value):
                    raise Unproven("parameters are named in quotes at {}", where)
                if word.arg not in BY_POSITION:
                    continue
                if self._has_positional_partial(wrapper):
                    raise Unproven(
                        "positions are counted behind a partial application at {}",
                        where,
                    )
                # donate_argnums=(0, 1)
                text = _shifted(word.arg, word.value, split, shifts, more)
                if text is None:
                    why = "the `{}` at {} are not plain to see"
                    raise Unproven(why, word.arg, where)
                if text != ast.unparse(word.value):
                    edits.replace(word.value, other, text)

    def _has_positional_partial(self, wrapper: ast.Call) -> bool:
        """Whether this is `jax.jit(partial(train_step, model), …)`."""
        match wrapper.args:
            case [ast.Call(func=function, args=[_, _, *_]), *_]:
                return self.name(function) == PARTIAL
        return False

    def make_static(
        self,
        wrapper: ast.expr,
        unit: Unit,
        name: str,
        edits: Edits,
    ) -> None:
        """Make a parameter static for `jax.jit`.

        Raises:
          Unproven: if it is something else than `jax.jit`, or has names of static parameters.
        """
        where = unit.location(wrapper.lineno)
        if self.name(wrapper) != JIT:
            raise Unproven(
                "its transformation cannot be given to what is wrapped at {}", where
            )
        words = wrapper.keywords if isinstance(wrapper, ast.Call) else []
        if any(word.arg in (None, "static_argnames") for word in words):
            raise Unproven("other parameters are static at {}", where)
        is_called = isinstance(wrapper, ast.Call)
        edits.put(wrapper, unit, MakeStatic(unit.span(wrapper), (name,), is_called))


def parameters_by_position(node: FunctionNode) -> list[str]:
    """The names of the parameters that calls may give by position."""
    names = names_by_position(node.args)
    return names[1:] if names[:1] == ["self"] else names


def required(node: FunctionNode) -> int:
    """How many of them have no default."""
    return len(parameters_by_position(node)) - len(node.args.defaults)


def _names_one_of(names: list[str], value: ast.expr) -> bool:
    """Whether an argument of a wrapper has one of some names in quotes."""
    constants = (one for one in ast.walk(value) if isinstance(one, ast.Constant))
    return any(one.value in names for one in constants)


def _shifted(
    word: str,
    value: ast.expr,
    split: list[int],
    shifts: list[int],
    more: int,
) -> str | None:
    """The positions, or the axes, with those of the parts; None if they are unknown."""
    is_axes = word == "in_axes"
    # donate_argnums=None, or in_axes=0, which is that of all parameters
    if isinstance(value, ast.Constant) and (value.value is None or is_axes):
        return ast.unparse(value)
    if is_axes:
        return _shifted_axes(value, split, more)
    given = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    found: list[int] = []
    for one in given:
        position = one.value if isinstance(one, ast.Constant) else None
        # a negative position counts from the end
        if type(position) is not int or position < 0:
            return None
        is_split = position in split
        # an optimizer as a static argument
        if is_split and word != "donate_argnums":
            return None
        # a new parameter at the place of another one comes ahead of that
        last = position - 1 if is_split else position
        ahead = sum(at <= last for at in shifts)
        first = position + ahead
        found += range(first, first + 1 + more * is_split)
    texts = ", ".join(map(str, found))
    if isinstance(value, ast.List):
        return f"[{texts}]"
    # donate_argnums=0, which is now (0, 1)
    if len(found) != 1:
        return f"({texts})"
    return f"({texts},)" if isinstance(value, ast.Tuple) else texts


def _shifted_axes(value: ast.expr, split: list[int], more: int) -> str | None:
    """The axes of all parameters, `(0, None)`, with one for each part."""
    if not isinstance(value, ast.Tuple | ast.List):
        return None
    axes: list[str] = []
    for index, axis in enumerate(value.elts):
        number = 1 + more if index in split else 1
        axes += [ast.unparse(axis)] * number
    return f"({', '.join(axes)})"
