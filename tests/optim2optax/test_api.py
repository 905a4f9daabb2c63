"""The functions for other programs, and that each example of them, in docstrings and in docs/api.md, is true."""

import doctest
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

from optim2optax import Options, api, compare, rewrite
from optim2optax.wording import command_to_install
from tests.optim2optax.folders import notebook
from tests.optim2optax.processes import run_python
from tests.optim2optax.programs import LEGACY, MODERN

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
EXAMPLES = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("legacy_wheel")
def test_the_examples_of_docstrings() -> None:
    failed, attempted = doctest.testmod(api)
    assert failed == 0 < attempted


@pytest.mark.usefixtures("legacy_wheel")
def test_the_examples_of_the_page() -> None:
    examples = "".join(EXAMPLES.findall(PAGE.read_text(encoding="utf-8")))
    test = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize() == (0, len(test.examples))
    assert len(test.examples) > 20


def test_what_is_not_legacy_stays() -> None:
    assert rewrite(MODERN) == api.Rewritten(MODERN, ())
    assert rewrite("") == api.Rewritten("", ())
    assert rewrite(LEGACY, Options(select=("FO9",))).source == LEGACY


HEADS = {
    "utf-8": ("# \u2207\n", "\n"),
    "byte order mark": ("\ufeff", "\n"),
    "carriage returns": ("# \u2207\n", "\r\n"),
    "coding line": ("# coding: latin-1\n# é\n", "\n"),
}


@pytest.mark.parametrize(("head", "end"), HEADS.values(), ids=HEADS)
def test_a_text_stays_what_it_is_around_the_sites(head: str, end: str) -> None:
    rewritten = rewrite((head + LEGACY).replace("\n", end)).source
    assert rewritten == (head + rewrite(LEGACY).source).replace("\n", end)


def test_a_notebook() -> None:
    rewritten = rewrite(notebook(LEGACY), filename="train.ipynb").source
    [cell] = json.loads(rewritten)["cells"]
    assert "".join(cell["source"]) == rewrite(LEGACY).source


@pytest.mark.parametrize(
    "source",
    ["from flax import optim\n(", "# coding: nonsense\n", "import flax.optim\0"],
)
def test_what_is_not_python(source: str) -> None:
    with pytest.raises(SyntaxError):
        rewrite(source)


def test_an_internal_error_is_no_syntax_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(code: str) -> None:
        raise KeyError(code[:4])

    monkeypatch.setattr("codemods.engine.parse", parse)
    with pytest.raises(RuntimeError, match=r"FO930 .*'impo'(.|\n)*Traceback"):
        rewrite(LEGACY)


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (optax.sgd(0.1), optax.sgd, TypeError),
        (optax.sgd(0.1), None, TypeError),
        ("optim.Adam(config.lr)", optax.adam(0.1), ValueError),
        ("optim.Adam(", optax.adam(0.1), ValueError),
    ],
)
def test_what_is_no_optimizer(old: Any, new: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        compare(old, new)


@pytest.mark.usefixtures("legacy_wheel")
def test_either_side_may_be_of_either_kind() -> None:
    old, params = "optim.GradientDescent(0.1)", {"w": np.ones(3)}
    comparison = compare(optax.sgd(0.1), old, steps=100, params=params)
    assert (comparison.verdict, comparison.steps) == ("identical", 100)


def test_pytest_without_the_extra(tmp_path: Path) -> None:
    program = "import sys; sys.modules['jax'] = None; import pytest; sys.exit(pytest.main(['--parity', '.']))"
    done = run_python("-c", program, cwd=tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.startswith("ERROR: parity needs jax: ")
    assert "[parity]" in done.stderr


def test_without_the_extra() -> None:
    program = "import sys; sys.modules['jax'] = None; import optim2optax; optim2optax.compare('', '')"
    done = run_python("-c", program)
    needs = "optim2optax.compare needs jax: " + command_to_install("parity")
    assert done.stderr.endswith(f"\nModuleNotFoundError: {needs}\n")
