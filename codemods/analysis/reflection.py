"""Legacy objects and modules that are reached by a name in a string, or by a pattern."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from codemods.analysis.legacy import DEFINITIONS, Unnamed, legacy_name
from codemods.analysis.members import Members
from codemods.analysis.naming import last_word
from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES, Use
from codemods.dataflow.program import functions_in
from codemods.inference.binding import values_of
from codemods.inference.objects import (
    Container,
    External,
    Getter,
    LegacyObject,
    Object,
    Place,
    Result,
    plain,
)
from codemods.sources.modules import Unit
from codemods.vocabulary import FILL, PACKAGE, READ_PLAIN, STORE, full_names, words

BY_NAME = full_names("builtins", "getattr hasattr setattr delattr")
RENAMED = "target"
"""The attribute of an optimizer that has another name now, and is the same: `params`."""

PATCHING = ("setattr", "delattr", "object", "patch")
"""The names of functions that assign an attribute: of Python, `unittest.mock` and pytest."""

PATH = re.compile(rf"{re.escape(PACKAGE)}(?:[.:]\w*)*")
"""A path within the legacy module as a text."""

SILENCING = ("logging.", "warnings.")
"""The modules whose functions compare the names of modules, and look nothing up by them."""

WHOLE = frozenset(("builtins.vars", "dataclasses.replace"))
IMPORTING = frozenset(
    ("importlib.import_module", "builtins.__import__", "importlib.util.find_spec")
)
MAKING = full_names("operator", "attrgetter methodcaller")
ALL = frozenset[str]().union(*ATTRIBUTES.values())
ADDED = {
    kind: frozenset(words(names))
    for kind, names in {
        "optimizer": "step params tx opt_state apply_fn apply_gradients",
        "definition": "init update count index _fields __len__ __iter__ __getitem__",
        "traversal": "__call__ __name__",
    }.items()
}
"""Attributes that legacy objects did not have, but their replacements have."""


def reflections(facts: Queries, unit: Unit, node: ast.AST) -> list[Use]:
    """The uses that a call, a subscript or an attribute is."""
    uses = _stored(facts, unit, node) if isinstance(node, ast.Call) else []
    found = _patch(facts, unit, node) or _reflection(facts, unit, node)
    return uses if found is None else [*uses, found]


def paths_in_texts(facts: Queries, unit: Unit, uses: Iterable[Use]) -> Iterator[Use]:
    """The texts that are the path of something legacy, by which a function may look it up.

    What is used by such a text in a way that is known, as `uses` has it, is none of them.
    """
    # mock.patch("flax.optim.Adam")
    known: set[ast.AST] = set()
    for use in uses:
        known.update((use.node, *ast.iter_child_nodes(use.node)))
    for node in unit.nodes:
        match node:
            case ast.Constant(value=str(text)) if (
                PATH.fullmatch(text)
                and node not in known
                and not _is_only_said(facts, unit, node)
            ):
                yield Use("in_text", text, unit, node, ())
            # eval("optim." + name)
            case ast.Call(func=ast.Name(id="eval" | "exec"), args=[code, *_]):
                yield from _named_in_code(facts, unit, code)


def _named_in_code(facts: Queries, unit: Unit, code: ast.expr) -> Iterator[Use]:
    """The texts in what is run as code that name something legacy of a file."""
    imported = facts.imported(unit)
    names = {one.name for one in imported if legacy_name(one.target) is not None}
    for node in ast.walk(code):
        match node:
            case ast.Constant(value=str(text)):
                words = re.split(r"\W+", text)
                if PACKAGE in text or not names.isdisjoint(words):
                    yield Use("in_text", text.strip(), unit, node, ())


def _is_only_said(facts: Queries, unit: Unit, node: ast.Constant) -> bool:
    """Whether a text is a docstring, or names what is to be silent: nothing is looked up."""
    parent = unit.parents[node]
    # warnings.filterwarnings("ignore", module="flax.optim")
    if isinstance(parent, ast.keyword):
        parent = unit.parents[parent]
    if not isinstance(parent, ast.Call):
        return isinstance(parent, ast.Expr)
    return facts.full_name(parent.func).startswith(SILENCING)


def _patch(facts: Queries, unit: Unit, node: ast.AST) -> Use | None:
    """An attribute of a legacy class or module that is assigned or deleted.

    That is a use of everything that the class or module makes.
    """
    if not isinstance(node, ast.Attribute | ast.Call):
        return None
    names = filter(None, map(legacy_name, _patched(facts, node)))
    # optim.Adam.apply_gradient is a part of `Adam`.
    patched = {str(name).partition(".")[0] for name in names}
    if not patched:
        return None
    # If it is not a class, it may concern the definitions of all classes.
    are_classes = patched <= {*DEFINITIONS}
    classes = {*patched, Unnamed.CUSTOM, Unnamed.RUN_TIME}
    program = facts.together(unit)
    objects = tuple(
        obj
        for obj in facts.made
        if obj.unit.path in program
        if not are_classes or obj.kind != "definition" or obj.made_by in classes
    )
    return Use("patched", ", ".join(sorted(patched)), unit, node, objects)


def _patched(facts: Queries, node: ast.AST) -> list[str]:
    """The full names of what a node assigns an attribute of, or deletes."""
    match node:
        # optim.Adam = MyAdam
        case ast.Attribute(value=owner, attr=attribute, ctx=ast.Store() | ast.Del()):
            owners = facts.externals(owner)
            return [*owners, *(f"{name}.{attribute}" for name in owners)]
        # mock.patch.object(optim, "Adam", MyAdam), mock.patch("flax.optim.Adam", MyAdam)
        case ast.Call(func=function, args=[first, *others]) if (
            last_word(function) in PATCHING
        ):
            match first, others:
                case _, [ast.Constant(value=str()), *_]:
                    return facts.externals(first)
                case ast.Constant(value=str(text)), _:
                    return [text]
    return []


def _stored(facts: Queries, unit: Unit, call: ast.Call) -> list[Use]:
    """The optimizers that a call stores; the call itself, if it restores one."""
    called = set(facts.externals(call.func))
    if not called & (STORE | FILL):
        return []
    uses: list[Use] = []
    for argument in values_of(call):
        text = ast.unparse(argument)
        direct = tuple(facts.legacy_objects(argument, "optimizer"))
        # one by one those that a container holds
        within = facts.within(facts.flow.places.read(argument))
        held = [(obj,) for obj in within if obj.kind == "optimizer"]
        uses += (
            Use("stored", text, unit, argument, objects)
            for objects in ([direct] if direct else held)
        )
    # optimizer = checkpoints.restore_checkpoint(folder, optimizer)
    if uses and called & FILL:
        text = ast.unparse(call.func)
        uses.append(Use("restored", text, unit, call, uses[0].objects))
    return uses


def looks_up_module(facts: Queries, node: ast.expr, module: str = PACKAGE) -> bool:
    """Whether this is `vars(flax)["optim"]` or `flax.__dict__["optim"]`."""
    package, _, word = module.rpartition(".")
    match node:
        case ast.Subscript(
            value=ast.Call(args=[owner]) | ast.Attribute(value=owner, attr="__dict__"),
            slice=ast.Constant(value=key),
        ):
            return key == word and package in facts.externals(owner)
    return False


def _reflection(facts: Queries, unit: Unit, node: ast.AST) -> Use | None:
    match node:
        # restored.get("target"), restored.pop("state", {})
        case ast.Call(
            func=ast.Attribute(value=value, attr="get" | "pop"),
            args=[ast.Constant(value="target" | "state" as key), *_],
        ) if is_restored(facts, value):
            # as below, "state" may be a key of anything
            outer = unit.parents.get(unit.parents[node])
            match key, outer:
                case ("target", _) | (
                    _,
                    ast.Call(args=[ast.Constant(value="step" | "param_states"), *_]),
                ):
                    return Use("checkpoint", key, unit, node, ())
        # getattr(optimizer, "target")
        case ast.Call(args=[first, *_]):
            found = _call(facts, unit, node, first)
            return found or _getter_use(facts, unit, node)
        case ast.Subscript() if looks_up_module(facts, node):
            return Use("module", "", unit, node, _definitions_of(facts, unit))
        # state_dict["target"]
        case ast.Subscript(
            value=value, slice=ast.Constant(value="target" | "state" as key)
        ):
            # "state" may be a key of anything: restored["state"]["step"] tells.
            match key, unit.parents.get(node):
                case ("target", _) | (
                    _,
                    ast.Subscript(slice=ast.Constant(value="step" | "param_states")),
                ) if is_restored(facts, value):
                    return Use("checkpoint", key, unit, node, ())
            objects = facts.legacy_objects(value, "optimizer", "state_dict")
            # {"target": labels}, which comes from the same queue: either may be here
            is_other = any(_has_key(facts, item, key) for item in facts.objects(value))
            if objects and is_other:
                is_read = isinstance(node.ctx, ast.Load)
                known = tuple(objects) if is_read else ()
                return Use("checkpoint", key, unit, node, known)
            if objects:
                return Use("state_dict", key, unit, node, tuple(objects))
        # optimizer.__dict__
        case ast.Attribute(value=value, attr="__dict__" | "__class__" as name):
            objects = facts.legacy_objects(value, "optimizer", "state")
            if objects:
                return Use("reflection", name, unit, node, tuple(objects))
        # "target" in checkpoint
        case ast.Compare(
            left=ast.Constant(value="target"),
            ops=[ast.In() | ast.NotIn()],
            comparators=[value],
        ):
            # checkpoint["target"] if "target" in checkpoint else checkpoint["params"]
            chooses = isinstance(unit.parents.get(node), ast.IfExp)
            if is_restored(facts, value) and not chooses:
                return Use("checkpoint", "target", unit, node, ())
    return None


def _has_key(facts: Queries, item: Object, key: str) -> bool:
    """Whether something is a dict of the program that has a key."""
    if not isinstance(item, Container):
        return False
    said = item.node.keys if isinstance(item.node, ast.Dict) else ()
    in_view = {one.value for one in said if isinstance(one, ast.Constant)}
    return key in in_view.union(facts.flow.keys_of(item))


def is_restored(facts: Queries, node: ast.expr) -> bool:
    """Whether an expression may hold a checkpoint that was read as plain dicts, or a part of it."""
    # restored.get("optimizer", {})
    while isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get":
        node = node.func.value  # type: ignore[attr-defined]
    # flax.training.checkpoints.restore_checkpoint(folder, target=None)
    results = (item for item in facts.objects(node) if isinstance(item, Result))
    return any(result.name in READ_PLAIN for result in results)


def _call(facts: Queries, unit: Unit, node: ast.Call, first: ast.expr) -> Use | None:
    called = set(facts.externals(node.func))
    objects: list[LegacyObject] = []
    others: list[Object] = []
    name = _literal(node.args[1]) if len(node.args) > 1 else None
    is_module = False
    # getattr(flax, "optim"), getattr(optimizer, "target")
    if len(node.args) > 1 and called & BY_NAME:
        is_module = name == "optim" and "flax" in facts.externals(first)
        objects = [
            obj
            for obj in facts.legacy_objects(first)
            if name in (None, *ATTRIBUTES[obj.kind], *ADDED.get(obj.kind, ()))
            # a definition that keeps these has them under the same names
            if obj.kind != "hyper_params"
        ]
        # x.target if hasattr(x, "target") else x.params
        if name == RENAMED and objects:
            offers, items = Members(facts).offers, facts.objects(first)
            others = [x for x in items if offers(x, name) or offers(x, "params")]
    # vars(optimizer)
    elif called & WHOLE:
        objects = facts.legacy_objects(first, "optimizer", "state")
    # importlib.import_module("flax.optim")
    elif called & IMPORTING:
        names = (_literal(first) or "", *facts.externals(node))
        is_module = any(legacy_name(one) is not None for one in names)
    if is_module:
        return Use("module", "", unit, node, _definitions_of(facts, unit))
    if not objects:
        return None
    return Use("reflection", str(name), unit, node, tuple(objects), tuple(others))


def _definitions_of(facts: Queries, unit: Unit) -> tuple[LegacyObject, ...]:
    """The definitions that may depend on how the module `flax.optim` is imported in a file.

    They are those of the file, and those of modules in variables.
    """
    made = (obj for obj in facts.made if obj.unit is unit and obj.kind == "definition")
    return tuple(dict.fromkeys((*made, *facts.made_by_modules)))


def _literal(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
    return None


# operator.attrgetter and methodcaller


def _getter_use(facts: Queries, unit: Unit, call: ast.Call) -> Use | None:
    """The use that `operator.attrgetter("target")` is, by what the getter is called with.

    Its others are what has no such attribute, or may have none.
    """
    if MAKING.isdisjoint(facts.externals(call.func)):
        return None
    made = (item for item in facts.objects(call) if isinstance(item, Getter))
    paths = [path for getter in made for path in getter.paths]
    if ALL.isdisjoint(chain.from_iterable(paths)):
        return None
    found: dict[tuple[str, Object], None] = {}
    for site, given in _sites(facts, call):
        owners = [
            owner
            for place in given
            for path in paths
            for owner in _owners(facts, path, place)
        ]
        unknown = ("", External(ast.unparse(site)))
        found |= dict.fromkeys(owners or [unknown])
    items = dict.fromkeys(item for _, item in found)
    objects = tuple(item for item in items if isinstance(item, LegacyObject))
    others = tuple(item for item in items if not isinstance(item, LegacyObject))
    name = ", ".join(dict.fromkeys(name for name, _ in found if name))
    return Use("reflection", name, unit, call, objects, others) if objects else None


def _sites(facts: Queries, call: ast.Call) -> Iterator[tuple[ast.Call, list[Place]]]:
    """The calls of a getter, and those that it is handed to, each with what it gets there."""
    for unit, node in facts.flow.stands_at(call):
        # not what holds the getter, or what it gave
        items = map(plain, facts.objects(node))
        if not any(isinstance(item, Getter) and item.call is call for item in items):
            continue
        around = unit.parents.get(node)
        if isinstance(around, ast.keyword):
            around = unit.parents.get(around)
        match around:
            # target_of(optimizer)
            case ast.Call(func=called, args=[first, *_]) if called is node:
                yield around, [("expression", first, None)]
            # map(target_of, optimizers), but not a function of the project
            case ast.Call(func=called) if node in values_of(around):
                if not any(functions_in(facts.objects(called))):
                    others = (one for one in values_of(around) if one is not node)
                    places = (("expression", one, None) for one in others)
                    yield around, [("each of", place) for place in places]


def _owners(
    facts: Queries, path: Iterable[str], place: Place
) -> Iterator[tuple[str, Object]]:
    """The attribute of legacy objects that is read along a path, with each object that is there."""
    for attribute in path:
        items = facts.flow.solver.at(place)
        legacy = (item for item in items if isinstance(item, LegacyObject))
        if any(attribute in ATTRIBUTES.get(item.kind, ()) for item in legacy):
            yield from ((attribute, item) for item in items)
            return
        # attrgetter("agent.optimizer.target")
        place = ("attribute of", place, attribute)
