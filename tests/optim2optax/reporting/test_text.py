"""Text: what is left, with reason and remedy, then totals that add up."""

import re
from dataclasses import replace
from pathlib import Path

import click
import pytest

from codemods import FileResult
from optim2optax.reporting import Report, render
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import write_files
from tests.optim2optax.programs import LEGACY, MIXED
from tests.optim2optax.reporting.reports import report, site

TOTALS = re.compile(
    r"^(\d+) sites in (\d+) files?: (\d+) (?:would be )?rewritten, (\d+) suppressed, (\d+) unresolved$",
    re.MULTILINE,
)


def plain(found: Report) -> str:
    return click.unstyle(render(found, "text"))


def test_a_whole_report() -> None:
    done = FileResult("a.py", b"old", b"new", (site("FO202", "rewritten"),))
    assert plain(Report([done])) == (
        "a.py: 1 site rewritten\n1 site in 1 file: 1 rewritten, 0 suppressed, 0 unresolved\n"
    )
    why = "The class is chosen at run time."
    left = site("FO903", "unresolved", 6, why, "Name it.")
    sites = (site("FO202", "rewritten"), left)
    mixed = FileResult("a.py", b"old", b"new", sites, unused_suppressions=(9,))
    bad = FileResult("b.py", b"", b"", error="line 1: cannot be parsed")
    assert plain(Report([mixed, bad], preview=True)) == (
        "a.py:6:5: FO903 The class is chosen at run time.\n"
        "    fix: Name it.\n"
        "a.py:9: unused suppression: there is nothing to ignore here\n"
        "b.py: error: line 1: cannot be parsed\n"
        "\n"
        "a.py: 1 site would be rewritten\n"
        "2 sites in 1 file: 1 would be rewritten, 0 suppressed, 1 unresolved\n"
        "1 file could not be read, parsed or written: see above\n"
    )


def test_where_optimizers_go_out_of_view_is_told_with_all_lines() -> None:
    lines = range(1, 14)
    hints = tuple(site("FO932", "hint", line, "To `report`.") for line in lines)
    files = [FileResult(f"{name}.py", b"", b"", hints=hints) for name in "abcde"]
    # the lines of a file once, where it would else be listed with how many more there are
    text = plain(Report(files))
    assert text.count("FO932") == 1
    listed = ", ".join(map(str, lines))
    assert "a.py:1:5: FO932 To `report`.\n" in text
    assert all(f"{name}.py:{listed}" in text for name in "bcde")


def test_a_remark_on_what_was_rewritten() -> None:
    note = "The rate stays one that each step sets."
    noted = replace(site("FO204", "rewritten"), note=note)
    assert plain(Report([FileResult("a.py", b"old", b"new", (noted,))])) == (
        "a.py:3:5: note The rate stays one that each step sets.\n"
        "\n"
        "a.py: 1 site rewritten\n"
        "1 site in 1 file: 1 rewritten, 0 suppressed, 0 unresolved\n"
    )


TYPE_IS_ASKED = """\
from flax import optim


def describe(optimizer: optim.Optimizer):
    return type(optimizer).__name__, optimizer.state.step
"""


def test_what_waits_for_a_site_is_counted_below_it(project: Path, run: Run) -> None:
    use = "\n\nfrom describe import describe\ndescribe(create_optimizer({}))\n"
    write_files(project, {"train.py": LEGACY + use, "describe.py": TYPE_IS_ASKED})
    lines = run("rewrite", "--check", ".").stdout.splitlines()
    assert lines == [
        "describe.py:5:12: FO924 Its type is read here: each legacy optimizer had its own type, and all train states have the same.",
        "    fix: Tell optimizers apart by a name of their own.",
        "    waiting for this: 8 sites at train.py:2, 6, 11, 12; describe.py:1, 4, 5",
        "",
        "9 sites in 2 files: 0 would be rewritten, 0 suppressed, 9 unresolved",
        "6 of 7 uses that stay can be rewritten with `--partial`, which marks the other with a TODO.",
    ]


def test_what_waits_for_a_suppressed_site(project: Path, run: Run) -> None:
    kept = LEGACY.replace("(grads)\n", "(grads)  # optim2optax: ignore\n")
    (project / "train.py").write_text(kept)
    assert run("rewrite", "--check", ".").stdout.splitlines() == [
        "train.py:11:17: FO914 This is suppressed or not selected.",
        "    fix: Include that site, or use `--partial`.",
        "    waiting for this: 4 sites at train.py:2, 6, 12",
        "",
        "5 sites in 1 file: 0 would be rewritten, 1 suppressed, 4 unresolved",
        "3 of 3 uses that stay can be rewritten with `--partial`.",
    ]


COUNTING = """\
import jax
from flax import optim


def save(params, other):
    optimizer = optim.Adam(0.1).create(params)
    len(jax.tree_util.tree_leaves(optimizer))
    print(optimizer.target)
    len(jax.tree_util.tree_leaves(optimizer))
"""


OFTEN = COUNTING + "    len(jax.tree_util.tree_leaves(optimizer))\n" * 12


def test_what_strikes_at_several_places_for_one_reason_is_one_entry(
    project: Path, run: Run
) -> None:
    write_files(project, {"a.py": COUNTING, "b.py": COUNTING, "c.py": OFTEN})
    lines = run("rewrite", ".").stdout.splitlines()
    counted = "a.py:7:9: FO924 The leaves of the optimizer are counted "
    assert lines[0].startswith(counted)
    assert lines[2:] == [
        "    also at c.py:7, 9, 10, 11, 12, 13, 14, 15, 16, 17 and 4 more; b.py:7, 9; a.py:9",
        "    waiting for these: 12 sites at a.py:2, 6, 8; b.py:2, 6, 8; c.py:2, 6, 8",
        "",
        "30 sites in 3 files: 0 rewritten, 0 suppressed, 30 unresolved",
        "9 of 27 uses that stay can be rewritten with `--partial`, which marks the other 18 with a TODO.",
    ]


def test_verbose_has_every_line_of_what_is_left(project: Path, run: Run) -> None:
    lines = range(7, 22)
    write_files(project, {f"{name}.py": OFTEN for name in "abcde"})
    short = run("rewrite", ".").stdout
    assert "and 4 more" in short
    assert "e.py:" not in short
    first, _, also, waiting, *_ = run("rewrite", "--verbose", ".").stdout.splitlines()
    assert first.startswith("a.py:7:9: FO924 ")
    for name in "abcde":
        first_is_told = 7 if name == "a" else 0
        told = [str(line) for line in lines if line not in (8, first_is_told)]
        assert f"{name}.py:{', '.join(told)}" in also
        assert f"{name}.py:2, 6, 8" in waiting


def test_what_partial_work_marks_is_what_it_rewrites_something_beside(
    project: Path, run: Run
) -> None:
    """In the file of the step nothing can be rewritten, so that no comment gets there."""
    (project / "train.py").write_text(LEGACY)
    leaves = "jax.tree_util.tree_leaves(train.create_optimizer({}))"
    (project / "sizes.py").write_text(f"import jax\nimport train\n\n{leaves}[0]\n")
    told = "\n4 of 5 uses that stay can be rewritten with `--partial`.\n"
    assert run("rewrite", "--check", ".").stdout.endswith(told)
    assert run("rewrite", "--partial", ".").exit_code == 1
    assert "TODO" not in (project / "sizes.py").read_text()
    assert "optax" in (project / "train.py").read_text()


RENAMED = "def halve(grads):\n    return jax.tree_map(abs, jax.tree_map(lambda grad: grad / 2, grads))\n"
GONE = "from flax import nn\n"
MODELS = "The models are written for flax.nn, which Flax removed in 0.4.0: `--vendor` keeps it in the project."
OTHERS = "Also found: at least 2 uses of what JAX, Flax or NumPy have renamed since (jax.tree_map): see --modernize."
HINTS = {
    "renamed": (RENAMED, [OTHERS]),
    "gone": (GONE, [MODELS]),
    "both": (GONE + RENAMED, [MODELS, OTHERS]),
}


@pytest.mark.parametrize(("more", "lines"), HINTS.values(), ids=HINTS)
def test_what_else_is_gone_since(
    project: Path, run: Run, more: str, lines: list[str]
) -> None:
    (project / "train.py").write_text(LEGACY + more)
    assert run("rewrite", ".").stdout.splitlines()[1:] == [
        "5 sites in 1 file: 5 rewritten, 0 suppressed, 0 unresolved",
        *lines,
    ]


def test_names_without_a_replacement_and_unknown_ones(project: Path, run: Run) -> None:
    loops = "from jax.experimental import loops\n\nloops.Scope()\n"
    cond = "import jax\n\njax.cond(f)\n"
    write_files(project, {"a.py": GONE + loops, "b.py": GONE, "c.py": cond})
    assert run("rewrite", "--modernize", ".").stdout.splitlines() == [
        "a.py:1:1: FO897 The models are written for flax.nn, which Flax removed in 0.4.0.",
        "    fix: `--vendor` keeps it in the project.",
        "    also at b.py:1",
        "a.py:2:1: FO899 `jax.experimental.loops` was removed.",
        "    fix: Use `jax.lax.fori_loop`, `jax.lax.while_loop` and `jax.lax.cond`.",
        "",
        "3 sites in 2 files: 0 rewritten, 0 suppressed, 3 unresolved",
        "c.py:3:1: FO898 `jax.cond` is not in JAX 0.12.0.",
        "    fix: It may be `jax.lax.cond`.",
    ]


@pytest.mark.parametrize(
    "arguments", [(), ("--check",), ("--partial",), ("--unsafe",), ("--ignore", "FO2")]
)
def test_totals_add_up(project: Path, run: Run, arguments: tuple[str, ...]) -> None:
    write_files(project, MIXED)
    stdout = run("rewrite", *arguments, ".").stdout
    match = TOTALS.search(stdout)
    assert match is not None, stdout
    sites, files, rewritten, suppressed, unresolved = map(int, match.groups())
    assert sites == rewritten + suppressed + unresolved
    assert files == 3
    assert suppressed >= 4
    by_choice = stdout.count("This is suppressed or not selected.")
    told = re.findall(r"^\S+\.py:\d+:\d+: FO\d\d\d \S", stdout, re.MULTILINE)
    line = r"^    waiting for \w+[^:]*: (\d+) sites? at \S+\.py:"
    waiting = re.findall(line, stdout, re.MULTILINE)
    assert unresolved == len(told) - by_choice + sum(map(int, waiting))
    assert stdout.count("    fix: ") == len(told)
    line = r"^\S+\.py: (\d+) sites? (?:would be )?rewritten$"
    assert rewritten == sum(map(int, re.findall(line, stdout, re.MULTILINE)))


def test_colour_is_added_and_nothing_else() -> None:
    coloured = render(report(), "text")
    assert "\x1b[" not in plain(report())
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain(report()) != coloured


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, False),
    ],
)
def test_when_there_is_colour(
    project: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    coloured: bool,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (project / "train.py").write_text(LEGACY)
    result = run("rewrite", "--diff", ".")
    assert ("\x1b[" in result.stdout) == coloured
    assert ("\x1b[" in result.stderr) == coloured


def test_no_files(run: Run) -> None:
    result = run("rewrite", ".")
    assert (result.exit_code, result.stdout) == (0, "No Python files found.\n")
