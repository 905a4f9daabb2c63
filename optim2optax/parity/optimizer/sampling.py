"""Values in place of names, so that an optimizer can be evaluated outside of its program."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from codemods.sources.bindings import bound_by
from codemods.vocabulary import words

KNOWN_MODULES = words(
    "collections dataclasses flax functools jax jnp math np numpy onp optax optim typing"
)


def names_in(text: str, mode: str = "eval") -> Iterator[str]:
    """The names in a source text."""
    for node in ast.walk(ast.parse(text, mode=mode)):
        if isinstance(node, ast.Name):
            yield node.id


def tree_around(node: ast.AST) -> ast.AST:
    """The innermost expression that attributes, items and calls start at."""
    # `config` of `config.schedules["train"](step).value`
    while True:
        match node:
            case (
                ast.Attribute(value=inner)
                | ast.Subscript(value=inner)
                | ast.Call(func=inner)
            ):
                node = inner
            case _:
                return node


def starts_outside(node: ast.AST, known: Container[str]) -> bool:
    """Whether an expression starts at a name that is neither known nor one of Python."""
    root = tree_around(node)
    if not isinstance(root, ast.Name) or root.id in known:
        return False
    return not hasattr(builtins, root.id)


def bound_in(tree: ast.AST) -> set[str]:
    """The names that an expression, or a function, binds itself."""
    bound = chain.from_iterable(map(bound_by, ast.walk(tree)))
    return {name for name, _, _ in bound}


def first_outside(tree: ast.AST, known: Iterable[str]) -> str | None:
    """The first name, attribute or item in an expression that starts at a name of the program."""
    inside = bound_in(tree).union(known)
    for node in ast.walk(tree):
        is_chain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        if is_chain and starts_outside(node, inside):
            return ast.unparse(node)
    return None


class Exchange(ast.NodeTransformer):
    """Puts expressions in the place of others, which are known by their source texts."""

    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self.parts = {**parts}

    def visit(self, node: ast.AST) -> Any:
        found = None
        if isinstance(node, ast.expr):
            found = self.parts.get(ast.unparse(node))
        return self.generic_visit(node) if found is None else found

    def in_text(self, text: str) -> str:
        """A source text with the exchanged parts."""
        return ast.unparse(ast.fix_missing_locations(self.visit(ast.parse(text))))


def constructor(node: ast.AST) -> str:
    """The last name of what a call calls, such as `Adam` of `optim.Adam(1e-3)`; else empty."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func).rpartition(".")[2]


SPREAD = 1.013
"""The factor between the values of two names for the same parameter.

With different values, exchanged names show.
"""

WORDS = ("bias", "kernel", "scale", "embedding")
"""The last parts of the paths of the probe's leaves."""

LENGTH = 8
"""About the length of what a program takes the length of."""

TRAVERSALS = ("ModelParamTraversal",)


class Sampler(Exchange):
    """Reads the old expression, whose arguments show what names stand for.

    `free` are the names that stay, `text` is the old expression. `parts` get the placeholders by
    the source texts that they replace, `values` and `named` their values, as objects and as texts.
    """

    def __init__(self, free: frozenset[str], text: str) -> None:
        super().__init__({})
        self.free = free
        self.text = text
        self.values: dict[str, Any] = {}
        self.named: dict[str, str] = {}
        self._sample: float | None = None

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.expr) or ast.unparse(node) in self.parts:
            return super().visit(node)
        name = constructor(node)
        if isinstance(node, ast.Call) and not starts_outside(node, self.free):
            # optim.ModelParamTraversal(lambda path, _: "kernel" in path)
            if name in TRAVERSALS:
                node.args = [self._predicate(argument) for argument in node.args]
                return node
            if name in optimizers():
                return self._definition(node, optimizers()[name])
        # Nothing is known of what is around definitions.
        if self._sample is None:
            return node
        match node:
            # 0.4 / len(batches), of a name that is no number
            case ast.Call(func=ast.Name(id="len"), args=[inner]) if starts_outside(
                inner, self.free
            ):
                return self._number(node, LENGTH)
        # A name, attribute, item or call that starts at a name of the program.
        if starts_outside(node, self.free):
            return self._number(node, self._sample)
        return super().visit(node)

    def _definition(self, node: ast.Call, legacy: LegacyOptimizer) -> ast.expr:
        """A definition with placeholders among its arguments."""

        def argument(node: ast.expr, name: str) -> Any:
            before, self._sample = self._sample, legacy.sample(name)
            found = self.visit(node)
            self._sample = before
            return found

        # optim.Adam(rate, beta1=settings.beta)
        names = chain((parameter.name for parameter in legacy.parameters), repeat(""))
        node.args = [*map(argument, node.args, names)]
        for word in node.keywords:
            word.value = argument(word.value, word.arg or "")
        return node

    def _predicate(self, node: ast.expr) -> ast.expr:
        """A predicate that can be evaluated outside of its program.

        One that needs nothing of the program stays; another is replaced by one that asks for a
        word of the path. The negation of a predicate stays a negation.
        """
        match node:
            # lambda *arguments: not is_kernel(*arguments)
            case ast.Lambda(
                args=ast.arguments(vararg=ast.arg(arg=name), args=[]),
                body=ast.UnaryOp(
                    op=ast.Not(),
                    operand=ast.Call(
                        args=[ast.Starred(value=ast.Name(id=same))]
                    ) as call,
                ),
            ) if name == same:
                call.func = self._predicate(call.func)
                return node
        # lambda path, _: "kernel" in path
        if first_outside(node, self.free) is None:
            return node
        # Each group of a MultiOptimizer gets another word, so that none is empty.
        taken = self.text + "".join(self.named.values())
        word = next((word for word in WORDS if word not in taken), WORDS[-1])
        text = f"lambda path, _: path.endswith({word!r})"
        return self._placeholder(node, eval(text), text)

    def _number(self, node: ast.expr, value: float) -> ast.expr:
        """A placeholder for a number, whose value is about this one."""
        # optim.Adam(config.lr, beta1=config.momentum)
        if isinstance(value, int):
            value += len(self.values)
        else:
            value *= SPREAD ** len(self.values)
        return self._placeholder(node, value, repr(value))

    def _placeholder(self, node: ast.expr, value: Any, text: str) -> ast.expr:
        """The name that stands for an expression; equal expressions have the same one."""
        source = ast.unparse(node)
        # The same learning rate may be given to two optimizers.
        if source not in self.parts:
            name = f"_{len(self.values)}"
            self.values[name] = value
            self.named[source] = text
            self.parts[source] = ast.Name(name, ast.Load())
        return self.parts[source]
