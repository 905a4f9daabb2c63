"""The table of removed names beside the packages as they are installed."""

import importlib
import inspect
import platform
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import cast

import pytest
from packaging.version import Version

from codemods.removed import Removed, table
from codemods.removed.present import present, unknown
from codemods.removed.table import changed_arguments
from codemods.removed.templates import expressions_of
from codemods.rules.removed import HELPERS

BACK = (
    "numpy.bool",
    "flax.linen.GRUCell.initialize_carry",
    "flax.linen.LSTMCell.initialize_carry",
    "flax.linen.OptimizedLSTMCell.initialize_carry",
)
"""What some versions have again, or still, though as something else."""


@cache
def found(name: str) -> object:
    """What a full name means; raises AttributeError or ImportError if it means nothing."""
    above, _, last = name.rpartition(".")
    if not above:
        return importlib.import_module(name)
    owner = found(above)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(owner, last)
        except AttributeError:
            return importlib.import_module(name)


def is_there(name: str) -> bool:
    try:
        found(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_what_takes_the_place_of_a_name_is_there() -> None:
    named = {row.to for row in table().values() if row.how == "same"}
    for row in table().values():
        if row.how in ("call", "value"):
            named.update(name for form in expressions_of(row.to) for name in form.names)
    assert [name for name in sorted(named) if not is_there(name)] == []


def test_the_module_that_a_row_names_is_enough() -> None:
    rows = [row for row in table().values() if row.module]
    assert all(row.how != "none" for row in rows)
    assert [row.module for row in rows if not is_there(row.module)] == []


def test_what_is_in_the_table_is_gone() -> None:
    removed_in = [row.name for row in table().values() if is_absent(row)]
    assert len(removed_in) > 1000
    assert [name for name in removed_in if is_there(name) and name not in BACK] == []


def is_absent(row: Removed) -> bool:
    return Version(row.removed_in) <= installed(row.package)


@cache
def installed(package: str) -> Version:
    is_python = package in sys.stdlib_module_names
    return Version(platform.python_version() if is_python else version(package))


def test_the_arguments_of_functions_are_those_of_the_table() -> None:
    functions = changed_arguments()
    for name, rows in functions.items():
        for row in rows:
            if row.how not in ("keyword", "argument"):
                continue
            function = cast("Callable[..., object]", found(name))
            parameters = inspect.signature(function).parameters
            assert row.to in parameters, row.name
            if is_absent(row) and row.how == "keyword":
                assert row.parameter not in parameters, row.name
            if is_absent(row) and row.how == "argument":
                with pytest.raises(TypeError, match=f"missing .*'{row.to}'"):
                    function()


def test_an_expression_has_each_argument_once() -> None:
    for row in table().values():
        if row.how in ("call", "value"):
            for form in expressions_of(row.to):
                assert len(form.used) == len(set(form.used)), row.name
                assert set(form.used) <= set(form.signature.parameters), row.name


@pytest.mark.parametrize("column", ["name", "removed_in", "how"])
def test_no_row_lacks_its_cells(column: str) -> None:
    assert all(getattr(row, column) for row in table().values())


def test_each_row_says_what_to_do() -> None:
    for row in table().values():
        assert bool(row.note) == (row.how in ("none", "drop", "argument")), row.name
        assert bool(row.to) != (row.how in ("none", "drop")), row.name
    assert {row.to for row in table().values() if row.how == "helper"} == set(HELPERS)


def test_what_is_installed_is_known() -> None:
    for module in present():
        names = filter(
            str.isidentifier, vars(found(module)) if is_there(module) else ()
        )
        told = [unknown(f"{module}.{name}") for name in names]
        assert [one.name for one in told if one is not None and one.version] == []
