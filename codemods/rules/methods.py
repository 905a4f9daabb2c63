"""The optimizer's other methods: copies on all devices, and its state dict."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.inference.binding import arguments_of, taking, values_of
from codemods.model import Refusal
from codemods.optimizers.base import Support, helper
from codemods.optimizers.methods import REPLICATE, RESTORE_STATE
from codemods.rewriting.edits import Edit, Keep, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.older_checkpoints import may_have_copies


@rule(
    "FO602",
    "replicate is jax_utils.replicate",
    "optimizer.replicate",
    "optimizer.unreplicate",
    before="optimizer = optimizer.replicate()\n",
    after="optimizer = jax_utils.replicate(optimizer)\n",
)
def replicate(use: Use, context: Context) -> Edit | Refusal:
    """`Optimizer.replicate()` also made every later step average the gradients over the devices,
    along the axis `batch` by default. So `jax.lax.pmean` is written out at the steps.
    """
    call = use.call
    if call is None:
        return reasons.create_as_value(
            f"`{use.name}` is passed on instead of being called.", "Call it."
        )
    axes = context.stepping.axes(use.objects)
    given = arguments_of(REPLICATE if use.name == "replicate" else taking(), call)
    if given is None or len(axes) != 1 or None in axes:
        return reasons.deprecated_method(
            "This also averages the gradients of later steps over an axis that is not "
            "known.",
            f"Use `jax_utils.{use.name}`, and `jax.lax.pmean` on the gradients before each step.",
        )
    if "devices" not in given:
        template = f"{{jax_utils}}.{use.name}({{owner}})"
        return Replace(use.unit.span(call), template, (use.owner_hole,))
    # optimizer.replicate(jax.local_devices())
    holes = (use.owner_hole, ("devices", use.unit.span(given["devices"])))
    return Replace(
        use.unit.span(call), f"{{jax_utils}}.{use.name}({{owner}}, {{devices}})", holes
    )


ONE_COPY = helper('''def one_copy(state):
    """A train state to be stored: if it has a copy for each device, one of them."""
    return jax_utils.unreplicate(state) if jnp.ndim(state.step) else state
''')
AS_MANY_COPIES = helper('''def as_many_copies(state, restored):
    """A restored train state: if `state` has a copy for each device, as many."""
    if not jnp.ndim(state.step):
        return restored
    return jax_utils.replicate(restored, jax.local_devices()[: len(state.step)])
''')


@rule(
    "FO605",
    "one copy of a replicated optimizer is stored",
    "stored",
    before="checkpoints.save_checkpoint(directory, optimizer, step)\n",
    after="checkpoints.save_checkpoint(directory, one_copy(optimizer), step)\n",
)
def stored(use: Use, context: Context) -> Edit | Keep | Refusal:
    """If an optimizer was replicated by its own method, legacy stored one copy of it. A train state
    is stored as it is, so one copy is taken where it may have several.
    """
    assert isinstance(use.node, ast.expr)
    if not may_have_copies(use.node, use, context.stepping):
        return Keep()
    # checkpoints.save_checkpoint(directory, state.optimizer, step)
    if not isinstance(use.node, ast.Name):
        return _refuse_copies()
    return Replace(
        use.span, f"{{support:{ONE_COPY.name}}}({{it}})", supports=(ONE_COPY,)
    )


def _refuse_copies() -> Refusal:
    return reasons.deprecated_method(
        "This optimizer may be stored or restored when it has a copy for each device, of which "
        "legacy stored one.",
        "Store `jax_utils.unreplicate(optimizer)`, and replicate after it is restored.",
    )


@rule(
    "FO606",
    "an optimizer is restored as it was",
    "restored",
    before="optimizer = checkpoints.restore_checkpoint(directory, optimizer)\n",
    after=(
        "optimizer = as_many_copies(optimizer, checkpoints.restore_checkpoint(directory, "
        "one_copy(optimizer)))\n"
    ),
)
def restored(use: Use, context: Context) -> Edit | Keep:
    """If an optimizer was replicated by its own method, legacy also restored the copies.

    Checkpoints from before the migration have another layout. `optim2optax checkpoint convert`
    converts them, and `optim2optax.checkpoints.loading.load_legacy_checkpoint` loads them. The
    report offers both where a program creates an optimizer that it restores.
    """
    assert isinstance(use.node, ast.Call)
    optimizers = (
        value
        for value in values_of(use.node)
        if context.facts.legacy_objects(value, "optimizer")
    )
    state = next(optimizers, None)
    if state is None or not may_have_copies(state, use, context.stepping):
        return Keep()
    template = f"{{support:{AS_MANY_COPIES.name}}}({use.unit.source(state)}, {{it}})"
    return Replace(use.span, template, supports=(AS_MANY_COPIES,))


@rule(
    "FO603",
    "state_dict is serialization.to_state_dict",
    "optimizer.state_dict",
    "optimizer.restore_state",
    before="optimizer = optimizer.restore_state(state_dict)\n",
    after="optimizer = serialization.from_state_dict(optimizer, state_dict)\n",
)
def state_dict(use: Use, context: Context) -> Edit | Refusal:
    """The methods did what the functions of `flax.serialization` do. The keys are those of a
    `TrainState`: if the code reads anything but the parameters or the step by its key, or reads all
    keys, the optimizer stays, with a reason.
    """
    call, owner = use.call, use.owner_hole
    copies = may_have_copies(use.owner, use, context.stepping)
    if copies and not isinstance(use.owner, ast.Name):
        return _refuse_copies()
    one = f"{{support:{ONE_COPY.name}}}({{owner}})" if copies else "{owner}"
    supports: tuple[Support, ...] = (ONE_COPY,) if copies else ()
    # optimizer.state_dict()
    if call is not None and use.name == "state_dict" and not values_of(call):
        template = f"{{serialization}}.to_state_dict({one})"
        return Replace(use.unit.span(call), template, (owner,), supports)
    # optimizer.restore_state(state_dict)
    if call is not None and (given := arguments_of(RESTORE_STATE, call)) is not None:
        template = f"{{serialization}}.from_state_dict({one}, {{state}})"
        if copies:
            template = f"{{support:{AS_MANY_COPIES.name}}}({{owner}}, {template})"
            supports = (ONE_COPY, AS_MANY_COPIES)
        holes = (owner, ("state", use.unit.span(given["state"])))
        return Replace(use.unit.span(call), template, holes, supports)
    return reasons.state(
        f"`.{use.name}` depends on the layout of the optimizer's state.",
        "Use `flax.serialization.to_state_dict` and `from_state_dict` on the train state; old "
        "checkpoints need a conversion.",
    )
