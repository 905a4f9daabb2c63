"""Attributes of a class that become functions.

A function that is read from an instance is bound to it, as no class or traversal was.
"""

from __future__ import annotations

import ast

from codemods.analysis.legacy import DEFINITIONS, Unnamed, legacy_name
from codemods.analysis.queries import Queries
from codemods.dataflow.effects import Variable
from codemods.flow.objects import Class, External, LegacyObject, Object
from codemods.sources.modules import Unit

ENUM = "enum."


def stands_in_class(node: ast.AST, unit: Unit, facts: Queries) -> bool:
    """Whether an expression is the whole value of an attribute, assigned in the body of a class.

    There, `staticmethod` keeps a function from being bound.
    """
    statement = unit.parents.get(node)
    if statement is None:
        return False
    owner = unit.parents.get(statement)
    if not isinstance(owner, ast.ClassDef):
        return False
    match statement:
        # optimizer = optim.Adam
        case ast.Assign(targets=targets, value=value):
            are_names = all(isinstance(target, ast.Name) for target in targets)
            return value is node and are_names
        # optimizer: Any = optim.Adam, which is a field in a dataclass
        case ast.AnnAssign(target=ast.Name(), value=value) if value is node:
            cls = facts.flow.class_of(owner)
            return not _has_fields(cls, facts)
    return False


def taken_by_classes(facts: Queries) -> frozenset[Object]:
    """The attributes of classes that become functions, but get there otherwise.

    They are in a variable, or a member of an enum.
    """
    taken: set[Object] = set()
    for cls in facts.flow.reading.classes:
        is_enum = _is_enum(cls, facts)
        for name in cls.scope.names:
            place = ("variable", cls.scope, name)
            items = facts.flow.solver.at(place)
            found = [item for item in items if _becomes_function(item)]
            if not found or facts.is_imported(cls.scope, name):
                continue
            if is_enum or not _is_plain(cls, name, facts):
                taken.update(found)
    return frozenset(taken)


def _is_enum(cls: Class, facts: Queries) -> bool:
    for base in facts.flow.ancestry(cls):
        # class Optimizers(enum.Enum)
        if isinstance(base, External) and base.name.startswith(ENUM):
            return True
    return False


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
        if not stands_in_class(value, cls.unit, facts):
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
    for base in facts.flow.ancestry(cls):
        # class Trainer(nn.Module)
        if isinstance(base, External):
            return True
        if isinstance(base, Class) and _is_dataclass(base):
            return True
    return False


def _is_dataclass(cls: Class) -> bool:
    decorators = map(ast.unparse, cls.node.decorator_list)
    return any("dataclass" in text for text in decorators)
