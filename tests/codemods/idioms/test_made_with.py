"""Hyperparameters that are read, as the constructor was given them. First, where they have no name any more."""

import pytest

from tests.codemods.programs import files, migrated, program, project, result_of

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
STEP = "    optimizer = optimizer.apply_gradient(grads, learning_rate=rate)"
STEPS = lines(LOOP, STEP)
NOT_SAID = {
    "a variable that is set again": ("optim.Adam(base).create(params)", "base = 2 * base", PRINT),
    "an attribute that is set again": ("optim.Adam(config.base).create(params)", "config.base = 1.0", PRINT),
    "a variable of a comprehension": ("[optim.Adam(rate).create(params) for rate in rates][0]", PRINT),
    "one of two": ("optim.Adam(base if config else rates).create(params)", PRINT),
    "what is computed": ("optim.Adam(config.base()).create(params)", PRINT),
    "what has changed by the time of a call":
        ("optim.Adam(base).create(params)", lines("def show():", f"    {PRINT}", "base = 1.0", "show()")),
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
    "one of two classes": ("(optim.Adam(base) if config else optim.Momentum(base)).create(params)", "base"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "said"), SAID.values(), ids=SAID)
def test_what_an_optimizer_was_made_with(made: str, said: str) -> None:
    made = f"optimizer = {made}"
    text = READ.format(lines(made, PRINT, STEPS, "return optimizer.target"))
    assert f"    print({said})\n    {LOOP}\n" in migrated(text)


MAKE = """
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
    # by several calls
    other = "print(make(params, 2 * base).optimizer_def.hyper_params.learning_rate)"
    text = MAKE.format(other)
    assert result_of(text).after.decode() == program(text)


def test_what_is_read_alone_is_not_injected() -> None:
    text = READ.format(lines("optimizer = optim.Adam(base).create(params)", PRINT))
    after = migrated(text)
    assert "    print(base)\n" in after
    assert "inject" not in after


READ_ELSEWHERE = """
-- report
def report(optimizer):
    return optimizer.optimizer_def.hyper_params.learning_rate
-- train
from flax import optim
from report import report

LEARNING_RATE = 0.1

def train(params, grads, rates):
    optimizer = optim.Adam(LEARNING_RATE).create(params)
    for rate in rates:
        optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
        print(report(optimizer))
"""


def test_what_another_file_reads() -> None:
    results = project(files(READ_ELSEWHERE))
    assert b"    return 0.1\n" in results["report"].after
    [note] = [site.note for site in results["report"].sites if site.note]
    assert "repeats the number" in note
    assert b"optimizer_def" not in results["train"].after


WARMUP = """
    RATE = 0.3
    {head}

    def fit(optimizer, batches, rate=1e-4):
        for index, grads in enumerate(batches):
            if index < 5:
                optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
            else:
                optimizer = optimizer.apply_gradient(grads)
        return optimizer

    def main(params, batches):
        optimizer = optim.Adam({rate}).create(params)
        return fit(optimizer, batches).target
    """
NEAR = """
    def main(params, batches, rate):
        optimizer = optim.Adam(0.3).create(params)

        def step(optimizer, grads):
            return optimizer.apply_gradient(grads)

        optimizer = optimizer.apply_gradient(batches[0], learning_rate=rate)
        return step(optimizer, batches[1]).target
    """


def test_a_step_in_another_function_tells_that_its_number_is_a_copy() -> None:
    result = result_of(WARMUP.format(head="", rate="0.3"))
    after = result.after.decode()
    assert after.count("learning_rate=0.3") == 2
    assert "class Adam" not in after
    [note] = [note for site in result.sites if "change both" in (note := site.note)]
    assert note.endswith("elsewhere: change both together.")


def test_a_step_in_another_function_names_the_same_constant() -> None:
    after = migrated(WARMUP.format(head="", rate="RATE"))
    assert after.count("learning_rate=RATE") == 2
    assert "class Adam" not in after
    # but no variable that changes
    text = WARMUP.format(head="RATE = 0.1 if RATE else 0.2", rate="RATE")
    assert "learning_rate=RATE" not in migrated(text)


def test_a_step_in_another_file_has_no_copy_of_a_number() -> None:
    library = WARMUP[: WARMUP.index("    def main")].format(head="")
    train = """
        from flax import optim
        from fit import fit

        def main(params, batches):
            optimizer = optim.Adam(0.2).create(params)
            return fit(optimizer, batches).target
        """
    results = project({"fit": library, "train": train})
    assert b"0.2" not in results["fit"].after
    assert b"Adam(0.2)" in results["train"].after


def test_a_step_in_a_function_within_that_which_makes_its_optimizer() -> None:
    after = migrated(NEAR)
    assert "tree_set(optimizer.opt_state, learning_rate=0.3)" in after


REPORT = """
    def report(optimizer):
        print(optimizer.optimizer_def.hyper_params.{field})

    def main(params, batches, rate):
        optimizer = optim.Adam(0.3, beta1=0.8).create(params)
        report(optimizer)
        {step}
        return optimizer.target
    """


def test_a_rate_that_another_function_reads_is_in_the_state() -> None:
    step = "optimizer = optimizer.apply_gradient(batches[0])"
    after = migrated(REPORT.format(field="learning_rate", step=step))
    assert 'tree_get(optimizer.opt_state, "learning_rate")' in after
    assert after.count("0.3") == 1


@pytest.mark.parametrize(
    ("field", "step"),
    [
        ("learning_rate", "optimizer.apply_gradient(batches[0], learning_rate=rate)"),
        ("beta1", "optimizer.apply_gradient(batches[0])"),
    ],
)
def test_a_copy_of_a_number_in_another_function_is_told(field: str, step: str) -> None:
    result = result_of(REPORT.format(field=field, step=f"optimizer = {step}"))
    assert {site.status for site in result.sites} == {"rewritten"}
    [note] = [site.note for site in result.sites if "repeats" in site.note]
    assert note.endswith("elsewhere: change both together.")
