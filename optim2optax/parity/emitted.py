"""Whether an optimizer that `rewrite` emits is the one that it replaces: both source texts, evaluated and compared."""

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
from typing import Any

import flax
import flax.core
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from codemods.model import EmittedOptimizer
from flax import traverse_util

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
"""What a MultiOptimizer that keeps its interface is given, as the old one was."""

PATH = re.compile(r"/?\w+(/\w+)*/?")
"""What may be a part of a leaf's path."""

PERIOD = 150
"""The steps after which the learning rates come again, so that parameters still move after many."""


@dataclass(frozen=True)
class Counterpart(EmittedOptimizer):
    """An optimizer as the new tree has it. `legacy_supports` are the functions and classes that the old expression reaches.

    `known` names those of `supports` that are as `rewrite` emits them, `changed` those that the new tree has otherwise than what
    `rewrite` makes of the old one. If there is a `reason`, nothing can be compared.
    """

    legacy_supports: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    reason: str = ""


class UnevaluableError(ValueError):
    """A definition that needs more of its program than values; the message says what."""


def compare_emitted(emitted: EmittedOptimizer, steps: int = 120, seed: int = 0) -> Comparison:
    """Evaluate an optimizer's old and new source text, with sampled values for the program's names, and compare the two.

    Where the learning rate is set at each step, both sides get one that changes in every step.

    Raises:
        UnevaluableError: if one of the texts cannot be evaluated outside of its program.
    """
    return compare_variants(emitted, steps, seed)[0]


def compare_variants(
    emitted: EmittedOptimizer, steps: int = 120, seed: int = 0
) -> tuple[Comparison, EmittedOptimizer]:
    """Compare as `compare_emitted` does, for each choice that the program may make; gives the one that departs most, too.

    The same texts are compared once.
    """
    if reason := emitted.reason if isinstance(emitted, Counterpart) else "":
        raise UnevaluableError(reason)
    if not emitted.optax_expression:
        raise UnevaluableError("there is no new expression")
    found = []
    for one in variants(emitted):
        found.append(_compared(replace(one, name="", line=0, before=""), steps, seed))
        if found[-1][0].verdict is Verdict.DIFFERENT:
            break
    return max(
        found, key=lambda pair: (SEVERITY.get(pair[0].verdict, len(SEVERITY)), pair[0].error)
    )


SEVERITY = {Verdict.IDENTICAL: 0, Verdict.EQUIVALENT: 1, Verdict.NOTHING_PROVEN: 2}


@cache
def _compared(
    emitted: EmittedOptimizer, steps: int, seed: int
) -> tuple[Comparison, EmittedOptimizer]:
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
    if not (hasattr(new, "init") and hasattr(new, "update")):
        raise UnevaluableError(f"`{emitted.after}` is not a gradient transformation")
    return old, new


def _check(emitted: EmittedOptimizer, sampled: Sample) -> None:
    """Raise UnevaluableError if something of a program's own may act, or if a value stands for what the new tree has changed."""
    found = may_act(sampled.legacy) or may_act(sampled.optax)
    if isinstance(emitted, Counterpart):
        found = (
            found
            or definitions_may_act(sampled.legacy_supports)
            or definitions_may_act(sampled.supports, emitted.known)
        )
        hidden = {
            name for text in (*sampled.named, emitted.schedule or "0") for name in _names(text)
        }
        if changed := sorted(hidden & emitted.changed):
            raise UnevaluableError(
                f"`{changed[0]}` is not the same in both trees, and needs more of its program than values; "
                "a scenario can run the program itself"
            )
    if found:
        raise UnevaluableError(
            f"`{found}` is not evaluated, because it may do more than compute; a scenario can run the program itself"
        )


def _names(text: str, mode: str = "eval") -> Iterable[str]:
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
    """The definition or transformation that a source text gives, in which the old package is called `optim`.

    Raises:
        UnevaluableError: if it cannot be evaluated by itself.
    """
    with legacy_optim() as optim:
        return _evaluate(text, {**MODULES, "optim": optim})


def sampled_texts(emitted: EmittedOptimizer) -> Sample:
    """The two texts with placeholders, and what stands for them. A schedule is called by one name of ours."""
    legacy_supports = emitted.legacy_supports if isinstance(emitted, Counterpart) else ()
    helpers = [*helper_names(emitted), *_defined_in(legacy_supports), SCHEDULE, TRAVERSAL.__name__]
    expression = emitted.optax_expression
    if emitted.schedule:
        tree = _Exchange(emitted.schedule).visit(ast.parse(expression, mode="eval"))
        expression = ast.unparse(tree)
    supports = emitted.supports if isinstance(emitted, Counterpart) else ()
    sampled = sample(emitted.legacy_expression, expression, helpers, legacy_supports, supports)
    if not isinstance(emitted, Counterpart):
        return replace(sampled, supports=emitted.supports)
    return replace(
        sampled,
        legacy_supports=_reached(sampled.legacy, sampled.legacy_supports),
        supports=_reached(sampled.optax, sampled.supports),
    )


def _reached(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Those of some functions and classes, each after what it needs, that an expression reaches."""
    wanted = {*_names(text)}
    found: list[str] = []
    for source in reversed(sources):
        if wanted.intersection(_defined_in([source])):
            found.insert(0, source)
            wanted |= {*_names(source, "exec")}
    return tuple(found)


class _Exchange(ast.NodeTransformer):
    """Puts the schedule by its own name in the place of a source text, wherever that is an argument."""

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
    return [
        word.partition("(")[0].partition(":")[0]
        for source in sources
        for line in source.split("\n")
        if line.startswith(("def ", "class "))
        for word in (line.split()[1],)
    ]


def _evaluate(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, names)
    except Exception as error:
        raise UnevaluableError(
            f"`{text}` cannot be evaluated by itself: {type(error).__name__}: {error}"
        ) from error


def sets_rate(emitted: EmittedOptimizer) -> bool:
    """Whether the learning rate is set at each step, of the optimizer itself or of those that it is made of."""
    return emitted.injected or bool(emitted.schedule) or INJECTED in emitted.optax_expression


def rate(step: int) -> float:
    """The learning rate that both sides are given at a step, from 0."""
    return RATE * RATE_DECAY ** (step % PERIOD)


def _schedule(count: Any) -> Any:
    """The same rates as a function of a traced step."""
    return jnp.asarray([rate(step) for step in range(PERIOD)])[count % PERIOD]


def probe_for(emitted: EmittedOptimizer, seed: int) -> dict[str, Any]:
    """The arguments with which `probe_params` gives what an optimizer is probed with.

    There are leaves at the paths that traversals name, and none that the old optimizer could not take: WeightNorm had no scalars.
    """
    usual = list(leaves_by_path(probe_params()))
    further: list[str] = []
    for path in _named_paths(emitted.legacy_expression, usual):
        known = (*usual, *further)
        if not any(
            f"{leaf}/".startswith(f"{path}/") or f"{path}/".startswith(f"{leaf}/") for leaf in known
        ):
            further.append(path)
    given: dict[str, Any] = {"seed": seed, "further": tuple(further)} if further else {"seed": seed}
    return given | ({"scalars": False} if "optim.WeightNorm" in emitted.legacy_expression else {})


def _named_paths(expression: str, usual: Collection[str]) -> Iterator[str]:
    """Paths of leaves in which the texts of a definition's traversals occur: a group without a leaf would prove nothing.

    A predicate may ask for a layer or for a leaf itself, and for several texts at once.
    """
    for node in ast.walk(ast.parse(expression, mode="eval")):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(TRAVERSAL.__name__):
            constants = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant))
            texts = [
                text.strip("/")
                for text in constants
                if isinstance(text, str) and PATH.fullmatch(text)
            ]
            for text in dict.fromkeys(texts):
                if not any(text in leaf for leaf in usual):
                    yield from (f"{text}/kernel", f"{text}/bias", f"Module_0/{text}")
            if len(texts) > 1:
                yield "/".join(texts)
