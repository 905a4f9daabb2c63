"""Checks for Adagrad. First, what the rule leaves to others."""

from __future__ import annotations

import pytest

from tests.codemods.programs import result_of

PROGRAM = """
    from flax import optim

    def is_sparse(definition):
        return isinstance(definition, optim.{name})
    """


@pytest.mark.parametrize(("name", "code"), [("Adam", "FO903"), ("Adagrad", "FO199")])
def test_a_check_for_one_kind(name: str, code: str) -> None:
    result = result_of(PROGRAM.format(name=name))
    assert [site.code for site in result.sites if site.line == 4] == [code]
