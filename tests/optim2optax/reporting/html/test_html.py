"""The page as text: what it says of a run, and when it cannot be written."""

import re
from pathlib import Path

import pytest
from markupsafe import escape

from codemods import FileResult
from optim2optax.reporting.diff import unified_diff
from optim2optax.reporting.html.excerpts import excerpts
from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY, MODERN
from tests.optim2optax.reporting.html.projects import HOSTILE, write_page

FIXTURES = sorted((Path(__file__).parents[4] / "fixtures").glob("*/before.py"))
TWO_CAUSES = """\
from flax import optim
import jax


def one(params, grads):
    optimizer = optim.Adam(1e-3).create(params)
    print(type(optimizer).__name__)
    return optimizer.apply_gradient(grads)


def many(params, grads):
    optimizer = optim.Momentum(0.1).create(params)
    print(jax.tree_util.tree_leaves(optimizer)[0])
    for _ in range(3):
        optimizer = optimizer.apply_gradient(grads)
    return optimizer, optimizer.target, optimizer.state.step
"""


def test_what_is_left_comes_best_first(project: Path, run: Run) -> None:
    (project / "train.py").write_text(TWO_CAUSES)
    run("rewrite", "--check", "--html", "review.html", ".")
    text = (project / "review.html").read_text()
    cause = r"(train.py:\d+)</a></span>\n<details><summary>(\d+) sites"
    causes = re.findall(cause, text)
    assert causes == [("train.py:13", "5"), ("train.py:7", "4")]


def test_nothing_of_a_file_is_markup(project: Path, run: Run) -> None:
    text = write_page(project, run).read_text()
    assert "<script" not in text
    assert str(escape(HOSTILE)) in text
    assert "<b>.py" not in text


def test_links_lead_to_lines_of_the_page(project: Path, run: Run) -> None:
    text = write_page(project, run).read_text()
    names = re.findall(r'id="([^"]+)"', text)
    assert len({*names}) == len(names)
    assert {*re.findall(r'href="#([^"]+)"', text)} <= {*names}
    assert "steps.py:2</a> <code>optimizer.apply_gradient</code>" in text


def test_nothing_outside_is_asked_for(project: Path, run: Run) -> None:
    text = write_page(project, run).read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r'(?:src|href)="(?!#)', text)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parent.name)
def test_an_excerpt_has_the_lines_of_the_diff(path: Path) -> None:
    after = path.with_name("after.py")
    if not after.exists():
        pytest.skip("it has no one outcome")
    result = FileResult("train.py", path.read_bytes(), after.read_bytes())
    rows = [row for part in excerpts(result, ()) for row in part.rows]
    diff = unified_diff(result).decode().splitlines()[2:]
    lines = [line for line in diff if not line.startswith(("@@", "\\"))]
    assert [f"{row.sign}{row.code}" for row in rows] == lines
    old = path.read_text().split("\n")
    assert all(old[row.old - 1] == row.code for row in rows if row.old)


def test_lines_that_do_not_change_are_shown_where_asked_for() -> None:
    text = "".join(f"line{number}\n" for number in range(1, 21))
    changed = text.replace("line3\n", "line3\nmore\n")
    result = FileResult("train.py", text.encode(), changed.encode())
    first, second = excerpts(result, {15})
    assert [row.new for row in first.rows] == [1, 2, 3, 4, 5, 6, 7]
    shown = [(row.old, row.new) for row in second.rows]
    assert shown == [(old, old + 1) for old in range(12, 19)]


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
    assert "<strong>5 of 5 sites</strong> rewritten in 1 file, +7 −4 lines;" in text
    assert "would be" not in text


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.usefixtures("judged")
def test_proofs(project: Path, run: Run) -> None:
    program = LEGACY.replace("Momentum", "Adam").replace(", beta=0.9", "")
    (project / "train.py").write_text(program)
    result = run("rewrite", "--verify", "--html", "review.html", ".")
    assert result.exit_code == 0, result.output
    text = (project / "review.html").read_text()
    assert '<b class="passes">equivalent</b>' in text
    assert "<p>The same function: in 120 steps, the largest difference is " in text
    assert text.count("<polyline") == 2
    assert "p ← p − η·m̂/(√v̂ + ε) − η·λ·p" in text


def test_without_a_folder(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    result = run("rewrite", "--html", "pages/review.html", ".")
    assert result.exit_code == 2
    assert "there is no folder pages" in result.stderr
    assert (project / "train.py").read_text() == LEGACY
