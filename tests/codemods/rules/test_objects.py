"""What is done with an optimizer beside its steps: parts that are replaced, `create` as a value, questions about its state."""

from textwrap import indent

import pytest

from tests.codemods.programs import (
    OPTAX_ALONE,
    assert_left,
    changes,
    left,
    migrated,
    project,
    result_of,
)

REPLACED = """
    def train(params, other, grads, fields):
        definition = optim.Adam(0.1)
        optimizer = definition.create(params)
        optimizer = {}
        return optimizer.apply_gradient(grads).target
    """
KEPT = {
    "fields that are unpacked": ("optimizer.replace(**fields)", "FO904"),
    "fields by position": ("optimizer.replace(fields)", "FO904"),
    "the definition": ("optimizer.replace(optimizer_def=optim.Momentum(0.1))", "FO907"),
    "a state from elsewhere": ("optimizer.replace(state=fields['state'])", "FO906"),
    "what replaces, as a value": ("fields(optimizer.replace)", "FO916"),
}


def squeezed(code: str) -> str:
    """Code without its layout."""
    return "".join(code.split()).replace(",)", ")")


@pytest.mark.parametrize(("value", "code"), KEPT.values(), ids=KEPT)
def test_what_cannot_be_replaced_is_left(value: str, code: str) -> None:
    result = result_of(REPLACED.format(value), OPTAX_ALONE)
    assert {*left(result)} == {f"6 {code}"}
    assert {site.status for site in result.sites} == {"unresolved"}


def test_parts_are_replaced_under_their_new_names() -> None:
    both = "optimizer.replace(target=other, state=definition.init_state(other))"
    new = "optimizer.replace(params=other, step=0, opt_state=definition.init(other))"
    assert squeezed(f"optimizer = {new}\n") in squeezed(migrated(REPLACED.format(both)))


def test_parameters_that_were_renamed_by_hand_are_no_site() -> None:
    result = result_of("""
        def restart(optimizer: optim.Optimizer, params):
            optimizer = optimizer.replace(params=params)
            return optimizer.target
        """)
    lines = [
        "    optimizer = optimizer.replace(params=params)",
        "    return optimizer.params",
    ]
    assert result.after.decode().splitlines()[-2:] == lines
    assert 4 not in {site.line for site in result.sites}


CREATED = """
    import jax
    from flax import optim

    def definition_for(params, target=None):
        return optim.Adam(0.1)

    def train(params, target, grads, run):
        optimizer = {}
        return optimizer.apply_gradient(grads).target
    """


@pytest.mark.parametrize("value", ["run({}, params)", "run(params, {})"])
def test_create_as_the_value_of_something_unknown_is_a_function(value: str) -> None:
    after = migrated(CREATED.format(value.format("optim.Adam(0.1).create")))
    made = "lambda params, tx=optax.adam(0.1): train_state.TrainState.create("
    assert made in " ".join(after.split())


def test_create_as_a_value_is_a_function_of_parameters() -> None:
    """Their name is none of those that the definition reads."""
    made = (
        "jax.jit(lambda initial_params: train_state.TrainState.create(apply_fn=None, "
        "params=initial_params, tx=definition_for(params, target)))(params)"
    )
    value = "jax.jit(definition_for(params, target).create)(params)"
    after = migrated(CREATED.format(value))
    assert squeezed(f"optimizer = {made}\n") in squeezed(after)


ASKED = """
    def resume(params, path, log):
        optimizer = optim.Adam(0.1).create(params)
    {}
        return optimizer, start
    """
DIFFERENT = {
    "other branches": """
        if isinstance(optimizer.state, (list, tuple)):
            start = int(optimizer.state[0].step)
        else:
            start = 0
    """,
    "one branch": """
        start = int(optimizer.state.step)
        if isinstance(optimizer.state, (list, tuple)):
            start = int(optimizer.state[0].step)
    """,
}
SAME = """
        if isinstance(optimizer.state, (list, tuple)):
            start = int(optimizer.state[0].step)
            log(start)
        else:
            start = int(optimizer.state.step)
            log(start)
    """


@pytest.mark.parametrize("branches", DIFFERENT.values(), ids=DIFFERENT)
def test_a_question_about_the_parts_of_a_state_is_left(branches: str) -> None:
    text = ASKED.replace("optim.Adam(", "optim.Adafactor(").format(branches)
    assert_left(text, "FO906")


def test_a_question_with_equal_answers_goes() -> None:
    new = migrated(ASKED.format(SAME))
    lines = "start=int(optimizer.step)log(start)returnoptimizer,start"
    assert squeezed(new).endswith(lines)
    assert "isinstance" not in new


STAYING = {
    "a comment in it": (
        SAME.replace(
            "log(start)\n        else", "log(start)  # of the first\n        else"
        ),
        """
    if isinstance(optimizer.opt_state, (list, tuple)):
        start = int(optimizer.step)
        log(start)  # of the first
    else:
""",
    ),
    "in a loop": (
        "\n        for _ in log:" + indent(SAME, "    "),
        """
    for _ in log:
        if isinstance(optimizer.opt_state, (list, tuple)):
            start = int(optimizer.step)
""",
    ),
    "in a line of its own": (
        """
        if isinstance(optimizer.state, tuple): start = optimizer.state[0].step
        else: start = optimizer.state.step
    """,
        """
    if isinstance(optimizer.opt_state, tuple): start = optimizer.step
    else: start = optimizer.step
""",
    ),
}


@pytest.mark.parametrize(("branches", "lines"), STAYING.values(), ids=STAYING)
def test_a_question_with_equal_answers_stays_where_there_is_more_to_it(
    branches: str, lines: str
) -> None:
    assert lines in migrated(ASKED.format(branches))


TAKEN = """
    def train(params, grads, rate):
        optimizer = optim.Adam(0.1).create(params)
        {}
        return optimizer.target
    """


SET_AHEAD = """
== whose name is taken
  opt_state = None
- optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
+ optimizer = optimizer.replace(
+     opt_state=optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)
+ ).apply_gradients(grads=grads)
== an attribute of the new one
- params = optimizer.apply_gradient(grads, learning_rate=rate).target
+ opt_state = optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)
+ params = optimizer.replace(opt_state=opt_state).apply_gradients(grads=grads).params
== a method of the new one
- optimizer = optimizer.apply_gradient(grads, learning_rate=rate).replace(target=params)
+ optimizer = optimizer.replace(
+     opt_state=optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)
+ ).apply_gradients(grads=grads).replace(params=params)
== behind another statement
- rate = rate / 2; optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
+ rate = rate / 2; optimizer = optimizer.replace(
+     opt_state=optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)
+ ).apply_gradients(grads=grads)
"""


@pytest.mark.parametrize(("before", "after"), changes(SET_AHEAD))
def test_a_rate_is_set_ahead_of_the_step(before: str, after: str) -> None:
    text = TAKEN.format(indent(before, 8 * " ").strip())
    assert squeezed(after) in squeezed(migrated(text))


FOCUSED = ["params, kernels", "params, focus=kernels", "focus=kernels, target=params"]


@pytest.mark.parametrize("arguments", FOCUSED)
def test_a_focus_is_a_partition(arguments: str) -> None:
    after = migrated(f"""
        def train(params, grads):
            kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
            optimizer = optim.Adam(0.1).create({arguments})
            return optimizer.apply_gradient(grads)
        """)
    assert "params=params, tx=partition_by_path((kernels, optax.adam(0.1)))" in after


@pytest.mark.parametrize(
    ("read", "kept"),
    [
        ("print(state.step, state.param_states)", False),
        ("print(state.step.item())", False),
        ("print(state.step)\n    return state", False),
        ("print(state.step)", True),
        ("print(f'step {int(state.step)}', state.step > 10)", True),
    ],
)
def test_a_state_that_is_kept_for_its_step_is_the_train_state(
    read: str, kept: bool
) -> None:
    after = migrated(f"""
def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    state = optimizer.state
    optimizer = optimizer.apply_gradient(grads)
    {read}
""")
    assert ("    state = optimizer\n" in after) is kept


def test_a_state_that_other_files_may_read_is_no_train_state() -> None:
    kept = """
        optimizer = optim.Adam(0.1).create({})
        state = optimizer.state
        print(state.step)
        """
    reading = "import train\n\nprint(train.state.param_states)\n"
    assert b"state = optimizer\n" in project({"train": kept})["train"].after
    both = project({"train": kept, "main": reading})
    assert b"state = optimizer\n" not in both["train"].after


def test_the_step_of_a_replicated_optimizer_is_an_array_already() -> None:
    after = migrated("""
        from flax import jax_utils, optim

        def train(params, grads):
            optimizer = jax_utils.replicate(optim.Adam(0.1).create(params))
            first = optimizer.state.step[0].item()
            second = jax_utils.unreplicate(optimizer.state.step).item()
            third = jax_utils.unreplicate(optimizer).state.step.item()
            return first, second, third
        """)
    assert (
        "    first = optimizer.step[0].item()\n"
        "    second = jax_utils.unreplicate(optimizer.step).item()\n"
        "    third = jax_utils.unreplicate(optimizer).step.item()\n"
    ) in after


def test_the_rate_alone_may_change_something_as_it_is_computed() -> None:
    step = "optimizer = optimizer.apply_gradient(grads=grads, learning_rate=next(rate))"
    after = migrated(TAKEN.format(step))
    assert "learning_rate=next(rate)" in after
    assert ".apply_gradients(grads=grads)" in after


CALLED = """
    def train(params, grads, rest, more):
        optimizer = optim.Momentum(0.1).create(params)
        {0}
        return optimizer
"""
MISCALLED = {
    "a creation with too many": ("optimizer = optim.Adam(0.1).create(params, None, 3)", "FO905", "too many positional"),
    "a focus from elsewhere":
        ("optimizer = optim.Adam(0.1).create(params, focus=rest[0])", "FO915", "this `focus` comes from"),
    "a step with a rate of None":
        ("optimizer = optimizer.apply_gradient(grads, learning_rate=None)", "FO910", "sets the learning rate to None"),
    "a step with two rates": (
        "optimizer = optimizer.apply_gradient(grads, learning_rate=0.1, hyper_params=more)",
        "FO910",
        "sets a hyperparameter twice",
    ),
    "a partial step with a rate": (
        "optimizer = more(functools.partial(optimizer.apply_gradient, learning_rate=0.1))",
        "FO916",
        "instead of being called",
    ),
    "copies as a value": ("optimizer = more(optimizer.replicate)", "FO916", "instead of being called"),
    "a step that is set": ("optimizer.state.step = 3", "FO905", "`.step` is assigned to"),
    "a step of a group that is set": ("optimizer.state[0].step = 3", "FO905", "`.step` is assigned to"),
    "parameters that are set": ("optimizer.target = rest", "FO905", "`.target` is assigned to"),
    "the class that all definitions share": ("optim.OptimizerDef(more)", "FO908", "is an abstract class"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "code", "message"), MISCALLED.values(), ids=MISCALLED)
def test_calls_that_legacy_optimizers_would_not_take_are_left(
    line: str, code: str, message: str
) -> None:
    result = result_of(CALLED.format(line), OPTAX_ALONE)
    assert line in result.after.decode()
    assert f"5 {code}" in left(result)
    [site] = [site for site in result.sites if (site.line, site.code) == (5, code)]
    assert message in site.message
    assert site.remedy


def test_a_step_goes_to_and_fro_between_two_names() -> None:
    text = """
        def train(params, grads):
            optimizer = optim.Adam(0.1).create(params)
            step = optimizer.apply_gradient
            other = step
            step = other
            return step(grads)
        """
    after = migrated(text)
    assert "lambda grads, state=optimizer: state.apply_gradients(grads=grads)" in after
