"""What an optimizer keeps for each parameter, and its step. First, uses that are left, then those of a state as it was."""

import re

import pytest

from tests.codemods.programs import (
    OPTAX_ALONE,
    assert_left,
    left,
    migrated,
    program,
    result_of,
)

STATES = "optimizer.state.param_states"
PROGRAM = """
    import jax
    import jax.numpy as jnp
    from flax import optim

    def create(params):
        return optim.Adam(0.1).create(params)

    def train(params, other, rate):
        optimizer, second = create(params), create(params)
        {}
        return optimizer, second
    """
LEAVES = f"jax.tree_util.tree_leaves({STATES})"


def halved(*states: str, more: str = "") -> str:
    return f"jax.tree_util.tree_map(lambda m, *_: m / 2, {', '.join(states)}{more})"


def lines(*statements: str) -> str:
    return "\n        ".join(statements)


def put(states: str, into: str = "optimizer") -> str:
    return f"{into} = {into}.replace(state={into}.state.replace(param_states={states}))"


LEFT = {
    "another method": f"optimizer = optimizer.replace(state=optimizer.state.update(param_states={halved(STATES)}))",
    "leaves by an unknown function": f"print(len(other.tree_leaves({STATES})))",
    "a map by an unknown function": put(f"other(lambda m: m / 2, {STATES})"),
    "a moment that is set": f"{STATES}['w'] = other",
    "a moment that is deleted, under a name": lines(f"states = {STATES}", "del states['w']"),
    "an inner moment that is set": f"{STATES}['layer']['w'] = other",
    "an inner moment that is set in a copy": lines(f"states = dict({STATES})", "states['layer']['w'] = other"),
    "a moment that is popped": f"{STATES}.pop('w')",
    "an inner moment that is popped in a loop": lines(f"for states in {STATES}.values():", "    states.pop('w')"),
    "an update of all moments": f"{STATES}.update(params={halved(STATES + '.params')})",
    "a field that is set by its name": "object.__setattr__(optimizer.state, 'step', 0)",
}  # fmt: skip


@pytest.mark.parametrize("statements", LEFT.values(), ids=LEFT)
def test_what_is_left(statements: str) -> None:
    assert_left(PROGRAM.format(statements), "FO906")


OTHERS = (
    "Adafactor(0.1)",
    "RMSProp(0.1)",
    "WeightNorm(optim.Adam(0.1))",
    "MultiOptimizer((other, optim.Adam(0.1)))",
)


@pytest.mark.parametrize("definition", OTHERS)
def test_the_first_leaf_of_a_state_that_optax_keeps_in_another_form_is_left(
    definition: str,
) -> None:
    text = PROGRAM.replace("Adam(0.1)", definition)
    assert_left(text.format(f"print({LEAVES}[0])"), "FO906")


KEPT = {
    "a moment that is set in a copy": lines(f"states = dict({STATES})", "states['w'] = other"),
    "leaves beside others": f"print(len(jax.tree_util.tree_leaves([{STATES}, other])))",
    "leaves of other depth": f"print(len(jax.tree_util.tree_leaves({STATES}, is_leaf=other)))",
    "the first leaf": lines(f"leaves = {LEAVES}", "print(len(leaves), leaves[0])"),
    "a list of sizes": lines(f"sizes = [leaf.size for leaf in {LEAVES}]", "print(sizes)"),
    "leaves with numbers": lines(f"for index, leaf in enumerate({LEAVES}):", "    print(index, leaf.size)"),
    "one of the largest": f"print(max({LEAVES}, key=jnp.size))",
    "leaves for want of others": f"print(max(other, default={LEAVES}))",
    "a loop that appends": lines(f"for leaf in {LEAVES}:", "    other.append(leaf)"),
    "a loop that extends": lines(f"for leaf in {LEAVES}:", "    other.extend(leaf)"),
    "a loop that inserts": lines(f"for leaf in {LEAVES}:", "    other.insert(0, leaf)"),
    "a loop that writes": lines(f"for leaf in {LEAVES}:", "    other.write(leaf.tobytes())"),
    "a map with an option": put(halved(STATES, more=", is_leaf=other")),
    "a map without states": put("jax.tree_util.tree_map(jnp.zeros_like)"),
    "a map with something else": put(halved(STATES, "other")),
    "a map of the states of another": put(halved(STATES), "second"),
    "a map with the states of another ahead": put(halved("second.state.param_states", STATES)),
    "a map of the states of another, by a name": lines(f"states = {halved(STATES)}", put("states", "second")),
    "a map that is looked at too": lines(f"states = {halved(STATES)}", "print(states)", put("states")),
    "a map for its effects": f"jax.tree_util.tree_map(print, {STATES})",
    "a map or something else": lines(f"states = {halved(STATES)}", "if rate:", "    states = other", put("states")),
    "a map, and a step": f"optimizer = optimizer.replace(state=optimizer.state.replace(step=0, param_states={halved(STATES)}))",
    "a map in a state that is not put back": f"state = optimizer.state.replace(param_states={halved(STATES)})",
    "states from elsewhere": put("other"),
    "states from a loop": lines("for states in other:", f"    {put('states')}"),
    "new states of a model of the old API, kept": f"states = {STATES}.replace(params={halved(STATES + '.params')})",
    "new states from elsewhere for such a model": f"{STATES}.replace(params=other)",
    "another field of such a model": f"{STATES}.replace(moments={halved(STATES + '.params')})",
    "a step that is computed by a call": "optimizer = optimizer.replace(state=optimizer.state.replace(step=other()))",
    "a step of a state of another": "optimizer = optimizer.replace(state=second.state.replace(step=0))",
    "a step of an optimizer without a name": "optimizer = create(params).replace(state=create(params).state.replace(step=0))",
}  # fmt: skip


def words(text: str) -> str:
    return re.sub(r"\s+|,(?=\s*\))", "", text)


@pytest.mark.parametrize("statements", KEPT.values(), ids=KEPT)
def test_what_takes_the_state_as_it_was(statements: str) -> None:
    """The definition keeps its interface, and so the state its form."""
    kept = statements.replace(".replace(state=", ".replace(opt_state=")
    kept = re.sub(r"(\w+(?:\(params\))?)\.state\b", r"\1.opt_state", kept)
    assert words(kept) in words(migrated(PROGRAM.format(statements)))


NEW_LEAVES = "jax.tree_util.tree_leaves(param_states(optimizer))"
MAPPED = "optax.tree_utils.tree_map_params(optimizer.tx, lambda m, *_: m / 2, optimizer.opt_state)"
REWRITTEN = {
    "the number of leaves": (f"print(len({LEAVES}))", [f"print(len({NEW_LEAVES}))"]),
    "leaves under a name": (
        lines(f"leaves = {LEAVES}", "print(len(leaves), max([leaf.size for leaf in leaves]))"),
        [f"leaves = {NEW_LEAVES}", "print(len(leaves), max([leaf.size for leaf in leaves]))"],
    ),
    "a map": (put(halved(STATES)), [f"optimizer = optimizer.replace(opt_state={MAPPED})"]),
    "that by a name": (
        lines(f"states = {halved(STATES + '.params')}", f"{STATES}.replace(params=states)"),
        ["optimizer.replace(opt_state=states)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "expected"), REWRITTEN.values(), ids=REWRITTEN)
def test_what_is_rewritten(statements: str, expected: list[str]) -> None:
    after = " ".join(migrated(PROGRAM.format(statements)).split())
    assert words("".join(expected)) in words(after)


TWO = """
    from flax import optim

    class Own(optim.OptimizerDef):
        pass

    def create(params, first):
        if first:
            return optim.{}(0.1).create(params)
        return {}.create(params)

    def restart(params, first):
        optimizer = create(params, first)
        {}
        return optimizer.replace(state=optimizer.state.replace(step=0))
    """
COUNTED = """\
    return optimizer.replace(
        step=0, opt_state=optax.tree_utils.tree_set(optimizer.opt_state, count=0)
    )
"""
UNCOUNTED = "return optimizer.replace(step=0)\n"
SCHEDULED = "optimizer = optimizer.apply_gradient(params, learning_rate=0.1 * 0.9**optimizer.state.step)"
STEPS = {
    "both count": ("Adam", "optim.LAMB(0.1)", "", COUNTED),
    "neither counts": ("Adagrad", "optim.Momentum(0.1)", "", UNCOUNTED),
    "neither counts but by a schedule": ("Momentum", "optim.Momentum(0.1)", SCHEDULED, COUNTED),
    "around one that counts": ("Adam", "optim.WeightNorm(optim.Adam(0.1))", "", COUNTED),
}  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "more", "expected"), STEPS.values(), ids=STEPS
)
def test_the_step_of_several(first: str, second: str, more: str, expected: str) -> None:
    text = TWO.replace("class Own(optim.OptimizerDef):", "class Own:")
    assert migrated(text.format(first, second, more)).endswith(expected)


@pytest.mark.parametrize("second", ["optim.Momentum(0.1)", "Own()"])
def test_the_step_of_several_that_differ(second: str) -> None:
    result = result_of(TWO.format("Adam", second, ""), OPTAX_ALONE)
    assert "14 FO906" in left(result)
    assert "optimizer.state.replace(step=0)" in result.after.decode()


def test_the_step_of_an_optimizer_from_elsewhere() -> None:
    text = """
        from flax import optim

        def restart(optimizer: optim.Optimizer):
            return optimizer.replace(state=optimizer.state.replace(step=0))
        """
    assert result_of(text).after.decode() == program(text)
