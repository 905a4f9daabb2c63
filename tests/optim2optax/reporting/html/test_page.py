"""The page in a real browser: it loads from a file, its links lead to lines, and its filters work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.optim2optax.browsers import check_accessible, launched, playwright
from tests.optim2optax.conftest import Run
from tests.optim2optax.reporting.html.projects import HOSTILE, write_page

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


def visible(page: Page, selector: str) -> list[str]:
    """The texts of all elements that are seen."""
    found = (one for one in page.locator(selector).all() if one.is_visible())
    return [(one.text_content() or "").strip() for one in found]


def test_what_users_wrote_is_text(shown: Page) -> None:
    assert shown.title().startswith("Review: ")
    # the few files there are stand open
    assert shown.locator(".file:not([open])").count() == 0
    assert HOSTILE in (
        shown.locator(".diff").filter(has_text="NOTE").text_content() or ""
    )
    assert shown.locator("b:text('.py')").count() == 0
    assert shown.get_by_role("heading", name="<b>.py", exact=True).count() == 1


def test_totals_add_up(shown: Page) -> None:
    done, sites = map(
        int, re.findall(r"\d+", shown.locator(".lead strong").inner_text())
    )
    totals = [int(text) for text in shown.locator(".totals dd").all_inner_texts()]
    assert sum(totals) == sites == shown.locator(".sites li").count()
    assert totals[0] == done


def test_every_link_leads_somewhere(shown: Page) -> None:
    missing = shown.evaluate(
        "[...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))"
        ".filter(to => !to.startsWith('#') || !document.getElementById(to.slice(1)))"
    )
    assert missing == []


def test_a_link_opens_the_file_at_its_line(shown: Page) -> None:
    assert shown.locator("#left h3").inner_text() == "6 sites wait for probe.py:7"
    shown.locator("#left h3 a").click()
    line = shown.locator(".diff .target")
    assert line.is_visible()
    assert "type(optimizer)" in line.inner_text()


def test_the_picture_leads_to_the_lines(shown: Page) -> None:
    card = shown.locator(".optimizer").filter(has_text="model/make.py:5")
    if card.get_attribute("open") is None:
        card.locator("summary").click()
    boxes = card.locator(".flow text.title").all_text_contents()
    assert boxes[:3] == ["model/make.py:5", "model/train.py:6", "model/train.py:8"]
    assert {"steps", "parameters", "state"} <= {*boxes}
    card.locator(".flow a", has_text="model/steps.py:2").click()
    assert "apply_gradient" in shown.locator(".diff .target").inner_text()


def test_filters(shown: Page) -> None:
    shown.locator("#by-evidence").select_option("deduced")
    assert {*visible(shown, ".file h3")} == {"probe.py"}
    assert shown.locator("#shown").inner_text() == "1 site in 1 file"
    assert visible(shown, ".sites li:not(.other) .evidence") == [
        "used as only an optimizer can be"
    ]
    shown.keyboard.press("Escape")
    shown.locator("#by-code").select_option("FO204")
    assert {*visible(shown, ".file h3")} >= {"model/steps.py"}
    assert all(
        code == "FO204" for code in visible(shown, ".sites li:not(.other) > .code")
    )
    shown.locator("#by-status").select_option("suppressed")
    assert visible(shown, ".file h3") == []
    assert shown.get_by_text("Nothing is like that.").is_visible()
    shown.keyboard.press("Escape")
    assert len(visible(shown, ".file h3")) == shown.locator(".file").count()


def test_one_optimizer_alone(shown: Page) -> None:
    choice = shown.locator("#by-optimizer")
    choice.select_option(label="Adam model/make.py:5")
    assert {*visible(shown, ".file h3")} == {
        "model/make.py",
        "model/steps.py",
        "model/train.py",
    }


def test_keys(shown: Page) -> None:
    shown.keyboard.press("/")
    shown.keyboard.type("adagrad")
    playwright.expect(shown.locator("#shown")).to_contain_text("in 2 files")
    assert visible(shown, ".file h3") == ["<b>.py", "optax_compat.py"]
    shown.keyboard.press("Escape")
    seen = []
    for key in ("j", "j", "k"):
        shown.keyboard.press(key)
        seen.append(shown.evaluate("document.activeElement.innerText"))
    assert seen[0] == seen[2] != seen[1]


def test_all_is_printed(shown: Page) -> None:
    shown.emulate_media(media="print")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.locator("details:not([open])").count() == 0
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.locator(".rule:not([open])").count() > 0
    assert shown.pdf()[:4] == b"%PDF"


@pytest.mark.parametrize("width", [1200, 390], ids=["wide", "narrow"])
def test_nothing_is_cut_off(shown: Page, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 900})
    shown.evaluate(
        "document.querySelectorAll('details').forEach(one => one.open = true)"
    )
    assert shown.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(
    browser: Browser, project: Path, run: Run, scheme: Literal["light", "dark"]
) -> None:
    check_accessible(browser, write_page(project, run), scheme)


def test_nothing_outside_is_asked_for(project: Path, run: Run) -> None:
    text = write_page(project, run).read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r'(?:src|href)="(?!#)', text)
