"""Names that JAX, Flax, optax and NumPy have removed since.

These rules act with `--modernize`; without it, they are hints.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.removed_names import UNKNOWN
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.model import Refusal
from codemods.optimizers.base import Support, helper
from codemods.removed import Removed, row_of
from codemods.removed.indexing import updated
from codemods.removed.present import unknown
from codemods.removed.table import MODELS, once_modules
from codemods.removed.templates import Expression, expressions_of
from codemods.renaming.full_names import Said, said
from codemods.rewriting.edits import (
    Argument,
    Edit,
    Holes,
    MoveImport,
    Replace,
    ReplaceQuoted,
    ReplaceStatement,
    RewriteCall,
)
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.sources.modules import Unit
from codemods.vocabulary import INDEX

INDEXING = {
    "update": "set",
    "add": "add",
    "mul": "multiply",
    "min": "min",
    "max": "max",
}
"""The methods of `x.at[…]` that took the place of the functions `jax.ops.index_…`."""

HELPERS = {
    "device_put_replicated": helper('''def device_put_replicated(x, devices):
    """A copy of each array on each of some devices, under a new first axis."""
    mesh = jax.sharding.Mesh(devices, ("devices",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("devices"))

    def put(leaf):
        return jax.device_put(jax.numpy.stack([leaf] * len(devices)), sharding)

    return jax.tree_util.tree_map(put, x)
'''),
    "device_put_sharded": helper('''def device_put_sharded(shards, devices):
    """Put one tree for each device on these, under a new first axis."""
    mesh = jax.sharding.Mesh(devices, ("devices",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("devices"))

    def put(*leaves):
        return jax.device_put(jax.numpy.stack(leaves), sharding)

    return jax.tree_util.tree_map(put, *shards)
'''),
}
"""The functions that are added to a file, by the names of those that they replace."""

PRIMARY = (
    ast.Attribute,
    ast.Call,
    ast.Constant,
    ast.Dict,
    ast.List,
    ast.Name,
    ast.Subscript,
)
"""The expressions that bind tighter than any operator."""

ARRAYS = ("jax.lax.", "jax.nn.", "jax.numpy.", "jax.ops.index_", "jax.random.")
"""The beginnings of the names of the functions that make arrays."""


@rule(
    "FO801",
    "names that moved",
    "removed",
    before="params = jax.tree_map(jnp.zeros_like, params)\n",
    after="params = jax.tree.map(jnp.zeros_like, params)\n",
)
def renamed(use: Use, context: Context) -> Edit | Refusal:
    """`jax.tree_map`, `jax.tree_multimap` and similar functions are in `jax.tree`, which JAX has
    since 0.4.25 (optax 0.2.4 needs 0.4.27). `jax.host_id` and `jax.host_count` are
    `jax.process_index` and `jax.process_count`; `jax.partial` is `functools.partial`; `np.bool`,
    `np.float` and similar names are Python's own; `jnp.DeviceArray` is `jax.Array`. Some names
    become expressions: `jax.lax.tie_in(x, y)` becomes `y`, and `jnp.NINF` becomes `-jnp.inf`. Names
    inside quoted annotations are replaced too.
    """
    row = row_of(use.name)
    assert row is not None
    if use.quoted:
        return _quoted(use, row, context)
    match row.how:
        # jax.tree_map
        case "same":
            return _named(use, row, context)
        # jnp.NINF
        case "value":
            return _written(use, row, expressions_of(row.to)[0], context)
        # jax.lax.tie_in(x, y)
        case "call":
            return _called(use, row, context)
        # jax.device_put_replicated
        case "helper":
            return Replace(
                use.span, f"{{support:{row.to}}}", supports=(HELPERS[row.to],)
            )
        # jax.config.enable_omnistaging()
        case "drop":
            return _dropped(use, row)
    return refused(row)


def refused(row: Removed) -> Refusal:
    """Why a name that nothing replaces stays."""
    if row.name in MODELS:
        what, _, remedy = row.note.partition(": ")
        return reasons.legacy_models(f"{what}.", remedy)
    return reasons.removed(f"`{row.name}` was removed.", row.note)


def _refuse_name_taken(row: Removed) -> Refusal:
    return reasons.removed(
        f"`{row.name}` is `{row.to}` now.",
        "A name that it needs means something else in this file.",
    )


def _named(use: Use, row: Removed, context: Context) -> Edit | Refusal:
    """The new name of a thing, behind the name that its module has in the file."""
    module, _, last = row.to.rpartition(".")
    match use.node:
        # jax.host_id: the module is the same, so only the last word is another
        case ast.Attribute(value=value) if context.facts.full_name(value) == module:
            owner = ("owner", use.unit.span(value))
            return Replace(use.span, f"{{owner}}.{last}", (owner,))
    found = said(row.to, row.module, use.unit, context.facts)
    if found is None:
        return _refuse_name_taken(row)
    return Replace(use.span, found.template, supports=found.supports)


def _quoted(use: Use, row: Removed, context: Context) -> Edit | Refusal:
    """The new name of a thing in an annotation in quotes, if these have the old one as written."""
    if row.how != "same":
        return reasons.removed(
            f"`{row.name}` was removed.", row.note or "Write another type here."
        )
    if not use.said or use.quoted not in use.unit.source(use.node):
        return reasons.removed(
            f"`{row.name}` is `{row.to}` now.",
            "Write this annotation as one string that is an expression.",
        )
    found = said(row.to, row.module, use.unit, context.facts)
    if found is None:
        return _refuse_name_taken(row)
    return ReplaceQuoted(use.span, ((use.quoted, found.template),), found.supports)


def _called(use: Use, row: Removed, context: Context) -> Edit | Refusal:
    """What a call becomes, if its arguments stay in their order, or may change it."""
    forms = expressions_of(row.to)
    # the first form of the table that takes the arguments of the call
    call = use.call
    fitting = (
        (form, given)
        for form in forms
        if call is not None and (given := form.arguments(call)) is not None
    )
    expression, given = next(fitting, (None, {}))
    if expression is None:
        texts = " or ".join(f"`{form.text}`" for form in forms)
        return reasons.removed(
            f"`{row.name}` was removed.", f"Write {texts}, as it fits here."
        )
    used = [name for name in expression.used if name in given]
    if not _may_move(used, given, use, context):
        return reasons.removed(
            f"`{row.name}` was removed.",
            "Assign the arguments of this call to variables before it, in order.",
        )
    holes = tuple((name, use.unit.span(given[name])) for name in used)
    return _written(use, row, expression, context, holes)


def _may_move(
    used: list[str],
    given: dict[str, ast.expr],
    use: Use,
    context: Context,
) -> bool:
    """Whether arguments that change their order, or are left out, have no effects."""
    order = [given[name] for name in used]
    written = sorted(order, key=use.unit.span)
    pairs = zip(order, written, strict=True)
    moved = [one for one, other in pairs if one is not other]
    left_out = [value for name, value in given.items() if name not in used]
    has_no_effect = context.facts.dataflow.has_no_effect
    return all(map(has_no_effect, (*left_out, *moved)))


def _dropped(use: Use, row: Removed) -> Edit | Refusal:
    """A call that nothing replaces goes away if it is a whole line without comments."""
    call = use.call
    statement = use.unit.parents.get(call) if call is not None else None
    if call is None or not isinstance(statement, ast.Expr) or values_of(call):
        return refused(row)
    lines = ["", *use.unit.code.split("\n")]
    # the line above the statement may be a comment on it
    above, line = lines[statement.lineno - 1 : statement.lineno + 1]
    # config.enable_omnistaging(); x = 1
    is_alone = line.strip() == use.unit.source(statement)
    if above.lstrip().startswith("#") or not is_alone:
        return refused(row)
    return ReplaceStatement(use.unit.span(statement), ())


def _written(
    use: Use,
    row: Removed,
    expression: Expression,
    context: Context,
    holes: Holes = (),
) -> Edit | Refusal:
    """An expression in the place of a name, or of a call of it."""
    names: dict[str, Said] = {}
    for name in expression.names:
        found = said(name, row.module, use.unit, context.facts)
        if found is None:
            return _refuse_name_taken(row)
        names[name] = found
    supports: dict[Support, None] = {}
    for found in names.values():
        supports |= dict.fromkeys(found.supports)
    templates = {name: found.template for name, found in names.items()}
    template = expression.filled(templates, {name for name, _ in holes})
    old = use.node
    # jax.core.definitely_equal(a, b), as a whole
    if row.how == "call" and use.call is not None:
        old = use.call
    new = _new_node(expression, old, holes, use.unit)
    # not (a == b), in the place of not definitely_equal(a, b)
    if not isinstance(new, PRIMARY) and not _stands_alone(old, use.unit):
        template = f"({template})"
    return Replace(use.unit.span(old), template, holes, tuple(supports))


def _new_node(
    expression: Expression,
    old: ast.AST,
    holes: Holes,
    unit: Unit,
) -> ast.expr:
    """The node that is written: that of the expression, or the argument that it is nothing but."""
    body = ast.parse(expression.text, mode="eval").body
    # (x, y) -> y
    span = dict(holes).get(body.id) if isinstance(body, ast.Name) else None
    if span is None:
        return body
    given = {
        unit.span(value): value
        for value in ast.walk(old)
        if isinstance(value, ast.expr)
    }
    return given[span]


def _stands_alone(node: ast.AST, unit: Unit) -> bool:
    """Whether an expression stands where any may, so that none needs parentheses."""
    parent = unit.parents.get(node)
    if isinstance(parent, ast.Call):
        return node is not parent.func
    if isinstance(parent, ast.Subscript):
        return node is parent.slice
    return isinstance(parent, ast.stmt | ast.keyword | ast.List | ast.Set | ast.Tuple)


@rule(
    "FO802",
    "imports that moved",
    "removed_import",
    before="from jax.config import config\n",
    after="from jax import config\n",
)
def moved(use: Use, context: Context) -> Edit | Refusal:
    """`from jax.config import config` is `from jax import config`; a renamed function keeps its old
    name in the file, as in `from jax.tree_util import tree_map as tree_multimap`. An import of a
    removed name that nothing in the file mentions is deleted.
    """
    row = row_of(use.name)
    assert row is not None
    assert isinstance(use.node, ast.Import | ast.ImportFrom)
    if row.how != "same":
        unused = None if row.name.startswith(MODELS) else _unused(use)
        return MoveImport(use.span, unused, "") if unused else refused(row)
    # from jax import tree_map: nobody imports `map` under that name
    to = re.sub(r"^jax\.tree\.", "jax.tree_util.tree_", row.to)
    new = f"{to}{use.name.removeprefix(row.name)}"
    if isinstance(use.node, ast.Import):
        # import jax.experimental.optimizers as optimizers
        alias = next(found for found in use.node.names if found.name == use.name)
        renaming = f" as {alias.asname}" if alias.asname else ""
        bound = alias.asname or alias.name
        return MoveImport(use.span, bound, f"import {new}{renaming}")
    # from jax.experimental import optimizers
    module, _, name = new.rpartition(".")
    alias = _alias_of(use.name, use.node)
    bound = alias.asname or alias.name
    renaming = f" as {bound}" if bound != name else ""
    statement = f"import {name}" if not module else f"from {module} import {name}"
    return MoveImport(use.span, bound, statement + renaming)


def _unused(use: Use) -> str | None:
    """The name that an import gives to what was removed, if the file has it nowhere else."""
    if not isinstance(use.node, ast.ImportFrom):
        return None
    alias = _alias_of(use.name, use.node)
    # from jax.lib import xla_bridge
    bound = alias.asname or alias.name
    mentions = re.findall(rf"\b{re.escape(bound)}\b", use.unit.code)
    return bound if len(mentions) == 1 else None


def _alias_of(name: str, statement: ast.ImportFrom) -> ast.alias:
    """The first name that is imported and is, or comes from, what has this full name."""
    module = statement.module
    return next(
        found for found in statement.names if name in (f"{module}.{found.name}", module)
    )


@rule("FO898", "unknown names", UNKNOWN)
def not_known(use: Use, context: Context) -> Edit | Refusal:
    """With `--modernize`, the report lists names that today's package does not have, though no
    removal is known: they may be misspelt, or newer than this tool. It also lists private names,
    which any release may change. Nothing is changed, and they do not count as sites.
    """
    del context
    found = unknown(use.name)
    assert found is not None
    return Refusal("FO898", found.message, found.remedy)


@rule(
    "FO805",
    "imports of removed modules",
    "removed_module",
    before="import jax.lib.xla_bridge\n\nxla = jax.lib.xla_bridge.get_backend()\n",
    after="import jax\n\nxla = jax.devices()[0].client\n",
)
def left_alone(use: Use, context: Context) -> Edit | Refusal:
    """`import jax.lib.xla_bridge` becomes `import jax` once nothing uses the removed module any
    more. So does `import jax.config`, which is no longer a module but an attribute of `jax`.
    """
    assert isinstance(use.node, ast.Import)
    package, _, rest = use.name.partition(".")
    alias = next(found for found in use.node.names if found.name == use.name)
    # import jax.config as config
    if alias.asname:
        text = f"from {package} import {rest} as {alias.asname}"
        return MoveImport(use.span, alias.asname, text)
    imports = [one for one in context.facts.imported(use.unit) if one.name == package]
    [index] = [index for index, one in enumerate(imports) if one.alias is alias]
    beside = [one for one in imports if one.scope is imports[index].scope]
    # an import before this one, or one that stays, binds the package already
    others = [
        one
        for one in beside
        if one in imports[:index]
        or not (row_of(one.alias.name) or one.alias.name in once_modules())
    ]
    return MoveImport(use.span, use.name, "" if others else f"import {package}")


@rule(
    "FO803",
    "functions of jax.ops are methods of x.at[…]",
    *(f"removed:jax.ops.index_{name}" for name in INDEXING),
    before="x = jax.ops.index_update(x, jax.ops.index[0, :], y)\n",
    after="x = x.at[0, :].set(y)\n",
)
def indexing(use: Use, context: Context) -> Edit | Refusal:
    """The functions of `jax.ops` for updates at an index are methods of `x.at[…]`. They accepted
    anything that can be converted to an array. Only a JAX array has `.at`, so any other value is
    converted first.
    """
    method = INDEXING[use.name.rpartition("_")[2]]
    update = updated(use.call)
    if update is None:
        return reasons.removed(
            f"`{use.name}` was removed.", f"Use `x.at[…].{method}(…)`."
        )
    array, index = update.array, update.index
    owner = "{array}" if _is_array(array, context) else "{jnp}.asarray({array})"
    # jax.ops.index[0, :]: what stands between the brackets goes between others
    hole = "index"
    if isinstance(index, ast.Subscript):
        of_its_own = context.facts.full_name(index.value) == INDEX
        hole = "slices" if of_its_own else "index"
    template = f"{owner}.at[{{{hole}}}].{method}"
    holes = (("array", use.unit.span(array)), (hole, use.unit.span(index)))
    arguments = tuple(
        Argument(keyword, index=place) for keyword, place in update.passed_on
    )
    return RewriteCall(use.unit.span(update.call), template, arguments, holes)


def _is_array(
    node: ast.expr,
    context: Context,
    known: frozenset[ast.expr] = frozenset(),
) -> bool:
    """Whether an expression is an array of JAX: each value that it can have is made by JAX."""
    match node:
        # x.at[0].set(y)
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=ast.Attribute(value=array, attr="at"))
            )
        ):
            return _is_array(array, context, known)
        # jnp.zeros(3)
        case ast.Call(func=function):
            return context.facts.full_name(function).startswith(ARRAYS)
        case ast.BinOp(left=left, right=right):
            return _is_array(left, context, known) or _is_array(right, context, known)
        case ast.Name():
            values = context.origins.values_of(node)
            # x = x.at[0].set(y) in a loop: a value that is made of itself says nothing more
            others = [value for value in values if value not in known]
            return bool(values) and all(
                value and _is_array(value, context, known | {value}) for value in others
            )
    return False
