"""The page in a real browser, wide and narrow, if there is one on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from optim2optax.parity.reports import render_html
from tests.optim2optax.browsers import OPTIONS, find_chromium
from tests.optim2optax.parity.reports.cases import HOSTILE, report
from tests.optim2optax.processes import run_program


@pytest.fixture(scope="module")
def browser() -> str:
    return find_chromium()


def show(browser: str, folder: Path, *words: str, script: str = "") -> str:
    page = folder / "parity.html"
    page.write_text(f"{render_html(report())}{script}", encoding="utf-8")
    options = ("--headless", *OPTIONS, f"--user-data-dir={folder / 'profile'}")
    done = run_program(browser, *options, *words, page.as_uri(), timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_holds_what_was_found(browser: str, tmp_path: Path) -> None:
    text = show(browser, tmp_path, "--dump-dom")
    assert "train.py:3 Adam" in text
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in text


@pytest.mark.parametrize(
    ("width", "height"), [(1200, 2000), (500, 4000)], ids=["wide", "narrow"]
)
def test_nothing_is_cut_off(
    browser: str, tmp_path: Path, width: int, height: int
) -> None:
    script = "<script>document.title = document.documentElement.scrollWidth - document.documentElement.clientWidth</script>"
    words = (f"--window-size={width},{height}", "--dump-dom")
    assert "<title>0</title>" in show(browser, tmp_path, *words, script=script)
