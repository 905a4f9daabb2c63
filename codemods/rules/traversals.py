"""Traversals, which become predicates over paths."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.bound import kept_as_value
from codemods.analysis.uses import ATTRIBUTES, Use
from codemods.dataflow.definitions import function_of
from codemods.inference.binding import arguments_of
from codemods.inference.containers import CHANGING
from codemods.inference.objects import Container, Function
from codemods.model import Refusal
from codemods.optimizers.methods import TRAVERSAL
from codemods.rewriting.edits import Edit, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.sources.modules import Unit

ONCE = (ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias)
"""The nodes that set a variable only once: parameters, definitions and imports."""


@rule(
    "FO302",
    "a traversal becomes its predicate",
    "definition:ModelParamTraversal",
    before="kernels = optim.ModelParamTraversal(lambda path, _: 'kernel' in path)\n",
    after="kernels = lambda path, _: 'kernel' in path\n",
)
def traversal(use: Use, context: Context) -> Edit | Refusal:
    """A `ModelParamTraversal` that chooses parameters for a MultiOptimizer or a `focus` becomes the
    predicate that it was made with. The predicate still gets paths such as `/Dense_0/kernel`. A
    traversal that no optimizer in view uses stays one, under the name that Flax still has:
    `flax.traverse_util.ModelParamTraversal`.
    """
    assert isinstance(use.node, ast.Call)
    # a traversal that is part of nothing lives on in flax.traverse_util
    is_linked = any(inner in use.objects for _, inner in context.facts.legacy.links)
    if not is_linked:
        return Replace(use.unit.span(use.node.func), "{ModelParamTraversal}")
    given = arguments_of(TRAVERSAL, use.node)
    if given is None:
        return reasons.arguments(
            "`ModelParamTraversal` takes one predicate.",
            "Pass one function of path and value.",
        )
    if not context.taken_by_classes.isdisjoint(use.objects):
        return reasons.traversal(
            "It becomes an attribute of a class, through a variable.",
            "Let a plain statement of the class make it.",
        )
    predicate = given["filter_fn"]
    name = _set_again(predicate, use.node, context)
    if name is not None:
        return reasons.traversal(
            f"The predicate reads `{name}`, which may be set again: then it chooses others than at "
            "first.",
            "Give the predicate a variable of its own.",
        )
    # a function that is an attribute of a class would become a method
    kept_by = kept_as_value(use.node, use.unit, context.facts)
    template = f"{kept_by}({{predicate}})" if kept_by else "{predicate}"
    return Replace(use.span, template, (("predicate", use.unit.span(predicate)),))


def _set_again(predicate: ast.expr, made: ast.AST, context: Context) -> str | None:
    """A variable that a predicate reads, and that may change after the traversal was made."""
    definitions = context.facts.dataflow.definitions
    functions = context.facts.functions(predicate)
    own = {inner for function in functions for inner in ast.walk(function.node)}
    for node in _names_in_bodies(functions):
        # parameters and variables of the predicate itself are new in each call
        found = definitions.variable(node)
        if found is None or found.scope.node in own:
            continue
        stores = [
            store for store in definitions.stores(found) if not isinstance(store, ONCE)
        ]
        changes: list[tuple[Unit, ast.AST]] = [(found.unit, store) for store in stores]
        changes += _stores_into(node, context)
        if any(_is_later(unit, change, made, context) for unit, change in changes):
            return found.name
    return None


def _names_in_bodies(functions: Iterable[Function]) -> Iterator[ast.Name]:
    """The names in the bodies of functions; defaults are read at once, so they do not count."""
    for function in functions:
        node = function.node
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        for part in body:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Name):
                    yield inner


def _stores_into(node: ast.expr, context: Context) -> Iterator[tuple[Unit, ast.AST]]:
    """Where a container that a variable holds is changed.

    Changes by the function that makes the container do not count: each run has a new one.
    """
    facts = context.facts
    for container in facts.objects(node):
        if not isinstance(container, Container):
            continue
        for holder in facts.holders(container):
            unit = facts.scope(holder).unit
            around = function_of(unit, holder)
            is_new = around is not None and around in unit.ancestors(container.node)
            if not is_new and _changes(unit.parents.get(holder), holder):
                yield unit, holder


def _changes(parent: ast.AST | None, holder: ast.expr) -> bool:
    """Whether the container that an expression holds is changed right there."""
    match parent:
        # words.append("kernel")
        case ast.Attribute(attr=name):
            return name in CHANGING
        # words[0] = "kernel", or words += ["kernel"]
        case (
            ast.Subscript(ctx=ast.Store() | ast.Del(), value=value)
            | ast.AugAssign(target=value)
        ):
            return value is holder
    return False


def _is_later(unit: Unit, change: ast.AST, made: ast.AST, context: Context) -> bool:
    """Whether a change may happen after a traversal was made.

    It does not if it comes first in the same function, or stands in a function around that.
    """
    home = context.facts.dataflow.program.unit_of(made)
    around = function_of(unit, change)
    if around is function_of(home, made):
        return context.facts.dataflow.may_follow(change, made)
    return around is not None and around not in home.ancestors(made)


@rule(
    "FO303",
    "a traversal's own methods",
    *(f"traversal.{name}" for name in sorted(ATTRIBUTES["traversal"])),
)
def methods(use: Use, context: Context) -> Refusal:
    """These calls stay, with a reason."""
    return reasons.traversal(
        f"The traversal's `{use.name}` is used.",
        "Import `ModelParamTraversal` from `flax.traverse_util` for it, beside the predicate.",
    )
