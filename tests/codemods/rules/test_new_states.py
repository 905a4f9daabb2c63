"""Optimizers that get another state: another step, or one for which their definitions keep their interface."""

import pytest

from tests.codemods.rules.test_in_turn import HEAD as START
from tests.codemods.test_alike import assert_alike

pytestmark = pytest.mark.usefixtures("legacy_wheel")

HEAD = f"""{START}
def step(optimizer):
    return optimizer.apply_gradient(gradients(optimizer.target))
"""
RESTART = """
def run():
    optimizer = optim.{}(0.1).create(start())
    for i in range(4):
        if i == 2:
            optimizer = optimizer.replace(state=optimizer.state.replace(step={}))
        optimizer = step(optimizer)
    return optimizer.target, optimizer.state.step
"""
ZERO = "jnp.zeros((), jnp.int32)"


@pytest.mark.parametrize("value", ["0", "i - 2", ZERO], ids=["number", "sum", "array"])
def test_the_step_is_set_in_both_places(value: str) -> None:
    after = assert_alike(HEAD + RESTART.format("Adam", value))
    shown = "".join(after.split()).replace(",)", ")")
    value = value.replace(" ", "")
    assert (
        f"optimizer.replace(step={value},opt_state=optax.tree_utils.tree_set("
        f"optimizer.opt_state,count={value}))"
    ) in shown
    assert "def " not in after.partition("def gradients")[0]


def test_the_step_alone_where_no_state_counts() -> None:
    after = assert_alike(HEAD + RESTART.format("Momentum", ZERO))
    assert f"optimizer.replace(step={ZERO})" in after


@pytest.mark.parametrize("name", ["Adam", "Momentum"])
@pytest.mark.parametrize(
    "made",
    ["optimizer.optimizer_def.init_state({})", "definition.init_state(params={})"],
)
def test_a_new_state_is_that_of_its_transformation(name: str, made: str) -> None:
    fresh = made.format("optimizer.target")
    after = assert_alike(HEAD + ANEW.format(name, fresh))
    initial = made.partition(".init_state")[0].replace("optimizer_def", "tx")
    shown = "".join(after.split())
    assert f"replace(step=0,opt_state={initial}.init(optimizer.params))" in shown
    assert "class " not in after


def test_a_new_state_of_another_definition_is_kept() -> None:
    fresh = "optim.Adam(0.2).init_state(start())"
    after = assert_alike(HEAD + ANEW.format("Adam", fresh))
    assert ".tx.init(" not in after


ANEW = """
def run():
    definition = optim.{}(0.1)
    optimizer = definition.create(start())
    for i in range(5):
        if i == 3:
            optimizer = optimizer.replace(state={})
        optimizer = step(optimizer)
    return optimizer.target, optimizer.state.step
"""
SKIP = """
def guarded(optimizer, is_finite):
    new = step(optimizer)
    {select}
    return new.replace(target={target}, state={state})


def run():
    optimizer = optim.Adam(0.1).create(start())
    for i in range(4):
        optimizer = guarded(optimizer, jnp.asarray(i != 1))
    return optimizer.target, optimizer.state.step
"""
TARGET = "jax.tree_util.tree_map(functools.partial(jnp.where, is_finite), new.target, optimizer.target)"
MAP = "jax.tree_util.tree_map"
WHERE = f"lambda a, b: {MAP}(lambda x, y: jnp.where(is_finite, x, y), a, b)"
PARTIAL = f"lambda a, b: {MAP}(functools.partial(jnp.where, is_finite), a, b)"
WITH_CONDITION = f"lambda ok, a, b: {MAP}(lambda x, y: jnp.where(ok, x, y), a, b)"
FUNCTION = """def select(a, b):
        return jax.tree_util.tree_map(lambda x, y: jnp.where(~is_finite, y, x), a, b)
"""
SELECTED = {
    "a lambda": (f"select = {WHERE}", "select({}, {})"),
    "a partial application within a lambda": (f"select = {PARTIAL}", "select({}, {})"),
    "a lambda that is given the condition": (f"select = {WITH_CONDITION}", "select(is_finite, {}, {})"),
    "a function": (FUNCTION, "select({}, {})"),
    "no function": ("select = functools.partial(jnp.where, is_finite)", "jax.tree_util.tree_map(select, {}, {})"),
}  # fmt: skip


@pytest.mark.parametrize(("select", "call"), SELECTED.values(), ids=SELECTED)
def test_the_state_of_one_of_two_optimizers_is_chosen(select: str, call: str) -> None:
    state = call.format("new.state", "optimizer.state")
    text = SKIP.format(select=select, target=TARGET, state=state)
    after = assert_alike(HEAD + text)
    chosen = call.format("new.opt_state", "optimizer.opt_state")
    assert f"opt_state={chosen}" in " ".join(after.split())


MADE = {
    "the mean of two, with half a step": "jax.tree_util.tree_map(lambda x, y: (x + y) / 2, {}, {})",
    "the larger of two": "jax.tree_util.tree_map(lambda x, y: jnp.maximum(x, y), {}, {})",
    "what depends on what it chooses": "jax.tree_util.tree_map(lambda x, y: jnp.where(x > 0, x, y), {}, {})",
    "chosen by what changes": "jax.tree_util.tree_map(lambda x, y: jnp.where(FLAGS.pop(), x, y), {}, {})",
}


@pytest.mark.parametrize("call", MADE.values(), ids=MADE)
def test_any_other_state_is_made_as_it_was(call: str) -> None:
    state = call.format("new.state", "optimizer.state")
    text = SKIP.format(select="", target=TARGET, state=state)
    flags = f"{HEAD}FLAGS = [True, False] * 20\n"
    assert "opt_state=" in assert_alike(flags + text)
