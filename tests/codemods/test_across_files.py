"""Names that cross files, by every way that Python has: an optimizer migrates in all of them, or in none."""

from pathlib import Path

import pytest

from codemods import FileResult, Source, migrate
from tests.codemods.programs import program, statuses
from tests.codemods.running import assert_alike, outcome

MAKE = program("""
    from flax import optim


    def make(params):
        return optim.Adam(1e-2).create(params)
    """)
STEP = program("""
    import jax


    def step(thing, gradient):
        return thing.apply_gradient(gradient)


    def weights(thing):
        return thing.target
    """)
RUN = program("""

    def run(params, gradients):
        thing = make(params)
        for gradient in gradients:
            thing = step(thing, gradient)
        return weights(thing)
    """)
DEFINITION = "from flax import optim\n\n_definition = definition = optim.Adam(1e-2)\n"
CREATE = "\ndef make(params):\n    return {}.create(params)\n"

Files = dict[str, str]


def files(main: str, **others: str) -> Files:
    """A program of a `main.py`, with a `steps.py`, and modules by dotted names."""
    imports = "from steps import step, weights\n"
    named = {f"{name.replace('__', '/')}.py": text for name, text in others.items()}
    return {"main.py": imports + main + RUN, "steps.py": STEP, **named}


def listing(text: str) -> Files:
    """A module with an `__all__`, from which another has all."""
    return files(
        "from base import *\n" + CREATE.format("_definition"),
        base=f"{DEFINITION}{text}\n",
    )


WHOLE: dict[str, Files] = {
    "by name": files("from base import make\n", base=MAKE),
    "stars in a circle": files(
        "from a import *\n",
        a=f"from flax import optim\n{CREATE.format('definition')}from b import *\n",
        b=f"{DEFINITION}from a import *\n",
    ),
    "__all__ as a list": listing('__all__ = ["_definition"]'),
    "__all__ as a tuple": listing('__all__ = ("_definition",)'),
    "__all__ made longer": listing('__all__ = []\n__all__ += ["_definition"]'),
    "__all__ appended to": listing('__all__ = []\n__all__.append("_definition")'),
    "__all__ extended": listing('__all__ = []\n__all__.extend(["_definition"])'),
    "__all__ computed": listing('__all__ = [name for name in dir() if "definition" in name]'),
    "a star of flax.optim, passed on":
        files("from base import *\n" + CREATE.format("Adam(1e-2)"), base="from flax.optim import *\n"),
    "a class through a module, under another name":
        files("from compat import A\n" + CREATE.format("A(1e-2)"), compat="from flax.optim import Adam as A\n"),
    "a namespace package": files("from lab.base import make\n", lab__base=MAKE),
    "a folder src": files("from lab.base import make\n", src__lab__base=MAKE),
    "two modules of the name": files(
        "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'a'))\nfrom base import make\n",
        a__base=MAKE,
        b__base="def make(params):\n    return params\n",
    ),
    "by the names that a folder has": {
        **files(
            "import importlib, pkgutil\nimport plugins\nfrom base import make\nfound = {}\n"
            "for info in pkgutil.iter_modules(plugins.__path__):\n"
            "    found[info.name] = importlib.import_module('plugins.' + info.name)\n"
            "\ndef weights(thing):\n    return found['read'].weights(thing)\n",
            base=MAKE,
        ),
        "plugins/__init__.py": "",
        "plugins/read.py": "def weights(thing):\n    return thing.target\n",
    },
    "a package that gives out what its modules have": {
        **files("import lab\n\ndef make(params):\n    return lab.create(params)\n"),
        "lab/__init__.py": "import importlib\n\ndef __getattr__(name):\n"
        "    return getattr(importlib.import_module('lab.core'), name)\n",
        "lab/core.py": MAKE.replace("make", "create"),
    },
    "annotations in quotes within quotes": files(
        "from typing import Dict, List, Optional\nfrom flax import optim\n\n"
        "def make(params) -> 'Optional[\"optim.Optimizer\"]':\n    return several(params)['a'][0]\n\n"
        "def several(params) -> 'Dict[str, \"List[optim.Optimizer]\"]':\n"
        "    return {'a': [optim.Adam(1e-2).create(params)]}\n"
    ),
    "a type that only a checker imports": files(
        "from typing import TYPE_CHECKING, TypeVar, cast\n"
        "if TYPE_CHECKING:\n    from flax import optim\nimport base\nT = TypeVar('T', bound='optim.Optimizer')\n\n"
        "def same(thing: T) -> T:\n    return thing\n\n"
        "def make(params) -> 'optim.Optimizer':\n    return cast('optim.Optimizer', same(base.make(params)))\n",
        base=MAKE,
    ),
    "an import instead of another that failed": files(
        "try:\n    from newer import optim\nexcept ImportError:\n    from flax import optim\n"
        + CREATE.format("optim.Adam(1e-2)")
    ),
    "an import at the end": files(CREATE.format("optim.Adagrad(1e-2)") + "\nfrom flax import optim\n"),
    "an import in a class": files(
        "class Makers:\n    from flax import optim\n\n    def make(self, params):\n"
        "        return self.optim.Adam(1e-2).create(params)\n\nmake = Makers().make\n"
    ),
}  # fmt: skip

REFUSED: dict[str, Files] = {
    "the module flax.optim as an argument": files(
        "from flax import optim\nfrom base import build\n\ndef make(params):\n    return build(optim, params)\n",
        base="def build(library, params):\n    return library.Adam(1e-2).create(params)\n",
    ),
    "import_module of a relative name": files(
        "import importlib\noptim = importlib.import_module('.optim', 'flax')\n"
        + CREATE.format("optim.Adam(1e-2)")
    ),
    "__import__": files("optim = __import__('flax.optim').optim\n" + CREATE.format("optim.Adam(1e-2)")),
    "vars": files("import flax\noptim = vars(flax)['optim']\n" + CREATE.format("optim.Adam(1e-2)")),
    "__dict__": files("import flax\noptim = flax.__dict__['optim']\n" + CREATE.format("optim.Adam(1e-2)")),
    "getattr": files("import flax\noptim = getattr(flax, 'optim')\n" + CREATE.format("optim.Adam(1e-2)")),
    "an import on condition that there is one": files(
        "import flax\nif hasattr(flax, 'optim'):\n    from flax import optim\nelse:\n    import optax\n"
        + CREATE.format("optim.Adam(1e-2)")
    ),
    "a class that is none of flax.optim": files(
        "from flax import optim\n\ndef make(params):\n    if params is None:\n        return optim.SM3(0.1).create(params)\n"
        "    return optim.Adam(1e-2).create(params)\n"
    ),
    "a wrapper that only flax.optim.base has": files(
        "from flax import optim\nfrom flax.optim.base import ReplicatedOptimizer\n\ndef make(params):\n"
        "    definition = optim.Adam(1e-2)\n    assert ReplicatedOptimizer(definition)\n    return definition.create(params)\n"
    ),
    "one of two modules of the name is another's": files(
        "from flax.optim import *\nfrom mine import *\n" + CREATE.format("Adam(1e-2)"),
        mine="class Adam:\n    def __init__(self, rate):\n        self.rate = rate\n\n"
        "    def create(self, params):\n        return params\n",
    ),
}  # fmt: skip


def migrated(program: Files) -> list[FileResult]:
    return migrate([Source(path, text.encode()) for path, text in program.items()])


@pytest.mark.parametrize("program", WHOLE.values(), ids=WHOLE)
def test_whole(program: Files, tmp_path: Path, legacy_wheel: Path) -> None:
    results = migrated(program)
    assert statuses(results) == {"rewritten"}
    after = {result.path: result.after.decode() for result in results}
    for text in after.values():
        assert "flax.optim" not in text
        assert "import optim" not in text
    before = outcome(program, tmp_path / "old", legacy_wheel)
    assert_alike(before, outcome(after, tmp_path / "new"))


@pytest.mark.parametrize("program", WHOLE.values(), ids=WHOLE)
def test_what_is_used_in_a_file_that_is_context_stays(program: Files) -> None:
    """A file that only passes a legacy name on has no use of an optimizer."""
    whole = {result.path: result for result in migrated(program)}
    for context in program:
        sources = [
            Source(path, text.encode(), writable=path != context)
            for path, text in program.items()
        ]
        results = {result.path: result for result in migrate(sources)}
        changed = {path for path, result in results.items() if result.changed}
        codes = {site.code for site in whole[context].sites}
        if codes <= {"FO101"}:
            others = whole.keys() - {context}
            assert changed == {path for path in others if whole[path].changed}
            continue
        assert not changed
        told = [
            one for result in results.values() for one in result.sites if one.related
        ]
        assert {site.related for site in told} == {(context,)}
        assert "FO931" in {site.code for site in told}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_refused_whole(program: Files) -> None:
    results = {result.path: result for result in migrated(program)}
    assert not any(result.changed for result in results.values())
    told = {site.before for site in results["steps.py"].sites if site.remedy}
    assert told >= {"thing.target", "thing.apply_gradient"}


def test_what_a_package_gives_out_stays_and_is_named() -> None:
    main = files("from lab import optim\n" + CREATE.format("optim.Adam(1)"))
    package, *others = migrated({"lab/__init__.py": "from flax import optim\n", **main})
    assert [site.code for site in package.sites if site.remedy] == ["FO911"]
    assert not any(site.remedy for result in others for site in result.sites)


def test_a_module_that_does_something_when_it_is_imported_stays_imported() -> None:
    program = files(
        "from compat import optim\n" + CREATE.format("optim.Adam(1)"),
        compat="from flax import optim\nprint(1)\n",
    )
    results = {result.path: result for result in migrated(program)}
    assert "from compat import optim" in results["main.py"].after.decode()
    assert not results["compat.py"].changed
