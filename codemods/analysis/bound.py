"""Attributes of a class that become functions.

A function that is read from an instance is bound to it, as no class or traversal was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.legacy import DEFINITIONS, Unnamed, legacy_name
from codemods.analysis.queries import Queries
from codemods.inference.objects import Class, External, LegacyObject, Object
from codemods.sources.modules import Unit


def kept_as_value(node: ast.AST, unit: Unit, facts: Queries) -> str:
    """What keeps a function from being bound in the place of an expression, as a template.

    It is empty where none is needed: the expression is not the whole value of an attribute that the
    body of a class assigns.
    """
    owner = facts.flow.reading.scopes[node].node
    if not isinstance(owner, ast.ClassDef):
        return ""
    cls = facts.flow.class_of(owner)
    value, statement = node, unit.parents[node]
    # ADAM, LAMB = optim.Adam, optim.LAMB
    if isinstance(statement, ast.Tuple):
        value, statement = statement, unit.parents[statement]
    match statement:
        # optimizer = optim.Adam
        case ast.Assign(targets=targets) if statement.value is value:
            kind = ast.Name if value is node else ast.Tuple
            if all(isinstance(target, kind) for target in targets):
                bases = _outer_bases(cls, facts)
                # class Optimizers(enum.Enum), of which functions are methods and no members
                is_enum = any(name.startswith("enum.") for name in bases)
                return "{member}" if is_enum else "staticmethod"
        # optimizer: Any = optim.Adam, which is a field in a dataclass
        case ast.AnnAssign(target=ast.Name()) if statement.value is node:
            return "" if _has_fields(cls, facts) else "staticmethod"
    return ""


def taken_by_classes(facts: Queries) -> frozenset[Object]:
    """What becomes functions, and is an attribute of a class by a variable or a condition."""
    taken: set[Object] = set()
    for cls in facts.flow.reading.classes:
        for value in _values_bound(cls, facts):
            is_field = isinstance(cls.unit.parents[value], ast.AnnAssign)
            is_kept = facts.names_legacy(value) or isinstance(value, ast.Call)
            if not is_kept and not (is_field and _has_fields(cls, facts)):
                taken.update(filter(_becomes_function, facts.objects(value)))
    # setattr(Kinds, name, cls)
    for call in facts.flow.engine.index.called.get("setattr", ()):
        match call.args:
            case [owner, _, given] if any(
                isinstance(item, Class) for item in facts.objects(owner)
            ):
                taken.update(filter(_becomes_function, facts.objects(given)))
    return frozenset(taken)


def _values_bound(cls: Class, facts: Queries) -> Iterator[ast.expr]:
    """The values that the body of a class gives its names, also in one tuple for several."""
    for name in cls.scope.names:
        for binding in facts.flow.engine.bindings_of(cls.scope, name):
            match binding.source:
                case ast.Tuple(elts=values) if binding.steps:
                    yield from values
                case ast.expr() as value:
                    yield value


def _becomes_function(item: Object) -> bool:
    match item:
        # optim.Adam
        case External(name=name):
            return legacy_name(name) in (*DEFINITIONS, Unnamed.RUN_TIME)
        # optim.ModelParamTraversal(is_kernel)
        case LegacyObject(kind="traversal"):
            return True
    return False


def _outer_bases(cls: Class, facts: Queries) -> Iterator[str]:
    """The names of the bases of a class, and of theirs, that are not of the project."""
    yield from facts.outer_bases(cls)
    for item in facts.flow.ancestry(cls):
        if isinstance(item, Class):
            yield from filter(None, map(facts.full_name, item.node.bases))


def _has_fields(cls: Class, facts: Queries) -> bool:
    """Whether annotated names of a class are fields of its instances.

    That is so in a dataclass, a Flax module or a named tuple.
    """
    # class Trainer(nn.Module)
    return any(_outer_bases(cls, facts)) or any(
        "dataclass" in ast.unparse(decorator)
        for base in facts.flow.ancestry(cls)
        if isinstance(base, Class)
        for decorator in base.node.decorator_list
    )
