"""Whether an optimizer that `rewrite` emits is the one that it replaces: both source texts, evaluated and compared."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import traverse_util

from codemods.model import EmittedOptimizer
from optim2optax.parity.compare import compare_transformations
from optim2optax.parity.harmless import may_act
from optim2optax.parity.judge import Comparison, PyTree, leaves_by_path
from optim2optax.parity.legacy import legacy_optim
from optim2optax.parity.probe import probe_params
from optim2optax.parity.sampling import Sample, sample

INJECTED = "optax.inject_hyperparams"
RATE, RATE_DECAY = 0.021, 0.97
SCHEDULE = "SCHEDULE"
MODULES = {"jax": jax, "jnp": jnp, "np": np, "numpy": np, "onp": np, "math": math, "optax": optax}
TRAVERSAL = traverse_util.ModelParamTraversal
"""What a MultiOptimizer that keeps its interface is given, as the old one was."""

PATH = re.compile(r"/?\w+(/\w+)*/?")
"""What may be a part of a leaf's path."""

MOST_STEPS = 2_000
"""How far the schedule goes that stands for the program's own."""


class UnevaluableError(ValueError):
    """A definition that needs more of its program than values; the message says what."""


def compare_emitted(emitted: EmittedOptimizer, steps: int = 120, seed: int = 0) -> Comparison:
    """Evaluate an optimizer's old and new source text, with sampled values for the program's names, and compare the two.

    Where the learning rate is set at each step, both sides get one that changes in every step.

    Raises:
        UnevaluableError: if one of the texts cannot be evaluated outside of its program.
    """
    old, new = evaluate(emitted)
    overrides = rate if sets_rate(emitted) else None
    return compare_transformations(old, new, steps, seed, _params_for(emitted, seed), overrides)


def evaluate(emitted: EmittedOptimizer) -> tuple[Any, optax.GradientTransformation]:
    """The old definition and the new transformation that the texts of an optimizer give.

    Raises:
        UnevaluableError: if one of them cannot be evaluated.
    """
    if not emitted.optax_expression:
        raise UnevaluableError("the new tree has no transformation at this place")
    sampled = sampled_texts(emitted)
    for text in (sampled.legacy, sampled.optax):
        if found := may_act(text):
            raise UnevaluableError(
                f"`{found}` is not evaluated, because it may do more than compute; a scenario can run the program itself"
            )
    names = {**MODULES, **sampled.values, SCHEDULE: _schedule, TRAVERSAL.__name__: TRAVERSAL}
    with legacy_optim() as optim:
        old = _evaluate(sampled.legacy, {**names, "optim": optim})
        for source in emitted.supports:
            exec(source, names)
        new = _evaluate(sampled.optax, names)
    if not (hasattr(new, "init") and hasattr(new, "update")):
        raise UnevaluableError(f"`{emitted.after}` is not a gradient transformation")
    return old, new


def evaluate_text(text: str) -> Any:
    """The definition or transformation that a source text gives, in which the old package is called `optim`.

    Raises:
        UnevaluableError: if it cannot be evaluated by itself.
    """
    with legacy_optim() as optim:
        return _evaluate(text, {**MODULES, "optim": optim})


def sampled_texts(emitted: EmittedOptimizer) -> Sample:
    """The two texts with placeholders, and what stands for them. A schedule is called by one name of ours."""
    helpers = [*helper_names(emitted), SCHEDULE, TRAVERSAL.__name__]
    expression = emitted.optax_expression
    if emitted.schedule:
        tree = _Exchange(emitted.schedule).visit(ast.parse(expression, mode="eval"))
        expression = ast.unparse(tree)
    return sample(emitted.legacy_expression, expression, helpers)


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
    return [
        word.partition("(")[0].partition(":")[0]
        for source in emitted.supports
        for line in source.split("\n")
        if line.startswith(("def ", "class "))
        for word in (line.split()[1],)
    ]


def _evaluate(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, names)
    except Exception as error:
        raise UnevaluableError(f"`{text}` cannot be evaluated by itself: {type(error).__name__}: {error}") from error


def sets_rate(emitted: EmittedOptimizer) -> bool:
    """Whether the learning rate is set at each step, of the optimizer itself or of those that it is made of."""
    return emitted.injected or bool(emitted.schedule) or INJECTED in emitted.optax_expression


def rate(step: int) -> float:
    """The learning rate that both sides are given at a step, from 0."""
    return RATE * RATE_DECAY**step


def _schedule(count: Any) -> Any:
    """The same rates as a function of a traced step."""
    return jnp.asarray([rate(step) for step in range(MOST_STEPS)])[count]


def _params_for(emitted: EmittedOptimizer, seed: int) -> PyTree:
    """The probe's parameters, with leaves at the paths that traversals name, and without what the old optimizer could not take.

    WeightNorm had no scalars.
    """
    params = probe_params(seed)
    for path in _named_paths(emitted.legacy_expression, leaves_by_path(params)):
        params = {**params, path[0]: _below(path[1:], seed)}
    if "optim.WeightNorm" in emitted.legacy_expression:
        return {name: leaf for name, leaf in params.items() if np.ndim(leaf) or isinstance(leaf, dict)}
    return params


def _named_paths(expression: str, known: Collection[str]) -> Iterator[list[str]]:
    """The paths in the traversals of a definition that no leaf of the probe has: a group without a leaf would prove nothing."""
    for node in ast.walk(ast.parse(expression, mode="eval")):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(TRAVERSAL.__name__):
            for inner in ast.walk(node):
                text = inner.value if isinstance(inner, ast.Constant) and isinstance(inner.value, str) else ""
                if PATH.fullmatch(text) and not any(text in f"/{leaf}" for leaf in known):
                    yield text.strip("/").split("/")


def _below(path: Sequence[str], seed: int) -> PyTree:
    """The parameters of a layer at a path."""
    if path:
        return {path[0]: _below(path[1:], seed)}
    return {"kernel": 0.3 * np.random.default_rng([seed, 2]).normal(size=(4, 3)), "bias": np.zeros(3)}
