"""Files that cannot be read cannot run: they hold nobody back, and are named with the places that were not seen."""

import json

import pytest

from codemods import FileResult, Source, migrate
from tests.codemods.programs import program, statuses

TRAIN = program("""
    from flax import optim
    import steps

    def main(params):
        optimizer = optim.Adam(1e-3).create(params)
        return steps.train(optimizer)
    """)
STEPS = "def train(optimizer):\n    return optimizer.apply_gradient(grads)\n"
OTHERS = STEPS.replace("train", "fit")
CONFLICT = f"<<<<<<< HEAD\n{STEPS}=======\n{OTHERS}>>>>>>> other\n"
PYTHON_2 = STEPS + "    print 'done'\n"
SEEN = "line 2 `return optimizer.apply_gradient(grads)`"


def migrated(files: dict[str, str | bytes]) -> dict[str, FileResult]:
    sources = [
        Source(path, text if isinstance(text, bytes) else text.encode())
        for path, text in files.items()
    ]
    return {result.path: result for result in migrate(sources)}


def cells(*texts: str | list[str]) -> str:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [{"text": STEPS}]}
    found = [{**cell, "source": text} for text in texts]
    whole = {"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1)


UNREAD: dict[str, tuple[str, str | bytes, str]] = {
    "Python 2": ("steps.py", PYTHON_2, f"; not seen: {SEEN}"),
    "a merge conflict": ("steps.py", CONFLICT, "not seen: line 3 `return optimizer.apply_gradient(grads)`, line 6 `return"),
    "a template": ("steps.py", STEPS + "class {{ name }}:\n    pass\n", f"not seen: {SEEN}"),
    "no UTF-8": ("steps.py", STEPS.encode() + b"# \xff\n", f"byte 67; not seen: {SEEN}"),
    "an unknown coding": ("steps.py", f"# coding: klingon\n{STEPS}", "unknown encoding: klingon; not seen: line 3"),
    "a coding that has several forms of a text":
        ("steps.py", f"# coding: utf-7\n{STEPS}# +AGE-\n", "utf-7 does not give the same bytes again; not seen: line 3"),
    "a null byte": ("steps.py", STEPS + "\0", f"not a Python source file; not seen: {SEEN}"),
    "line ends that LibCST does not keep": (
        "steps.py",
        f"from flax import optim\n{STEPS}".replace("\n", "\r"),
        "formatter write it anew first; not seen: line 1 `from flax import optim`, line 3 `return",
    ),
    "nested too deeply": ("steps.py", f"{STEPS}x = {'(' * 5000}{')' * 5000}\n", f"not seen: {SEEN}"),
    "nothing in it":
        ("steps.py", "def train(x):\n    return x +\n", "line 2: cannot be parsed as Python 3: invalid syntax"),
    "comments and strings": (
        "steps.py",
        "# optimizer.target\nx = '#', optimizer.target\ny = optimizer.state.step # optim.Adam\ndef",
        "not seen: line 2 `x = '#', optimizer.target`, line 3 `y = optimizer.state.step`",
    ),
    "a cell of a notebook": (
        "steps.ipynb",
        cells("import jax", ["# optim.Adam\n", f"{STEPS}\n"], "print optimizer.target"),
        "not seen: line 23 `def train(optimizer):\\n    return optimizer.apply_gradient(grads)\\n`, line 34 `print optimizer.target`",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "content", "problem"), UNREAD.values(), ids=UNREAD)
def test_others_migrate(path: str, content: str | bytes, problem: str) -> None:
    results = migrated({"train.py": TRAIN, path: content})
    assert {site.status for site in results["train.py"].sites} == {"rewritten"}
    assert results[path].after == results[path].before
    assert problem in (results[path].error or "")


def test_one_that_imports_the_others() -> None:
    make = TRAIN.replace("import steps\n", "")
    results = migrated({"make.py": make, "train.py": f"import make\n{PYTHON_2}"})
    assert results["make.py"].changed
    assert results["train.py"].error


CHAIN = (
    "class Builder:\n    def put(self, one):\n        return self\n\n\n"
    f"built = Builder(){'.put(1)' * 400}\n"
)


def test_a_long_chain_of_calls_holds_nobody_back_whom_it_does_not_meet() -> None:
    chain = f"import train\n{CHAIN}"
    results = migrated({"train.py": TRAIN, "steps.py": STEPS, "chain.py": chain})
    assert statuses(results.values()) == {"rewritten"}


def test_what_is_used_beside_a_long_chain_of_calls_is_migrated() -> None:
    results = migrated({"train.py": TRAIN, "steps.py": f"{CHAIN}\n\n{STEPS}"})
    assert results["steps.py"].after.decode().startswith(CHAIN)
    assert statuses(results.values()) == {"rewritten"}
