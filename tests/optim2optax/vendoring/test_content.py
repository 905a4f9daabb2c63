"""The copy is the real `flax.optim`: it trains bit for bit like that, without a warning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from codemods.analysis.legacy import SUBPACKAGE
from codemods.vocabulary import words
from optim2optax.legacy import legacy_optim
from optim2optax.parity.optimizer.probe import probe_params, recorded_gradients
from optim2optax.vendoring.content import OPTIM_CONTENT
from tests.optim2optax.vendoring.copies import imported

NAME = "legacy_flax_optim"
STEPS = 12
PLAIN = words("Adadelta Adafactor Adagrad GradientDescent LARS LAMB RMSProp")
DEFINITIONS = {
    **{name: f"optim.{name}(0.01)" for name in PLAIN},
    "Adam": "optim.Adam(0.01, beta1=0.8, weight_decay=0.1)",
    "AdaBelief": "optim.AdaBelief(0.01, weight_decay=0.1)",
    "Momentum": "optim.Momentum(0.01, weight_decay=0.1, nesterov=True)",
    "centered RMSProp": "optim.RMSProp(0.01, centered=True)",
    "WeightNorm": "optim.WeightNorm(optim.Adam(0.01), wn_decay=0.1)",
    "MultiOptimizer": (
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'kernel' in path), optim.Adam(0.01)), "
        "(optim.ModelParamTraversal(lambda path, _: 'kernel' not in path), optim.Momentum(0.1)))"
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, legacy_wheel: Path) -> Iterator[Any]:
    """The copy, imported."""
    files = OPTIM_CONTENT.files(legacy_wheel)
    with imported(files, tmp_path_factory.mktemp("copy"), NAME) as module:
        yield module


def trained(optim: Any, definition: str) -> list[Any]:
    """The target and the state dict after each step."""
    whole = probe_params()
    params = {name: whole[name] for name in ("Dense_0", "LayerNorm_0", "unused")}
    gradients = recorded_gradients(params, STEPS)
    params, gradients = jax.tree_util.tree_map(np.float32, (params, gradients))
    optimizer = eval(definition, {"optim": optim}).create(params)
    step = jax.jit(
        lambda one, grads, rate: one.apply_gradient(grads, learning_rate=rate)
    )
    found = []
    for number in range(STEPS):
        grads = jax.tree_util.tree_map(lambda leaf, at=number: leaf[at], gradients)
        optimizer = step(optimizer, grads, 0.01 / (1 + number))
        found.append((optimizer.target, flax.serialization.to_state_dict(optimizer)))
    restored = optimizer.restore_state(optimizer.state_dict())
    return [*found, restored.target, flax.serialization.to_bytes(restored)]


def assert_identical(one: Any, other: Any) -> None:
    left, right = map(jax.tree_util.tree_leaves_with_path, (one, other))
    assert [path for path, _ in left] == [path for path, _ in right]
    for (path, value), (_, expected) in zip(left, right, strict=True):
        are_numbers = not isinstance(value, bytes)
        assert np.array_equal(value, expected, equal_nan=are_numbers), path


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_it_trains_bit_for_bit_as_the_real_one(copy: Any, definition: str) -> None:
    with legacy_optim() as optim:
        old = trained(optim, definition)
    assert_identical(trained(copy, definition), old)


def test_replicated(copy: Any) -> None:
    params = {"w": jnp.ones((3, 2))}
    gradients = {"w": jnp.arange(jax.local_device_count() * 6.0).reshape(-1, 3, 2)}

    def replicated(optim: Any) -> Any:
        optimizer = optim.Adam(0.1).create(params).replicate()
        step = jax.pmap(lambda one, grads: one.apply_gradient(grads), axis_name="batch")
        optimizer = step(optimizer, gradients)
        return optimizer.target, optimizer.state_dict(), optimizer.unreplicate().target

    with legacy_optim() as optim:
        old = replicated(optim)
    assert_identical(replicated(copy), old)


def test_dynamic_scale(copy: Any) -> None:
    squared = copy.DynamicScale(growth_interval=2).value_and_grad(lambda x: x**2)
    scale, finite, value, gradient = squared(jnp.float32(3))
    assert bool(finite) is True
    assert (float(value), float(gradient)) == (9.0, 6.0)
    assert scale.fin_steps == 1


def test_it_has_all_that_there_was(copy: Any) -> None:
    with legacy_optim() as optim:
        assert set(copy.__all__) == set(optim.__all__)
        assert {name for name in vars(optim) if name[:1].isupper()} <= {*vars(copy)}
    modules = {f"{name}.py" for name in SUBPACKAGE} | {"__init__.py"}
    assert modules == {*OPTIM_CONTENT.package.modules}


def test_each_file_says_where_it_comes_from(legacy_wheel: Path) -> None:
    for name, content in OPTIM_CONTENT.files(legacy_wheel).items():
        text = content.decode()
        assert text.startswith("# Copyright ")
        assert "\n#     http://www.apache.org/licenses/LICENSE-2.0\n" in text
        origin = f"#\n{OPTIM_CONTENT.origin}{name}; changed: "
        assert f"# limitations under the License.\n{origin}" in text
        assert "jax.tree_map" not in text
        assert "from .." not in text
        assert OPTIM_CONTENT.origin_of(content) == name
    assert OPTIM_CONTENT.origin_of(b"import flax\n") == ""
