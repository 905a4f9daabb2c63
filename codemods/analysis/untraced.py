"""Where something is used as an optimizer, and it is not known where that comes from.

It is read of objects of the program in a way that inference does not follow: by a special method,
a name that is computed, a function that is handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.facts import Facts
from codemods.analysis.stepping import OVERRIDES, STEPS
from codemods.analysis.uses import Use
from codemods.inference.objects import (
    Class,
    Container,
    Instance,
    LegacyObject,
    Place,
)
from codemods.inference.reading import Binding
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import UNPICKLE, words

READ, RATE = "untraced", "untraced rate"
ATTRIBUTES = words(
    "apply_gradient compute_gradient create optimize optimizer_def state target"
)
"""What is asked of optimizers and definitions, and of little else."""

FOLLOWED = ("__init__", "__call__")
"""The special methods of which calls are followed."""


def untraced(facts: Facts, objects: Iterable[LegacyObject]) -> list[Use]:
    """The places where what may be one of some objects is used as one; one in a line.

    So is a step that sets a learning rate in a state, where nobody knows whether it has one: what
    makes its definition is not in view.
    """
    asked = tuple(obj for obj in objects if obj.kind in ("optimizer", "definition"))
    found: dict[tuple[Unit, int], Use] = {}
    for unit, node in facts.flow.reading.attributes if asked else ():
        line = unit, node.lineno
        if node.attr not in ATTRIBUTES or line in found:
            continue
        program = facts.together(unit)
        near = tuple(obj for obj in asked if obj.unit.path in program)
        # a file that speaks of neither has a `state` of its own
        is_of_jax = "jax" in unit.code or "flax" in unit.code
        if near and is_of_jax and _may_be_one(facts, node):
            name = " ".join(unit.source(node).split())
            found[line] = Use(READ, name, unit, node, near)
    steps = (use for use in facts.uses if use.kind in STEPS and _sets_rate(facts, use))
    for use in steps:
        if not set(asked).isdisjoint(use.objects):
            rate = Use(RATE, use.name, use.unit, use.node, use.objects)
            found.setdefault((use.unit, use.node.lineno), rate)
    return list(found.values())


def _may_be_one(facts: Facts, node: ast.Attribute) -> bool:
    """Whether nothing is known of the owner of an attribute, but of what it is taken from."""
    if not isinstance(node.ctx, ast.Load) or any(facts.objects(node.value)):
        return False
    roots = facts.flow.roots(facts.flow.places[node.value])
    # optimizer = None, and it is set by its name elsewhere: no constant has the attribute
    if roots and all(isinstance(root, ast.Constant) for root in roots):
        return True
    return any(_is_taken(facts, root) for root in roots)


def _is_taken(facts: Facts, root: Place) -> bool:
    """Whether something comes from an object of the program."""
    match root:
        # def __post_init__(self, optimizer), which Python calls
        case ("variable", Scope(node=ast.FunctionDef(name=function)), str()):
            return function.startswith("__") and function not in FOLLOWED
        # first, second = box
        case ("bound", Binding(source=ast.expr() as source), _):
            return _is_taken(facts, source)
        case ast.Call(func=function) if facts.names(function) & UNPICKLE:
            return True
        case ast.expr():
            parts = (one for one in ast.walk(root) if isinstance(one, ast.expr))
            return any(_holds(facts, one) for one in parts)
        # a field that nobody in view sets
        case ("field", Class(), str()):
            return True
    return False


def _holds(facts: Facts, node: ast.expr) -> bool:
    kinds = (Container, Instance, LegacyObject)
    return any(isinstance(item, kinds) for item in facts.objects(node))


def _sets_rate(facts: Facts, step: Use) -> bool:
    """Whether a step sets a rate of definitions that nothing in view makes."""
    keywords = step.call.keywords if step.call is not None else ()
    definitions = (one for obj in step.objects for one in facts.legacy.definitions(obj))
    is_set = any(word.arg in OVERRIDES for word in keywords)
    return is_set and not any(one.evidence == "proven" for one in definitions)
