"""Files that cannot be read: the optimizers that they may share with others stay, whole."""

from __future__ import annotations

import pytest

from codemods import FileResult, Options, Source, migrate
from tests.codemods.programs import program

TRAIN = program(
    """
    from flax import optim
    import steps


    def main(params):
        optimizer = optim.Adam(1e-3).create(params)
        return steps.train(optimizer)
    """
)
STEPS = "def train(optimizer):\n    return optimizer.apply_gradient(grads)\n"
BROKEN = f"{STEPS}\n      return\n"


def migrated(files: dict[str, str | bytes], options: Options | None = None) -> dict[str, FileResult]:
    sources = [
        Source(path, content if isinstance(content, bytes) else content.encode()) for path, content in files.items()
    ]
    return {result.path: result for result in migrate(sources, options)}


CHANGED = {
    "one that nobody imports": {"train.py": TRAIN.replace("import steps", "import other"), "steps.py": BROKEN},
    "one that speaks of no optimizer": {"train.py": TRAIN, "steps.py": "def train(x):\n    return x +\n"},
    "parameters are chosen, and no optimizer is made": {
        "train.py": "import steps\nfrom flax import optim\n\nkernels = optim.ModelParamTraversal(lambda path, _: True)\n",
        "steps.py": BROKEN,
    },
}


@pytest.mark.parametrize("files", CHANGED.values(), ids=CHANGED)
def test_others_are_migrated_beside(files: dict[str, str | bytes]) -> None:
    results = migrated(files)
    assert {site.status for site in results["train.py"].sites} == {"rewritten"}
    assert results["steps.py"].after == results["steps.py"].before


UNREAD: dict[str, dict[str, str | bytes]] = {
    "it is imported": {"train.py": TRAIN, "steps.py": BROKEN},
    "it is imported, and no text": {"train.py": TRAIN, "steps.py": STEPS.encode() + b"# \xff apply_gradient\n"},
    "it imports": {
        "train.py": TRAIN.replace("import steps", "").replace("steps.train(optimizer)", "optimizer"),
        "steps.py": f"import train\n{BROKEN}",
    },
    "in a package": {
        "lab/__init__.py": "",
        "lab/train.py": TRAIN.replace("import steps", "from . import steps"),
        "lab/steps.py": BROKEN,
    },
}


@pytest.mark.parametrize("files", UNREAD.values(), ids=UNREAD)
def test_the_optimizers_of_its_neighbours_stay(files: dict[str, str | bytes]) -> None:
    results = migrated(files)
    train, steps = (next(results[path] for path in files if path.endswith(name)) for name in ("train.py", "steps.py"))
    assert steps.error is not None
    assert train.after == train.before
    assert {site.code for site in train.sites} == {"FO911", "FO921"}
    [reason] = {str(site.message) for site in train.sites if site.code == "FO921"}
    assert reason.startswith(f"{steps.path}, which has to do with this file, cannot be read")


def test_in_part_they_do_not() -> None:
    results = migrated({"train.py": TRAIN, "steps.py": BROKEN}, Options(partial=True))
    assert {site.status for site in results["train.py"].sites} == {"rewritten"}


def test_no_more_once_it_is_mended() -> None:
    results = migrated({"train.py": TRAIN, "steps.py": STEPS})
    assert {site.status for result in results.values() for site in result.sites} == {"rewritten"}
