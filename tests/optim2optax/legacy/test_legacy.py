"""The old `flax.optim` beside today's Flax: it works, and leaves no trace."""

import importlib
import os
import sys
import warnings
from pathlib import Path
from textwrap import dedent

import flax
import jax
import jax.numpy as jnp
import pytest

from codemods.vocabulary import words
from optim2optax.legacy import legacy_flax, legacy_optim, load_module
from tests.optim2optax.processes import run_python

pytestmark = pytest.mark.usefixtures("legacy_wheel")

OPTIMIZERS = words(
    "AdaBelief Adadelta Adafactor Adagrad Adam GradientDescent LAMB "
    "LARS Momentum MultiOptimizer RMSProp WeightNorm"
)


def trace() -> tuple[object, ...]:
    """All that the old Flax might leave behind in a process."""
    modules = sorted(name for name in sys.modules if name.startswith("flax.optim"))
    names = (sorted(vars(flax)), sorted(vars(jax)))
    return modules, *names, [*warnings.filters], flax.config.flax_return_frozendict


def test_every_import_of_old_code_works() -> None:
    program = """
        import flax
        import flax.optim
        import flax.optim.adam as old_adam
        from flax import core, jax_utils, linen as nn, optim, serialization, struct, traverse_util
        from flax.optim import Adam, dynamic_scale
        from flax.optim.base import OptimizerDef
        from flax.training import common_utils, train_state
        from jax import tree_map, tree_multimap

        assert optim is flax.optim
        assert old_adam.Adam is Adam
        assert issubclass(Adam, OptimizerDef)
        assert optim.DynamicScale is dynamic_scale.DynamicScale
        assert traverse_util.ModelParamTraversal(lambda path, _: True)
    """
    with legacy_flax():
        exec(dedent(program), {})


def test_all_twelve_optimizers_are_there_and_from_the_old_package() -> None:
    with legacy_optim() as optim:
        assert set(OPTIMIZERS) <= set(optim.__all__)
        assert optim.Adam.__module__ == "flax.optim.adam"
        assert "flax-0.5.3" in optim.__file__


def test_all_else_is_todays_flax() -> None:
    with legacy_flax() as old:
        assert old is flax
        assert importlib.import_module("flax.struct") is flax.struct


@pytest.mark.parametrize("failure", [None, KeyError("in the user's code")])
def test_no_trace_remains(failure: Exception | None) -> None:
    with legacy_flax():
        importlib.import_module("flax.training.train_state")
    before = trace()

    def use() -> None:
        with legacy_flax():
            assert trace() != before
            importlib.import_module("flax.optim.lamb")
            if failure is not None:
                raise failure

    if failure is None:
        use()
    else:
        with pytest.raises(KeyError):
            use()
    assert trace() == before
    with pytest.raises(ImportError):
        importlib.import_module("flax.optim")
    assert not hasattr(jax, "tree_multimap")


def test_nested_use_ends_with_the_outermost() -> None:
    before = trace()
    with legacy_optim() as outer:
        inside = trace()
        with legacy_optim() as inner:
            assert inner is outer
        assert trace() == inside
    assert trace() == before


def test_a_name_that_jax_still_has_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def present() -> None: ...

    monkeypatch.setitem(vars(jax), "tree_map", present)
    with legacy_flax():
        assert vars(jax)["tree_map"] is present
    assert vars(jax)["tree_map"] is present


def test_classes_are_the_same_in_every_use() -> None:
    with legacy_optim() as optim:
        optimizer = optim.Adam(0.1).create(jnp.ones(3))
    with legacy_optim() as optim:
        assert isinstance(optimizer, optim.Optimizer)


@pytest.mark.parametrize(
    "made",
    [
        "optim.Adam(0.1)",
        "optim.WeightNorm(optim.Momentum(0.1))",
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: path == '/w'), optim.LAMB(0.1)))",
    ],
)
def test_an_optimizer_works_on_after_the_end(made: str) -> None:
    params = {"w": jnp.ones((3, 2))}
    with legacy_optim() as optim:
        optimizer = eval(made, {"optim": optim}).create(params)
    step = jax.jit(lambda optimizer, grads: optimizer.apply_gradient(grads))
    stepped = step(optimizer, params)
    assert int(stepped.state.step) == 1
    assert not jnp.array_equal(stepped.target["w"], params["w"])


def test_only_the_warnings_of_the_old_package_are_silenced() -> None:
    with legacy_optim() as optim:
        optimizer = optim.Adam(0.1).create(jnp.ones(3))
        optimizer.optimize(lambda target: (target**2).sum())
        with pytest.warns(DeprecationWarning, match="of the user"):
            warnings.warn("of the user", DeprecationWarning, stacklevel=1)


def test_variables_are_frozen_as_they_were() -> None:
    model = flax.linen.Dense(2)
    with legacy_flax():
        rest, params = model.init(jax.random.PRNGKey(0), jnp.ones((1, 3))).pop("params")
        assert isinstance(params, flax.core.FrozenDict)
        assert not rest
    assert isinstance(model.init(jax.random.PRNGKey(0), jnp.ones((1, 3))), dict)


USER_CODE = """
    from __future__ import annotations

    from dataclasses import dataclass

    import jax
    from flax import optim, struct


    @dataclass
    class Config:
        learning_rate: float = 0.1


    @struct.dataclass
    class State:
        optimizer: optim.Optimizer


    def create(params):
        return State(optim.Momentum(Config().learning_rate).create(params))


    @jax.jit
    def step(state):
        grads = jax.tree_map(lambda p: 2 * p, state.optimizer.target)
        return state.replace(optimizer=state.optimizer.apply_gradient(grads))


    def late():
        from flax.optim import Adam

        return Adam
"""


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(dedent(USER_CODE))
    return path


def test_functions_of_an_old_module_work_after_the_end(user_file: Path) -> None:
    module = load_module(user_file, "train", legacy=True)
    state = module.step(module.create({"w": jnp.ones(2)}))
    assert float(state.optimizer.target["w"][0]) == pytest.approx(0.8)
    with pytest.raises(ImportError):
        module.late()
    with legacy_flax():
        assert module.late().__name__ == "Adam"


def test_a_loaded_module_is_found_by_no_import(user_file: Path) -> None:
    before = set(sys.modules)
    first, second = (load_module(user_file, "train", legacy=True) for _ in range(2))
    assert set(sys.modules) == before
    assert first.__name__ != second.__name__


def test_a_file_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another text of the same length, written in the same second, is another module."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "train.py"
    for rate in ("0.1", "0.2"):
        path.write_text(f"rate = {rate}\n")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert load_module(path, "train", legacy=False).rate == float(rate)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("rate = 0.1\n")
    with pytest.raises(ImportError, match=r"train\.txt is not a Python file"):
        load_module(tmp_path / "train.txt", "train", legacy=False)


def test_a_new_module_sees_no_old_flax(user_file: Path) -> None:
    with pytest.raises(ImportError):
        load_module(user_file, "train", legacy=False)


FIRST_IN_FLOAT64 = """
import inspect

import jax.numpy as jnp

from optim2optax.legacy import legacy_optim
from optim2optax.precision import precise

real = jnp.float32
with precise(), legacy_optim() as optim:
    default = inspect.signature(optim.Adafactor).parameters["dtype_momentum"].default
assert default is real, default
"""


def test_defaults_do_not_depend_on_the_precision_at_the_first_use() -> None:
    """Adafactor keeps its momentum as optax does, also if the old Flax is first met in float64."""
    assert run_python("-c", FIRST_IN_FLOAT64).returncode == 0
