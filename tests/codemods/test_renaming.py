"""`state` for variables that were called optimizer. First, those that keep their name."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods import Options, Source, migrate
from codemods.engine import parse, undefined_names
from codemods.flow.modules import Unit
from tests.codemods.programs import migrated, program, project

RENAME = Options(rename=True)
FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/before.py"))

KEPT = {
    "something else is called state": (
        """
        from flax import optim

        def step(optimizer, state, grads):
            return optimizer.apply_gradient(grads), state

        def train(params, grads):
            return step(optim.Adam(0.1).create(params), {}, grads)
        """,
        "def step(optimizer, state, grads):",
    ),
    "a definition and an optimizer": (
        """
        from flax import optim

        def create(params):
            optimizer = optim.Adam(0.1)
            optimizer = optimizer.create(params)
            return optimizer
        """,
        "    optimizer = optax.adam(0.1)",
    ),
    "a function that is called elsewhere, perhaps by keyword": (
        """
        from flax import optim

        def step(optimizer, grads):
            return optimizer.apply_gradient(grads)
        """,
        "def step(optimizer, grads):",
    ),
    "a parameter that is named in quotes": (
        """
        import jax
        from flax import optim

        def step(optimizer, grads):
            return optimizer.apply_gradient(grads)

        def train(params, grads):
            jitted = jax.jit(step, donate_argnames=("optimizer",))
            return jitted(optim.Adam(0.1).create(params), grads)
        """,
        "def step(optimizer, grads):",
    ),
    "a variable of an outer function": (
        """
        from flax import optim

        def train(params, grads):
            optimizer = optim.Adam(0.1).create(params)

            def step():
                nonlocal optimizer
                optimizer = optimizer.apply_gradient(grads)

            step()
            return optimizer
        """,
        "        nonlocal optimizer\n        optimizer = optimizer.apply_gradients(grads=grads)",
    ),
    "a new optimizer beside one that keeps its name": (
        """
        from flax import optim

        def step(optimizer, grads):
            new_optimizer = optimizer.apply_gradient(grads)
            return new_optimizer
        """,
        "    new_optimizer = optimizer.apply_gradients(grads=grads)",
    ),
    "an optimizer that did not migrate": (
        """
        from flax import optim

        def train(params, grads):
            optimizer = optim.Adam(0.1).create(params)
            return optimizer.state.param_states["w"]
        """,
        "    optimizer = optim.Adam(0.1).create(params)",
    ),
}


@pytest.mark.parametrize(("text", "kept"), KEPT.values(), ids=KEPT)
def test_names_that_stay(text: str, kept: str) -> None:
    [result] = migrate([Source("train.py", program(text).encode())], RENAME)

    assert kept in result.after.decode()


def test_a_program_is_called_what_it_is() -> None:
    result = migrated(
        '''
        import functools
        import jax
        from flax import optim

        def create_optimizer(params):
            optimizer_def = optim.Adam(0.1)
            return optimizer_def.create(params)

        def train_step(optimizer, batch, model=None):
            """One step.

            Args:
              optimizer: what takes it. The `optimizer` is not changed.
              batch: the data.

            Returns:
              A new optimizer.
            """
            def loss_fn(params):
                return model.apply(params, batch) + 0 * optimizer.state.step

            grads = jax.grad(loss_fn)(optimizer.target)
            new_optimizer = optimizer.apply_gradient(grads)
            return new_optimizer

        def train(params, batches, model):
            opt = create_optimizer(params)
            step = jax.jit(functools.partial(train_step, model=model))
            for batch in batches:
                opt = step(optimizer=opt, batch=batch)
            return opt.target
        ''',
        RENAME,
    )

    assert result == program(
        '''
        import functools
        import jax
        import optax
        from flax.training import train_state

        def create_optimizer(params):
            tx = optax.adam(0.1)
            return train_state.TrainState.create(apply_fn=None, params=params, tx=tx)

        def train_step(state, batch, model=None):
            """One step.

            Args:
              state: what takes it. The `state` is not changed.
              batch: the data.

            Returns:
              A new optimizer.
            """
            def loss_fn(params):
                return model.apply(params, batch) + 0 * state.step

            grads = jax.grad(loss_fn)(state.params)
            new_state = state.apply_gradients(grads=grads)
            return new_state

        def train(params, batches, model):
            state = create_optimizer(params)
            step = jax.jit(functools.partial(train_step, model=model))
            for batch in batches:
                state = step(state=state, batch=batch)
            return state.params
        '''
    )


def test_keywords_in_another_file_follow() -> None:
    files = project(
        {
            "steps": """
                def step(optimizer, grads):
                    return optimizer.apply_gradient(grads)
                """,
            "train": """
                from flax import optim
                import steps

                def train(params, grads):
                    return steps.step(grads=grads, optimizer=optim.Adam(0.1).create(params))
                """,
        },
        RENAME,
    )

    assert b"def step(state, grads):" in files["steps"].after
    assert b"state=train_state.TrainState.create(" in files["train"].after


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parent.name)
def test_the_fixtures_stay_valid(path: Path) -> None:
    [plain] = migrate([Source("before.py", path.read_bytes())])
    [result] = migrate([Source("before.py", path.read_bytes())], RENAME)

    after = result.after.decode()
    assert undefined_names(Unit("a.py", after, parse(after))) == set()
    assert len(after.splitlines()) == len(plain.after.decode().splitlines())
    assert not migrate([Source("before.py", result.after)], RENAME)[0].changed


def test_what_is_restored_is_a_train_state_too() -> None:
    after = migrated(
        """
        from flax import optim
        from flax.training import checkpoints

        def resume(params, directory):
            optimizer = optim.Adam(0.1).create(params)
            optimizer = checkpoints.restore_checkpoint(directory, optimizer)
            return optimizer.target
        """,
        RENAME,
    )

    assert "state = checkpoints.restore_checkpoint(directory, state)\n    return state.params" in after
