"""Whether what was computed with plain numbers can be computed with traced arrays, too."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Origins

CHOICES = (ast.If, ast.IfExp, ast.While, ast.Assert, ast.BoolOp, ast.For, ast.Match)
"""What needs plain numbers: a truth value, or a length."""


def is_traceable(value: ast.expr, origins: Origins) -> bool:
    """Whether an expression of the step needs no plain number, nor does any function it calls.

    Functions are those in view, and those of JAX and optax.
    """
    return _is_free(value, origins, set())


def _is_free(node: ast.AST, origins: Origins, seen: set[ast.AST]) -> bool:
    """Whether code has no choices by values, nor have the functions that it calls."""
    # a function that calls itself
    if node in seen:
        return True
    seen.add(node)
    for inner in ast.walk(node):
        if isinstance(inner, CHOICES):
            return False
        if isinstance(inner, ast.Call) and not _is_traceable_call(inner, origins, seen):
            return False
    return True


def _is_traceable_call(call: ast.Call, origins: Origins, seen: set[ast.AST]) -> bool:
    facts = origins.facts
    made = facts.functions(call.func)
    if made:
        return all(_is_free(function.node, origins, seen) for function in made)
    name = facts.full_name(call.func)
    # jnp.minimum(step, 100)
    if name or not isinstance(call.func, ast.Name):
        return name.startswith(("jax.", "optax."))
    # schedule = optax.cosine_decay_schedule(…), and then schedule(step)
    value = origins.expanded(call.func)
    if not isinstance(value, ast.Call):
        return False
    return facts.full_name(value.func).startswith("optax.")
