"""docs/reference/json.md names every key that the reports have, and no other."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codemods.vocabulary import words
from optim2optax.parity.reports.rendering import render
from tests.optim2optax.conftest import Run
from tests.optim2optax.parity.reports.cases import report
from tests.optim2optax.programs import UNRESOLVABLE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
OTHER_WORDS = {
    *words("""
        rewrite parity rewritten suppressed unresolved identical equivalent different
        edited new could_not_run nothing_proven proven declared deduced likely optimizer
        scenario command
    """)
}


def keys(value: Any) -> Iterator[str]:
    """All keys of dictionaries, but those that name packages."""
    if isinstance(value, dict):
        yield from value
        for key, item in value.items():
            if key != "versions":
                yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


def test_keys(project: Path, run: Run) -> None:
    (project / "describe.py").write_text(UNRESOLVABLE)
    rewritten = run("rewrite", "--diff", "--output-format", "json", ".").stdout
    reports = (rewritten, render(report(), "json"))
    real = {key for text in reports for key in keys(json.loads(text))}
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`([a-z_]+)`", prose)) - OTHER_WORDS
    assert named - real == set()
    in_prose_or_sample = named | set(re.findall(r'"(\w+)":', PAGE)) | OTHER_WORDS
    assert real - in_prose_or_sample == set()
