"""Where an optimizer goes, before and after. First, what stays although an optimizer goes by."""

from itertools import pairwise

import pytest

from codemods import Source, migrate
from tests.codemods.programs import (
    OPTAX_ALONE,
    before_and_after,
    changes,
    files,
    migrated,
    project,
    result_of,
    statuses,
    table,
)

MAKE = """
from flax import optim


def make(params):
    return optim.Adam(1e-3).create(params)


"""
NEW_MAKE = """
import optax
from flax.training import train_state


def make(params):
    return train_state.TrainState.create(
        apply_fn=None, params=params, tx=optax.adam(1e-3)
    )


"""


def made(before: str) -> str:
    """What becomes of a program that gets its optimizer from `make`, without `make` itself."""
    [result] = migrate([Source("train.py", (MAKE + before).encode())])
    after = result.after.decode()
    assert {site.status for site in result.sites} == {"rewritten"}, result.sites
    assert after.startswith(NEW_MAKE)
    assert migrate([Source("train.py", result.after)])[0].after == result.after
    return after.removeprefix(NEW_MAKE)


BESIDE = """
== an object that has neither a target nor another attribute of an optimizer
  class Nothing:
      def __init__(self, reason):
          self.reason = reason

  def read(params):
      optimizer = Nothing("no parameters") if params is None else make(params)
-     return optimizer.target
+     return optimizer.params
== a predicate of one's own, under the name that a traversal's has
  class Chosen:
      def __init__(self, keep):
          self._filter_fn = keep

      def __call__(self, path, value):
          return self._filter_fn(path, value)

  def chosen(x):
-     return x._filter_fn, make(None).target
+     return x._filter_fn, make(None).params
"""


@pytest.mark.parametrize(("before", "after"), changes(BESIDE))
def test_what_is_beside_an_optimizer_stays(before: str, after: str) -> None:
    assert made(before) == after


WHOLE = """
== what a create that nobody knows gives, in a list and in a pair
- from flax import optim
+ from flax.training import train_state

  def pair(definition, params):
-     return 1, definition.create(params)
+     return 1, train_state.TrainState.create(apply_fn=None, params=params, tx=definition)

  def train(definitions, params, grads):
-     for optimizer in [one.create(params) for one in definitions]:
-         optimizer.apply_gradient(grads)
+     for optimizer in [train_state.TrainState.create(apply_fn=None, params=params, tx=one) for one in definitions]:
+         optimizer.apply_gradients(grads=grads)
      _, other = pair(definitions[0], params)
-     return other.apply_gradient(grads)
+     return other.apply_gradients(grads=grads)
== stepped in a field of a field of which nothing else is known
- from flax import optim
-
  class Agent:
      def update(self, grads):
-         self.learner.inner = self.learner.inner.apply_gradient(grads)
-         return self.learner.inner.target
+         self.learner.inner = self.learner.inner.apply_gradients(grads=grads)
+         return self.learner.inner.params

      def read(self):
-         return self.learner.inner.target, self.camera.inner.target
+         return self.learner.inner.params, self.camera.inner.target
== scaled gradients of a loss that is unpacked
- from flax import optim
+ import optax
+ from flax.training import train_state
+ from flax.training.dynamic_scale import DynamicScale

  def train(params, options, grads):
-     optimizer = optim.Adam(1e-3).create(params)
-     scale = optim.DynamicScale()
-     scale, _, _, grads = scale.value_and_grad(**options)(optimizer.target)
-     return optimizer.apply_gradient(grads)
+     optimizer = train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(1e-3)
+     )
+     scale = DynamicScale()
+     scale, _, _, grads = scale.value_and_grad(**options)(optimizer.params)
+     return optimizer.apply_gradients(grads=grads)
== stepped where a call gives it
- from flax import optim
+ from flax.training import train_state

- def step(get: "optim." "Optimizer", grads):
-     optimizer = get().apply_gradient(grads)
-     return optimizer.target
+ def step(get: "train_state.TrainState", grads):
+     optimizer = get().apply_gradients(grads=grads)
+     return optimizer.params
== a struct dataclass, replaced in a step
  import flax
  import jax
- from flax import optim
+ from flax.training import train_state

  @flax.struct.dataclass
  class TrainState:
      step: int
-     optimizer: optim.Optimizer
+     optimizer: train_state.TrainState

  @jax.jit
  def step(state, grads):
-     optimizer = state.optimizer.apply_gradient(grads)
+     optimizer = state.optimizer.apply_gradients(grads=grads)
      return state.replace(step=state.step + 1, optimizer=optimizer)

  def evaluate(state, apply, batch):
-     return apply(state.optimizer.target, batch)
+     return apply(state.optimizer.params, batch)
"""


@pytest.mark.parametrize(("before", "after"), changes(WHOLE))
def test_whole_programs(before: str, after: str) -> None:
    assert migrated(before) == after


PROJECTS = """
== relative imports, and a package that exports what a module makes
-- pkg/__init__
  from .make import create
  from . import step as stepping
-- pkg/make
- from flax import optim
+ import optax
+ from flax.training import train_state

  def create(params):
-     return optim.Adam(1e-3).create(params)
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(1e-3)
+     )
-- pkg/step
  def step(opt, grads):
-     return opt.apply_gradient(grads)
+     return opt.apply_gradients(grads=grads)

  def look(opt):
-     return opt.target
+     return opt.params
-- pkg/sub/__init__
  from ..make import create
-- pkg/sub/deep
  from .. import make as making
  from . import create
  from ..step import look

- print(create(1).target, making.create(2).target, look(create(3)))
+ print(create(1).params, making.create(2).params, look(create(3)))
-- main
  import pkg
  from pkg import stepping, create as new
  import pkg.step as s

  opt = stepping.step(new(1), 2)
  opt = s.step(opt, 2)
- print(opt.target, pkg.create(1).target)
+ print(opt.params, pkg.create(1).params)
"""


@pytest.mark.parametrize("text", table(PROJECTS, values=1))
def test_from_file_to_file(text: str) -> None:
    sides = {name: before_and_after(code) for name, code in files(text).items()}
    results = project({name: before for name, (before, _) in sides.items()})

    for name, (_, after) in sides.items():
        assert results[name].after.decode() == after
    assert statuses(results.values()) == {"rewritten"}


EVIDENCE = {
    "a constructor proves it": ("proven", "def read():\n    return optim.Adam(1e-3).create(None).target\n"),
    "a parameter's annotation declares it": ("declared", "def read(x: optim.Optimizer):\n    return x.target\n"),
    "a quoted annotation declares it": ("declared", "def read(x: 'optim.Optimizer'):\n    return x.target\n"),
    "an annotated return declares it":
        ("declared", "def make() -> optim.Optimizer:\n    ...\n\ndef read():\n    return make().target\n"),
    "an annotated field declares it":
        ("declared", "class Agent:\n    x: optim.Optimizer\n\n    def read(self):\n        return self.x.target\n"),
    "apply_gradient deduces it": ("deduced", "def read(x):\n    x = x.apply_gradient(None)\n    return x.target\n"),
}  # fmt: skip


@pytest.mark.parametrize(("evidence", "text"), EVIDENCE.values(), ids=EVIDENCE)
def test_evidence(evidence: str, text: str) -> None:
    result = result_of("from flax import optim\n\n" + text)
    [read] = [site for site in result.sites if site.before.endswith(".target")]
    assert read.evidence == evidence
    assert b".params" in result.after


def test_a_long_way_to_what_cannot_change_is_told_in_short() -> None:
    names = ["make", "one", "two", "three", "four", "five"]
    passed = "def {1}(params):\n    return {0}(params)\n\n"
    between = "".join(passed.format(*both) for both in pairwise(names))
    result = result_of(
        "from flax import optim\n\ndef make(params):\n    return optim.Adafactor(0.1).create(params)\n\n"
        f"{between}def moments(params):\n    return five(params).state.param_states\n",
        OPTAX_ALONE,
    )
    [message] = {site.message for site in result.sites if site.code == "FO901"}
    way = "through train.py:7, train.py:10, …, train.py:19, "
    assert f"created in train.py:4, reaches train.py:22 {way}" in message


NAMED = """
    import jax
    from flax import optim

    def make(params):
        optimizer = optim.Adam(0.1).create(params)
        return optimizer
"""


@pytest.mark.parametrize(
    ("other", "evidence"),
    [
        pytest.param("def read(optimizer):\n    return optimizer.target\n", "deduced", id="named as all others are"),
        pytest.param("def read(state):\n    return state.optimizer.target\n", "deduced", id="a field of that name"),
        pytest.param("def read(my_opt):\n    return my_opt.target\n", "likely", id="another name"),
        pytest.param(
            "import torch\noptimizer = torch.optim.Adam(p)\noptimizer.step()\n\ndef read(x):\n    return x.optimizer.target\n",
            "likely",
            id="a name that something else has too",
        ),
    ],
)  # fmt: skip
def test_what_is_named_as_all_optimizers_is_one(other: str, evidence: str) -> None:
    first, second = project({"make": NAMED, "read": f"import jax\n{other}"}).values()
    assert [site.evidence for site in second.sites] == [evidence]
    assert second.changed == (evidence == "deduced")
    assert first.changed


def test_a_field_of_a_class_below_many_others() -> None:
    level = "class Level{}(Level{}):\n    pass\n\n\n"
    levels = "".join(level.format(n, n - 1) for n in range(1, 700))
    top = "class Level0:\n    def put(self, value):\n        self.value = value\n\n\n"
    result = result_of(f"{MAKE}{top}{levels}Level699().put(make({{}}))\n")
    assert result.changed
