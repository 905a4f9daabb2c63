"""A weight decay that each step sets is a number in the state, as a learning rate is."""

import pytest

from tests.codemods.analysis.test_out_of_view import COMMON
from tests.generated.verdicts import verdict

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """\
import jax
import jax.numpy as jnp
from flax import optim

from common import gradients

DECAY = 0
KERNELS = optim.ModelParamTraversal(lambda path, _: path.endswith("w"))
OTHERS = optim.ModelParamTraversal(lambda path, _: not path.endswith("w"))


def schedule(step):
    return 0.1 / (1.0 + step)


def run(params, batches):
    optimizer = {made}.create(params)
    for number, batch in enumerate(batches):
        grads = gradients(optimizer.target, batch)
        {step}
    return [optimizer.target], []
"""
STEP = "optimizer = optimizer.apply_gradient({grads}, {given})"
INJECTED = "inject_hyperparams(optax.add_decayed_weights)"


def after(made: str, step: str) -> str:
    """What a program becomes that trains as before, without a warning."""
    files = {"train.py": PROGRAM.format(made=made, step=step), "common.py": COMMON}
    found = verdict(files)
    assert found.kind == "equal", f"{found.kind}: {found.why}"
    assert not found.said
    return found.after["train.py"]


DECAYING = STEP.format(grads="grads", given="weight_decay=0.1 * number")
OTHERWISE = {
    "a class at run time": ("(optim.Adam if DECAY == 0 else optim.LAMB)(0.1)", DECAYING),
    "arguments that are unpacked": ("optim.Adam(**{'learning_rate': 0.1})", DECAYING),
    "a decay that is no link of its own": ("optim.LARS(0.1)", DECAYING),
    "directions and scales": (
        "optim.WeightNorm(optim.Adam(0.1))",
        STEP.format(grads="grads", given="wn_decay=0.1 * number"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERWISE)
def test_others_keep_their_interface(name: str) -> None:
    assert INJECTED not in after(*OTHERWISE[name])


TWO = "optim.MultiOptimizer((KERNELS, optim.Adam(0.1, weight_decay=0.3)), (OTHERS, optim.Adam(0.1)))"
SET = {
    "alone": ("optim.Adam(0.1)", "weight_decay=0.1 * number"),
    "beside a rate": ("optim.Momentum()", "learning_rate=0.1 / (1 + number), weight_decay=0.2 * number"),
    "ahead of a rate": ("optim.LAMB(0.1, weight_decay=0.3)", "weight_decay=0.2, learning_rate=0.1"),
    "given by position": ("optim.Adam(0.1, 0.8, 0.99, 1e-6, 0.5)", "weight_decay=0.1 * number"),
    "from a variable": ("optim.AdaBelief(0.1, weight_decay=DECAY)", "weight_decay=0.1 * number"),
    "in several groups": (TWO, "weight_decay=0.1 * number"),
    "beside a schedule": ("optim.Adam(0.1)", "learning_rate=schedule(optimizer.state.step), weight_decay=0.1 * number"),
    "an array": ("optim.Adadelta(0.1)", "weight_decay=jnp.asarray(0.1) * number"),
}  # fmt: skip


@pytest.mark.parametrize("name", SET)
def test_it_is_set_in_the_state(name: str) -> None:
    made, given = SET[name]
    new = after(made, STEP.format(grads="grads", given=given))
    assert INJECTED in new
    assert "OptimizerDef" not in new


NAMED = """\
from flax import optim


def run(params, batches):
    optimizer = optim.Adam(0.1).create({"weight_decay": params["b"]})
    for batch in batches:
        grads = {"weight_decay": batch * optimizer.target["weight_decay"]}
        optimizer = optimizer.apply_gradient(grads, weight_decay=0.2)
    return [{"b": optimizer.target["weight_decay"]}], []
"""


def test_it_is_told_apart_from_a_parameter_of_that_name() -> None:
    found = verdict({"train.py": NAMED})
    assert found.kind == "equal", f"{found.kind}: {found.why}"
    assert "is_hyperparam, weight_decay=0.2" in found.after["train.py"]


def test_a_rate_of_optimizers_in_a_table_is_set_in_the_state() -> None:
    made = "{name: optim.Adam(0.1).create(params) for name in 'ab'}"
    step = (
        "for name in table:\n            "
        "table[name] = table[name].apply_gradient(grads, learning_rate=0.1 / (1 + number))"
    )
    program = (
        PROGRAM.replace("optimizer = {made}.create(params)", f"table = {{{made}}}")
        .replace("optimizer.target", "table['a'].target")
        .format(step=step)
    )
    found = verdict({"train.py": program, "common.py": COMMON})
    assert found.kind == "equal", f"{found.kind}: {found.why}"
    line = "table[name] = table[name].replace(opt_state=opt_state)"
    assert line in found.after["train.py"]
