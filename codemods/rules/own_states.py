"""Dataclasses with an optimizer that become train states themselves."""

from __future__ import annotations

from codemods.analysis.uses import Use
from codemods.idioms.own_states import CODE
from codemods.rewriting.edits import Edit
from codemods.rules import rule
from codemods.rules.context import Context


@rule(
    CODE,
    "a dataclass around an optimizer is a train state",
    "own_state",
    before="""\
@flax.struct.dataclass
class TrainState:
    step: int
    optimizer: optim.Optimizer
    model_state: Any

new_optimizer = state.optimizer.apply_gradient(grads)
state = state.replace(step=state.step + 1, optimizer=new_optimizer, model_state=new_model_state)
""",
    after="""\
class TrainState(train_state.TrainState):
    model_state: Any

state = state.apply_gradients(grads=grads, model_state=new_model_state)
""",
)
def own_state(use: Use, context: Context) -> Edit:
    """A `flax.struct.dataclass` that holds one optimizer, and perhaps its step a second time,
    becomes a subclass of `TrainState` with the other fields. This holds where the optimizer is
    never used but as a part of such an object: read, stepped and put back into the object that it
    was taken from; where it is made plainly for a new object; and where the field `step`, if there
    is one, always agrees with the optimizer's own: nothing sets it but steps, and nothing makes
    such an object out of view. The class has no special method, nothing called `params`, `tx`,
    `opt_state`, `apply_fn`, `create`, `apply_gradients`, `replace`, `cls` or `grads`, and no other
    thing called `step`. Its objects go to functions in view, and to those of which it is known that
    they do not ask for fields: not to `getattr`, `vars`, `dataclasses.asdict`, `to_state_dict`,
    `pickle` or a pattern of `match`. In every other case the train state takes the place of the
    optimizer alone.
    """
    return context.own_states.edit(use)
