"""Optimizers in parts, with `--style functional`. First, those that stay train states, each with the reason."""

from __future__ import annotations

from dataclasses import replace

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
KEPT = {
    "it is kept in an attribute": (
        (LOOP, "            train.optimizer = optimizer\n" + LOOP),
        "train.py:15",
    ),
    "it is taken out of a dict": (
        (
            END,
            "            kept = {'it': optimizer}\n            return kept['it'].target\n",
        ),
        "train.py:18",
    ),
    "an unknown function gets it": (
        (LOOP, "            print(optimizer)\n" + LOOP),
        "train.py:15",
    ),
    "a function of another project gets it": (
        (
            LOOP,
            "            import visualize\n            visualize.show(optimizer)\n"
            + LOOP,
        ),
        "train.py:16",
    ),
    "a function that nobody calls": (
        (
            LOOP,
            "            import service\n            service.offer(train_step)\n"
            + LOOP,
        ),
        "train.py:10",
    ),
    "a call without an optimizer": (
        (LOOP, "            train_step(None, None)\n" + LOOP),
        "train.py:15",
    ),
    "any arguments": (
        (
            STEP,
            "        def train_step(*args):\n            return args[0].apply_gradient(args[1])\n",
        ),
        "train.py:11",
    ),
    "one of two": (
        (
            "optimizer = create_optimizer(params)",
            "optimizer = create_optimizer(params) if batches else None",
        ),
        "train.py:14",
    ),
    "two that take the same steps": (
        (
            LOOP,
            "            other = optim.Adam(0.2).create(params)\n            other = train_step(other, batches[0])\n"
            + LOOP,
        ),
        "train.py:13",
    ),
    "a decorator that has no static names": (
        (STEP, "        @functools.partial(jax.pmap, axis_name='batch')\n" + STEP),
        "train.py:10",
    ),
    "wrapped where it is not made yet": (
        (STEP, STEP + "\n        parallel_step = jax.pmap(train_step)\n"),
        "train.py:13",
    ),
    "static parameters by name": (
        (STEP, "        @functools.partial(jax.jit, static_argnames='grads')\n" + STEP),
        "train.py:10",
    ),
    "positions that are computed": (
        (
            STEP,
            STEP
            + "\n        DONATED = (0,)\n        jitted = jax.jit(train_step, donate_argnums=DONATED)\n",
        ),
        "train.py:14",
    ),
    "the optimizer is static": (
        (STEP, STEP + "\n        jitted = jax.jit(train_step, static_argnums=0)\n"),
        "train.py:13",
    ),
    "a function that makes it is jitted": (
        (
            "        def create_optimizer(",
            "        @jax.jit\n        def create_optimizer(",
        ),
        "train.py:8",
    ),
    "what is returned is not taken apart": (
        (
            "optimizer = create_optimizer(params)",
            "optimizer = [create_optimizer(params)][0]",
        ),
        "train.py:14",
    ),
    "a function asks what it is": (
        (LOOP, "            assert isinstance(optimizer, optim.Optimizer)\n" + LOOP),
        "train.py:15",
    ),
    "names are taken": (
        (LOOP, "            opt_state, optimizer_state = 1, 2\n" + LOOP),
        "the name `opt_state` is taken at train.py:13",
    ),
    "a global variable": (
        (LOOP, "            global best\n            best = optimizer\n" + LOOP),
        "train.py:1",
    ),
    "a checkpoint holds it": (
        (END, "            checkpoints.save_checkpoint('dir', optimizer, 1)\n" + END),
        "train.py:17",
    ),
    "its steps are counted": (
        (END, END.replace("target", "target, optimizer.state.step")),
        "train.py:17",
    ),
    "a partial application holds the step": (
        (LOOP, "            step = jax.jit(functools.partial(train_step))\n" + LOOP),
        "train.py:15",
    ),
    "a step sets the learning rate": (
        (STEP, STEP.replace("(grads)", "(grads, learning_rate=abs(grads))")),
        "train.py:11",
    ),
    "a lambda takes it": (
        (
            LOOP,
            "            step = lambda optimizer: optimizer.target\n            print(step(optimizer))\n"
            + LOOP,
        ),
        "train.py:15",
    ),
}

CALL = "                optimizer = train_step(optimizer, grads)\n"
GET = "            optimizer = create_optimizer(params)\n"
MAKE = "            return optim.Adam(0.1).create(params)\n"
TOGETHER = (
    CALL.replace("optimizer =", "both =") + "                optimizer, _ = both\n"
)
SCAN = """            def body(optimizer: 'optim.Optimizer', grads):
                return optimizer.apply_gradient(grads), None
            optimizer, _ = jax.lax.scan(body, optimizer, batches)
"""

KEPT_TOO = {
    "the step takes any further arguments": (
        (STEP, STEP.replace("grads):", "grads, *more):")),
        "train.py:10",
    ),
    "the step has a second name": (
        (STEP, STEP + "\n        step = train_step\n"),
        "train.py:13",
    ),
    "the step is the second argument": (
        (LOOP, "            jax.jit(1, train_step)\n" + LOOP),
        "train.py:15",
    ),
    "a step within something else": (
        (LOOP, "            print(optimizer.apply_gradient(batches))\n" + LOOP),
        "train.py:15",
    ),
    "an argument that is made there": (
        (CALL, CALL.replace("(optimizer,", "(jax.device_put(optimizer),")),
        "train.py:16",
    ),
    "a tuple in its place": (
        (STEP, STEP.replace("return ", "return 1, ")),
        "train.py:17",
    ),
    "it is compared": (
        (LOOP, "            print(optimizer is None)\n" + LOOP),
        "train.py:15",
    ),
    "a name for the parameters of another time": (
        (LOOP, "            model_params = optimizer.target\n" + LOOP + CALL + "            f(params, model_params)\n" + LOOP),
        "the name `params` is taken at train.py:13",
    ),
    "its state is exchanged": (
        (CALL, "                optimizer = optimizer.replace(state=optimizer.state)\n" + CALL),
        "train.py:16",
    ),
    "a parameter that is a list of them": (
        (STEP, STEP.replace("(optimizer,", "(optimizer: list[optim.Optimizer],")),
        "train.py:10",
    ),
    "a quoted annotation of a carry": (
        (LOOP, SCAN + LOOP),
        "train.py:15",
    ),
    "a closure returns it alone or not": (
        (LOOP, "            def show():\n                if params:\n                    return optimizer\n"
         "                return optimizer, 1\n            serve(show)\n" + LOOP),
        "train.py:15",
    ),
}  # fmt: skip


PLAIN = MAKE.replace(
    "(params)", "(params, optim.ModelParamTraversal(lambda path, _: 'bias' in path))"
)
IF = """        if FAST:
            def train_step(optimizer, grads):
                return optimizer.apply_gradient(grads)
        else:
            def train_step(optimizer, grads):
                return optimizer.apply_gradient(2 * grads)
"""
KEPT_BY_MORE = {
    "a tuple that is taken whole": (
        (
            (STEP, STEP.replace("(grads)", "(grads), 1")),
            (CALL, TOGETHER),
        ),
        "train.py:16",
    ),
    "made where nothing takes it up": (
        (
            (
                GET,
                "            if evaluate(create_optimizer(params).target) > 1:\n                pass\n",
            ),
            (CALL, "                print(grads)\n"),
            (STEP, ""),
            (END, ""),
        ),
        "train.py:12",
    ),
    "two steps from one place": (
        (
            (STEP, STEP.replace("(grads)", "(grads), optimizer.apply_gradient(grads)")),
            (CALL, CALL.replace("optimizer =", "optimizer, other =")),
        ),
        "train.py:10",
    ),
    "something that acts ahead of the step": (
        (
            (STEP, STEP.replace("return ", "return next(grads), ")),
            (CALL, CALL.replace("optimizer =", "batch, optimizer =")),
        ),
        "train.py:11",
    ),
    "something else in a branch": (
        (
            (
                STEP,
                STEP.replace(
                    "return ",
                    "if grads is None:\n                return None, 0\n            return ",
                ).replace("(grads)", "(grads), 1"),
            ),
            (CALL, CALL.replace("optimizer =", "optimizer, _ =")),
        ),
        "train.py:10",
    ),
    "a call among what is unpacked": (
        (
            (
                STEP,
                STEP
                + """
        def twice(optimizer, grads):
            return train_step(optimizer, grads), 1
""",
            ),
            (CALL, CALL.replace("optimizer = train_step", "optimizer, _ = twice")),
        ),
        "train.py:14",
    ),
    "one step of two": (((STEP, IF),), "train.py:11",),
    "an optimizer of some parameters": (((MAKE, PLAIN),), "train.py:8",),
}  # fmt: skip


def on_one_line(code: str) -> str:
    return " ".join(code.split()).replace("( ", "(").replace(" )", ")")


def changed(change: tuple[str, str]) -> FileResult:
    assert change[0] in BASE
    return result_of(program(BASE.replace(*change)), FUNCTIONAL)


@pytest.mark.parametrize(
    ("change", "why"), (KEPT | KEPT_TOO).values(), ids=KEPT | KEPT_TOO
)
def test_stays_a_train_state(change: tuple[str, str], why: str) -> None:
    result = changed(change)

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


@pytest.mark.parametrize(("changes", "why"), KEPT_BY_MORE.values(), ids=KEPT_BY_MORE)
def test_stays_a_train_state_by_more_than_one_change(
    changes: tuple[tuple[str, str], ...], why: str
) -> None:
    text = BASE
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    result = result_of(text, FUNCTIONAL)

    assert why in " ".join(site.note for site in result.sites)
    assert "TrainState.create(" in result.after.decode()


def test_partial_work_takes_no_optimizer_apart() -> None:
    assert "TrainState.create(" in migrated(
        BASE, Options(style="functional", partial=True)
    )


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
            opt_state = tx.init(params)
            return tx, params, opt_state

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

    assert (
        '@functools.partial(jax.jit, static_argnames="tx")\ndef train_step(params, opt_state, grads, tx):'
        in after
    )
    assert "train_step(params, opt_state, grads, tx=tx)" in after


def test_jit_of_what_is_made_later_takes_it_as_static_argument() -> None:
    jitted = STEP + "\n        jitted = jax.jit(train_step, inline=True)\n"
    after = migrated(
        BASE.replace(STEP, jitted).replace("= train_step(", "= jitted("), FUNCTIONAL
    )

    assert (
        'jitted = jax.jit(train_step, inline=True, static_argnames="tx")'
        in on_one_line(after)
    )
    assert "params, opt_state = jitted(params, opt_state, grads, tx=tx)" in on_one_line(
        after
    )


def test_variables_of_a_comprehension_name_no_transformation() -> None:
    after = migrated(
        """
        from flax import optim

        def train(params, grads):
            optimizer = optim.MultiOptimizer(*[
                (optim.ModelParamTraversal(lambda path, _, word=word: word in path), optim.Adam(rate))
                for word, rate in (("kernel", 0.1), ("bias", 0.2))
            ]).create(params)
            optimizer = optimizer.apply_gradient(grads)
            return optimizer.target
        """,
        FUNCTIONAL,
    )
    assert "opt_state = tx.init(params)" in after


def test_parameters_that_are_read_later_keep_their_name() -> None:
    after = migrated(
        BASE.replace(END, "            return optimizer.target, params\n"), FUNCTIONAL
    )

    assert "tx, model_params, opt_state = create_optimizer(params)" in after
    assert "return model_params, params" in after


def test_a_function_may_have_its_name_from_what_wraps_it() -> None:
    after = migrated(
        BASE.replace(STEP, STEP + "\n        train_step = jax.jit(train_step)\n"),
        FUNCTIONAL,
    )

    assert 'train_step = jax.jit(train_step, static_argnames="tx")' in after
    assert "train_step(params, opt_state, grads, tx=tx)" in after


def test_of_two_that_go_the_same_way_one_falls_into_parts() -> None:
    after = migrated(
        """
        from flax import optim

        def train(params, others):
            g = optim.Adam(0.1).create(params)
            d = optim.Adam(0.1).create(others)
            g, d = both(g, d)
            return g.target, d.target

        def both(g, d):
            return g.apply_gradient(1), d.apply_gradient(2)
        """,
        FUNCTIONAL,
    )

    assert (
        "g_params, g_opt_state, d = both(g_params, g_opt_state, d, g_tx=g_tx)" in after
    )
    assert "return g_params, g_opt_state, d.apply_gradients(grads=2)" in after


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
    after = project(
        {"making": MAKING, "stepping": STEPPING, "training": TRAINING}, FUNCTIONAL
    )

    assert "return optimizer_def, params, opt_state" in after["making"].after.decode()
    assert "def step(params, opt_state, grads, tx):" in after["stepping"].after.decode()
    assert (
        "stepping.step(params=params, opt_state=opt_state, grads=grads, tx=tx)"
        in on_one_line(after["training"].after.decode())
    )


def test_a_result_without_a_name_stays_one_piece_in_all_files() -> None:
    nameless = TRAINING.replace("optimizer = stepping", "return stepping").replace(
        "=grads)\n", "=grads).target\n"
    )
    after = project(
        {"making": MAKING, "stepping": STEPPING, "training": nameless}, FUNCTIONAL
    )

    notes = {site.note for result in after.values() for site in result.sites}
    assert (
        "This optimizer stays in one piece, as a train state: training.py:6 has no counterpart in two variables."
        in notes
    )
    assert "def step(optimizer, grads):" in after["stepping"].after.decode()


OTHER_NAMES = {
    "a function within has the name": (
        """
            def show(params):
                return optimizer.target, params
        """,
        "    def show(params):\n        return model_params, params\n",
    ),
    "a comprehension has the name": (
        """
            print([(optimizer.target, params) for params in batches])
        """,
        "    print([(model_params, params) for params in batches])\n",
    ),
    "the definition changes": (
        """
            definition = optim.Adam(0.2)
        """,
        "    definition = optax.adam(0.1)\n    tx = definition\n",
    ),
    "the definition is deleted": (
        """
            del definition
        """,
        "    definition = optax.adam(0.1)\n    tx = definition\n",
    ),
}


@pytest.mark.parametrize(("more", "lines"), OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_a_name_that_means_something_else_is_not_taken(more: str, lines: str) -> None:
    after = migrated(
        f"""
        from flax import optim

        def train(params, batches):
            definition = optim.Adam(0.1)
            optimizer = definition.create(params)
            {more.strip()}
            optimizer = optimizer.apply_gradient(batches)
            return optimizer.target
        """,
        FUNCTIONAL,
    )

    assert lines in after
    assert (
        "updates, opt_state = {}.update(".format(
            "tx" if "tx" in lines else "definition"
        )
        in after
    )


@pytest.mark.parametrize("name", ["tx", "definition"])
def test_a_step_within_that_has_the_name_of_the_transformation(name: str) -> None:
    made = "optim.Adam(0.1)" if name == "tx" else "definition"
    result = result_of(
        f"""
        from flax import optim

        def train(params, batches):
            definition = optim.Adam(0.1)
            optimizer = {made}.create(params)

            def step(optimizer, grads):
                {name} = 2
                return optimizer.apply_gradient({name} * grads)

            return step(optimizer, batches).target
        """,
        FUNCTIONAL,
    )

    assert "TrainState.create(" in result.after.decode()
    assert any("no counterpart in two variables" in site.note for site in result.sites)


FORMS = {
    "a result that nobody takes": (
        (
            (STEP, STEP.replace("(grads)", "(grads), 1")),
            (CALL, CALL.replace("optimizer =", "optimizer, _ =") + "                train_step(optimizer, grads)\n"),
        ),
        "_ = train_step(params, opt_state, grads, tx=tx)\n        train_step(params, opt_state, grads, tx=tx)\n",
    ),
    "two in one function": (
        (
            (LOOP, "            opt = train_step(optimizer, batches)\n" + LOOP),
            (END, "            return opt.target, optimizer.target\n"),
        ),
        "    model_params, optimizer_state = train_step(params, opt_state, batches, tx=tx)\n",
    ),
    "wrapped ahead of the place that makes it": (
        ((GET, "            step = jax.jit(train_step)\n" + GET), (CALL, CALL.replace("train_step", "step"))),
        "    step = jax.jit(train_step, static_argnames=\"tx\")\n    tx, params, opt_state = create_optimizer(params)\n",
    ),
    "parameters by another name in a branch": (
        ((END, "            if batches:\n                params = optimizer.target\n            return params\n"),),
        "    if batches:\n        params = model_params\n    return params\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "lines"), FORMS.values(), ids=FORMS)
def test_other_forms(changes: tuple[tuple[str, str], ...], lines: str) -> None:
    text = BASE
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert lines in migrated(text, FUNCTIONAL)
