"""What an optimizer keeps beside the parameters is compared, too: moments, counts and steps."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from codemods import Source, migrate
from optim2optax.parity.judging.comparison import Comparison
from tests.optim2optax.parity.differences import SAME, first_difference
from tests.optim2optax.parity.scenario.sides import run_scenario, written

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """
    import jax
    import jax.numpy as jnp
    from flax import optim


    def loss(params, x):
        return jnp.mean((x @ params["w"] + params["b"] - 2.0 * x[:, :2]) ** 2)


    def create(params):
        return optim.{definition}.create(params)


    @jax.jit
    def step(optimizer, x):
        return optimizer.apply_gradient(jax.grad(loss)(optimizer.target, x))
"""
SCENARIO = """
    import jax


    def run(module):
        optimizer = module.create({"w": jax.numpy.zeros((3, 2)), "b": jax.numpy.ones(2)})
        yield {"trained": optimizer}
        for key in jax.random.split(jax.random.PRNGKey(0), 12):
            optimizer = module.step(optimizer, jax.random.normal(key, (4, 3)))
            yield {"trained": optimizer}
"""


LAST = """
def step(optimizer, x):
    optimizer = taken(optimizer, x)
    return optimizer.replace(opt_state=optimizer.tx.init(optimizer.params)) if optimizer.step == 12 else optimizer
"""


def compare(
    folder: Path, definition: str, change: Callable[[str], str] = str
) -> Comparison:
    """The program against what it is migrated to, with a change."""
    old = dedent(PROGRAM.format(definition=definition))
    [result] = migrate([Source("before.py", old.encode())])
    new = change(result.after.decode())
    return run_scenario(*written(folder, SCENARIO, old, new))


@pytest.mark.parametrize(
    ("definition", "kept"),
    [
        ("Adam(0.1)", {"step", "opt_state/0/count", "opt_state/0/mu/b", "opt_state/0/nu/w"}),
        ("Momentum(0.1)", {"step", "opt_state/0/trace/b", "opt_state/0/trace/w"}),
        ("LARS(0.1)", {"step", "opt_state/3/trace/b", "opt_state/3/trace/w"}),
    ],
)  # fmt: skip
def test_what_corresponds_is_compared(
    definition: str, kept: set[str], tmp_path: Path
) -> None:
    """The trace of LARS follows the way down in optax, where it followed the way up."""
    comparison = compare(tmp_path, definition)
    assert comparison.verdict in SAME, comparison
    compared = {leaf.leaf for leaf in comparison.leaves}
    assert {f"trained/{leaf}" for leaf in kept} <= compared


FAULTS = {
    "a count that begins at one":
        (lambda text: text.replace("(0.1)\n    )", "(0.1)\n    ).replace(step=1)"), 0, "trained/step"),
    "moments that are lost in the end":
        (lambda text: text.replace("def step(", "def taken(") + LAST, 12, "trained/opt_state/0/"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "step", "leaf"), FAULTS.values(), ids=FAULTS)
def test_a_fault_that_the_parameters_do_not_show(
    change: Callable[[str], str], step: int, leaf: str, tmp_path: Path
) -> None:
    comparison = compare(tmp_path, "Adam(0.1)", change)
    first = first_difference(comparison)
    assert first.step == step
    assert first.leaf.startswith(leaf)
    assert comparison.remarks[:1] == (
        "The parameters agree; what the optimizer keeps beside them does not.",
    )


def test_a_state_of_which_nothing_is_known_is_a_remark(tmp_path: Path) -> None:
    other = "optax.chain(optax.trace(0.0), optax.scale_by_adam(), optax.trace(0.0), optax.scale_by_learning_rate(0.1))"
    comparison = compare(
        tmp_path, "Adam(0.1)", lambda text: text.replace("optax.adam(0.1)", other)
    )
    assert comparison.verdict in SAME, comparison
    assert comparison.remarks[:1] == ("The state of the optimizer was not compared.",)
