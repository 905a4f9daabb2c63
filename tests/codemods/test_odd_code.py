"""Code that nobody writes, and that Python allows, does not stop the analysis."""

from __future__ import annotations

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
    # a method of a list that gets itself, out of the list
    (
        "rows = [[]]\nrows.append(rows)\nstep = rows[0]\n"
        "rows.append(functools.partial(step.__new__, step))\nstep()"
    ),
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
