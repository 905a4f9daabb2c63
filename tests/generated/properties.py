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
    is_done = _unmarked(again.after) == _unmarked(result.after)
    assert is_done, "a second run changes something"
    missed = remains(after, own_members(before) | own_members(after))
    for line in _reported(after, again):
        missed.pop(line, None)
    assert not missed, f"left and not reported: {missed}"
    return result


def _reported(code: str, result: FileResult) -> Iterator[int]:
    """The lines that a report is about: those of its sites, and of the statements around them."""
    for site in result.sites:
        yield from range(site.line, site.end_line + 1)
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.stmt) and site.line in _whole(node):
                yield from _whole(node) if _is_definition(node) else _head(node)


def _unmarked(content: bytes) -> list[bytes]:
    """The lines of a file without the remarks that partial work leaves."""
    lines, marker = content.splitlines(), MARKER.encode()
    return [line for line in lines if not line.strip().startswith(marker)]


def _is_definition(node: ast.stmt) -> bool:
    """Whether it is a custom optimizer, which is reported as a whole."""
    return isinstance(node, ast.ClassDef) and any(
        "OptimizerDef" in ast.unparse(base) for base in node.bases
    )


def _account(result: FileResult, content: bytes) -> None:
    """Every site has a known rule and a status that agrees with what was done."""
    is_rewritten = any(site.status == "rewritten" for site in result.sites)
    is_changed = _unmarked(result.after) != _unmarked(content)
    assert is_rewritten == is_changed, "what is counted is not what changed"
    for site in result.sites:
        assert site.code in CODES, site
        assert site.status in ("rewritten", "unresolved", "suppressed", "hint"), site
        assert (site.remedy is not None) == (site.status == "unresolved"), site


def _elsewhere(before: str, after: str, result: FileResult) -> None:
    """Lines outside of the statements that have a site stay as they are."""
    may_change = set(_lines_of_statements(before, result))
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    stay = {line.strip() for line in new}
    for kind, first, last, _, _ in matcher.get_opcodes():
        for number in range(first, last) if kind in ("replace", "delete") else ():
            line, place = old[number].strip(), number + 1
            if line.startswith("#"):  # it goes where what it is about goes
                assert line in stay, f"the comment in line {place} is gone"
            else:
                is_fine = place in may_change or not line
                assert is_fine, f"line {place} changed: {line}"


def _lines_of_statements(code: str, result: FileResult) -> Iterator[int]:
    """The lines of the statements in which a rewritten site begins, of those with a body their heads; and of imports.

    What an idiom changes beside its site is in the same function or class.
    """
    rewritten = [site for site in result.sites if site.status == "rewritten"]
    begun = {site.line for site in rewritten}
    idioms = {site.line for site in rewritten if site.code in IDIOMS}
    for node in ast.walk(ast.parse(code)):
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if isinstance(node, ast.stmt) and (is_import or begun & {*_head(node)}):
            # of an `if`, a branch may be all that is left
            yield from _whole(node) if isinstance(node, ast.If) else _head(node)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and idioms & {
            *_whole(node)
        }:
            yield from _whole(node)


def _whole(node: ast.stmt) -> range:
    """The lines of a statement, without decorators."""
    return range(node.lineno, (node.end_lineno or 0) + 1)


def _head(node: ast.stmt) -> range:
    """The lines of a statement, or up to its body."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    body: list[ast.stmt] = getattr(node, "body", [])
    end = max(body[0].lineno, node.lineno + 1) if body else _whole(node).stop
    return range(first, end)


def batches() -> list[tuple[Any, Any]]:
    """Data for a few steps."""
    draw = np.random.default_rng(0).normal
    return [(draw(size=(5, 3)), draw(size=(5, 2))) for _ in range(STEPS)]


def parameters() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {"w": random.normal(size=(3, 2)), "b": random.normal(size=2)}


def outcome(content: bytes) -> Any:
    """What a program's `run` gives. The old Flax has to be there."""
    module: Any = ModuleType("generated_program")
    # dataclasses look for it there
    with replaced(sys.modules, {module.__name__: module}):
        exec(compile(decoded(content), "train.py", "exec"), vars(module))
        return module.run(parameters(), batches())


def assert_alike(before: Any, after: Any, gate: float = GATE) -> None:
    """Two outcomes are the same, but for rounding."""
    start: Mapping[str, Any] = parameters()
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        for name in old:
            expected, found = np.asarray(old[name]), np.asarray(new[name])
            movement = np.max(np.abs(expected - start[name]))
            apart = np.max(np.abs(expected - found))
            assert apart <= gate * max(movement, 1e-3), name
