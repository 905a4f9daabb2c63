"""The order of the idioms: each knows those before it, and no other."""

import importlib
import pkgutil

from codemods import idioms
from codemods.analysis.facts import Facts
from codemods.analysis.stepping import Stepping
from codemods.idioms.base import Idiom, Results
from codemods.idioms.overrides import Overrides
from codemods.idioms.own_states import OwnStates
from codemods.idioms.schedules import Schedules
from codemods.rules.idioms import MODULES, in_order


class Asking(OwnStates):
    """An idiom that asks for schedules."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        self.schedules = results[Schedules]


def results(*order: type[Idiom]) -> Results:
    """What idioms find in a program without optimizers, in some order."""
    return Results(Stepping(Facts(())), order)


def test_each_idiom_finds_those_before_it() -> None:
    assert [type(idiom) for idiom in results(*in_order())] == [*in_order()]


def test_what_is_found_is_found_once() -> None:
    found = results(Schedules, Asking)
    assert found[Asking].schedules is found[Schedules]
    assert found[Overrides].schedules is found[Schedules]


def test_no_idiom_is_forgotten() -> None:
    names = [module.name for module in pkgutil.iter_modules(idioms.__path__)]
    modules = [importlib.import_module(f"{idioms.__name__}.{name}") for name in names]
    found = {module.__name__ for module in modules if hasattr(module, "IDIOM")}
    assert found <= {*MODULES}


def test_each_has_a_code_a_kind_and_an_example_of_its_own() -> None:
    for part in ("code", "kind", "summary", "before", "after", "__doc__"):
        values = [getattr(idiom, part) for idiom in in_order()]
        assert all(values)
        assert len({*values}) == len(values)
