"""The page in a real browser, wide and narrow, if there is one on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from optim2optax.parity.reports.rendering import render
from tests.optim2optax.browsers import check_accessible, launched
from tests.optim2optax.parity.reports.cases import HOSTILE, report

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def path(tmp_path: Path) -> Path:
    page = tmp_path / "parity.html"
    page.write_text(render(report(), "html"), encoding="utf-8")
    return page


@pytest.mark.parametrize("width", [1200, 390], ids=["wide", "narrow"])
def test_what_was_found_is_there_and_not_cut_off(
    browser: Browser, path: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(path.as_uri())
    text = page.inner_text("body")
    assert "train.py:3 Adam" in text
    assert HOSTILE in text
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(
    browser: Browser, path: Path, scheme: Literal["light", "dark"]
) -> None:
    check_accessible(browser, path, scheme)
