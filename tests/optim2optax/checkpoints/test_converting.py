"""Converted files, as today's Flax reads them. First, what is not written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result
from flax import serialization
from flax.training import checkpoints

from optim2optax.checkpoints import CheckpointError, writing
from optim2optax.cli import application
from tests.optim2optax.checkpoints.test_loading import fresh, stored

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """
import optax
from flax import jax_utils

from tests.optim2optax.checkpoints.test_loading import fresh

def create_state():
    return {"epoch": 0, "optimizer": fresh()}

def create_none():
    raise RuntimeError("no data here")

def create_less():
    return {"optimizer": fresh()}

def create_from_numbers():
    state = fresh()
    assert float(state.params["bias"].sum()) == 0.0
    return {"epoch": 0, "optimizer": state}

def create_injected():
    return {"epoch": 0, "optimizer": fresh(optax.inject_hyperparams(optax.adam)(learning_rate=0.25))}

def create_replicated():
    return {"epoch": 0, "optimizer": jax_utils.replicate(fresh())}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and a legacy checkpoint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program_of_mine.py").write_text(PROGRAM)
    stored(tmp_path / "checkpoint_3", lambda optimizer: {"epoch": 7, "optimizer": optimizer})
    return tmp_path


def converted(*arguments: str, state: str = "program_of_mine:create_state") -> Result:
    return CliRunner().invoke(application, ["checkpoint", "convert", *arguments, "--state", state])


REFUSED = {
    "the file is not there": (("none", "new"), "program_of_mine:create_state", "none does not exist"),
    "the new one is": (("checkpoint_3", "checkpoint_3"), "program_of_mine:create_state", "checkpoint_3 exists"),
    "a leaf has no place": (
        ("checkpoint_3", "new"),
        "program_of_mine:create_less",
        "`epoch` of the checkpoint has no place",
    ),
    "no function": (("checkpoint_3", "new"), "program_of_mine", "names no function"),
    "no module": (("checkpoint_3", "new"), "nothing_here:create_state", "cannot be imported from here"),
    "no such function": (("checkpoint_3", "new"), "program_of_mine:other", "has no function other"),
    "a function that fails": (
        ("checkpoint_3", "new"),
        "program_of_mine:create_none",
        "program_of_mine:create_none failed with RuntimeError: no data here",
    ),
    "no folder": (("checkpoint_3", "far/new"), "program_of_mine:create_state", "far/new cannot be written"),
}


@pytest.mark.parametrize(("arguments", "state", "why"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_written(arguments: tuple[str, str], state: str, why: str, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = converted(*arguments, state=state)

    assert (result.exit_code, why in result.output) == (1, True), result.output
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_file_that_has_appeared_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("mine")
    with pytest.raises(CheckpointError, match="new exists: choose another name, or use --force"):
        writing.write(tmp_path / "new", {"good": np.ones(3)})

    assert (tmp_path / "new").read_text() == "mine"


def test_an_array_without_a_name_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be stored"):
        writing.write(tmp_path / "new", {"good": np.ones(3), "bad": np.array(["a", "b"])})

    assert list(tmp_path.iterdir()) == []


def test_today_s_flax_reads_it(folder: Path) -> None:
    assert converted("checkpoint_3", "new_3").exit_code == 0
    like: Any = {"epoch": 0, "optimizer": fresh()}
    state = serialization.from_bytes(like, (folder / "new_3").read_bytes())
    same = checkpoints.restore_checkpoint(str(folder), like, prefix="new_")

    assert (state["epoch"], int(state["optimizer"].step), int(same["optimizer"].opt_state[0].count)) == (7, 3, 3)
    np.testing.assert_array_equal(state["optimizer"].params["bias"], same["optimizer"].params["bias"])


def test_a_state_that_takes_real_numbers_to_make(folder: Path) -> None:
    assert converted("checkpoint_3", "new", state="program_of_mine:create_from_numbers").exit_code == 0
    assert serialization.msgpack_restore((folder / "new").read_bytes())["optimizer"]["step"] == 3


def test_an_injected_rate_is_as_the_program_makes_it(folder: Path) -> None:
    assert converted("checkpoint_3", "new", state="program_of_mine:create_injected").exit_code == 0
    state = serialization.msgpack_restore((folder / "new").read_bytes())["optimizer"]["opt_state"]

    assert (state["count"], state["hyperparams"]["learning_rate"]) == (3, 0.25)


def test_the_newest_of_a_folder(folder: Path) -> None:
    stored(folder / "checkpoint_20", lambda optimizer: {"epoch": 20, "optimizer": optimizer})
    stored(folder / "checkpoint_100", lambda optimizer: {"epoch": 100, "optimizer": optimizer})
    (folder / "notes_999").write_text("mine")
    result = converted(str(folder), "new")

    assert (result.exit_code, result.output) == (0, f"new is written, from {folder / 'checkpoint_100'}.\n")
    assert serialization.msgpack_restore((folder / "new").read_bytes())["epoch"] == 100


def test_an_existing_file_by_force(folder: Path) -> None:
    (folder / "new").write_text("mine")

    assert converted("checkpoint_3", "new").exit_code == 1
    assert (folder / "new").read_text() == "mine"
    assert converted("checkpoint_3", "new", "--force").exit_code == 0
    assert serialization.msgpack_restore((folder / "new").read_bytes())["epoch"] == 7


TREE: dict[str, Any] = {
    "half": np.ones((2, 3), ml_dtypes.bfloat16),
    "none": None,
    "flag": np.array([True, False]),
    "empty": np.zeros((0, 4), np.float32),
    "number": np.float32(2.5),
    "plain": {"word": "adam", "rate": 0.5, "epoch": 3, "point": 1 - 2j, "raw": b"ab"},
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
}


@pytest.mark.parametrize("largest", [writing.LARGEST_PIECE, 16])
def test_what_is_written_is_what_flax_reads(largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LARGEST_PIECE", largest)
    writing.write(tmp_path / "new", TREE)
    tree = serialization.msgpack_restore((tmp_path / "new").read_bytes())

    assert tree["plain"] == TREE["plain"]
    assert tree["none"] is None
    for name in ("half", "flag", "empty", "number", "columns"):
        assert tree[name].dtype == TREE[name].dtype
        np.testing.assert_array_equal(tree[name], TREE[name])
