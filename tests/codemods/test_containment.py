"""An internal error costs the file in which it happens, and what has to do with that; never the run."""

import gc
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest

from codemods import FileResult, Options, Source, engine, migrate
from codemods.analysis.constructs import Uses
from codemods.containment import MOST_RUNS, contained
from codemods.idioms.schedules import Schedules
from codemods.planning import plan
from codemods.planning.accounting import Accounting
from codemods.planning.emitted import Emitter
from codemods.rewriting import editing
from codemods.rules.context import Context
from codemods.rules.notes import Notes
from codemods.sources import relevance
from codemods.sources.modules import Unit
from tests.codemods.programs import result_of
from tests.thinned import thinned

TRAIN = """\
from flax import optim
import common

def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    for grad in grads:
        optimizer = {step}
    return common.shown(optimizer.target)
"""
FILES = {
    # before and behind the one that fails
    "apart.py": TRAIN.format(step="optimizer.apply_gradient(grad)"),
    "common.py": "import jax\n\ndef shown(tree):\n    return jax.tree_map(print, tree)\n",
    "failing.py": TRAIN.format(step="advance(optimizer, grad)")
    + "\ndef advance(one, grad):\n    return one.apply_gradient(grad)\n",
    "user.py": TRAIN.format(step="failing.advance(optimizer, grad)").replace(
        "import common", "import common, failing"
    ),
    "zebra.py": TRAIN.format(step="optimizer.apply_gradient(grad)"),
}
APART = ("apart.py", "common.py", "zebra.py")


@pytest.fixture(autouse=True)
def unsearched(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails here leaves no garbage, and looking for it takes long beside other tests."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def project(**options: Any) -> dict[str, FileResult]:
    sources = [Source(path, text.encode()) for path, text in FILES.items()]
    return {one.path: one for one in migrate(sources, Options(**options))}


@cache
def whole(stated: frozenset[str]) -> dict[str, FileResult]:
    """The results of a run in which no stage fails."""
    return project(**dict.fromkeys(stated, True))


def concerns(value: object) -> bool:
    """Whether a value is about the file that fails: its path, text, or unit, or a record with one of these."""
    if isinstance(value, str):
        return value in ("failing.py", FILES["failing.py"])
    if isinstance(value, bytes):
        return value == FILES["failing.py"].encode()
    if isinstance(value, Unit):
        return value.path == "failing.py"
    if isinstance(value, Schedules):
        return any(map(concerns, value.facts.project.units))
    found = (getattr(value, name, None) for name in ("path", "unit", "use"))
    return any(map(concerns, filter(None, found)))


STAGES: dict[str, tuple[Any, str]] = {
    "its text is searched": (relevance, "_modules"),
    "it is parsed": (engine, "parse"),
    "its uses are listed": (Uses, "in_unit"),
    "an idiom is tried": (Schedules, "uses"),
    "a form is chosen": (Context, "form"),
    "notes are made": (Notes, "of"),
    "names are planned": (plan, "names_for"),
    "it is edited": (editing, "_edit_file"),
    "its optimizers are listed": (Emitter, "emitted"),
    "an account is given": (Accounting, "site"),
}


def fail(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a stage raise if the file that fails is among what it is called with, or behind that."""
    owner, name = STAGES[stage]
    real = getattr(owner, name)

    def raising(*given: Any, **named: Any) -> Any:
        if any(map(concerns, given)):
            raise KeyError("planted")
        return real(*given, **named)

    monkeypatch.setattr(owner, name, raising)


FAILING = {
    f"{stage}, {option or 'without options'}": (stage, option)
    for stage in STAGES
    for option in ("", "partial", "modernize")
}
USUAL = (
    *(name for name, (_, option) in FAILING.items() if not option),
    *("it is edited, partial", "a form is chosen, partial"),
    *("it is parsed, modernize", "an account is given, modernize"),
)


@pytest.mark.parametrize(("stage", "option"), thinned(FAILING, *USUAL))
def test_what_has_to_do_with_a_file_that_fails_stays_and_the_rest_migrates(
    stage: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {option} - {""}
    expected = whole(frozenset(options))
    assert all(result.changed for result in expected.values() if result.sites)
    fail(stage, monkeypatch)
    results = project(**dict.fromkeys(options, True))
    for path in APART:
        assert results[path] == expected[path]
    failing, user = results["failing.py"], results["user.py"]
    said = [failing.error or "", *(site.message for site in failing.sites)]
    assert any("KeyError: 'planted'" in text for text in said)
    [traceback] = failing.tracebacks
    assert traceback.startswith("Traceback")
    assert not user.tracebacks
    if option != "partial":
        assert not failing.changed
        is_seen = stage != "its text is searched"
        assert user.changed != is_seen


def test_what_fails_beside_all_optimizers_costs_that_file_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renamed = "import jax\n\nprint(jax.tree_map(abs, [1]))\n"
    monkeypatch.setitem(FILES, "failing.py", renamed)
    fail("an account is given", monkeypatch)
    sources = [Source(path, renamed.encode()) for path in ("failing.py", "other.py")]
    failing, other = migrate(sources, Options(modernize=True))
    assert "KeyError: 'planted'" in str(failing.error)
    assert other.changed


def test_sites_of_a_file_on_which_this_tool_fails_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail("its uses are listed", monkeypatch)
    results = project()
    assert str(results["failing.py"].error) == (
        "FO930 an error within this tool (KeyError: 'planted'): please report it with what "
        "--verbose prints; not seen: line 1 `from flax import optim`, line 5 `optimizer = "
        "optim.Adam(0.1).create(params)`, line 8 `return common.shown(optimizer.target)`, "
        "line 11 `return one.apply_gradient(grad)`"
    )
    sites = results["user.py"].sites
    assert {site.code for site in sites} == {"FO911", "FO930"}


def test_an_error_in_a_rule_is_nothing_that_an_interface_could_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr("codemods.rules.classes.alias_of_value", failing)
    result = result_of("""
        def make(params, cls=optim.Adam):
            return cls(0.1).create(params)
        """)
    assert not result.changed
    assert "FO930" in {site.code for site in result.sites}


RESTORED = """\
from flax import optim
import broken, config

def main(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    optimizer = broken.restored(optimizer)
    for count, grad in enumerate(grads):
        optimizer = optimizer.apply_gradient(grad, learning_rate=config.rate(count))
    return optimizer.target
"""
NO_PYTHON = {
    "takes it apart": "def restored(optimizer):\n    print list(optimizer.__dict__), type(optimizer)\n",
    "sets what is read": "import config\nconfig.BASE = 2\nprint config\n",
    "makes complex numbers": "import train\ntrain.main(1j, [2j])\nprint train\n",
    "has such a method": "class Model:\n    def apply_gradient(self, g): return g\n    target = 1\nprint Model\n",
    "loads by name": "import importlib\nimportlib.import_module(name).target\nexec name\n",
}


@pytest.mark.parametrize("text", NO_PYTHON.values(), ids=NO_PYTHON)
def test_a_file_that_cannot_be_parsed_holds_nobody_back(text: str) -> None:
    files = {
        "train.py": RESTORED,
        "config.py": "BASE = 0.1\n\ndef rate(step):\n    return BASE * step\n",
        "broken.py": text,
    }
    *without, _ = sources = [Source(path, files[path].encode()) for path in files]
    *results, broken = migrate(sources)
    assert broken.error
    assert not broken.tracebacks
    assert results == migrate(without)
    assert results[0].changed
    assert {site.status for site in results[0].sites} == {"rewritten"}


NAMES = [f"{number:02}.py" for number in range(40)]


def run_but(*bad: set[str]) -> Callable[[Iterable[str], object], list[str]]:
    """A run that fails if all files of one of some sets are given."""

    def run(paths: Iterable[str], aside: object) -> list[str]:
        del aside
        for together in bad:
            if together <= {*paths}:
                raise ValueError(max(together))
        return [*paths]

    return run


BAD = {
    "none": (),
    "the first": ({"00.py"},),
    "the last": ({"39.py"},),
    "three": ({"07.py"}, {"08.py"}, {"31.py"}),
    "two pairs": ({"05.py", "33.py"}, {"05.py", "34.py"}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_each_file_that_fails_is_found(bad: tuple[set[str], ...]) -> None:
    found, failures = contained(NAMES, run_but(*bad))
    assert [*failures] == [max(together) for together in bad]
    assert found == [name for name in NAMES if name not in failures]
    for path, failure in failures.items():
        assert failure.summary == f"ValueError: {path}"


def test_a_search_that_takes_too_long_keeps_what_goes_well() -> None:
    bad = [{name} for name in NAMES[10:]]
    runs = 0

    def run(paths: Iterable[str], aside: object) -> list[str]:
        nonlocal runs
        runs += 1
        return run_but(*bad)(paths, aside)

    found, failures = contained(NAMES, run)
    assert found == NAMES[:10]
    assert failures.keys() == {*NAMES[10:]}
    assert runs < MOST_RUNS + 10


RAISED = {
    "what fails in no file": (ValueError("nothing"), 0),
    "what is no fault of this tool": (BrokenPipeError("nothing"), 1),
}


@pytest.mark.parametrize(("error", "least"), RAISED.values(), ids=RAISED)
def test_what_no_file_is_to_blame_for_is_raised(error: Exception, least: int) -> None:
    def run(paths: Iterable[str], _: object) -> None:
        if len([*paths]) >= least:
            raise error

    with pytest.raises(type(error), match="nothing"):
        contained(NAMES, run)
