"""Converted files, as today's Flax reads them. First, what is not written."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result
from flax import serialization
from flax.training import checkpoints

from optim2optax.checkpoints import CheckpointError, carrying, serializing
from optim2optax.checkpoints.files import newest_at
from optim2optax.cli import application
from tests.optim2optax.checkpoints.test_loading import fresh, stored
from tests.optim2optax.folders import write_files

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """
import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from flax import jax_utils

from tests.optim2optax.checkpoints.test_loading import fresh

OPTIONS = argparse.ArgumentParser().parse_args()

def create_state():
    return {"epoch": 0, "optimizer": fresh()}

def create_beside():
    Path("new").write_text("mine")
    return create_state()

def create_other():
    return {"epoch": 0, "optimizer": fresh(optax.rmsprop(0.1, momentum=0.9))}

def create_none():
    raise RuntimeError("no data here")

def create_less():
    return {"optimizer": fresh()}

def create_from_numbers():
    state = fresh()
    assert float(state.params["bias"].sum()) == 0.0
    return {"epoch": 0, "optimizer": state}

RATE = jnp.asarray(0.1)
KEY = jax.random.PRNGKey(0)

def create_computed():
    return {"epoch": 0, "optimizer": fresh(optax.sgd(1e-3 * jnp.sqrt(4.0) * RATE, momentum=0.9))}

def create_split():
    # It keeps a key that it computes, and has values of its own.
    global KEY
    KEY, key = jax.random.split(KEY)
    tx = optax.inject_hyperparams(optax.adam)(jax.random.uniform(key))
    return {"epoch": 0, "optimizer": fresh(tx)}

def create_masked():
    # It closes over a tree like the parameters.
    prior = jax.tree_util.tree_map(jnp.ones_like, fresh().params)
    pull = optax.stateless(lambda updates, _: jax.tree_util.tree_map(jnp.add, updates, prior))
    return {"epoch": 0, "optimizer": fresh(optax.chain(pull, optax.trace(0.9), optax.scale(-0.1)))}

def create_functional():
    tx = optax.sgd(0.1, momentum=0.9)
    state = fresh(tx)
    return {"epoch": 0, "optimizer": (tx, state.params, state.opt_state, 0)}

def create_injected():
    return {"epoch": 0, "optimizer": fresh(optax.inject_hyperparams(optax.adam)(learning_rate=0.25))}

def create_replicated():
    return {"epoch": 0, "optimizer": jax_utils.replicate(fresh())}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and a legacy checkpoint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "program_of_mine", raising=False)
    (tmp_path / "program_of_mine.py").write_text(PROGRAM)
    of_run(tmp_path / "checkpoint_3")
    return tmp_path


def of_run(path: Path, epoch: int = 7, name: str = "Adam") -> None:
    """Store a legacy checkpoint of the program."""
    stored(path, lambda optimizer: {"epoch": epoch, "optimizer": optimizer}, name)


def tree_of(path: Path) -> Any:
    return serialization.msgpack_restore(path.read_bytes())


def converted(*arguments: str, state: str = "program_of_mine:create_state") -> Result:
    words = ["checkpoint", "convert", *arguments, "--state", state]
    return CliRunner().invoke(application, words)


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


NAMES = ("checkpoint_3", "new")
REFUSED = {
    "the file is not there": (("none", "new"), ":create_state", "none does not exist"),
    "the new one is": (("checkpoint_3", "checkpoint_3"), ":create_state", "checkpoint_3 exists"),
    "a leaf has no place": (NAMES, ":create_less", "`epoch` of the checkpoint has no place"),
    "no function": (NAMES, "", "names no function"),
    "a file": (NAMES, ".py:create_state", "program_of_mine.py is a file: write program_of_mine:create_state."),
    "no module": (NAMES, "_or_not:create_state", "cannot be imported from here"),
    "another optimizer": (NAMES, ":create_other", "--params-only takes the parameters alone"),
    "a function that fails": (NAMES, ":create_none", "create_none failed with RuntimeError: no data here"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "state", "why"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_written(
    arguments: tuple[str, str], state: str, why: str, folder: Path
) -> None:
    before = files_of(folder)
    result = converted(*arguments, state=f"program_of_mine{state}")

    assert (result.exit_code, why in result.output) == (1, True), result.output
    assert files_of(folder) == before


@pytest.mark.parametrize("format_", ["msgpack", "orbax"])
@pytest.mark.parametrize("new", ["program_of_mine.py/new", "n" * 300])
def test_a_place_that_cannot_be(new: str, format_: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    result = converted("checkpoint_3", new, "--format", format_)

    assert result.exit_code == 2, result.output
    assert f"{new} cannot be written: " in result.stderr
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == before


@pytest.mark.parametrize("format_", ["msgpack", "orbax"])
@pytest.mark.usefixtures("folder")
def test_folders_are_made_for_what_is_converted(format_: str) -> None:
    arguments = ("checkpoint_3", "far/off/new", "--format", format_)

    assert converted(*arguments, state="program_of_mine:create_less").exit_code == 1
    assert converted(*arguments, "--dry-run").exit_code == 0
    assert not Path("far").exists()
    assert converted(*arguments).exit_code == 0
    assert Path("far/off/new").exists()


@pytest.mark.parametrize("format_", ["msgpack", "orbax"])
@pytest.mark.usefixtures("folder")
def test_a_file_that_has_appeared_meanwhile(format_: str) -> None:
    state = "program_of_mine:create_beside"
    result = converted("checkpoint_3", "new", "--format", format_, state=state)

    assert result.exit_code == 1
    assert "new exists: choose another name, or use --force" in result.stderr
    assert Path("new").read_text() == "mine"


def test_an_array_without_a_name_leaves_no_file(tmp_path: Path) -> None:
    tree = {"good": np.ones(3), "bad": np.array(["a", "b"])}
    with pytest.raises(CheckpointError, match="cannot be stored"):
        serializing.write(tmp_path / "new", tree)

    assert list(tmp_path.iterdir()) == []


def test_today_s_flax_reads_it(folder: Path) -> None:
    assert converted("checkpoint_3", "new_3").exit_code == 0
    again = converted("new_3", "again", "--params-only").stderr
    assert "no legacy optimizer in it: Flax reads what is converted already" in again
    like: Any = {"epoch": 0, "optimizer": fresh()}
    state = serialization.from_bytes(like, (folder / "new_3").read_bytes())
    same = checkpoints.restore_checkpoint(str(folder), like, prefix="new_")

    assert state["epoch"] == 7
    assert int(state["optimizer"].step) == 3
    assert int(same["optimizer"].opt_state[0].count) == 3
    biases = [one["optimizer"].params["bias"] for one in (state, same)]
    np.testing.assert_array_equal(*biases)


def test_an_injected_rate_is_as_the_program_makes_it(folder: Path) -> None:
    result = converted("checkpoint_3", "new", state="program_of_mine:create_injected")
    assert result.exit_code == 0, result.output
    state = tree_of(folder / "new")["optimizer"]["opt_state"]
    assert (state["count"], state["hyperparams"]["learning_rate"]) == (3, 0.25)


def test_the_newest_of_a_folder(folder: Path) -> None:
    of_run(folder / "checkpoint_20", 20)
    of_run(folder / "checkpoint_100", 100)
    (folder / "notes_999").write_text("mine")
    result = converted(str(folder), "new")

    assert result.exit_code == 0
    assert result.output == f"new is written, from {folder / 'checkpoint_100'}.\n"
    assert tree_of(folder / "new")["epoch"] == 100


@pytest.mark.parametrize(
    "name", ["computed", "split", "from_numbers", "masked", "functional"]
)
def test_a_function_that_computes(name: str, folder: Path) -> None:
    if name not in ("split", "from_numbers"):
        of_run(folder / "checkpoint_3", name="Momentum")
    result = converted("checkpoint_3", "new", state=f"program_of_mine:create_{name}")

    assert result.exit_code == 0, result.output
    optimizer = tree_of(folder / "new")["optimizer"]
    assert optimizer["2" if name == "functional" else "step"] == 3
    parts = ("0", "1", "2") if name == "functional" else ("step", "params", "opt_state")
    assert {*optimizer} == {*parts}


def test_an_existing_checkpoint_by_force(folder: Path) -> None:
    (folder / "new").write_bytes(serialization.msgpack_serialize({"mine": 1}))

    assert converted("checkpoint_3", "new").exit_code == 1
    assert tree_of(folder / "new") == {"mine": 1}
    assert converted("checkpoint_3", "new", "--force").exit_code == 0
    assert tree_of(folder / "new")["epoch"] == 7


def folder_with(*names: str) -> Callable[[Path], None]:
    def make(new: Path) -> None:
        write_files(new, dict.fromkeys(names, "{}"))

    return make


THERE: dict[str, Callable[[Path], object]] = {
    "a file": lambda new: new.write_text("mine"),
    "a folder": folder_with("mine"),
    "a folder with a checkpoint": folder_with("_METADATA", "manifest.ocdbt", "mine"),
    "the old one": lambda new: new.symlink_to("checkpoint_3"),
    "nothing behind a link": lambda new: new.symlink_to("far"),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("there", THERE.values(), ids=THERE)
@pytest.mark.parametrize("format_", ["msgpack", "orbax"])
def test_what_force_does_not_replace(
    there: Callable[[Path], object], format_: str, folder: Path
) -> None:
    there(folder / "new")
    before = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}
    result = converted("checkpoint_3", "new", "--force", "--format", format_)

    assert result.exit_code == 1, result.output
    assert "error: new " in result.output
    assert {path: path.lstat().st_mtime_ns for path in folder.rglob("*")} == before


NEWEST = {
    "a metric": (("checkpoint_0.5", "checkpoint_1e-05"), "checkpoint_0.5"),
    "a negative one": (("checkpoint_-20", "checkpoint_-3"), "checkpoint_-3"),
    "ten behind nine": (("checkpoint_9", "checkpoint_10"), "checkpoint_10"),
    "what is left over": (
        ("checkpoint_9", "checkpoint_tmp", "checkpoint_9_gda", "checkpoint_20.orbax-checkpoint-tmp-16"),
        "checkpoint_9",
    ),
    "a word": (("checkpoint_9", "checkpoint_best"), "checkpoint_best"),
    "behind a dash": (("ckpt.msgpack-1", "ckpt.msgpack-10", "ckpt.msgpack-9"), "ckpt.msgpack-10"),
    "behind a dot": (("ckpt.9", "ckpt.10"), "ckpt.10"),
    "with an extension": (("epoch_9.ckpt", "epoch_10.ckpt"), "epoch_10.ckpt"),
    "in a folder each": (("9/state.msgpack", "10/state.msgpack"), "10/state.msgpack"),
}  # fmt: skip


@pytest.mark.parametrize(("names", "newest"), NEWEST.values(), ids=NEWEST)
def test_the_newest_is_the_one_that_flax_takes(
    names: tuple[str, ...], newest: str, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\x80")

    assert newest_at(tmp_path) == tmp_path / newest


def test_a_damaged_one_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "ckpt_9").write_bytes(b"\x80")
    (tmp_path / "ckpt_10").write_bytes(bytes(9))

    assert newest_at(tmp_path) == tmp_path / "ckpt_10"


def test_several_names_in_a_folder(tmp_path: Path) -> None:
    for name in ("actor_9", "critic_10"):
        (tmp_path / name).write_bytes(b"\x80")
    why = "checkpoints of several names in it: give one of them"
    with pytest.raises(CheckpointError, match=why):
        newest_at(tmp_path)


def test_a_link_out_of_the_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = tmp_path_factory.mktemp("runs")
    (runs / "checkpoint_9").symlink_to(folder / "checkpoint_3")
    why = "checkpoint_9 is a link out of its folder"
    with pytest.raises(CheckpointError, match=why):
        newest_at(runs)


TREE: dict[str, Any] = {
    "half": np.ones((2, 3), ml_dtypes.bfloat16),
    "none": None,
    "flag": np.array([True, False]),
    "empty": np.zeros((0, 4), np.float32),
    "number": np.float32(2.5),
    "plain": {"word": "adam", "rate": 0.5, "epoch": 3, "point": 1 - 2j, "raw": b"ab"},
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
}


@pytest.mark.parametrize("largest", [serializing.LARGEST_PIECE, 16])
def test_what_is_written_is_what_flax_reads(
    largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serializing, "LARGEST_PIECE", largest)
    serializing.write(tmp_path / "new", TREE)
    tree = tree_of(tmp_path / "new")

    assert tree["plain"] == TREE["plain"]
    assert tree["none"] is None
    for name in ("half", "flag", "empty", "number", "columns"):
        assert tree[name].dtype == TREE[name].dtype
        np.testing.assert_array_equal(tree[name], TREE[name])


BEFORE = """
import numpy as np
from flax import optim

def create_state():
    params = {{"kernel": np.zeros((3, 2), np.float32), "bias": np.zeros(2, np.float32)}}
    return {{"epoch": 0, "optimizer": optim.{definition}.create(params)}}
"""


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("Adam(0.1)", ""),
        ("Adam(0.1, beta1=0.8)", "one step moves `optimizer/target/bias` by "),
        ("Momentum(0.1)", "a step before and after cannot be compared (ValueError: "),
        ("Adam()", "a step before and after cannot be compared (AssertionError: no learning rate provided.)"),
    ],
)  # fmt: skip
def test_a_step_before_and_after(definition: str, why: str, folder: Path) -> None:
    (folder / "before.py").write_text(BEFORE.format(definition=definition))
    result = converted("checkpoint_3", "new", "--before", "before.py:create_state")

    assert result.exit_code == (1 if why else 0), result.output
    assert why in result.output
    assert ("takes the same step as before" in result.output) == (not why)
    assert (folder / "new").exists() == (not why)


@pytest.mark.parametrize("wrong", [set(), {("0",)}], ids=["right", "wrong"])
def test_a_step_of_a_trace_tells_its_sign(
    wrong: set[Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_run(folder / "checkpoint_3", name="Momentum")
    (folder / "before.py").write_text(BEFORE.format(definition="Momentum(0.1)"))
    monkeypatch.setattr(carrying, "descending", lambda *_: wrong)
    arguments = ("checkpoint_3", "new", "--before", "before.py:create_state")
    result = converted(*arguments, state="program_of_mine:create_functional")

    assert ("one step moves" in result.output) == bool(wrong), result.output
    assert result.exit_code == bool(wrong)


def test_parameters_alone(folder: Path) -> None:
    """For another optimizer: its moments and its step are fresh."""
    state = "program_of_mine:create_other"
    result = converted("checkpoint_3", "new", "--params-only", state=state)
    assert result.exit_code == 0, result.output
    old = tree_of(folder / "checkpoint_3")
    like = sys.modules["program_of_mine"].create_other()
    new = serialization.from_bytes(like, (folder / "new").read_bytes())
    bias = new["optimizer"].params["bias"]
    np.testing.assert_array_equal(bias, old["optimizer"]["target"]["bias"])
    assert new["optimizer"].step == 0
    assert new["epoch"] == 7
    moments = [one["optimizer"].opt_state for one in (new, like)]
    jax.tree_util.tree_map(np.testing.assert_array_equal, *moments)
    # they take no step that could be compared
    before = ("--before", "before.py:create_state")
    result = converted("checkpoint_3", "new", "--params-only", *before)
    assert result.exit_code == 2
    assert "--before compares a step" in result.output
