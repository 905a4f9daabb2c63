"""Programs that set the step of a state with a schedule, each in another way."""

from tests.codemods.programs import table

HEAD = """
import dataclasses
import functools
import io
import pickle
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim, serialization, struct


{definition}


def schedule(step):
    return 0.5 / (1.0 + step)


def gradient(params, batch):
    def loss(params):
        return jnp.mean((batch[0] @ params["w"] + params["b"] - batch[1]) ** 2)

    return jax.grad(loss)(params)
"""
FIELDS = "    step: Any\n    optimizer: Any"
RECORD = f"class State(NamedTuple):\n{FIELDS}"
OF_STATE = """

def train_step(state, batch):
    grad = gradient(state.optimizer.target, batch)
    optimizer = state.optimizer.apply_gradient(grad, learning_rate=schedule(state.step))
    return {change}(step=state.step + 1, optimizer=optimizer)


{restart}


def run(params, batches):
    state = State(step=0, optimizer=optim.Momentum(0.1).create(params))
    for batch in batches[:3]:
        state = train_step(state, batch)
    state = restart(state)
    for batch in batches[3:]:
        state = train_step(state, batch)
    return [state.optimizer.target]
"""
OF_OPTIMIZER = """

def train_step(optimizer, batch):
    grad = gradient(optimizer.target, batch)
    return optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))


{restart}


def run(params, batches):
    optimizer = optim.Momentum(0.1).create(params)
    for batch in batches[:3]:
        optimizer = train_step(optimizer, batch)
    optimizer = restart(optimizer)
    for batch in batches[3:]:
        optimizer = train_step(optimizer, batch)
    return [optimizer.target]
"""


CHANGES = {
    "STRUCT": (f"@struct.dataclass\nclass State:\n{FIELDS}", "state.replace"),
    "PLAIN": (f"@dataclasses.dataclass\nclass State:\n{FIELDS}", "functools.partial(dataclasses.replace, state)"),
    "RECORD": (RECORD, "state._replace"),
}  # fmt: skip
"""How the class of a state is defined, and what changes its fields."""


def of_state(text: str) -> dict[str, str]:
    """Programs whose schedules read the step of a state of their own, by restarts in a table.

    A row may begin with the name of another class, or with lines that are added to it. If it is
    one statement, it is the body of the restart.
    """
    return {str(row.id): _of_state(str(row.values[0])) for row in table(text, values=1)}


def _of_state(restart: str) -> str:
    kind, _, rest = restart.partition("\n")
    definition, change = CHANGES[kind if kind in CHANGES else "STRUCT"]
    lines = (rest if kind in CHANGES else restart).splitlines()
    added = [line[2:] for line in lines if line.startswith("+")]
    body = "\n".join(lines[len(added) :])
    return (HEAD + OF_STATE).format(
        definition="\n".join([definition, *added]),
        restart=_function(body, "state"),
        change=change,
    )


def of_optimizer(text: str) -> dict[str, str]:
    """Programs whose schedules read the step of the optimizer."""
    return {
        str(row.id): (HEAD + OF_OPTIMIZER).format(
            definition=RECORD,
            restart=_function(str(row.values[0]), "optimizer"),
        )
        for row in table(text, values=1)
    }


def _function(body: str, parameter: str) -> str:
    return f"def restart({parameter}):\n    {body}" if "\n" not in body else body


RESTARTS = of_state("""
== restored as it was stored
return serialization.from_state_dict(state, serialization.to_state_dict(state))
== replaced
return state.replace(step=0)
== replaced by a partial application
return functools.partial(state.replace, step=0)()
== replaced in a plain dataclass
PLAIN
return dataclasses.replace(state, step=0)
== replaced with a dict
return state.replace(**{"step": 0})
== mapped by the type of the leaf
return jax.tree_util.tree_map(lambda leaf: 0 if isinstance(leaf, int) else leaf, state)
== mapped by path
def restart(state):
    fresh = lambda path, leaf: 0 if path[-1] == jax.tree_util.GetAttrKey("step") and len(path) == 1 else leaf
    return jax.tree_util.tree_map_with_path(fresh, state)
== unflattened
def restart(state):
    leaves, structure = jax.tree_util.tree_flatten(state)
    return jax.tree_util.tree_unflatten(structure, [0, *leaves[1:]])
== unflattened by the structure
def restart(state):
    leaves, structure = jax.tree_util.tree_flatten(state)
    leaves[0] = 0
    return structure.unflatten(leaves)
== set by name
PLAIN
def restart(state):
    setattr(state, "step", 0)
    return state
== set by a name at run time
PLAIN
def restart(state, field="step"):
    setattr(state, field, 0)
    return state
== set behind a frozen class
def restart(state):
    object.__setattr__(state, "step", 0)
    return state
== made by its type
return type(state)(step=0, optimizer=state.optimizer)
== made anew
return State(0, state.optimizer)
== made of its fields
return State(**{**vars(state), "step": 0})
== made by a function that is given the class
def made(cls, *fields):
    return cls(*fields)

def restart(state):
    return made(State, 0, state.optimizer)
== made by map
return list(map(State, [0], [state.optimizer]))[0]
== made by a method of the class
+
+     @classmethod
+     def begin(cls, optimizer):
+         return cls(0, optimizer)
return State.begin(state.optimizer)
== restored from a changed dict
def restart(state):
    stored = serialization.to_state_dict(state)
    stored["step"] = 0
    return serialization.from_state_dict(state, stored)
== replaced by a method that is looked up
return getattr(state, "replace")(step=0)
== replaced out of a pickle
return pickle.loads(pickle.dumps(state.step)) and type(state)(0, state.optimizer)
== replaced where nothing tells what it is
class Box:
    pass

def restart(state, name="state"):
    box = Box()
    setattr(box, name, state)
    return dataclasses.replace(box.state, step=0)
== replaced by a method of its own
+
+     def replace(self, **fields):
+         return dataclasses.replace(self, **{"step": 0, **fields})
return state.replace(optimizer=state.optimizer)
== a record that is replaced
RECORD
return state._replace(step=0)
== a record that is made of a list
RECORD
return State._make([0, state.optimizer])
== an heir of the class
PLAIN
class Later(State):
    pass

def restart(state):
    return Later(0, state.optimizer)
== the optimizer made anew
return state.replace(optimizer=optim.Momentum(0.1).create(state.optimizer.target))
== the optimizer mapped
def restart(state):
    fresh = lambda leaf: jnp.zeros_like(leaf) if jnp.ndim(leaf) == 0 else leaf
    return state.replace(optimizer=jax.tree_util.tree_map(fresh, state.optimizer))
""")
"""A state of the program's own."""

OPTIMIZER_RESTARTS = of_optimizer("""
== replaced
return optimizer.replace(state=optimizer.state.replace(step=0))
== replaced by a function of dataclasses
return dataclasses.replace(optimizer, state=dataclasses.replace(optimizer.state, step=0))
== replaced by a state that is made
def restart(optimizer):
    state = optim.OptimizerState(step=0, param_states=optimizer.state.param_states)
    return optimizer.replace(state=state)
== replaced by the first state
return optimizer.replace(state=optimizer.optimizer_def.init_state(optimizer.target))
== mapped
def restart(optimizer):
    fresh = lambda leaf: jnp.zeros_like(leaf) if jnp.ndim(leaf) == 0 else leaf
    return jax.tree_util.tree_map(fresh, optimizer)
== mapped by path
def restart(optimizer):
    fresh = lambda path, leaf: 0 * leaf if "step" in jax.tree_util.keystr(path) else leaf
    return jax.tree_util.tree_map_with_path(fresh, optimizer)
== unflattened
def restart(optimizer):
    leaves, structure = jax.tree_util.tree_flatten(optimizer)
    return jax.tree_util.tree_unflatten(structure, [0 * leaves[0], *leaves[1:]])
== unflattened by the structure
def restart(optimizer):
    leaves, structure = jax.tree_util.tree_flatten(optimizer)
    leaves[0] = 0 * leaves[0]
    return structure.unflatten(leaves)
== set behind the frozen class
def restart(optimizer):
    object.__setattr__(optimizer.state, "step", 0)
    return optimizer
== restored from a changed dict
def restart(optimizer):
    stored = serialization.to_state_dict(optimizer)
    stored["state"]["step"] = 0
    return serialization.from_state_dict(optimizer, stored)
== averaged with a later one
def restart(optimizer):
    later = train_step(optimizer, (np.ones((5, 3)), np.ones((5, 2))))
    return jax.tree_util.tree_map(lambda one, other: (one + other) / 2, optimizer, later)
""")
"""The optimizer's own step."""

IN_STEP = of_state("""
== another field
+     note: Any = 0
return state.replace(note=1)
== as it is
return state
== of other parameters
return state.replace(optimizer=state.optimizer.replace(target=state.optimizer.target))
== on the host
return jax.tree_util.tree_map(np.asarray, jax.device_get(state))
== restored from the bytes of another
return serialization.from_bytes(State(step=0, optimizer=optim.Momentum(0.1).create(state.optimizer.target)), serialization.to_bytes(state))
== kept in a list
def restart(state):
    kept = []
    kept.append(state)
    print(len(kept), isinstance(state, State), file=io.StringIO())
    return kept[-1]
== compiled
return jax.jit(lambda state: state)(state)
""")
"""States of which nothing sets the step, whatever becomes of them: their schedules go into the transformation."""
