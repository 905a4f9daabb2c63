"""Whole optimizers or nothing, and what the user can say about it."""

import ast
from dataclasses import replace

from codemods.rewriting.editing import Work, edit_file
from codemods.rewriting.edits import Replace
from codemods.rewriting.imports import ImportChanges
from codemods.sources.modules import Unit
from tests.codemods.programs import OPTAX_ALONE, migrated, project, result_of, statuses


def test_a_suppressed_site_stays_and_so_does_its_optimizer() -> None:
    result = result_of("""
        def train(params):
            optimizer = optim.Adam(1e-3).create(params)  # optim2optax: ignore[FO102]
            return optimizer.target

        def other(params):
            return optim.Adam(1e-3).create(params).target
        """)
    assert b"optim.Adam(1e-3).create(params)  # optim2optax" in result.after
    assert b"return optimizer.target" in result.after
    assert b"tx=optax.adam(1e-3)" in result.after
    codes: dict[str, list[str]] = {}
    for site in result.sites:
        codes.setdefault(site.status, []).append(site.code)
    assert codes["suppressed"] == ["FO102"]
    assert codes["unresolved"] == ["FO911", "FO914", "FO914"]


def test_a_helper_that_is_there_already_is_used() -> None:
    helped = migrated("""
        def create(params):
            return optim.LAMB(1e-3).create(params)
        """)
    again = migrated(f"{helped}\n\nfrom flax import optim\n\nlamb = optim.LAMB(1e-2)\n")
    for code in (helped, again):
        assert code.count("def scale_by_norm_ratio") == 1
    assert again.count("scale_by_norm_ratio()") == 3


def test_a_result_with_undefined_names_is_refused() -> None:
    """The last safety: an edit that names something that the file lacks."""
    unit = Unit("train.py", "x = 1\n", ast.parse("x = 1\n"))
    edits = (Replace((1, 4, 1, 5), "nowhere"),)
    work = Work(unit, edits, {}, "alias", ImportChanges(), "", {})

    assert problem(work) == "undefined: nowhere"
    missing = replace(work, edits=(Replace((1, 0, 1, 99), "x"),))
    assert "not found" in problem(missing)
    invalid = replace(work, edits=(Replace((1, 4, 1, 5), "("),))
    assert "ParserSyntaxError" in problem(invalid)


def problem(work: Work) -> str:
    """What is wrong with the outcome of edits."""
    found = edit_file(work)[2]
    assert found is not None
    assert found.remedy == "Please report this file."
    return found.text


CHECKED = """
    from flax import optim
    from flax.training import train_state

    def place(values):
        return [value for value in values if isinstance(value, {classes})]

    def create(params):
        return optim.Adam(0.1).create(params)
"""
STAYS = """
    def other(params):
        return optim.Momentum(0.1, unknown=1).create(params)
"""


def test_a_check_of_anything_and_all_optimizers_go_together() -> None:
    """Which ones come is not known, so there may not be some of each kind."""
    text = CHECKED.format(classes="optim.Optimizer")
    assert "isinstance(value, train_state.TrainState)" in migrated(text)
    result = result_of(text + STAYS, OPTAX_ALONE)
    assert {site.status for site in result.sites} == {"unresolved"}


def test_a_check_for_both_stays_while_any_optimizer_does() -> None:
    text = CHECKED.format(classes="(optim.Optimizer, train_state.TrainState)")
    assert "(train_state.TrainState, train_state.TrainState)" in migrated(text)
    result = result_of(text + STAYS, OPTAX_ALONE)
    assert b"(optim.Optimizer, train_state.TrainState)" in result.after
    assert b"tx=optax.adam(0.1)" in result.after
    [check] = [site for site in result.sites if site.line == 5]
    assert check.message.startswith("This may be about the optimizer at train.py:11,")


def test_what_is_chosen_or_named_in_one_program_keeps_nothing_of_another() -> None:
    chosen = """
        from typing import Type
        from flax import optim

        def make(kind: Type[optim.OptimizerDef], params):
            return kind(learning_rate=0.1).create(params)

        def train(optimizer, grads, rate):
            optimizer = optimizer.apply_gradient(grads)
            return optimizer.apply_gradient(grads, learning_rate=rate)
        """
    alone = """
        KINDS = {"adam": optim.Adam, "momentum": optim.Momentum}

        def make(name, params):
            return KINDS[name](learning_rate=0.1).create(params)

        def step(optimizer, grads):
            return optimizer.apply_gradient(grads), optimizer.target
        """
    elsewhere = """
        import torch

        def tune(model):
            optimizer = torch.optim.Adam(model.parameters())
            return optimizer.state
        """
    texts = {"chosen": chosen, "alone": alone, "elsewhere": elsewhere}
    results = project(texts, OPTAX_ALONE)

    assert not results["chosen"].changed
    assert results["alone"].changed
    assert statuses([results["alone"]]) == {"rewritten"}
    assert not results["elsewhere"].sites


def test_no_site_is_told_that_it_reaches_itself() -> None:
    """Of two uses on one line, the one that could migrate names the other, and not its own place as another."""
    result = result_of("""
        def train(params, grads):
            optimizer = optim.Adam(1e-3).create(params)
            return type(optimizer), optimizer.apply_gradient(grads)
        """)
    messages = {site.before: site.message for site in result.sites if site.line == 5}
    assert messages["type(optimizer)"].startswith("Its type is read")
    another = "Another use of the same optimizer on this line cannot"
    assert messages["optimizer.apply_gradient"].startswith(another)
    for site in result.sites:
        assert f"reaches train.py:{site.line}," not in site.message


MEETING = """
    def read(optimizer):
        return optimizer.target

    def train(params, arguments):
        definition = optim.Adam(0.1)
        first = definition.create(params)
        second = optim.WeightNorm(**arguments).create(params)
        return first.optimizer_def, read(first), read(second)
"""


def test_what_waits_for_another_optimizer_says_so() -> None:
    """The two only meet in `read`; and a definition is the same optimizer as what it creates."""
    result = result_of(MEETING, OPTAX_ALONE)
    waiting = {
        site.line: str(site.message).partition(" reaches train.py:9,")[0]
        for site in result.sites
        if site.code == "FO901" and site.line != 9
    }
    group = dict.fromkeys((7, 8, 10), "An optimizer of the same group")
    assert waiting == {4: "The same optimizer", **group}
