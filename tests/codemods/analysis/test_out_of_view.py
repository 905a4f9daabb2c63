"""Programs in which an optimizer goes where it is hard to follow, or out of view: each trains equal, is refused whole, or fails as told.

What comes from out of view holds nobody back. What reads of it what only legacy objects have may then end in an error: the line was
reported, or that at which an optimizer goes out of view.

The programs are in `out_of_view/`. Each begins with `== ` and what it is about; if it has several files, each of them begins
with `-- ` and its path. If something is told of it, its name ends so. All import what they share from `common`.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from codemods import Options
from tests.codemods.programs import files, sections
from tests.generated.verdicts import KEPT, Verdict, verdict

HERE = Path(__file__).parent / "out_of_view"
COMMON = """import jax
import jax.numpy as jnp


def gradients(params, batch):
    return {'w': params['w'] * batch + 0.1, 'b': params['b'] - batch}


def loss(params, batch=0.1):
    return jnp.sum(params['w'] ** 2) * batch + jnp.sum(jnp.sin(params['b']))


def size(params):
    return sum(leaf.size for leaf in jax.tree_util.tree_leaves(params))
"""


TOLD = " (told)"
SECTIONS = {
    name: text
    for path in sorted(HERE.glob("*.txt"))
    for name, text in sections(path.read_text()).items()
}
PROGRAMS = {
    name.removesuffix(TOLD): {
        **(files(text) or {"train.py": text}),
        "common.py": COMMON,
    }
    for name, text in SECTIONS.items()
}
NAMES = [*PROGRAMS]
RENAMING = sections((HERE / "renaming.txt").read_text())
OF_NAMES = [name.removesuffix(TOLD) for name in RENAMING]
SOME = {*NAMES[::10], *OF_NAMES}
"""Which are tried with other names in each run."""

UNTOLD = {
    "the value of StopIteration": "what a generator returns is not followed there",
    "an object that __new__ makes, beside one with a target of its own": "what `dict.__setitem__` sets as a function",
    "definitions that are lost tell nothing of optimizers": "a pickle in a text",
    "an optimizer made in a text that is run": "`exec` of a text is not told",
    "a variable in a text that is evaluated": "`eval` of a text is not told",
}
"""Programs that end in an error which nothing reported, and why."""


def marked(names: Iterable[str], thorough: Iterable[str] = ()) -> list[ParameterSet]:
    """The programs of some names; those that fail untold are expected to."""
    found = []
    for name in names:
        marks = [pytest.mark.thorough] if name in thorough else []
        if name in UNTOLD:
            marks.append(pytest.mark.xfail(strict=True, reason=UNTOLD[name]))
        found.append(pytest.param(name, marks=marks))
    return found


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("name", marked(NAMES))
def test_it_is_equal_or_refused_or_fails_as_told(name: str) -> None:
    assert _kept(PROGRAMS[name]).said == (f"{name}{TOLD}" in SECTIONS)


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize(
    "name",
    marked(dict.fromkeys([*NAMES[::5], *OF_NAMES]), {*NAMES} - SOME),
)
def test_so_it_is_with_other_names(name: str) -> None:
    found = _kept(PROGRAMS[name], Options(rename=True))
    assert found.said or found.kind == "equal"


def _kept(program: dict[str, str], options: Options | None = None) -> Verdict:
    found = verdict(program, options)
    assert found.kind in KEPT, f"{found.kind}: {found.why}"
    return found
