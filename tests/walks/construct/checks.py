"""Patched paths. First, what the rule leaves to others."""

from __future__ import annotations

import pytest

from tests.codemods.programs import result_of

PROGRAM = """
    from unittest import mock

    from flax import optim

    def make(params):
        return optim.{name}(0.1).create(params)

    def test_make():
        with mock.patch("flax.optim.{name}") as made:
            make(0)
        made.assert_called_with(0.1)
    """


@pytest.mark.parametrize(
    ("name", "path"), [("RMSProp", "flax.optim.RMSProp"), ("Adam", "optax.adam")]
)
def test_what_a_test_puts_in_its_place(name: str, path: str) -> None:
    result = result_of(PROGRAM.format(name=name))
    assert f'mock.patch("{path}")' in result.after.decode()
