"""Of many objects at one place the analysis keeps no more than it needs, and still knows each."""

from __future__ import annotations

import collections
from textwrap import dedent

import pytest

from codemods import FileResult, Source, migrate
from codemods.flow.containers import METHODS
from codemods.flow.solver import MANY

KINDS = (
    *(list, dict, set, frozenset, tuple),
    *(
        collections.deque,
        collections.OrderedDict,
        collections.Counter,
        collections.ChainMap,
        collections.defaultdict,
    ),
)
NEWER = {"total"}
"""What Python's containers have got since 3.8."""


def test_every_method_of_pythons_containers_is_known() -> None:
    public = {name for kind in KINDS for name in dir(kind) if not name.startswith("_")}
    assert public - METHODS <= {*NEWER, "maxlen", "parents", "maps"}  # data, no methods


def migrated(text: str) -> FileResult:
    [result] = migrate([Source("train.py", dedent(text).encode())])
    return result


PROGRAM = """\
from flax import optim
import elsewhere
import jax

def train(params, grads):
{made}
    for each in ({given}):
        back = elsewhere.mix(each)
        print(back.target, back.apply_gradient(grads))
    alone = optim.Adam(0.5).create(params)
    {extra}
    return alone.apply_gradient(grads)
"""


@pytest.mark.parametrize(
    "extra", ["o0.apply_gradient(grads)", "jax.tree_util.tree_leaves(o0)[3]"]
)
@pytest.mark.parametrize("number", [2, MANY, MANY + 1, 3 * MANY])
def test_many_that_code_out_of_view_may_give_back_go_or_stay_together(
    number: int, extra: str
) -> None:
    made = "\n".join(
        f"    o{index} = optim.Adam(0.{index + 1}).create(params)"
        for index in range(number)
    )
    given = ", ".join(f"o{index}" for index in range(number))
    after = migrated(PROGRAM.format(made=made, given=given, extra=extra)).after.decode()
    stay = "leaves" in extra
    assert after.count("optim.Adam(") == (number if stay else 0)
    assert after.count("optax.adam(") == (1 if stay else number + 1)
    assert ("back.target, back.apply_gradient(grads)" in after) == stay
    assert ("back.params, back.apply_gradients(grads=grads)" in after) == (not stay)


def test_what_may_be_one_of_many_that_come_back_is_told() -> None:
    made = ", ".join(
        f"optim.Momentum(0.{index + 1}).create(params)" for index in range(MANY + 4)
    )
    result = migrated(
        f"""\
from flax import optim
import elsewhere
import jax

def train(params):
    every = [{made}]
    kept = elsewhere.keep(every)
    return kept[0].target
"""
    )
    left = [
        (site.line, site.code) for site in result.sites if site.status == "unresolved"
    ]
    assert left == [(8, "FO922")]
    assert b"return kept[0].target" in result.after
