"""The names under which a file has optax, jax, `TrainState` and `DynamicScale`.

None takes a name that is in use.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count

from codemods.analysis.facts import Facts
from codemods.sources.modules import Unit

Choice = tuple[str, str, str]
"""A full name to import, the name that this binds, and the wanted attribute of it.

The attribute has its dot; it is empty if what is imported is wanted itself.
"""

MOVED = ("DynamicScale", "DynamicScaleResult", "ModelParamTraversal")
"""Classes of `flax.optim` that exist in other modules today, so that their names become free."""

TABLE = """
    optax: optax as optax
    jax: jax as jax
    jnp: jax.numpy as jnp, jax as jax .numpy
    flax: flax as flax
    partial: functools as functools .partial, functools.partial as partial
    member: enum as enum .member, enum.member as member
    jax_utils: flax.jax_utils as jax_utils, flax.jax_utils as flax_jax_utils
    serialization: flax.serialization as serialization, flax.serialization as flax_serialization
    TrainState: flax.training.train_state as train_state .TrainState
    TrainState: flax.training.train_state.TrainState as TrainState
    TrainState: flax.training.train_state as flax_train_state .TrainState
    ModelParamTraversal: flax.traverse_util.ModelParamTraversal as ModelParamTraversal
    ModelParamTraversal: flax.traverse_util as traverse_util .ModelParamTraversal
    Callable: collections.abc.Callable as Callable, typing.Callable as Callable
    Callable: typing as typing .Callable
    DynamicScale: flax.training.dynamic_scale.DynamicScale as DynamicScale
    DynamicScale: flax.training.dynamic_scale as dynamic_scale_lib .DynamicScale
    DynamicScaleResult: flax.training.dynamic_scale.DynamicScaleResult as DynamicScaleResult
    DynamicScaleResult: flax.training.dynamic_scale as dynamic_scale_lib .DynamicScaleResult
"""


def _choices() -> dict[str, list[Choice]]:
    found: dict[str, list[Choice]] = {}
    for line in TABLE.strip().splitlines():
        key, _, choices = line.partition(":")
        for choice in choices.split(","):
            target, _, name, *attributes = choice.split()
            one = target, name, "".join(attributes)
            found.setdefault(key.strip(), []).append(one)
    return found


CHOICES = _choices()
"""By what new code needs, the imports that give it, the preferred one first."""


@dataclass(frozen=True)
class Name:
    """An expression of new code, and the import statement that it needs.

    The statement is empty when the file has it.
    """

    expression: str
    statement: str


def names_for(unit: Unit, facts: Facts) -> dict[str, Name]:
    """The names for each key of `CHOICES`; a key is missing when every choice is taken."""
    found: dict[str, Name] = {}
    imports = facts.imported(unit)
    at_top = {
        (one.target, one.target if is_dotted else one.name)
        for one in imports
        if one.scope.parent is None and unit.parents.get(one.statement) is unit.tree
        for is_dotted in [
            isinstance(one.statement, ast.Import) and not one.alias.asname
        ]
    }
    bound = Counter(unit.names_bound)
    for one in imports:
        if one.target.startswith("flax.optim.") and one.target.endswith(MOVED):
            bound[one.name] -= 1
    imported = [(one.target, one.name) for one in imports]
    for key, choices in CHOICES.items():
        name = _choose(choices, at_top, imported, bound)
        if name is not None:
            found[key] = name
    return found


def _choose(
    choices: Iterable[Choice],
    at_top: set[tuple[str, str]],
    imported: list[tuple[str, str]],
    bound: Counter[str],
) -> Name | None:
    for target, name, attribute in choices:
        for found, known_as in at_top:
            # Emitted transformations call optax by its own name.
            if found == target and (target != "optax" or known_as == name):
                return Name(f"{known_as}{attribute}", "")
    for target, name, attribute in choices:
        same = sum(
            found == name and f"{full}.".startswith(f"{target}.")
            for full, found in imported
        )
        if bound[name] <= same:
            return Name(f"{name}{attribute}", _statement(target, name))
    return None


def _statement(target: str, name: str) -> str:
    """The statement that imports something under a name."""
    if target == "jax.numpy":
        return f"import {target} as {name}"  # as everybody writes it
    package, _, last = target.rpartition(".")
    renamed = "" if last == name else f" as {name}"
    return (
        f"from {package} import {last}{renamed}"
        if package
        else f"import {target}{renamed}"
    )


def free_name(unit: Unit, *choices: str) -> str:
    """The first of some names that a file does not use, or of them with numbers."""
    taken = {node.id for node in unit.nodes if isinstance(node, ast.Name)}
    numbered = (f"{choices[0]}_{number}" for number in count(2))
    return next(name for name in chain(choices, numbered) if name not in taken)
