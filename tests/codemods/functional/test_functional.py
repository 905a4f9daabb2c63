"""Optimizers in parts, with `--style functional`. First, those that stay train states, each with the reason."""

from dataclasses import replace

import pytest

from codemods import Options
from tests.codemods.programs import (
    before_and_after,
    files,
    migrated,
    program,
    project,
    result_of,
    table,
)

FUNCTIONAL = Options(style="functional")
BASE = """
        import functools

        import jax
        from flax import optim
        from flax.training import checkpoints

        def create_optimizer(params):
            return optim.Adam(0.1).create(params)

        def train_step(optimizer, grads):
            return optimizer.apply_gradient(grads)

        def train(params, batches):
            optimizer = create_optimizer(params)
            for grads in batches:
                optimizer = train_step(optimizer, grads)
            return optimizer.target
"""
STEP = "        def train_step(optimizer, grads):\n            return optimizer.apply_gradient(grads)\n"
LOOP = "    for grads in batches:"
STAYS = """
== a function that nobody calls
train.py:10
+     import service
+     service.offer(train_step)
== a call without an optimizer
train.py:15
+     train_step(None, None)
== two that take the same steps
train.py:13
+     other = optim.Adam(0.2).create(params)
+     other = train_step(other, batches[0])
== static parameters by name
train.py:10
+ @functools.partial(jax.jit, static_argnames='grads')
  def train_step(optimizer, grads):
== the optimizer is static
train.py:13
+ jitted = jax.jit(train_step, static_argnums=0)
+
  def train(params, batches):
== a function that makes it is jitted
train.py:8
+ @jax.jit
  def create_optimizer(params):
== names are taken
the name `opt_state` is taken at train.py:13
+     opt_state, optimizer_state = 1, 2
== a global variable
train.py:1
+     global best
+     best = optimizer
== the step takes any further arguments
train.py:10
- def train_step(optimizer, grads):
+ def train_step(optimizer, grads, *more):
== the step has a second name
train.py:13
+ step = train_step
+
  def train(params, batches):
== it is compared
train.py:15
+     print(optimizer is None)
== a name for the parameters of another time
the name `params` is taken at train.py:13
+     model_params = optimizer.target
+     for grads in batches:
+         optimizer = train_step(optimizer, grads)
+     f(params, model_params)
== a closure returns it alone or not
train.py:15
+     def show():
+         if params:
+             return optimizer
+         return optimizer, 1
+     serve(show)
== a tuple that is taken whole
train.py:16
-     return optimizer.apply_gradient(grads)
+     return optimizer.apply_gradient(grads), 1
-         optimizer = train_step(optimizer, grads)
+         both = train_step(optimizer, grads)
+         optimizer, _ = both
== something that acts ahead of the step
train.py:11
-     return optimizer.apply_gradient(grads)
+     return next(grads), optimizer.apply_gradient(grads)
-         optimizer = train_step(optimizer, grads)
+         batch, optimizer = train_step(optimizer, grads)
== one step of two
train.py:11
- def train_step(optimizer, grads):
-     return optimizer.apply_gradient(grads)
+ if FAST:
+     def train_step(optimizer, grads):
+         return optimizer.apply_gradient(grads)
+ else:
+     def train_step(optimizer, grads):
+         return optimizer.apply_gradient(2 * grads)
== an optimizer of some parameters
train.py:8
-     return optim.Adam(0.1).create(params)
+     return optim.Adam(0.1).create(params, optim.ModelParamTraversal(lambda path, _: 'bias' in path))
"""


def edited(text: str) -> str:
    """The program with a change: `-` goes and `+` comes, ahead of the next line that is told, or of the loop."""
    lines = program(BASE).splitlines()
    marked = text.splitlines()
    first = next((line for line in marked if line[0] != "+"), f"  {LOOP}")
    place = lines.index(first[2:])
    for line in marked:
        if line[0] == "+":
            lines.insert(place, line[2:])
            place += 1
            continue
        place = lines.index(line[2:], place)
        if line[0] == "-":
            del lines[place]
        else:
            place += 1
    return "\n".join([*lines, ""])


def on_one_line(code: str) -> str:
    return " ".join(code.split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(("why", "change"), table(STAYS, values=2))
def test_stays_a_train_state(why: str, change: str) -> None:
    result = result_of(edited(change), FUNCTIONAL)

    assert why in " ".join(site.note for site in result.sites)
    assert "TrainState.create(" in result.after.decode()


LEFT = {
    "a hyperparameter": ("(grads, beta1=0.5)", "FO910"),
    "gradients that are unpacked": ("(*grads)", "FO904"),
    "no rate": ("(grads, learning_rate=None)", "FO910"),
    "two arguments": ("(grads, 0.1)", "FO905"),
    "two rates": ("(grads, learning_rate=0.1, hyper_params=None)", "FO910"),
}


@pytest.mark.parametrize(("step", "code"), LEFT.values(), ids=LEFT)
def test_what_has_no_counterpart_has_none_in_parts(step: str, code: str) -> None:
    text = BASE.replace("apply_gradient(grads)", f"apply_gradient{step}")
    result = result_of(text, replace(FUNCTIONAL, ignore=("FO706",)))

    assert result.after == result.before
    assert {site.code for site in result.sites} - {"FO901", "FO911"} == {code}


def test_a_train_state_is_the_default() -> None:
    assert "TrainState.create(" in migrated(BASE)


def test_of_two_that_go_the_same_way_one_falls_into_parts() -> None:
    text = """
        def train(params, others):
            g = optim.Adam(0.1).create(params)
            d = optim.Adam(0.1).create(others)
            g, d = both(g, d)
            return g.target, d.target

        def both(g, d):
            return g.apply_gradient(1), d.apply_gradient(2)
        """
    after = migrated(text, FUNCTIONAL)
    called = "g_params, g_opt_state, d = both(g_params, g_opt_state, d, g_tx=g_tx)"
    assert called in after
    assert "return g_params, g_opt_state, d.apply_gradients(grads=2)" in after


WITHIN = """
  import jax
- from flax import optim
+ import optax

  def train(params, batches):
-     optimizer = optim.Momentum(0.1).create(params)
+     tx = optax.sgd(0.1, momentum=0.9)
+     opt_state = tx.init(params)

      @jax.jit
-     def train_step(optimizer, grads):
-         new_optimizer = optimizer.apply_gradient(grads)
-         return new_optimizer
+     def train_step(params, opt_state, grads):
+         updates, new_opt_state = tx.update(grads, opt_state, params)
+         new_params = optax.apply_updates(params, updates)
+         return new_params, new_opt_state

      for grads in batches:
-         optimizer = train_step(optimizer, grads)
-     return optimizer.target
+         params, opt_state = train_step(params, opt_state, grads)
+     return params
"""


def test_functions_within_find_the_transformation_around_them() -> None:
    before, after = before_and_after(WITHIN)
    assert migrated(before, FUNCTIONAL) == after


FILES = """
-- making
def create(params):
    optimizer_def = optim.Adam(0.1)
    return optimizer_def.create(params)
-- stepping
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)
-- training
import making
import stepping

def train(params, grads):
    optimizer = making.create(params)
    optimizer = stepping.step(optimizer=optimizer, grads=grads)
    return optimizer.target
"""


def test_across_files() -> None:
    after = project(files(FILES), FUNCTIONAL)
    called = "stepping.step(params=params, opt_state=opt_state, grads=grads, tx=tx)"
    assert b"return optimizer_def, params, opt_state" in after["making"].after
    assert b"def step(params, opt_state, grads, tx):" in after["stepping"].after
    assert called in on_one_line(after["training"].after.decode())


def test_a_name_that_means_something_else_is_not_taken() -> None:
    text = """
        def train(params, batches):
            definition = optim.Adam(0.1)
            optimizer = definition.create(params)
            print([(optimizer.target, params) for params in batches])
            optimizer = optimizer.apply_gradient(batches)
            return optimizer.target
        """
    after = migrated(text, FUNCTIONAL)
    assert "    print([(model_params, params) for params in batches])\n" in after
    assert "updates, opt_state = definition.update(" in after


@pytest.mark.parametrize("name", ["tx", "definition"])
def test_a_step_within_that_has_the_name_of_the_transformation(name: str) -> None:
    made = "optim.Adam(0.1)" if name == "tx" else "definition"
    text = f"""
        def train(params, batches):
            definition = optim.Adam(0.1)
            optimizer = {made}.create(params)

            def step(optimizer, grads):
                {name} = 2
                return optimizer.apply_gradient({name} * grads)

            return step(optimizer, batches).target
        """
    result = result_of(text, FUNCTIONAL)
    assert "TrainState.create(" in result.after.decode()
    assert any("no counterpart in two variables" in site.note for site in result.sites)


FORMS = """
== a result that nobody takes
-     return optimizer.apply_gradient(grads)
+     return optimizer.apply_gradient(grads), 1
-         optimizer = train_step(optimizer, grads)
+         optimizer, _ = train_step(optimizer, grads)
+         train_step(optimizer, grads)
>         params, opt_state, _ = train_step(params, opt_state, grads, tx=tx)
>         train_step(params, opt_state, grads, tx=tx)
== wrapped ahead of the place that makes it
+     step = jax.jit(train_step)
      optimizer = create_optimizer(params)
-         optimizer = train_step(optimizer, grads)
+         optimizer = step(optimizer, grads)
>     step = jax.jit(train_step, static_argnames="tx")
>     tx, params, opt_state = create_optimizer(params)
"""


@pytest.mark.parametrize("text", table(FORMS, values=1))
def test_other_forms(text: str) -> None:
    change, _, lines = text.partition("\n> ")
    assert lines.replace("\n> ", "\n") in migrated(edited(change), FUNCTIONAL)
