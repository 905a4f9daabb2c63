"""docs/idioms.md: what the rules say, and the verdicts on the fixtures that they act on. As a script, this writes it anew."""

import re
from functools import cache
from pathlib import Path

import pytest

from codemods import Options, Source, migrate
from codemods.rules import Rule, catalogue
from codemods.rules.idioms import in_order

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "idioms.md"
FUNCTIONAL = " (functional)"
ROW = re.compile(
    r"^\| \S+ \| fixtures/(\w+(?: \(\w+\))?) \| (\w+) \| (\S+)[^|]* \|", re.MULTILINE
)
HEAD = """# Idioms

This page lists the shorter forms that a person would write. `optim2optax rewrite` writes them instead of its general forms if
they provably mean the same. The general forms are always right; `--ignore` with a code keeps them. A note at a site says why a
likely form was not used.

Fixtures, which are small programs, are trained before and after the migration, in float64, on the same batches. The verdicts
below are those of `make parity`.
"""
UNCHANGED = (
    "decay_after_step",
    "gradient_accumulation",
    "finite_guard",
    "target_network",
)
KEPT = """
## What stays as it is, and why

optax has functions for four more things that training loops do by hand, but with another meaning. So these stay code around the
step:

- **Weight decay after the step**, `optimizer.replace(target=(1 - lr * decay) * optimizer.target)`, decays the result of the
  step. With the update `u`, that is `(1 - lr * decay) * (p + u)`; `optax.add_decayed_weights` computes
  `p + u - lr * decay * p`, which differs by `lr * decay * u`.
- **Gradient accumulation** within a step, where a loop adds up the gradients of parts of a batch, makes one update per call of
  the step. `optax.MultiSteps` has to be called for each part, and a train state's `step` would count the parts.
- **Guards against gradients that are not finite** keep the old state and its `step` every time. `optax.apply_if_finite` gives
  up after `max_consecutive_errors`, and a train state's `step` counts the updates that it skipped.
- **Averages of parameters** are not part of the optimizer's state: programs read them for evaluation, and store them separately.

"""


@cache
def page() -> str:
    """The page as the rules, the fixtures and their verdicts make it now."""
    rows = ROW.findall(_plain(ROOT / "docs" / "parity.md"))
    verdicts = {name: (verdict, error) for name, verdict, error in rows}
    acted: dict[str, set[str]] = {}
    for path in sorted((ROOT / "fixtures").glob("*/before.py")):
        acted[path.parent.name] = _codes(path, Options())
        if (path.parent / "after_functional.py").exists():
            codes = _codes(path, Options(style="functional"))
            acted[path.parent.name + FUNCTIONAL] = codes
    text = HEAD
    for code in (idiom.code for idiom in in_order()):
        names = [name for name, codes in acted.items() if code in codes]
        # a form that no fixture exercises has its page among the rules alone
        if names:
            fixtures = [(name, *verdicts[name]) for name in names]
            text += _section(catalogue()[code], fixtures)
    unchanged = [name for name in acted if name.startswith(UNCHANGED)]
    return text + KEPT + _rows([(name, *verdicts[name]) for name in unchanged])


def _codes(path: Path, options: Options) -> set[str]:
    [result] = migrate([Source("before.py", path.read_bytes())], options)
    return {site.code for site in result.sites}


def _plain(path: Path) -> str:
    return path.read_text().replace("\\_", "_")


def _section(rule: Rule, fixtures: list[tuple[str, str, str]]) -> str:
    return f"""
## {rule.code}: {rule.summary}

{rule.explanation}

Before:

```python
{rule.before.rstrip()}
```

After:

```python
{rule.after.rstrip()}
```

{_rows(fixtures)}"""


def _rows(fixtures: list[tuple[str, str, str]]) -> str:
    return "| Fixture | Verdict | Error over movement |\n|---|---|---|\n" + "".join(
        f"| [{name}](../fixtures/{name.removesuffix(FUNCTIONAL)}) | {verdict} | {error} |\n"
        for name, verdict, error in fixtures
    )


@pytest.mark.thorough
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


def test_every_form_is_exercised_and_none_differs() -> None:
    for section in PAGE.read_text().split("\n## ")[1:]:
        row = r"^\| \[[^]]+\]\(\S+\) \| (\w+) \|"
        verdicts = re.findall(row, section, re.MULTILINE)
        assert verdicts
        assert {*verdicts} <= {"identical", "equivalent"}


if __name__ == "__main__":
    PAGE.write_text(page())
