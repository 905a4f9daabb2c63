"""The page in a real browser: it loads from a file, fits a window, and is accessible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.optim2optax.browsers import check_accessible, launched
from tests.optim2optax.conftest import Run
from tests.optim2optax.reporting.html.projects import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def shown(browser: Browser, project: Path, run: Run) -> Iterator[Page]:
    """The page, from its file. Whatever the console says is an error."""
    messages: list[str] = []
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.set_default_timeout(10_000)
    page.goto(write_page(project, run).as_uri())
    yield page
    page.close()
    assert messages == []


@pytest.mark.parametrize("width", [1200, 390], ids=["wide", "narrow"])
def test_nothing_is_cut_off(shown: Page, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 900})
    details = "document.querySelectorAll('details')"
    shown.evaluate(f"{details}.forEach(one => one.open = true)")
    assert shown.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(
    browser: Browser, project: Path, run: Run, scheme: Literal["light", "dark"]
) -> None:
    check_accessible(browser, write_page(project, run), scheme)
