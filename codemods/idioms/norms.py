"""The ways in which people write the global norm of a tree."""

from __future__ import annotations

import ast

from codemods import vocabulary
from codemods.facts import Facts
from codemods.origins import Origins


class Norms:
    """Tells of which tree an expression is the global norm."""

    def __init__(self, facts: Facts, origins: Origins) -> None:
        self.facts = facts
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
            case ast.Call(func=function, args=[only], keywords=[]) if self.facts.full_name(function) in vocabulary.SUM:
                return self._each(self._unstacked(only), self._is_sum_of_squares)
            case (
                ast.Call(func=function, args=[ast.Lambda() as step, tree, ast.Constant(value=0)], keywords=[])
                | ast.Call(
                    func=function,
                    args=[ast.Lambda() as step, tree],
                    keywords=[ast.keyword(arg="initializer", value=ast.Constant(value=0))],
                )
            ) if self.facts.full_name(function) in vocabulary.REDUCE_TREES and self._adds_squares(step):
                return tree
        return None

    def _unstacked(self, node: ast.expr) -> ast.expr:
        """A list that an array is made of."""
        node = self.origins.expanded(node)
        if isinstance(node, ast.Call) and self.facts.full_name(node.func) in vocabulary.STACK and len(node.args) == 1:
            return self.origins.expanded(node.args[0])
        return node

    def _raveled(self, node: ast.expr) -> ast.expr | None:
        """The tree whose elements a vector holds, or the norms of whose leaves."""
        if self._is_first(node, vocabulary.RAVEL_TREE) is not None:
            return self._is_first(node, vocabulary.RAVEL_TREE)
        elements = self._unstacked(node)
        return None if elements is node else self._each(elements, self._is_flat) or self._each(elements, self._is_norm)

    def _each(self, node: ast.expr, accept: object) -> ast.expr | None:
        """The tree over whose leaves a comprehension goes, or whose leaves a mapped tree has, if each gives what is accepted."""
        assert callable(accept)
        match node:
            case ast.ListComp(elt=element, generators=[each]) | ast.GeneratorExp(elt=element, generators=[each]):
                plain = isinstance(each.target, ast.Name) and not each.ifs
                if plain and isinstance(each.target, ast.Name) and accept(element, each.target.id):
                    return self._leaves(each.iter)
            case ast.Call(func=function, args=[mapped]) if self.facts.full_name(function) in vocabulary.LIST_LEAVES:
                match self.origins.expanded(mapped):
                    case ast.Call(func=mapping, args=[ast.Lambda(args=parameters, body=body), tree]) if (
                        self.facts.full_name(mapping) in vocabulary.MAP_TREES and len(parameters.args) == 1
                    ):
                        return tree if accept(body, parameters.args[0].arg) else None
        return None

    def _leaves(self, node: ast.expr) -> ast.expr | None:
        """The tree of whose leaves an expression is the list."""
        node = self.origins.expanded(node)
        if (
            isinstance(node, ast.Call)
            and self.facts.full_name(node.func) in vocabulary.LIST_LEAVES
            and len(node.args) == 1
        ):
            return node.args[0]
        return self._is_first(node, vocabulary.FLATTEN)

    def _is_first(self, node: ast.expr, functions: frozenset[str]) -> ast.expr | None:
        """The argument of a call whose first result an expression is: `f(tree)[0]`, or `x` after `x, _ = f(tree)`."""
        if isinstance(node, ast.Name):
            variable = self.origins.variable(node)
            stores = self.origins.stores(variable) if variable is not None else []
            if variable is None or len(stores) != 1:
                return None
            targets = variable.unit.parents.get(stores[0])
            statement = variable.unit.parents.get(targets) if targets is not None else None
            first = isinstance(targets, ast.Tuple) and targets.elts[0] is stores[0]
            call = statement.value if first and isinstance(statement, ast.Assign) else None
        else:
            zero = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0
            call = node.value if zero and isinstance(node, ast.Subscript) else None
        if isinstance(call, ast.Call) and self.facts.full_name(call.func) in functions and len(call.args) == 1:
            return call.args[0]
        return None

    # Of one leaf

    def _is_sum_of_squares(self, node: ast.expr, leaf: str) -> bool:
        match node:
            case ast.Call(func=function, args=[ast.Name(id=first), ast.Name(id=second)], keywords=[]):
                return first == second == leaf and self.facts.full_name(function) in vocabulary.DOT
            case ast.Call(func=function, args=[squares], keywords=[]):
                return self.facts.full_name(function) in vocabulary.SUM and self._is_square(squares, leaf)
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
        match node:
            case ast.Call(func=function, args=[vector], keywords=[]) if (
                self.facts.full_name(function) in vocabulary.VECTOR_NORM
            ):
                return (isinstance(vector, ast.Name) and vector.id == leaf) or self._is_flat(vector, leaf)
        return False

    def _is_flat(self, node: ast.expr, leaf: str) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="ravel" | "flatten"), args=[], keywords=[]):
                return name == leaf
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="reshape"), args=[size], keywords=[]):
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
