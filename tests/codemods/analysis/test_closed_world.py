"""Programs in which an optimizer goes where nobody can follow it: each is migrated whole and trains equal, or is refused whole.

What comes from out of view holds nobody back. A line that reads of it what only some objects have may then end in an error, and was
reported.

The programs are in `closed_world/`. Each begins with `== ` and what it is about; if it has several files, each of them begins
with `# ---- ` and its path. All import what they share from `common`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods import Options
from tests.generated.verdicts import KEPT, verdict

HERE = Path(__file__).parent / "closed_world"
COMMON = """import jax
import jax.numpy as jnp


def gradients(params, batch):
    return {'w': params['w'] * batch + 0.1, 'b': params['b'] - batch}


def loss(params, batch=0.1):
    return jnp.sum(params['w'] ** 2) * batch + jnp.sum(jnp.sin(params['b']))


def size(params):
    return sum(leaf.size for leaf in jax.tree_util.tree_leaves(params))
"""


def programs() -> Iterator[tuple[str, dict[str, str]]]:
    """The files of each program, by what it is about."""
    for path in sorted(HERE.glob("*.txt")):
        _, *parts = re.split(r"^== (.+)\n", path.read_text(), flags=re.MULTILINE)
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            yield name, {**_files(text), "common.py": COMMON}


def _files(text: str) -> dict[str, str]:
    only, *parts = re.split(r"^# ---- (.+)\n", text, flags=re.MULTILINE)
    return (
        dict(zip(parts[::2], parts[1::2], strict=True)) if parts else {"train.py": only}
    )


PROGRAMS = dict(programs())
OPTIONS = {"by default": Options(), "renamed": Options(rename=True)}


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_migrated_whole_and_equal_or_refused_whole(
    name: str, option: str
) -> None:
    found = verdict(PROGRAMS[name], OPTIONS[option])
    assert found.kind in KEPT, f"{found.kind}: {found.why}"
    assert found.said or found.kind == "equal"
