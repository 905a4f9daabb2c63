"""Attributes of a class that become functions.

A function that is read from an instance is bound to it, as no class or traversal was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.legacy import DEFINITIONS, Unnamed, legacy_name
from codemods.analysis.queries import Queries
from codemods.dataflow.effects import Variable
from codemods.inference.objects import Class, External, LegacyObject, Object
from codemods.sources.modules import Unit

ENUM = "enum."


def kept_as_value(node: ast.AST, unit: Unit, facts: Queries) -> str:
    """What keeps a function from being bound in the place of an expression, as a template.

    It is empty where none is needed: the expression is not the whole value of an attribute that the
    body of a class assigns.
    """
    statement = unit.parents.get(node)
    owner = unit.parents.get(statement) if statement is not None else None
    if not isinstance(owner, ast.ClassDef):
        return ""
    cls = facts.flow.class_of(owner)
    match statement:
        # optimizer = optim.Adam
        case ast.Assign(targets=targets, value=value) if value is node:
            if all(isinstance(target, ast.Name) for target in targets):
                return "{member}" if _is_enum(cls, facts) else "staticmethod"
        # optimizer: Any = optim.Adam, which is a field in a dataclass
        case ast.AnnAssign(target=ast.Name(), value=value) if value is node:
            return "" if _has_fields(cls, facts) else "staticmethod"
    return ""


def taken_by_classes(facts: Queries) -> frozenset[Object]:
    """The attributes of classes that become functions, but get there otherwise.

    They are in a variable, for example.
    """
    taken: set[Object] = set()
    for cls in facts.flow.reading.classes:
        for name in cls.scope.names:
            place = ("variable", cls.scope, name)
            items = facts.flow.solver.at(place)
            found = [item for item in items if _becomes_function(item)]
            if not found or facts.is_imported(cls.scope, name):
                continue
            if not _is_plain(cls, name, facts):
                taken.update(found)
    return frozenset(taken)


def _is_enum(cls: Class, facts: Queries) -> bool:
    # class Optimizers(enum.Enum), of which functions are methods and no members
    return any(name.startswith(ENUM) for name in _outer_bases(cls, facts))


def _outer_bases(cls: Class, facts: Queries) -> Iterator[str]:
    """The names of the bases of a class, and of theirs, that are not of the project."""
    for item in facts.flow.ancestry(cls):
        if isinstance(item, External):
            yield item.name
        elif isinstance(item, Class):
            yield from filter(None, map(facts.full_name, item.node.bases))


def _becomes_function(item: Object) -> bool:
    match item:
        # optim.Adam
        case External(name=name):
            return legacy_name(name) in (*DEFINITIONS, Unnamed.RUN_TIME)
        # optim.ModelParamTraversal(is_kernel)
        case LegacyObject(kind="traversal"):
            return True
    return False


def _is_plain(cls: Class, name: str, facts: Queries) -> bool:
    """Whether an attribute is only assigned in the body, a legacy class or a field."""
    variable = Variable(cls.scope, name)
    for store in facts.dataflow.definitions.stores(variable):
        statement = cls.unit.parents.get(store)
        # optimizer: Any = optim.Adam, a field
        if isinstance(statement, ast.AnnAssign) and _has_fields(cls, facts):
            continue
        # for optimizer in optimizers
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            return False
        value = statement.value
        if value is None or not _is_explicit(value, facts):
            return False
        if not kept_as_value(value, cls.unit, facts):
            return False
    return True


def _is_explicit(value: ast.expr, facts: Queries) -> bool:
    """Whether an expression names a legacy class, or makes a traversal or static method."""
    if not isinstance(value, ast.Call):
        return facts.names_legacy(value)
    # staticmethod(optim.Adam)
    if "builtins.staticmethod" in facts.externals(value.func):
        return True
    # optim.ModelParamTraversal(is_kernel)
    made = facts.legacy_objects(value, "traversal")
    return any(obj.node is value for obj in made)


def _has_fields(cls: Class, facts: Queries) -> bool:
    """Whether annotated names of a class are fields of its instances.

    That is so in a dataclass, a Flax module or a named tuple.
    """
    # class Trainer(nn.Module)
    if any(_outer_bases(cls, facts)):
        return True
    ancestry = facts.flow.ancestry(cls)
    return any(isinstance(base, Class) and _is_dataclass(base) for base in ancestry)


def _is_dataclass(cls: Class) -> bool:
    decorators = map(ast.unparse, cls.node.decorator_list)
    return any("dataclass" in text for text in decorators)
