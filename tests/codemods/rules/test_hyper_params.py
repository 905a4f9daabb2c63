"""Hyperparameters of a definition that steps are given, or that are read. First, what is left, each with the reason."""

from dataclasses import replace

import pytest

from tests.codemods.programs import OPTAX_ALONE, assert_left, left, migrated, result_of

HYPER_PARAMS = "optimizer.optimizer_def.hyper_params"
ADAM = "optim.Adam(0.1)"
HEAD = 'optim.ModelParamTraversal(lambda path, _: "head" in path)'
BODY = 'optim.ModelParamTraversal(lambda path, _: "head" not in path)'
FIRST, SECOND = f"({HEAD}, optim.Adam(0.1))", f"({BODY}, optim.Momentum(0.1))"
GROUPS = f"optim.MultiOptimizer({FIRST}, {SECOND})"
PROGRAM = """
    from flax import optim

    def train(params, grads, rate, config):
        optimizer = {}.create(params)
        {}
        return optimizer.target
    """


def step(*rates: str) -> str:
    """A step with such hyperparameters for the groups, or with that for all parameters."""
    given = rates[0] if len(rates) == 1 else f"[{', '.join(rates)}]"
    return f"optimizer = optimizer.apply_gradient(grads, hyper_params={given})"


def lines(*statements: str) -> str:
    return "\n        ".join(statements)


def new(of: str, rate: str = "rate") -> str:
    return f"{of}.replace(learning_rate={rate})"


TAKEN = f"first, second = {HYPER_PARAMS}"
LEFT = {
    "hyperparameters from elsewhere": (ADAM, step(new("config.hyper_params")), "FO910"),
    "those of another state": (ADAM, step(new("optimizer.state")), "FO910"),
    "those of a definition, made by its method":
        (ADAM, step("optimizer.optimizer_def.update_hyper_params(learning_rate=rate)"), "FO910"),
    "set in a statement before": (ADAM, lines(f"hyper_params = {new(HYPER_PARAMS)}", step("hyper_params")), "FO910"),
    "a rate that is a part of the old one": (
        ADAM.replace("0.1", "config.rate()"),
        f"optimizer = optimizer.apply_gradient(grads, learning_rate={HYPER_PARAMS}.learning_rate * 0.9)",
        "FO907",
    ),
    "one rate in a list": (ADAM, step(f"[{new(f'{HYPER_PARAMS}[0]')}]"), "FO910"),
    "one for all groups": (GROUPS, step(new(HYPER_PARAMS)), "FO910"),
    "fewer than the groups": (GROUPS, step(f"[{new(f'{HYPER_PARAMS}[0]')}]"), "FO910"),
    "more than the groups": (GROUPS, step(*(new(f"{HYPER_PARAMS}[{index}]") for index in range(3))), "FO910"),
    "those of the groups from elsewhere": (GROUPS, step(new("config[0]"), new("config[1]")), "FO910"),
    "those of the groups in names from elsewhere": (GROUPS, step(new("config"), new("rate")), "FO910"),
    "groups of which some are unpacked": (
        f"optim.MultiOptimizer({FIRST}, *[{SECOND}])",
        step(new(f"{HYPER_PARAMS}[0]"), new(f"{HYPER_PARAMS}[1]")),
        "FO910",
    ),
    "names that are set one by one": (
        GROUPS,
        lines(f"first = {HYPER_PARAMS}[0]", f"second = {HYPER_PARAMS}[1]", step(new("first"), new("second"))),
        "FO910",
    ),
    "names that are set by a loop":
        (GROUPS, lines(f"for first, second in [{HYPER_PARAMS}]:", f"    {step(new('first'), new('second'))}"), "FO910"),
    "names that are unpacked from elsewhere":
        (GROUPS, lines("first, second = config", step(new("first"), new("second"))), "FO910"),
    "those of another place": (GROUPS, lines(TAKEN, step(new("first"), new("config.second"))), "FO910"),
    "a step that keeps the rate of a group": (GROUPS, lines(TAKEN, step("first", new("second"))), "FO910"),
}  # fmt: skip


@pytest.mark.parametrize(("definition", "steps", "code"), LEFT.values(), ids=LEFT)
def test_what_is_left(definition: str, steps: str, code: str) -> None:
    assert_left(PROGRAM.format(definition, steps), code)


ELSEWHERE = {
    "read": "optimizer.optimizer_def.hyper_params.learning_rate",
    "set": "optimizer.apply_gradient(grads, hyper_params=optimizer.optimizer_def.hyper_params.replace(learning_rate=rate))",
}


@pytest.mark.parametrize("expression", ELSEWHERE.values(), ids=ELSEWHERE)
def test_those_of_an_optimizer_from_elsewhere(expression: str) -> None:
    result = result_of(f"""
        import jax

        def train(optimizer, grads, rate):
            optimizer = optimizer.apply_gradient(grads)
            return {expression}
        """)
    assert "hyper_params" in result.after.decode()
    assert "5 FO907" in left(result)


def test_the_definition_of_an_optimizer_from_elsewhere() -> None:
    after = migrated("""
        import jax

        def train(optimizer, grads, params):
            print(optimizer.optimizer_def)
            fresh = optimizer.optimizer_def.create(params)
            return optimizer.apply_gradient(grads), fresh.target
        """)
    assert "    print(optimizer.tx)\n" in after
    assert "params=params, tx=optimizer.tx" in after
    assert "optimizer.apply_gradients(grads=grads), fresh.params" in after


def test_those_that_partial_work_leaves_are_of_the_definition() -> None:
    text = PROGRAM.format(
        "optim.Adam(0.1, config.beta())", f"print({HYPER_PARAMS}.beta1)"
    )
    result = result_of(text, replace(OPTAX_ALONE, partial=True))
    assert f"    print({HYPER_PARAMS}.beta1)\n" in result.after.decode()


ONE_RATE = (
    "opt_state = optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)"
)
TAKE_STEP = (
    "optimizer = optimizer.replace(opt_state=opt_state).apply_gradients(grads=grads)"
)
REWRITTEN = {
    "a rate": (ADAM, step(new(HYPER_PARAMS)), [ONE_RATE, TAKE_STEP]),
    "a rate, by a name for the definition": (
        ADAM,
        lines("definition = optimizer.optimizer_def", step(new("definition.hyper_params"))),
        ["definition = optimizer.tx", ONE_RATE, TAKE_STEP],
    ),
    "one for each group, and then one for all": (
        GROUPS,
        lines(TAKEN, step(new("first"), new("second")), "optimizer = optimizer.apply_gradient(grads, learning_rate=rate)"),
        ["opt_state = set_learning_rates(optimizer.opt_state, rate, rate)", TAKE_STEP, ONE_RATE, TAKE_STEP],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("definition", "steps", "expected"), REWRITTEN.values(), ids=REWRITTEN
)
def test_what_is_rewritten(definition: str, steps: str, expected: list[str]) -> None:
    after = migrated(PROGRAM.format(definition, steps))
    assert "".join(f"    {line}\n" for line in expected) in after
    assert "inject_hyperparams" in after
    assert "hyper_params" not in after


def test_those_that_have_a_name() -> None:
    after = migrated("""
        from flax import optim

        def train(params, beta):
            optimizer = optim.Adam(1e-3, beta1=beta, weight_decay=1e-4).create(params)
            used = optimizer.optimizer_def.hyper_params
            print(used.learning_rate, used.beta1, f"{used.beta2}", used.weight_decay)
            return optimizer.target
        """)
    assert '    print(1e-3, beta, f"{0.999}", 1e-4)\n' in after
    assert "used" not in after


def test_those_that_have_a_name_and_are_handed_on() -> None:
    after = result_of("""
        from flax import optim

        def train(params, describe):
            optimizer = optim.Adam(1e-3).create(params)
            used = optimizer.optimizer_def.hyper_params
            return describe(used), used.beta1, optimizer.target
        """).after.decode()
    assert "used = optimizer.tx.hyper_params" in after
    assert "describe(used), used.beta1, optimizer.params" in after


CLASS = """
    class Groups(optim.MultiOptimizer):
        {}

    def train(params, grads, rate):
        optimizer = Groups({}).create(params)
        return optimizer.apply_gradient(grads, {})
    """
MADE_WITHIN = """def __init__(self, head, body):
            super().__init__((head, optim.Adam(0.1)), (body, optim.Momentum(0.1)))"""
EACH = f"hyper_params=[{new(f'{HYPER_PARAMS}[0]')}, {new(f'{HYPER_PARAMS}[1]')}]"


def test_a_class_with_its_own_number_of_groups() -> None:
    assert_left(CLASS.format(MADE_WITHIN, f"{HEAD}, {BODY}", EACH), "FO910")


def test_a_class_with_the_groups_that_it_is_given() -> None:
    after = migrated(CLASS.format("pass", f"{FIRST}, {SECOND}", EACH))
    assert "opt_state = set_learning_rates(optimizer.opt_state, rate, rate)\n" in after


def test_a_class_that_makes_its_groups() -> None:
    after = migrated(CLASS.format(MADE_WITHIN, f"{HEAD}, {BODY}", "learning_rate=rate"))
    assert f"    {ONE_RATE}\n" in after
    assert after.count("optax.inject_hyperparams(") == 2
