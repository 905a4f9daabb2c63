"""What JAX, Flax, optax, NumPy and Python still have, and take otherwise than they did.

These rules act with `--modernize`; without it, they are hints.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import chain, repeat

from codemods.analysis.changed import KIND
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.model import Refusal
from codemods.removed.table import Removed, changed, changed_arguments
from codemods.renaming.full_names import said
from codemods.rewriting.edits import IT, Argument, Edit, Replace, RewriteCall
from codemods.rules import reasons, rule
from codemods.rules.context import Context


def _kinds(*forms: str) -> tuple[str, ...]:
    """The kinds of use that the rows of some forms are about."""
    return tuple(f"{KIND}:{row.name}" for row in changed().values() if row.how in forms)


@rule(
    "FO806",
    "arguments that are taken otherwise",
    *_kinds("keyword", "argument", "position", "array", "unsigned", "none"),
    before="loss = jnp.clip(jnp.mean([first, second]), a_min=0)\n",
    after="loss = jnp.clip(jnp.mean(jnp.array([first, second])), min=0)\n",
)
def argument(use: Use, context: Context) -> Edit | Refusal:
    """Arguments are given as they are taken today. Keywords have their new names:
    `jnp.clip(x, a_min=0)` is `jnp.clip(x, min=0)`. What has to be given by its keyword now is given
    by it: the mask in `nn.MultiHeadDotProductAttention()(x, y, mask)`, where values are expected
    today, and `delta` of `optax.huber_loss(x, y, delta)`. The functions of `jax.numpy` and `jax.nn`
    take no lists, so that `jnp.mean([x, y])` becomes `jnp.mean(jnp.array([x, y]))`. With NumPy 2,
    `np.uint8(-1)` is an error, and becomes `np.uint8(2**8 - 1)`. Anything else is reported, such as
    `jnp.sort(x, kind="stable")`, `x.device()` and `type(x) == DeviceArray`.
    """
    row = changed()[use.name]
    match row.how:
        case "keyword":
            return _with_keywords(use, row)
        case "position":
            return _by_keyword(use, row)
        case "array":
            return Replace(use.span, f"{{jnp}}.array({IT})")
        case "unsigned":
            assert isinstance(use.node, ast.UnaryOp)
            number = ("number", use.unit.span(use.node.operand))
            return Replace(use.span, f"{row.to} - {{number}}", (number,))
        case "argument":
            return reasons.removed(f"`{row.name}` needs `{row.to}` now.", row.note)
    return reasons.removed(row.to, row.note)


def _with_keywords(use: Use, row: Removed) -> Edit:
    """A call whose keywords have their names of today."""
    call = _call(use)
    rows = changed_arguments()[row.function]
    new = {one.parameter: one.to for one in rows if one.how == "keyword"}
    keywords = [new.get(word.arg or "", word.arg) for word in call.keywords]
    return _given_by(use, len(call.args), keywords)


def _by_keyword(use: Use, row: Removed) -> Edit:
    """A call whose arguments from a position on are given by keywords."""
    call, first = _call(use), int(row.parameter)
    new = row.to.split()[: len(call.args) - first]
    return _given_by(use, first, [*new, *(word.arg for word in call.keywords)])


def _given_by(use: Use, by_position: int, keywords: Sequence[str | None]) -> Edit:
    """A call whose first arguments are given by position, and the others by keywords."""
    words = chain(repeat(None, by_position), keywords)
    arguments = tuple(Argument(word, place) for place, word in enumerate(words))
    function = ("function", use.unit.span(_call(use).func))
    return RewriteCall(use.span, "{function}", arguments, (function,))


def _call(use: Use) -> ast.Call:
    assert isinstance(use.node, ast.Call)
    return use.node


@rule(
    "FO807",
    "recurrent cells have their features",
    *_kinds("carry", "class_carry"),
    before="carry, y = nn.GRUCell()(carry, x)\n",
    after="carry, y = nn.GRUCell(features=carry.shape[-1])(carry, x)\n",
)
def cell(use: Use, context: Context) -> Edit | Refusal:
    """A recurrent cell took the number of its features from its carry, and is given it today. Where
    `nn.GRUCell()` is called with its carry at once, it gets the last axis of that.
    `nn.GRUCell.initialize_carry(key, (8,), 16)` was a method of the class and is one of a cell:
    `nn.GRUCell(features=16, parent=None).initialize_carry(key, (8, 16))`, where `parent=None` keeps
    this cell out of the names of parameters. A cell that is called elsewhere is reported.
    """
    row, call, unit = changed()[use.name], _call(use), use.unit
    if row.how == "carry":
        outer = unit.call_of(call)
        assert outer is not None
        carry = outer.args[0]
        features = Argument("features", template=f"{unit.source(carry)}{row.to}")
        arguments = [Argument(word.arg, at) for at, word in enumerate(call.keywords)]
        function = ("function", unit.span(call.func))
        return RewriteCall(use.span, "{function}", (features, *arguments), (function,))
    _, shape, size = call.args
    if not context.facts.dataflow.has_no_effect(size):
        return reasons.removed(
            f"`{row.name}` is a method of the cell now.",
            "Assign the number of features to a variable before it.",
        )
    assert isinstance(call.func, ast.Attribute)
    start, written = "*{start}", shape
    # (batch_size,)
    if isinstance(shape, ast.Tuple) and len(shape.elts) == 1:
        start, written = "{start}", shape.elts[0]
    nodes = {"cell": call.func.value, "size": size, "start": written}
    holes = tuple((name, unit.span(node)) for name, node in nodes.items())
    method = f"{{cell}}(features={{size}}, parent=None).{call.func.attr}"
    arguments = [Argument(None, 0), Argument(None, template=f"({start}, {{size}})")]
    return RewriteCall(use.span, method, tuple(arguments), holes)


@rule(
    "FO804",
    "variables.pop is flax.core.pop",
    *_kinds("method"),
    before='state, params = variables.pop("params")\n',
    after='state, params = flax.core.pop(variables, "params")\n',
)
def frozen(use: Use, context: Context) -> Edit:
    """The variables of a model were a `FrozenDict`, whose `pop` returned a pair: the rest and the
    value. They are a plain dict now, whose `pop` returns only the value. `flax.core.pop` returns
    the pair for both. In the same way, `params.unfreeze()` becomes `flax.core.unfreeze(params)`,
    and `variables.copy({"batch_stats": mean})` becomes `flax.core.copy(variables, {…})`: a dict has
    no `unfreeze`, and its `copy` takes no arguments.
    """
    call = _call(use)
    assert isinstance(call.func, ast.Attribute)
    given = ["owner", "argument"][: 1 + len(values_of(call))]
    nodes = (call.func.value, *values_of(call))
    holes = tuple(zip(given, map(use.unit.span, nodes), strict=True))
    arguments = ", ".join(f"{{{name}}}" for name in given)
    function = changed()[use.name].to.partition(".")[2]
    return Replace(use.span, f"{{flax}}.{function}({arguments})", holes)


@rule(
    "FO808",
    "a test for FrozenDict is passed by dicts, too",
    *_kinds("mapping"),
    before="size = sum(map(count, x.values())) if isinstance(x, FrozenDict) else x.size\n",
    after="size = sum(map(count, x.values())) if isinstance(x, (dict, FrozenDict)) else x.size\n",
)
def mapping(use: Use, context: Context) -> Edit:
    """The variables of a model were a `FrozenDict` and are a plain dict now, so that
    `isinstance(params, FrozenDict)` is false. A function that calls itself for each level, and code
    that refuses anything else, tests for `(dict, FrozenDict)`. What tests for dicts as well, and
    what only freezes or unfreezes, is right for both. Any other test is reported.
    """
    kind = use.unit.span(_call(use).args[1])
    return Replace(kind, f"(dict, {IT})")


@rule(
    "FO809",
    "fields of classes that take no list or array",
    *_kinds("list", "default"),
    before="sizes = self.features + [10]\n",
    after="sizes = list(self.features) + [10]\n",
)
def field(use: Use, context: Context) -> Edit | Refusal:
    """A module of Flax makes a tuple of a list that it is given, so that `self.features + [10]`
    fails; `list(self.features) + [10]` takes both. Python 3.11 refuses an array as the default of a
    field, and gets a function that makes it:
    `dataclasses.field(default_factory=lambda: jnp.zeros(1))`.
    """
    row = changed()[use.name]
    found = said(row.to, row.module, use.unit, context.facts)
    if found is None:
        return reasons.removed(
            f"`{row.name}` is refused now.",
            f"Use `{row.to.removeprefix('builtins.')}`, which means something else here.",
        )
    if row.how == "list":
        made = f"{found.template}({IT})"
    elif _is_constant(use.node, context):
        made = f"{found.template}(default_factory=lambda: {IT})"
    else:
        return reasons.removed(
            "Python 3.11 takes no array as the default of a field.",
            "Use `dataclasses.field(default_factory=…)`.",
        )
    return Replace(use.span, made, supports=found.supports)


def _is_constant(node: ast.AST, context: Context) -> bool:
    """Whether an expression, of constants and imported functions, always gives the same."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return all(context.facts.full_name(one) for one in names)
