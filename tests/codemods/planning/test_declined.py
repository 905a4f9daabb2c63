"""Optimizers that the user declined stay as they are, with all that goes with them. What must stay comes first."""

from __future__ import annotations

import pytest

from codemods import Options, Source, migrate
from codemods.model import FileResult, Location

TWO = """\
import flax
from flax import optim


def actor(params, grads):
    optimizer = optim.Adam(1e-3).create(params)
    return optimizer.apply_gradient(grads).target


def critic(params, grads):
    optimizer = optim.Momentum(0.1, beta=0.9).create(params)
    return optimizer.apply_gradient(grads).target


def scale():
    return flax.optim.DynamicScale()
"""
MADE_BY_HAND = """\
from flax import optim
from flax.optim.momentum import _MomentumHyperParams


def first(params, grads):
    optimizer = optim.Momentum(0.1).create(params)
    return optimizer.apply_gradient(grads, hyper_params=chosen()).target


def second(params, grads):
    optimizer = optim.Momentum(0.2).create(params)
    return optimizer.apply_gradient(grads, hyper_params=chosen()).target


def chosen():
    return _MomentumHyperParams(0.3, 0.9, 0.0, False)
"""
ACTOR, CRITIC, SCALE = (Location("train.py", line) for line in (6, 11, 16))


def declined(program: str, *places: Location) -> FileResult:
    [result] = migrate(
        [Source("train.py", program.encode())], Options(declined=frozenset(places))
    )
    return result


def test_all_of_them() -> None:
    result = declined(TWO, ACTOR, CRITIC, SCALE)
    assert not result.changed
    assert {site.status for site in result.sites} == {"suppressed"}
    declining = [site.message for site in result.sites if site.code != "FO101"]
    assert {*declining} == {"Declined."}


@pytest.mark.parametrize(("place", "kept"), [(ACTOR, 6), (CRITIC, 11), (SCALE, 16)])
def test_one_of_them(place: Location, kept: int) -> None:
    """The others migrate as they do without it, and the import that it needs stays."""
    before, after = TWO.splitlines(), declined(TWO, place).after.decode()
    assert before[kept - 1] in after
    others = {
        6: "optax.adam(1e-3)",
        11: "optax.sgd(0.1, momentum=0.9)",
        16: "return DynamicScale()",
    }
    for line, text in others.items():
        assert (text in after) == (line != kept)
    assert ("from flax import optim" in after) == (place != SCALE)


def test_what_is_made_by_hand_may_be_of_any() -> None:
    """One site of no group is used with both."""
    everything = declined(MADE_BY_HAND)
    assert everything.changed
    groups = {site.group for site in everything.sites} - {None}
    for group in groups:
        assert group is not None
        assert not declined(MADE_BY_HAND, group).changed


def test_the_place_of_another_project() -> None:
    elsewhere = Location("other.py", 6)
    assert declined(TWO, elsewhere).after == declined(TWO).after
