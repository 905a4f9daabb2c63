"""Small legacy programs for the tests of the application."""

LEGACY = """\
import jax
from flax import optim


def create_optimizer(params):
    return optim.Momentum(learning_rate=0.1, beta=0.9).create(params)


@jax.jit
def train_step(optimizer, grads):
    optimizer = optimizer.apply_gradient(grads)
    return optimizer, optimizer.target
"""

UNRESOLVABLE = """\
from flax import optim


def create_optimizer(name, params):
    return getattr(optim, name, None)(learning_rate=0.1).create(params)
"""

SUPPRESSED = """\
from flax import optim  # optim2optax: ignore


def first_parameters(params):
    return optim.GradientDescent(0.1).create(params).target  # optim2optax: ignore
"""

MODERN = """\
import optax
from flax.training import train_state


def create_state(params):
    return train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(1e-3))
"""

UNPARSABLE = "from flax import optim\n\ndef create(params:\n"

TRAIN = """\
from flax import optim

from steps import step


def run(params, batches):
    optimizer = optim.Adam(1e-3).create(params)
    for grads in batches:
        optimizer = step(optimizer, grads)
    return optimizer.target
"""

STEPS = """\
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)
"""

MIXED = {
    "a.py": LEGACY,
    "b.py": UNRESOLVABLE,
    "c.py": SUPPRESSED,
    "d.py": UNPARSABLE,
    "e.py": MODERN,
}
"""One of every kind."""
