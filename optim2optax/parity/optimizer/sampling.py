"""Values in place of names, so that an optimizer can be evaluated outside of its program."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codemods.optimizers import optimizers

KNOWN_MODULES = (
    "collections",
    "dataclasses",
    "flax",
    "functools",
    "jax",
    "jnp",
    "math",
    "np",
    "numpy",
    "onp",
    "optax",
    "optim",
    "typing",
)


def names_in(text: str, mode: str = "eval") -> Iterator[str]:
    """The names in a source text."""
    for node in ast.walk(ast.parse(text, mode=mode)):
        if isinstance(node, ast.Name):
            yield node.id


def root_of(node: ast.expr) -> ast.expr:
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


def constructor(node: ast.AST) -> str:
    """The last name of what a call calls, such as `Adam` of `optim.Adam(1e-3)`; else empty."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func).rpartition(".")[2]


VALUES: Mapping[str, float] = {
    "learning_rate": 0.013,
    "beta": 0.83,
    "beta1": 0.87,
    "beta2": 0.983,
    "eps": 3e-6,
    "weight_decay": 0.017,
}
"""A value for each parameter that several legacy optimizers take, away from their defaults."""

OTHER_VALUE = 0.71
SPREAD = 1.013
"""The factor between the values of two names for the same parameter.

With different values, exchanged names show.
"""

WORDS = ("bias", "kernel", "scale", "embedding")
"""The last parts of the paths of the probe's leaves."""

TRAVERSALS = ("ModelParamTraversal",)


@dataclass
class Sample:
    """Two expressions with placeholders, and values for these.

    `values` are by the names of the placeholders. `named` are the source texts of the values, by
    those that they replace.
    """

    legacy: str
    optax: str
    values: dict[str, Any] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    legacy_supports: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()


def sample(
    legacy_expression: str,
    optax_expression: str,
    helpers: Iterable[str] = (),
    legacy_supports: Iterable[str] = (),
    supports: Iterable[str] = (),
) -> Sample:
    """Put placeholders with values in place of everything that only the user's program knows.

    Args:
        legacy_expression: a definition, in which the package is called `optim`.
        optax_expression: what it became. The same source text gets the same placeholder on both
            sides.
        helpers: names that the expressions may call.
        legacy_supports: functions and classes that the old expression reaches.
        supports: the same of the new one.
    """
    sampler = _Sampler(frozenset((*KNOWN_MODULES, *helpers)), legacy_expression)
    old = sampler.definition(ast.parse(legacy_expression, mode="eval").body)
    new = sampler.known(ast.parse(optax_expression, mode="eval").body)

    def with_placeholders(source: str) -> str:
        return ast.unparse(sampler.known(ast.parse(source)))

    return Sample(
        legacy=ast.unparse(old),
        optax=ast.unparse(new),
        values=sampler.values,
        named=sampler.named,
        legacy_supports=tuple(map(with_placeholders, legacy_supports)),
        supports=tuple(map(with_placeholders, supports)),
    )


@dataclass
class _Sampler:
    """Reads the old expression, whose arguments show what names stand for, then the new one.

    `free` are the names that stay, `text` is the old expression, `places` has the placeholders by
    the source texts that they replace.
    """

    free: frozenset[str]
    text: str
    values: dict[str, Any] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def definition(self, node: ast.expr) -> ast.expr:
        """A definition with placeholders among its arguments."""
        name = constructor(node)
        if not isinstance(node, ast.Call) or name not in (*optimizers(), *TRAVERSALS):
            return node
        # optim.ModelParamTraversal(lambda path, _: "kernel" in path)
        if name in TRAVERSALS:
            node.args = [self._predicate(argument) for argument in node.args]
            return node
        # optim.Adam(rate, beta1=settings.beta)
        legacy = optimizers()[name]
        samples = {**VALUES, **legacy.samples}
        parameters = [parameter.name for parameter in legacy.parameters]
        for index, argument in enumerate(node.args):
            parameter = parameters[index] if index < len(parameters) else ""
            value = samples.get(parameter, OTHER_VALUE)
            node.args[index] = self._argument(argument, value)
        for word in node.keywords:
            value = samples.get(word.arg or "", OTHER_VALUE)
            word.value = self._argument(word.value, value)
        return node

    def _argument(self, node: ast.expr, sample: float) -> ast.expr:
        """An argument with placeholders for the names in it."""
        # optim.MultiOptimizer((kernels, optim.Adam(rate)), (biases, optim.Momentum(rate)))
        if isinstance(node, ast.Tuple | ast.List):
            node.elts = [self._argument(element, sample) for element in node.elts]
            return node
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("optim."):
            return self.definition(node)
        return _Replacer(self, sample).visit(node)  # type: ignore[no-any-return]

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
        if not self._unknown(node):
            return node
        # Each group of a MultiOptimizer gets another word, so that none is empty.
        taken = self.text + "".join(self.named.values())
        word = next((word for word in WORDS if word not in taken), WORDS[-1])
        text = f"lambda path, _: path.endswith({word!r})"
        return self._placeholder(node, eval(text), text)

    def _unknown(self, node: ast.expr) -> bool:
        """Whether an expression has names of the program."""
        bound: set[str] = set()
        names: set[str] = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.arg):
                bound.add(inner.arg)
            elif isinstance(inner, ast.Name):
                names.add(inner.id)
                if isinstance(inner.ctx, ast.Store):
                    bound.add(inner.id)
        others = names - bound - self.free
        return any(not hasattr(builtins, name) for name in others)

    def known(self, node: ast.AST) -> ast.AST:
        """The new expression, or a definition, with the placeholders of the old one."""
        return _Replacer(self, None).visit(node)  # type: ignore[no-any-return]

    def number(self, node: ast.expr, value: float) -> ast.expr:
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
        if source in self.places:
            return ast.Name(self.places[source], ast.Load())
        name = f"_{len(self.values)}"
        self.values[name] = value
        self.named[source] = text
        self.places[source] = name
        return ast.Name(name, ast.Load())


class _Replacer(ast.NodeTransformer):
    """Puts placeholders in the place of names of the program.

    Without a sample of what a name stands for, it uses placeholders that there are already.
    """

    def __init__(self, sampler: _Sampler, value: float | None) -> None:
        self.sampler = sampler
        self.value = value

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr):
            found = self.sampler.places.get(ast.unparse(node))
            if found is not None:
                return ast.Name(found, ast.Load())
            if self.value is not None and self._is_of_the_program(node):
                return self.sampler.number(node, self.value)
        return self.generic_visit(node)

    def _is_of_the_program(self, node: ast.expr) -> bool:
        """Whether this is a name, attribute, item or call that starts at a name of the program."""
        root = root_of(node)
        if not isinstance(root, ast.Name) or root.id in self.sampler.free:
            return False
        return not hasattr(builtins, root.id)
