"""The classes of the state of a legacy optimizer."""

from __future__ import annotations

from codemods.optimizers import optimizers
from codemods.optimizers.base import Support

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
