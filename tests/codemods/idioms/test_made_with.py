"""Hyperparameters that are read, as the constructor was given them. First, where they have no name any more."""

from __future__ import annotations

import pytest

from tests.codemods.programs import migrated, program, project, result_of

PRINT = "print(optimizer.optimizer_def.hyper_params.learning_rate)"
LOOP = "for rate in rates:"


def lines(*statements: str) -> str:
    return "\n        ".join(statements)


READ = """
    from flax import optim

    LEARNING_RATE = 0.1

    def train(params, grads, rates, base, config):
        {}
    """
STEPS = lines(
    LOOP, "    optimizer = optimizer.apply_gradient(grads, learning_rate=rate)"
)
NOT_SAID = {
    "a variable that is set again": ("optim.Adam(base).create(params)", "base = 2 * base", PRINT),
    "an attribute that is set again": ("optim.Adam(config.base).create(params)", "config.base = 1.0", PRINT),
    "a variable that is set in each turn": (
        "None",
        lines(
            "made = []",
            "for turn in rates:",
            "    made.append(optim.Adam(turn).create(params))",
            "    print(made[0].optimizer_def.hyper_params.learning_rate)",
            "optimizer = made[0]",
        ),
    ),
    "a variable of a comprehension": (
        "[optim.Adam(rate).create(params) for rate in rates][0]", PRINT,
    ),
    "one of two": ("optim.Adam(base if config else rates).create(params)", PRINT),
    "what is computed": ("optim.Adam(config.base()).create(params)", PRINT),
    "what has changed by the time of a call": (
        "optim.Adam(base).create(params)",
        lines("def show():", f"    {PRINT}", "base = 1.0", "show()"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("statements", NOT_SAID.values(), ids=NOT_SAID)
def test_what_an_optimizer_was_made_with_has_no_name(
    statements: tuple[str, ...],
) -> None:
    """Steps set other rates, so the state does not have it: one line is told, and no class is made of it."""
    made, *others = statements
    text = READ.format(lines(f"optimizer = {made}", *others, STEPS))
    result = result_of(text)
    assert result.after.decode() == program(text)
    assert {site.code for site in result.sites} <= {"FO901", "FO907", "FO911"}
    told = [site for site in result.sites if site.code == "FO907"]
    assert {site.after for site in told} == {None}


SAID = {
    "a parameter": ("optim.Adam(base).create(params)", "base"),
    "an attribute": ("optim.Adam(config.base).create(params)", "config.base"),
    "a variable of the module": ("optim.Adam(LEARNING_RATE).create(params)", "LEARNING_RATE"),
    "a number": ("optim.Adam(3e-4).create(params)", "3e-4"),
    "nothing": ("optim.Adam().create(params)", "None"),
    "one of two classes": (
        "(optim.Adam(base) if config else optim.Momentum(base)).create(params)",
        "base",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "said"), SAID.values(), ids=SAID)
def test_what_an_optimizer_was_made_with(made: str, said: str) -> None:
    text = READ.format(
        lines(f"optimizer = {made}", PRINT, STEPS, "return optimizer.target")
    )
    assert f"    print({said})\n    {LOOP}\n" in migrated(text)


MAKE = """
    from flax import optim

    def make(params, rate):
        return optim.Adam(rate).create(params)

    def train(params, grads, base, rates):
        optimizer = make(params, base)
        {}
        for rate in rates:
            optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
        return optimizer.target
    """


def test_what_a_function_is_given() -> None:
    assert "    print(base)\n" in migrated(MAKE.format(PRINT))


def test_what_a_function_is_given_by_several_calls() -> None:
    other = "print(make(params, 2 * base).optimizer_def.hyper_params.learning_rate)"
    text = MAKE.format(other)
    assert result_of(text).after.decode() == program(text)


def test_what_is_read_alone_is_not_injected() -> None:
    text = READ.format(lines("optimizer = optim.Adam(base).create(params)", PRINT))
    after = migrated(text)
    assert "    print(base)\n" in after
    assert "inject" not in after


def test_what_another_file_reads() -> None:
    results = project(
        {
            "report": """
            def report(optimizer):
                return optimizer.optimizer_def.hyper_params.learning_rate
            """,
            "train": """
            from flax import optim
            from report import report

            LEARNING_RATE = 0.1

            def train(params, grads, rates):
                optimizer = optim.Adam(LEARNING_RATE).create(params)
                for rate in rates:
                    optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
                    print(report(optimizer))
            """,
        }
    )
    assert b"    return 0.1\n" in results["report"].after
    assert b"optimizer_def" not in results["train"].after


def test_what_another_file_reads_of_an_optimizer_whose_rate_no_step_sets() -> None:
    results = project(
        {
            "report": """
            def report(optimizer):
                return optimizer.optimizer_def.hyper_params.learning_rate
            """,
            "train": """
            from flax import optim
            from report import report

            def train(params, grads, base):
                optimizer = optim.Adam(base).create(params)
                print(report(optimizer))
                return optimizer.apply_gradient(grads)
            """,
        }
    )
    read = b'optax.tree_utils.tree_get(optimizer.opt_state, "learning_rate")'
    assert b"    return " + read in results["report"].after
    assert b"optax.inject_hyperparams(" in results["train"].after
