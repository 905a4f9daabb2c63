"""The ways in which people write the global norm of a tree."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods import vocabulary
from codemods.analysis.origins import Origins


class Norms:
    """Tells of which tree an expression is the global norm."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def tree_of(self, node: ast.expr) -> ast.expr | None:
        """The tree of which an expression is the Euclidean norm over all leaves; None if it is not plainly that."""
        node = self.origins.expanded(node)
        match node:
            case ast.Call(func=function, args=[only], keywords=[]):
                name = self.facts.full_name(function)
                if name in vocabulary.GLOBAL_NORM:
                    return only
                if name in vocabulary.ROOT:
                    return self._squared(only)
                if name in vocabulary.VECTOR_NORM:
                    return self._raveled(self.origins.expanded(only))
            case ast.BinOp(left=squares, op=ast.Pow(), right=ast.Constant(value=0.5)):
                return self._squared(squares)
        return None

    def _squared(self, node: ast.expr) -> ast.expr | None:
        """The tree of which an expression is the sum of the squares of all elements."""
        node = self.origins.expanded(node)
        match node:
            case ast.Call(func=function, args=[only], keywords=[]) if (
                self.facts.full_name(function) in vocabulary.SUM
            ):
                return self._each(self._unstacked(only), self._is_sum_of_squares)
            case (
                ast.Call(
                    func=function,
                    args=[ast.Lambda() as step, tree, ast.Constant(value=0)],
                    keywords=[],
                )
                | ast.Call(
                    func=function,
                    args=[ast.Lambda() as step, tree],
                    keywords=[ast.keyword(arg="initializer", value=ast.Constant(value=0))],
                )
            ) if self.facts.full_name(function) in vocabulary.REDUCE_TREES and self._adds_squares(
                step
            ):
                return tree
        return None

    def _unstacked(self, node: ast.expr) -> ast.expr:
        """A list that an array is made of."""
        node = self.origins.expanded(node)
        only = self._argument(node, vocabulary.STACK)
        return node if only is None else self.origins.expanded(only)

    def _argument(self, node: ast.expr | None, functions: frozenset[str]) -> ast.expr | None:
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
        return (
            None
            if elements is node
            else self._each(elements, self._is_flat) or self._each(elements, self._is_norm)
        )

    def _each(self, node: ast.expr, accept: Callable[[ast.expr, str], bool]) -> ast.expr | None:
        """The tree over whose leaves a comprehension goes, or whose leaves a mapped tree has, if each gives what is accepted."""
        match node:
            case (
                ast.ListComp(elt=element, generators=[each])
                | ast.GeneratorExp(elt=element, generators=[each])
            ):
                if (
                    isinstance(each.target, ast.Name)
                    and not each.ifs
                    and accept(element, each.target.id)
                ):
                    return self._leaves(each.iter)
        mapped = self._argument(node, vocabulary.LIST_LEAVES)
        match self.origins.expanded(mapped) if mapped is not None else None:
            case ast.Call(
                func=mapping, args=[ast.Lambda(args=ast.arguments(args=[leaf]), body=body), tree]
            ):
                return (
                    tree
                    if self.facts.full_name(mapping) in vocabulary.MAP_TREES
                    and accept(body, leaf.arg)
                    else None
                )
        return None

    def _leaves(self, node: ast.expr) -> ast.expr | None:
        """The tree of whose leaves an expression is the list."""
        node = self.origins.expanded(node)
        return self._argument(node, vocabulary.LIST_LEAVES) or self._is_first(
            node, vocabulary.FLATTEN
        )

    def _is_first(self, node: ast.expr, functions: frozenset[str]) -> ast.expr | None:
        """The argument of a call whose first result an expression is: `f(tree)[0]`, or `x` after `x, _ = f(tree)`."""
        match node:
            case ast.Subscript(value=call, slice=ast.Constant(value=0)):
                return self._argument(call, functions)
        variable = self.origins.variable(node)
        stores = self.origins.stores(variable)
        if variable is None or len(stores) != 1:
            return None
        targets = variable.unit.parents[stores[0]]
        match targets, variable.unit.parents.get(targets):
            case ast.Tuple(elts=[first, *_]), ast.Assign(value=call) if first is stores[0]:
                return self._argument(call, functions)
        return None

    # Of one leaf

    def _is_sum_of_squares(self, node: ast.expr, leaf: str) -> bool:
        match node:
            case ast.Call(
                func=function, args=[ast.Name(id=first), ast.Name(id=second)], keywords=[]
            ):
                return first == second == leaf and self.facts.full_name(function) in vocabulary.DOT
            case ast.Call(func=function, args=[squares], keywords=[]):
                return self.facts.full_name(function) in vocabulary.SUM and self._is_square(
                    squares, leaf
                )
            case ast.Call(func=ast.Attribute(value=squares, attr="sum"), args=[], keywords=[]):
                return self._is_square(squares, leaf)
            case ast.BinOp(left=norm, op=ast.Pow(), right=ast.Constant(value=2)):
                return self._is_norm(norm, leaf)
        return False

    def _is_square(self, node: ast.expr, leaf: str) -> bool:
        match node:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=2)):
                return name == leaf
            case ast.BinOp(left=ast.Name(id=left), op=ast.Mult(), right=ast.Name(id=right)):
                return left == right == leaf
            case ast.Call(func=function, args=[ast.Name(id=name)], keywords=[]):
                return name == leaf and self.facts.full_name(function) in vocabulary.SQUARE
        return False

    def _is_norm(self, node: ast.expr, leaf: str) -> bool:
        vector = self._argument(node, vocabulary.VECTOR_NORM)
        if vector is None or (isinstance(node, ast.Call) and node.keywords):
            return False
        return (isinstance(vector, ast.Name) and vector.id == leaf) or self._is_flat(vector, leaf)

    def _is_flat(self, node: ast.expr, leaf: str) -> bool:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="ravel" | "flatten"),
                args=[],
                keywords=[],
            ):
                return name == leaf
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="reshape"),
                args=[size],
                keywords=[],
            ):
                return name == leaf and ast.unparse(size) == "-1"
            case ast.Call(func=function, args=[ast.Name(id=name)], keywords=[]):
                return name == leaf and self.facts.full_name(function) in vocabulary.RAVEL
        return False

    def _adds_squares(self, step: ast.Lambda) -> bool:
        """Whether this is `lambda total, leaf: total + jnp.sum(leaf ** 2)`."""
        names = [argument.arg for argument in step.args.args]
        match step.body:
            case ast.BinOp(left=ast.Name(id=total), op=ast.Add(), right=added) if len(names) == 2:
                return total == names[0] and self._is_sum_of_squares(added, names[1])
        return False
