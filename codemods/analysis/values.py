"""Legacy classes and traversals that are values: functions take their places, and differ.

A function does not compare equal to a class, and has none of its attributes. One that is read from
an instance is bound to it, as no class or traversal was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import DEFINITIONS, LegacyName, Unnamed, legacy_name
from codemods.analysis.queries import Queries
from codemods.analysis.uses import Use
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Instance,
    LegacyObject,
    Object,
)
from codemods.sources.modules import Unit
from codemods.vocabulary import words

CLASSES = frozenset((*DEFINITIONS, Unnamed.RUN_TIME))

OF_CLASSES = frozenset(("builtins.type", "abc.ABCMeta", "types.FunctionType"))
"""Types of which a class is an instance and no function is, or the other way round."""

ASKING = words("add count discard get index pop remove setdefault")
"""The methods of containers that compare their first argument with the elements."""


def exposed_classes(facts: Facts) -> frozenset[LegacyName]:
    """The names of the legacy classes that are compared, have attributes read, or escape."""
    holding = {use.unit for use in facts.uses if _goes_on(use)}
    return frozenset(
        name
        for unit in facts.in_programs_of(holding)
        for node in unit.nodes
        for exposed in _exposed_by(facts, node)
        # optim.Adam.__name__, not an attribute of a container
        for name in _classes(
            facts, exposed, 0 if isinstance(node, ast.Attribute) else 2
        )
    )


def _goes_on(use: Use) -> bool:
    """Whether more than a call may become of a class, or of the module with all of them."""
    match use.kind, use.node, use.parent:
        # getattr(optim, name)(1e-3), not `make = getattr(optim, name)`
        case "module", module, ast.Call(
            func=ast.Name(id="getattr"), args=[first, *_]
        ) as lookup if first is module:
            return use.unit.call_of(lookup) is None
        # make(1e-3), not getattr(optim, name)(1e-3)
        case "dynamic", ast.Call(func=function), _:
            return not isinstance(function, ast.Call)
    return use.kind in ("module", "value")


def _exposed_by(facts: Queries, node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of which a node asks more than to be called, if they are classes.

    What is compared with keys or elements counts: another file, with a function of its own, may
    have put there what is looked up.
    """
    match node:
        # optim.Adam.__name__
        case ast.Attribute(value=owner, ctx=ast.Load()):
            yield owner
        # names[optim.Adam], {cls: … for cls in classes}, {cls for cls in classes}
        case ast.Subscript(slice=key) | ast.DictComp(key=key) | ast.SetComp(elt=key):
            yield key
        # {optim.Adam: "adam"}
        case ast.Dict(keys=keys):
            yield from filter(None, keys)
        case ast.Set(elts=elements):
            yield from elements
        # cls == optim.Adam, not cls is None
        case ast.Compare(left=left, comparators=others):
            operands = (left, *others)
            if not any(
                isinstance(one, ast.Constant) and one.value is None for one in operands
            ):
                # name in OPTIMIZERS: the keys of a dict are compared, and not its values
                yield from (
                    one
                    for one in operands
                    if not all(map(_is_dict, facts.objects(one)))
                )
        # names.get(optim.Adam)
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[key, *_]) if (
            name in ASKING
            and any(isinstance(one, Container) for one in facts.objects(owner))
        ):
            yield key
        # ", ".join(OPTIMIZERS)
        case ast.Call(func=ast.Attribute(attr="join")):
            return
        # type("Kinds", (), {"adam": optim.Adam})
        case ast.Call(func=ast.Name(id="type"), args=[_, _, namespace]):
            yield namespace
        # registry.register(optim.Adam)
        case ast.Call(func=callee):
            place = facts.flow.places[callee]
            if not facts.flow.is_unknown(place) or facts.flow.is_only_looked_at(node):
                return
            # isinstance(cls, str), isinstance(definition, OPTIMIZERS["adam"])
            if _asks_for_values(facts, node):
                if not facts.names_legacy(node.args[1]):
                    yield node.args[1]
                return
            for one in node.args:
                yield one.value if isinstance(one, ast.Starred) else one
            for word in node.keywords:
                if not facts.flow.is_only_looked_at(node, word.arg):
                    yield word.value
        # library.optimizer = optim.Adam
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                # an attribute or item of an object that is not the program's own
                if isinstance(target, ast.Attribute | ast.Subscript) and not any(
                    isinstance(owner, Instance | Container)
                    for owner in facts.objects(target.value)
                ):
                    yield value


def _is_dict(item: Object) -> bool:
    if not isinstance(item, Container):
        return False
    return item.role == "dict" or isinstance(item.node, ast.Dict | ast.DictComp)


def _asks_for_values(facts: Queries, call: ast.Call) -> bool:
    """Whether this asks for types of which a class is an instance if a function is."""
    if facts.externals(call.func) != ["builtins.isinstance"] or len(call.args) != 2:
        return False
    parts = (part for part in ast.walk(call.args[1]) if isinstance(part, ast.expr))
    names = {name for part in parts for name in facts.externals(part)}
    return bool(names) and names.isdisjoint(OF_CLASSES)


def _classes(facts: Queries, node: ast.expr, depth: int) -> Iterator[LegacyName]:
    """The legacy classes that an expression may be, or that containers there have."""
    pending = [(item, depth) for item in facts.objects(node)]
    for item, left in pending:  # grows while it is read
        if isinstance(item, External):
            name = legacy_name(item.name)
            if name is not None and name in CLASSES:
                yield name
        # {"adam": optim.Adam}
        elif isinstance(item, Container) and left:
            elements = facts.flow.solver.at(("elements", item))
            pending += ((one, left - 1) for one in elements)


# Attributes of classes


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
                return _unbound(cls, facts)
        # optimizer: Any = optim.Adam, which is a field in a dataclass
        case ast.AnnAssign(target=ast.Name()) if statement.value is node:
            return "" if _has_fields(cls, facts) else _unbound(cls, facts)
    return ""


def _unbound(cls: Class, facts: Queries) -> str:
    """What keeps a function from being a method of a class: of an enumeration, a member."""
    return "{member}" if _is_enum(cls, facts) else "staticmethod"


def _is_enum(cls: Class, facts: Queries) -> bool:
    bases = facts.bases_out_of_view(cls)
    names = chain.from_iterable(map(facts.flow.origin_names, bases))
    return any(name.startswith("enum.") for name in names)


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
            return legacy_name(name) in CLASSES
        # optim.ModelParamTraversal(is_kernel)
        case LegacyObject(kind="traversal"):
            return True
    return False


def _has_fields(cls: Class, facts: Queries) -> bool:
    """Whether annotated names of a class are fields of its instances.

    That is so in a dataclass, a Flax module or a named tuple.
    """
    # class Kind(enum.Enum)
    if _is_enum(cls, facts):
        return False
    # class Trainer(nn.Module)
    return any(facts.bases_out_of_view(cls)) or any(
        "dataclass" in ast.unparse(decorator)
        for base in facts.flow.ancestry(cls)
        if isinstance(base, Class)
        for decorator in base.node.decorator_list
    )
