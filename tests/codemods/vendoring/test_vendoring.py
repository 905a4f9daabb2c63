"""What cannot be migrated speaks to a copy of `flax.optim`: which imports are pointed at it, and programs train as before."""

import ast
from collections.abc import Mapping
from functools import cache

import pytest
from _pytest.mark import ParameterSet

from codemods import FileResult, Options, Site, Source, migrate
from codemods.sources.modules import Unit
from codemods.vendoring.copies import read_copies
from codemods.vendoring.pointing import Pointing
from optim2optax.legacy import legacy_flax
from optim2optax.legacy_wheel import find_wheel
from optim2optax.vendoring.content import OPTIM_CONTENT
from tests.codemods.analysis import test_out_of_view
from tests.codemods.programs import OPTAX_ALONE, program
from tests.codemods.rules import test_interface
from tests.generated.verdicts import ESCAPE, assert_same, outcome


def at_copy(
    text: str, module: str = "kit.legacy_flax_optim", spared: tuple[int, ...] = ()
) -> str:
    return Pointing(unit(text), ["flax.optim"], module, spared=spared).code()


def back(text: str, module: str = "kit.legacy_flax_optim") -> str:
    return Pointing(unit(text), [module], "flax.optim", in_line=True).code()


def unit(text: str) -> Unit:
    return Unit("kit/train.py", program(text), ast.parse(program(text)))


UNTOUCHED = {
    "an optim of torch": "from torch import optim\nx: 'optim.Adam'\n",
    "an optim of one's own": "from kit import optim\nfrom .optim import Adam\nfrom . import optim as o\n",
    "a package that begins alike": "import flax.optimizers\nfrom flax.optimization import Adam\nflax.optimizers.Adam\n",
    "another flax": "def f(flax):\n    return flax.optim.Adam\n",
    "another flax, at the top": "import flax\nclass A:\n    flax = object()\n    flax.optim\nprint(flax.struct)\n",
    "a sentence": "'flax.optim is gone'\n'flax.optimizers'\n'my.flax.optim.Adam'\n",
    "a formatted string": "f'flax.optim.{name}'\n",
    "a comment": "# from flax import optim\n",
    "quoted annotations": "import flax\n\ndef f(o: 'List[flax.optim.Optimizer]') -> 'flax.X': ...\n",
    "names in strings": "import_module('flax.optim')\npatch('flax.optim.Adam.create')\n",
    "what is set": "import flax\nflax.optim = None\n",
    "the package around, by a call": "__import__('flax.optim').optim\n",
}


@pytest.mark.parametrize("text", UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_stays(text: str) -> None:
    assert at_copy(text) == text


def test_lines_that_are_spared_stay() -> None:
    after = at_copy("from flax import optim\nimport flax.optim as o\n", spared=(1,))
    assert after == "from flax import optim\nfrom kit import legacy_flax_optim as o\n"


POINTED = {
    "a module among others": (
        "from flax import linen, optim as o, struct  # all\n",
        "from flax import linen, struct  # all\nfrom kit import legacy_flax_optim as o\n",
    ),
    "among others, a line each": (
        "from flax import (\n    linen,\n    optim,\n    struct,\n)\n",
        "from flax import (\n    linen,\n    struct,\n)\nfrom kit import legacy_flax_optim as optim\n",
    ),
    "with other statements in its line": (
        "import jax; from flax import optim, struct; x = 1\n",
        "import jax; from flax import struct; from kit import legacy_flax_optim as optim; x = 1\n",
    ),
    "within a function, and a try": (
        "def f():\n    try:\n        from flax import optim\n    except ImportError:\n        optim = None\n",
        "def f():\n    try:\n        from kit import legacy_flax_optim as optim\n    except ImportError:\n        optim = None\n",
    ),
    "a dotted name, of a package in use": (
        "import flax\n\noptimizer = flax.optim.Adam(1)\nprint(flax.struct)\n",
        "import flax\nfrom kit import legacy_flax_optim\n\noptimizer = legacy_flax_optim.Adam(1)\nprint(flax.struct)\n",
    ),
    "a dotted import among others, of a package in use": (
        "import flax.optim, jax, os\nflax.optim.Adam(1), flax.struct\n",
        "import jax, os\nimport flax\nfrom kit import legacy_flax_optim\nlegacy_flax_optim.Adam(1), flax.struct\n",
    ),
    "dotted names in several scopes": (
        "import flax\n\ndef f():\n    import flax.optim\n    return flax.optim.Adam\n\nflax.linen\n",
        "import flax\n\ndef f():\n    from kit import legacy_flax_optim\n    return legacy_flax_optim.Adam\n\nflax.linen\n",
    ),
    "a dotted name, of a package in a quoted annotation": (
        "import flax\n\nx: 'List[flax.X]' = flax.optim.Adam\n",
        "import flax\nfrom kit import legacy_flax_optim\n\nx: 'List[flax.X]' = legacy_flax_optim.Adam\n",
    ),
    "where the name is taken": (
        "import flax\n\nlegacy_flax_optim = flax.optim.Adam\n",
        "from kit import legacy_flax_optim as legacy_flax_optim_\n\nlegacy_flax_optim = legacy_flax_optim_.Adam\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), POINTED.values(), ids=POINTED)
def test_what_is_pointed(before: str, after: str) -> None:
    assert at_copy(before) == after


@pytest.mark.parametrize("package", ["kit.", ".", "..", ""])
@pytest.mark.parametrize("name", POINTED)
def test_back_and_again(name: str, package: str) -> None:
    """Back, no line has another number; and what is pointed again is as it was."""
    (before, _), module = POINTED[name], f"{package}legacy_flax_optim"
    after = at_copy(before, module)
    assert "flax.optim" not in after
    returned = back(after, module)
    assert returned.count("\n") == after.count("\n")
    assert "legacy_flax_optim import" not in returned
    assert at_copy(returned, module) == after


MERGED = "from kit import model, legacy_flax_optim as optim, data\n"


def test_back_where_somebody_has_joined_imports() -> None:
    assert back(MERGED) == "from kit import model, data; from flax import optim\n"


Files = dict[str, str]


@cache
def _package() -> Mapping[str, str]:
    files = OPTIM_CONTENT.files(find_wheel())
    return {name: content.decode() for name, content in files.items()}


def vendored(
    files: Mapping[str, str],
    options: Options | None = None,
    existing: tuple[str, ...] = (),
    wanted: bool = True,
) -> tuple[Files, list[FileResult], str | None]:
    """What becomes of a program with `--vendor`: its files and those of the copy, an account, and where a new copy is."""
    sources = [Source(path, text.encode()) for path, text in files.items()]
    copies = read_copies(sources, existing)
    migrated = migrate(copies.pointed_back, options)
    results, modules = migrated[: len(files)], migrated[len(files) :]
    new = copies.without_copy(results) if wanted else []
    places = copies.places_for(new, OPTIM_CONTENT.name) if new else {}
    results = copies.pointed_at(results, new, places)
    changed = (*results, *modules)
    after = {**files, **{result.path: result.after.decode() for result in changed}}
    place = ", ".join(sorted({*places.values()} - {*existing}))
    for copy in {*places.values()} - {*existing}:
        after |= {f"{copy}/{name}": text for name, text in _package().items()}
    return after, results, place or None


SCRIPT = "from flax import optim\n\n\ndef make(name):\n    return getattr(optim, name, None)(0.1)\n"
IMPORTED = "from {} import make\n"
LAYOUTS: dict[str, tuple[Files, str | None, str]] = {
    "one script": ({"train.py": SCRIPT}, "legacy_flax_optim", "import legacy_flax_optim as optim"),
    "a script in a folder": ({"a/train.py": SCRIPT}, "a/legacy_flax_optim", "import legacy_flax_optim as optim"),
    "a package": (
        {"src/kit/__init__.py": "", "src/kit/train.py": SCRIPT, "run.py": IMPORTED.format("kit.train")},
        "src/kit/legacy_flax_optim",
        "from kit import legacy_flax_optim as optim",
    ),
    "a package that imports by dots": (
        {"kit/__init__.py": IMPORTED.format(".deep.train"), "kit/deep/__init__.py": "", "kit/deep/train.py": SCRIPT},
        "kit/legacy_flax_optim",
        "from .. import legacy_flax_optim as optim",
    ),
    "scripts that import from around": (
        {"lib/make.py": SCRIPT, "bin/train.py": f"{IMPORTED.format('lib.make')}{SCRIPT}"},
        "lib/legacy_flax_optim",
        "from lib import legacy_flax_optim as optim",
    ),
    "scripts of several folders": (
        {"a/train.py": SCRIPT, "b/train.py": SCRIPT},
        "a/legacy_flax_optim, b/legacy_flax_optim",
        "import legacy_flax_optim as optim",
    ),
    "what is there already": ({"train.py": SCRIPT, "legacy_flax_optim.py": ""}, None, ""),
}  # fmt: skip


@pytest.mark.parametrize(("files", "place", "statement"), LAYOUTS.values(), ids=LAYOUTS)
def test_places(files: Files, place: str | None, statement: str) -> None:
    after, results, found = vendored(files, OPTAX_ALONE)
    assert found == place
    own = [text for path, text in after.items() if "legacy_flax_optim/" not in path]
    sites = [site for result in results for site in result.sites]
    assert {site.status for site in sites} == {"vendored" if place else "unresolved"}
    assert statement in "".join(own) if place else after == files
    imports = [site for site in sites if site.before.startswith("from flax")]
    assert {site.code for site in imports} == {"FO911" if place else "FO928"}


LEFT = """\
import flax
from flax import optim


def make(name):
    other = {other}
    return getattr(optim, name, None)(0.1), other
"""


@pytest.mark.parametrize(
    "other",
    ["getattr(flax, 'optim')", "f'flax.optim.{name}'", "vars(flax)['optim'].Adam(0.1)"],
)
def test_what_cannot_be_pointed_is_told(other: str) -> None:
    _, [result], place = vendored({"train.py": LEFT.format(other=other)}, OPTAX_ALONE)
    assert place is not None
    statuses = {(site.line == 6, site.status) for site in result.sites}
    assert statuses <= {(True, "unresolved"), (False, "vendored")}
    assert (False, "vendored") in statuses


MIXED = {
    "stays.py": SCRIPT,
    "goes.py": "from flax import optim\n\n\ndef make(params):\n    return optim.Adam(0.1).create(params)\n",
    "kept.py": "from flax import optim  # optim2optax: ignore\n\noptimizer = optim.Adam(0.1)  # optim2optax: ignore\n",
    "broken.py": "from flax import optim\ndef f(:\n",
    "main.py": "import stays\n",
}


def test_what_is_migrated_has_nothing_of_it() -> None:
    after, results, place = vendored(MIXED, OPTAX_ALONE)
    assert place == "legacy_flax_optim"
    assert "optax.adam(0.1)" in after["goes.py"]
    assert "legacy" not in after["goes.py"]
    for name in ("kept.py", "broken.py"):
        assert after[name] == MIXED[name]
    new = "import legacy_flax_optim as optim"
    assert after["stays.py"] == SCRIPT.replace("from flax import optim", new)
    assert {site.status for site in results[0].sites} == {"vendored"}


def test_what_nothing_needs_is_not_made() -> None:
    files = {name: MIXED[name] for name in ("goes.py", "kept.py")}
    after, _, place = vendored(files)
    assert place is None
    assert "legacy" not in "".join(after.values())


@pytest.mark.parametrize(
    "files", [files for files, place, _ in LAYOUTS.values() if place] + [MIXED]
)
def test_a_later_run_changes_nothing_and_says_the_same(files: Files) -> None:
    after, results, place = vendored(files, OPTAX_ALONE)
    assert place is not None
    copies = tuple(place.split(", "))
    again, told, new = vendored(after, OPTAX_ALONE, copies, wanted=False)
    assert again == after
    assert new is None
    for before, result in zip(results, told, strict=True):
        left = [site for site in before.sites if site.status != "rewritten"]
        assert [_facts(site) for site in result.sites] == [
            _facts(site) for site in left
        ]


def _facts(site: Site) -> tuple[int, str, str]:
    return site.line, site.code, site.status


def test_what_can_be_migrated_later_is() -> None:
    script = f"{SCRIPT}\n\nfirst = optim.Adam(0.1)\n"
    files = {"train.py": script, "other.py": "import train\n"}
    after, _, place = vendored(files, OPTAX_ALONE)
    assert place is not None
    found = "getattr(optim, name, None)(0.1)"
    after["train.py"] = after["train.py"].replace(found, "optim.Momentum(0.1)")
    again, results, _ = vendored(after, OPTAX_ALONE, (place,), wanted=False)
    assert "legacy" not in again["train.py"]
    assert "optax.sgd(0.1, momentum=0.9)" in again["train.py"]
    assert {site.status for site in results[0].sites} == {"rewritten"}


TOLD_APART = "FO924"
INHERENT = {
    "it is pickled": "a pickle has the name of the module in it",
    "flax.optim by __import__": "stays, and is told",
    "flax.optim by importlib": "stays, and is told",
    "flax.optim by sys.modules": "stays, and is told",
    "a mock in the place of a class, by its name": "stays, and is told",
    "a lazy re-export by importlib": "stays, and is told",
    "a class of the module, of a package that a function imports": "stays, and is told",
    "a path of a flat state dict": "gives no tree of parameters to compare",
}
PROGRAMS = {
    **test_interface.PROGRAMS,
    **test_interface.STAYING,
    **test_out_of_view.PROGRAMS,
}


def trained() -> list[ParameterSet]:
    """What runs after all. Of what goes out of view, one program in eight takes each way; the rest is thorough."""
    usual = {
        *test_interface.PROGRAMS,
        *test_interface.STAYING,
        *test_out_of_view.NAMES[::8],
    }
    return [
        pytest.param(name, marks=[] if name in usual else [pytest.mark.thorough])
        for name in PROGRAMS
        if name not in {*INHERENT, *test_out_of_view.UNTOLD}
    ]


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("name", trained())
def test_it_runs_on_the_jax_of_today_and_trains_as_before(name: str) -> None:
    files = {**PROGRAMS[name], "common.py": test_out_of_view.COMMON}
    with legacy_flax():
        before = outcome(files)
    after, results, place = vendored(files, OPTAX_ALONE)
    sites = [site for result in results for site in result.sites]
    left = [site for site in sites if site.status != "rewritten"]
    proven = {site.status for site in left if site.evidence == "proven"}
    assert "unresolved" not in proven
    # what is of unknown origin, went out of view or is told apart may end in an error, and was told
    told = any(hint.code == ESCAPE for result in results for hint in result.hints)
    told |= any(site.code == TOLD_APART for site in left)
    if not told and all(site.evidence == "proven" for site in left):
        assert_same(before, outcome(after))
    if place is not None:
        again, _, _ = vendored(after, OPTAX_ALONE, (place,), wanted=False)
        assert again == after


STAYING = [name for name, why in INHERENT.items() if why == "stays, and is told"]


@pytest.mark.parametrize("name", STAYING)
def test_what_still_needs_the_old_flax_is_told(name: str) -> None:
    _, results, _ = vendored(PROGRAMS[name])
    statuses = {site.status for result in results for site in result.sites}
    assert "unresolved" in statuses
