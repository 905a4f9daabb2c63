"""Where optimizers and definitions go out of view, and where something is used as one from there.

They go to code of which nothing is known. They come, perhaps, from objects of the program in a way
that inference does not follow: by a special method, a name that is computed, a function that is
handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.pickles import PICKLED, pickles
from codemods.analysis.receivers import Receivers
from codemods.analysis.stepping import OVERRIDES, STEPS
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.containers import is_container_class
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Instance,
    LegacyObject,
    Module,
    Opaque,
    Place,
    Result,
    plain,
)
from codemods.inference.out_of_view import effect_of, is_number
from codemods.inference.reading import Binding
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import PICKLE, UNPICKLE, full_names, words

KIND = "escape"
KINDS = ("optimizer", "definition")
NAMED_TUPLES = full_names("typing typing_extensions", "NamedTuple")
BINARY = words("add sub mul matmul truediv floordiv mod pow lshift rshift and or xor")
OPERATORS = frozenset(f"__{how}{name}__" for name in BINARY for how in ("", "r", "i"))
OPERATORS |= {"__invert__", "__neg__", "__setitem__", "__class_getitem__"}
"""The special methods that may keep or give back what they are given."""

READ, RATE = "untraced", "untraced rate"
ATTRIBUTES = words(
    "apply_gradient compute_gradient create optimize optimizer_def state target"
)
"""What is asked of optimizers and definitions, and of little else."""

FOLLOWED = ("__init__", "__call__")
"""The special methods of which calls are followed."""

Escape = tuple[ast.expr, ast.expr]
"""What goes out of view, and to what."""


def escapes(facts: Facts, objects: Iterable[LegacyObject]) -> list[Use]:
    """The places at which some objects go out of view; one in a line."""
    asked = {obj for obj in objects if obj.kind in KINDS}
    found: dict[tuple[Unit, int], Use] = {}
    for unit in facts.in_programs_of({obj.unit for obj in asked}):
        for node in unit.nodes:
            for given, owner in _escapes(facts, node):
                line = unit, given.lineno
                # losses * mask: a function is no operand
                is_value = isinstance(node, ast.BinOp)
                gone = () if line in found else _given(facts, given, is_value)
                lost = tuple(dict.fromkeys(obj for obj in gone if obj in asked))
                if lost and not _is_contradicted(facts, given, is_value, lost):
                    name = " ".join(unit.source(owner).split())
                    kind = PICKLED if facts.names(owner) & PICKLE else KIND
                    found[line] = Use(kind, name, unit, given, lost)
    return list(found.values())


def _is_contradicted(
    facts: Facts, node: ast.expr, is_value: bool, objects: Iterable[LegacyObject]
) -> bool:
    """Whether something is called an optimizer by an annotation alone, and another denies it.

    So does arithmetic, in which no optimizer is an operand.
    """
    if any(obj.evidence != "declared" for obj in objects):
        return False
    return is_value or facts.of(Receivers).is_declared_otherwise(node)


def _given(facts: Facts, node: ast.expr, is_value: bool) -> Iterator[LegacyObject]:
    """The optimizers and definitions in an expression, or in what a function there gives."""
    match node:
        case ast.Dict(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _given(facts, part, is_value)
        case ast.Starred(value=several):
            yield from _given(facts, several, is_value)
        # pickle.dump(optimizer.replace(apply_fn=None, tx=None), file)
        case _ if any(use.node is node for use in facts.of(pickles)):
            return
        case ast.Subscript(slice=ast.Name() as key) if _is_chosen(facts, node, key):
            return
        case _:
            place = facts.flow.places.read(node)
            found = [*facts.flow.carried(place)]
            found += () if is_value else facts.within(place)
            if found and not facts.are_params(node):
                yield from found


def _is_chosen(facts: Facts, node: ast.expr, key: ast.Name) -> bool:
    """Whether a key that a condition asks for gives one of several things, numbers among them.

    `writer.scalar(key, metrics[key])` is given no optimizer under `if key.startswith("loss"):`.
    """
    around = facts.scope(node).unit.ancestors(node)
    return any(
        isinstance(item, Result) and is_number(item.name)
        for item in facts.objects(node)
    ) and any(
        isinstance(name, ast.Name) and name.id == key.id
        for outer in around
        if isinstance(outer, ast.If)
        for name in ast.walk(outer.test)
    )


def _escapes(facts: Facts, node: ast.AST) -> Iterator[Escape]:
    """What goes out of view by a node, if it is an optimizer."""
    kept: list[Escape] = []
    match node:
        # setattr(module, name, optimizer)
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, _, value]):
            if _is_unknown(facts, owner) or _is_module(facts, owner):
                yield value, owner
        case ast.Call(func=function):
            if _takes(facts, function):
                for value in values_of(node):
                    yield value, function
        # class Trainer(Base, definition=optim.Adam(0.1))
        case ast.ClassDef(bases=bases, keywords=words):
            values = [word.value for word in words]
            for value in values:
                yield value, [*bases, *values][0]
        # stack << optimizer
        case ast.BinOp(left=left, right=right):
            kept += (left, right), (right, left)
        # stack += [optimizer]
        case ast.AugAssign(target=changed, value=value):
            kept.append((value, changed))
        # ~box, which holds an optimizer
        case ast.UnaryOp(op=ast.Invert() | ast.USub(), operand=operand):
            kept.append((operand, operand))
        # names[definition] = "adam"
        case ast.Subscript(value=value, slice=key, ctx=ast.Store()):
            kept.append((key, value))
        # Held[optimizer]
        case ast.Subscript(value=value, slice=key):
            if _is_overloaded(facts, value):
                yield key, value
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            for target in targets:
                match target:
                    # globals()[name] = optimizer
                    case ast.Subscript(value=owner):
                        kept.append((value, owner))
                    # store.current = optimizer, step.__defaults__ = (optimizer,)
                    case ast.Attribute(value=owner, attr=name):
                        if name.startswith("__") or _is_unknown(facts, owner):
                            yield value, owner
    for value, owner in kept:
        if (
            _is_unknown(facts, owner)
            or _is_module(facts, owner)
            or _is_overloaded(facts, owner)
        ):
            yield value, owner


def _takes(facts: Facts, function: ast.expr) -> bool:
    """Whether a call may keep or give back what it is given, and nobody knows where."""
    items = facts.objects(function)
    if any(
        isinstance(item, Class) and _is_made_elsewhere(facts, item) for item in items
    ):
        return True
    if not facts.flow.is_unknown(facts.flow.places[function]):
        return False
    names = facts.flow.origin_names(function)
    # self.assertIsInstance(agent, Agent), of a class that a class in view derives from
    if isinstance(function, ast.Attribute) and names == {""}:
        inherited = {
            name
            for item in facts.objects(function.value)
            if isinstance(item, Instance)
            for base in facts.bases_out_of_view(item.cls)
            for name in facts.flow.origin_names(base)
        }
        names = {name and f"{name}().{function.attr}" for name in inherited} or names
    return any(map(_may_keep, names))


def _is_made_elsewhere(facts: Facts, cls: Class) -> bool:
    """Whether what makes an instance of a class is that of a base out of view, or a container's."""
    # class Run(lab.Trainer), class Runs(list), not class State(NamedTuple): its fields are followed
    return not any(facts.flow.defining(cls, "__init__")) and any(
        any(map(is_container_class, facts.objects(base)))
        or any(name and effect_of(name) == "unknown" for name in names)
        for base in facts.bases_out_of_view(cls)
        if (names := facts.flow.origin_names(base) - NAMED_TUPLES)
    )


def _is_unknown(facts: Facts, owner: ast.expr) -> bool:
    """Whether nothing is known of what holds something."""
    items = map(plain, facts.objects(owner))
    if not all(isinstance(item, External | Result | Opaque) for item in items):
        return False
    return any(map(_may_keep, facts.flow.origin_names(owner)))


def _is_overloaded(facts: Facts, node: ast.expr) -> bool:
    """Whether an operator is a method of a class of the program: these are not followed."""
    names = OPERATORS & facts.flow.engine.bound_in_classes
    items = facts.objects(node) if names else ()
    classes = [item.cls if isinstance(item, Instance) else item for item in items]
    return any(
        any(facts.flow.defining(cls, name))
        for cls in classes
        if isinstance(cls, Class)
        for name in names
    )


def _is_module(facts: Facts, node: ast.expr) -> bool:
    """Whether this is a module of the program, or `globals()`."""
    is_globals = isinstance(node, ast.Call) and "builtins.globals" in facts.externals(
        node.func
    )
    return is_globals or any(isinstance(item, Module) for item in facts.objects(node))


def _may_keep(name: str) -> bool:
    """Whether something of this full name may have what it is given, and give it back."""
    return effect_of(name) in ("contents", "unknown") and not is_number(name)


# What comes from there


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
    roots = facts.flow.sources.roots(facts.flow.places[node.value])
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
