"""The promises of the design, each on whole small programs: bytes in, bytes and an account out."""

from __future__ import annotations

import ast
import re
from itertools import permutations

import pytest

from codemods import FileResult, Options, Source, migrate
from tests.codemods.programs import program

PARTIAL = Options(partial=True)


def run(content: bytes | str, options: Options | None = None, path: str = "train.py") -> FileResult:
    """What becomes of one file, byte for byte."""
    [result] = migrate([Source(path, content if isinstance(content, bytes) else program(content).encode())], options)
    return result


def told(result: FileResult, status: str) -> list[tuple[int, str]]:
    """Line and code of the sites with a status, in order."""
    return sorted((site.line, site.code) for site in result.sites if site.status == status)


# 1. Whole optimizers or nothing.

WHOLE_OR_NOTHING = {
    "unpacked arguments keep the second optimizer of a file": (
        """
        from flax import optim

        def train(params, hps, grads):
            one = optim.Momentum(0.1).create(params)
            two = optim.Momentum(**hps).create(params)
            one = one.apply_gradient(grads)
            two = two.apply_gradient(grads)
            return one.target, two.target
        """,
        """
        import optax
        from flax import optim
        from flax.training import train_state

        def train(params, hps, grads):
            one = train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.sgd(0.1, momentum=0.9)
            )
            two = optim.Momentum(**hps).create(params)
            one = one.apply_gradients(grads=grads)
            two = two.apply_gradient(grads)
            return one.params, two.target
        """,
        [(1, "FO911"), (5, "FO901"), (5, "FO904"), (7, "FO901"), (8, "FO901")],
    ),
    "moments read in one function keep what another function made": (
        """
        from flax import optim

        def make(params):
            return optim.Adam(1e-3).create(params)

        def moments(params):
            return make(params).state.param_states

        def other(params):
            return optim.Adam(1e-2).create(params).target
        """,
        """
        import optax
        from flax import optim
        from flax.training import train_state

        def make(params):
            return optim.Adam(1e-3).create(params)

        def moments(params):
            return make(params).state.param_states

        def other(params):
            return train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.adam(1e-2)
            ).params
        """,
        [(1, "FO911"), (4, "FO901"), (4, "FO901"), (7, "FO906"), (7, "FO906")],
    ),
}


@pytest.mark.parametrize(("before", "after", "left"), WHOLE_OR_NOTHING.values(), ids=WHOLE_OR_NOTHING)
def test_a_bad_site_keeps_its_whole_optimizer_and_no_other(
    before: str, after: str, left: list[tuple[int, str]]
) -> None:
    result = run(before)

    assert result.after.decode() == program(after)
    assert told(result, "unresolved") == left
