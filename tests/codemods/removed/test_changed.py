"""What is still there and is taken otherwise: untouched, then rewritten, then told, in whole programs."""

import inspect
from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from codemods import FileResult, Options, Source, migrate
from codemods.removed.table import changed

NN = "import jax\nimport jax.numpy as jnp\nfrom flax import linen as nn\n\n"
CORE = "from flax.core import FrozenDict, freeze, unfreeze\n\n"


def run(program: str) -> FileResult:
    [result] = migrate([Source("train.py", program.encode())], Options(modernize=True))
    return result


UNTOUCHED = {
    "arrays and numbers": f"{NN}jnp.mean(x), jnp.mean(jnp.array([x])), jnp.sum(1), jnp.sum(*[x])\n",
    "lists where they are taken": f"{NN}jnp.array([x]), jnp.stack([x, y]), jnp.concatenate([x]), jnp.zeros([2])\n",
    "lists as other arguments": f"{NN}jnp.sum(x, (0, 1)), jnp.broadcast_to(x, [2, 3]), jnp.where(x, y, [0])\n",
    "lists of NumPy": "import numpy as np\n\nnp.mean([x, y])\n",
    "a method of the same name": f"{NN}x.mean([0, 1])\n",
    "attention without a mask": f"{NN}nn.MultiHeadDotProductAttention(8)(x, y)\n",
    "attention to values": f"{NN}nn.MultiHeadDotProductAttention(8)(x, y, z)\n",
    "a mask by its name": f"{NN}nn.MultiHeadDotProductAttention(8)(x, y, mask=mask)\n",
    "attention of another kind": f"{NN}nn.SelfAttention(8)(x, mask)\n",
    "attention of one's own": (
        f"{NN}class MultiHeadDotProductAttention(nn.Module): ...\n\nMultiHeadDotProductAttention(8)(x, y, mask)\n"
    ),
    "arguments that are unpacked": "import optax\n\noptax.huber_loss(*x, y, z), optax.huber_loss(x, y, delta=z)\n",
    "a cell with features": f"{NN}nn.GRUCell(features=8)(carry, x), nn.LSTMCell(8)(carry, x), nn.GRUCell(**y)(carry, x)\n",
    "the carry of a cell": f"{NN}nn.GRUCell(features=8).initialize_carry(key, (8, 16))\n",
    "lists that are no fields": (
        f"{NN}class Net(nn.Module):\n    sizes: list\n\n    def setup(self):\n        self.layers = []\n"
        "        return self.layers + [1], other.sizes + [1], self.sizes + (1,), list(self.sizes) + [1]\n"
    ),
    "fields that may be arrays": (
        f"{NN}class Net(nn.Module):\n    shift: jnp.ndarray\n    scale: Any\n\n    def __call__(self, x):\n"
        "        return self.shift + [1, 2], self.scale + [1, 2]\n"
    ),
    "a field of another class": "class Net:\n    sizes: list\n\n    def f(self):\n        return self.sizes + [1]\n",
    "a default of no dataclass": f"{NN}class State:\n    x: jnp.ndarray = jnp.zeros(1)\n",
    "a variable with an annotation": f"{NN}def f():\n    x: jnp.ndarray = jnp.zeros(1)\n    return x\n",
    "numbers that fit": "import numpy as np\n\nnp.uint8(255), np.int8(-1), np.uint8(-x), np.uint8(-1.0)\n",
    "dicts as well": (
        f"{CORE}def f(x):\n    if isinstance(x, (dict, FrozenDict)):\n        return f(x['a'])\n    return 1\n"
    ),
    "dicts by another test": (
        f"{CORE}def f(x):\n    if isinstance(x, dict) or isinstance(x, FrozenDict):\n        return f(x['a'])\n"
    ),
    "dicts in another branch": (
        f"{CORE}def f(x):\n    if isinstance(x, dict):\n        return 0\n    elif isinstance(x, FrozenDict):\n        return f(x)\n"
    ),
    "what only unfreezes": f"{CORE}def f(x):\n    if isinstance(x, FrozenDict):\n        x = unfreeze(x)\n    return x\n",
    "what only freezes": f"{CORE}def f(x):\n    if not isinstance(x, FrozenDict):\n        x = FrozenDict(x)\n    return x\n",
    "what freezes as before": (
        f"{CORE}def f(x, y):\n    if isinstance(x, FrozenDict):\n        return freeze(y)\n    else:\n        return y\n"
    ),
    "what freezes as before, in an expression": (
        f"{CORE}def f(x, y):\n    return freeze(y) if isinstance(x, FrozenDict) else y\n"
    ),
    "what freezes again": (
        f"{CORE}def f(x):\n    frozen = isinstance(x, FrozenDict)\n    if frozen:\n        x = unfreeze(x)\n"
        "    x['a'] = 1\n    if frozen:\n        x = freeze(x)\n    return x\n"
    ),
    "types that are not compared": (
        f"{NN}f(type(x), jax.Array), isinstance(x, jax.Array) == type(y), field.annotation == jax.Array\n"
    ),
    "what is called alike": (
        f"{NN}class Machine:\n    def device(self): ...\n\n"
        "Machine().device(), x.device, x.device(0), jnp.device(), x.clip(0, 1), x.np.clip(x, a_min=0)\n"
    ),
    "updates of something else": (
        "from flax.training import early_stopping\n\nupdates, state = tx.update(grads, state)\nx = stop.update(loss)\n"
    ),
    "copies of something else": "import flax\n\nx = kind.init(y)\nz = x.copy(y), z.copy(x), x.copy({'a': 1})\n",
    "a position in partial": f"{NN}from functools import partial\n\npartial(jnp.full, (2, 3)), partial(**x)\n",
    "another class of that name": "from lab import FrozenDict, flax\n\nassert isinstance(x, FrozenDict)\n",
}

REWRITTEN = {
    "lists at other places, of what was removed": (
        f"{NN}x = jnp.dot([1, 2], [jnp.NINF, 3])\n",
        f"{NN}x = jnp.dot(jnp.array([1, 2]), jnp.array([-jnp.inf, 3]))\n",
    ),
    "the mask of attention": (
        (
            f"{NN}def f(x, y, self_mask):\n    z = nn.MultiHeadDotProductAttention(\n        num_heads=8)(\n"
            "            x, y, self_mask)\n    return z\n"
        ),
        (
            f"{NN}def f(x, y, self_mask):\n    z = nn.MultiHeadDotProductAttention(\n        num_heads=8)(\n"
            "            x, y, mask=self_mask)\n    return z\n"
        ),
    ),
    "keywords of methods, and in partial": (
        (
            f"{NN}from functools import partial\nfrom jax.experimental.pjit import pjit\n\n"
            "x = f(x).clip(a_max=1), partial(pjit, in_axis_resources=y, out_axis_resources=None)\n"
        ),
        (
            f"{NN}from functools import partial\nfrom jax.experimental.pjit import pjit\n\n"
            "x = f(x).clip(max=1), partial(pjit, in_shardings=y, out_shardings=None)\n"
        ),
    ),
    "pairs of what a model gave": (
        (
            "import flax\n\nrest, stats = updates.pop('batch_stats')\nparams = model.init(key, x).pop('params')[1]\n"
            "y, new = model.apply(v, x, mutable=['losses'])\nnew, losses = new.pop('losses')\nv = v.copy(new)\n"
            "variables = variables.copy(updates)\n"
        ),
        (
            "import flax\n\nrest, stats = flax.core.pop(updates, 'batch_stats')\n"
            "params = flax.core.pop(model.init(key, x), 'params')[1]\n"
            "y, new = model.apply(v, x, mutable=['losses'])\nnew, losses = flax.core.pop(new, 'losses')\n"
            "v = flax.core.copy(v, new)\nvariables = flax.core.copy(variables, updates)\n"
        ),
    ),
    "what is given by a keyword now": (
        "import optax\n\nloss = optax.huber_loss(x, y, 1.0) + optax.ctc_loss(a, b, c, d, 0)\n",
        "import optax\n\nloss = optax.huber_loss(x, y, delta=1.0) + optax.ctc_loss(a, b, c, d, blank_id=0)\n",
    ),
    "cells that are called at once": (
        f"{NN}carry, x = nn.GRUCell()(carry, x)\nstate, y = nn.LSTMCell(name='lstm')(state, y)\n",
        (
            f"{NN}carry, x = nn.GRUCell(features=carry.shape[-1])(carry, x)\n"
            "state, y = nn.LSTMCell(features=state[0].shape[-1], name='lstm')(state, y)\n"
        ),
    ),
    "the carry of a class of cells": (
        (
            f"{NN}def f(key, batch, size):\n    a = nn.LSTMCell.initialize_carry(key, (batch,), size)\n"
            "    return a, nn.GRUCell.initialize_carry(\n        key, batch, size)\n"
        ),
        (
            f"{NN}def f(key, batch, size):\n    a = nn.LSTMCell(features=size, parent=None).initialize_carry(key, (batch, size))\n"
            "    return a, nn.GRUCell(features=size, parent=None).initialize_carry(\n        key, (*batch, size))\n"
        ),
    ),
    "a list to which a field is added": (
        (
            f"{NN}class Base(nn.Module):\n    sizes: list\n\nclass Net(Base):\n    def __call__(self, x):\n"
            "        return f([1] + self.sizes + [2]), self.sizes + [3]\n"
        ),
        (
            f"{NN}class Base(nn.Module):\n    sizes: list\n\nclass Net(Base):\n    def __call__(self, x):\n"
            "        return f([1] + list(self.sizes) + [2]), list(self.sizes) + [3]\n"
        ),
    ),
    "an array of NumPy as the default of a field": (
        "import dataclasses\nimport numpy as np\n\n@dataclasses.dataclass(frozen=True)\nclass Box:\n    low: object = np.zeros(3)\n",
        (
            "import dataclasses\nimport numpy as np\n\n@dataclasses.dataclass(frozen=True)\nclass Box:\n"
            "    low: object = dataclasses.field(default_factory=lambda: np.zeros(3))\n"
        ),
    ),
    "the largest number": (
        "import numpy as np\n\nx = np.uint64(-1), np.uint8(-2)\n",
        "import numpy as np\n\nx = np.uint64(2**64 - 1), np.uint8(2**8 - 2)\n",
    ),
    "a test at each level": (
        (
            "import flax\nfrom flax.core import frozen_dict\n\ndef count(x):\n    if isinstance(x, flax.core.FrozenDict):\n"
            "        return sum(map(count, x.values()))\n    return x.size\n\n"
            "def walk(x):\n    if not isinstance(x, flax.core.FrozenDict):\n        return [x]\n"
            "    return [walk(y) for y in x.values()]\n\n"
            "def show(x):\n    return {k: show(v) if isinstance(v, frozen_dict.FrozenDict) else v for k, v in x.items()}\n"
        ),
        (
            "import flax\nfrom flax.core import frozen_dict\n\ndef count(x):\n    if isinstance(x, (dict, flax.core.FrozenDict)):\n"
            "        return sum(map(count, x.values()))\n    return x.size\n\n"
            "def walk(x):\n    if not isinstance(x, (dict, flax.core.FrozenDict)):\n        return [x]\n"
            "    return [walk(y) for y in x.values()]\n\n"
            "def show(x):\n    return {k: show(v) if isinstance(v, (dict, frozen_dict.FrozenDict)) else v for k, v in x.items()}\n"
        ),
    ),
    "a test that refuses": (
        (
            f"{CORE}def f(x, y):\n    assert isinstance(x, FrozenDict)\n"
            "    if not isinstance(y, FrozenDict):\n        raise TypeError(y)\n"
        ),
        (
            f"{CORE}def f(x, y):\n    assert isinstance(x, (dict, FrozenDict))\n"
            "    if not isinstance(y, (dict, FrozenDict)):\n        raise TypeError(y)\n"
        ),
    ),
}

FROZEN = "`isinstance(…, FrozenDict)` is false of the variables of a model now."
TOLD = {
    "a test that chooses": (f"{CORE}def f(x):\n    return [y for y in x if isinstance(y, FrozenDict)]\n", FROZEN),
    "a test whose result is kept":
        (f"{CORE}def f(x):\n    frozen = isinstance(x, FrozenDict)\n    return g(x, frozen)\n", FROZEN),
    "a type that is compared": (
        f"{NN}x = type(y) in (jnp.DeviceArray, float)\n",
        "`jax.Array` is the type of no array, so that this is never true.",
    ),
    "the device of an array": (f"{NN}jnp.ones(1).device()\n", "Arrays have no `device()` any more."),
    "the buffer of an array": (f"{NN}x.device_buffer.f()\n", "Arrays have no `device_buffer` any more."),
    "a way to sort": (f"{NN}jnp.sort(x, kind='stable')\n", "`jax.numpy.sort` does not take `kind` any more."),
    "a checkpoint in partial": (
        f"{NN}from functools import partial\n\n@partial(jax.checkpoint, concrete=True)\ndef f(x): ...\n",
        "`jax.checkpoint` does not take `concrete` any more.",
    ),
    "a pair of what stops early": (
        "from flax.training.early_stopping import EarlyStopping\n\n_, stop = stop.update(loss)\n",
        "`EarlyStopping.update` returns the new state alone now.",
    ),
    "a cell whose carry is made there":
        (f"{NN}carry, x = nn.LSTMCell()((c, h), x)\n", "`flax.linen.LSTMCell()` needs `features` now."),
    "features that are computed": (
        f"{NN}carry = nn.GRUCell.initialize_carry(key, (8,), next(sizes))\n",
        "`flax.linen.GRUCell.initialize_carry` is a method of the cell now.",
    ),
    "the carry of a class, by keywords": (
        f"{NN}carry = nn.GRUCell.initialize_carry(key, (8,), size=16)\n",
        "`flax.linen.GRUCell.initialize_carry` was removed.",
    ),
    "a default that needs its class": (
        f"{NN}class Kernel(nn.Module):\n    n = 3\n    shift: jnp.ndarray = jnp.zeros(n)\n",
        "Python 3.11 takes no array as the default of a field.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", UNTOUCHED.values(), ids=UNTOUCHED)
def test_untouched(program: str) -> None:
    result = run(program)
    assert (result.after.decode(), result.sites) == (program, ())


@pytest.mark.parametrize(("before", "after"), REWRITTEN.values(), ids=REWRITTEN)
def test_rewritten(before: str, after: str) -> None:
    result = run(before)
    assert result.after.decode() == after
    assert {site.status for site in result.sites} == {"rewritten"}
    again = run(after)
    assert (again.changed, again.sites) == (False, ())


@pytest.mark.parametrize(("program", "message"), TOLD.values(), ids=TOLD)
def test_told(program: str, message: str) -> None:
    result = run(program)
    assert not result.changed
    [site] = result.sites
    assert (site.code, site.status, site.message) == ("FO899", "unresolved", message)


HEAD = (
    f"{NN}import dataclasses\nimport flax\nimport numpy as np\nimport optax\nfrom flax.core import FrozenDict\n\n"
    "key = jax.random.PRNGKey(0)\n"
)
SHOWN = {
    "array": "def run():\n    return jnp.broadcast_to([1.0], (2,)).sum() + jnp.mean((1.0, 2.0))\n",
    "keyword": "def run():\n    return jnp.clip(jnp.arange(3), a_min=1, a_max=2).clip(a_min=0)\n",
    "position": (
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x, y, mask):\n"
        "        return nn.MultiHeadDotProductAttention(2)(x, y, mask)\n\n"
        "def run():\n    x, y, mask = jnp.ones((1, 3, 4)), jnp.ones((1, 5, 4)), jnp.ones((1, 2, 3, 5))\n"
        "    return optax.huber_loss(Net().init_with_output(key, x, y, mask)[0], x, 1.0)\n"
    ),
    "unsigned": "def run():\n    return np.uint64(-1), jnp.uint32(-2)\n",
    "carry": (
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, carry, state, x):\n"
        "        return nn.GRUCell()(carry, x), nn.OptimizedLSTMCell()(state, x)\n\n"
        "def run():\n    c = jnp.ones((2, 4))\n    return Net().init_with_output(key, c, (c, c), jnp.ones((2, 3)))[0]\n"
    ),
    "class_carry": (
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        carry = nn.GRUCell.initialize_carry(key, (2,), 4)\n        return nn.GRUCell(features=4)(carry, x)\n\n"
        "def run():\n    y, variables = Net().init_with_output(key, jnp.ones((2, 3)))\n"
        "    assert list(variables['params']) == ['GRUCell_0']\n    return y\n"
    ),
    "list": (
        "class Net(nn.Module):\n    sizes: list\n\n    def __call__(self):\n        return self.sizes + [3]\n\n"
        "def run():\n    return Net([1, 2]).apply({})\n"
    ),
    "default": (
        "@dataclasses.dataclass\nclass Box:\n    low: jnp.ndarray = jnp.zeros(3)\n\ndef run():\n    return Box().low\n"
    ),
    "method": (
        "def run():\n    variables = nn.Dense(2).init(key, jnp.ones((1, 3)))\n"
        "    rest, params = variables.pop('params')\n    return params.unfreeze(), variables.copy({'params': params})\n"
    ),
    "mapping": (
        "def leaves(x):\n    if isinstance(x, FrozenDict):\n        return sum(map(leaves, x.values()))\n"
        "    return x.size\n\ndef run():\n    return leaves(nn.Dense(2).init(key, jnp.ones((1, 3))))\n"
    ),
}


REFUSALS = (AssertionError, AttributeError, OverflowError, TypeError, ValueError)


@pytest.mark.parametrize("program", SHOWN.values(), ids=SHOWN)
def test_what_is_rewritten_is_refused_today_and_runs_then(program: str) -> None:
    def runs(code: bytes | str) -> object:
        module: dict[str, Any] = {"__name__": __name__}
        exec(code, module)
        return module["run"]()

    with pytest.raises(REFUSALS):
        runs(HEAD + program)
    assert runs(run(HEAD + program).after) is not None


def test_every_form_of_the_table_is_shown() -> None:
    assert {row.how for row in changed().values()} == {*SHOWN, "argument", "none"}


OTHERS: list[object] = [jnp.ones(2), (2,), 0, jax.random.PRNGKey(0)]
"""What other arguments a function may take beside an array of two numbers."""


def test_each_function_takes_arrays_where_it_refuses_lists() -> None:
    rows = [row for row in changed().values() if row.how == "array"]
    for row in rows:
        module, _, name = row.name.rpartition(".")
        function = getattr(import_module(module), name)
        parameters = inspect.signature(function).parameters.values()
        number = sum(one.default is one.empty and one.kind < 2 for one in parameters)
        for place in map(int, row.to.split()):
            ways = product((shaped, computed), OTHERS)
            took = (takes(way, function, number, place, other) for way, other in ways)
            assert any(took), row.name


def shaped(function: Any, *arguments: object) -> object:
    """What a function refuses, at a tenth of the time: nothing is compiled."""
    return jax.eval_shape(lambda: function(*arguments))


def computed(function: Any, *arguments: object) -> object:
    """The same where shapes depend on values."""
    return function(*arguments)


def takes(
    call: Callable[..., object], function: Any, number: int, place: int, other: object
) -> bool:
    """Whether a function takes an array at a place, and refuses a list there."""
    arguments = [other] * number
    try:
        call(function, *arguments[:place], jnp.ones(2), *arguments[place + 1 :])
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return False
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        call(function, *arguments[:place], [1.0, 1.0], *arguments[place + 1 :])
    return True
