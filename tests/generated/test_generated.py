"""Programs at random keep all promises, those of a grammar and those that changes make of others.

OPTIM2OPTAX_PROGRAMS is how many of each kind are tried; a long run has 50,000 or more. OPTIM2OPTAX_SOURCES names a folder with
files to change, beside the programs of the fixtures.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from codemods import Options
from codemods.model import Style
from codemods.sources.prefilter import mentions_legacy
from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.generated.grammar import programs
from tests.generated.mutations import mutations, parses
from tests.generated.properties import assert_alike, migrated, outcome

MANY = int(os.environ.get("OPTIM2OPTAX_PROGRAMS", "40"))
RUNS = max(8, MANY // 100)
"""So many of the programs are also run, as they were and as they are."""

ALWAYS = settings(
    deadline=None,
    derandomize="OPTIM2OPTAX_PROGRAMS" not in os.environ,
    suppress_health_check=[*HealthCheck],
)
OPTIONS = {
    "by default": Options(),
    "with everything": Options(rename=True, modernize=True, unsafe=True),
    "functional": Options(style="functional"),
    "partial": Options(partial=True),
}
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def sources() -> list[str]:
    """The programs to change: all that parse."""
    others = os.environ.get("OPTIM2OPTAX_SOURCES")
    folders = [FIXTURES, Path(others)] if others else [FIXTURES]
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    contents = [
        file.read_bytes()
        for file in files
        if file.is_file() and file.name != "after.py"
    ]
    legacy = filter(mentions_legacy, contents)
    texts = (content.decode().replace("\r\n", "\n") for content in legacy)
    return [*filter(parses, texts)]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(ALWAYS, max_examples=MANY // 4)
@given(content=programs())
def test_every_promise_is_kept(options: Options, content: bytes) -> None:
    migrated(content, options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(ALWAYS, max_examples=MANY // 4)
@given(content=mutations(sources()))
def test_every_promise_is_kept_if_changed(options: Options, content: bytes) -> None:
    migrated(content, options)


@pytest.mark.parametrize("style", ["train-state", "functional"])
@settings(ALWAYS, max_examples=RUNS)
@given(content=programs())
def test_it_trains_alike(style: Style, legacy_wheel: Path, content: bytes) -> None:
    result = migrated(content, Options(style=style, rename=style == "train-state"))
    with legacy_flax(), precise():
        assert_alike(outcome(content), outcome(result.after))
