"""Where an optimizer is created that is restored somewhere, the report says what reads checkpoints from before the migration."""

from __future__ import annotations

import pytest

from tests.codemods.programs import result_of

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

    assert note.startswith("It is restored at train.py:11, where a checkpoint from ")
