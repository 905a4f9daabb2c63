"""Annotations, in quotes or not, and isinstance checks."""

import pytest

from tests.codemods.programs import changes, migrated, program, result_of, table

LEFT = """
== words in quotes that are no types
nothing
from typing import Literal, List
from flax import optim

def make(mode: Literal["optim.Adam"], note: "see optim.Adam for more", notes: List["see optim.Adam"]): ...
== the types of several classes
2 FO911, 4 FO903, 4 FO903
from typing import Type, Union
from flax import optim

def make(optimizer_class: Type[Union[optim.Adam, optim.LAMB]]): ...
"""


@pytest.mark.parametrize(("left", "text"), table(LEFT, values=2))
def test_left(left: str, text: str) -> None:
    result = result_of(text)
    sites = [site for site in result.sites if site.status == "unresolved"]
    found = ", ".join(f"{site.line} {site.code}" for site in sites)
    assert found == left.replace("nothing", "")
    before, after = (
        [line for line in code.splitlines() if "import" not in line]
        for code in (program(text), result.after.decode())
    )
    assert after == before


REWRITTEN = """
== a traversal of no optimizer
- from flax import optim
+ from flax.traverse_util import ModelParamTraversal

- def choose(kernels: "optim.ModelParamTraversal"): ...
+ def choose(kernels: "ModelParamTraversal"): ...
== what a function takes and gives
- from flax import optim
+ import optax
+ from flax.training import train_state
+ from flax.training.dynamic_scale import DynamicScale

- def create(params) -> optim.Optimizer: ...
+ def create(params) -> train_state.TrainState: ...

- def make(rate: float) -> optim.OptimizerDef: ...
+ def make(rate: float) -> optax.GradientTransformation: ...

- def make_adam() -> optim.Adam: ...
+ def make_adam() -> optax.GradientTransformation: ...

- def initial(definition: optim.Momentum, params) -> optim.OptimizerState: ...
+ def initial(definition: optax.GradientTransformation, params) -> optax.OptState: ...

- def scaled(scale: optim.DynamicScale): ...
+ def scaled(scale: DynamicScale): ...
== parts of types in quotes
  from typing import Callable, Dict, List, Optional, Type
- from flax import optim
+ from flax.training import train_state
+ import optax

- def read(optimizer: Optional["optim.Optimizer"], others: List["optim.Optimizer"]):
-     return optimizer.target, others[0].target
+ def read(optimizer: Optional["train_state.TrainState"], others: List["train_state.TrainState"]):
+     return optimizer.params, others[0].params

- def made(make: Callable[..., "optim.Optimizer"]):
-     return make().target
+ def made(make: Callable[..., "train_state.TrainState"]):
+     return make().params

- Step = Callable[["optim.Optimizer", float], "optim.Optimizer"]
+ Step = Callable[["train_state.TrainState", float], "train_state.TrainState"]

- def registry() -> Dict[str, "optim.OptimizerDef"]: ...
+ def registry() -> Dict[str, "optax.GradientTransformation"]: ...

- def chosen(name) -> Type["optim.OptimizerDef"]: ...
+ def chosen(name) -> Type["optax.GradientTransformation"]: ...
== a class of the project in quotes within a type
  from typing import List
- from flax import optim, struct
+ from flax import struct
+ from flax.training import train_state

  def targets(models: List["Model"]):
-     return [model.optimizer.target for model in models]
+     return [model.optimizer.params for model in models]

  @struct.dataclass
  class Model:
      name: str
-     optimizer: optim.Optimizer
+     optimizer: train_state.TrainState
== what a type is called for short
  from typing import Any, Callable, Optional
- from flax import optim
+ from flax.training import train_state
+ import optax

- Maker = Callable[[float], optim.OptimizerDef]
- Step = Callable[[optim.Optimizer, Any], optim.Optimizer]
- Restored = Optional[optim.Optimizer]
+ Maker = Callable[[float], optax.GradientTransformation]
+ Step = Callable[[train_state.TrainState, Any], train_state.TrainState]
+ Restored = Optional[train_state.TrainState]
"""


@pytest.mark.parametrize(("before", "after"), changes(REWRITTEN))
def test_types(before: str, after: str) -> None:
    assert migrated(before) == after


@pytest.mark.parametrize("parameter", ["optimizer", "optimizer: optim.Optimizer"])
def test_the_type_of_the_definition_of_an_optimizer_from_out_of_view(
    parameter: str,
) -> None:
    result = result_of(f"""
        from flax import optim

        def train_step({parameter}, grads):
            print(type(optimizer.optimizer_def).__name__)
            return optimizer.apply_gradient(grads)
        """)
    assert "optimizer.apply_gradient(grads)" in result.after.decode()
    assert "FO924" in {site.code for site in result.sites}


def test_a_check_of_which_both_branches_become_the_same() -> None:
    after = migrated("""
        from flax import optim
        from flax.training.train_state import TrainState

        def params_of(state):
            if isinstance(state, optim.Optimizer):
                return state.target
            return state.params

        def step_of(state):
            return state.state.step if isinstance(state, optim.Optimizer) else state.step

        def train(params, tx):
            both = optim.Adam(0.1).create(params), TrainState.create(apply_fn=None, params=params, tx=tx)
            return [(params_of(one), step_of(one)) for one in both]
        """)
    assert "return state.step if isinstance(state, TrainState) else state.step" in after


def test_a_traversal_that_becomes_a_predicate_is_a_callable() -> None:
    after = migrated("""
        from typing import Callable
        from flax import optim, traverse_util

        def kernels() -> traverse_util.ModelParamTraversal:
            return optim.ModelParamTraversal(lambda path, _: "kernel" in path)

        adam = optim.MultiOptimizer((kernels(), optim.Adam(1e-3)))
        """)
    assert "def kernels() -> Callable:\n    return lambda path, _:" in after
    assert "collections.abc" not in after
