"""Imports where they stand: in conditions, functions and packages, among other names. First, those of somebody else."""

import pytest

from tests.codemods.programs import (
    assert_left,
    before_and_after,
    changes,
    migrated,
    project,
    result_of,
    table,
)

SOMEBODY_ELSES = """
== the optimizers of JAX, called optim
from jax.experimental import optimizers
from jax.example_libraries import optimizers as optim
i, u, g = optim.adam(1e-3)
== torch.optim in all its forms
import torch.optim
import torch.optim as optim
from torch.optim import Adam, Optimizer

def make(model) -> Optimizer:
    return optim.Adam(model), Adam(model), torch.optim.Adam(model)
== an import inside a string
SCRIPT = "from flax import optim; optim.Adam(1e-3)"
# from flax import optim
"""


@pytest.mark.parametrize("text", table(SOMEBODY_ELSES, values=1))
def test_imports_of_somebody_else(text: str) -> None:
    result = result_of(text)

    assert not result.changed
    assert result.sites == ()


FORMS = """
== `import flax.optim` also bound `flax`, which stays needed
- import flax.optim
+ import flax
+ import optax

- rule = flax.optim.Adam(1e-3), flax.core
+ rule = optax.adam(1e-3), flax.core
== a star import that gives nothing
  import os
- from flax.optim import *

  print(os)
== `dynamic_scale` by module and by name
- from flax.optim import dynamic_scale as dynamic_scale_lib
- from flax.optim import DynamicScale
+ from flax.training.dynamic_scale import DynamicScale

- scale = dynamic_scale_lib.DynamicScale()
+ scale = DynamicScale()
  other = DynamicScale(growth_factor=3.0)
== comments around the import stay
  # First.
  import os

  # The optimizers of old.
- from flax import optim
+ from flax.training import train_state
+ import optax
  # After.
  import sys

  def make(params):
-     return optim.Adam(1e-3).create(params), os, sys
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(1e-3)
+     ), os, sys
== guarded by ImportError: the new imports are guarded too
  try:
-     from flax import optim
+     from flax.training import train_state
+     import optax
  except ImportError:
      optim = None

  def make(params):
-     return optim.Adam(1e-3).create(params)
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(1e-3)
+     )
== under a condition, the only statement of a branch
  import sys

+ import optax
+
  if sys.version_info > (3,):
-     from flax import optim
+     pass
  else:
      pass

- rule = optim.Adam(1e-3)
+ rule = optax.adam(1e-3)
== under TYPE_CHECKING alone
  from __future__ import annotations

  from typing import TYPE_CHECKING

  import jax

  if TYPE_CHECKING:
-     from flax import optim
+     from flax.training import train_state

- def step(x: optim.Optimizer, grads) -> optim.Optimizer:
-     return x.apply_gradient(grads)
+ def step(x: train_state.TrainState, grads) -> train_state.TrainState:
+     return x.apply_gradients(grads=grads)
== in each function that used it
  def one(params):
-     from flax import optim
+     from flax.training import train_state
+     import optax

-     return optim.Adam(1e-3).create(params)
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(1e-3)
+     )

  def two(params):
-     from flax import optim
-     return optim.Momentum(0.1).create(params)
+     from flax.training import train_state
+     import optax
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.sgd(0.1, momentum=0.9)
+     )

  def three(params):
-     import flax.optim as o; import jax
-     return o.Momentum(0.1).create(params)
+     import jax
+     from flax.training import train_state
+     import optax
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.sgd(0.1, momentum=0.9)
+     )
== in a class body, used through self
+ import optax
+
  class A:
-     from flax import optim
-     d = optim.Adam(1e-3)
+     d = optax.adam(1e-3)
      def f(self):
-         return self.optim.Adam(1e-3)
+         return optax.adam(1e-3)
== a name that is bound otherwise when types are not checked
  from typing import TYPE_CHECKING

+ from flax.training import train_state
+
  if TYPE_CHECKING:
-     from flax.optim import Optimizer
+     pass
  else:
      Optimizer = "Optimizer"

- def step(optimizer: Optimizer, grads) -> Optimizer:
-     return optimizer.apply_gradient(grads)
+ def step(optimizer: train_state.TrainState, grads) -> train_state.TrainState:
+     return optimizer.apply_gradients(grads=grads)
== a parameter that shadows `flax` in one function
- import flax.optim
+ import optax
  def make(flax, params):
      return flax.optim.Adam(1e-3)
  def make2(params):
-     return flax.optim.Adam(1e-3)
+     return optax.adam(1e-3)
"""


@pytest.mark.parametrize(("before", "after"), changes(FORMS))
def test_forms_and_places_and_names(before: str, after: str) -> None:
    assert migrated(before) == after
    assert migrated(after) == after


KEPT = """
== either of two modules, one of them unknown
2 FO911, 7 FO901, 7 FO909
  try:
      from flax import optim
  except ImportError:
      from flax.deprecated import optim

  def make(params):
      return optim.Adam(1e-3).create(params)
== a variable called optax
1 FO918, 4 FO918, 4 FO918
  from flax import optim
  optax = 3
  def make(params):
      return optim.Adam(1e-3).create(params)
== rebound under a condition
2 FO911, 5 FO909
  import torch
  from flax import optim
  if torch:
      optim = torch.optim
  d = optim.Adam(1e-3)
"""


@pytest.mark.parametrize(("left", "text"), table(KEPT, values=2))
def test_imports_that_stay_have_a_reason(left: str, text: str) -> None:
    """A legacy import, or one whose place cannot be taken, stays; the report tells line and code."""
    before, after = before_and_after(text)
    result = result_of(before)

    assert result.after.decode() == after
    stay = [site for site in result.sites if site.status != "rewritten"]
    assert ", ".join(sorted(f"{site.line} {site.code}" for site in stay)) == left


def test_a_name_that_nobody_uses_stays_with_its_statement() -> None:
    """Where nothing is rewritten, nothing changes."""
    text = """
        from flax.optim import Adam, WeightNorm

        def create(params, arguments):
            return Adam(1e-3, decay=arguments).create(params)
        """
    assert_left(text, "FO905")


@pytest.mark.parametrize("small", [0, 1_000_000])
def test_a_legacy_name_that_is_read_from_a_module_of_the_project(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the file with a star is asked about, or not
    monkeypatch.setattr("codemods.sources.relevance.SMALL", small)
    results = project(
        {
            "lab/optim": """
                from flax.optim import Adam, Optimizer, Momentum
                """,
            "train": """
                from lab import optim
                import lab.optim

                def make(params) -> optim.Optimizer:
                    return lab.optim.Adam(1e-3).create(params)

                def choose(name):
                    return name is optim.Momentum
                """,
            "idle": """
                from lab.optim import *
                """,
        }
    )
    assert b"def make(params) -> train_state.TrainState:" in results["train"].after
    assert b"tx=optax.adam(1e-3)" in results["train"].after
    assert b"return name is optim.Momentum" in results["train"].after
    assert results["lab/optim"].after == b"from flax.optim import Momentum\n"
    assert [site.code for site in results["lab/optim"].sites] == ["FO911"]


CLIPS = """
    from flax import optim
    from jax.example_libraries.optimizers import clip_grads

    def train(params, grads):
        optimizer = optim.Adam(1e-3).create(params)
        for grad in grads:
            grad = clip_grads(grad, 1.0)
            optimizer = optimizer.apply_gradient(grad)
        return optimizer.target
    """


@pytest.mark.parametrize(
    "taking",
    [
        "from train import clip_grads\nprint(clip_grads)\n",
        "import train\nprint(train.clip_grads)\n",
        "from train import *\nprint(clip_grads)\n",
    ],
)
@pytest.mark.parametrize("small", [0, 1_000_000])
def test_an_import_that_is_dead_here_and_taken_by_others_stays(
    taking: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = b"from jax.example_libraries.optimizers import clip_grads\n"
    assert kept not in project({"train": CLIPS})["train"].after
    # the other file is asked about, or not
    monkeypatch.setattr("codemods.sources.relevance.SMALL", small)
    results = project({"train": CLIPS, "other": taking})
    assert kept in results["train"].after
    assert b"optax.clip_by_global_norm(1.0)" in results["train"].after


def test_a_file_that_cannot_run_keeps_no_import_for_itself() -> None:
    texts = {
        "lab/rules": """
            from flax import optim as rules

            def make(rate):
                return rules.Adam(rate)
            """,
        "lab/train": """
            from lab import rules

            def train(params, grads, rate):
                return rules.make(rate).create(params).apply_gradient(grads)
            """,
    }
    others = """
        from lab import rules

        def make(rate){}
            return rules.rules, rate
        """
    kept = project({**texts, "lab/others": others.format(":")})
    assert b"from flax import optim as rules\n" in kept["lab/rules"].after
    gone = project({**texts, "lab/others": others.format("")})
    assert b"flax.optim" not in gone["lab/rules"].after
    assert b"from flax import optim" not in gone["lab/rules"].after
    assert {site.status for site in gone["lab/rules"].sites} == {"rewritten"}
