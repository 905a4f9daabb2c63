"""`state` for variables that were called optimizer. First, those that keep their name."""

from dataclasses import replace
from pathlib import Path

import pytest

from codemods import Options, Source, migrate
from codemods.rewriting.checking import undefined_names
from codemods.sources.modules import Unit
from codemods.sources.parsing import parse
from tests.codemods.programs import (
    before_and_after,
    files,
    migrated,
    project,
    result_of,
    table,
)
from tests.thinned import thinned

RENAME = Options(rename=True)
FIXTURES = sorted((Path(__file__).parents[3] / "fixtures").glob("*/before.py"))

KEPT = """
== a variable that a pattern sets
def train(params, grads):
    match {"optimizer": optim.Adam(0.1).create(params)}:
        case {"optimizer": optimizer}:
            return optimizer.apply_gradient(grads)
>             return optimizer.apply_gradients(grads=grads)
== a parameter that several calls of one function name
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)

def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    optimizer = step(optimizer=optimizer, grads=grads)
    return step(optimizer=optimizer, grads=2 * grads)
> def step(optimizer, grads):
== a parameter that is named in quotes
import jax
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)

def train(params, grads):
    jitted = jax.jit(step, donate_argnames=("optimizer",))
    return jitted(optim.Adam(0.1).create(params), grads)
> def step(optimizer, grads):
== a variable of an outer function
def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)

    def step():
        nonlocal optimizer
        optimizer = optimizer.apply_gradient(grads)

    step()
    return optimizer
>         nonlocal optimizer
>         optimizer = optimizer.apply_gradients(grads=grads)
== a new optimizer beside one that may be something else
def step(optimizer, grads):
    new_optimizer = optimizer.apply_gradient(grads)
    return new_optimizer

def train(params, grads):
    step(optim.Adam(0.1).create(params), grads)
    return step([], grads)
>     new_optimizer = optimizer.apply_gradients(grads=grads)
== a variable beside a field, which checkpoints have as a key
from flax import optim, struct

@struct.dataclass
class State:
    g_optimizer: optim.Optimizer
    d_optimizer: optim.Optimizer

def make(params):
    g_optimizer = optim.Adam(0.1).create(params)
    d_optimizer = optim.Adam(0.2).create(params)
    return State(g_optimizer=g_optimizer, d_optimizer=d_optimizer)
>     return State(g_optimizer=g_optimizer, d_optimizer=d_optimizer)
"""
"""Each with lines that it has then, behind `>`."""


@pytest.mark.parametrize("text", table(KEPT, values=1))
def test_names_that_stay(text: str) -> None:
    before, _, kept = text.partition("\n> ")
    result = result_of(before, replace(RENAME, ignore=("FO706",)))

    assert kept.replace("\n> ", "\n") in result.after.decode()


CALLED = '''
  import functools
  import jax
- from flax import optim
+ import optax
+ from flax.training import train_state

  def create_optimizer(params):
-     optimizer_def = optim.Adam(0.1)
-     return optimizer_def.create(params)
+     tx = optax.adam(0.1)
+     return train_state.TrainState.create(apply_fn=None, params=params, tx=tx)

- def train_step(optimizer, batch, model=None):
+ def train_step(state, batch, model=None):
      """One step.

      Args:
-       optimizer: what takes it. The `optimizer` is not changed.
+       state: what takes it. The `state` is not changed.
        batch: the data.

      Returns:
        A new optimizer.
      """
      def loss_fn(params):
-         return model.apply(params, batch) + 0 * optimizer.state.step
+         return model.apply(params, batch) + 0 * state.step

-     grads = jax.grad(loss_fn)(optimizer.target)
-     new_optimizer = optimizer.apply_gradient(grads)
-     return new_optimizer
+     grads = jax.grad(loss_fn)(state.params)
+     new_state = state.apply_gradients(grads=grads)
+     return new_state

  def train(params, batches, model):
-     opt = create_optimizer(params)
+     state = create_optimizer(params)
      step = jax.jit(functools.partial(train_step, model=model))
      for batch in batches:
-         opt = step(optimizer=opt, batch=batch)
-     return opt.target
+         state = step(state=state, batch=batch)
+     return state.params
'''


def test_a_program_is_called_what_it_is() -> None:
    before, after = before_and_after(CALLED)
    assert migrated(before, RENAME) == after


STEPPED = """
-- steps
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)
-- train
from flax import optim
import steps

def train(params, grads):
    return steps.step(grads=grads, optimizer=optim.Adam(0.1).create(params))
"""


def test_keywords_in_another_file_follow() -> None:
    after = project(files(STEPPED), RENAME)
    assert b"def step(state, grads):" in after["steps"].after
    assert b"state=train_state.TrainState.create(" in after["train"].after


BY_NAME = {path.parent.name: path for path in FIXTURES}


@pytest.mark.parametrize("path", thinned(BY_NAME, *[*BY_NAME][::3]))
def test_the_fixtures_stay_valid(path: Path) -> None:
    plain = path.with_name("after.py").read_text()
    [result] = migrate([Source("before.py", path.read_bytes())], RENAME)

    after = result.after.decode()
    assert undefined_names(Unit("a.py", after, parse(after))) == set()
    assert len(after.splitlines()) == len(plain.splitlines())
    assert not migrate([Source("before.py", result.after)], RENAME)[0].changed


TRAINER = """
        class Trainer:
            def __init__(self, params):
                self.optimizer = optim.Adam(0.1).create(params)

            def step(self, grads):
                self.optimizer = self.optimizer.apply_gradient(grads)
                return self.optimizer.target

        def train(params, batches):
            trainer = Trainer(params)
            for grads in batches:
                trainer.step(grads)
            return trainer.optimizer.target
"""
KEPT_ATTRIBUTES = {
    "one that is named in quotes": ("return trainer.optimizer.target", "return getattr(trainer, 'optimizer')"),
    "one of an object that nobody knows": (
        "        def train(",
        "        def read(anything):\n            return anything.optimizer\n\n        def train(",
    ),
    "all attributes at once": (
        "                return self.optimizer.target",
        "                vars(self).update(self.__dict__)\n                return self.optimizer.target",
    ),
    "a field, by which checkpoints may know it": (
        "        class Trainer:\n",
        "        @dataclass\n        class Trainer:\n            optimizer: Any = None\n\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), KEPT_ATTRIBUTES.values(), ids=KEPT_ATTRIBUTES)
def test_attributes_that_stay(old: str, new: str) -> None:
    assert old in TRAINER
    result = result_of(TRAINER.replace(old, new), RENAME)
    assert "self.optimizer = self.optimizer.apply_gradient" in result.after.decode()


def test_attributes_of_plain_classes() -> None:
    after = migrated(TRAINER, RENAME)

    step = "self.state = self.state.apply_gradients(grads=grads)"
    assert f"{step}\n        return self.state.params" in after
    assert "return trainer.state.params" in after
    assert "optimizer" not in after


TILL = """
-- shop
class Till:
    def __init__(self):
        self.optimizer = "prices"

def sell(till: Till):
    return till.optimizer
-- both
import shop
import train

def run(params):
    till, trainer = shop.Till(), train.Trainer(params)
    return till.optimizer, trainer.optimizer.target
"""


def test_an_attribute_of_the_same_name_elsewhere() -> None:
    after = project({"train": TRAINER, **files(TILL)}, RENAME)
    assert "return till.optimizer, trainer.state.params" in after["both"].after.decode()
    assert not after["shop"].changed


def test_comments_that_name_a_variable() -> None:
    text = """
        def train(params, grads):
            # The `optimizer` is new each time; an optimizer has momentum.
            optimizer = optim.Adam(0.1).create(params)
            return optimizer.target
        """
    comment = "# The `state` is new each time; an optimizer has momentum."
    assert comment in migrated(text, RENAME)
