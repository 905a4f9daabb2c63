"""The page as text: what it says of a run, and when it cannot be written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optim2optax.reporting.html.code import highlighted
from optim2optax.reporting.html.records import set_out
from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY, MODERN
from tests.optim2optax.reporting.html.projects import HOSTILE, write_page

TWO_CAUSES = """\
from flax import optim


def one(params, grads):
    optimizer = optim.Adam(1e-3).create(params)
    print(type(optimizer).__name__)
    return optimizer.apply_gradient(grads)


def many(params, grads):
    optimizer = optim.Momentum(0.1).create(params)
    print(type(optimizer).__name__)
    for _ in range(3):
        optimizer = optimizer.apply_gradient(grads)
    return optimizer, optimizer.target, optimizer.state.step
"""


def test_what_is_left_comes_best_first(project: Path, run: Run) -> None:
    (project / "train.py").write_text(TWO_CAUSES)
    run("rewrite", "--check", "--html", "review.html", ".")
    text = (project / "review.html").read_text()
    causes = re.findall(r"<h3>\s*(\d+) sites\s+wait for\s*<a[^>]*>([^<]+)</a>", text)
    assert causes == [("5", "train.py:12"), ("4", "train.py:6")]


def test_nothing_of_a_file_is_markup(project: Path, run: Run) -> None:
    text = write_page(project, run).read_text()
    assert HOSTILE not in text
    assert text.count("<script>") == 1
    assert "<b>.py" not in text


def test_the_same_run_gives_the_same_page(project: Path, run: Run) -> None:
    first = write_page(project, run).read_text()
    assert write_page(project, run).read_text() == first


def test_a_page_of_nothing(project: Path, run: Run) -> None:
    (project / "train.py").write_text(MODERN)
    assert run("rewrite", "--html", "review.html", ".").exit_code == 0
    assert "Nothing to migrate." in (project / "review.html").read_text()


def test_a_page_beside_a_diff(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    plain = run("rewrite", "--diff", ".")
    beside = run("rewrite", "--diff", "--html", "review.html", ".")
    assert (beside.stdout, beside.stderr) == (plain.stdout, plain.stderr)


def test_the_page_of_a_run_that_writes(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    assert run("rewrite", "--html", "review.html", ".").exit_code == 0
    text = (project / "review.html").read_text()
    assert "<strong>5 of 5 sites</strong> rewritten,\n1 file changed:" in text
    assert "would be" not in text.partition("<script>")[0]


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.usefixtures("judged")
def test_proofs(project: Path, run: Run) -> None:
    (project / "train.py").write_text(
        LEGACY.replace("Momentum", "Adam").replace(", beta=0.9", "")
    )
    result = run("rewrite", "--verify", "--html", "review.html", ".")
    assert result.exit_code == 0, result.output
    text = (project / "review.html").read_text()
    assert (
        'class="passes">equivalent</b> The same function: in 120 steps, the largest difference is '
        in text
    )
    assert text.count("<polyline") == 2
    assert "p ← p − η·m̂/(√v̂ + ε) − η·λ·p" in text


def test_without_a_folder(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    result = run("rewrite", "--html", "pages/review.html", ".")
    assert result.exit_code == 2
    assert "there is no folder pages" in result.stderr
    assert (project / "train.py").read_text() == LEGACY


def test_code_in_rules_is_coloured() -> None:
    assert highlighted("return x") == '<span class="keyword">return</span> x'


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        pytest.param("optim.Adam(1e-3)", "optim.Adam(1e-3)", id="one-line"),
        pytest.param(
            "optim.Adam(1e-3,\n               0.9,\n               eps=1e-6)",
            "optim.Adam(1e-3,\n    0.9,\n    eps=1e-6)",
            id="lined-up",
        ),
        pytest.param(
            "optax.adam(\n            1e-3,\n            eps=f(\n                2\n            ),\n        )",
            "optax.adam(\n    1e-3,\n    eps=f(\n        2\n    ),\n)",
            id="closed-at-the-left",
        ),
    ],
)
def test_expressions_begin_at_the_left(written: str, shown: str) -> None:
    assert set_out(written) == shown
