"""Whole folders of checkpoints, and two checkpoints side by side."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from flax.training import checkpoints

from optim2optax.cli import application
from tests.optim2optax.checkpoints.test_converting import converted, folder, of_run
from tests.optim2optax.checkpoints.test_loading import fresh, stored

__all__ = ["folder"]
pytestmark = pytest.mark.usefixtures("legacy_wheel")


@pytest.fixture
def runs(folder: Path) -> Path:
    """A folder with a history, and with what is left of a checkpoint that was being written."""
    (folder / "runs").mkdir()
    for step in (9, 10):
        of_run(folder / "runs" / f"checkpoint_{step}", step)
    (folder / "runs" / "checkpoint_tmp").write_bytes(b"")
    for name in ("notes.txt", "config_11.json", "events.out.tfevents.1600000000.me.1"):
        (folder / "runs" / name).write_text("mine")
    return folder / "runs"


def test_a_whole_folder(runs: Path) -> None:
    result = converted("--all", "runs", "out/optax")

    assert result.exit_code == 0, result.output
    assert result.output.count("\n") == 2
    names = {path.name for path in Path("out/optax").iterdir()}
    assert names == {"checkpoint_9", "checkpoint_10"}
    like: Any = {"epoch": 0, "optimizer": fresh()}
    folder = str(Path("out/optax").absolute())
    state = checkpoints.restore_checkpoint(folder, like)
    assert state["epoch"] == 10


def test_a_whole_folder_with_one_that_is_broken(runs: Path) -> None:
    (runs / "checkpoint_9").write_bytes(b"")
    result = converted("--all", "runs", "out")

    assert result.exit_code == 1
    assert "runs/checkpoint_9 is empty or cut off" in result.stderr
    assert {path.name for path in Path("out").iterdir()} == {"checkpoint_10"}


@pytest.mark.parametrize("new", ["runs", "checkpoint_3"])
def test_a_whole_folder_to_where_it_cannot_go(new: str, runs: Path) -> None:
    before = {path.name for path in runs.iterdir()}
    result = converted("--all", "runs", new)

    assert result.exit_code == 1
    assert f"{new} is no other folder to write to" in result.stderr
    assert {path.name for path in runs.iterdir()} == before


def test_all_of_a_file(runs: Path) -> None:
    told = converted("--all", "checkpoint_3", "out").stderr
    assert "checkpoint_3 is no folder with checkpoints" in told


@pytest.mark.usefixtures("runs")
def test_a_dry_run_writes_nothing(folder: Path) -> None:
    def there() -> set[Path]:
        return {path for path in folder.rglob("*") if "__pycache__" not in str(path)}

    before = there()
    one = converted("--dry-run", "checkpoint_3", "new")
    several = converted("--dry-run", "--all", "runs", "out")

    assert one.exit_code == 0
    assert one.output == "new would be written, from checkpoint_3.\n"
    assert several.exit_code == 0
    assert several.output.count(" would be written, from ") == 2
    assert there() == before


def compared(*arguments: str) -> Result:
    words = ["checkpoint", "inspect", "--diff", *arguments]
    return CliRunner().invoke(application, words)


def test_what_differs(folder: Path) -> None:
    def other(optimizer: Any) -> Any:
        kernel = optimizer.target["kernel"] + np.float32(0.5)
        target = {"kernel": kernel, "bias": np.ones(3, np.float32)}
        changed = optimizer.replace(target=target)
        return {"epoch": 8, "optimizer": changed, "more\x1b": 1}

    stored(folder / "other", other)
    result = compared("checkpoint_3", "other")

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "epoch is 7, then 8",
        "optimizer/target/bias is (2,) float32, then (3,) float32",
        "optimizer/target/kernel differs by 0.5 at most",
        "more\\x1b is only in the second",
    ]
    told = compared("--output-format=json", "checkpoint_3", "other").stdout
    [*_, kernel, _] = json.loads(told)["differences"]
    assert kernel["path"] == "optimizer/target/kernel"
    assert round(kernel["largest"], 4) == 0.5


@pytest.mark.usefixtures("folder")
def test_nothing_differs_and_what_cannot_be_compared() -> None:
    result = compared("checkpoint_3", "checkpoint_3")

    assert (result.exit_code, result.stdout) == (0, "nothing differs\n")
    assert compared("checkpoint_3").exit_code == 2
    assert compared("checkpoint_3", "none").exit_code == 1
