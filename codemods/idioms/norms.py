"""The ways in which people write the global norm of a tree."""

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
