"""The documentation builds, without a network, and no link within it leads to nowhere."""

import re
from pathlib import Path

import pytest

from codemods import Source, migrate
from codemods.optimizers import optimizers
from codemods.rules import catalogue
from tests.optim2optax.processes import run_python

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.thorough
def test_site(tmp_path: Path) -> None:
    options = ("--fail-on-warning", "--keep-going", "--nitpicky", "--quiet")
    places = ("--doctree-dir", tmp_path / "trees", "docs", tmp_path / "site")
    done = run_python("-m", "sphinx", *options, *places, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rules = tmp_path / "site" / "rules"
    for code in catalogue():
        assert code in (rules / f"{code}.html").read_text()
        assert f"{code}.html" in (rules / "index.html").read_text()
    for name, optimizer in optimizers().items():
        page = (tmp_path / "site" / "optimizers" / f"{name}.html").read_text()
        assert "Legacy:" in page
        assert all(f"{field}</span>" in page for field in optimizer.state)
    pages = [page.read_text() for page in (tmp_path / "site").rglob("*.html")]
    loaded = re.compile(r'<(?:script|img|link)[^>]* (?:src|href)="([^"]+)"')
    sources = {source for page in pages for source in loaded.findall(page)}
    assert [source for source in sources if "//" in source] == []


GROUPS = """from flax import optim

kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
biases = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
"""


def test_what_was_measured_is_what_is_written() -> None:
    """The page on cost has each optimizer as `rewrite` writes it today."""
    table = (ROOT / "docs" / "cost.md").read_text()
    rows = dict(re.findall(r"^\| `(optim\..*?)` \| `(.*?)` \|", table, re.MULTILINE))
    made = "".join(f"optimizer_{n} = {text}\n" for n, text in enumerate(rows))
    [result] = migrate([Source("steps.py", f"{GROUPS}{made}".encode())])
    written = {one.before: " ".join(one.after.split()) for one in result.optimizers}
    assert len(rows) > len(optimizers())
    assert {before: written[before] for before in rows} == rows
