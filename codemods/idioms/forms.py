"""The forms in which people clip a leaf.

Each comes with the limits for which it is what optax computes, whatever the numbers are.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping

from codemods.analysis.origins import Origins
from codemods.idioms.norms import Norms
from codemods.inference.binding import values_of

Limits = Callable[[ast.expr], bool]


def any_number(limit: ast.expr) -> bool:
    """Whether a limit is any number: positive, zero, negative, infinite or none at all."""
    del limit
    return True


def positive(limit: ast.expr) -> bool:
    """Whether a limit is a literal number above zero, and finite."""
    number = limit.value if isinstance(limit, ast.Constant) else None
    return type(number) in (int, float) and 0 < float(str(number)) < math.inf


def at_most_one(limit: ast.expr) -> bool:
    """Whether a limit is such a number with which the product of a leaf does not overflow."""
    if not isinstance(limit, ast.Constant) or not positive(limit):
        return False
    return float(str(limit.value)) <= 1


def one(limit: ast.expr) -> bool:
    """Whether a limit is the literal number 1, by which people do not divide or multiply."""
    if not isinstance(limit, ast.Constant) or not positive(limit):
        return False
    return float(str(limit.value)) == 1


BY_NORM: Mapping[str, Limits] = {
    "minimum(1, L / N) * g": any_number,
    "where(N < L, 1, L / N) * g": any_number,
    "where(N < L, g, L / N * g)": any_number,
    "where(N < L, g, g / N * L)": any_number,
    "where(N <= L, 1, L / N) * g": positive,
    "where(N <= L, g, L / N * g)": positive,
    "where(N <= L, g, g / N * L)": positive,
    "where(N < L, g, g * L / N)": at_most_one,
    "where(N <= L, g, g * L / N)": at_most_one,
    "L / maximum(N, L) * g": positive,
    "g * L / maximum(N, L)": at_most_one,
    "g / maximum(1, N / L)": positive,
    "g / maximum(N, L)": one,
    "where(N < L, g, g / N)": one,
    "where(N <= L, g, g / N)": one,
}
"""The forms of `g if N < L else g / N * L`, as in optax.

`g` is a leaf, `N` the norm of its tree and `L` a limit. `N` is at least as large as any element of
`g`, or 0 where the squares of tiny elements vanish, or infinite where those of large ones overflow,
or not a number where one element is not. Division and multiplication round monotonically.

- `N < L`: `L / N` is at least 1, `N / L` at most 1 and `L / max(N, L)` is 1, so each form gives `g`
  itself.
- `N = L > 0`: each gives `g`, or what differs from it by rounding.
- `N > L > 0`: each gives `g * L / N` but for rounding, and for what is too small for the type. With
  an infinite `N` that is 0 for a finite element and not a number for an infinite one, in optax,
  too; but if `g * L` overflows, the result for a finite element is not a number, either.
- `N` is not a number: `jnp.minimum` and `jnp.maximum` return it, and both comparisons choose the
  branch that divides by it.
- `L = 0`: `L / N` is 0, and not a number for `N = 0`, as in optax. With `N <= L`, a norm of 0 gives
  0 instead.
- `L < 0`: `L / N` is below 1, so the minimum is `L / N`; `N < L` never holds. `N / L` is below 1,
  and `g` would stay as it is.
- An infinite `L`: for a finite norm `L / N` is infinite and the minimum 1, for an infinite one all
  is not a number; but `L / max(N, L)` is not a number for any norm.
- `L` is negatively infinite, or not a number: no element is finite, in optax, too.

`L / N` stays in the range of float32 for every limit above 1e-18. Leaves have one real type: of
mixed types, the old optimizers change the types of parameters themselves.
"""

BY_VALUE: Mapping[str, Limits] = {
    "clip(g, -L, L)": any_number,
    "minimum(maximum(g, -L), L)": any_number,
    "maximum(minimum(g, L), -L)": positive,
}
"""The forms of `jnp.clip(g, -L, L)`, as in optax, which is the second one.

The third one gives `-L` for a negative `L`, and not `L`.
"""

COMMUTATIVE = ("minimum", "maximum")
MIRRORED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE}
BOUNDS = (["a_min", "a_max"], ["min", "max"])


class Leaf:
    """The body of a function of one leaf, `tree` being what the function is mapped over."""

    def __init__(
        self,
        origins: Origins,
        leaf: str,
        body: ast.expr,
        tree: ast.Name,
    ) -> None:
        self.facts = origins.facts
        self.origins = origins
        self.norms = Norms(origins)
        self.leaf = leaf
        self.body = body
        self.tree = tree

    def limits(self, form: str) -> Iterator[ast.expr]:
        """The limit for which the body has a form, if it has it."""
        parsed = ast.parse(form, mode="eval").body
        for found in self._matches(parsed, self.body, None):
            if found is not None:
                yield found

    def has_norm(self) -> bool:
        """Whether the body makes use of the norm of the tree."""
        pending = [self.body]
        while pending:
            node = pending.pop()
            if self._is_norm(node):
                return True
            further = self.origins.expanded(node)
            if further is not node:
                pending.append(further)
            children = ast.iter_child_nodes(node)
            pending += [child for child in children if isinstance(child, ast.expr)]
        return False

    def _matches(
        self,
        form: ast.expr,
        node: ast.expr,
        limit: ast.expr | None,
    ) -> Iterator[ast.expr | None]:
        """The limits, if any, for which an expression has a form.

        `limit` is the one that an earlier part of the form has had, or None.
        """
        match form:
            case ast.Name(id="g"):
                if isinstance(node, ast.Name) and node.id == self.leaf:
                    yield limit
            case ast.Name(id="N"):
                if self._is_norm(node):
                    yield limit
            case ast.Name(id="L"):
                yield from self._as_limit(node, limit)
            # 1 or 1.0, but not True, which is equal to them
            case ast.Constant(value=value):
                number = node.value if isinstance(node, ast.Constant) else None
                if number is not True and number == value:
                    yield limit
            case _:
                for parts, others in self._parts(form, self.origins.expanded(node)):
                    yield from self._all(parts, others, limit)

    def _all(
        self,
        forms: list[ast.expr],
        nodes: list[ast.expr],
        limit: ast.expr | None,
    ) -> Iterator[ast.expr | None]:
        """The limits for which each of some expressions has its form."""
        if not forms:
            yield limit
            return
        for found in self._matches(forms[0], nodes[0], limit):
            yield from self._all(forms[1:], nodes[1:], found)

    def _parts(
        self,
        form: ast.expr,
        node: ast.expr,
    ) -> Iterator[tuple[list[ast.expr], list[ast.expr]]]:
        """The parts of a form, with those of an expression that have to match them.

        They come in each order that means the same.
        """
        match form, node:
            # L / N * g
            case ast.BinOp(left=first, op=op, right=second), ast.BinOp(
                left=left, op=other, right=right
            ):
                if type(op) is type(other):
                    yield [first, second], [left, right]
                    if isinstance(op, ast.Mult):
                        yield [first, second], [right, left]
            # -L
            case ast.UnaryOp(operand=inner), ast.UnaryOp(
                op=ast.USub(), operand=operand
            ):
                yield [inner], [operand]
            # N < L, or L > N
            case (
                ast.Compare(left=first, ops=[op], comparators=[second]),
                ast.Compare(left=left, ops=[other], comparators=[right]),
            ):
                if type(op) is type(other):
                    yield [first, second], [left, right]
                if MIRRORED[type(op)] is type(other):
                    yield [first, second], [right, left]
            # 1 if N < L else L / N
            case ast.Call(func=ast.Name(id="where"), args=parts), ast.IfExp(
                test=test, body=body, orelse=orelse
            ):
                yield parts, [test, body, orelse]
            # jnp.minimum(1, L / N)
            case ast.Call(func=ast.Name(id=name), args=parts), ast.Call() as call:
                others = values_of(call)
                if self._is_called(name, call) and len(others) == len(parts):
                    yield parts, others
                    if name in COMMUTATIVE:
                        yield parts, others[::-1]

    def _is_called(self, name: str, call: ast.Call) -> bool:
        """Whether a call is of a function of `jax.numpy`, with no keywords but bounds."""
        if self.facts.full_name(call.func) != f"jax.numpy.{name}":
            return False
        words = [word.arg for word in call.keywords]
        return not words or (name == "clip" and words in BOUNDS)

    def _as_limit(self, node: ast.expr, limit: ast.expr | None) -> Iterator[ast.expr]:
        """An expression that may be a limit, and is the same as the one before, if there is one."""
        if limit is not None:
            if ast.dump(node) == ast.dump(limit):
                yield limit
        elif isinstance(node, ast.Constant):
            # jnp.clip(g, -1.0, 1.0)
            if type(node.value) in (int, float):
                yield node
        elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            if self._is_norm(node):
                return
            inside = ast.walk(node)
            names = {inner.id for inner in inside if isinstance(inner, ast.Name)}
            # an element of the leaf is no limit, nor is a function
            if self.leaf not in names and not self.facts.full_name(node):
                yield node

    def _is_norm(self, node: ast.expr) -> bool:
        """Whether an expression is the norm of the tree when the function is mapped over it."""
        of = self.norms.tree_of(node)
        variable = self.origins.variable(of)
        if of is None or variable is None:
            return False
        # the norm of another tree
        if variable != self.origins.variable(self.tree):
            return False
        return self.facts.dataflow.unchanged(variable, of, self.tree)
