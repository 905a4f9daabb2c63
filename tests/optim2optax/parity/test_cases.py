"""A device that fails is a case that could not run, with one sentence that says why."""

from pathlib import Path

import jax
import pytest

from codemods import Source, migrate
from optim2optax.parity.cases import optimizer_case, scenario_case
from tests.optim2optax.parity.scenario.sides import written

pytestmark = pytest.mark.usefixtures("legacy_wheel")

HUGE = 2**47
"""As many numbers are more than any device has room for."""

WORDS = "The memory of the device does not suffice: Out of memory allocating"


@pytest.fixture(autouse=True)
def on_cpu() -> None:
    if jax.default_backend() != "cpu":
        pytest.skip("other devices say it in words of their own")


def test_an_optimizer_for_which_the_memory_does_not_suffice() -> None:
    program = f"import jax.numpy as jnp\nfrom flax import optim\n\nrule = optim.Adam(jnp.sum(jnp.zeros({HUGE})))\n"
    [result] = migrate([Source("train.py", program.encode())])
    case = optimizer_case("Adam", result.optimizers[0], steps=20, seed=0)
    assert case.comparison is None
    assert case.reason.startswith(WORDS)
    assert "\n" not in case.reason


def test_a_scenario_for_which_the_memory_does_not_suffice(tmp_path: Path) -> None:
    program = (
        f"import jax.numpy as jnp\n\ndef create():\n    return jnp.zeros({HUGE})\n"
    )
    scenario = "def run(module):\n    yield module.create()\n"
    case = scenario_case("huge", *written(tmp_path, scenario, program, program))
    assert case.comparison is None
    assert case.reason.startswith(WORDS)
    assert "--jobs" in case.reason
