"""The prefilter may let a file through in vain; it may never hold back one that the engine would act on."""

import pytest

from codemods import Source, migrate
from codemods.sources.prefilter import mentions_legacy

HELD_BACK = {
    "optax with a variable called optimizer": "import optax\noptimizer = optax.adam(1e-3)\n",
    "flax and an optimizer": "import flax\nfrom x import optimizer\n",
    "the modern method": "state = state.apply_gradients(grads=grads)\n",
    "torch alone": "import torch.optim\n",
    "empty": "",
}


@pytest.mark.parametrize("program", HELD_BACK.values(), ids=HELD_BACK)
def test_holds_back(program: str) -> None:
    assert not mentions_legacy(program.encode())


@pytest.mark.parametrize(
    "program",
    [
        "from flax import optim\n",
        "from flax import (\n    linen as nn,\n    optim as optimizers,\n)\n",
        "import flax\ndefinition = flax.optim.Adam(1e-3)\n",
        "import flax.optim as fo\n",
        "from flax.optim.base import Optimizer\n",
        "import flax\ndefinition = getattr(flax, 'optim').Adam(1e-3)\n",
        "import flax as f\ndefinition = f . optim . Adam(1e-3)\n",
        "def step(state, grads):\n    return state.apply_gradient(grads, learning_rate=0.1)\n",
        "def step(optimizer, grads):\n    update = optimizer.apply_gradient\n    return update(grads)\n",
        "from flax.traverse_util import ModelParamTraversal\n",
        "from flax import optim\r\n",
    ],
)
def test_lets_through(program: str) -> None:
    assert mentions_legacy(program.encode())


def test_nothing_held_back_has_sites() -> None:
    """The engine agrees: without a file that passes, there is nothing to report."""
    program = b"import jax, optax, flax\n\ndef step(state, grads):\n    return state.apply_gradients(grads=grads)\n"
    assert not mentions_legacy(program)
    [result] = migrate([Source("step.py", program)])
    assert result.sites == ()
