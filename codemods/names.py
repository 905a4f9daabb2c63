"""The names under which a file will know optax, jax, `TrainState` and `DynamicScale`, without taking one that is in use."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.flow.scopes import ScopeNode, bound_names

Choice = tuple[str, str, str, str]
"""Full name of what is imported, name that this binds, expression for the wanted thing, import statement."""

MOVED = ("DynamicScale", "ModelParamTraversal")
"""Classes of `flax.optim` that live on elsewhere, so that their names become free."""

CHOICES: dict[str, tuple[Choice, ...]] = {
    "optax": (("optax", "optax", "optax", "import optax"),),
    "jax": (("jax", "jax", "jax", "import jax"),),
    "flax": (("flax", "flax", "flax", "import flax"),),
    "partial": (
        ("functools", "functools", "functools.partial", "import functools"),
        ("functools.partial", "partial", "partial", "from functools import partial"),
    ),
    "jax_utils": (
        ("flax.jax_utils", "jax_utils", "jax_utils", "from flax import jax_utils"),
        ("flax.jax_utils", "flax_jax_utils", "flax_jax_utils", "from flax import jax_utils as flax_jax_utils"),
    ),
    "serialization": (
        ("flax.serialization", "serialization", "serialization", "from flax import serialization"),
        (
            "flax.serialization",
            "flax_serialization",
            "flax_serialization",
            "from flax import serialization as flax_serialization",
        ),
    ),
    "TrainState": (
        (
            "flax.training.train_state",
            "train_state",
            "train_state.TrainState",
            "from flax.training import train_state",
        ),
        (
            "flax.training.train_state.TrainState",
            "TrainState",
            "TrainState",
            "from flax.training.train_state import TrainState",
        ),
        (
            "flax.training.train_state",
            "flax_train_state",
            "flax_train_state.TrainState",
            "from flax.training import train_state as flax_train_state",
        ),
    ),
    "ModelParamTraversal": (
        (
            "flax.traverse_util.ModelParamTraversal",
            "ModelParamTraversal",
            "ModelParamTraversal",
            "from flax.traverse_util import ModelParamTraversal",
        ),
        (
            "flax.traverse_util",
            "traverse_util",
            "traverse_util.ModelParamTraversal",
            "from flax import traverse_util",
        ),
    ),
    "DynamicScale": (
        (
            "flax.training.dynamic_scale.DynamicScale",
            "DynamicScale",
            "DynamicScale",
            "from flax.training.dynamic_scale import DynamicScale",
        ),
        (
            "flax.training.dynamic_scale",
            "dynamic_scale_lib",
            "dynamic_scale_lib.DynamicScale",
            "from flax.training import dynamic_scale as dynamic_scale_lib",
        ),
    ),
}


@dataclass(frozen=True)
class Name:
    """How new code says something: the expression, and the import statement it needs (empty when the file has it)."""

    expression: str
    statement: str


def names_for(unit: Unit, facts: Facts) -> dict[str, Name]:
    """The names for each key of `CHOICES`; a key is missing when every choice is taken by something else."""
    found: dict[str, Name] = {}
    imports = facts.imported(unit)
    at_top = {
        (item.target, item.name if item.alias.asname or not isinstance(item.statement, ast.Import) else item.target)
        for item in imports
        if item.scope.parent is None and unit.parents.get(item.statement) is unit.tree
    }
    bound = Counter(name for node in unit.nodes if isinstance(node, ScopeNode) for name, _ in bound_names(node))
    bound.subtract(
        item.name for item in imports if item.target.startswith("flax.optim.") and item.target.endswith(MOVED)
    )
    for key, choices in CHOICES.items():
        name = _choose(choices, at_top, [(item.target, item.name) for item in imports], bound)
        if name is not None:
            found[key] = name
    return found


def _choose(
    choices: Iterable[Choice], at_top: set[tuple[str, str]], imported: list[tuple[str, str]], bound: Counter[str]
) -> Name | None:
    for target, name, expression, _ in choices:
        for found, known_as in at_top:
            # Emitted transformations say optax by its own name.
            if found == target and (target != "optax" or known_as == name):
                rest = expression.partition(".")[2]
                return Name(f"{known_as}.{rest}" if rest else known_as, "")
    for target, name, expression, statement in choices:
        submodules = f"{target}."
        same = sum(found == name and f"{full}.".startswith(submodules) for full, found in imported)
        if bound[name] <= same:
            return Name(expression, statement)
    return None


def bound_anywhere(unit: Unit) -> set[str]:
    """Every name that any scope of a file binds."""
    return {name for node in unit.nodes if isinstance(node, ScopeNode) for name, _ in bound_names(node)}
