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

The attribute is empty if what is imported is wanted itself.
"""

MOVED = ("DynamicScale", "DynamicScaleResult", "ModelParamTraversal")
"""Classes of `flax.optim` that exist in other modules today, so that their names become free."""

CHOICES: dict[str, tuple[Choice, ...]] = {
    "optax": (("optax", "optax", ""),),
    "jax": (("jax", "jax", ""),),
    "jnp": (("jax.numpy", "jnp", ""), ("jax", "jax", "numpy")),
    "flax": (("flax", "flax", ""),),
    "partial": (
        ("functools", "functools", "partial"),
        ("functools.partial", "partial", ""),
    ),
    "member": (("enum", "enum", "member"), ("enum.member", "member", "")),
    "jax_utils": (
        ("flax.jax_utils", "jax_utils", ""),
        ("flax.jax_utils", "flax_jax_utils", ""),
    ),
    "serialization": (
        ("flax.serialization", "serialization", ""),
        ("flax.serialization", "flax_serialization", ""),
    ),
    "TrainState": (
        ("flax.training.train_state", "train_state", "TrainState"),
        ("flax.training.train_state.TrainState", "TrainState", ""),
        ("flax.training.train_state", "flax_train_state", "TrainState"),
    ),
    "ModelParamTraversal": (
        ("flax.traverse_util.ModelParamTraversal", "ModelParamTraversal", ""),
        ("flax.traverse_util", "traverse_util", "ModelParamTraversal"),
    ),
    "DynamicScale": (
        ("flax.training.dynamic_scale.DynamicScale", "DynamicScale", ""),
        ("flax.training.dynamic_scale", "dynamic_scale_lib", "DynamicScale"),
    ),
    "DynamicScaleResult": (
        (
            "flax.training.dynamic_scale.DynamicScaleResult",
            "DynamicScaleResult",
            "",
        ),
        ("flax.training.dynamic_scale", "dynamic_scale_lib", "DynamicScaleResult"),
    ),
}


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
    top = [
        one
        for one in imports
        if one.scope.parent is None and unit.parents.get(one.statement) is unit.tree
    ]
    dotted = [
        one
        for one in top
        if isinstance(one.statement, ast.Import) and not one.alias.asname
    ]
    at_top = {(one.target, one.target if one in dotted else one.name) for one in top}
    bound = Counter(unit.names_bound)
    legacy = (one for one in imports if one.target.startswith("flax.optim."))
    bound.subtract(one.name for one in legacy if one.target.endswith(MOVED))
    for key, choices in CHOICES.items():
        name = _choose(
            choices, at_top, [(one.target, one.name) for one in imports], bound
        )
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
                return Name(_joined(known_as, attribute), "")
    for target, name, attribute in choices:
        submodules = f"{target}."
        same = sum(
            found == name and f"{full}.".startswith(submodules)
            for full, found in imported
        )
        if bound[name] <= same:
            return Name(_joined(name, attribute), _statement(target, name))
    return None


def _joined(name: str, attribute: str) -> str:
    return f"{name}.{attribute}" if attribute else name


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
