"""One scenario drives the old code and the new."""

import sys
from pathlib import Path
from textwrap import dedent

import jax.numpy as jnp
import numpy as np
import pytest

from codemods import Source, migrate
from optim2optax.parity.cases import scenario_case
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.scenario.scenario import run_both_loops
from tests.optim2optax.parity.differences import SAME, first_difference
from tests.optim2optax.parity.scenario.sides import Sides, run_scenario, written

pytestmark = pytest.mark.usefixtures("legacy_wheel")

MODEL = """
    import flax
    import jax
    import jax.numpy as jnp
    from flax import jax_utils, linen as nn
    {imports}


    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Dense(8)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=False)(x))
            return nn.Dense(1)(x)


    @flax.struct.dataclass
    class State:
        optimizer: {optimizer}
        batch_stats: flax.core.FrozenDict


    def loss_fn(params, state, x, y):
        variables = {{"params": params, "batch_stats": state.batch_stats}}
        prediction, mutated = Model().apply(variables, x, mutable=["batch_stats"])
        return jnp.mean((prediction - y) ** 2), mutated["batch_stats"]

"""

BEFORE = (
    MODEL.format(imports="from flax import optim", optimizer="optim.Optimizer")
    + """
    def create(rng):
        batch_stats, params = Model().init(rng, jnp.ones((1, 3))).pop("params")
        return State(optim.Adam(1e-2).create(params), batch_stats["batch_stats"])


    def step(state, x, y, axis=None):
        grads, batch_stats = jax.grad(loss_fn, has_aux=True)(state.optimizer.target, state, x, y)
        if axis:
            grads = jax.tree_map(lambda g: jax.lax.pmean(g, axis), grads)
        from flax.optim import Optimizer

        assert isinstance(state.optimizer, Optimizer)
        return State(state.optimizer.apply_gradient(grads), batch_stats)
"""
)

AFTER = (
    MODEL.format(
        imports="import optax\n    from flax.training.train_state import TrainState",
        optimizer="TrainState",
    )
    + """
    def create(rng):
        variables = Model().init(rng, jnp.ones((1, 3)))
        tx = optax.adam(1e-2)
        optimizer = TrainState.create(apply_fn=None, params=variables["params"], tx=tx)
        return State(optimizer, variables["batch_stats"])


    def step(state, x, y, axis=None):
        grads, batch_stats = jax.grad(loss_fn, has_aux=True)(state.optimizer.params, state, x, y)
        if axis:
            grads = jax.tree.map(lambda g: jax.lax.pmean(g, axis), grads)
        return State(state.optimizer.apply_gradients(grads=grads), batch_stats)
"""
)

SCENARIO = """
    import jax
    import numpy as np


    def run(module):
        random = np.random.default_rng(0)
        step = jax.jit(module.step)
        state = module.create(jax.random.PRNGKey(0))
        yield state
        for _ in range(100):
            x = random.normal(size=(16, 3))
            state = step(state, x, x.sum(axis=1, keepdims=True))
            yield state
"""

PMAP_SCENARIO = """
    import functools

    import jax
    import numpy as np


    def run(module):
        random = np.random.default_rng(0)
        step = jax.pmap(functools.partial(module.step, axis="batch"), axis_name="batch", donate_argnums=(0,))
        state = module.jax_utils.replicate(module.create(jax.random.PRNGKey(0)))
        for _ in range(20):
            x = random.normal(size=(jax.local_device_count(), 4, 3))
            state = step(state, x, x.sum(axis=2, keepdims=True))
            yield state.optimizer
"""

REPLAY_SCENARIO = """
    import jax
    import numpy as np

    replay = True


    def apply(optimizer, grads):
        if hasattr(optimizer, "target"):
            return optimizer.apply_gradient(grads)
        return optimizer.apply_gradients(grads=grads)


    def run(module):
        random = np.random.default_rng(0)
        optimizer = module.create(jax.random.PRNGKey(0)).optimizer
        step = jax.jit(apply)
        yield optimizer
        for _ in range(100):
            params = optimizer.target if hasattr(optimizer, "target") else optimizer.params
            optimizer = step(optimizer, jax.tree_util.tree_map(lambda p: random.normal(size=p.shape), params))
            yield optimizer
"""


@pytest.fixture
def case(tmp_path: Path) -> Sides:
    return write(tmp_path)


def write(
    folder: Path, scenario: str = SCENARIO, before: str = BEFORE, after: str = AFTER
) -> Sides:
    return written(folder, scenario, before, after)


def test_a_training_loop_that_was_migrated_rightly_is_equivalent(case: Sides) -> None:
    comparison = run_scenario(*case)
    assert comparison.verdict is Verdict.EQUIVALENT, comparison
    assert comparison.steps == 101


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("optax.adam(1e-2)", "optax.adam(1e-2, eps=1.1e-6)"),
        ("optax.adam(1e-2)", "optax.adam(optax.exponential_decay(1e-2, 1, 0.99999))"),
        ("(prediction - y) ** 2", "(prediction - y * 1.00001) ** 2"),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert right in AFTER
    case = write(tmp_path, after=AFTER.replace(right, wrong))
    assert first_difference(run_scenario(*case)).step > 0


SMALL = """
    import jax
    import jax.numpy as jnp
    from flax import optim


    def loss(params):
        return jnp.sum((params["kernel"] - 1.0) ** 2) + 1e-9 * jnp.sum(params["bias"] ** 2)


    def create(params):
        return optim.GradientDescent(0.1).create(params)


    def step(optimizer):
        return optimizer.apply_gradient(jax.grad(loss)(optimizer.target))
"""
WITH_BATCHES = """
    def run(module):
        optimizer = module.create({"kernel": jax.numpy.zeros((4, 3)), "bias": jax.numpy.ones(3)})
        for _ in range(20):
            yield optimizer
            optimizer = module.step(optimizer)


    import jax
"""


@pytest.mark.parametrize(
    ("bias", "expected"), [("", False), (" * 1.00001", True), (".at[:].set(1.0)", True)]
)
def test_a_small_leaf_beside_a_large_one_is_judged_by_itself(
    bias: str, expected: bool, tmp_path: Path
) -> None:
    """Only in the loss, so that the optimizers are the same."""
    [result] = migrate([Source("before.py", dedent(SMALL).encode())])
    after = result.after.decode().replace('params["bias"]', f'params["bias"]{bias}')
    case = write(tmp_path, WITH_BATCHES, SMALL, after)
    comparison = run_scenario(*case)
    assert (comparison.verdict is Verdict.DIFFERENT) is expected, comparison


def test_a_replay_is_held_to_the_narrow_gate(tmp_path: Path) -> None:
    case = write(tmp_path, REPLAY_SCENARIO)
    comparison = run_scenario(*case)
    assert comparison.verdict is Verdict.EQUIVALENT, comparison
    wrong = AFTER.replace("optax.adam(1e-2)", "optax.adam(1e-2 * (1 + 1e-9))")
    comparison = run_scenario(*write(tmp_path, REPLAY_SCENARIO, after=wrong))
    assert comparison.verdict is Verdict.DIFFERENT, comparison


def test_eight_devices_with_donated_buffers(tmp_path: Path) -> None:
    case = write(tmp_path, PMAP_SCENARIO)
    comparison = run_scenario(*case)
    assert comparison.verdict is Verdict.EQUIVALENT, comparison


def test_nothing_is_left_behind(case: Sides) -> None:
    before = set(sys.modules)
    run_scenario(*case)
    libraries = ("flax.", "jax.", "optax.")
    assert all(name.startswith(libraries) for name in set(sys.modules) - before)
    assert "flax.optim" not in sys.modules
    assert jnp.ones(2).dtype == np.float32


def test_a_library_first_imported_by_the_user_keeps_its_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, text = tmp_path / "elsewhere", "from jax.numpy import float32 as DTYPE\n"
    library.mkdir()
    monkeypatch.syspath_prepend(library)
    for path in (library / "some_library.py", tmp_path / "beside.py"):
        path.write_text(text)
    check = "\n    import beside\n    import some_library\n\n    assert beside.DTYPE is jnp.float64\n"
    case = write(tmp_path, before=BEFORE + check)
    run_scenario(*case)
    assert "beside" not in sys.modules
    assert sys.modules.pop("some_library").DTYPE is jnp.float32


def test_each_side_has_the_modules_beside_it(tmp_path: Path) -> None:
    """Old and new trees have modules of the same names, and packages whose modules import each other."""
    for side, number in (("old", 1), ("new", 2)):
        package = tmp_path / side / "lab"
        package.mkdir(parents=True)
        text = f"import jax.numpy as jnp\n\nNUMBER = jnp.float32({number} / 3)\n"
        (package / "__init__.py").touch()
        (package / "numbers.py").write_text(text)
        text = "from . import numbers\nfrom lab.numbers import NUMBER\n"
        (package / "train.py").write_text(text)
    scenario = tmp_path / "scenario.py"
    yielded = "module.numbers.NUMBER / module.NUMBER * module.NUMBER"
    scenario.write_text(f"def run(module):\n    yield 0.0\n    yield {yielded}\n")
    sides = [tmp_path / side / "lab" / "train.py" for side in ("old", "new")]
    first = first_difference(run_scenario(scenario, *sides))

    assert (first.before, first.after) == (1 / 3, 2 / 3)
    assert "lab" not in sys.modules


def test_an_error_of_the_users_code_is_the_users_to_see(tmp_path: Path) -> None:
    failing = BEFORE.replace("assert isinstance", "assert not isinstance")
    case = write(tmp_path, before=failing)
    with pytest.raises(AssertionError):
        run_scenario(*case)


def test_an_error_far_below_the_gate_of_the_closed_loop_shows(tmp_path: Path) -> None:
    after = AFTER.replace("optax.adam(1e-2)", "optax.adam(1e-2, b2=0.999 + 1e-10)")
    assert after != AFTER
    case = write(tmp_path, after=after)
    shown = scenario_case("case", *case)

    assert shown.outcome is Verdict.DIFFERENT
    assert "open loop" in " ".join(shown.remarks)


QUIET = """
    def run(module):
        state = module.create()
        for _ in range({steps}):
            state = module.step(state)
            yield {held}
"""
COUNT = "float(state.step if hasattr(state, 'tx') else state.state.step)"
OF_A_RATE = {
    "few steps": (9, "state", 0.1, "Only 9 steps were taken"),
    "a rate of zero": (20, "state", 0.0, "No parameter ever moved"),
    "a rate of zero beside what moves": (20, f"(state, {COUNT})", 0.0, "No parameter ever moved"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "held", "rate", "why"), OF_A_RATE.values(), ids=OF_A_RATE
)
def test_a_scenario_in_which_nothing_happens_proves_nothing(
    steps: int, held: str, rate: float, why: str, tmp_path: Path
) -> None:
    old = OLD.format(override="").replace("0.1", f"{rate}")
    new = NEW.format(tx=f"optax.adam({rate})", hyperparams="{}")
    case = write(tmp_path, QUIET.format(steps=steps, held=held), old, new)
    shown = scenario_case("case", *case)

    assert shown.outcome is Verdict.NOTHING_PROVEN, shown
    assert shown.remarks[0].startswith(why)


def test_steps_between_what_is_yielded_count(tmp_path: Path) -> None:
    scenario = """
        def run(module):
            state = module.create()
            for _ in range(30):
                state = module.step(state)
            yield state
    """
    new = NEW.format(tx="optax.adam(0.1)", hyperparams="{}")
    case = write(tmp_path, scenario, OLD.format(override=""), new)
    assert run_scenario(*case).verdict in SAME


def test_a_rate_that_is_given_and_never_changes_is_a_remark(tmp_path: Path) -> None:
    old = OLD.format(override=", learning_rate=0.1")
    new = NEW.format(tx="optax.adam(0.1)", hyperparams="{}")
    case = write(tmp_path, QUIET.format(steps=12, held="state"), old, new)
    shown = scenario_case("case", *case)

    assert shown.outcome in SAME
    told = "The learning rate is given at each step and was always 0.1, so no change of it is proven."
    assert shown.remarks[0] == told


STEPS = """
    def run(module):
        state = module.create()
        yield state
        for _ in range(5):
            state = module.step(state)
            yield state
"""
OLD = """
    import jax.numpy as jnp
    from flax import optim


    def create():
        return optim.Adam(0.1).create({{"w": jnp.arange(3.0)}})


    def step(optimizer):
        done = optimizer.state.step
        return optimizer.apply_gradient({{"w": optimizer.target["w"] - 2.0}}{override})
"""
NEW = """
    import jax.numpy as jnp
    import optax
    from flax.training.train_state import TrainState


    class Noted(TrainState):
        noted: int = 0


    class State(Noted):
        def apply_gradients(self, *, grads):
            return super().apply_gradients(grads=grads, noted=self.noted + 1)


    def create():
        params = {{"w": jnp.arange(3.0)}}
        return State.create(apply_fn=None, params=params, tx={tx})


    def step(optimizer):
        done = optimizer.step
        hyperparams = {hyperparams}
        if hyperparams:
            hyperparams = {{**optimizer.opt_state.hyperparams, **hyperparams}}
            optimizer = optimizer.replace(opt_state=optimizer.opt_state._replace(hyperparams=hyperparams))
        return optimizer.apply_gradients(grads={{"w": optimizer.params["w"] - 2.0}})
"""
INJECTED = "optax.inject_hyperparams(optax.adam)(learning_rate=0.1, b1=0.9)"
BY_HAND = {
    "a class of the program's own": ("", "optax.adam(0.1)", "{}", True),
    "a rate of each step": (", learning_rate=0.1 / (1 + done)", INJECTED, '{"learning_rate": 0.1 / (1 + done)}', True),
    "a beta1 of each step": (", beta1=0.9 - 0.1 * done", INJECTED, '{"b1": 0.9 - 0.1 * done}', False),
    "all hyperparameters of each step": (
        ", hyper_params=optimizer.optimizer_def.hyper_params.replace(beta1=0.9 - 0.1 * done)",
        INJECTED,
        '{"b1": 0.9 - 0.1 * done}',
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("override", "tx", "hyperparams", "replayed"), BY_HAND.values(), ids=BY_HAND
)
def test_steps_of_which_the_gradients_and_the_rate_tell_all_are_replayed(
    override: str, tx: str, hyperparams: str, replayed: bool, tmp_path: Path
) -> None:
    new = NEW.format(tx=tx, hyperparams=hyperparams)
    case = write(tmp_path, STEPS, OLD.format(override=override), new)
    closed, opened = run_both_loops(*case)

    assert closed.verdict is not Verdict.DIFFERENT, closed
    assert (opened is not None) is replayed
    assert opened is None or opened.verdict is not Verdict.DIFFERENT, opened


def test_optimizers_that_cannot_be_told_apart_are_not_replayed(tmp_path: Path) -> None:
    old = """
        import jax.numpy as jnp
        from flax import optim


        def create():
            params = {"w": jnp.arange(3.0)}
            return [optim.Adam(0.1).create(params), optim.Momentum(0.1).create(params)]


        def step(optimizers):
            return [optimizer.apply_gradient({"w": optimizer.target["w"] - 2.0}) for optimizer in optimizers]
    """
    [result] = migrate([Source("before.py", dedent(old).encode())])
    case = write(tmp_path, STEPS, old, result.after.decode())
    closed, opened = run_both_loops(*case)

    assert closed.verdict is not Verdict.DIFFERENT, closed
    assert closed.steps == 6
    assert opened is None
