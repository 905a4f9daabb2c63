"""Binding is compared with what Python itself binds."""

import ast
from functools import partial
from typing import Any

import pytest

from codemods.inference.binding import Bound, Wrong, arguments_of, bind, signature_of


def asked(signature: str, call: str, bound: int = 0) -> tuple[Any, ...]:
    """The signature of a function, a call of it, and that of `partial` in this if there is one."""
    function = ast.parse(f"def f({signature}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    earlier = [node.func] if isinstance(node.func, ast.Call) else []
    return signature_of(function.args, bound), node, *earlier


SIGNATURES = (
    *("a", "a, b=7", "a, /, b=7", "a, *rest", "a, b=7, *rest, c=8, **others"),
    *("a, *, c", "a, *, c=8", "*rest, **others", "a, b, c"),
)
CALLS = (
    *("f(1)", "f(a=1)", "f(1, 2)", "f(1, b=2)", "f(b=2, a=1)", "f(1, 2, 3, d=4)"),
    *("f(1, c=3)", "f()", "f(1, a=2)", "partial(f, 1)(2, c=3)"),
    *("partial(f, b=1)(2, c=3)", "partial(f, 1, c=0)(2, c=3)", "partial(f, a=1)(2, 3)"),
)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_bound_as_python_binds_it_or_wrong(call: str) -> None:
    for signature in SIGNATURES:
        names: dict[str, object] = {"partial": partial}
        exec(f"def f({signature}): return locals()", names)
        try:
            expected = eval(call, names)
        except TypeError:
            expected = None
        assert values(bind(*asked(signature, call)), signature) == expected, signature


def values(found: Bound[ast.expr] | Wrong, signature: str) -> dict[str, object] | None:
    """What the parameters of a function are in a call; None if Python refuses it."""
    if isinstance(found, Wrong):
        return None
    read: dict[str, object] = literal(found.complete)
    if "*rest" in signature:
        read["rest"] = tuple(map(ast.literal_eval, found.rest))
    if "**others" in signature:
        read["others"] = literal(found.others)
    return read


def literal(nodes: dict[str, ast.expr]) -> dict[str, object]:
    return {name: ast.literal_eval(value) for name, value in nodes.items()}


@pytest.mark.parametrize(
    ("signature", "call", "known"),
    [
        ("a, b=0, c=0", "f(1, *more, c=3)", {"a": 1, "c": 3}),
        ("a, b=0, c=0", "f(*more, 2)", {}),
        ("a, b=0, c=0", "f(1, **more)", {"a": 1}),
        ("a, b=0, c=0", "partial(f, *more)(2, c=3)", {"c": 3}),
        ("a, *rest", "f(1, 2, *more, a=3)", None),
        ("a", "f(1, 2, *more)", None),
        ("a", "f(b=1, **more)", None),
    ],
)
def test_of_what_is_unpacked_only_the_rest_is_known(
    signature: str, call: str, known: dict[str, int] | None
) -> None:
    found = bind(*asked(signature, call))
    if known is None:
        assert isinstance(found, Wrong)
        return
    assert isinstance(found, Bound)
    assert literal(found.given) == known
    assert found.unpacked
    assert arguments_of(*asked(signature, call)) is None


def test_a_method_is_bound_without_its_instance() -> None:
    found = bind(*asked("self, grads, rate=0", "f(1, rate=2)", bound=1))

    assert isinstance(found, Bound)
    assert literal(found.given) == {"grads": 1, "rate": 2}
