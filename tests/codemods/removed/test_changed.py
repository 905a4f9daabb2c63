"""What is still there and is taken otherwise: untouched, then rewritten, then told, in whole programs."""

from __future__ import annotations

import pytest

from codemods import FileResult, Options, Source, migrate

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
    "a field of another class": "class Net:\n    sizes: list\n\n    def f(self):\n        return self.sizes + [1]\n",
    "defaults that may be": (
        f"{NN}from flax import struct\nimport numpy as np\n\n@struct.dataclass\nclass State:\n"
        "    step: int = 0\n    dtype: object = jnp.dtype('int32')\n    eps: float = np.float32(1)\n"
        "    x: object = struct.field(default_factory=lambda: jnp.zeros(1))\n"
    ),
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
    "another class of that name": "from lab import FrozenDict, flax\n\nassert isinstance(x, FrozenDict)\n",
}

REWRITTEN = {
    "lists that have to be arrays": (
        f"{NN}z = jnp.broadcast_to([1e10], x.shape)\nm = jnp.mean([a['loss'] for a in x])\nn = jax.nn.softmax((x, y))\n",
        (
            f"{NN}z = jnp.broadcast_to(jnp.array([1e10]), x.shape)\n"
            "m = jnp.mean(jnp.array([a['loss'] for a in x]))\nn = jax.nn.softmax(jnp.array((x, y)))\n"
        ),
    ),
    "lists at other places, of what was removed": (
        f"{NN}x = jnp.dot([1, 2], [jnp.NINF, 3])\n",
        f"{NN}x = jnp.dot(jnp.array([1, 2]), jnp.array([-jnp.inf, 3]))\n",
    ),
    "a list, and a keyword": (
        f"{NN}x = jnp.percentile([1, 2], 5, interpolation='nearest')\n",
        f"{NN}x = jnp.percentile(jnp.array([1, 2]), 5, method='nearest')\n",
    ),
    "a list without jax.numpy": (
        "from jax.numpy import mean\n\nx = mean([1, 2])\n",
        "import jax.numpy as jnp\nfrom jax.numpy import mean\n\nx = mean(jnp.array([1, 2]))\n",
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
    "the mask of attention that has a name": (
        (
            f"{NN}class Block(nn.Module):\n    def setup(self):\n        self.attention = nn.MultiHeadDotProductAttention(8)\n\n"
            "    def __call__(self, x, y, m):\n        return self.attention(x, y, m, True)\n"
        ),
        (
            f"{NN}class Block(nn.Module):\n    def setup(self):\n        self.attention = nn.MultiHeadDotProductAttention(8)\n\n"
            "    def __call__(self, x, y, m):\n        return self.attention(x, y, mask=m, deterministic=True)\n"
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
    "an array as the default of a field": (
        f"{NN}class Kernel(nn.Module):\n    shift: jnp.ndarray = jnp.zeros((1))\n    scale: float = 1.0\n",
        (
            "import dataclasses\n\nimport jax\nimport jax.numpy as jnp\nfrom flax import linen as nn\n\n"
            "class Kernel(nn.Module):\n    shift: jnp.ndarray = dataclasses.field(default_factory=lambda: jnp.zeros((1)))\n"
            "    scale: float = 1.0\n"
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
            "def show(x):\n    return {k: show(v) if isinstance(v, frozen_dict.FrozenDict) else v for k, v in x.items()}\n"
        ),
        (
            "import flax\nfrom flax.core import frozen_dict\n\ndef count(x):\n    if isinstance(x, (dict, flax.core.FrozenDict)):\n"
            "        return sum(map(count, x.values()))\n    return x.size\n\n"
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
    "a test between two ways to go on": (
        f"{CORE}def f(x):\n    if isinstance(x, FrozenDict):\n        return x['a']\n    return freeze(g(x))['b']\n",
        FROZEN,
    ),
    "a test that chooses": (
        f"{CORE}def f(x):\n    return [y for y in x if isinstance(y, FrozenDict)]\n",
        FROZEN,
    ),
    "a test for several classes": (
        f"{CORE}def f(x):\n    return [f(y) for y in x if isinstance(y, (FrozenDict, list))]\n",
        FROZEN,
    ),
    "a test whose result is kept": (
        f"{CORE}def f(x):\n    frozen = isinstance(x, FrozenDict)\n    return g(x, frozen)\n",
        FROZEN,
    ),
    "a cell that is called elsewhere": (
        f"{NN}cell = nn.GRUCell()\ncarry, x = cell(carry, x)\n",
        "`flax.linen.GRUCell()` needs `features` now.",
    ),
    "a cell whose carry is made there": (
        f"{NN}carry, x = nn.LSTMCell()((c, h), x)\n",
        "`flax.linen.LSTMCell()` needs `features` now.",
    ),
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
}


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
    assert [(site.code, site.status, site.message) for site in result.sites] == [
        ("FO899", "unresolved", message)
    ]
