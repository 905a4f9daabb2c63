"""The types of the parts of an optimizer, where it had been annotated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.origins import FunctionNode, Variable
from codemods.functional.group import Group
from codemods.functional.interfaces import Interface
from codemods.idioms import Unproven
from codemods.inference.binding import parameters_of
from codemods.rewriting.edits import Edit, Replace, Spread
from codemods.sources.modules import Unit

TRANSFORMATION = "{optax}.GradientTransformation"
TYPES = ("{optax}.Params", "{optax}.OptState", "{jax}.Array")


def annotations_of(
    variable: Variable,
    node: FunctionNode,
    unit: Unit,
    group: Group,
    count: int,
) -> tuple[str, ...]:
    """Templates for the annotations of the parameters in the place of one.

    Raises:
      Unproven: if that has an annotation of which an optimizer is but a part.
    """
    parameters = parameters_of(node.args)
    annotation = next(one.annotation for one in parameters if one.arg == variable.name)
    if annotation is None:
        return ("",) * count
    legacy = _legacy_within(annotation, group)
    # optimizer: optim.Optimizer
    if legacy == [annotation]:
        return TYPES[:count]
    # an optional optimizer, for example
    if legacy:
        where = unit.location(node.lineno)
        raise Unproven(
            "its annotation at {} says more than that it is an optimizer", where
        )
    return (unit.source(annotation),) * count


def annotated(
    node: ast.FunctionDef,
    interface: Interface,
    unit: Unit,
    group: Group,
    is_given: bool,
) -> Iterator[tuple[ast.expr, Edit]]:
    """The edits of what a function is said to return.

    Raises:
      Unproven: if that is said in another way than by the class, or by a tuple with the class.
    """
    returns = node.returns
    legacy = _legacy_within(returns, group) if returns is not None else []
    if returns is None or not legacy:
        return
    types = _types(group)
    # -> optim.Optimizer
    if legacy == [returns]:
        whole = (TRANSFORMATION, *types) if is_given else types
        text = ", ".join(whole)
        yield returns, Replace(unit.span(returns), f"tuple[{text}]")
        return
    # -> tuple[optim.Optimizer, jax.Array]
    elements = _elements(returns)
    indices = {index for _, index in interface.returns}
    found = {elements.index(one) for one in legacy if one in elements}
    if found != indices or isinstance(legacy[0], ast.Constant):
        where = unit.location(node.lineno)
        raise Unproven(
            "the annotation at {} says more than that an optimizer is returned", where
        )
    # -> tuple[tuple[optax.Params, optax.OptState], jax.Array]
    if not interface.flat:
        for one in legacy:
            yield one, Replace(unit.span(one), tuple_of_parts(group))
        return
    # -> tuple[optax.Params, optax.OptState, jax.Array]
    first = elements[0]
    for one in legacy:
        ahead = (TRANSFORMATION,) if one is first and is_given else ()
        yield one, Spread(unit.span(one), ahead + types)
    # -> tuple[optax.GradientTransformation, Model, optax.Params, optax.OptState]
    if is_given and first not in legacy:
        yield first, Spread(unit.span(first), (TRANSFORMATION, "{it}"))


def _elements(annotation: ast.expr) -> list[ast.expr]:
    """The types in `tuple[optim.Optimizer, jax.Array]`."""
    match annotation:
        case ast.Subscript(slice=ast.Tuple(elts=elements)):
            return elements
    return []


def tuple_of_parts(group: Group) -> str:
    """The type of the parts together."""
    types = ", ".join(_types(group))
    return f"tuple[{types}]"


def _types(group: Group) -> tuple[str, ...]:
    number = 3 if group.counts else 2
    return TYPES[:number]


def _legacy_within(annotation: ast.expr, group: Group) -> list[ast.expr]:
    """The mentions of the class in an annotation."""
    inside = set(ast.walk(annotation))
    annotations = (use.node for use in group.facts.uses if use.kind == "annotation")
    found = (node for node in annotations if node in inside)
    return [node for node in found if isinstance(node, ast.expr)]
