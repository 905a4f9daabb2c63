"""Whether an optimizer that `rewrite` emits is the one that it replaces.

Both source texts are evaluated, and what they give is compared.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import math
import re
import typing
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

import flax
import flax.core
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import traverse_util

from codemods.model import EmittedOptimizer
from optim2optax.parity.harmless import definitions_may_act, may_act
from optim2optax.parity.judge import Comparison, Verdict, leaves_by_path
from optim2optax.parity.legacy import legacy_optim
from optim2optax.parity.probe import probe_params
from optim2optax.parity.probing import compare_probed
from optim2optax.parity.sampling import Sample, sample
from optim2optax.parity.variants import horizon, sizes, variants

INJECTED = "optax.inject_hyperparams"
RATE, RATE_DECAY = 0.021, 0.97
SCHEDULE = "SCHEDULE"
MODULES = {
    "collections": collections,
    "dataclasses": dataclasses,
    "flax": flax,
    "functools": functools,
    "jax": jax,
    "jnp": jnp,
    "math": math,
    "np": np,
    "numpy": np,
    "onp": np,
    "optax": optax,
    "typing": typing,
}
TRAVERSAL = traverse_util.ModelParamTraversal
"""The class of the arguments of a MultiOptimizer, the old one and one that keeps its interface."""

PATH = re.compile(r"/?\w+(/\w+)*/?")
"""Texts that may be a part of a leaf's path."""

PERIOD = 150
"""The steps after which the learning rates repeat, so that parameters still move after many."""


@dataclass(frozen=True)
class Counterpart(EmittedOptimizer):
    """An optimizer as the new tree has it.

    `legacy_supports` are the functions and classes that the old expression reaches. `known` names
    those of `supports` that are as `rewrite` emits them, `changed` those that differ in the new
    tree from what `rewrite` makes of the old one. If there is a `reason`, nothing can be compared.
    """

    legacy_supports: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    reason: str = ""


class UnevaluableError(ValueError):
    """A definition that needs more of its program than values; the message says what."""


def compare_emitted(emitted: EmittedOptimizer, steps: int = 120, seed: int = 0) -> Comparison:
    """Evaluate an optimizer's old and new source text, and compare the two.

    Names of the program get sampled values. Where the learning rate is set at each step, both
    sides get one that changes in every step.

    Raises:
        UnevaluableError: if one of the texts cannot be evaluated outside of its program.
    """
    return compare_variants(emitted, steps, seed)[0]


def compare_variants(
    emitted: EmittedOptimizer, steps: int = 120, seed: int = 0
) -> tuple[Comparison, EmittedOptimizer]:
    """Compare as `compare_emitted` does, for each choice that the program may make.

    Returns:
        The comparison that departs most, and the variant that it is of.
    """
    if isinstance(emitted, Counterpart) and emitted.reason:
        raise UnevaluableError(emitted.reason)
    if not emitted.optax_expression:
        raise UnevaluableError("there is no new expression")
    found = []
    for one in variants(emitted):
        # Without its place, the same text elsewhere is the same key of the cache.
        found.append(_compared(replace(one, name="", line=0, before=""), steps, seed))
        if found[-1][0].verdict is Verdict.DIFFERENT:
            break
    return max(found, key=_severity)


SEVERITY = {Verdict.IDENTICAL: 0, Verdict.EQUIVALENT: 1, Verdict.NOTHING_PROVEN: 2}


def _severity(pair: tuple[Comparison, EmittedOptimizer]) -> tuple[int, float]:
    """The order of comparisons: by their verdicts, then by their errors."""
    comparison, _ = pair
    return SEVERITY.get(comparison.verdict, len(SEVERITY)), comparison.error


@cache
def _compared(
    emitted: EmittedOptimizer, steps: int, seed: int
) -> tuple[Comparison, EmittedOptimizer]:
    """Compare one variant; the same texts are compared once."""
    old, new = evaluate(emitted)
    overrides = rate if sets_rate(emitted) else None
    params = probe_params(**probe_for(emitted, seed))
    further = horizon(emitted, steps), sizes(emitted)
    return compare_probed(old, new, steps, seed, params, overrides, *further), emitted


def evaluate(emitted: EmittedOptimizer) -> tuple[Any, optax.GradientTransformation]:
    """The old definition and the new transformation that the texts of an optimizer give.

    Raises:
        UnevaluableError: if one of them cannot be evaluated.
    """
    sampled = sampled_texts(emitted)
    _check(emitted, sampled)
    given = {**MODULES, **sampled.values, SCHEDULE: _schedule, TRAVERSAL.__name__: TRAVERSAL}
    with legacy_optim() as optim:
        names = {**given, "optim": optim}
        _define(sampled.legacy_supports, names)
        old = _evaluate(sampled.legacy, names)
        names = {**given, "optim": optim}
        _define(sampled.supports, names)
        new = _evaluate(sampled.optax, names)
    # Such as a schedule, or a function that makes a transformation.
    if not (hasattr(new, "init") and hasattr(new, "update")):
        raise UnevaluableError(f"`{emitted.after}` is not a gradient transformation")
    return old, new


def _check(emitted: EmittedOptimizer, sampled: Sample) -> None:
    """Check that both texts can be evaluated outside of their program.

    Raises:
        UnevaluableError: if code of the program may do more than compute, or if a sampled value
            stands for code that differs in the new tree.
    """
    found = may_act(sampled.legacy) or may_act(sampled.optax)
    if isinstance(emitted, Counterpart):
        found = (
            found
            or definitions_may_act(sampled.legacy_supports)
            or definitions_may_act(sampled.supports, emitted.known)
        )
        texts = (*sampled.named, emitted.schedule or "0")
        hidden = set(chain.from_iterable(map(_names, texts)))
        if changed := sorted(hidden & emitted.changed):
            raise UnevaluableError(
                f"`{changed[0]}` is not the same in both trees, "
                "and needs more of its program than values; "
                "a scenario can run the program itself"
            )
    if found:
        raise UnevaluableError(
            f"`{found}` is not evaluated, because it may do more than compute; "
            "a scenario can run the program itself"
        )


def _names(text: str, mode: str = "eval") -> Iterable[str]:
    """The names in a source text."""
    return (node.id for node in ast.walk(ast.parse(text, mode=mode)) if isinstance(node, ast.Name))


def _define(sources: Iterable[str], names: dict[str, Any]) -> None:
    """Execute functions and classes, whose annotations stay text."""
    for source in sources:
        try:
            exec(compile(source, "<emitted>", "exec", annotations.compiler_flag), names)
        except Exception as error:
            first = source.lstrip().partition("\n")[0]
            raise UnevaluableError(
                f"`{first}` cannot be evaluated by itself: {type(error).__name__}: {error}"
            ) from error


def evaluate_text(text: str) -> Any:
    """The definition or transformation that a source text gives.

    The text calls the old package `optim`.

    Raises:
        UnevaluableError: if it cannot be evaluated by itself.
    """
    with legacy_optim() as optim:
        return _evaluate(text, {**MODULES, "optim": optim})


def sampled_texts(emitted: EmittedOptimizer) -> Sample:
    """The two texts with placeholders, and the values of these; a schedule is called SCHEDULE."""
    helpers = [*helper_names(emitted), SCHEDULE, TRAVERSAL.__name__]
    expression = emitted.optax_expression
    if emitted.schedule:
        tree = _WithSchedule(emitted.schedule).visit(ast.parse(expression, mode="eval"))
        expression = ast.unparse(tree)
    if not isinstance(emitted, Counterpart):
        sampled = sample(emitted.legacy_expression, expression, helpers, (), ())
        # The helpers that `rewrite` emits have no names of the program.
        return replace(sampled, supports=emitted.supports)
    legacy_supports, supports = emitted.legacy_supports, emitted.supports
    helpers += _defined_in(legacy_supports)
    sampled = sample(emitted.legacy_expression, expression, helpers, legacy_supports, supports)
    return replace(
        sampled,
        legacy_supports=_reached(sampled.legacy, sampled.legacy_supports),
        supports=_reached(sampled.optax, sampled.supports),
    )


def _reached(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """The functions and classes that an expression reaches.

    In the sources, as in the result, each of them stands after those that it needs.
    """
    wanted = {*_names(text)}
    found: list[str] = []
    # A source may need those before it, so the last one is looked at first.
    for source in reversed(sources):
        if wanted.intersection(_defined_in([source])):
            found.insert(0, source)
            wanted |= {*_names(source, "exec")}
    return tuple(found)


class _WithSchedule(ast.NodeTransformer):
    """Puts the name SCHEDULE in the place of the source text of a schedule."""

    def __init__(self, text: str) -> None:
        self.text = ast.unparse(ast.parse(text, mode="eval"))

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.text:
            return ast.Name(SCHEDULE, ast.Load())
        return super().generic_visit(node)


def helper_names(emitted: EmittedOptimizer) -> list[str]:
    """The functions and classes that the emitted helpers define."""
    return _defined_in(emitted.supports)


def _defined_in(sources: Iterable[str]) -> list[str]:
    """The names of the functions and classes that are at the top level of some sources."""
    names: list[str] = []
    for source in sources:
        for line in source.split("\n"):
            if line.startswith(("def ", "class ")):
                # class ScaleByLamb(NamedTuple):
                rest = line.split()[1]
                names.append(rest.partition("(")[0].partition(":")[0])
    return names


def _evaluate(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, names)
    except Exception as error:
        raise UnevaluableError(
            f"`{text}` cannot be evaluated by itself: {type(error).__name__}: {error}"
        ) from error


def sets_rate(emitted: EmittedOptimizer) -> bool:
    """Whether the learning rate is set at each step, of the optimizer or of one within it."""
    return emitted.injected or bool(emitted.schedule) or INJECTED in emitted.optax_expression


def rate(step: int) -> float:
    """The learning rate of both sides at a step, which counts from 0."""
    return RATE * RATE_DECAY ** (step % PERIOD)


def _schedule(count: Any) -> Any:
    """The same rates as a function of a traced step."""
    return jnp.asarray([rate(step) for step in range(PERIOD)])[count % PERIOD]


def probe_for(emitted: EmittedOptimizer, seed: int) -> dict[str, Any]:
    """The arguments of `probe_params` for the parameters with which an optimizer is probed.

    There are leaves at the paths that traversals name, and none that the old optimizer could not
    take.
    """
    usual = list(leaves_by_path(probe_params()))
    further: list[str] = []
    for path in _named_paths(emitted.legacy_expression, usual):
        # A leaf cannot stand where a folder of leaves is.
        if not any(_is_around(path, leaf) or _is_around(leaf, path) for leaf in usual + further):
            further.append(path)
    arguments: dict[str, Any] = {"seed": seed}
    if further:
        arguments["further"] = tuple(further)
    # The legacy WeightNorm had no scalars.
    if "optim.WeightNorm" in emitted.legacy_expression:
        arguments["scalars"] = False
    return arguments


def _is_around(outer: str, inner: str) -> bool:
    """Whether a path is another one, or a part of it from its start on."""
    return f"{inner}/".startswith(f"{outer}/")


def _named_paths(expression: str, usual: Collection[str]) -> Iterator[str]:
    """Paths of leaves in which the texts of a definition's traversals occur.

    A group without a leaf would prove nothing. A predicate may ask for a layer or for a leaf
    itself, and for several texts at once.
    """
    for node in ast.walk(ast.parse(expression, mode="eval")):
        # optim.ModelParamTraversal(lambda path, _: "Dense_7" in path)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(TRAVERSAL.__name__):
            constants = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant))
            texts = [text for text in constants if isinstance(text, str) and PATH.fullmatch(text)]
            texts = [text.strip("/") for text in texts]
            for text in dict.fromkeys(texts):
                if not any(text in leaf for leaf in usual):
                    yield from (f"{text}/kernel", f"{text}/bias", f"Module_0/{text}")
            if len(texts) > 1:
                yield "/".join(texts)
