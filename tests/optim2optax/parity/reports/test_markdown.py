"""The report for a pull request: what is cut, and how names look in the titles of sections."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optim2optax.parity.reports import render_markdown
from optim2optax.parity.reports.result import Report
from tests.optim2optax.parity.reports.cases import report


def repeated(times: int) -> Report:
    return replace(report(), cases=report().cases * times)


def test_a_report_of_exactly_the_limit_is_whole() -> None:
    text = render_markdown(report())

    assert render_markdown(report(), len(text.encode())) == text
    assert "left out" not in text


@pytest.mark.parametrize("limit", [100, 900, 14_000, 30_000])
def test_every_case_is_shown_whole_or_left_out(limit: int) -> None:
    text = render_markdown(repeated(50), limit)

    assert "the rest is left out here" in text
    assert len(text.encode()) <= limit
    assert text.count("<details>") == text.count("</details>")


def test_the_title_of_a_section_has_no_backslashes() -> None:
    case = replace(report().cases[0], name="src/my_train.py a|b <b>")

    text = render_markdown(Report((case,), report().environment))

    assert "<summary>src/my_train.py a|b &lt;b&gt;: different</summary>" in text
    assert "| src/my\\_train.py a\\|b &lt;b&gt; |" in text
