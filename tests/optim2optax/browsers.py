"""A browser for the tests of pages, if there is one on this machine."""

from __future__ import annotations

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--no-sandbox", "--disable-gpu")


def find_chromium() -> str:
    """The path of Chromium or of what is made of it; skips the test if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(
            f"none of {', '.join(NAMES)} is on this machine: apt-get install chromium"
        )
    return found
