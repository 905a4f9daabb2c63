"""The replacement of a call or a value, as the table has it: `(x, y) -> y`, `-jax.numpy.inf`.

Where calls of several shapes have different replacements, there is an expression for each, with
semicolons between.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import Signature

from codemods.inference.binding import arguments_of, signature_of

ARROW = " -> "


@dataclass(frozen=True)
class Hole:
    """A hole of an expression from `start` to `end`: a parameter, or a full name."""

    start: int
    end: int
    name: str
    is_parameter: bool


@dataclass(frozen=True)
class Expression:
    """An expression over the parameters of a function, with full names for everything else."""

    signature: Signature
    text: str
    parts: tuple[Hole, ...]

    @property
    def used(self) -> tuple[str, ...]:
        """The parameters that the expression has, in its order."""
        return tuple(part.name for part in self.parts if part.is_parameter)

    @property
    def names(self) -> tuple[str, ...]:
        """The full names that the expression has."""
        names = (part.name for part in self.parts if not part.is_parameter)
        return tuple(dict.fromkeys(names))

    def arguments(self, call: ast.Call) -> dict[str, ast.expr] | None:
        """The arguments of a call by parameters.

        None if Python would refuse the call, or it unpacks some of them.
        """
        return arguments_of(self.signature, call)

    def filled(self, names: Mapping[str, str], given: Collection[str] = ()) -> str:
        """The template of the expression.

        A full name is replaced by that in `names`, a parameter by its default, or by a hole if it
        is `given`.
        """
        text = self.text
        # from the last on, so that the places of the others stay
        for part in reversed(self.parts):
            new = self._filling(part, names, given)
            text = f"{text[: part.start]}{new}{text[part.end :]}"
        return text

    def _filling(
        self, part: Hole, names: Mapping[str, str], given: Collection[str]
    ) -> str:
        if not part.is_parameter:
            return names[part.name]
        if part.name in given:
            return f"{{{part.name}}}"
        return self._default(part)

    def _default(self, part: Hole) -> str:
        default = self.signature.parameters[part.name].default
        return ast.unparse(default) if isinstance(default, ast.expr) else repr(default)


def expressions_of(text: str) -> list[Expression]:
    """Read the expressions that the table has for a name."""
    return [*map(_expression, text.split("; "))]


@lru_cache(maxsize=256)
def _expression(text: str) -> Expression:
    """Read an expression. It is ASCII, and has each of its parameters at most once."""
    # (x, y) -> jax.numpy.add(x, y)
    parameters, _, body = text.rpartition(ARROW)
    within = parameters.strip("()")
    function = ast.parse(f"lambda {within}: 0", mode="eval").body
    assert isinstance(function, ast.Lambda)
    signature = signature_of(function.args)
    tree = ast.parse(body, mode="eval").body
    in_order = sorted(_parts(tree, signature), key=lambda part: part.start)
    return Expression(signature, body, tuple(in_order))


def _parts(node: ast.AST, signature: Signature) -> Iterator[Hole]:
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(root, ast.Name):
        # of `x.shape`, with a parameter `x`, only `x` is a part
        is_parameter = root.id in signature.parameters
        named = root if is_parameter else node
        name = ast.unparse(named)
        # len(x)
        if not is_parameter and "." not in name:
            name = f"builtins.{name}"
        yield Hole(named.col_offset, named.end_col_offset or 0, name, is_parameter)
        return
    for inner in ast.iter_child_nodes(node):
        yield from _parts(inner, signature)
