"""The names under which a file will know optax, jax, `TrainState` and `DynamicScale`, without taking one that is in use."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.flow.scopes import ScopeNode, bound_names

Choice = tuple[str, str, str, str]
"""Full name of what is imported, name that this binds, expression for the wanted thing, import statement."""

CHOICES: dict[str, tuple[Choice, ...]] = {
    "optax": (("optax", "optax", "optax", "import optax"),),
    "jax": (("jax", "jax", "jax", "import jax"),),
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
    imported = {
        (item.target, item.name)
        for item in facts.imported(unit)
        if item.scope.parent is None and unit.parents.get(item.statement) is unit.tree
    }
    leaving = {
        item.name for item in facts.imported(unit) if item.target.endswith("DynamicScale") and ".optim" in item.target
    }
    taken = bound_anywhere(unit) - leaving
    return {key: name for key, choices in CHOICES.items() if (name := _choose(choices, imported, taken)) is not None}


def _choose(choices: Iterable[Choice], imported: set[tuple[str, str]], taken: set[str]) -> Name | None:
    for target, _, expression, _ in choices:
        for found, bound in imported:
            if found == target:
                rest = expression.partition(".")[2]
                return Name(f"{bound}.{rest}" if rest else bound, "")
    for _, bound, expression, statement in choices:
        if bound not in taken:
            return Name(expression, statement)
    return None


def bound_anywhere(unit: Unit) -> set[str]:
    """Every name that any scope of a file binds."""
    return {name for node in ast.walk(unit.tree) if isinstance(node, ScopeNode) for name, _ in bound_names(node)}
