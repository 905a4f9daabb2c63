"""Optimizers in parts, with `--style functional`. First, those that stay train states, each with the reason."""

from __future__ import annotations

import pytest

from codemods import FileResult, Options
from tests.codemods.programs import migrated, program, project, result_of

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
LOOP = "            for grads in batches:\n"
STEP = "        def train_step(optimizer, grads):\n            return optimizer.apply_gradient(grads)\n"
END = "            return optimizer.target\n"
RESTORING = """
        class Evaluator:
            def restore(self, params):
                self.optimizer = checkpoints.restore_checkpoint("dir", optim.Adam(0.2).create(params))
"""

KEPT = {
    "it is kept in an attribute": (
        (LOOP, "            train.optimizer = optimizer\n" + LOOP),
        "it is kept in something else at train.py:15",
    ),
    "it is taken out of a dict": (
        (END, "            kept = {'it': optimizer}\n            return kept['it'].target\n"),
        "it is kept in something else at train.py:18",
    ),
    "an unknown function gets it": (
        (LOOP, "            print(optimizer)\n" + LOOP),
        "it is handed to something else at train.py:15",
    ),
    "a function of another project gets it": (
        (LOOP, "            import visualize\n            visualize.show(optimizer)\n" + LOOP),
        "it is handed to something else at train.py:16",
    ),
    "a function that nobody calls": (
        (
            STEP,
            STEP
            + "\n        def other_step(optimizer: optim.Optimizer, grads):\n            return train_step(optimizer, grads)\n",
        ),
        "not every call of `other_step` is in view",
    ),
    "a call without an optimizer": (
        (LOOP, "            train_step(None, None)\n" + LOOP),
        "`train_step` is called without an optimizer at train.py:15",
    ),
    "any arguments": (
        (STEP, "        def train_step(*args):\n            return args[0].apply_gradient(args[1])\n"),
        "it is kept in something else at train.py:11",
    ),
    "one of two": (
        ("optimizer = create_optimizer(params)", "optimizer = create_optimizer(params) if batches else None"),
        "it is kept in something else at train.py:14",
    ),
    "two that take the same steps": (
        (
            LOOP,
            "            other = optim.Adam(0.2).create(params)\n            other = train_step(other, batches[0])\n"
            + LOOP,
        ),
        "several optimizers meet in `train`",
    ),
    "a decorator that has no static names": (
        (STEP, "        @functools.partial(jax.pmap, axis_name='batch')\n" + STEP),
        "its transformation cannot be given to what is wrapped at train.py:10",
    ),
    "wrapped where it is not made yet": (
        (STEP, STEP + "\n        parallel_step = jax.pmap(train_step)\n"),
        "its transformation cannot be given to what is wrapped at train.py:13",
    ),
    "static parameters by name": (
        (STEP, "        @functools.partial(jax.jit, static_argnames='grads')\n" + STEP),
        "other parameters are static at train.py:10",
    ),
    "positions that are computed": (
        (STEP, STEP + "\n        DONATED = (0,)\n        jitted = jax.jit(train_step, donate_argnums=DONATED)\n"),
        "the `donate_argnums` at train.py:14 are not plain to see",
    ),
    "the optimizer is static": (
        (STEP, STEP + "\n        jitted = jax.jit(train_step, static_argnums=0)\n"),
        "the `static_argnums` at train.py:13 are not plain to see",
    ),
    "a function that makes it is jitted": (
        ("        def create_optimizer(", "        @jax.jit\n        def create_optimizer("),
        "`create_optimizer` cannot return the transformation, too",
    ),
    "what is returned is not taken apart": (
        ("optimizer = create_optimizer(params)", "optimizer = [create_optimizer(params)][0]"),
        "it is kept in something else at train.py:14",
    ),
    "a function asks what it is": (
        (LOOP, "            assert isinstance(optimizer, optim.Optimizer)\n" + LOOP),
        "`.Optimizer` is used at train.py:15",
    ),
    "names are taken": (
        (LOOP, "            opt_state, optimizer_state = 1, 2\n" + LOOP),
        "the name `opt_state` is taken in `train`",
    ),
    "a global variable": (
        (LOOP, "            global best\n            best = optimizer\n" + LOOP),
        "`best` is set from within another function",
    ),
    "a checkpoint is shared with one that stays": (
        (END, "            checkpoints.save_checkpoint('dir', optimizer, 1)\n" + END + RESTORING),
        "so does the one made at train.py:22, which is stored in checkpoints, too",
    ),
}


def on_one_line(code: str) -> str:
    return " ".join(code.split()).replace("( ", "(").replace(" )", ")")


def changed(change: tuple[str, str]) -> FileResult:
    assert change[0] in BASE
    return result_of(program(BASE.replace(*change)), FUNCTIONAL)


@pytest.mark.parametrize(("change", "why"), KEPT.values(), ids=KEPT)
def test_stays_a_train_state(change: tuple[str, str], why: str) -> None:
    result = changed(change)

    assert why in " ".join(site.note for site in result.sites)
    assert "TrainState.create(" in result.after.decode()


LEFT = {
    "a hyperparameter": ("(grads, beta1=0.5)", "FO910"),
    "no rate": ("(grads, learning_rate=None)", "FO910"),
    "two arguments": ("(grads, 0.1)", "FO905"),
    "two rates": ("(grads, learning_rate=0.1, hyper_params=None)", "FO910"),
    "a rate at one of two steps": (
        "(grads)\n\n        def warm_up(optimizer, grads):\n            return optimizer.apply_gradient(grads, learning_rate=1)",
        "FO910",
    ),
}


@pytest.mark.parametrize(("step", "code"), LEFT.values(), ids=LEFT)
def test_what_has_no_counterpart_has_none_in_parts(step: str, code: str) -> None:
    text = BASE.replace("apply_gradient(grads)", f"apply_gradient{step}")
    text = (
        text.replace(LOOP, "            optimizer = warm_up(optimizer, batches[0])\n" + LOOP)
        if "warm_up" in step
        else text
    )
    result = result_of(text, FUNCTIONAL)

    assert result.after == result.before
    assert {site.code for site in result.sites} - {"FO901", "FO911"} == {code}


def test_partial_work_takes_no_optimizer_apart() -> None:
    assert "TrainState.create(" in migrated(BASE, Options(style="functional", partial=True))


def test_a_train_state_is_the_default() -> None:
    assert "TrainState.create(" in migrated(BASE)


def test_through_functions_that_make_and_step() -> None:
    assert migrated(BASE, FUNCTIONAL) == program(
        """
        import functools

        import jax
        import optax
        from flax.training import checkpoints

        def create_optimizer(params):
            tx = optax.adam(0.1)
            return tx, params, tx.init(params)

        def train_step(params, opt_state, grads, tx):
            updates, opt_state = tx.update(grads, opt_state, params)
            params = optax.apply_updates(params, updates)
            return params, opt_state

        def train(params, batches):
            tx, params, opt_state = create_optimizer(params)
            for grads in batches:
                params, opt_state = train_step(params, opt_state, grads, tx=tx)
            return params
        """
    )


def test_jit_knows_that_the_transformation_is_static() -> None:
    after = migrated(BASE.replace(STEP, "        @jax.jit\n" + STEP), FUNCTIONAL)

    assert "@functools.partial(jax.jit, static_argnames='tx')\ndef train_step(params, opt_state, grads, tx):" in after
    assert "train_step(params, opt_state, grads, tx=tx)" in after


def test_jit_of_what_is_made_later_takes_it_as_static_argument() -> None:
    jitted = STEP + "\n        jitted = jax.jit(train_step, donate_argnums=0, static_argnums=(1,))\n"
    after = migrated(BASE.replace(STEP, jitted).replace("= train_step(", "= jitted("), FUNCTIONAL)

    assert (
        "jitted = jax.jit(train_step, donate_argnums=(0, 1), static_argnums=(2,), static_argnames='tx')"
        in on_one_line(after)
    )
    assert "params, opt_state = jitted(params, opt_state, grads, tx=tx)" in on_one_line(after)


def test_a_partial_application_holds_the_transformation() -> None:
    step = LOOP.replace(
        "for", "step = jax.pmap(functools.partial(train_step), axis_name='batch', in_axes=(0, None))\n            for"
    )
    after = migrated(BASE.replace(LOOP, step).replace("= train_step(", "= step("), FUNCTIONAL)

    assert (
        "step = jax.pmap(functools.partial(train_step, tx=tx), axis_name='batch', in_axes=(0, 0, None))"
        in on_one_line(after)
    )
    assert "params, opt_state = step(params, opt_state, grads)" in after


def test_parameters_that_are_read_later_keep_their_name() -> None:
    after = migrated(BASE.replace(END, "            return optimizer.target, params\n"), FUNCTIONAL)

    assert "tx, model_params, opt_state = create_optimizer(params)" in after
    assert "return model_params, params" in after


def test_old_and_new_parts_beside_each_other() -> None:
    step = STEP.replace("(grads)", "(grads), optimizer.target")
    after = migrated(
        BASE.replace(STEP, step).replace("optimizer = train_step", "optimizer, before = train_step"), FUNCTIONAL
    )

    assert "updates, new_opt_state = tx.update(grads, opt_state, params)" in after
    assert "return new_params, new_opt_state, params\n" in after
    assert "params, opt_state, before = train_step(" in after


def test_tuples_that_someone_takes_whole_hold_a_tuple() -> None:
    step = STEP.replace("(grads)", "(grads), 1")
    text = BASE.replace(STEP, step).replace(
        "optimizer = train_step(optimizer, grads)", "out = train_step(optimizer, grads)"
    )
    after = migrated(text.replace(END, "                optimizer, _ = out\n" + END), FUNCTIONAL)

    assert "return (params, opt_state), 1" in after
    assert "(params, opt_state), _ = out" in after


def test_steps_are_counted_where_someone_asks() -> None:
    after = migrated(BASE.replace(END, "            return optimizer.target, optimizer.state.step\n"), FUNCTIONAL)

    assert "return tx, params, tx.init(params), 0" in after
    assert "step = step + 1" in after
    assert "return params, step\n" in after


def test_functions_within_find_the_transformation_around_them() -> None:
    after = migrated(
        """
        import jax
        from flax import optim

        def train(params, batches):
            optimizer = optim.Momentum(0.1).create(params)

            @jax.jit
            def train_step(optimizer, grads):
                new_optimizer = optimizer.apply_gradient(grads)
                return new_optimizer

            for grads in batches:
                optimizer = train_step(optimizer, grads)
            return optimizer.target
        """,
        FUNCTIONAL,
    )

    assert after == program(
        """
        import jax
        import optax

        def train(params, batches):
            tx = optax.sgd(0.1, momentum=0.9)
            opt_state = tx.init(params)

            @jax.jit
            def train_step(params, opt_state, grads):
                updates, new_opt_state = tx.update(grads, opt_state, params)
                new_params = optax.apply_updates(params, updates)
                return new_params, new_opt_state

            for grads in batches:
                params, opt_state = train_step(params, opt_state, grads)
            return params
        """
    )


MAKING = """
                from flax import optim

                def create(params):
                    optimizer_def = optim.Adam(0.1)
                    return optimizer_def.create(params)
"""
STEPPING = """
                def step(optimizer, grads):
                    return optimizer.apply_gradient(grads)
"""
TRAINING = """
                import making
                import stepping

                def train(params, grads):
                    optimizer = making.create(params)
                    optimizer = stepping.step(optimizer=optimizer, grads=grads)
                    return optimizer.target
"""


def test_across_files() -> None:
    after = project({"making": MAKING, "stepping": STEPPING, "training": TRAINING}, FUNCTIONAL)

    assert "tx = optax.adam(0.1)\n    return tx, params, tx.init(params)" in after["making"].after.decode()
    assert "def step(params, opt_state, grads, tx):" in after["stepping"].after.decode()
    assert "stepping.step(params=params, opt_state=opt_state, grads=grads, tx=tx)" in on_one_line(
        after["training"].after.decode()
    )


def test_a_result_without_a_name_stays_one_piece_in_all_files() -> None:
    nameless = TRAINING.replace("optimizer = stepping", "return stepping").replace("=grads)\n", "=grads).target\n")
    after = project({"making": MAKING, "stepping": STEPPING, "training": nameless}, FUNCTIONAL)

    notes = {site.note for result in after.values() for site in result.sites}
    assert "This optimizer stays in one piece, as a train state: it has no name at training.py:6." in notes
    assert "def step(optimizer, grads):" in after["stepping"].after.decode()


def test_positions_count_the_transformation_ahead_of_defaults() -> None:
    step = "        @functools.partial(jax.jit, static_argnums=(2,))\n" + STEP.replace("grads):", "grads, flag=True):")
    after = on_one_line(migrated(BASE.replace(STEP, step), FUNCTIONAL))

    assert (
        "static_argnums=(4,), static_argnames='tx') def train_step(params, opt_state, grads, tx, flag=True):" in after
    )


def test_two_optimizers_side_by_side() -> None:
    after = migrated(
        """
        import jax
        from flax import optim

        def create(gp, dp):
            g_opt = optim.Adam(0.1).create(gp)
            d_opt = optim.Adam(0.2).create(dp)
            return g_opt, d_opt

        @jax.jit
        def step(g_opt, d_opt, grads):
            d_opt = d_opt.apply_gradient(grads)
            g_opt = g_opt.apply_gradient(d_opt.target)
            return g_opt, d_opt

        def train(gp, dp, grads):
            g_opt, d_opt = create(gp, dp)
            g_opt, d_opt = step(g_opt, d_opt, grads)
            return g_opt.target
        """,
        FUNCTIONAL,
    )

    assert after == program(
        """
        import functools

        import jax
        import optax

        def create(gp, dp):
            g_tx = optax.adam(0.1)
            g_opt_state = g_tx.init(gp)
            d_tx = optax.adam(0.2)
            d_opt_state = d_tx.init(dp)
            return d_tx, g_tx, gp, g_opt_state, dp, d_opt_state

        @functools.partial(jax.jit, static_argnames=('g_tx', 'd_tx'))
        def step(g_params, g_opt_state, d_params, d_opt_state, grads, g_tx, d_tx):
            updates, d_opt_state = d_tx.update(grads, d_opt_state, d_params)
            d_params = optax.apply_updates(d_params, updates)
            updates, g_opt_state = g_tx.update(d_params, g_opt_state, g_params)
            g_params = optax.apply_updates(g_params, updates)
            return g_params, g_opt_state, d_params, d_opt_state

        def train(gp, dp, grads):
            d_tx, g_tx, g_params, g_opt_state, d_params, d_opt_state = create(gp, dp)
            g_params, g_opt_state, d_params, d_opt_state = step(
                g_params, g_opt_state, d_params, d_opt_state, grads, g_tx=g_tx, d_tx=d_tx
            )
            return g_params
        """
    )


def test_behind_defaults_that_are_given_by_position_a_parameter_is_named() -> None:
    step = STEP.replace("grads):", "grads, scale=1):")
    after = migrated(
        BASE.replace(STEP, step).replace("train_step(optimizer, grads)", "train_step(optimizer, grads, 2)"), FUNCTIONAL
    )

    assert "def train_step(params, opt_state, grads, scale=1, *, tx):" in after
    assert "train_step(params, opt_state, grads, 2, tx=tx)" in after
