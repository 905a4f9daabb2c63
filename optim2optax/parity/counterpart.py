"""What stands in the new tree where `rewrite` would put an optimizer: the code as its owners have it now."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import optax

from codemods.model import EmittedOptimizer, FileResult
from optim2optax.parity.emitted import helper_names


def in_new_tree(result: FileResult, path: Path) -> tuple[EmittedOptimizer, ...]:
    """The optimizers of a rewritten old file, with the source text that the file at `path` in the new tree has for them.

    One for which there is none has an empty text.
    """
    actual = path.read_text(encoding="utf-8")
    expected = result.after.decode("utf-8")
    return tuple(
        counterpart(emitted, expected, actual) or replace(emitted, after="", optax_expression="")
        for emitted in result.optimizers
    )


def counterpart(emitted: EmittedOptimizer, expected: str, actual: str) -> EmittedOptimizer | None:
    """The optimizer with the new source text that the new tree has.

    It is the transformation at the same place in the same function or class, counted among all of them there.

    Args:
        emitted: what `rewrite` makes of the old file.
        expected: the whole file as `rewrite` makes it.
        actual: the file in the new tree.

    Returns:
        None if there is nothing at that place.
    """
    wanted = _normal(emitted.after)
    helpers = set(helper_names(emitted))
    place = next((place for place, node in _transformations(expected, helpers) if ast.unparse(node) == wanted), None)
    found = next((node for where, node in _transformations(actual, helpers) if where == place), None)
    if place is None or found is None:
        return None
    text = ast.unparse(found)
    if text == wanted:
        return emitted
    return replace(emitted, after=ast.get_source_segment(actual, found) or text, optax_expression=text)


def _normal(text: str) -> str:
    return ast.unparse(ast.parse(f"({text})", mode="eval"))


def _transformations(code: str, helpers: set[str]) -> list[tuple[tuple[str, int], ast.expr]]:
    """The expressions that make a transformation, outermost ones, with their place: the scope, and the number in it."""
    counts: dict[str, int] = {}
    found = []
    for scope, node in _within(ast.parse(code), "", helpers):
        counts[scope] = counts.get(scope, -1) + 1
        found.append(((scope, counts[scope]), node))
    return found


def _within(node: ast.AST, scope: str, helpers: set[str]) -> Iterator[tuple[str, ast.expr]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _makes_transformation(child, helpers):
            yield scope, child
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if child.name not in helpers:
                yield from _within(child, f"{scope}.{child.name}", helpers)
        else:
            yield from _within(child, scope, helpers)


def _makes_transformation(node: ast.Call, helpers: set[str]) -> bool:
    """Whether a call is one of an optax factory, of what injects hyperparameters into one, or of a helper of the file."""
    function = node.func.func if isinstance(node.func, ast.Call) else node.func
    if isinstance(function, ast.Name):
        return function.id in helpers
    if not isinstance(function, ast.Attribute) or not ast.unparse(function).startswith("optax."):
        return False
    made = getattr(optax, function.attr, None) or getattr(optax.transforms, function.attr, None)
    if function.attr == "inject_hyperparams":
        return isinstance(node.func, ast.Call)
    try:
        return "GradientTransformation" in str(inspect.signature(made).return_annotation)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
