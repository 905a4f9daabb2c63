"""Code that nobody writes, and that Python allows, does not stop the analysis."""

import pytest

from codemods import Source, migrate

PROGRAM = """\
import importlib
import functools
import jax
from flax import optim

definition = optim.Adam(0.1)
optimizer = definition.create({{}})
{odd}
optimizer = optimizer.apply_gradient({{}})
"""

ODD = [
    '__import__(f"")',
    '__import__("")',
    'importlib.import_module(f"")',
    'importlib.import_module("." + "")',
    "importlib.import_module()",
    'getattr(optimizer, f"")',
    "getattr()",
    "setattr(optimizer)",
    'exec(open(f"").read())',
    'globals()[f""]',
    "optim.Adam(*())",
    "optim.Adam(**{})",
    "optim.MultiOptimizer()",
    "optim.MultiOptimizer(*[])",
    "optim.ModelParamTraversal()",
    "definition.create()",
    "optimizer.apply_gradient(*())",
    "optimizer.state_dict(1)",
    "optimizer.replace()",
    "optimizer.optimizer_def.init_state()",
    "functools.partial()",
    "functools.reduce(lambda a, b: a, [], optimizer)",
    "jax.jit()",
    "jax.value_and_grad()",
    "jax.lax.scan()",
    "jax.tree_map()",
    "super()",
    'type("Trainer", (), {})()',
    "dict(*())",
    "{**optimizer}",
    "optimizer[()]",
    "optimizer @ optimizer",
    "del optimizer.target",
    "optimizer.target: int",
    'x: "optim.Adam[" = 1',
    'x: f"" = 1',
    "for optimizer.x in []:\n    pass",
    "class X(optim.Adam()):\n    pass",
    "class X(*[optim.Adam]):\n    pass",
    "rows = [[]]\nrows.append(rows)\nstep = rows[0]\nrows.append(functools.partial(step.__new__, step))\nstep()",
    "class X(metaclass=optim.Adam):\n    pass",
    "match optimizer:\n    case []:\n        pass",
    "match optimizer:\n    case optim.Optimizer():\n        pass",
    'print(f"{optimizer!r:{definition}}")',
    "lambda: (yield)",
]


@pytest.mark.parametrize("odd", ODD)
def test_every_site_is_accounted_for(odd: str) -> None:
    text = PROGRAM.format(odd=odd)
    [result] = migrate([Source("train.py", text.encode())])
    assert result.error is None
    assert len(result.sites) >= 4
    left = [site for site in result.sites if site.status == "unresolved"]
    assert left or "from flax import optim" not in result.after.decode()


IN_A_FUNCTION = """
import collections
import dataclasses
import itertools
import typing

def odd(step, steps, state, xs, name, options):
    {}
"""
INCOMPLETE = {
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


@pytest.mark.parametrize("line", INCOMPLETE.values(), ids=INCOMPLETE)
def test_what_incomplete_calls_give_is_unknown_and_holds_nobody_back(line: str) -> None:
    text = PROGRAM.format(odd=IN_A_FUNCTION.format(line))
    [result] = migrate([Source("train.py", text.encode())])
    assert line.encode() in result.after
    assert {site.status for site in result.sites} == {"rewritten"}


def test_objects_within_objects_hundreds_deep() -> None:
    holders = "".join(
        f"class C{n}:\n    def __init__(self):\n        self.inner = C{n + 1}()\n"
        for n in range(700)
    )
    last = "class C700:\n    def __init__(self):\n        self.inner = optimizer\n"
    odd = f"{holders}{last}import lab\nlab.take(C0())"
    [result] = migrate([Source("train.py", PROGRAM.format(odd=odd).encode())])
    assert result.error is None
    assert {site.status for site in result.sites} == {"rewritten"}
