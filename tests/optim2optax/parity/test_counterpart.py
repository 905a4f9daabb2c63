"""What the new tree has where `rewrite` would put an optimizer."""

from __future__ import annotations

from textwrap import dedent

import pytest

from codemods import FileResult, Source, migrate
from optim2optax.parity.counterpart import counterpart

BEFORE = """
    from flax import optim

    def create(params, lr):
        first = optim.Adam(lr).create(params)
        second = optim.Momentum(lr, 0.8, nesterov=True).create(params)
        return first, second

    class Agent:
        def __init__(self, params):
            self.optimizer = optim.MultiOptimizer(
                (optim.ModelParamTraversal(lambda path, _: "bias" in path), optim.Adam(0.1))
            ).create(params)
    """


@pytest.fixture
def result() -> FileResult:
    [found] = migrate([Source("train.py", dedent(BEFORE).encode())])
    return found


def now(result: FileResult, **changes: str) -> list[str | None]:
    """The new texts of all optimizers when the rewritten file was changed by hand."""
    expected = actual = result.after.decode()
    for old, new in changes.items():
        assert old in actual
        actual = actual.replace(old, new)
    found = [counterpart(emitted, expected, actual) for emitted in result.optimizers]
    return [emitted.optax_expression if emitted else None for emitted in found]


def test_as_rewritten(result: FileResult) -> None:
    found = [counterpart(emitted, result.after.decode(), result.after.decode()) for emitted in result.optimizers]
    assert [emitted for emitted in found if emitted and emitted.name != "Adam"] == [
        emitted for emitted in result.optimizers if emitted.name != "Adam"
    ]


def test_as_changed_by_hand(result: FileResult) -> None:
    texts = now(result, **{"momentum=0.8": "momentum=0.9"})
    assert "optax.sgd(lr, momentum=0.9, nesterov=True)" in texts


def test_a_chain_in_place_of_an_alias(result: FileResult) -> None:
    texts = now(result, **{"optax.adam(lr)": "optax.chain(optax.clip(1.0), optax.adam(lr))"})
    assert "optax.chain(optax.clip(1.0), optax.adam(lr))" in texts


def test_injected_hyperparameters_in_place_of_an_alias(result: FileResult) -> None:
    texts = now(result, **{"optax.adam(lr)": "optax.inject_hyperparams(optax.adam)(learning_rate=lr)"})
    assert "optax.inject_hyperparams(optax.adam)(learning_rate=lr)" in texts


def test_other_code_is_not_taken_for_it(result: FileResult) -> None:
    texts = now(
        result,
        **{"    first =": "    optax.global_norm(params)\n    schedule = optax.constant_schedule(lr)\n    first ="},
    )
    assert "optax.adam(lr)" in texts


def test_nothing_there(result: FileResult) -> None:
    [*_] = texts = now(result, **{"optax.adam(lr)": "make(lr)", "optax.sgd": "make_other"})
    assert None in texts
