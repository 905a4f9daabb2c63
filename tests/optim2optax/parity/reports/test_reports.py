"""The formats of a parity report."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import click

from codemods.vocabulary import words
from optim2optax.parity.reports.rendering import render
from optim2optax.parity.reports.result import Report
from tests.optim2optax.parity.reports.cases import HOSTILE, report

VERDICTS = words("different could_not_run nothing_proven equivalent identical")
VOID = ("meta", "br", "img", "link", "use", "path")


def test_text_tells_all_that_matters() -> None:
    lines = click.unstyle(render(report(), "text")).splitlines()

    found = [line.partition("  ")[0] for line in lines if line[:1].strip()]
    assert found[:5] == [verdict.replace("_", " ") for verdict in VERDICTS]
    figures = "3 steps, error over movement 2.0e-15, float32 drift 3.0e-07"
    assert f"equivalent      train.py:3 Adam  {figures}" in lines
    still = "nothing proven  fixtures/still  3 steps, error over movement 0.0e+00 (closed loop, gate 1e-07)"
    assert lines[lines.index(still) + 1] == "    No parameter ever moved."
    assert "    note: scale never moved." in lines
    place = "first at step 1, Dense_0/kernel[0, 2]: 0.5 before, nan after"
    assert f"    the weight decay is missing; {place}" in lines
    assert "    note: a known fault" in lines
    assert "    No data <here>" in lines
    counted = (
        "1 identical, 1 equivalent, 1 different, 1 could not run, 1 nothing proven"
    )
    assert f"5 cases: {counted}" in lines
    assert "on 2 × cpu (cpu); python 3.11.0, jax 0.4.36; seed 7" in lines[-1]
    assert "\x1b" not in "".join(lines)
    assert "\x1b" in render(report(), "text")


def test_json_is_strict_and_complete() -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    content = json.loads(render(report(), "json"), parse_constant=refuse)

    assert content["version"] == 1
    different, failed, still, same, _ = content["cases"]
    verdicts = [case["verdict"] for case in content["cases"]]
    assert tuple(verdicts) == VERDICTS
    assert content["summary"] == dict.fromkeys(verdicts, 1)
    assert still["remarks"] == ["No parameter ever moved."]
    assert (still["gate"], same["gate"]) == (1e-7, 1e-11)
    assert different["error"] == "inf"
    assert different["first_difference"] == {
        "step": 1,
        "leaf": "Dense_0/kernel",
        "index": [0, 2],
        "before": 0.5,
        "after": "nan",
        "ulp": None,
        "link": "decay",
        "cause": "the weight decay is missing",
    }
    assert failed["first_difference"] is None
    assert (same["reproduction"], failed["reproduction"]) == ("print(1)", "")
    assert content["environment"]["versions"]["jax"] == "0.4.36"


def test_exit_codes() -> None:
    everything = report()
    different, failed, still, *passing = everything.cases
    for code, cases in enumerate((passing, [different, *passing], everything.cases)):
        assert replace(everything, cases=tuple(cases)).exit_code == code
    for cases in ((failed, *passing), (still, *passing), ()):
        assert replace(everything, cases=cases).exit_code == 2


def test_markdown_escapes_what_users_wrote() -> None:
    text = render(report(), "markdown")
    rows = [line for line in text.splitlines() if line.startswith("| ")]

    assert [row.count(" | ") for row in rows] == [5] * 6
    assert "<script>" not in text.replace(f"x = '{HOSTILE}'", "")
    assert "different" in rows[1]
    assert "0.0e+00 (closed loop, gate 1e-07)" in rows[3]
    assert "No parameter ever moved." in text
    assert "````python\n```\ny = 1\n```\n````" in text


def test_the_title_of_a_section_of_markdown_has_no_backslashes() -> None:
    case = replace(report().cases[0], name="src/my_train.py a|b <b>")

    text = render(Report((case,), report().environment), "markdown")

    assert "<summary>src/my_train.py a|b &lt;b&gt;: different</summary>" in text
    assert "| src/my\\_train.py a\\|b &lt;b&gt; |" in text


def test_html_is_one_balanced_page_with_nothing_outside() -> None:
    page = render(report(), "html")
    Balanced().feed(page)

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 2
    assert "in 3 steps, the largest difference is 2.0e-15 of how far" in page
    assert render(report(), "html") == page


def test_html_holds_no_element_or_attribute_of_a_users() -> None:
    attack = '\'" onmouseover="alert(1)" x=\'><img src=x onerror=alert(1)><svg/onload=alert(1)></pre></style>{{ 7 * 7 }}'
    plain, hostile = report(), report()
    for found, text in ((plain, "text"), (hostile, attack)):
        texts: Any = dict.fromkeys(("name", "before", "after", "reason"), text)
        cases = tuple(replace(case, **texts) for case in found.cases)
        page = render(replace(found, cases=cases), "html")
        parser = Elements()
        parser.feed(page)
        if found is plain:
            expected = parser.found
    assert parser.found == expected
    assert "{{ 7 * 7 }}" in page


class Elements(HTMLParser):
    """Takes down all elements with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def test_a_report_without_cases() -> None:
    empty = Report((), report().environment)
    assert "0 cases" in click.unstyle(render(empty, "text"))
    assert json.loads(render(empty, "json"))["cases"] == []
    Balanced().feed(render(empty, "html"))


class Balanced(HTMLParser):
    """Fails at a tag that is closed in the wrong order, and at a reference to anything outside of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href"):
                assert value is not None
                assert value.startswith("#")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag("br", attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag
