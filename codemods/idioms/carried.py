"""The type of a learning rate that a step within a loop of JAX assigns.

The carry of such a loop keeps its types: a rate of another type fails where JAX traces the loop, so
that only one which is shown to have another is given that of the one before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.handling import LOOPS
from codemods.analysis.origins import FunctionNode, Origins, function_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms.float_rates import CarriedRates
from codemods.optimizers.base import RATE, Support, helper
from codemods.sources.modules import Unit

KEEP_TYPES = helper('''def keep_types(new, old):
    """A new state in the types of the old one, which a loop of JAX needs."""
    return jax.tree_util.tree_map(
        lambda x, y: jnp.asarray(x, jnp.result_type(y)), new, old
    )
''')


def typed(
    opt_state: str, old: str, use: Use, stepping: Stepping
) -> tuple[str, tuple[Support, ...]]:
    """A template for a state with a new rate, of the old type where that matters; its helpers."""
    steps, kinds = stepping.steps(use.objects) or [use], stepping.facts.of(CarriedRates)
    loops = any(
        _in_loop(step.node, step.unit, stepping.origins, set()) for step in steps
    )
    rates = (rate for step in steps for rate in _rates(step))
    if not loops or not any(map(kinds.may_be_other, rates)):
        return opt_state, ()
    return f"{{support:{KEEP_TYPES.name}}}({opt_state}, {old})", (KEEP_TYPES,)


def _rates(step: Use) -> Iterator[ast.expr]:
    """The learning rates that a step assigns."""
    words = step.call.keywords if step.call is not None else []
    given = [word.value for word in words if word.arg == "hyper_params"]
    calls = (
        inner
        for found in given
        for inner in ast.walk(found)
        if isinstance(inner, ast.Call)
    )
    words = [*words, *(word for inner in calls for word in inner.keywords)]
    yield from (word.value for word in words if word.arg in (RATE, None))


def _in_loop(
    node: ast.AST, unit: Unit, origins: Origins, seen: set[FunctionNode]
) -> bool:
    """Whether a loop or branch of JAX calls the function around a node, perhaps through others."""
    function = function_of(unit, node)
    if function is None or function in seen:
        return False
    seen.add(function)
    for site, _ in origins.calls(function):
        if not isinstance(site.node, ast.Call):
            continue
        # jax.lax.scan(step, optimizer, batches)
        if not LOOPS.isdisjoint(origins.facts.externals(site.node.func)):
            return True
        if _in_loop(site.node, site.unit, origins, seen):
            return True
    return False
