"""Classes that are values: what stands in their place, in whole programs. What must be left is in test_refusals."""

import io
from textwrap import dedent

import pyflakes.api
import pyflakes.reporter
import pytest

from codemods import Options, Source, migrate
from codemods.model import Form
from codemods.optimizers import optimizers
from tests.codemods.programs import changes, migrated, result_of
from tests.codemods.test_alike import assert_alike, text_of

ADAM = '''
def flax_adam(learning_rate, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    """Adam by the names that its arguments had in Flax."""
    return optax.adamw(
        learning_rate, b1=beta1, b2=beta2, eps=eps, weight_decay=weight_decay
    )
'''
DESCENT = '''
def flax_gradient_descent(learning_rate):
    """GradientDescent by the names that its arguments had in Flax."""
    return optax.sgd(learning_rate)
'''


@pytest.mark.parametrize(
    "name", sorted(optimizers().keys() - {"MultiOptimizer", "WeightNorm"})
)
@pytest.mark.parametrize("given", ["grads", "grads, learning_rate=1e-2"])
@pytest.mark.parametrize("form", ["alias", "chain"])
def test_every_optimizer_has_a_function(name: str, given: str, form: Form) -> None:
    before = f"""
        def train(params, grads, arguments):
            optimizer = optim.{name}(**arguments).create(params)
            return optimizer.apply_gradient({given})
        """
    result = result_of(before, Options(form=form))
    assert {site.status for site in result.sites} == {"rewritten"}
    reporter = pyflakes.reporter.Reporter(io.StringIO(), io.StringIO())
    assert pyflakes.api.check(result.after.decode(), "train.py", reporter) == 0


PROGRAMS = """
== one of two classes
- from flax import optim
+ import optax

- optimizer_class = optim.Adam if adaptive else optim.GradientDescent
+ optimizer_class = optax.adam if adaptive else optax.sgd
  definition = optimizer_class(learning_rate=0.1)
== a partial class
  import functools
- from flax import optim
+ import optax

- make = functools.partial(optim.Adam, beta1=0.5, weight_decay=0.1)
+ make = functools.partial(optax.adamw, b1=0.5, weight_decay=0.1)
  definition = make(1e-3)
== a partial class with its rate
  import functools
- from flax import optim
+ import optax

- make = functools.partial(optim.Adam, learning_rate=1e-3, beta1=0.5)
+ make = functools.partial(optax.adam, learning_rate=1e-3, b1=0.5)
  definition = make()
== a partial class with arguments in a dict
  import functools
- from flax import optim
+ import optax

- definition = functools.partial(optim.Adam, **{"beta1": 0.5})(1e-3)
+ FLAX_ADAM
+
+ definition = functools.partial(flax_adam, **{"beta1": 0.5})(1e-3)
== a class by its name, one of those that the project names
- import flax
+ import optax
+
+ FLAX_ADAM
+ FLAX_GRADIENT_DESCENT
+
+ FLAX_OPTIMIZERS = {
+     "Adam": flax_adam,
+     "GradientDescent": flax_gradient_descent,
+ }

  name = "Adam" if adaptive else "GradientDescent"
- if not hasattr(flax.optim, name):
+ if not (name in FLAX_OPTIMIZERS):
      raise ValueError(name)
- definition = getattr(flax.optim, name)(learning_rate=0.1)
+ definition = FLAX_OPTIMIZERS[name](learning_rate=0.1)
== a class in a table, the keys of which are asked first
- from flax import optim
+ import optax

- OPTIMIZERS = {"adam": optim.Adam, "sgd": optim.GradientDescent}
+ OPTIMIZERS = {"adam": optax.adam, "sgd": optax.sgd}
  if name not in OPTIMIZERS:
      raise ValueError(", ".join(OPTIMIZERS))
  definition = OPTIMIZERS[name](learning_rate=0.1)
== classes in a table that nothing calls
- from flax import optim
+ import optax

+ FLAX_ADAM
+ FLAX_GRADIENT_DESCENT
- OPTIMIZERS = {"adam": optim.Adam, "sgd": optim.GradientDescent}
+ OPTIMIZERS = {"adam": flax_adam, "sgd": flax_gradient_descent}
  print(sorted(OPTIMIZERS))
- definition = optim.Adam(1e-3)
+ definition = optax.adam(1e-3)
== the type of a class, and that of a module
  from typing import Type
- from flax import linen as nn, optim
+ from typing import Callable
+ from flax import linen as nn
+ import optax

- def make(optimizer_class: Type[optim.OptimizerDef], rate):
+ def make(optimizer_class: Callable[..., optax.GradientTransformation], rate):
      return optimizer_class(learning_rate=rate)

  def build(model_class: Type[nn.Module], size):
      return model_class(size)
"""
"""What they become has two functions, which are above."""


def _plain(code: str) -> list[str]:
    return [line.strip() for line in dedent(code).splitlines() if line.strip()]


@pytest.mark.parametrize(("before", "after"), changes(PROGRAMS))
def test_a_function_takes_the_place_of_a_class(before: str, after: str) -> None:
    [result] = migrate([Source("train.py", before.encode())])
    assert [site.status for site in result.sites if site.status != "rewritten"] == []
    after = after.replace("FLAX_ADAM", ADAM).replace("FLAX_GRADIENT_DESCENT", DESCENT)
    assert _plain(result.after.decode()) == _plain(after)
    [again] = migrate([Source("train.py", result.after)])
    assert (again.changed, again.sites) == (False, ())


RATES = {
    "set at each step": ("getattr(optim, name)()", "optimizer.apply_gradient(grads, learning_rate=0.1)", True),
    "set where no step is in view": ("getattr(optim, name)()", "optimizer", True),
    "given to the class": ("getattr(optim, name)(0.1)", "optimizer.apply_gradient(grads)", False),
    "perhaps among the arguments": ("getattr(optim, name)(**config)", "optimizer", False),
    "set nowhere, so that the first step failed": ("getattr(optim, name)()", "optimizer.apply_gradient(grads)", False),
}  # fmt: skip


@pytest.mark.parametrize(("definition", "end", "injected"), RATES.values(), ids=RATES)
def test_the_rate_of_a_class_that_is_chosen(
    definition: str, end: str, injected: bool
) -> None:
    code = migrated(f"""
        from flax import optim

        def train(params, grads, config, name="GradientDescent"):
            optimizer = {definition}.create(params)
            return {end}
        """)
    assert ("def flax_gradient_descent(learning_rate=0.0):" in code) is injected
    assert ("def flax_gradient_descent(learning_rate):" in code) is not injected
    rate = "learning_rate=float(learning_rate or 0)"
    assert (f"return optax.inject_hyperparams(optax.sgd)({rate})" in code) is injected


def test_classes_and_calls_in_different_files() -> None:
    classes = b"from flax import optim\n\nCLASSES = {'adam': optim.Adam}\n"
    train = b"from classes import CLASSES\n\ndef make(name, params):\n    return CLASSES[name](0.1).create(params)\n"
    first, second = migrate([Source("classes.py", classes), Source("train.py", train)])
    assert "CLASSES = {'adam': optax.adam}" in first.after.decode()
    assert "tx=CLASSES[name](0.1)" in second.after.decode()


def test_a_static_method_stays_one() -> None:
    code = "from flax import optim\n\nclass Trainer:\n    make = staticmethod(optim.Adam)\n\nTrainer().make(0.1).create({})\n"
    assert "    make = staticmethod(optax.adam)\n" in result_of(code).after.decode()


def test_a_class_may_be_found_by_its_own_name(legacy_wheel: object) -> None:
    body = """
name = "known" if hasattr(optim, "Adam") else "unknown"
optimizer = getattr(optim, "LAMB")(0.1).create(params)
return name, [step(optimizer).target]
"""
    after = assert_alike(text_of(body))
    assert 'tx=FLAX_OPTIMIZERS["LAMB"](0.1)' in "".join(after.split())


def test_classes_that_are_attributes_of_a_class_at_once(legacy_wheel: object) -> None:
    functions = """
class Kinds:
    if True:
        ADAM, SGD = optim.Adam, optim.Momentum
"""
    body = """
made = [Kinds().ADAM(0.1).create(params), Kinds().SGD(0.1).create(params)]
return [step(one).target for one in made]
"""
    after = assert_alike(text_of(body, functions))
    functions = "staticmethod(optax.adam), staticmethod(flax_momentum)"
    assert f"ADAM, SGD = {functions}\n" in after


IN_AN_ENUM = {
    "by its module": ("import enum", "enum.Enum", "enum.member"),
    "by its name": ("from enum import Enum", "Enum", "enum.member"),
    "with what is needed": ("from enum import Enum, member", "Enum", "member"),
    "by a class between": ("import enum\nclass Names(enum.Enum):\n    pass", "Names", "enum.member"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("head", "base", "kept_by"), IN_AN_ENUM.values(), ids=IN_AN_ENUM
)
def test_members_of_an_enum_stay_members(
    head: str, base: str, kept_by: str, legacy_wheel: object
) -> None:
    functions = f"""
{head}
class Kind({base}):
    ADAM = optim.Adam
    SGD: type = optim.Momentum
def make(name, made=optim.Adam, other=optim.Momentum):
    return made(0.1), other(0.2), Kind[name].value(0.1)
"""
    body = """
made = [one.create(params) for name in ("ADAM", "SGD") for one in make(name)]
return [one.name for one in Kind], [step(one).target for one in made]
"""
    after = assert_alike(text_of(body, functions))
    assert f"    ADAM = {kept_by}(optax.adam)\n" in after
