"""The state of a legacy optimizer, made from a train state and put back, for functions on it."""

from __future__ import annotations

from codemods.optimizers import optimizers
from codemods.optimizers.base import Support


def is_viewable(optimizer: str) -> bool:
    """Whether optax has a field with the same values for each field of a known legacy state."""
    return optimizer in optimizers() and optimizers()[optimizer].is_viewable


OPTIMIZER_STATE = Support(
    name="OptimizerState",
    source='''@struct.dataclass
class OptimizerState:
    """The number of steps taken, and what the optimizer keeps for each parameter."""

    step: jax.Array
    param_states: optax.Params
''',
    imports=("from flax import struct", "import jax", "import optax"),
    is_shared=True,
)


def param_state(optimizer: str) -> Support:
    """The class of what an optimizer keeps for a parameter.

    It has the name of the legacy one without its underscore.
    """
    name = f"{optimizer}ParamState"
    fields = "\n".join(
        f"    {field}: jax.Array" for field in optimizers()[optimizer].state
    )
    source = f'''@struct.dataclass
class {name}:
    """What {optimizer} keeps for a parameter."""

{fields}
'''
    return Support(
        name, source, ("from flax import struct", "import jax"), is_shared=True
    )


IS_FIELD = Support(
    name="is_field",
    source='''def is_field(path, _):
    """Whether this is a field of the optimizer's state, not a parameter."""
    return isinstance(path[-1], optax.tree_utils.NamedTupleKey)
''',
    imports=("import optax",),
)


def to_legacy(optimizer: str) -> tuple[Support, ...]:
    """The function that makes the legacy state, behind what it needs."""
    fields = ", ".join(f'"{field}"' for field in optimizers()[optimizer].state.values())
    trailing = "," if "," not in fields else ""
    name = f"{optimizer.lower()}_state"
    source = f'''def {name}(train_state):
    """The state that the legacy optimizer had in the place of a train state."""
    names = ({fields}{trailing})
    kept = [optax.tree_utils.tree_get(train_state.opt_state, name, filtering=is_field)\
 for name in names]
    param_states = jax.tree_util.tree_map({optimizer}ParamState, *kept)
    step = jnp.asarray(train_state.step, jnp.result_type(train_state.step))
    return OptimizerState(step, param_states)
'''
    helper = Support(
        name, source, ("import jax", "import jax.numpy as jnp", "import optax")
    )
    return OPTIMIZER_STATE, param_state(optimizer), IS_FIELD, helper


def from_legacy(optimizer: str, counts: bool) -> tuple[Support, ...]:
    """The function that puts a legacy state back, behind what it needs.

    `counts` says that optax counts the steps, too.
    """
    state = optimizers()[optimizer].state
    parts = ", ".join(f'{new}=part("{old}")' for old, new in state.items())
    if counts:
        parts += ", count=state.step"
    name = f"with_{optimizer.lower()}_state"
    source = f'''def {name}(train_state, state):
    """A train state that goes on from a state as the legacy optimizer had it."""

    def part(name):
        return jax.tree_util.tree_map(
            lambda kept: getattr(kept, name), state.param_states,\
 is_leaf=lambda kept: hasattr(kept, name)
        )

    opt_state = optax.tree_utils.tree_set(train_state.opt_state, is_field, {parts})
    return train_state.replace(step=state.step, opt_state=opt_state)
'''
    return IS_FIELD, Support(name, source, ("import jax", "import optax"))
