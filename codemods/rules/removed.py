"""Names that JAX, Flax and NumPy have removed since. These rules act with `--modernize`; without it, they are hints."""

from __future__ import annotations

import ast

from codemods.edits import Argument, Edit, MoveImport, Replace, RewriteCall
from codemods.model import Refusal
from codemods.optimizers.base import Support
from codemods.removed import GONE, INDEXING, RENAMED
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.uses import Use

ARRAYS = ("jax.lax.", "jax.nn.", "jax.numpy.", "jax.ops.index_", "jax.random.")
"""What begins the names of the functions that make arrays."""

FUNCTOOLS = Support("functools", "", ("import functools",))


@rule(
    "FO801",
    "names that moved",
    "removed",
    before="params = jax.tree_map(jnp.zeros_like, params)\n",
    after="params = jax.tree_util.tree_map(jnp.zeros_like, params)\n",
)
def renamed(use: Use, context: Context) -> Edit | Refusal:
    """`jax.tree_map`, `jax.tree_multimap` and their like are in `jax.tree_util`; `jax.host_id` and `jax.host_count` are
    `jax.process_index` and `jax.process_count`; `jax.partial` is `functools.partial`; `np.bool`, `np.float` and their like are
    Python's own; `jnp.DeviceArray` is `jax.Array`.
    """
    if use.name not in RENAMED:
        return reasons.removed(f"`{use.name}` was removed.", GONE.get(use.name, "Write it anew."))
    new = RENAMED[use.name]
    span = use.span
    if new.startswith("builtins."):
        return Replace(span, new.partition(".")[2])
    if new.startswith("functools."):
        return Replace(span, new, supports=(FUNCTOOLS,))
    return Replace(span, f"{{jax}}{new.removeprefix('jax')}")


@rule(
    "FO802",
    "imports that moved",
    "removed_import",
    before="from jax.config import config\n",
    after="from jax import config\n",
)
def moved(use: Use, context: Context) -> Edit | Refusal:
    """`from jax.config import config` is `from jax import config`; a name that is another now keeps the old one in the file, as
    in `from jax.tree_util import tree_map as tree_multimap`.
    """
    if use.name not in RENAMED:
        gone = next((name for name in GONE if f"{use.name}.".startswith(f"{name}.")), use.name)
        return reasons.removed(f"`{gone}` was removed.", GONE.get(gone, "Use the methods of `x.at[…]`."))
    assert isinstance(use.node, ast.ImportFrom)
    module, _, name = RENAMED[use.name].rpartition(".")
    alias = next(found for found in use.node.names if f"{use.node.module}.{found.name}" == use.name)
    bound = alias.asname or alias.name
    statement = f"from {module} import {name}" + (f" as {bound}" if bound != name else "")
    return MoveImport(use.span, bound, statement)


@rule(
    "FO803",
    "jax.ops.index_update is x.at[…].set",
    *(f"removed:{name}" for name in INDEXING),
    before="x = jax.ops.index_update(x, jax.ops.index[0, :], y)\n",
    after="x = x.at[0, :].set(y)\n",
)
def indexing(use: Use, context: Context) -> Edit | Refusal:
    """The functions of `jax.ops` for updates at an index are methods of `x.at[…]`. They took anything that can be made an array;
    only an array of JAX has `.at`, so what is not plainly one is made one.
    """
    call = use.call
    refusal = reasons.removed(f"`{use.name}` was removed.", f"Use `x.at[…].{INDEXING[use.name]}(…)`.")
    if call is None or len(call.args) != 3 or call.keywords:
        return refusal
    array, index, _ = call.args
    if isinstance(index, ast.Subscript) and ast.unparse(index.value).endswith("ops.index"):
        index = index.slice
    source = use.unit.source(index)
    if isinstance(index, ast.Starred) or "{" in source or "\n" in source:
        return refusal
    owner = "{array}" if _is_array(array, context) else "{jnp}.asarray({array})"
    template = f"{owner}.at[{source}].{INDEXING[use.name]}"
    return RewriteCall(use.unit.span(call), template, (Argument(None, index=2),), (("array", use.unit.span(array)),))


def _is_array(node: ast.expr, context: Context, known: frozenset[ast.expr] = frozenset()) -> bool:
    """Whether an expression is an array of JAX, whatever comes before: each value that it can have is made by JAX."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=array, attr="at")))):
            return _is_array(array, context, known)
        case ast.Call(func=function):
            return context.facts.full_name(function).startswith(ARRAYS)
        case ast.BinOp(left=left, right=right):
            return _is_array(left, context, known) or _is_array(right, context, known)
        case ast.Name():
            values = context.origins.values_of(node)
            others = [value for value in values if value not in known]
            return bool(values) and all(value and _is_array(value, context, known | {value}) for value in others)
    return False


@rule(
    "FO804",
    "variables.pop is flax.core.pop",
    "removed:pop",
    before='state, params = variables.pop("params")\n',
    after='state, params = flax.core.pop(variables, "params")\n',
)
def popped(use: Use, context: Context) -> Edit | Refusal:
    """The variables of a model were a `FrozenDict`, whose `pop` gave a pair: the rest and the value. They are a plain dict now,
    whose `pop` gives the value alone; `flax.core.pop` gives the pair for both.
    """
    assert isinstance(use.node, ast.Call)
    assert isinstance(use.node.func, ast.Attribute)
    holes = (("owner", use.unit.span(use.node.func.value)), ("key", use.unit.span(use.node.args[0])))
    return Replace(use.span, "{flax}.core.pop({owner}, {key})", holes)
