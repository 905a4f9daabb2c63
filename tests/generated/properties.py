"""What is true of every migration, whatever the program."""

import ast
import difflib
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from codemods import FileResult, Options, Source, migrate
from codemods.rules import catalogue
from codemods.rules.idioms import in_order
from codemods.sources.suppression import MARKER
from optim2optax.legacy import replaced
from tests.remains import own_members, remains

CODES = {*catalogue()}
GATE = 1e-11
"""Of each leaf's movement, in float64."""

STEPS = 6
IDIOMS = tuple(idiom.code for idiom in in_order())


def decoded(content: bytes) -> str:
    """The text of a file, as Python reads it."""
    coding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(coding)


def migrated(content: bytes, options: Options | None = None) -> FileResult:
    """What becomes of a program, of which all is true that is always true."""
    [result] = migrate([Source("train.py", content)], options)
    assert result.error is None, result.error
    before, after = decoded(content), decoded(result.after)
    ast.parse(after)
    _account(result, content)
    if options is None or not options.rename:
        _elsewhere(before, after, result)
    [again] = migrate([Source("train.py", result.after)], options)
    assert _unmarked(again.after) == _unmarked(result.after), (
        "a second run changes something"
    )
    reported = {
        line
        for site in again.sites
        for node in ast.walk(ast.parse(after))
        if isinstance(node, ast.stmt)
        and node.lineno <= site.line <= (node.end_lineno or 0)
        for line in (
            range(node.lineno, (node.end_lineno or 0) + 1)
            if _is_definition(node)
            else _head(node)
        )
    } | {line for site in again.sites for line in range(site.line, site.end_line + 1)}
    missed = {
        line: what
        for line, what in remains(
            after, own_members(before) | own_members(after)
        ).items()
        if line not in reported
    }
    assert not missed, f"left and not reported: {missed}"
    return result


def _unmarked(content: bytes) -> list[bytes]:
    """The lines of a file without the remarks that partial work leaves."""
    return [
        line
        for line in content.splitlines()
        if not line.strip().startswith(MARKER.encode())
    ]


def _is_definition(node: ast.stmt) -> bool:
    """Whether it is a custom optimizer, which is reported as a whole."""
    return isinstance(node, ast.ClassDef) and any(
        "OptimizerDef" in ast.unparse(base) for base in node.bases
    )


def _account(result: FileResult, content: bytes) -> None:
    """Every site has a known rule and a status that agrees with what was done."""
    rewritten = [site for site in result.sites if site.status == "rewritten"]
    assert bool(rewritten) == (_unmarked(result.after) != _unmarked(content)), (
        "what is counted is not what changed"
    )
    for site in result.sites:
        assert site.code in CODES, site
        assert site.status in ("rewritten", "unresolved", "suppressed", "hint"), site
        assert (site.remedy is not None) == (site.status == "unresolved"), site


def _elsewhere(before: str, after: str, result: FileResult) -> None:
    """Lines outside of the statements that have a site stay as they are."""
    may_change = set(_lines_of_statements(before, result))
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for kind, first, last, _, _ in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        for number in range(first, last) if kind in ("replace", "delete") else ():
            line = old[number].strip()
            if line.startswith("#"):  # it goes where what it is about goes
                assert line in {other.strip() for other in new}, (
                    f"the comment in line {number + 1} is gone"
                )
            else:
                assert number + 1 in may_change or not line, (
                    f"line {number + 1} changed: {line}"
                )


def _lines_of_statements(code: str, result: FileResult) -> Iterator[int]:
    """The lines of the statements in which a rewritten site begins, of those with a body their heads; and of imports.

    What an idiom changes beside its site is in the same function or class.
    """
    rewritten = [site for site in result.sites if site.status == "rewritten"]
    begun, idioms = (
        {site.line for site in rewritten},
        {site.line for site in rewritten if site.code in IDIOMS},
    )
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.stmt) and (
            isinstance(node, ast.Import | ast.ImportFrom)
            or not begun.isdisjoint(_head(node))
        ):
            whole = isinstance(
                node, ast.If
            )  # of which a branch may be all that is left
            yield from (
                range(node.lineno, (node.end_lineno or 0) + 1) if whole else _head(node)
            )
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and any(
            node.lineno <= line <= (node.end_lineno or 0) for line in idioms
        ):
            yield from range(node.lineno, (node.end_lineno or 0) + 1)


def _head(node: ast.stmt) -> range:
    """The lines of a statement, or up to its body."""
    first = min(
        [node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]
    )
    body = getattr(node, "body", None)
    return range(
        first,
        max(body[0].lineno, node.lineno + 1) if body else (node.end_lineno or 0) + 1,
    )


def batches() -> list[tuple[Any, Any]]:
    """Data for a few steps."""
    random = np.random.default_rng(0)
    return [
        (random.normal(size=(5, 3)), random.normal(size=(5, 2))) for _ in range(STEPS)
    ]


def parameters() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {"w": random.normal(size=(3, 2)), "b": random.normal(size=2)}


def outcome(content: bytes) -> Any:
    """What a program's `run` gives. The old Flax has to be there."""
    module: Any = ModuleType("generated_program")
    with replaced(
        sys.modules, {module.__name__: module}
    ):  # dataclasses look for it there
        exec(compile(decoded(content), "train.py", "exec"), vars(module))
        return module.run(parameters(), batches())


def assert_alike(before: Any, after: Any, gate: float = GATE) -> None:
    """Two outcomes are the same, but for rounding."""
    start: Mapping[str, Any] = parameters()
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        for name in old:
            movement = np.max(np.abs(np.asarray(old[name]) - start[name]))
            assert np.max(
                np.abs(np.asarray(old[name]) - np.asarray(new[name]))
            ) <= gate * max(movement, 1e-3), name
