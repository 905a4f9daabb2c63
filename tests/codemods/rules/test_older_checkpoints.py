"""Where an optimizer is created that is restored somewhere, the report says what reads checkpoints from before the migration.

With `--old-checkpoints`, the program does; first, what it leaves.
"""

from __future__ import annotations

import pytest

from codemods import Options, Source, migrate
from tests.codemods.programs import migrated, result_of

WANTED = Options(old_checkpoints=True)

PROGRAM = """
    import flax
    from flax import optim, serialization
    from flax.training import checkpoints

    def create(params):
        return optim.Adam(0.1).create(params)

    def train(params, directory, data):
        optimizer = create(params)
        {line}
        return optimizer
    """
SILENT = (
    "checkpoints.save_checkpoint(directory, optimizer, 1)",
    "data = serialization.to_bytes(optimizer)",
    "params = serialization.from_bytes(params, data)",
    "print(checkpoints.latest_checkpoint(directory))",
)
TOLD = (
    "optimizer = checkpoints.restore_checkpoint(directory, optimizer)",
    "optimizer, epoch = checkpoints.restore_checkpoint(directory, (optimizer, 0))",
    "optimizer = serialization.from_bytes(optimizer, data)",
    "optimizer = flax.serialization.from_state_dict(optimizer, serialization.msgpack_restore(data))",
)


@pytest.mark.parametrize("line", SILENT)
def test_nothing_is_said_of_what_restores_no_optimizer(line: str) -> None:
    sites = result_of(PROGRAM.replace("{line}", line)).sites
    assert not [site.note for site in sites if "checkpoint" in site.note]


@pytest.mark.parametrize("line", TOLD)
def test_both_ways_are_offered(line: str) -> None:
    [site] = [
        site for site in result_of(PROGRAM.replace("{line}", line)).sites if site.note
    ]

    assert (site.line, site.note.partition(",")[0]) == (
        6,
        "It is restored at train.py:10",
    )
    assert "`optim2optax checkpoint convert`" in site.note
    assert (
        "`optim2optax.checkpoints.loading.load_legacy_checkpoint(path, state)`"
        in site.note
    )


def test_only_the_optimizer_that_is_restored_is_concerned() -> None:
    result = result_of("""
        from flax import optim
        from flax.training import checkpoints

        def train(params, directory, grads):
            first = optim.Adam(0.1).create(params)
            second = optim.Adam(0.1).create(params)
            second = checkpoints.restore_checkpoint(directory, second)
            return first.apply_gradient(grads), second.apply_gradient(grads)
        """)
    assert {site.line for site in result.sites if site.note} == {6}


RESTORING = """
    import jax
    from flax import optim, serialization
    from flax.training import checkpoints

    def create(params):
        return {definition}.create({arguments})

    def restore(params, directory, data):
        optimizer = create(params)
        return {restored}
    """
RESTORE = "checkpoints.restore_checkpoint(directory, optimizer)"


def restoring(
    definition: str = "optim.Adam(0.1)",
    restored: str = RESTORE,
    arguments: str = "params",
) -> str:
    return RESTORING.format(
        definition=definition, restored=restored, arguments=arguments
    )


OF_OTHERS = {
    "LARS, whose trace has the other sign": restoring("optim.LARS(0.1)"),
    "Adafactor, which keeps placeholders": restoring("optim.Adafactor(0.1)"),
    "WeightNorm, which has a state within": restoring(
        "optim.WeightNorm(optim.Adam(0.1))"
    ),
    "MultiOptimizer, which has several": restoring(
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: True), optim.Adam(0.1)))"
    ),
}
LEFT = {
    **OF_OTHERS,
    "from_bytes": restoring(restored="serialization.from_bytes(optimizer, data)"),
    "from_state_dict": restoring(
        restored="serialization.from_state_dict(optimizer, data)"
    ),
    "what may be another function": restoring(
        restored="(checkpoints.restore_checkpoint if data else serialization.from_bytes)(optimizer, data)"
    ),
    "a focus": restoring(
        arguments="params, optim.ModelParamTraversal(lambda path, _: True)"
    ),
    "a definition that keeps its interface": restoring(
        restored="checkpoints.restore_checkpoint(directory, optimizer), optimizer.optimizer_def.init_param_state(params)"
    ),
    "one that was replicated by its own method": restoring().replace(
        "optimizer = create(params)", "optimizer = create(params).replicate()"
    ),
    "a name that means something else": restoring() + "\n    traverse_util = None\n",
    "one of another class beside it": restoring(
        restored="checkpoints.restore_checkpoint(directory, (optimizer, optim.LARS(0.1).create(params)))"
    ),
}


@pytest.mark.parametrize("program", LEFT.values(), ids=LEFT)
def test_a_call_is_left(program: str) -> None:
    without, wanted = result_of(program), result_of(program, WANTED)

    assert wanted.after == without.after
    [note] = [site.note for site in wanted.sites if "It is restored at" in site.note]
    assert "`optim2optax checkpoint convert` writes it anew" in note
    assert "(`--old-checkpoints` leaves this call: " in note
    assert not any("--old-checkpoints" in site.note for site in without.sites)


def test_a_name_says_why() -> None:
    notes = [
        site.note
        for site in result_of(
            OF_OTHERS["LARS, whose trace has the other sign"], WANTED
        ).sites
    ]
    assert any(
        "(`--old-checkpoints` leaves this call: it may restore LARS)" in note
        for note in notes
    )


PARTS = """
    from flax import optim
    from flax.training import checkpoints

    def train(params, directory, batches):
        optimizer = optim.Adam(0.1).create(params)
        optimizer = checkpoints.restore_checkpoint(directory, optimizer)
        for grads in batches:
            optimizer = optimizer.apply_gradient(grads)
        return optimizer.target
    """


def test_a_call_that_restores_the_parts_of_an_optimizer_is_left() -> None:
    without, wanted = (
        Options(style="functional"),
        Options(style="functional", old_checkpoints=True),
    )
    result = result_of(PARTS, wanted)

    assert b"opt_state" in result.after
    assert result.after == result_of(PARTS, without).after
    assert any(
        "leaves this call: the optimizer is in parts" in site.note
        for site in result.sites
    )


def test_without_the_option_nothing_is_added_and_the_note_names_it() -> None:
    result = result_of(restoring())

    assert (
        b"return checkpoints.restore_checkpoint(directory, optimizer)" in result.after
    )
    assert b"restore_old_or_new" not in result.after
    [note] = [site.note for site in result.sites if site.note]
    assert note.endswith("; with `--old-checkpoints`, the program loads it itself.")


def test_what_restores_no_optimizer_is_left() -> None:
    program = restoring(restored="checkpoints.restore_checkpoint(directory, params)")
    assert result_of(program, WANTED).after == result_of(program).after


CALLS = {
    "by position": (
        "checkpoints.restore_checkpoint(directory, optimizer)",
        "directory, optimizer",
    ),
    "by name": (
        "checkpoints.restore_checkpoint(ckpt_dir=directory, target=optimizer)",
        "ckpt_dir=directory, target=optimizer",
    ),
    "with more arguments": (
        "checkpoints.restore_checkpoint(directory, optimizer, step=3, prefix='m_')",
        "directory, optimizer, step=3, prefix='m_'",
    ),
    "in a tuple": (
        "checkpoints.restore_checkpoint(directory, (optimizer, 0))",
        "directory, (optimizer, 0)",
    ),
}


@pytest.mark.parametrize(("call", "arguments"), CALLS.values(), ids=CALLS)
def test_the_call_is_wrapped(call: str, arguments: str) -> None:
    result = result_of(restoring(restored=call), WANTED)

    after = (
        " ".join(result.after.decode().split()).replace("( ", "(").replace(" )", ")")
    )
    assert f"restore_old_or_new(checkpoints.restore_checkpoint, {arguments})" in after
    assert ("FO606", "an optimizer is restored as it was") in {
        (site.code, site.message) for site in result.sites
    }
    assert not any(site.note for site in result.sites)


def test_a_function_by_its_own_name_stays_imported() -> None:
    after = migrated(
        """
        from flax import optim
        from flax.training.checkpoints import restore_checkpoint as load

        def restore(params, directory):
            return load(directory, optim.Adam(0.1).create(params))
        """,
        WANTED,
    )
    assert "from flax.training.checkpoints import restore_checkpoint as load\n" in after
    assert "restore_old_or_new(\n        load,\n        directory," in after


def test_a_name_of_a_helper_that_means_something_else_is_avoided() -> None:
    after = migrated(
        f"{restoring()}\n    def is_old(run):\n        return run\n", WANTED
    )

    assert "def flax_is_old(stored):" in after
    assert "if flax_is_old(stored):" in after


def test_a_dataclass_with_an_optimizer_is_told_of() -> None:
    program = """
        from typing import Any

        from flax import optim, struct
        from flax.training import checkpoints

        @struct.dataclass
        class State:
            optimizer: Any

        def restore(params, directory):
            return checkpoints.restore_checkpoint(directory, State(optim.Adam(0.1).create(params)))
        """
    [note] = [site.note for site in result_of(program).sites if site.note]

    assert note.endswith("; with `--old-checkpoints`, the program loads it itself.")
    assert "restore_old_or_new" in migrated(program, WANTED)


def test_only_the_fields_of_the_optimizers_in_view_are_named() -> None:
    after = migrated(restoring("optim.Momentum(0.1)"), WANTED)

    assert '"TraceState": {"trace": "momentum"},' in after
    assert "ScaleByAdamState" not in after


def test_a_second_run_changes_nothing() -> None:
    after = result_of(restoring(), WANTED).after
    [again] = migrate([Source("train.py", after)], WANTED)

    assert (again.after, again.sites) == (after, ())
    assert b"flax.optim" not in after
