"""The names of `flax.optim`."""

from __future__ import annotations

import re
from enum import Enum

from codemods.inference.library import BEHAVIOURS
from codemods.inference.objects import External, LegacyObject
from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from codemods.vocabulary import PACKAGE, words

DEFINITIONS = tuple(optimizers())
OTHER_NAMES = words(
    "DynamicScale DynamicScaleResult ModelParamTraversal Optimizer OptimizerDef OptimizerState"
)
NAMES = frozenset((*DEFINITIONS, *OTHER_NAMES))
OWN_MODULES = {optimizer.module for optimizer in optimizers().values()}
SUBPACKAGE = tuple(sorted(OWN_MODULES | {"base", "dynamic_scale"}))
"""The modules of `flax.optim`."""

MODULES = words(
    "core jax_utils linen optim serialization struct training traverse_util"
)
MULTI_OPTIMIZER = f"{PACKAGE}.MultiOptimizer"
PARTS = (("optimizer", "state"), ("state", "step"), ("definition", "hyper_params"))
"""The attributes that are legacy objects themselves, by the kind of their owner."""

SUBMODULES = {word for name in BEHAVIOURS for word in name.split(".")[1:-1]}
SUBMODULES |= {
    *words(
        "numpy random nn linalg optimizers example_libraries linen deprecated module"
    ),
    *words("struct optim train_state dynamic_scale traverse_util pool"),
}
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
    return name[:1].isupper() and looks_like_class(name) and name not in NAMES


def looks_like_class(name: str) -> bool:
    return name.isidentifier() and name.lstrip("_")[:1].isupper()


def named_classes(code: str) -> set[str]:
    """The legacy classes whose names a file has in quotes."""
    return {word for word in QUOTED.findall(code) if word in DEFINITIONS}


def traversal_name(name: str) -> bool:
    """Whether this is `ModelParamTraversal`, under either of the names it had."""
    packages = ("flax.optim.", "flax.traverse_util.")
    return name.endswith(".ModelParamTraversal") and name.startswith(packages)


def makes_definition(legacy: LegacyName) -> bool:
    """Whether a call of what has this name makes a definition."""
    if isinstance(legacy, Unnamed):
        return legacy is Unnamed.RUN_TIME
    return legacy in DEFINITIONS or is_unknown_class(legacy)


def is_record(legacy: str) -> bool:
    """Whether a legacy name is one of a class whose instances are no legacy objects."""
    records = ("DynamicScale", "DynamicScaleResult", "OptimizerState")
    return legacy in records or legacy.endswith("ParamState")
