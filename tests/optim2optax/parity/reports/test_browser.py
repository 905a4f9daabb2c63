"""The page in a real browser, wide and narrow, if there is one on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from optim2optax.parity.reports import render_html
from tests.optim2optax.browsers import OPTIONS, find_chromium
from tests.optim2optax.parity.reports.cases import HOSTILE, report


@pytest.fixture(scope="module")
def browser() -> str:
    return find_chromium()


def show(browser: str, folder: Path, *words: str) -> str:
    page = folder / "parity.html"
    page.write_text(render_html(report()), encoding="utf-8")
    options = [
        "--headless",
        *OPTIONS,
        f"--user-data-dir={folder / 'profile'}",
    ]
    done = subprocess.run(
        [browser, *options, *words, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
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
    picture = tmp_path / "page.png"
    show(
        browser,
        tmp_path,
        f"--window-size={width},{height}",
        f"--screenshot={picture}",
        "--hide-scrollbars",
    )
    assert picture.stat().st_size > 10_000
    script = "<script>document.title = document.documentElement.scrollWidth - document.documentElement.clientWidth</script>"
    page = tmp_path / "parity.html"
    page.write_text(
        render_html(report()).replace("</body>", f"{script}</body>"), encoding="utf-8"
    )
    done = subprocess.run(
        [
            *(
                browser,
                "--headless",
                *OPTIONS,
                f"--user-data-dir={tmp_path / 'profile'}",
            ),
            *(f"--window-size={width},{height}", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "<title>0</title>" in done.stdout
