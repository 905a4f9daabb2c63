"""Helpers that are long, or that several files need: one new module has them, where one can be imported."""

import json
from pathlib import Path

import pytest

from codemods import Options, Source, migrate
from codemods.sources.notebook import SUFFIX
from tests.codemods.programs import statuses
from tests.codemods.running import assert_alike, outcome

GROUPS = """
    kernels = optim.ModelParamTraversal(lambda path, _: "w" in path)
    others = optim.ModelParamTraversal(lambda path, _: "w" not in path)
    definition = optim.MultiOptimizer((kernels, optim.Adam(0.1)), (others, optim.Momentum(0.1)))
"""
LAMB = "    definition = optim.LAMB(0.1)\n"
STEPS = "from flax import optim\nimport jax\nimport jax.numpy as jnp\n{imports}\n\ndef {name}(params, gradients):\n"
TRAIN = """
    optimizer = definition.create(params)
    for grads in gradients:
        optimizer = optimizer.apply_gradient(grads)
    return optimizer.target
"""


def module(name: str, made: str, imports: str = "") -> str:
    return STEPS.format(name=name, imports=imports) + made + TRAIN


def main(*imports: str) -> str:
    lines = "\n".join(imports)
    return f"{lines}\n\ndef run(params, gradients):\n    return first(params, gradients), second(params, gradients)\n"


def after(files: dict[str, str], options: Options | None = None) -> dict[str, str]:
    sources = [Source(path, text.encode()) for path, text in files.items()]
    results = migrate(sources, options)
    assert not any(result.error for result in results)
    assert statuses(results) <= {"rewritten"}
    return {result.path: result.after.decode() for result in results}


ONE = module("first", GROUPS)
TWO = module("second", GROUPS)
TAKES_ONE = "from one import first\n"
BESIDE = main("from one import first", "from two import second")
WITHIN = main("from kit.one import first", "from kit.deep.two import second")
KEPT_INSIDE = {
    "the only file": {"train.py": ONE},
    "scripts in folders that nothing imports": {"vision/train.py": ONE, "language/train.py": TWO},
}  # fmt: skip


@pytest.mark.parametrize("files", KEPT_INSIDE.values(), ids=KEPT_INSIDE)
def test_what_nobody_shares_or_can_import_stays(files: dict[str, str]) -> None:
    found = after(files)
    shared = {path for path in found if path not in files}
    assert shared <= {"vision/optax_compat.py", "language/optax_compat.py"}
    assert "optax_compat.py" not in shared


def notebook(code: str) -> str:
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": []}
    cells = [{**cell, "source": code.splitlines(keepends=True)}]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1) + "\n"


def test_a_notebook_that_imports_nothing_of_the_project_keeps_what_it_needs() -> None:
    book = notebook(module("first", GROUPS))
    found = after({f"demo{SUFFIX}": book, "one.py": ONE, "main.py": TAKES_ONE})
    assert "def partition_by_path" in found[f"demo{SUFFIX}"]
    assert "def partition_by_path" not in found["one.py"]


READING = """
    definition = optim.Adam(0.1)
    print(definition.hyper_params.beta1, definition.init_param_state(params["w"]))
"""


@pytest.mark.parametrize("where", ["", "kit/"])
def test_a_notebook_has_its_long_helpers_where_it_imports_others(where: str) -> None:
    package = where.replace("/", ".")
    book = notebook(module("second", READING, f"from {package}one import first"))
    files = {f"{where}one.py": ONE, f"demo{SUFFIX}": book}
    found = after(files | ({"kit/__init__.py": ""} if where else {}))
    assert f"from {package}optax_compat import Adam" in found[f"demo{SUFFIX}"]
    assert "class " not in found[f"demo{SUFFIX}"]
    shared = found[f"{where}optax_compat.py"]
    assert "def partition_by_path" in shared
    assert "class Adam(OptimizerDef):" in shared


def test_below_a_folder_that_is_called_as_a_library_it_has_its_full_name() -> None:
    found = after(
        {
            "kit/__init__.py": "",
            "kit/jax/__init__.py": "",
            "kit/jax/one.py": module("first", GROUPS, "from kit.jax import rates"),
            "kit/jax/rates.py": "RATE = 0.1\n",
        }
    )
    assert "from kit.optax_compat import partition_by_path" in found["kit/jax/one.py"]


def test_short_helpers_go_along_and_the_import_is_within_the_line_length() -> None:
    groups = GROUPS.replace(", (others", ",\n        (others")
    both = f"{groups}    optim.LAMB(0.1), optim.LARS(0.1, weight_decay=0.1)\n"
    found = after({"one.py": module("first", both), "main.py": TAKES_ONE})
    others = "    scale_by_decayed_trust_ratio,\n    scale_by_norm_ratio,\n"
    lines = f"from optax_compat import (\n    partition_by_path,\n{others})"
    assert lines in found["one.py"]
    assert found["one.py"].count("def ") == 1


IMPORTED = {
    "a short one of two files": (
        {"one.py": module("first", LAMB), "two.py": module("second", LAMB), "main.py": BESIDE},
        "optax_compat.py",
        dict.fromkeys(("one.py", "two.py"), "from optax_compat import scale_by_norm_ratio\n"),
    ),
    "in the package, relatively": (
        {
            "kit/__init__.py": "from .one import first\nfrom .deep.two import second\n",
            "kit/deep/__init__.py": "",
            "kit/one.py": module("first", GROUPS, "from .deep import two"),
            "kit/deep/two.py": TWO,
            "main.py": WITHIN,
        },
        "kit/optax_compat.py",
        {
            "kit/one.py": "from .optax_compat import partition_by_path\n",
            "kit/deep/two.py": "from ..optax_compat import partition_by_path\n",
        },
    ),
    "beside a module of the user's with that name": (
        {
            "one.py": ONE,
            "two.py": module("second", GROUPS, "import optax_compat"),
            "optax_compat.py": "RATE = 0.1\n",
            "main.py": BESIDE,
        },
        "optax_helpers.py",
        dict.fromkeys(("one.py", "two.py"), "from optax_helpers import partition_by_path\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "place", "lines"), IMPORTED.values(), ids=IMPORTED)
def test_one_new_module_has_it_and_the_program_trains_as_before(
    files: dict[str, str],
    place: str,
    lines: dict[str, str],
    tmp_path: Path,
    legacy_wheel: Path,
) -> None:
    found = after(files)

    assert [path for path in found if path not in files] == [place]
    for path, line in lines.items():
        assert line in found[path]
        assert "def partition_by_path" not in found[path]
    # a second run changes nothing
    assert after(found) == found
    old = outcome(files, tmp_path / "before", legacy_wheel)
    assert_alike(old, outcome(found, tmp_path / "after"))


def test_scripts_of_one_folder_that_know_nothing_of_each_other_share_it() -> None:
    found = after({"one.py": ONE, "two.py": TWO})
    assert [*found] == ["one.py", "two.py", "optax_compat.py"]
    assert found["optax_compat.py"].count("def partition_by_path") == 1
    for script in ("one.py", "two.py"):
        assert "from optax_compat import partition_by_path\n" in found[script]


@pytest.mark.parametrize("indent", ["  ", "    "])
def test_it_is_indented_as_the_files_are(indent: str) -> None:
    one, two = (text.replace("    ", indent) for text in (ONE, TWO))
    shared = after({"one.py": one, "two.py": two})["optax_compat.py"]
    assert f"\n{indent}transforms = " in shared


def test_nothing_is_put_over_a_file_that_has_nothing_to_do_with_it() -> None:
    other = "print('hello')\n"
    found = after({"one.py": ONE, "two.py": TWO, "optax_compat.py": other})
    assert found["optax_compat.py"] == other
    assert "from optax_helpers import partition_by_path\n" in found["one.py"]
