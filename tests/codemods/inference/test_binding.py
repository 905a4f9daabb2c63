"""Binding is compared with what Python itself binds."""

from __future__ import annotations

import ast

import pytest

from codemods.inference.binding import (
    Bound,
    Wrong,
    arguments_of,
    bind,
    signature_of,
    taking,
)


def read(signature: str, *calls: str, bound: int = 0) -> Bound[ast.expr] | Wrong:
    """How calls, of which the last is the one of the function, bind to its parameters."""
    function = ast.parse(f"def f({signature}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    *earlier, last = [parsed(call) for call in calls]
    return bind(signature_of(function.args, bound), last, *earlier)


def parsed(call: str) -> ast.Call:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


@pytest.mark.parametrize(
    ("signature", "call"),
    [
        pytest.param("a, *rest", "f(1, 2, *more, a=3)", id="too much ahead of what is unpacked"),
        pytest.param("a", "f(1, 2, *more)", id="too many ahead of what is unpacked"),
        pytest.param("a", "f(b=1, **more)", id="no such parameter beside what is unpacked"),
    ],
)  # fmt: skip
def test_a_call_that_is_wrong_whatever_it_unpacks(signature: str, call: str) -> None:
    assert isinstance(read(signature, call), Wrong)


@pytest.mark.parametrize(
    ("call", "known"),
    [
        ("f(1, *more, c=3)", {"a": 1, "c": 3}),
        ("f(*more, 2)", {}),
        ("f(1, **more)", {"a": 1}),
        ("f(*more, **others)", {}),
    ],
)
def test_of_what_is_unpacked_only_the_rest_is_known(
    call: str, known: dict[str, int]
) -> None:
    found = read("a, b=0, c=0", call)

    assert isinstance(found, Bound)
    assert {
        name: ast.literal_eval(value) for name, value in found.given.items()
    } == known
    assert found.unpacked
    assert arguments_of(taking("a", b=0, c=0), parsed(call)) is None


SIGNATURES = (
    "a",
    "a, b=7",
    "a, /, b=7",
    "a, *rest",
    "a, b=7, *rest, c=8, **others",
    "a, *, c",
    "a, *, c=8",
    "*rest, **others",
)
CALLS = (
    "f(1)",
    "f(a=1)",
    "f(1, 2)",
    "f(1, b=2)",
    "f(b=2, a=1)",
    "f(1, 2, 3, d=4)",
    "f(1, c=3)",
    "f()",
    "f(1, a=2)",
)


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_bound_as_python_binds_it_or_wrong(signature: str, call: str) -> None:
    names: dict[str, object] = {}
    exec(f"def f({signature}): return locals()", names)
    try:
        expected = eval(call, names)
    except TypeError:
        expected = None

    found = read(signature, call)

    if expected is None:
        assert isinstance(found, Wrong)
        return
    assert isinstance(found, Bound)
    values = {name: ast.literal_eval(value) for name, value in found.complete.items()}
    if "*rest" in signature:
        values["rest"] = tuple(map(ast.literal_eval, found.rest))
    if "**others" in signature:
        values["others"] = {
            name: ast.literal_eval(value) for name, value in found.others.items()
        }
    assert values == expected


def test_a_method_is_bound_without_its_instance() -> None:
    found = read("self, grads, rate=0", "f(1, rate=2)", bound=1)

    assert isinstance(found, Bound)
    assert [*found.given] == ["grads", "rate"]


@pytest.mark.parametrize(
    ("partial", "call", "values"),
    [
        ("partial(f, 1)", "g(2, c=3)", {"a": 1, "b": 2, "c": 3}),
        ("partial(f, b=1)", "g(2, c=3)", {"a": 2, "b": 1, "c": 3}),
        ("partial(f, 1, c=0)", "g(2, c=3)", {"a": 1, "b": 2, "c": 3}),
    ],
)
def test_arguments_of_a_partial_application_come_first(
    partial: str, call: str, values: dict[str, int]
) -> None:
    found = read("a, b, c", partial, call)

    assert isinstance(found, Bound)
    assert {
        name: ast.literal_eval(value) for name, value in found.given.items()
    } == values


def test_a_partial_application_that_fills_what_the_call_fills_is_wrong() -> None:
    assert isinstance(read("a, b", "partial(f, a=1)", "g(2, 3)"), Wrong)


def test_behind_what_a_partial_application_unpacks_no_position_is_known() -> None:
    found = read("a, b, c", "partial(f, *more)", "g(2, c=3)")

    assert isinstance(found, Bound)
    assert [*found.given] == ["c"]
    assert found.unpacked
