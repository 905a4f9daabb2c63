"""A name that an import binds, and that means something else later: `optim = optim.Adam(…)`."""

import pytest

from tests.codemods.programs import changes, migrated, result_of, table

STAYS = """
== the module, handed on before the name is set
from flax import optim

registry.add(optim)
optim = None
== the module, unless it could not be imported
try:
    from flax import optim
except ImportError:
    optim = None

build(optim)
"""


@pytest.mark.parametrize("text", table(STAYS, values=1))
def test_where_it_may_be_the_module_that_is_told(text: str) -> None:
    result = result_of(text)
    told = {site.code for site in result.sites if site.status == "unresolved"}
    assert "FO903" in told
    assert b"from flax import optim" in result.after


REBOUND = """
== made of the module of its name
- from flax import optim
+ import optax
+ from flax.training import train_state

- optim = optim.Adam(1e-3).create(params)
+ optim = train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(1e-3))
  for grads in batches:
-     optim = optim.apply_gradient(grads)
+     optim = optim.apply_gradients(grads=grads)
      log(optim)

  def read():
      save(optim)
-     return optim.target
+     return optim.params
== a function that uses the module, called before the name is set
- import flax
- from flax import optim
+ import optax
+ from flax.training import train_state

  def make(params):
-     return optim.Momentum(0.1).create(params)
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.sgd(0.1, momentum=0.9)
+     )

  other = make(params)
- optim = flax.optim.Adam(0.1).create(params)
+ optim = train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(0.1))
  train(optim)
== another module, by a later import
- from flax import optim
+ import optax

- definition = optim.Adam(1e-3)
+ definition = optax.adam(1e-3)
  from torch import optim
  other = optim.Adam([])
== a package, by a later import of a module in it
  import flax
- import flax.optim
+ import optax

- definition = flax.optim.Adam(1e-3)
+ definition = optax.adam(1e-3)
  model = flax.linen.Dense(3)
"""


@pytest.mark.parametrize(("before", "after"), changes(REBOUND))
def test_behind_the_assignment_it_is_what_was_assigned(before: str, after: str) -> None:
    assert migrated(before) == after
