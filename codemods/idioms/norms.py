"""The ways in which people write the global norm of a tree."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods import vocabulary
from codemods.analysis.origins import Origins
from codemods.inference.binding import arguments_of, taking

REDUCE = taking("function", "tree", "initializer")
"""What `jax.tree_util.tree_reduce` takes."""


class Norms:
    """Finds the tree of which an expression is the global norm."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def tree_of(self, node: ast.expr) -> ast.expr | None:
        """The tree of which an expression is the Euclidean norm over all leaves, if it is one."""
        node = self.origins.expanded(node)
        match node:
            # optax.global_norm(grads), jnp.sqrt(…), or jnp.linalg.norm(…)
            case ast.Call(func=function, args=[only], keywords=[]):
                name = self.facts.full_name(function)
                if name in vocabulary.GLOBAL_NORM:
                    return only
                if name in vocabulary.ROOT:
                    return self._squared(only)
                if name in vocabulary.VECTOR_NORM:
                    return self._raveled(self.origins.expanded(only))
            # squares ** 0.5
            case ast.BinOp(left=squares, op=ast.Pow(), right=ast.Constant(value=0.5)):
                return self._squared(squares)
        return None

    def _squared(self, node: ast.expr) -> ast.expr | None:
        """The tree of which an expression is the sum of the squares of all elements."""
        node = self.origins.expanded(node)
        match node:
            # sum([jnp.sum(leaf ** 2) for leaf in jax.tree_leaves(grads)])
            case ast.Call(func=function, args=[only], keywords=[]) if (
                self.facts.full_name(function) in vocabulary.SUM
            ):
                return self._each(self._unstacked(only), self._is_sum_of_squares)
            # jax.tree_util.tree_reduce(lambda total, leaf: …, grads, 0), or with initializer=0
            case ast.Call(func=function, args=[ast.Lambda() as step, tree, *_]) if (
                self.facts.full_name(function) in vocabulary.REDUCE_TREES
            ):
                given = arguments_of(REDUCE, node) or {}
                match given.get("initializer"):
                    case ast.Constant(value=0) if self._adds_squares(step):
                        return tree
        return None

    def _unstacked(self, node: ast.expr) -> ast.expr:
        """A list that an array is made of."""
        node = self.origins.expanded(node)
        only = self._argument(node, vocabulary.STACK)
        return node if only is None else self.origins.expanded(only)

    def _argument(
        self,
        node: ast.expr | None,
        functions: frozenset[str],
    ) -> ast.expr | None:
        """The only argument by position of a call, if it is one of some functions."""
        match node:
            case ast.Call(func=function, args=[only]) if (
                self.facts.full_name(function) in functions
            ):
                return only
        return None

    def _raveled(self, node: ast.expr) -> ast.expr | None:
        """The tree whose elements a vector holds, or the norms of whose leaves."""
        ravelled = self._is_first(node, vocabulary.RAVEL_TREE)
        if ravelled is not None:
            return ravelled
        elements = self._unstacked(node)
        if elements is node:
            return None
        return self._each(elements, self._is_flat) or self._each(
            elements, self._is_norm
        )

    def _each(
        self,
        node: ast.expr,
        accept: Callable[[ast.expr, str], bool],
    ) -> ast.expr | None:
        """The tree of which a list has what is accepted for each leaf."""
        match node:
            # [jnp.sum(leaf ** 2) for leaf in jax.tree_leaves(grads)]
            case (
                ast.ListComp(elt=element, generators=[each])
                | ast.GeneratorExp(elt=element, generators=[each])
            ):
                match each:
                    case ast.comprehension(
                        target=ast.Name(id=name), iter=over, ifs=[]
                    ) if accept(element, name):
                        return self._leaves(over)
        mapped = self._argument(node, vocabulary.LIST_LEAVES)
        match self.origins.expanded(mapped) if mapped is not None else None:
            # jax.tree_leaves(jax.tree_map(lambda leaf: jnp.sum(leaf ** 2), grads))
            case ast.Call(
                func=mapping,
                args=[ast.Lambda(args=ast.arguments(args=[leaf]), body=body), tree],
            ):
                is_mapped = self.facts.full_name(mapping) in vocabulary.MAP_TREES
                return tree if is_mapped and accept(body, leaf.arg) else None
        return None

    def _leaves(self, node: ast.expr) -> ast.expr | None:
        """The tree of whose leaves an expression is the list."""
        node = self.origins.expanded(node)
        listed = self._argument(node, vocabulary.LIST_LEAVES)
        return listed or self._is_first(node, vocabulary.FLATTEN)

    def _is_first(self, node: ast.expr, functions: frozenset[str]) -> ast.expr | None:
        """The argument of a call whose first result an expression is.

        That is `f(tree)[0]`, or `x` after `x, _ = f(tree)`.
        """
        match node:
            case ast.Subscript(value=call, slice=ast.Constant(value=0)):
                return self._argument(call, functions)
        variable = self.origins.variable(node)
        stores = self.origins.stores(variable)
        if variable is None or len(stores) != 1:
            return None
        targets = variable.unit.parents[stores[0]]
        match targets, variable.unit.parents.get(targets):
            case ast.Tuple(elts=[first, *_]), ast.Assign(value=call) if (
                first is stores[0]
            ):
                return self._argument(call, functions)
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
            # (leaf ** 2).sum()
            case ast.Call(
                func=ast.Attribute(value=squares, attr="sum"), args=[], keywords=[]
            ):
                return self._is_square(squares, leaf)
            # jnp.linalg.norm(leaf) ** 2
            case ast.BinOp(left=norm, op=ast.Pow(), right=ast.Constant(value=2)):
                return self._is_norm(norm, leaf)
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

    def _is_norm(self, node: ast.expr, leaf: str) -> bool:
        """Whether an expression is the norm of a leaf, of which all dimensions are one."""
        vector = self._argument(node, vocabulary.VECTOR_NORM)
        if vector is None or (isinstance(node, ast.Call) and node.keywords):
            return False
        if isinstance(vector, ast.Name) and vector.id == leaf:
            return True
        return self._is_flat(vector, leaf)

    def _is_flat(self, node: ast.expr, leaf: str) -> bool:
        match node:
            # leaf.ravel()
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="ravel" | "flatten"),
                args=[],
                keywords=[],
            ):
                return name == leaf
            # leaf.reshape(-1)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="reshape"),
                args=[size],
                keywords=[],
            ):
                return name == leaf and ast.unparse(size) == "-1"
            # jnp.ravel(leaf)
            case ast.Call(func=function, args=[ast.Name(id=name)], keywords=[]):
                return (
                    name == leaf and self.facts.full_name(function) in vocabulary.RAVEL
                )
        return False

    def _adds_squares(self, step: ast.Lambda) -> bool:
        """Whether this is `lambda total, leaf: total + jnp.sum(leaf ** 2)`."""
        names = [argument.arg for argument in step.args.args]
        match step.body:
            case ast.BinOp(left=ast.Name(id=total), op=ast.Add(), right=added) if (
                len(names) == 2
            ):
                return total == names[0] and self._is_sum_of_squares(added, names[1])
        return False
