"""What `flax.optim` was, as data for the points-to analysis.

These are its names, the objects that they create, and the attributes and methods of those.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from itertools import islice

from codemods.flow.binding import values_of
from codemods.flow.calls import Behaviour, Calls, Library
from codemods.flow.library import BEHAVIOURS, named_attribute
from codemods.flow.objects import (
    Class,
    Container,
    Derivative,
    External,
    LegacyObject,
    Object,
    Place,
    Result,
)
from codemods.flow.out_of_view import effect_of
from codemods.flow.sites import CallSite, Effect
from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from codemods.vocabulary import (
    AS_DICT,
    PACKAGE,
    READ_PLAIN,
    RESTORE,
    TO_STATE_DICT,
    words,
)

DEFINITIONS = tuple(optimizers())
OTHER_NAMES = (
    "DynamicScale",
    "DynamicScaleResult",
    "ModelParamTraversal",
    "Optimizer",
    "OptimizerDef",
    "OptimizerState",
)
NAMES = frozenset((*DEFINITIONS, *OTHER_NAMES))
SUBPACKAGE = tuple(
    sorted(
        {
            "base",
            "dynamic_scale",
            *(optimizer.module for optimizer in optimizers().values()),
        }
    )
)
"""The modules of `flax.optim`."""

MODULES = (
    "core",
    "jax_utils",
    "linen",
    "optim",
    "serialization",
    "struct",
    "training",
    "traverse_util",
)
MULTI_OPTIMIZER = f"{PACKAGE}.MultiOptimizer"
PARTS = (("optimizer", "state"), ("state", "step"), ("definition", "hyper_params"))
"""The attributes that are legacy objects themselves, by the kind of their owner."""

OUTSIDE = words(
    "flax jax jaxlib optax numpy functools copy builtins dataclasses typing contextlib collections "
    "types itertools random importlib imp runpy sys operator argparse ml_collections chex"
)
OTHER_SUBMODULES = words(
    "numpy random nn linalg optimizers example_libraries linen deprecated module struct optim "
    "train_state dynamic_scale traverse_util"
)
SUBMODULES = frozenset(
    (
        *(word for name in BEHAVIOURS for word in name.split(".")[1:-1]),
        *OTHER_SUBMODULES,
    )
)
"""The words that may be between a package and a name of interest."""

QUOTED = re.compile(r"""["'](\w+)["']""")

FOREIGN = ("torch.", "tensorflow.", "keras.", "t5x.", "haiku.", "optax.")
"""Packages with optimizers of their own."""


class Unnamed(Enum):
    """What has no name within `flax.optim`, but is named or makes an object as a class does.

    The text of a member is what messages say.
    """

    MODULE = ""
    """The package itself, or a module of it."""

    RUN_TIME = "?"
    """The class in `getattr(flax.optim, name)`."""

    CUSTOM = "custom"
    """A class of the program that derives from a legacy one."""

    UNSEEN = "unseen"
    """What a package out of view has or makes, and is used as a definition."""

    DEFINITION = "definition"
    """A definition, by its `init_state`: it makes a state without an optimizer."""

    def __str__(self) -> str:
        return str(self.value)


LegacyName = str | Unnamed
"""A name within `flax.optim`, whether it exists or not: `Adam`, `Optimizer.apply_gradient`."""

CLASS_AT_RUN_TIME = External(f"{PACKAGE}.{Unnamed.RUN_TIME}")
"""Stands for the class in `getattr(flax.optim, name)`: no program can write its name."""


def legacy_name(name: str) -> LegacyName | None:
    """The name within `flax.optim` for a full name: `Adam` for `flax.optim.adam.Adam`.

    It is None for a name of anything else.
    """
    if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
        return None
    if name == CLASS_AT_RUN_TIME.name:
        return Unnamed.RUN_TIME
    steps = name.split(".")[2:]
    own = steps[1:] if steps and steps[0] in SUBPACKAGE else steps
    return ".".join(own) if own else Unnamed.MODULE


def legacy_optimizer(definition: LegacyObject) -> LegacyOptimizer | None:
    """What is known of the class of a definition; None if that is none of `flax.optim`."""
    name = definition.made_by
    return optimizers().get(name) if isinstance(name, str) else None


def is_unknown_class(name: str) -> bool:
    """Whether a name within `flax.optim` looks like a class, and is not a known one."""
    return name[:1].isupper() and _looks_like_class(name) and name not in NAMES


def _looks_like_class(name: str) -> bool:
    return name.isidentifier() and name.lstrip("_")[:1].isupper()


def named_classes(code: str) -> set[str]:
    """The legacy classes whose names a file has in quotes."""
    return {word for word in QUOTED.findall(code) if word in DEFINITIONS}


def traversal_name(name: str) -> bool:
    """Whether this is `ModelParamTraversal`, under either of the names it had."""
    packages = ("flax.optim.", "flax.traverse_util.")
    return name.endswith(".ModelParamTraversal") and name.startswith(packages)


class FlaxOptim(Library):
    """The objects of `flax.optim` and how one is made of another.

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
        self._searched: set[tuple[LegacyObject, Place]] = set()
        """The definitions, each with the places where its parts are looked for."""

    def owns(self, module: str) -> bool:
        return module.partition(".")[0] in OUTSIDE

    def follows(self, name: str) -> bool:
        legacy = legacy_name(name)
        if isinstance(legacy, str):
            owner = legacy.rpartition(".")[0]
            # Adam.apply_gradient, Unknown.create; of nothing else an attribute is of interest
            return not owner or _looks_like_class(owner)
        root, *way = name.split(".")[:-1] or [name]
        if root in OUTSIDE:
            is_legacy = name.rpartition(".")[2] in NAMES
            return (is_legacy and len(way) <= 3) or SUBMODULES.issuperset(way)
        return name.startswith(FOREIGN) and len(way) <= 2

    def members(self, module: str) -> tuple[str, ...]:
        if legacy_name(module) is Unnamed.MODULE:
            return (*DEFINITIONS, *OTHER_NAMES)
        return MODULES if module == "flax" else ()

    def function(self, name: str) -> Behaviour | None:
        # instances of a class derived from `flax.optim.OptimizerDef` have a name with `()`
        is_custom = name.endswith("()")
        legacy = legacy_name(name.removesuffix("()"))
        if traversal_name(name):
            return self._make("traversal", "ModelParamTraversal")
        if isinstance(legacy, str) and _is_record(legacy):
            return lambda flow, site: flow.solver.add(
                site.result, Result(f"{PACKAGE}.{legacy}")
            )
        if legacy is not None and (
            _makes_definition(legacy) or name.endswith("OptimizerDef()")
        ):
            return self._make("definition", Unnamed.CUSTOM if is_custom else legacy)
        if name == "builtins.getattr":
            return _run_time_class
        if name in READ_PLAIN:
            return _restore
        if name in TO_STATE_DICT | AS_DICT:
            return self._make_dict
        return BEHAVIOURS.get(name)

    def effect(self, name: str) -> Effect:
        return effect_of(name)

    def method(self, owner: Object, name: str) -> Behaviour | None:
        # DynamicScale().value_and_grad(loss_fn)
        if isinstance(owner, Result):
            is_scale = owner.name.endswith(".DynamicScale") and name == "value_and_grad"
            return _scaled_derivative if is_scale else None
        if not isinstance(owner, LegacyObject):
            return None
        if name == "unflatten":  # a tree definition stands for the tree
            return lambda flow, site: flow.solver.add(site.result, owner)
        match owner.kind, name:
            # what only may be a definition creates nothing that others belong to
            case "definition", "create" if owner.evidence == "likely":
                return None
            case "definition", "create":
                return lambda flow, site: self._create(flow, owner, site)
            case "definition", "init_state":
                return lambda flow, site: self._init_state(flow, owner, site)
            case "definition", "apply_gradient":
                return lambda flow, site: self._step_without_optimizer(
                    flow, owner, site
                )
            case "state", "replace":
                return lambda flow, site: flow.solver.add(site.result, owner)
            case (
                "optimizer",
                "apply_gradient" | "restore_state" | "replicate" | "unreplicate",
            ):
                return lambda flow, site: flow.solver.add(site.result, owner)
            case "optimizer", "state_dict":
                return lambda flow, site: flow.solver.add(
                    site.result, self._dict_of(owner)
                )
            case "optimizer", "replace":
                return lambda flow, site: self._replace(flow, owner, site)
            case "optimizer", "compute_gradient" | "compute_gradients" | "optimize":
                return lambda flow, site: _evaluate(flow, owner, site, name)
        return None

    def attribute(
        self, flow: Calls, obj: LegacyObject, name: str, result: Place
    ) -> None:
        # optimizer.target is the params, optimizer.optimizer_def a definition
        if obj.kind == "optimizer" and name == "target":
            flow.solver.connect(("target", obj), result)
        elif obj.kind == "optimizer" and name == "optimizer_def":
            for definition in self.definitions(obj):
                flow.solver.add(result, definition)
        elif (obj.kind, name) in PARTS:
            flow.solver.add(result, self._part(obj, name))
        # an optimizer in `dataclasses.asdict(state)` may still be read as one
        elif obj.kind == "state_dict":
            self.attribute(flow, replace(obj, kind="optimizer"), name, result)

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

    def _make(self, kind: str, made_by: LegacyName) -> Behaviour:
        def behaviour(flow: Calls, site: CallSite) -> None:
            made = LegacyObject(kind, site.unit, site.node, made_by)
            flow.solver.add(site.result, made)
            for place in (*site.positional, *site.keywords.values()):
                self._contain(flow, made, place)
            if made_by is Unnamed.CUSTOM and isinstance(site.node, ast.Call):
                self._construct(flow, made, site.node)

        return behaviour

    def _construct(self, flow: Calls, made: LegacyObject, call: ast.Call) -> None:
        """Follow what a definition of the user's class gives to the bases of that class."""
        # a place of its own: the class may be among the arguments, too
        if self._is_new(made, ("constructed", call)):
            callee = flow.places[call.func]
            flow.solver.watch(
                callee, lambda item: self._construct_base(flow, made, item)
            )

    def _construct_base(self, flow: Calls, outer: LegacyObject, item: Object) -> None:
        """Make the arguments of `super().__init__(…)` parts of a definition of the user's class."""
        if isinstance(item, Class):
            flow.by_ancestry(item, lambda: self._take_from_bases(flow, outer, item))

    def _take_from_bases(self, flow: Calls, outer: LegacyObject, cls: Class) -> None:
        for base in flow.ancestry(cls):
            if not isinstance(base, Class) or not self._is_new(outer, ("self", base)):
                continue
            for call in ast.walk(base.node):
                if isinstance(call, ast.Call) and _is_constructor(call.func):
                    for argument in values_of(call):
                        self._contain(flow, outer, flow.places[_unstarred(argument)])

    def _is_new(self, definition: LegacyObject, place: Place) -> bool:
        """Whether this is asked for the first time: a call may be met by each class of a table."""
        count = len(self._searched)
        self._searched.add((definition, place))
        return len(self._searched) > count

    def _contain(self, flow: Calls, outer: LegacyObject, place: Place) -> None:
        """Link a definition with those that get to a place, or into containers there."""

        def arrive(item: Object) -> None:
            if isinstance(item, LegacyObject) and item.kind in (
                "definition",
                "traversal",
            ):
                if item != outer:
                    self.links[outer, item] = None
            elif isinstance(item, Container):
                self._contain(flow, outer, ("elements", item))

        if outer.kind == "definition" and self._is_new(outer, place):
            flow.solver.watch(place, arrive)

    def _init_state(
        self, flow: Calls, definition: LegacyObject, site: CallSite
    ) -> None:
        state = LegacyObject(
            "state", site.unit, site.node, Unnamed.DEFINITION, definition.evidence
        )
        self.links[state, definition] = None
        flow.solver.add(site.result, state)

    def _create(self, flow: Calls, definition: LegacyObject, site: CallSite) -> None:
        optimizer = LegacyObject(
            "optimizer", site.unit, site.node, None, definition.evidence
        )
        self.links[optimizer, definition] = None
        # definition.create(params, focus=traversal)
        target, focus = site.argument(0, "target"), site.argument(1, "focus")
        if target is not None:
            flow.solver.connect(target, ("target", optimizer))
        if focus is not None:
            flow.solver.watch(focus, lambda item: self._belongs(optimizer, item))
        flow.solver.add(site.result, optimizer)

    def _step_without_optimizer(
        self, flow: Calls, definition: LegacyObject, site: CallSite
    ) -> None:
        # params, state = definition.apply_gradient(hyper_params, params, state, grads)
        outcome = Container(site.node, "step")
        flow.solver.add(site.result, outcome)
        for index, place in enumerate(
            (site.argument(1, "params"), site.argument(2, "state"))
        ):
            if place is not None:
                flow.store_element(outcome, index, place)
                flow.solver.watch(place, lambda item: self._belongs(definition, item))

    def _replace(self, flow: Calls, optimizer: LegacyObject, site: CallSite) -> None:
        # optimizer.replace(target=params, optimizer_def=definition)
        target, definition = (
            site.keywords.get("target"),
            site.keywords.get("optimizer_def"),
        )
        if target is not None:
            flow.solver.connect(target, ("target", optimizer))
        if definition is not None:
            flow.solver.watch(definition, lambda item: self._belongs(optimizer, item))
        flow.solver.add(site.result, optimizer)

    def _belongs(self, optimizer: LegacyObject, item: Object) -> None:
        if isinstance(item, LegacyObject):
            self.links[optimizer, item] = None

    def _make_dict(self, flow: Calls, site: CallSite) -> None:
        for place in site.positional[:1]:
            flow.solver.watch(
                place, lambda item: flow.solver.add(site.result, self._dict_of(item))
            )

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


def _makes_definition(legacy: LegacyName) -> bool:
    """Whether a call of what has this name makes a definition."""
    if isinstance(legacy, Unnamed):
        return legacy is Unnamed.RUN_TIME
    return legacy in DEFINITIONS or is_unknown_class(legacy)


def _is_record(legacy: str) -> bool:
    """Whether a legacy name is one of a class whose instances are no legacy objects."""
    records = ("DynamicScale", "DynamicScaleResult", "OptimizerState")
    return legacy in records or legacy.endswith("ParamState")


def _unstarred(argument: ast.expr) -> ast.expr:
    return argument.value if isinstance(argument, ast.Starred) else argument


def _is_constructor(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == "__init__"


def _run_time_class(flow: Calls, site: CallSite) -> None:
    named_attribute(flow, site)
    node = site.node
    # getattr(optim, "Adam") is no choice at run time
    if len(site.positional) < 2 or not isinstance(node, ast.Call):
        return
    if isinstance(site.positional[1], ast.Constant):
        return

    def arrive(item: Object) -> None:
        if isinstance(item, External) and legacy_name(item.name) is Unnamed.MODULE:
            flow.solver.add(site.result, CLASS_AT_RUN_TIME)

    flow.solver.watch(site.positional[0], arrive)


def _restore(flow: Calls, site: CallSite) -> None:
    """Return something like the target that is given, or a dict of dicts if there is none."""
    target = site.argument(1, "target")
    if target is not None:
        flow.solver.connect(target, site.result)
    flow.solver.add(site.result, Result(next(iter(RESTORE))))


def _evaluate(flow: Calls, optimizer: LegacyObject, site: CallSite, name: str) -> None:
    outcome = Container(site.node, name)
    flow.solver.add(site.result, outcome)
    # optimizer, loss = optimizer.optimize(loss_fn)
    if name == "optimize":
        flow.solver.add(("stepped", site.node), optimizer)
        flow.store_element(outcome, 0, ("stepped", site.node))
    # def loss_fn(params): what is passed is the target
    function = site.argument(0, "loss_fn")
    if function is not None:
        loss = ("loss", site.node)
        flow.call(
            function, CallSite(site.unit, site.node, (("target", optimizer),), {}, loss)
        )


def _scaled_derivative(flow: Calls, site: CallSite) -> None:
    function = site.argument(0, "fun")
    if function is not None:
        layout = ("dynamic_scale", "finite", "value", "gradient")
        flow.solver.watch(
            function,
            lambda item: flow.solver.add(site.result, Derivative(item, layout)),
        )
