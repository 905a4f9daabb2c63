"""Definitions that are used without an optimizer. First, uses that are left, each with the reason."""

from __future__ import annotations

import pytest

from tests.codemods.programs import (
    OPTAX_ALONE,
    assert_left,
    migrated,
    result_of,
)

PROGRAM = """
    import jax
    from flax import optim

    def train(params, grads, rate, rest):
        definition = optim.Adam(0.1)
        state = definition.init_state(params)
        {}
    """
STEP = "params, state = definition.apply_gradient(definition.hyper_params, params, state, grads)"
RATE_STEP = STEP.replace("hyper_params,", "hyper_params.replace(learning_rate=rate),")

LEFT = {
    "init_state that is passed on": ("state = jax.jit(definition.init_state)(params)", "FO907"),
    "init_state with a keyword": ("state = definition.init_state(params=params)", "FO907"),
    "init_state with more than parameters": ("state = definition.init_state(params, grads)", "FO907"),
    "a step that is passed on": ("step = definition.apply_gradient", "FO917"),
    "a step with one argument too many": (STEP.replace("grads", "grads, rest"), "FO917"),
    "a step with all gradients unpacked": (STEP.replace("grads", "*rest"), "FO917"),
    "a step without hyperparameters": ("params, state = definition.apply_gradient(params, state, grads)", "FO917"),
    "parameters that are computed": (STEP.replace("params, state, g", "dict(params), state, g"), "FO917"),
    "hyperparameters from elsewhere": (STEP.replace("definition.hyper_params", "rest"), "FO917"),
    "a result under one name": (STEP.replace("params, state =", "result ="), "FO917"),
    "a result of which an element is taken": (f"params = {STEP.partition('= ')[2]}[0]", "FO917"),
    "the state in the place of what holds the parameters": (
        "rest.params, rest = definition.apply_gradient(definition.hyper_params, rest.params, state, grads)",
        "FO917",
    ),
    "a state from elsewhere": (STEP.replace("state, grads", "rest.state, grads"), "FO906"),
    "the state of an optimizer": (STEP.replace("state, grads", "definition.create(params).state, grads"), "FO906"),
    "a step that keeps the rate, behind one that sets it": (f"{RATE_STEP}\n        {STEP}", "FO910"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "code"), LEFT.values(), ids=LEFT)
def test_what_is_left(line: str, code: str) -> None:
    assert_left(PROGRAM.format(line), code)


WHY = {
    STEP.replace("grads", "*rest"): "This step does not get",
    STEP.replace("definition.hyper_params", "rest"): "The hyperparameters that",
    STEP.replace("params, state =", "result ="): "The result of this step",
    "rule = definition.init_param_state": "`.init_param_state` is asked of",
}


@pytest.mark.parametrize(("line", "why"), WHY.items())
def test_the_reason_that_is_given(line: str, why: str) -> None:
    sites = result_of(PROGRAM.format(line), OPTAX_ALONE).sites
    assert any(site.message.startswith(why) for site in sites)


REWRITTEN = {
    "a step": (
        STEP,
        [
            "updates, state = definition.update(grads, state, params)",
            "params = optax.apply_updates(params, updates)",
        ],
    ),
    "a step that is returned": (
        f"return {STEP.partition('= ')[2]}",
        [
            "updates, new_state = definition.update(grads, state, params)",
            "return optax.apply_updates(params, updates), new_state",
        ],
    ),
    "a step with a rate": (
        RATE_STEP,
        [
            "opt_state = optax.tree_utils.tree_set(state, learning_rate=rate)",
            "updates, state = definition.update(grads, opt_state, params)",
            "params = optax.apply_updates(params, updates)",
        ],
    ),
    "where it has all of them": (
        f"updates = param_updates = optax_updates = rest\n        {STEP}",
        [
            "updates_2, state = definition.update(grads, state, params)",
            "params = optax.apply_updates(params, updates_2)",
        ],
    ),
    "where it has a new state": (
        f"new_state = rest\n        return {STEP.partition('= ')[2]}",
        [
            "updates, new_opt_state = definition.update(grads, state, params)",
            "return optax.apply_updates(params, updates), new_opt_state",
        ],
    ),
}


@pytest.mark.parametrize(("step", "lines"), REWRITTEN.values(), ids=REWRITTEN)
def test_what_is_rewritten(step: str, lines: list[str]) -> None:
    after = migrated(PROGRAM.format(step))
    assert "    state = definition.init(params)\n" in after
    assert after.endswith("".join(f"    {line}\n" for line in lines))
