"""The methods of the optimizer that computed gradients themselves. First, calls that are left, each with the reason."""

import pytest

from tests.codemods.analysis.test_out_of_view import COMMON
from tests.codemods.programs import OPTAX_ALONE, assert_left, migrated, result_of
from tests.generated.verdicts import verdict

PROGRAM = """
    import jax.numpy as jnp
    from flax import optim

    def train(params, x, y, rate):
        optimizer = optim.Adam(0.1).create(params)

        def loss_fn(params):
            error = x @ params["w"] - y
            return {loss}

        {step}
    """
SCALAR = "jnp.mean(error ** 2)"
PAIR = "jnp.mean(error ** 2), error"
TRIPLE = "jnp.mean(error ** 2), error, params"

LEFT = {
    "compute_gradient without a loss": (SCALAR, "loss, grad = optimizer.compute_gradient()", "FO917"),
    "optimize that is passed on": (SCALAR, "step = optimizer.optimize\n        return step(loss_fn)", "FO917"),
    "optimize with a rate by its place": (SCALAR, "optimizer, loss = optimizer.optimize(loss_fn, rate)", "FO917"),
    "another hyperparameter": (
        SCALAR,
        "optimizer, loss = optimizer.optimize(loss_fn, hyper_params=optimizer.optimizer_def.hyper_params.replace(beta1=rate))",
        "FO910",
    ),
    "optimize of copies over one axis or another": (
        SCALAR,
        "two = optimizer.replicate(axis_name='a') if rate else optimizer.replicate()\n        two, loss = two.optimize(loss_fn)",
        "FO913",
    ),
}  # fmt: skip

UNCLEAR = {
    "a pair in an expression": (PAIR, "return [optimizer.compute_gradient(loss_fn)]"),
    "a pair under two names": (PAIR, "first = second = optimizer.compute_gradient(loss_fn)"),
    "a pair in an attribute": (PAIR, "params.all = optimizer.compute_gradient(loss_fn)"),
    "a pair of which too little is taken": (PAIR, "loss, grad = optimizer.compute_gradient(loss_fn)"),
    "a pair with what is unpacked in it": ("jnp.mean(error ** 2), *params", "all = optimizer.compute_gradient(loss_fn)"),
    "at times a pair, by another statement": (
        f"{PAIR}\n            return {SCALAR}",
        "result = optimizer.compute_gradient(loss_fn)"),
    "optimize in an expression": (SCALAR, "return [optimizer.optimize(loss_fn)]"),
    "optimize without the auxiliary": (PAIR, "optimizer, loss = optimizer.optimize(loss_fn)"),
    "more than a pair": (TRIPLE, "everything = optimizer.compute_gradient(loss_fn)"),
    "more than a pair, unpacked": (TRIPLE, "loss, *more, grad = optimizer.compute_gradient(loss_fn)"),
}  # fmt: skip


@pytest.mark.parametrize(("loss", "step", "code"), LEFT.values(), ids=LEFT)
def test_what_is_left(loss: str, step: str, code: str) -> None:
    assert_left(PROGRAM.format(loss=loss, step=step), code)


@pytest.mark.parametrize(("loss", "step"), UNCLEAR.values(), ids=UNCLEAR)
def test_a_result_that_goes_anywhere_is_left(loss: str, step: str) -> None:
    assert_left(PROGRAM.format(loss=loss, step=step), "FO917")


AUXILIARY = """\
from flax import optim

from common import loss


def both(params, batch):
    return loss(params, batch), {'batch': batch}


def run(params, batches):
    optimizer = optim.Momentum(0.1).create(params)
    rows = []
    for batch in batches:
        value, more, grad = optimizer.compute_gradient(lambda p: both(p, batch))
        optimizer = optimizer.apply_gradient(grad)
        optimizer, last, _ = optimizer.optimize(lambda p: both(p, batch))
        rows += [round(float(value), 8), more, round(float(last), 8)]
    return [optimizer.target], rows
"""


@pytest.mark.usefixtures("legacy_wheel")
def test_three_targets_take_what_another_file_returns_beside_the_loss() -> None:
    found = verdict({"train.py": AUXILIARY, "common.py": COMMON})
    assert found.kind == "equal", f"{found.kind}: {found.why}"
    assert found.after["train.py"].count("has_aux=True") == 2


BOTH = """
        optimizer, loss = optimizer.optimize(loss_fn{})
        optimizer, more = optimizer.optimize(loss_fn{})
        return optimizer, loss + more
"""
SET = ", learning_rate=rate"


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [("", SET, 11), (SET, "", 12)],
    ids=["the first keeps its own", "the second does"],
)
def test_a_rate_that_one_of_two_steps_sets(first: str, second: str, line: int) -> None:
    # no number, which the second step could set again
    frame = PROGRAM.replace("Adam(0.1)", "Adam(2 * rate)")
    steps = BOTH.format(first, second).strip()
    result = result_of(frame.format(loss=SCALAR, step=steps), OPTAX_ALONE)
    assert [site.line for site in result.sites if site.code == "FO910"] == [line]


def test_a_rate_for_an_optimizer_from_elsewhere() -> None:
    result = result_of("""
        def step(optimizer: optim.Optimizer, x, rate):
            optimizer, loss = optimizer.optimize(lambda params: (x @ params).sum(), learning_rate=rate)
            return optimizer, loss
        """)
    assert [site.line for site in result.sites if site.code == "FO910"] == [4]


VALUE_AND_GRAD = "jax.value_and_grad(loss_fn)(optimizer.params)"
WITH_AUX = "jax.value_and_grad(loss_fn, has_aux=True)(optimizer.params)"
REWRITTEN = {
    "a loss": (SCALAR, "loss, grad = optimizer.compute_gradient(loss_fn)", [f"loss, grad = {VALUE_AND_GRAD}"]),
    "a loss with auxiliary":
        (PAIR, "loss, error, grad = optimizer.compute_gradient(loss_fn)", [f"(loss, error), grad = {WITH_AUX}"]),
    "loss, auxiliary and gradient in one": (
        PAIR,
        "all = optimizer.compute_gradient(loss_fn)",
        [f"(loss, aux), grad = {WITH_AUX}", "all = loss, aux, grad"],
    ),
    "all that are returned": (
        PAIR,
        "return optimizer.compute_gradient(loss_fn)",
        [f"(loss, aux), grad = {WITH_AUX}", "return loss, aux, grad"],
    ),
    "where the file has such names": (
        PAIR,
        "loss = value = loss_value = x\n        x = optimizer.compute_gradient(loss_fn)",
        [f"(loss_2, aux), grad = {WITH_AUX}", "x = loss_2, aux, grad"],
    ),
    "a step": (
        SCALAR,
        "optimizer, loss = optimizer.optimize(loss_fn)",
        [f"loss, grad = {VALUE_AND_GRAD}", "optimizer = optimizer.apply_gradients(grads=grad)"],
    ),
    "a step with a rate": (
        SCALAR,
        "optimizer, loss = optimizer.optimize(loss_fn, learning_rate=rate)",
        [
            "opt_state = optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)",
            f"loss, grad = {VALUE_AND_GRAD}",
            "optimizer = optimizer.replace(opt_state=opt_state).apply_gradients(grads=grad)",
        ],
    ),
    "a step that is returned": (
        PAIR,
        "return optimizer.optimize(loss_fn)",
        [f"(loss, aux), grad = {WITH_AUX}", "return optimizer.apply_gradients(grads=grad), loss, aux"],
    ),
    "a step with a rate under one name": (
        SCALAR,
        "result = optimizer.optimize(loss_fn, learning_rate=rate)",
        [
            "opt_state = optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)",
            f"loss, grad = {VALUE_AND_GRAD}",
            "result = optimizer.replace(opt_state=opt_state).apply_gradients(grads=grad), loss",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("loss", "step", "lines"), REWRITTEN.values(), ids=REWRITTEN)
def test_what_is_rewritten(loss: str, step: str, lines: list[str]) -> None:
    after = migrated(PROGRAM.format(loss=loss, step=step))
    assert after.endswith("".join(f"    {line}\n" for line in lines))
    assert "import jax\n" in after
