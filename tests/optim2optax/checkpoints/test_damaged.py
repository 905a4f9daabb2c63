"""Damaged and hostile checkpoints: a message, never a crash, and never a part of a file.

OPTIM2OPTAX_DAMAGED is how many of each kind are tried, and OPTIM2OPTAX_SEED which; a long run has 20,000 or more.
For each there are five seconds, and 300 MB beside what the process has already.
"""

import copy
import os
import random
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from flax import serialization

from optim2optax.checkpoints import CheckpointError, converting
from optim2optax.checkpoints.contents import contents
from optim2optax.checkpoints.flax_msgpack import read
from tests.optim2optax.checkpoints.test_carrying import new_state
from tests.optim2optax.checkpoints.test_earlier_flax import FILES, GROUPS, parameters
from tests.optim2optax.checkpoints.test_loading import fresh, members, stored

pytestmark = pytest.mark.usefixtures("legacy_wheel")

SEED = int(os.environ.get("OPTIM2OPTAX_SEED", "0"))
MANY = int(os.environ.get("OPTIM2OPTAX_DAMAGED", "100"))
OTHERS: tuple[Any, ...] = (
    None, True, -1, 2**63, 0.5, 1j, "text", b"bytes", [], [1, "a"], {}, {"step": 1},
    np.zeros(()), np.zeros((0, 3)), np.ones((2, 2), np.int8), np.float16(1.0), np.zeros((3, 3, 3), np.complex64),
)  # fmt: skip
"""What may be where something else should."""


SECONDS = 5
BYTES = 300 * 2**20


@contextmanager
def limited() -> Iterator[None]:
    """With so much more memory as there may be, on Linux, and so much time: what takes more fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")
    if pages.exists():
        taken = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + BYTES, hard))
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _too_long(*_: object) -> NoReturn:
    pytest.fail(f"takes longer than {SECONDS} s")


def flipped(content: bytes, numbers: random.Random) -> bytes:
    """Cut off, with some bits of it changed, or both."""
    end = numbers.randrange(len(content) + 1) if numbers.random() < 0.3 else None
    damaged = bytearray(content[:end])
    for _ in range(numbers.randrange(4)):
        if damaged:
            damaged[numbers.randrange(len(damaged))] ^= 1 << numbers.randrange(8)
    return bytes(damaged)


HEADS = (
    b"\x8f", b"\x9f", b"\xc1", b"\xc4\xff", b"\xc6\xff\xff\xff\xff", b"\xc7\xff\x01", b"\xc9\xff\xff\xff\xff\x01", b"\xd4\x63",
    b"\xd9\xff", b"\xdb\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xde\xff\xff", b"\xdf\xff\xff\xff\xff",
    b"\x93\x92\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x00", b"\xd3\x80\0\0\0\0\0\0\0", b"\xcb\x7f\xf8\0\0\0\0\0\0", b"\xc0",
)  # fmt: skip
"""What begins something in msgpack: mostly more than there is."""


def declared(content: bytes, numbers: random.Random) -> bytes:
    """With one or two heads of something else in it, or in the place of a few bytes."""
    for _ in range(numbers.randrange(1, 3)):
        start = numbers.randrange(len(content) + 1)
        end = start + numbers.choice((0, 0, 1, 5, 20))
        content = content[:start] + numbers.choice(HEADS) + content[end:]
    return content


def rearranged(tree: Any, numbers: random.Random) -> Any:
    """A tree of which one or two nodes are gone, doubled, renamed, exchanged for others, or for something else."""
    for _ in range(numbers.randrange(1, 3)):
        nodes = list(_dicts(tree))
        node, other = numbers.choice(nodes), numbers.choice(nodes)
        if not node or not other:
            continue
        key, another = numbers.choice([*node]), numbers.choice([*other])
        kind = numbers.randrange(6)
        if kind == 0:
            del node[key]
        elif kind == 1:
            node[f"{key}_"] = node[key]
        elif kind == 2:
            names = ("", "0", "step", "count", "params", "a/b", "\u03b2")
            node[numbers.choice(names)] = node.pop(key)
        elif kind == 3:
            # A copy, since the next change may be one within it: of itself even, without an end.
            node[key] = copy.deepcopy(numbers.choice(OTHERS))
        elif kind == 4 and isinstance(node[key], np.ndarray):
            shape = numbers.choice([(1,), (2, 3), (4, 3, 2), (0,)])
            node[key] = np.resize(node[key], shape)
        elif not isinstance(other[another], dict):
            node[key] = other[another]
    return tree


def _dicts(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _dicts(value)


def an_optimizer_and_an_epoch(path: Path) -> Any:
    stored(path, lambda optimizer: {"epoch": 7, "optimizer": optimizer})
    return {"epoch": 0, "optimizer": fresh()}


def groups_of_an_earlier_flax(path: Path) -> Any:
    path.write_bytes((FILES / "groups_0.3.2").read_bytes())
    return new_state(GROUPS, parameters())


def copies(path: Path) -> Any:
    stored(path, lambda optimizer: members(optimizer, 4))
    return fresh()


@pytest.mark.parametrize(
    "program", [an_optimizer_and_an_epoch, groups_of_an_earlier_flax, copies]
)
@pytest.mark.parametrize("damage", ["flipped", "declared", "rearranged"])
def test_a_message_and_nothing_written_or_all_of_it(
    damage: str,
    program: Callable[[Path], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = program(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setattr(converting, "thought_of", lambda _: (state, {}))
    numbers, said = random.Random(SEED), set()
    for _ in range(MANY):
        if damage == "flipped":
            content = flipped(whole, numbers)
        elif damage == "declared":
            content = declared(whole, numbers)
        else:
            tree = rearranged(serialization.msgpack_restore(whole), numbers)
            content = serialization.msgpack_serialize(tree)
        Path("old").write_bytes(content)
        Path("new").unlink(missing_ok=True)
        try:
            with limited():
                contents(read(Path("old")))
                converting.convert(Path("old"), Path("new"), "", "msgpack")
        except CheckpointError as error:
            said.add(str(error))
            assert not Path("new").exists()
        else:
            serialization.from_bytes(state, Path("new").read_bytes())
        assert Path("old").read_bytes() == content
        assert {path.name for path in Path().iterdir()} <= {"old", "new"}

    assert len(said) > 5
    assert not any("more memory" in words for words in said)
