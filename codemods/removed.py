"""What else JAX, Flax and NumPy have removed since, and what it is called now."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from codemods.flow.modules import Unit
from codemods.uses import Use

if TYPE_CHECKING:
    from codemods.facts import Facts
    from codemods.flow.constraints import Import

TREE = ("all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten")
NUMPY_ALIASES = ("bool", "complex", "float", "int", "object", "str")

RENAMED: Mapping[str, str] = {
    **{f"jax.tree_{word}": f"jax.tree_util.tree_{word}" for word in TREE},
    "jax.tree_multimap": "jax.tree_util.tree_map",
    "jax.tree_util.tree_multimap": "jax.tree_util.tree_map",
    "jax.treedef_children": "jax.tree_util.treedef_children",
    "jax.treedef_is_leaf": "jax.tree_util.treedef_is_leaf",
    "jax.treedef_tuple": "jax.tree_util.treedef_tuple",
    "jax.host_id": "jax.process_index",
    "jax.host_count": "jax.process_count",
    "jax.config.config": "jax.config",
    "jax.partial": "functools.partial",
    "jax.experimental.optimizers": "jax.example_libraries.optimizers",
    "jax.experimental.stax": "jax.example_libraries.stax",
    **{f"jax.{path}DeviceArray": "jax.Array" for path in ("", "interpreters.xla.", "numpy.", "xla.")},
    **{f"numpy.{word}": f"builtins.{word}" for word in NUMPY_ALIASES},
}
"""What has another name now, and is the same."""

METHODS = {"update": "set", "add": "add", "mul": "multiply", "min": "min", "max": "max"}
INDEXING: Mapping[str, str] = {f"jax.ops.index_{word}": method for word, method in METHODS.items()}
"""The methods of `x.at[…]` that took the place of functions."""

GONE: Mapping[str, str] = {
    "flax.nn": "Write the model as a `flax.linen.Module`.",
    "flax.deprecated": "Write the model as a `flax.linen.Module`.",
    "flax.training.lr_schedule": "Use the schedules of optax.",
    "jax.abstract_arrays": "Use `jax.ShapeDtypeStruct`.",
    "jax.experimental.loops": "Use the functions of `jax.lax`.",
    "jax.experimental.maps": "Use `jax.sharding` and `jax.shard_map`.",
    "jax.experimental.pjit.PartitionSpec": "Use `jax.sharding.PartitionSpec`.",
    "jax.host_ids": "Use `range(jax.process_count())`.",
    "jax.interpreters.pxla": "It is internal to JAX.",
    "jax.interpreters.xla": "It is internal to JAX.",
    "jax.lib.xla_bridge": "Use `jax.devices` and `jax.default_backend`.",
    "jax.linear_util": "It is internal to JAX.",
    "jax.ops.index": "Write the index into `x.at[…]`.",
    "jax.soft_pmap": "Use `jax.pmap` or `jax.shard_map`.",
}
"""What has no other name, and what to do."""

WORDS = re.compile(
    r"\b(?:tree_\w+|treedef_\w+|host_(?:ids?|count)|jax\.config|jax import [^\n]*config|partial|optimizers|stax|DeviceArray"
    r"|index_\w+|ops\.index|nn|deprecated|lr_schedule|abstract_arrays|loops|maps|PartitionSpec|pxla|xla|xla_bridge|linear_util"
    rf"|soft_pmap|(?:np|numpy|onp)\.(?:{'|'.join(NUMPY_ALIASES)})|pop)\b"
)
LAST_WORDS = frozenset(name.rpartition(".")[2] for name in (*RENAMED, *INDEXING, *GONE))
POPPED = ("params",)
"""The collections that flax took out of variables with `variables.pop(…)`, which gave a pair."""


def uses_removed(code: str) -> bool:
    """Whether a file may use anything that is gone. False is certain."""
    return ("jax" in code or "flax" in code) and WORDS.search(code) is not None


def removed_uses(facts: Facts, unit: Unit) -> Iterator[Use]:
    """The uses of what is gone in a file: kind `removed` for an expression, `removed_import` for an imported name."""
    if not uses_removed(unit.code):
        return
    imports: dict[str, list[Import]] = defaultdict(list)
    for item in facts.imported(unit):
        imports[item.name].append(item)
        if isinstance(item.statement, ast.ImportFrom):
            if item.name != "*" and (item.target in RENAMED or item.target in INDEXING or _gone(item.target)):
                yield Use("removed_import", item.target, unit, item.statement, ())
        elif _gone(item.alias.name):
            yield Use("removed_import", item.alias.name, unit, item.statement, ())
    known: set[ast.expr] = set()
    for node in unit.nodes:
        if isinstance(node, ast.Attribute) and node.attr in LAST_WORDS and node not in known:
            name = _dotted(facts, node, imports)
            known.add(node.value)
            if name in INDEXING:
                known.update(_index(unit, node))
            if name in RENAMED or name in INDEXING or name in GONE:
                yield Use("removed", str(name), unit, node, ())
        elif isinstance(node, ast.Assign) and _is_popped_pair(node) and "flax" in unit.code:
            yield Use("removed", "pop", unit, node.value, ())


def _index(unit: Unit, function: ast.Attribute) -> Iterator[ast.expr]:
    """The `jax.ops.index` of `function(x, jax.ops.index[…], y)`, which goes with it."""
    match unit.parents.get(function):
        case ast.Call(args=[_, ast.Subscript(value=value), *_]):
            yield value


def _dotted(facts: Facts, node: ast.expr, imports: Mapping[str, list[Import]]) -> str | None:
    """The full name of what an expression names, if its root was imported."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(facts, node.value, imports)
        return None if owner is None else f"{owner}.{node.attr}"
    if not isinstance(node, ast.Name) or node.id not in imports or node not in facts.flow.reading.scopes:
        return None
    scope = facts.scope(node).binding(node.id)
    item = next((found for found in imports[node.id] if found.scope is scope), None)
    if item is None:
        return None
    return item.name if isinstance(item.statement, ast.Import) and not item.alias.asname else item.target


def _gone(name: str) -> bool:
    return any(name == gone or name.startswith(f"{gone}.") for gone in GONE)


def _is_popped_pair(node: ast.Assign) -> bool:
    """`state, params = variables.pop("params")`."""
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=[_, _])],
            value=ast.Call(func=ast.Attribute(attr="pop"), args=[ast.Constant(value=str(name))], keywords=[]),
        ):
            return name in POPPED
    return False
