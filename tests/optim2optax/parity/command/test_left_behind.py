"""What a command leaves behind, files and lines, is compared where that is asked for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flax import serialization

from optim2optax.parity.command.left_behind import compare_left_behind
from optim2optax.parity.command.outputs import LeftBehind, left_behind
from optim2optax.parity.command.runs import CommandError
from optim2optax.parity.command.verdict import FLOAT32_GATE
from optim2optax.parity.judging.comparison import Verdict
from tests.optim2optax.parity.command.commands import compared
from tests.optim2optax.parity.differences import SAME, first_difference

PROGRAM = """
import json
import time

import jax.numpy as jnp
import numpy as np
from flax import optim

optimizer = optim.Momentum(0.1).create({"w": jnp.arange(3.0)})
for step in range(12):
    optimizer = optimizer.apply_gradient({"w": optimizer.target["w"] - 0.3})
    print(f"step {step}: loss {float(jnp.sum(optimizer.target['w'] ** 2)):.4f} of model, {time.time():.6f} s")
accuracy = float(jnp.mean(optimizer.target["w"]))
with open("metrics.json", "w") as file:
    json.dump({"accuracy": accuracy, "started": time.time_ns() % 1000003, "name": "run"}, file)
"""
WANTED = {"files": ["*.json"], "lines": [r"loss [\d.]+ of"]}


@pytest.mark.usefixtures("legacy_wheel")
def test_a_wrong_metric(tmp_path: Path) -> None:
    """The updates are right."""
    wrong = ("accuracy = float(", "accuracy = 1.000001 * float(")
    found = compared(tmp_path, PROGRAM, wrong, **WANTED)
    assert found.steps == 12
    assert first_difference(found).leaf == "metrics.json: accuracy"


@pytest.mark.thorough
@pytest.mark.usefixtures("legacy_wheel")
def test_what_rounding_explains_or_varies_is_no_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, PROGRAM, **WANTED)
    assert found.verdict in SAME, found
    assert found.remarks[-1].startswith("metrics.json: started")
    varies = "from run to run of the old side, so nothing is proven of"
    assert varies in found.remarks[-1]


@pytest.mark.usefixtures("legacy_wheel")
def test_a_file_that_the_command_does_not_write(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"the old side writes no file train\.py"):
        compared(tmp_path, PROGRAM, files=["train.py"])


def test_a_line_that_is_not_printed() -> None:
    with pytest.raises(LookupError, match="prints no line with accuracy"):
        left_behind(Path(), "loss 0.1", 0, (), ["accuracy"])


def write(folder: Path, value: float, word: str) -> None:
    """A file of each kind, with a number and a word in each."""
    array: Any = np.full((2, 2), value)
    folder.mkdir()
    np.savez(folder / "a.npz", array=array, word=np.array(word))
    np.save(folder / "a.npy", array)
    (folder / "a.json").write_text(json.dumps({"found": [value, word]}))
    rows = [json.dumps({"found": found}) for found in (value, word)]
    (folder / "a.jsonl").write_text("\n".join(rows))
    (folder / "a.csv").write_text(f"loss,name\n{value!r},{word}\n")
    packed = serialization.to_bytes({"params": {"w": array}, "name": word})
    (folder / "a.msgpack").write_bytes(packed)
    (folder / "a.txt").write_text(f"the {word} has a loss of {value!r}\n")


def left(folder: Path, value: float, word: str = "model") -> dict[str, LeftBehind]:
    """What is read of a file of each kind, by its name."""
    write(folder, value, word)
    names = [path.name for path in sorted(folder.iterdir())]
    return {name: left_behind(folder, "", 0, [name]) for name in names}


def differ(old: LeftBehind, new: LeftBehind, again: LeftBehind | None = None) -> bool:
    """Whether two sides do, of which the old one leaves something, in another run as well."""
    found = compare_left_behind(old, new, again or old)
    return found.verdict is Verdict.DIFFERENT


def test_files_of_every_kind(tmp_path: Path) -> None:
    old, near = left(tmp_path / "old", 0.1), left(tmp_path / "near", 0.1 + 1e-10)
    far, other = left(tmp_path / "far", 0.1001), left(tmp_path / "other", 0.1, "nobody")
    for name, found in old.items():
        assert not differ(found, near[name]), name
        assert differ(found, far[name]), name
        # there are no words in it
        assert differ(found, other[name]) is (name != "a.npy"), name
        assert differ(found, {}), name
        assert not differ(found, far[name], far[name]), name


def lines(*texts: str) -> LeftBehind:
    return left_behind(Path(), "\n".join(texts), 0, (), ["loss"])


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ("loss 0.1234", "loss 0.1235", False),
        ("loss 1.50e-05", "loss 1.5e-05", True),
        ("epoch 3 loss nan", "epoch 3 loss nan", True),
        ("epoch 3 loss nan", "epoch 3 loss 1.0", False),
        ("epoch 3, loss 1.0", "epoch 4, loss 1.0", False),
        ("train loss 1.0", "test loss 1.0", False),
    ],
)
def test_lines_with_numbers(old: str, new: str, equal: bool) -> None:
    assert differ(lines(old), lines(new)) is not equal


def test_what_varies_from_run_to_run_proves_nothing() -> None:
    old, again = lines("loss 1.0", "loss 2.0"), lines("loss 1.0", "loss 3.0")
    found = compare_left_behind(old, old, again)
    assert found.verdict is Verdict.IDENTICAL
    assert "from run to run of the old side" in found.remarks[-1]
    assert compare_left_behind(old, again, again).verdict is Verdict.IDENTICAL


def test_a_last_digit_that_rounding_in_float32_may_change() -> None:
    old = lines("loss 0.1234")
    for new, equal in (("0.1235", True), ("0.1236", False), ("0.12341", True)):
        found = compare_left_behind(old, lines(f"loss {new}"), old, FLOAT32_GATE)
        assert (found.verdict is not Verdict.DIFFERENT) is equal, found
