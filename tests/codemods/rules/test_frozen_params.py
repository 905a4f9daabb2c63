"""Frozen parameters in the place of those of a model, which are plain dicts today."""

from typing import Any

import pytest

from codemods import FileResult, Options, Source, migrate

HEAD = """\
import flax
import jax
import jax.numpy as jnp
from flax import linen as nn
from flax import optim


"""
TRAIN = f"""{HEAD}\
def run(model=nn.Dense(1), x=jnp.ones((2, 3))):
    variables = jax.jit(model.init)(jax.random.PRNGKey(0), x)
    _, params = variables.pop("params")
    optimizer = optim.Adam(0.1).create(params)
    pretrained = {{"kernel": jnp.ones((3, 1)), "bias": jnp.zeros(1)}}
    optimizer = optimizer.replace(target=flax.core.freeze(pretrained))

    def loss_fn(params):
        return jnp.sum(model.apply({{"params": params}}, x))

    grads = jax.grad(loss_fn)(optimizer.target)
    return optimizer.apply_gradient(grads).target["kernel"]
"""

FITTING = {
    "where they were frozen before": "optimizer = optim.Adam(0.1).create(flax.core.freeze(load()))",
    "of another function": "optimizer = optim.Adam(0.1).create(lab.freeze(load()))",
}
UNKNOWN = {
    "of parameters that are given": "def train(optimizer: optim.Optimizer):\n    ",
    "of parameters from elsewhere": "optimizer = optim.Adam(0.1).create(load())\n",
}


def run(program: str) -> FileResult:
    [result] = migrate([Source("train.py", program.encode())], Options(modernize=True))
    return result


def test_what_replaces_the_params_of_a_model_is_a_plain_dict() -> None:
    result = run(TRAIN)
    after = result.after.decode()
    assert "optimizer.replace(params=flax.core.unfreeze(pretrained))" in after
    assert not any(site.note for site in result.sites)
    assert trained(after) == pytest.approx(0.9)
    frozen = after.replace("unfreeze(pretrained)", "freeze(pretrained)")
    with pytest.raises(ValueError, match="FrozenDict"):
        trained(frozen)


def trained(program: str) -> float:
    module: dict[str, Any] = {}
    exec(program, module)
    return float(module["run"]().max())


@pytest.mark.parametrize("made", FITTING.values(), ids=FITTING)
def test_what_fits_stays(made: str) -> None:
    freeze = "lab.freeze" if "lab" in made else "flax.core.freeze"
    result = run(f"{HEAD}{made}\noptimizer = optimizer.replace(target={freeze}(x))\n")
    assert result.after.endswith(b"optimizer.replace(params=%s(x))\n" % freeze.encode())
    assert not any("frozen" in str(site.note) for site in result.sites)


@pytest.mark.parametrize("made", UNKNOWN.values(), ids=UNKNOWN)
def test_what_may_not_fit_is_told(made: str) -> None:
    step = "optimizer = optimizer.replace(target=flax.core.freeze(x))\n"
    result = run(f"{HEAD}{made}{step}")
    assert b"replace(params=flax.core.freeze(x))" in result.after
    [note] = [str(site.note) for site in result.sites if "frozen" in str(site.note)]
    assert note.startswith("If a model made the parameters that these replace")
