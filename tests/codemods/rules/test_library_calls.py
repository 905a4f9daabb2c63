"""Calls of library functions that are incomplete or odd. Nothing is read into them, and what is beside them migrates."""

from __future__ import annotations

import pytest

from tests.codemods.programs import result_of

BEFORE = """
import collections
import dataclasses
import functools
import importlib
import itertools
import typing

import jax
import wrapping
from flax import optim


class Model:
    def set(self, values):
        for name, value in values.items():
            setattr(self, name, value)


def odd(step, steps, state, xs, name, options):
    {line}


def train(params, batches):
    optimizer = optim.Adam(1e-3).create(params)
    for batch in batches:
        optimizer = optimizer.apply_gradient(batch)
    return optimizer.target
"""
ODD = {
    "what is unpacked and comes from the device": "return jax.device_get(**options).target",
    "a partial application of what is unpacked": "return functools.partial(**options)().target",
    "a scan over what is unpacked": "return jax.lax.scan(*steps)[0].target",
    "a while loop over what is unpacked": "return jax.lax.while_loop(*steps).target",
    "a for loop over what is unpacked": "return jax.lax.fori_loop(0, 9, *steps).target",
    "a condition of what is unpacked": "return jax.lax.cond(*steps).target",
    "a switch of what is unpacked": "return jax.lax.switch(**options).target",
    "a map of what is unpacked": "return [x.target for x in map(*steps)], jax.lax.map(*steps).target",
    "a number for each of nothing": "return [x.target for _, x in enumerate(**options)]",
    "the next of an iterator by keyword": "return xs.next(**options).target, next(**options).target",
    "a replacement in what is unpacked": "return dataclasses.replace(**options).target",
    "a parent outside of a class": "return super().target",
    "a pullback of what is unpacked": "return jax.vjp(*steps)[0].target",
    "a shape of what is unpacked": "return jax.eval_shape(**options).target",
    "leaves of what is unpacked": "return jax.tree_util.tree_flatten(**options)[1].target",
    "repeating what is unpacked": "return next(itertools.repeat(**options)).target",
    "a dict with no default": "return collections.defaultdict(**options)[name].target",
    "a record whose fields are found at run time": "return collections.namedtuple(name, xs.fields)(*xs).target",
    "a record without fields": "return typing.NamedTuple(name)(*xs).target",
    "a cast of what is unpacked": "return typing.cast(*steps).target",
    "an attribute of what is unpacked": "return getattr(*steps).target",
    "an attribute whose name is found at run time": "return getattr(state, name).target",
    "reducing what is unpacked": "return functools.reduce(*steps).target",
    "a gradient of a gradient, and so on": "for _ in range(9): step = jax.grad(step)",
    "two lists pasted together by number": "return [*(xs + steps), *([state] * 2)][0].target",
}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_what_odd_calls_give_is_unknown_and_holds_nobody_back(line: str) -> None:
    result = result_of(BEFORE.format(line=line))
    assert line.encode() in result.after
    assert {site.status for site in result.sites} == {"rewritten"}
    assert b"train_state.TrainState.create(" in result.after
