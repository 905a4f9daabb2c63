"""Looking into checkpoints that the real old Flax wrote. First, files that are none."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import Contents, contents
from optim2optax.checkpoints.flax_msgpack import read
from optim2optax.checkpoints.listing import as_text, inspect
from optim2optax.cli import application
from optim2optax.legacy import legacy_flax

pytestmark = pytest.mark.usefixtures("legacy_wheel")
PARAMS = {
    "dense": {"kernel": np.ones((3, 2), np.float32), "bias": np.zeros(2, np.float32)}
}


def written(tree: Any, path: Path) -> Path:
    """A file as the old Flax writes it; `tree` is given `flax.optim` to make what is in it."""
    with legacy_flax() as flax:
        path.write_bytes(flax.serialization.to_bytes(tree(flax.optim)))
    return path


def looked_into(tree: Any, path: Path) -> Contents:
    return contents(read(written(tree, path / "checkpoint_1")))


PIECES = b"\x83\xb9__msgpack_chunked_array__\xc3\xa5shape\x81\xa10\x02\xa6chunks\x82"
LETTER = b"\xc7\x0b\x01\x93\x91\x01\xa4int8\xc4\x01"
TRUTH = LETTER.replace(b"int8", b"bool") + b"\1"
NO_CHECKPOINTS = {
    "nothing": (b"", "is empty or cut off"),
    "text": (b"hello\n", r"is no checkpoint of Flax \(a text\)"),
    "zeros": (bytes(9), "something follows the checkpoint, 8 bytes"),
    "an array of objects": (b"\xc7\x08\x01\x93\x90\xa1O\xc4\x02ab", "an array of unknown type 'O'"),
    "an array with fewer bytes than its shape says": (LETTER.replace(b"\x91\x01", b"\x91\x05") + b"a", "another number of bytes"),
    "an array that is larger than the file": (b"\xc9\x7f\xff\xff\xff\x01\x93", "is empty or cut off"),
    "pieces in another order": (PIECES + b"\xa11" + LETTER + b"a\xa10" + LETTER + b"b", "in another order than their numbers"),
    "pieces of several types": (PIECES + b"\xa10" + LETTER + b"a\xa11" + TRUTH, "whose pieces are none, or do not belong together"),
    "a code that msgpack has not": (b"\x81\xa1a\xc1", "the code 0xc1"),
    "a complex number of texts": (b"\xc7\x05\x02\x92\xa11\xa12", "a complex number that is none"),
    "a type that Flax has not": (b"\xd4\x63a", "unknown type 99"),
    "pieces without an order": (b"\x82" + PIECES[1:PIECES.index(b"\xa5shape")] + b"\xa6chunks\x81\xa13\xc0", "an array whose pieces are not numbered"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "why"), NO_CHECKPOINTS.values(), ids=NO_CHECKPOINTS
)
def test_what_is_no_checkpoint(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_1"
    path.write_bytes(content)

    with pytest.raises(CheckpointError, match=why):
        read(path)


NUMBERS = st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | NUMBERS | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@settings(max_examples=50, deadline=None)
@given(TREES)
def test_what_msgpack_packs_is_read(tree: Any) -> None:
    assume(not isinstance(tree, dict) or {*tree} != {"name", "fields", "values"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint_1"
        path.write_bytes(msgpack.packb(tree))

        assert read(path) == tree


NO_NAMED_TUPLES: dict[str, dict[str, Any]] = {
    "other fields than values": {"name": "Stats", "fields": {"0": "mean", "1": "var"}, "values": {"0": 1.0}},
    "fields that are no names": {"name": "Stats", "fields": {"0": 1}, "values": {"0": 1.0}},
    "a field twice": {"name": "Stats", "fields": {"0": "mean", "1": "mean"}, "values": {"0": 1.0, "1": 2.0}},
}  # fmt: skip


@pytest.mark.parametrize("tree", NO_NAMED_TUPLES.values(), ids=NO_NAMED_TUPLES)
def test_a_dict_with_the_keys_of_a_named_tuple(
    tree: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "checkpoint_1").write_bytes(msgpack.packb(tree))
    assert read(tmp_path / "checkpoint_1") == tree


def test_what_is_long_is_read(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_1"
    for length in (31, 32, 255, 256, 65535, 65536):
        many = {str(number): number for number in range(length)}
        tree = ["x" * length, b"x" * length, [0] * length, many]
        path.write_bytes(msgpack.packb(tree))
        assert read(path) == tree


OPTIMIZERS = {
    "Adam": ("AdaBelief", "Adam", "LAMB"),
    "Momentum": ("LARS", "Momentum"),
    "GradientDescent": ("GradientDescent",),
    "Adafactor": ("Adafactor",),
    "Adagrad": ("Adagrad",),
    "Adadelta": ("Adadelta",),
    "RMSProp": ("RMSProp",),
}


@pytest.mark.parametrize(("name", "names"), OPTIMIZERS.items())
def test_an_optimizer_by_what_it_keeps(
    name: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    made = looked_into(lambda optim: getattr(optim, name)(0.1).create(PARAMS), tmp_path)
    [found] = made.found

    assert (found.path, found.kind) == ("", "legacy optimizer")
    assert (found.names, found.step) == (names, 0)
    assert {(leaf.path, leaf.shape, leaf.dtype) for leaf in found.parameters} == {
        ("dense/kernel", (3, 2), "float32"),
        ("dense/bias", (2,), "float32"),
    }


def test_several_optimizers_in_a_bigger_state(tmp_path: Path) -> None:
    def tree(optim: Any) -> Any:
        kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
        others = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
        momentum = optim.Momentum(0.1)
        groups = optim.MultiOptimizer((kernels, optim.Adam(0.1)), (others, momentum))
        made = {"generator": groups.create(PARAMS), "judge": momentum.create(PARAMS)}
        average = {"kernel": np.ones((3, 2), np.float16)}
        return {"epoch": 3, "models": made, "ema": average}

    known = looked_into(tree, tmp_path)

    assert [(found.path, found.names) for found in known.found] == [
        ("models/generator", ("MultiOptimizer",)),
        ("models/judge", ("LARS", "Momentum")),
    ]
    assert [(leaf.path, leaf.shape, leaf.dtype) for leaf in known.others] == [
        ("epoch", None, "int"),
        ("ema/kernel", (3, 2), "float16"),
    ]


def test_one_that_was_replicated_and_has_taken_steps(tmp_path: Path) -> None:
    import jax

    def tree(optim: Any) -> Any:
        optimizer = optim.Momentum(0.1).create(PARAMS)
        for _ in range(7):
            optimizer = optimizer.apply_gradient(PARAMS)
        return jax.tree_util.tree_map(lambda leaf: np.stack([leaf] * 4), optimizer)

    [found] = looked_into(tree, tmp_path).found

    assert (found.step, found.copies) == (7, 4)
    assert {leaf.shape for leaf in found.parameters} == {(4, 3, 2), (4, 2)}


def test_arrays_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with legacy_flax() as flax:
        monkeypatch.setattr(flax.serialization, "MAX_CHUNK_SIZE", 100)
        values = np.arange(90, dtype=np.float32).reshape(9, 10)
        path = tmp_path / "checkpoint_1"
        path.write_bytes(flax.serialization.to_bytes({"params": {"w": values}}))
    array = read(path)["params"]["w"]

    assert path.stat().st_size > values.nbytes + 100  # for what is between the pieces
    assert array.shape == (9, 10)
    assert bytes(array.data) == values.tobytes()


def test_bfloat16_and_numbers(tmp_path: Path) -> None:
    import jax.numpy as jnp

    tree = {
        "bfloat16": jnp.ones(3, jnp.bfloat16),
        "float": 0.5,
        "float32": np.float32(2.0),
        "complex": 1j,
        "str": "adam",
    }
    known = looked_into(lambda _: tree, tmp_path)

    assert known.found == ()
    assert {leaf.path: leaf.dtype for leaf in known.others} == {
        name: name for name in tree
    }


def inspected(*arguments: Path | str) -> Result:
    words = ["checkpoint", "inspect", *map(str, arguments)]
    return CliRunner().invoke(application, words)


def test_the_command(tmp_path: Path) -> None:
    def tree(optim: Any) -> Any:
        return {"epoch": 3, "optimizer": optim.Adam(0.1).create(PARAMS)}

    written(tree, tmp_path / "checkpoint_20")
    result = inspected(tmp_path)

    assert result.exit_code == 0
    assert result.output.splitlines()[1:] == [
        "  optimizer: legacy AdaBelief, Adam or LAMB, step 0, 2 parameters of 8 numbers",
        "    dense/kernel  (3, 2) float32",
        "    dense/bias    (2,) float32",
        "  also: epoch (int)",
    ]


def own_rule(_: Any) -> Any:
    """What a class of the program's own keeps, which derives from `OptimizerDef`."""
    kept = {name: {"velocity": leaf} for name, leaf in PARAMS["dense"].items()}
    state = {"step": np.int32(3), "param_states": {"dense": kept}}
    return {"target": PARAMS, "state": state}


def train_state(_: Any) -> Any:
    opt_state = {"0": {"count": np.int32(12)}}
    return {"step": 12, "params": {"w": np.ones(2)}, "opt_state": opt_state}


def copies(number: int) -> Callable[[Any], Any]:
    state = {"step": np.full(number, 7), "param_states": {"w": {}}}
    return lambda _: {"target": {"w": np.ones((number, 2))}, "state": state}


SHOWN = {
    "no optimizer": (lambda _: {"epoch": 3}, "no optimizer and no train state", "also: epoch (int)"),
    "a train state alone":
        (train_state, "the whole file: a train state, step 12, 1 parameter of 2 numbers", "  w  (2,) float64"),
    "a rule of the program's own": (
        own_rule,
        "the whole file: a legacy optimizer of its own kind, step 3, 2 parameters of 8 numbers",
        "  dense/kernel  (3, 2) float32\n    dense/bias    (2,) float32",
    ),
    "copies": (
        copies(4),
        "the whole file: legacy GradientDescent, step 7, 4 copies, 1 parameter of 8 numbers",
        "  w  (4, 2) float64",
    ),
    "one copy": (
        copies(1),
        "the whole file: legacy GradientDescent, step 7, 1 copy, 1 parameter of 2 numbers",
        "  w  (1, 2) float64",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "found", "more"), SHOWN.values(), ids=SHOWN)
def test_what_is_shown(tree: Any, found: str, more: str, tmp_path: Path) -> None:
    text = as_text([inspect(written(tree, tmp_path / "checkpoint_1"))])
    assert text.partition("\n")[2].rstrip("\n") == f"  {found}\n  {more}"


def test_a_folder_without_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "events.log").write_bytes(b"")
    result = inspected(tmp_path)

    assert result.exit_code == 1
    assert (
        "has no numbered checkpoint, such as checkpoint_100, in it: " in result.output
    )


def test_the_command_as_json_with_a_file_that_is_none(tmp_path: Path) -> None:
    written(lambda optim: optim.Adam(0.1).create(PARAMS), tmp_path / "checkpoint_20")
    (tmp_path / "checkpoint_30").write_bytes(b"")
    result = inspected("--output-format", "json", tmp_path, tmp_path / "none")
    good, empty, missing = json.loads(result.output)["files"]

    assert result.exit_code == 1
    assert good["error"] is None
    assert good["optimizers"][0]["names"] == ["AdaBelief", "Adam", "LAMB"]
    assert "is empty or cut off" in empty["error"]
    assert "does not exist" in missing["error"]
