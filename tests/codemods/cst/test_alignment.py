"""Arguments below each other behind an opening parenthesis. First, those that stay where they are."""

import pytest

from codemods.cst import alignment
from codemods.sources.modules import Unit
from codemods.sources.parsing import parse
from tests.codemods.programs import changes, migrated


def realigned(before: str, after: str) -> str:
    old, new = (Unit("train.py", code, parse(code)) for code in (before, after))
    return alignment.realigned(old, new)


SAME = "x = long_name(1,\n              2)\n"
TEXT = 'x = {}(1,\n              """a\n              b""")\n'
KEPT = {
    "calls that did not change": (SAME, f"{SAME}y = 1\n"),
    "text over several lines": (TEXT.format("long_name"), TEXT.format("short")),
}


@pytest.mark.parametrize(("before", "after"), KEPT.values(), ids=KEPT)
def test_what_stays(before: str, after: str) -> None:
    assert realigned(before, after) == after


def test_a_call_within_the_arguments_moves_along() -> None:
    before = "x = long_name(1,\n              inner(2,\n                    3))\n"
    after = "x = short(1,\n          inner(2,\n                3))\n"
    assert realigned(before, before.replace("long_name", "short")) == after


LAID_OUT = """
== arguments below each other, with a comment
- optimizer = optim.Momentum(learning_rate=0.1,
-                            beta=0.9,  # as in the paper
-                            nesterov=True).create(params)
+ optimizer = train_state.TrainState.create(
+     apply_fn=None,
+     params=params,
+     tx=optax.sgd(learning_rate=0.1,
+                  momentum=0.9,  # as in the paper
+                  nesterov=True),
+ )
== comments on lines of their own
- optimizer = optim.Momentum(
-     learning_rate=0.1,
-     # found by a search
-     beta=0.8
-     # and nothing else
- ).create(params)
+ optimizer = train_state.TrainState.create(
+     apply_fn=None,
+     params=params,
+     tx=optax.sgd(
+         learning_rate=0.1,
+         # found by a search
+         momentum=0.8
+         # and nothing else
+     ),
+ )
== a comment behind what was not the last
- optimizer = optim.Adam(1e-3).create(params)
- optimizer = optimizer.apply_gradient(
-     grads,  # clipped
-     learning_rate=rate)
+ optimizer = train_state.TrainState.create(
+     apply_fn=None,
+     params=params,
+     tx=optax.chain(
+         optax.scale_by_adam(),
+         optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=1e-3),
+     ),
+ )
+ opt_state = optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)
+ optimizer = optimizer.replace(opt_state=opt_state).apply_gradients(
+     grads=grads  # clipped
+     )
"""
IMPORTS = "from flax import optim\n\n"
NEW_IMPORTS = "import optax\nfrom flax.training import train_state\n\n"


@pytest.mark.parametrize(("before", "after"), changes(LAID_OUT))
def test_arguments_and_comments_are_laid_out_as_before(before: str, after: str) -> None:
    assert migrated(IMPORTS + before) == NEW_IMPORTS + after
