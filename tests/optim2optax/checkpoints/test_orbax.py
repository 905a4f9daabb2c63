"""Checkpoints of Orbax, as they are written and read by it. First, what is none."""

import random
import shutil
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax.training import checkpoints

from optim2optax.checkpoints import CheckpointError, orbax
from optim2optax.checkpoints.contents import contents
from optim2optax.checkpoints.files import checkpoints_at, newest_at
from tests.optim2optax.checkpoints.test_converting import converted, folder, tree_of
from tests.optim2optax.checkpoints.test_loading import fresh

__all__ = ["folder"]
pytestmark = pytest.mark.usefixtures("legacy_wheel")


@pytest.fixture
def legacy(folder: Path) -> Path:
    """The legacy checkpoint in a folder, as a program would have stored it with Orbax."""
    tree = tree_of(folder / "checkpoint_3")
    ocp.PyTreeCheckpointer().save(folder / "old_3", tree)
    return folder / "old_3"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("_METADATA", "{}", r"step cannot be read by Orbax \(\w+: "),
        ("checkpoint", 'model_checkpoint_path: "model-1"', "step is of TensorFlow"),
    ],
)
def test_a_folder_that_is_none(
    name: str, content: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "step").mkdir()
    (tmp_path / "step" / name).write_text(content)

    with pytest.raises(CheckpointError, match=why):
        orbax.read(tmp_path / "step")


# Orbax's own, of reads that it gave up
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_damaged_ones_are_an_error_at_worst(legacy: Path, tmp_path: Path) -> None:
    files = [path for path in legacy.rglob("*") if path.is_file()]
    numbers = random.Random(0)
    for name in sorted(path.relative_to(legacy) for path in files):
        damaged = tmp_path / "damaged"
        shutil.copytree(legacy, damaged)
        content = bytearray((damaged / name).read_bytes())
        content[numbers.randrange(len(content) or 1) :] = b""
        (damaged / name).write_bytes(content)
        with suppress(CheckpointError):
            contents(orbax.read(damaged))
        shutil.rmtree(damaged)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("mine")
    with pytest.raises(CheckpointError, match="cannot be written"):
        orbax.write(tmp_path / "new", {"bad": object()})

    assert [path.name for path in tmp_path.rglob("*")] == ["new", "mine"]


def test_a_failed_write_of_which_a_part_is_still_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, tried = shutil.rmtree, []

    def removed(folder: Path, ignore_errors: bool = False) -> None:
        tried.append(folder)
        if len(tried) > 2:
            remove(folder, ignore_errors)
        elif not ignore_errors:
            raise OSError(39, "Directory not empty")

    monkeypatch.setattr(shutil, "rmtree", removed)
    with pytest.raises(CheckpointError, match=r'new cannot be written: .*"bytes'):
        orbax.write(tmp_path / "new", {**KINDS, "key": b"of mine"})

    assert list(tmp_path.iterdir()) == []


def test_a_step_with_several_items(tmp_path: Path) -> None:
    for name in ("optimizer", "ema"):
        (tmp_path / "5" / name).mkdir(parents=True)
        (tmp_path / "5" / name / "_METADATA").write_text("{}")

    items = [tmp_path / "5" / name for name in ("ema", "optimizer")]
    assert checkpoints_at(tmp_path) == items
    why = r"5 has 2 checkpoints in it: give one of them, such as .*/5/ema\."
    with pytest.raises(CheckpointError, match=why):
        newest_at(tmp_path)


def test_what_is_in_it(legacy: Path) -> None:
    known = contents(orbax.read(legacy))

    [found] = known.found
    assert (found.path, found.step) == ("optimizer", 3)
    assert found.names == ("AdaBelief", "Adam", "LAMB")
    assert [leaf.path for leaf in known.others] == ["epoch"]


def test_its_history(legacy: Path) -> None:
    history = legacy.parent / "history"
    manager = ocp.CheckpointManager(history)
    for step in (5, 20, 100):
        manager.save(step, args=ocp.args.StandardSave({"params": {"w": np.ones(3)}}))
    manager.wait_until_finished()

    steps = [history / str(step) / "default" for step in (5, 20, 100)]
    assert checkpoints_at(history) == steps
    assert newest_at(history) == history / "100" / "default"
    assert checkpoints_at(history / "20") == [history / "20" / "default"]


@pytest.mark.parametrize("name", ["checkpoint_3", "old_3"])
def test_orbax_reads_what_is_converted(name: str, legacy: Path) -> None:
    result = converted(name, "new", "--format", "orbax")
    assert result.exit_code == 0, result.output
    like: Any = {"epoch": 0, "optimizer": fresh()}
    kind = ocp.RestoreArgs(restore_type=np.ndarray)
    kinds = jax.tree_util.tree_map(lambda _: kind, like)
    state = ocp.PyTreeCheckpointer().restore(
        legacy.parent / "new", item=like, restore_args=kinds
    )
    wanted = tree_of(legacy.parent / "checkpoint_3")["optimizer"]

    assert int(state["epoch"]) == 7
    params, adam = state["optimizer"].params, state["optimizer"].opt_state[0]
    assert int(state["optimizer"].step) == int(adam.count) == 3
    np.testing.assert_array_equal(params["kernel"], wanted["target"]["kernel"])
    kept = wanted["state"]["param_states"]["bias"]
    np.testing.assert_array_equal(adam.mu["bias"], kept["grad_ema"])


def test_today_s_flax_reads_it_too(legacy: Path) -> None:
    assert converted("old_3", "new_3", "--format", "orbax").exit_code == 0
    like: Any = {"epoch": 0, "optimizer": fresh()}
    with warnings.catch_warnings():
        # of Orbax: about shardings that nobody asked for
        warnings.simplefilter("ignore")
        state = checkpoints.restore_checkpoint(str(legacy.parent), like, prefix="new_")

    assert (int(state["epoch"]), int(state["optimizer"].step)) == (7, 3)


KINDS: Mapping[str, Any] = {
    "bfloat16": np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3),
    "float16": np.ones(3, np.float16),
    "float64": np.asarray(0.1),
    "step": np.asarray(7, np.int32),
    "is_trained": np.array([True]),
    "key": np.asarray(jax.random.PRNGKey(3)),
    "of jax": jnp.ones(4, jnp.bfloat16),
    "number": 5,
    "rate": 2.5,
    "name": "of mine",
    "nothing": None,
    "below": {"none": {}},
}


# of Orbax: about shardings that nobody asked for
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "restore", [ocp.PyTreeCheckpointer().restore, ocp.StandardCheckpointer().restore]
)
def test_every_kind_of_leaf_is_restored_as_it_was(
    restore: Callable[[Path], Any], tmp_path: Path
) -> None:
    orbax.write(tmp_path / "new", KINDS)
    found = restore(tmp_path / "new")

    assert found.keys() == KINDS.keys()
    leaves = map(jax.tree_util.tree_leaves, (found, KINDS))
    for got, wanted in zip(*leaves, strict=True):
        types = [getattr(leaf, "dtype", type(leaf)) for leaf in (got, wanted)]
        assert types[0] == types[1]
        np.testing.assert_array_equal(got, wanted)
    # though there are texts in it, so that it may be replaced by force
    assert orbax.is_nothing_else(tmp_path / "new")


def test_an_existing_one_by_force(legacy: Path) -> None:
    ocp.PyTreeCheckpointer().save(legacy.parent / "new", {"mine": np.ones(3)})

    assert converted("old_3", "new", "--format", "orbax").exit_code == 1
    assert contents(orbax.read(legacy.parent / "new")).found == ()
    assert converted("old_3", "new", "--format", "orbax", "--force").exit_code == 0
    assert contents(orbax.read(legacy.parent / "new")).found[0].step == 3


def test_what_was_there_is_kept_where_it_cannot_be_put_back(
    legacy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ocp.PyTreeCheckpointer().save(legacy.parent / "new", {"mine": np.ones(3)})
    rename = Path.rename

    def failing(source: Path, target: Path) -> Path:
        if target == legacy.parent / "new":
            raise OSError(5, "Input/output error")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(CheckpointError, match="new cannot be written: ") as error:
        orbax.write(legacy.parent / "new", {"other": np.zeros(3)})
    [kept] = legacy.parent.glob(".new.*/old")
    assert f"What was there is {kept} now." in str(error.value)
    assert ocp.PyTreeCheckpointer().restore(kept)["mine"].tolist() == [1, 1, 1]
