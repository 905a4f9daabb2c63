"""A browser for the tests of pages, if there is one on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium or what is made of it; skips the test if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(
            f"none of {', '.join(NAMES)} is on this machine: apt-get install chromium"
        )
    options = ["--no-sandbox", "--disable-gpu"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=options)
        yield browser
        browser.close()


def check_accessible(
    browser: Browser, path: Path, scheme: Literal["light", "dark"]
) -> None:
    """Check a page with axe-core, with everything on it open."""
    # axe comes as a script, and what is outside of the window has to be drawn to be looked at
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())
    page.add_style_tag(content="* { content-visibility: visible !important }")
    page.evaluate(
        "document.querySelectorAll('details').forEach(one => one.open = true)"
    )
    found = axe.Axe().run(page)
    context.close()
    assert found.violations_count == 0, found.generate_report()
