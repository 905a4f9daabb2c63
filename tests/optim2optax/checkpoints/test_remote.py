"""Checkpoints at addresses, in the file system in memory that `fsspec` has. First, what is refused."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import orbax.checkpoint as ocp
import pytest
from click.testing import CliRunner
from flax import serialization

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.cli import application
from tests.optim2optax.checkpoints.test_converting import converted, folder, tree_of
from tests.optim2optax.checkpoints.test_loading import fresh

__all__ = ["folder"]
HISTORY = {"checkpoint_9", "checkpoint_10"}
pytestmark = pytest.mark.usefixtures("legacy_wheel")


@pytest.fixture
def memory(folder: Path) -> Iterator[Any]:
    """A file system in memory, which has the checkpoint of a folder and what is in a history."""
    system = fsspec.filesystem("memory")
    system.pipe("/run/old", (folder / "checkpoint_3").read_bytes())
    for step in (9, 10):
        tree = {**tree_of(folder / "checkpoint_3"), "epoch": step}
        content = serialization.msgpack_serialize(tree)
        system.pipe(f"/run/history/checkpoint_{step}", content)
    yield system
    system.rm("/", recursive=True)


REFUSED: dict[str, tuple[tuple[str, ...], int, str]] = {
    "nothing there": (("memory://run/none", "new"), 1, "memory://run/none does not exist"),
    "no such protocol": (("nowhere://run/old", "new"), 1, "nowhere://run/old cannot be read (ValueError: Protocol not known"),
    "its package is missing": (("s3://run/old", "new"), 1, "s3://run/old cannot be read: Install s3fs"),
    "what is read": (("memory://run/old", "memory://run/old", "--force"), 1, "memory://run/old exists: choose"),
    "what holds it": (("memory://run/old", "memory://run/", "--force"), 1, "memory://run exists: choose"),
    "what is there": (("checkpoint_3", "memory://run/history/checkpoint_9"), 1, "exists: choose another name"),
    "no checkpoint": (("checkpoint_3", "memory://run/mine", "--force"), 1, "memory://run/mine exists: choose another name"),
    "a folder of Orbax": (("checkpoint_3", "memory://run/new", "--format", "orbax"), 2, "one file can be written"),
    "a whole folder": (("--all", ".", "memory://run/new"), 2, "one file can be written"),
    "a name that leads out": (("memory://bad", "new"), 1, "has a name that leads out of its folder"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "why"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_written(
    arguments: tuple[str, ...], code: int, why: str, memory: Any, folder: Path
) -> None:
    memory.pipe("/run/mine", b"mine")
    memory.store["/bad/x/../../../checkpoint_1"] = memory.store["/run/old"]
    before = {name: memory.cat_file(name) for name in memory.find("/")}
    result = converted(*arguments)

    assert (result.exit_code, why in result.stderr) == (code, True), result.output
    assert {name: memory.cat_file(name) for name in memory.find("/")} == before
    names = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert names == {"checkpoint_3", "program_of_mine.py"}


def test_without_fsspec(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    result = converted("gs://run/old", "new")

    assert result.exit_code == 1
    assert "gs://run/old cannot be read: fsspec is missing: install" in result.stderr
    assert not (folder / "new").exists()


def test_a_file_that_is_sent_in_part_is_not_there(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(_: Any, source: str, target: str, **__: Any) -> None:
        memory.pipe(target, Path(source).read_bytes()[:50])
        raise TimeoutError("no answer")

    monkeypatch.setattr(type(memory), "put_file", cut_off)
    before = memory.find("/")
    result = converted("checkpoint_3", "memory://run/new")

    assert result.exit_code == 2, result.output
    assert "memory://run/new cannot be written" in result.stderr
    assert memory.find("/") == before


def test_from_and_to_an_address(memory: Any) -> None:
    result = converted("memory://run/history", "memory://run/new")

    told = "memory://run/new is written, from memory://run/history/checkpoint_10.\n"
    assert (result.exit_code, result.output) == (0, told)
    assert serialization.msgpack_restore(memory.cat_file("/run/new"))["epoch"] == 10
    assert converted("memory://run/old", "memory://run/new").exit_code == 1
    assert converted("memory://run/old", "memory://run/new", "--force").exit_code == 1
    names = {name.rpartition("/")[2] for name in memory.find("/run")}
    assert names == {"old", "new", *HISTORY}


def test_a_dry_run_sends_nothing(memory: Any) -> None:
    assert converted("memory://run/old", "memory://run/new", "--dry-run").exit_code == 0
    assert not memory.exists("/run/new")


def test_all_of_a_folder_and_one_of_orbax(memory: Any, folder: Path) -> None:
    tree = tree_of(folder / "checkpoint_3")
    ocp.PyTreeCheckpointer().save(folder / "orbax", tree)
    memory.put(str(folder / "orbax"), "/run/of_orbax", recursive=True)

    assert converted("--all", "memory://run/history", "out").exit_code == 0
    assert {path.name for path in (folder / "out").iterdir()} == HISTORY
    assert converted("memory://run/of_orbax", "new").exit_code == 0
    assert tree_of(folder / "new")["optimizer"]["step"] == 3


@pytest.mark.usefixtures("memory")
def test_a_program_loads_it_itself() -> None:
    like: Any = {"epoch": 0, "optimizer": fresh()}
    state = load_legacy_checkpoint("memory://run/history", like)

    assert (state["epoch"], int(state["optimizer"].step)) == (10, 3)
    with pytest.raises(CheckpointError, match="does not exist"):
        load_legacy_checkpoint("memory://none", fresh())


@pytest.mark.usefixtures("memory")
def test_what_is_at_an_address() -> None:
    def inspected(option: str, *addresses: str) -> str:
        words = ["checkpoint", "inspect", option, *addresses]
        return CliRunner().invoke(application, words).stdout

    history, none = "memory://run/history", "memory://run/none"
    files = json.loads(inspected("--output-format=json", history, none))["files"]
    steps = [f"{history}/checkpoint_{step}" for step in (9, 10)]
    assert [file["path"] for file in files] == [*steps, none]
    told = inspected("--diff", history, "memory://run/old")
    assert told == "epoch is 10, then 7\n"
