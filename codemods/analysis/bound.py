"""What a class has that becomes a function: read from an instance, a function is bound to it, as no class or traversal was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.legacy import DEFINITIONS, RUN_TIME, legacy_name
from codemods.analysis.queries import Queries
from codemods.dataflow.effects import Variable
from codemods.flow.objects import Class, External, Object, Thing
from codemods.sources.modules import Unit

ENUM = "enum."


def stands_in_class(node: ast.AST, unit: Unit, facts: Queries) -> bool:
    """Whether an expression is all that an attribute of a class is set to in its body: there `staticmethod` keeps it as it is."""
    statement = unit.parents.get(node)
    owner = None if statement is None else unit.parents.get(statement)
    if not isinstance(owner, ast.ClassDef):
        return False
    match statement:
        case ast.Assign(targets=targets, value=value):
            return value is node and all(isinstance(target, ast.Name) for target in targets)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is node and not _has_fields(facts.flow.class_of(owner), facts)
    return False


def taken_by_classes(facts: Queries) -> Iterator[Object]:
    """What becomes a function and is an attribute of a class in another way: through a variable, or as a member of an enum."""
    for cls in facts.flow.reading.classes:
        is_enum = any(
            isinstance(base, External) and base.name.startswith(ENUM)
            for base in facts.flow.ancestry(cls)
        )
        for name in cls.scope.names:
            found = [
                item
                for item in facts.flow.solver.at(("variable", cls.scope, name))
                if _becomes_function(item)
            ]
            if (
                found
                and not facts.is_imported(cls.scope, name)
                and (is_enum or not _is_plain(cls, name, facts))
            ):
                yield from found


def _becomes_function(item: Object) -> bool:
    match item:
        case External(name=name):
            return legacy_name(name) in (*DEFINITIONS, RUN_TIME)
        case Thing(kind="traversal"):
            return True
    return False


def _is_plain(cls: Class, name: str, facts: Queries) -> bool:
    """Whether an attribute is set in the body alone, by statements that say what to, or as a field of each instance."""
    for store in facts.dataflow.definitions.stores(Variable(cls.scope, name)):
        statement = cls.unit.parents.get(store)
        is_field = isinstance(statement, ast.AnnAssign) and _has_fields(cls, facts)
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        is_plain = (
            value is not None
            and _says_what(value, facts)
            and stands_in_class(value, cls.unit, facts)
        )
        if not (is_field or is_plain):
            return False
    return True


def _says_what(value: ast.expr, facts: Queries) -> bool:
    if isinstance(value, ast.Call):
        is_static = "builtins.staticmethod" in facts.externals(value.func)
        return is_static or any(thing.node is value for thing in facts.things(value, "traversal"))
    return facts.names_legacy(value)


def _has_fields(cls: Class, facts: Queries) -> bool:
    """Whether what is annotated in a class is a field of its instances, as in a dataclass, a module or a named tuple."""
    return any(
        isinstance(base, External)
        or (
            isinstance(base, Class)
            and any("dataclass" in ast.unparse(one) for one in base.node.decorator_list)
        )
        for base in facts.flow.ancestry(cls)
    )
