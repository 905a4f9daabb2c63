"""The forms in which people clip a leaf, each of which is what optax computes for every limit.

`optax.clip_by_global_norm` gives `g if N < L else g / N * L` for a leaf `g`, the norm `N` of its
tree and a limit `L`. `N` is at least as large as any element of `g`, or 0 where the squares of tiny
elements vanish, or infinite where those of large ones overflow, or not a number where one element
is not. `jnp.minimum(1.0, L / N) * g` is the same:

- `N < L`: `L / N` is at least 1, so both give `g` itself.
- `N >= L`: both give `g * L / N` but for rounding, and for what is too small for the type. With an
  infinite `N` that is 0 for a finite element and not a number for an infinite one.
- `N` is not a number: `jnp.minimum` returns it, and the comparison chooses what divides by it.
- `L = 0`: `L / N` is 0, and not a number for `N = 0`. `L < 0`: `L / N` is the minimum, and `N < L`
  never holds. An infinite `L`: for a finite norm `L / N` is infinite, for an infinite one all is
  not a number. `L` is negatively infinite, or not a number: no element is finite.

`L / N` stays in the range of float32 for every limit above 1e-18. Leaves have one real type: of
mixed types, the old optimizers change the types of parameters themselves.
"""

from __future__ import annotations

import ast

from codemods import vocabulary
from codemods.analysis.origins import Origins


class Norms:
    """Finds the tree of which an expression is the global norm."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def tree_of(self, node: ast.expr) -> ast.expr | None:
        """The tree of which an expression is the Euclidean norm over all leaves, if it is one."""
        # optax.global_norm(grads)
        only = self._argument(self.origins.expanded(node), vocabulary.GLOBAL_NORM)
        if only is not None:
            return only
        # jnp.sqrt(sum([jnp.vdot(leaf, leaf) for leaf in jax.tree_leaves(grads)]))
        only = self._argument(self.origins.expanded(node), vocabulary.ROOT)
        squares = None if only is None else self.origins.expanded(only)
        each = self._argument(squares, vocabulary.SUM)
        match None if each is None else self.origins.expanded(each):
            case (
                ast.ListComp(elt=element, generators=[over])
                | ast.GeneratorExp(elt=element, generators=[over])
            ):
                match over:
                    case ast.comprehension(
                        target=ast.Name(id=leaf), iter=leaves, ifs=[]
                    ) if self._is_sum_of_squares(element, leaf):
                        return self._leaves(leaves)
        return None

    def _argument(
        self, node: ast.expr | None, functions: frozenset[str]
    ) -> ast.expr | None:
        """The only argument of a call, if it is one of some functions."""
        match node:
            case ast.Call(func=function, args=[only], keywords=[]) if (
                self.facts.full_name(function) in functions
            ):
                return only
        return None

    def _leaves(self, node: ast.expr) -> ast.expr | None:
        """The tree of whose leaves an expression is the list."""
        node = self.origins.expanded(node)
        listed = self._argument(node, vocabulary.LIST_LEAVES)
        # leaves, _ = jax.tree_flatten(grads)
        return listed or self._flattened(node)

    def _flattened(self, node: ast.expr) -> ast.expr | None:
        """The tree of which a variable has the leaves, by an assignment to it and others."""
        variable = self.origins.variable(node)
        stores = self.origins.stores(variable)
        if variable is None or len(stores) != 1:
            return None
        targets = variable.unit.parents[stores[0]]
        match targets, variable.unit.parents.get(targets):
            case ast.Tuple(elts=[first, *_]), ast.Assign(value=call) if (
                first is stores[0]
            ):
                return self._argument(call, vocabulary.FLATTEN)
        return None

    # Of one leaf

    def _is_sum_of_squares(self, node: ast.expr, leaf: str) -> bool:
        match node:
            # jnp.vdot(leaf, leaf)
            case ast.Call(
                func=function,
                args=[ast.Name(id=first), ast.Name(id=second)],
                keywords=[],
            ):
                return (
                    first == second == leaf
                    and self.facts.full_name(function) in vocabulary.DOT
                )
            # jnp.sum(leaf ** 2)
            case ast.Call(func=function, args=[squares], keywords=[]):
                is_sum = self.facts.full_name(function) in vocabulary.SUM
                return is_sum and self._is_square(squares, leaf)
        return False

    def _is_square(self, node: ast.expr, leaf: str) -> bool:
        match node:
            # leaf ** 2
            case ast.BinOp(
                left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=2)
            ):
                return name == leaf
            # leaf * leaf
            case ast.BinOp(
                left=ast.Name(id=left), op=ast.Mult(), right=ast.Name(id=right)
            ):
                return left == right == leaf
            # jnp.square(leaf)
            case ast.Call(func=function, args=[ast.Name(id=name)], keywords=[]):
                return (
                    name == leaf and self.facts.full_name(function) in vocabulary.SQUARE
                )
        return False


class Leaf(Norms):
    """The body of a function of one leaf, `tree` being what the function is mapped over."""

    def __init__(
        self, origins: Origins, leaf: str, body: ast.expr, tree: ast.Name
    ) -> None:
        super().__init__(origins)
        self.leaf = leaf
        self.body = body
        self.tree = tree

    def clipped_by_norm(self) -> ast.expr | None:
        """The limit to which the body clips by the norm of the tree, if that is what it does."""
        match self._expanded(self.body):
            # jnp.minimum(1.0, limit / norm) * g
            case ast.BinOp(op=ast.Mult()) as product:
                match self._expanded(self._factor(product)):
                    case ast.Call(func=function, args=[one, two], keywords=[]) if (
                        self._is_called("minimum", function)
                    ):
                        for number, ratio in ((one, two), (two, one)):
                            if _is_one(number):
                                return self._over_norm(ratio)
        return None

    def clipped_by_value(self) -> ast.expr | None:
        """The limit in `jnp.clip(g, -limit, limit)`."""
        match self._expanded(self.body):
            case ast.Call(
                func=function,
                args=[
                    ast.Name(id=name),
                    ast.UnaryOp(op=ast.USub(), operand=low),
                    high,
                ],
                keywords=[],
            ) if name == self.leaf and self._is_called("clip", function):
                is_same = ast.dump(low) == ast.dump(high)
                return high if is_same and self._is_limit(high) else None
        return None

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

    def _expanded(self, node: ast.expr | None) -> ast.expr | None:
        return None if node is None else self.origins.expanded(node)

    def _is_called(self, name: str, function: ast.expr) -> bool:
        return self.facts.full_name(function) == f"jax.numpy.{name}"

    def _factor(self, product: ast.expr | None) -> ast.expr | None:
        """What the leaf is multiplied by."""
        match product:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mult(), right=factor) if (
                name == self.leaf
            ):
                return factor
            case ast.BinOp(left=factor, op=ast.Mult(), right=ast.Name(id=name)) if (
                name == self.leaf
            ):
                return factor
        return None

    def _over_norm(self, ratio: ast.expr | None) -> ast.expr | None:
        """The limit in `limit / norm`."""
        match self._expanded(ratio):
            case ast.BinOp(left=limit, op=ast.Div(), right=norm) if self._is_norm(
                norm
            ) and self._is_limit(limit):
                return limit
        return None

    def _is_limit(self, node: ast.expr) -> bool:
        """Whether an expression may be a limit: a number, or what is no part of the leaf."""
        if isinstance(node, ast.Constant):
            return type(node.value) in (int, float)
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return False
        inside = ast.walk(node)
        names = {inner.id for inner in inside if isinstance(inner, ast.Name)}
        is_function = bool(self.facts.full_name(node))
        return self.leaf not in names and not is_function and not self._is_norm(node)

    def _is_norm(self, node: ast.expr) -> bool:
        """Whether an expression is the norm of the tree when the function is mapped over it."""
        of = self.tree_of(node)
        variable = self.origins.variable(of)
        if of is None or variable is None:
            return False
        # the norm of another tree
        if variable != self.origins.variable(self.tree):
            return False
        return self.facts.dataflow.unchanged(variable, of, self.tree)


def _is_one(node: ast.expr) -> bool:
    """Whether this is 1 or 1.0, but not True, which is equal to them."""
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return is_number and ast.literal_eval(node) == 1
