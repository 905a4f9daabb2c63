"""What `flax.optim` was, as data for inference: how one object is made of another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from codemods.analysis.legacy import (
    CLASS_AT_RUN_TIME,
    DEFINITIONS,
    FOREIGN,
    MODULES,
    NAMES,
    OTHER_NAMES,
    PARTS,
    SUBMODULES,
    LegacyName,
    Unnamed,
    is_record,
    legacy_name,
    looks_like_class,
    makes_definition,
    traversal_name,
)
from codemods.analysis.naming import last_word
from codemods.inference.behaviours import Behaviour, apply, boxed
from codemods.inference.binding import values_of
from codemods.inference.containers import DISPLAYS
from codemods.inference.library import BEHAVIOURS, POOLS, WORKING, Library
from codemods.inference.objects import (
    Arguments,
    Class,
    Container,
    Derivative,
    External,
    LegacyObject,
    Object,
    Place,
    Result,
    plain,
)
from codemods.inference.out_of_view import Effect, effect_of
from codemods.inference.python_functions import named_attribute
from codemods.vocabulary import (
    AS_DICT,
    OUTSIDE,
    PACKAGE,
    READ_PLAIN,
    RESTORE,
    TO_STATE_DICT,
)

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]

SAME_OPTIMIZER = ("apply_gradient", "restore_state", "replicate", "unreplicate")
TELLING = ("target", "optimizer_def")
"""Attributes by which programs tell optimizers from their parameters."""

EVALUATING = ("compute_gradient", "compute_gradients", "optimize")


class FlaxOptim(Library):
    """The objects of `flax.optim`, and the libraries through which they go.

    The kinds of objects are `definition`, `optimizer`, `state`, `state_dict`, `hyper_params` and
    `traversal`. `links` holds pairs of objects that migrate together: an optimizer and its
    definition, a MultiOptimizer and its parts. An optimizer in an object that is made into a dict
    stays an optimizer.
    """

    modules = ("flax", PACKAGE)

    def __init__(self) -> None:
        self.links: dict[tuple[LegacyObject, LegacyObject], None] = {}
        self._inner: dict[LegacyObject, list[LegacyObject]] = defaultdict(list)
        self._indexed = 0

    def owns(self, module: str) -> bool:
        return module.partition(".")[0] in OUTSIDE

    def follows(self, name: str) -> bool:
        legacy = legacy_name(name)
        if isinstance(legacy, str):
            owner = legacy.rpartition(".")[0]
            # Adam.apply_gradient, Unknown.create; of nothing else an attribute is of interest
            return not owner or looks_like_class(owner)
        root, *way = name.split(".")[:-1] or [name]
        if root in OUTSIDE:
            is_legacy = name.rpartition(".")[2] in NAMES
            return (is_legacy and len(way) <= 3) or SUBMODULES.issuperset(way)
        # clu.checkpoint.load_state_dict
        is_reader = name in READ_PLAIN
        return is_reader or (name.startswith(FOREIGN) and len(way) <= 2)

    def members(self, module: str) -> tuple[str, ...]:
        if legacy_name(module) is Unnamed.MODULE:
            return (*DEFINITIONS, *OTHER_NAMES)
        return MODULES if module == "flax" else ()

    def function(self, name: str) -> Behaviour | None:
        # instances of a class derived from `flax.optim.OptimizerDef` have a name with `()`
        is_custom = name.endswith("()")
        legacy = legacy_name(name.removesuffix("()"))
        if traversal_name(name):
            return self._making("traversal", "ModelParamTraversal")
        if legacy == "Optimizer":
            return self._construct
        if isinstance(legacy, str) and is_record(legacy):
            return _giving(Result(f"{PACKAGE}.{legacy}"))
        if legacy is not None and (
            makes_definition(legacy) or name.endswith("OptimizerDef()")
        ):
            return self._making("definition", Unnamed.CUSTOM if is_custom else legacy)
        if name == "builtins.getattr":
            return _run_time_class
        if name in READ_PLAIN:
            return _restore
        if name in TO_STATE_DICT | AS_DICT:
            return self._make_dict
        return BEHAVIOURS.get(name)

    def tells_apart(self, kind: ast.expr) -> bool:
        # of several types, something else may be one of the others
        is_attribute = isinstance(kind, ast.Constant) and kind.value in TELLING
        return is_attribute or last_word(kind) == "Optimizer"

    def passes(
        self, item: Object, kinds: Iterable[Object], attribute: object
    ) -> bool | None:
        # hasattr(x, "target")
        names = {legacy_name(one.name) for one in kinds if isinstance(one, External)}
        if not (attribute in TELLING or names == {"Optimizer"}):
            return None
        if isinstance(item, LegacyObject):
            return item.kind == "optimizer"
        # a namespace may have such an attribute
        box = plain(item)
        is_display = isinstance(box, Container) and isinstance(
            box.node, DISPLAYS | ast.Dict
        )
        return False if is_display else None

    def effect(self, name: str) -> Effect:
        return effect_of(name)

    def method(self, owner: Object, name: str) -> Behaviour | None:
        # DynamicScale().value_and_grad(loss_fn)
        if isinstance(owner, Result):
            if owner.name in POOLS:
                return WORKING.get(name)
            is_scale = owner.name.endswith(".DynamicScale") and name == "value_and_grad"
            return _scaled_derivative if is_scale else None
        if not isinstance(owner, LegacyObject):
            return None
        match owner.kind, name:
            # a tree definition stands for the tree
            case (_, "unflatten") | ("state", "replace"):
                return _giving(owner)
            # what only may be a definition creates nothing that others belong to
            case "definition", "create" if owner.evidence != "likely":
                return lambda engine, given: self._create(engine, owner, given)
            case "definition", "init_state":
                return lambda _, given: self._init_state(owner, given)
            case "definition", "apply_gradient":
                return lambda _, given: self._step_without_optimizer(owner, given)
            case "optimizer", _ if name in SAME_OPTIMIZER:
                return _giving(owner)
            case "optimizer", "state_dict":
                return _giving(self._dict_of(owner))
            case "optimizer", "replace":
                return lambda engine, given: self._replace(engine, owner, given)
            case "optimizer", _ if name in EVALUATING:
                return lambda _, given: _evaluate(owner, given, name)
        return None

    def attribute(self, engine: Inference, obj: LegacyObject, name: str) -> Answer:
        # optimizer.target is the params, optimizer.optimizer_def a definition
        if obj.kind == "optimizer" and name == "target":
            return [*(yield ("target", obj))]
        if obj.kind == "optimizer" and name == "optimizer_def":
            return [*self.definitions(obj)]
        if (obj.kind, name) in PARTS:
            return [self._part(obj, name)]
        # an optimizer in `dataclasses.asdict(state)` may still be read as one
        if obj.kind == "state_dict":
            whole = replace(obj, kind="optimizer")
            return (yield from self.attribute(engine, whole, name))
        return []

    def definitions(self, obj: LegacyObject) -> list[LegacyObject]:
        """The definitions that an object was made of.

        Those within a MultiOptimizer or WeightNorm are among them.
        """
        found: dict[LegacyObject, None] = {}
        pending = [obj]
        while pending:
            for inner in self.parts(pending.pop(0)):
                if inner.kind in ("definition", "optimizer") and inner not in found:
                    found[inner] = None
                    pending.append(inner)
        return [item for item in found if item.kind == "definition"]

    def parts(self, obj: LegacyObject) -> Sequence[LegacyObject]:
        """The objects that an object is linked to as what it is made of."""
        # links are only added, so the index of them grows with those that are new
        for outer, inner in islice(self.links, self._indexed, None):
            self._inner[outer].append(inner)
        self._indexed = len(self.links)
        return self._inner.get(obj, ())

    def _making(self, kind: str, made_by: LegacyName) -> Behaviour:
        def behaviour(engine: Inference, given: Arguments) -> Answer:
            made = LegacyObject(kind, given.unit, given.node, made_by)
            if kind == "definition":
                for place in given.all:
                    yield from self._contain(made, place)
                if made_by is Unnamed.CUSTOM and isinstance(given.node, ast.Call):
                    yield from self._take_from_bases(engine, made, given)
            return [made]

        return behaviour

    def _take_from_bases(
        self, engine: Inference, made: LegacyObject, given: Arguments
    ) -> Answer:
        """Make the arguments of `super().__init__(…)` parts of a definition of the user's class."""
        assert isinstance(given.node, ast.Call)
        for item in (yield ("expression", given.node.func, given.frame)):
            for base in (yield ("ancestry", item)) if isinstance(item, Class) else ():
                for call in ast.walk(base.node) if isinstance(base, Class) else ():
                    match call:
                        case ast.Call(func=ast.Attribute(attr="__init__")):
                            for argument in values_of(call):
                                place = ("expression", argument, None)
                                yield from self._contain(made, place)
        return []

    def _contain(self, outer: LegacyObject, place: Place) -> Answer:
        """Link a definition with those that get to a place, or into containers there."""
        pending = [place]
        seen = {place}
        while pending:
            for item in (yield pending.pop()):
                if isinstance(item, LegacyObject):
                    if item.kind in ("definition", "traversal") and item is not outer:
                        self.links[outer, item] = None
                elif isinstance(plain(item), Container):
                    inner = ("item in", item, None)
                    if inner not in seen:
                        seen.add(inner)
                        pending.append(inner)
        return []

    def _init_state(self, definition: LegacyObject, given: Arguments) -> Answer:
        state = LegacyObject(
            "state", given.unit, given.node, Unnamed.DEFINITION, definition.evidence
        )
        self.links[state, definition] = None
        yield from ()
        return [state]

    def _create(
        self, engine: Inference, definition: LegacyObject, given: Arguments
    ) -> Answer:
        optimizer = LegacyObject(
            "optimizer", given.unit, given.node, None, definition.evidence
        )
        self.links[optimizer, definition] = None
        # definition.create(params, focus=traversal)
        yield from self._take(
            engine, optimizer, given.argument(0, "target"), given.argument(1, "focus")
        )
        return [optimizer]

    def _construct(self, engine: Inference, given: Arguments) -> Answer:
        # optim.Optimizer(definition, state=state, target=params)
        optimizer = LegacyObject("optimizer", given.unit, given.node)
        target, definition = (
            given.argument(2, "target"),
            given.argument(0, "optimizer_def"),
        )
        yield from self._take(engine, optimizer, target, definition)
        return [optimizer]

    def _take(
        self, engine: Inference, optimizer: LegacyObject, target: Place, part: Place
    ) -> Answer:
        """Let an optimizer have a target, and what belongs to it."""
        for item in (yield target) if target is not None else ():
            # no optimizer steps another
            if not (isinstance(item, LegacyObject) and item.kind == "optimizer"):
                engine.solver.add(("target", optimizer), item)
        for item in (yield part) if part is not None else ():
            self._belongs(optimizer, item)
        return []

    def _step_without_optimizer(
        self, definition: LegacyObject, given: Arguments
    ) -> Answer:
        # params, state = definition.apply_gradient(hyper_params, params, state, grads)
        parts: list[tuple[int, Place]] = []
        places = (given.argument(1, "params"), given.argument(2, "state"))
        for index, place in enumerate(places):
            if place is not None:
                parts.append((index, place))
                for item in (yield place):
                    self._belongs(definition, item)
        return [boxed(given, "step", *parts)]

    def _replace(
        self, engine: Inference, optimizer: LegacyObject, given: Arguments
    ) -> Answer:
        # optimizer.replace(target=params, optimizer_def=definition)
        target, definition = given.keyword("target"), given.keyword("optimizer_def")
        yield from self._take(engine, optimizer, target, definition)
        return [optimizer]

    def _belongs(self, optimizer: LegacyObject, item: Object) -> None:
        if isinstance(item, LegacyObject):
            self.links[optimizer, item] = None

    def _make_dict(self, _: Inference, given: Arguments) -> Answer:
        found = (yield given.positional[0]) if given.positional else ()
        return [*map(self._dict_of, found)]

    def _dict_of(self, item: Object) -> Object:
        if not (isinstance(item, LegacyObject) and item.kind == "optimizer"):
            return item
        made = replace(item, kind="state_dict")
        self.links[made, item] = None
        return made

    def _part(self, whole: LegacyObject, kind: str) -> LegacyObject:
        part = LegacyObject(kind, whole.unit, whole.node, whole.made_by, whole.evidence)
        self.links[whole, part] = None
        return part


def _giving(item: Object) -> Behaviour:
    def behaviour(_: Inference, __: Arguments) -> Answer:
        yield from ()
        return [item]

    return behaviour


def _run_time_class(engine: Inference, given: Arguments) -> Answer:
    found = yield from named_attribute(engine, given)
    match given.positional:
        # getattr(optim, "Adam") is no choice at run time
        case [_, ("expression", ast.Constant(), _), *_] | [_] | []:
            return found
    for item in (yield given.positional[0]):
        if isinstance(item, External) and legacy_name(item.name) is Unnamed.MODULE:
            found.append(CLASS_AT_RUN_TIME)
    return found


def _restore(_: Inference, given: Arguments) -> Answer:
    """Something like the target that is given, or a dict of dicts if there is none."""
    target = given.argument(1, "target")
    found: list[Object] = [Result(next(iter(RESTORE)))]
    if target is not None:
        found += yield target
    return found


def _evaluate(optimizer: LegacyObject, given: Arguments, name: str) -> Answer:
    # def loss_fn(params): what is passed is the target
    function = given.argument(0, "loss_fn")
    if function is not None:
        yield apply(function, given, ("target", optimizer))
    # optimizer, loss = optimizer.optimize(loss_fn)
    parts = [(0, ("itself", optimizer))] if name == "optimize" else []
    return [boxed(given, name, *parts)]


def _scaled_derivative(_: Inference, given: Arguments) -> Answer:
    layout = ("dynamic_scale", "finite", "value", "gradient")
    function = given.argument(0, "fun")
    items = () if function is None else (yield function)
    return [Derivative(item, layout) for item in items]
