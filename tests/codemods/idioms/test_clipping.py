"""Gradients that are clipped just before a step. First, what only looks like that."""

from textwrap import dedent, indent

import pytest

from codemods import FileResult, Options
from tests.codemods.programs import assert_left, migrated, project, result_of, table

PROGRAM = """
    import jax
    import jax.numpy as jnp
    import optax
    from flax import optim
    from jax.experimental import optimizers as old_optimizers

    def train(params, batches, config, limit):
        optimizer = optim.Adam(0.1).create(params)
        for batch in batches:
            grads = jax.grad(loss_fn)(optimizer.target, batch)
{lines}
            optimizer = optimizer.apply_gradient(grads)
        return optimizer
    """
SQUARES = [
    "jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)]))",
    "jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree_leaves(grads)))",
    "jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree_util.tree_leaves(grads)))",
    "jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree_util.tree_leaves(grads)))",
    "optax.global_norm(grads)",
    "old_optimizers.l2_norm(grads)",
]
NORM = f"norm = {SQUARES[0]}"
SCALED = "grads = jax.tree_util.tree_map(lambda g: g * factor, grads)"
LINES = {
    "CLIPPED": f"NORM\nfactor = jnp.minimum(1.0, limit / norm)\n{SCALED}",
    "NORM": NORM,
    "BY_VALUE": "grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -limit, limit), grads)",
}
"""Lines by a name that they have in tests."""


def closed(text: str) -> str:
    """The same loop over what is in view alone, so that nothing else can change a configuration."""
    loss = "def loss_fn(params, batch):\n        return jnp.vdot(params, params) * batch\n\n    def train("
    return text.replace("in batches:", "in range(10):").replace("def train(", loss)


def program(lines: str) -> str:
    """A training loop with these lines between the gradient and the step."""
    for name, line in LINES.items():
        for spaces in ("    ", ""):
            lines = lines.replace(f"{spaces}{name}", indent(line, spaces))
    return PROGRAM.replace("{lines}", indent(lines, " " * 12))


LEFT = """
== a norm of the gradients as they were
-
NORM
grads = jax.tree_util.tree_map(lambda g: 2 * g, grads)
grads = jax.tree_util.tree_map(lambda g: g * jnp.minimum(1.0, limit / norm), grads)
== the branch does more
the branch that clips does more than that
if limit:
    CLIPPED
    print('clipped')
== a limit that the step computes
`limit` has more than one value
limit = limit * 0.9
BY_VALUE
== two limits
-
grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -config.low, config.high), grads)
== a limit that the loop changes
`config.limit` at train.py:11 may be another when the optimizer is made
grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -config.limit, config.limit), grads)
config.limit = 0.9 * config.limit
== a limit of an object that others have
`config.limit` at train.py:11 may be another when the optimizer is made
grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -config.limit, config.limit), grads)
tune(config)
== a part is set behind the clipping
the clipped gradients are read at train.py:12, too
BY_VALUE
grads['bias'] = 0.0
== a condition that advances something
its condition may do more than to tell whether to clip
if next(flags):
    BY_VALUE
== what tells the leaves apart
-
grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -limit, limit), grads, is_leaf=is_pair)
"""


@pytest.mark.parametrize(("why", "lines"), table(LEFT, values=2))
def test_what_stays_beside_the_transformation(why: str, lines: str) -> None:
    result = result_of(program(lines))

    assert {site.status for site in result.sites} == {"rewritten"}
    assert b"tx=optax.adam(0.1)" in result.after
    notes = {site.note for site in result.sites} - {""}
    said = f"The gradients are clipped before this step, and not by a link of the chain: {why}."
    assert notes == (set() if why == "-" else {said})


def test_what_is_clipped_is_still_the_same_at_the_step() -> None:
    clipped = LINES["BY_VALUE"].replace("grads =", "clipped =")
    kept = program(clipped).replace("apply_gradient(grads)", "apply_gradient(clipped)")
    changed = kept.replace(clipped, f"{clipped}; grads = jnp.tanh(grads)")

    assert "optax.chain(optax.clip(limit), optax.adam(0.1))" in migrated(kept)
    result = result_of(changed)
    assert b"apply_gradients(grads=clipped)" in result.after
    assert "what is clipped is used at train.py:11 again" in notes_of(result)


def test_gradients_that_the_next_round_reads_stay_clipped() -> None:
    loop = "        for batch in batches:\n"
    text = program("CLIPPED").replace(loop, f"{loop}            print(grads)\n")
    result = result_of(text)

    assert b"tx=optax.adam(0.1)" in result.after
    assert "the clipped gradients are read at train.py:10, too" in notes_of(result)


def test_a_step_that_does_not_clip_keeps_the_others_from_it() -> None:
    other = "optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target, batch))"
    text = program("CLIPPED").replace("return optimizer", f"return {other}")
    result = result_of(text)

    assert b"tx=optax.adam(0.1)" in result.after
    [noted] = [site for site in result.sites if site.note]
    assert "the optimizer takes steps at several places" in noted.note
    assert noted.code == "FO204"
    assert noted.line < max(site.line for site in result.sites)


def notes_of(result: FileResult) -> str:
    return "".join(site.note for site in result.sites)


@pytest.mark.parametrize("norm", SQUARES)
def test_norms(norm: str) -> None:
    result = migrated(program("CLIPPED").replace(NORM, f"norm = {norm}"))

    link = "optax.chain(optax.clip_by_global_norm(limit), optax.adam(0.1))"
    assert link in " ".join(result.split())
    assert "tree_map" not in result.partition("def train")[2]
    assert "norm =" not in result
    assert migrated(result) == result


SCALED_BY = ["g * jnp.minimum(1.0, limit / norm)", "jnp.minimum(limit / norm, 1) * g"]


@pytest.mark.parametrize("scaled", SCALED_BY)
@pytest.mark.parametrize(
    "limit", ["limit", "config.grad_clip", "config['clip']", "5.0"]
)
def test_forms_that_are_the_same_for_every_limit(scaled: str, limit: str) -> None:
    line = f"grads = jax.tree_util.tree_map(lambda g: {scaled.replace('limit', limit)}, grads)"
    after = " ".join(migrated(closed(program(f"NORM\n{line}"))).split())

    assert f"optax.chain(optax.clip_by_global_norm({limit}), optax.adam(0.1))" in after
    assert line not in after


OTHER_FORMS = [
    "g * jnp.minimum(1.0, limit / (norm + 1e-6))",
    "g / norm * limit",
    "jnp.where(norm > limit, g / norm * limit, g)",
    "g * min(1.0, limit / norm)",
    "jnp.where(norm < limit, g, (limit / norm) * g)",
    "g / jnp.maximum(1.0, norm / limit)",
    "g * jnp.minimum(2.0, limit / norm)",
    "g * jnp.minimum(True, limit / norm)",
    "g * jnp.maximum(1.0, limit / norm)",
]


@pytest.mark.parametrize("scaled", OTHER_FORMS)
def test_forms_that_are_not_stay(scaled: str) -> None:
    line = f"grads = jax.tree_util.tree_map(lambda g: {scaled}, grads)"
    result = result_of(program(f"NORM\n{line}"))

    assert line.encode() in result.after
    why = "nothing shows that `optax.clip_by_global_norm` does the same for all norms"
    assert why in notes_of(result)


@pytest.mark.parametrize(
    "guard", ["limit", "limit > 0", "limit is not None", "limit and limit > 0"]
)
def test_a_condition_is_one_of_the_link(guard: str) -> None:
    result = migrated(program(f"if {guard}:\n    CLIPPED"))

    link = f"optax.clip_by_global_norm(limit) if {guard} else optax.identity()"
    assert f"optax.chain( {link}, optax.adam(0.1), )" in " ".join(result.split())
    assert f"if {guard}:" not in result


OTHER_NUMBERS = [
    "sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)])",
    "jnp.sqrt(sum([jnp.mean(g ** 2) for g in jax.tree_util.tree_leaves(grads)]))",
    "jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(params)]))",
    "jnp.sqrt(sum(jnp.sum(jnp.abs(g)) for g in jax.tree_util.tree_leaves(grads)))",
    "jnp.sqrt(sum(jnp.sum(g ** 2) / 2 for g in jax.tree_util.tree_leaves(grads)))",
    "jnp.sqrt(sum(jnp.sum(g ** 2, axis=0) for g in jax.tree_util.tree_leaves(grads)))",
    "jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree_util.tree_leaves(grads) if g.ndim))",
    "jnp.sqrt(sum(jnp.sum(g ** 3) for g in jax.tree_util.tree_leaves(grads)))",
    "jnp.sqrt(sum(weights))",
    "jnp.sqrt(limit)",
    "jnp.linalg.norm(grads)",
]


@pytest.mark.parametrize("norm", OTHER_NUMBERS)
def test_what_is_no_norm(norm: str) -> None:
    result = migrated(program("CLIPPED").replace(NORM, f"norm = {norm}"))

    assert "tx=optax.adam(0.1)" in result
    assert f"norm = {norm}\n" in result


def test_what_logs_the_norm_stays() -> None:
    result = migrated(program("CLIPPED\nprint(norm)"))

    assert "clip_by_global_norm(limit)" in result
    assert NORM in result
    assert "factor" not in result


def test_the_functions_of_old_optimizers_clip_so() -> None:
    line = "grads = old_optimizers.clip_grads(grads, config.clip)\n"
    result = migrated(closed(program(line)))

    assert "clip_by_global_norm(config.clip)" in result
    assert "clip_grads" not in result


def test_a_link_goes_before_the_weight_decay_and_the_groups() -> None:
    text, adam = program("CLIPPED"), "optim.Adam(0.1)"
    momentum = text.replace(adam, "optim.Momentum(0.1, weight_decay=0.01)")
    group = f"(optim.ModelParamTraversal(chosen), {adam})"
    groups = text.replace(adam, f"optim.MultiOptimizer({group})")

    chain = "optax.chain( optax.clip_by_global_norm(limit), optax.add_decayed_weights(0.01), optax.sgd("
    assert chain in " ".join(migrated(momentum).split())
    partition = "optax.chain(optax.clip_by_global_norm(limit), partition_by_path((chosen, optax.adam(0.1))))"
    assert partition in " ".join(migrated(groups).split())


def test_the_schedule_and_the_limit_go_to_the_constructor_together() -> None:
    result = migrated("""
        import functools
        import jax
        import jax.numpy as jnp
        from flax import optim

        def create(params):
            return optim.Adam(weight_decay=0.1).create(params)

        def train_step(optimizer, batch, schedule, max_norm=None):
            grads = jax.grad(loss_fn)(optimizer.target, batch)
            if max_norm is not None:
                norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)]))
                grads = jax.tree_util.tree_map(lambda g: g * jnp.minimum(1.0, max_norm / norm), grads)
            return optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))

        def train(params, batches, config):
            schedule = lambda step: config.rate / (step + 1)
            optimizer = create(params)
            step = jax.jit(functools.partial(train_step, schedule=schedule, max_norm=config.max_norm))
            for batch in batches:
                optimizer = step(optimizer, batch)
            return optimizer
        """)

    assert "def create(params, max_norm, schedule):" in result
    assert "def train_step(optimizer, batch):" in result
    assert "optimizer = create(params, config.max_norm, schedule)" in result
    assert "step = jax.jit(train_step)" in result
    assert "functools" not in result
    assert migrated(result) == result


def test_a_schedule_that_moves_ahead_of_an_optimizer_that_clips() -> None:
    result = migrated("""
        import jax
        import optax
        from flax import optim
        from jax.experimental.optimizers import clip_grads

        def train(params, batches, base):
            optimizer = optim.Adam(0.1).create(params)
            schedule = optax.linear_schedule(base, 0.0, 1000)
            for batch in batches:
                grads = jax.grad(loss_fn)(optimizer.target, batch)
                grads = clip_grads(grads, 1.0)
                optimizer = optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """)

    assert result.endswith("""
def train(params, batches, base):
    schedule = optax.linear_schedule(base, 0.0, 1000)
    optimizer = train_state.TrainState.create(
        apply_fn=None,
        params=params,
        tx=optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)),
    )
    for batch in batches:
        grads = jax.grad(loss_fn)(optimizer.params, batch)
        optimizer = optimizer.apply_gradients(grads=grads)
    return optimizer
""")


def test_moments_that_are_read_are_no_reason_to_clip_elsewhere() -> None:
    read = "return optimizer, optimizer.state.param_states"
    text = program("BY_VALUE").replace("return optimizer", read)
    assert_left(text.replace("optim.Adam(", "optim.Adafactor("), "FO906")


def test_on_demand_clipping_stays() -> None:
    result = migrated(program("CLIPPED"), Options(ignore=("FO502",)))

    assert "tx=optax.adam(0.1)" in result
    assert SCALED in result


def test_two_steps_whose_limits_are_alike_and_not_one_variable() -> None:
    step = """
        def train_step(optimizer, batch, limit=None):
            grads = jax.grad(loss_fn)(optimizer.target, batch)
            if limit:
                norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)]))
                grads = jax.tree_util.tree_map(lambda g: jnp.minimum(1.0, limit / norm) * g, grads)
            return optimizer.apply_gradient(grads)
"""
    text = f"""
        import jax
        import jax.numpy as jnp
        from flax import optim

        def create(params):
            return optim.Adam(0.1).create(params)
{step}{step}
        def main(params, batches, config):
            optimizer = create(params)
            for batch in batches:
                optimizer = train_step(optimizer, batch, limit=config["limit"])
            return optimizer
        """
    assert "def train_step(optimizer, batch" in migrated(text)


def test_a_chain_is_laid_out_as_the_constructor_was() -> None:
    new = migrated("""
        import jax
        import jax.numpy as jnp
        from flax import optim

        def train(params, batches, loss_fn):
            optimizer = optim.Momentum(
                0.1, beta=0.9
            ).create(params)
            for batch in batches:
                grads = jax.grad(loss_fn)(optimizer.target, batch)
                grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -1.0, 1.0), grads)
                optimizer = optimizer.apply_gradient(grads)
            return optimizer.target
        """)
    transformation = """
        tx=optax.chain(
            optax.clip(1.0),
            optax.sgd(0.1, momentum=0.9)
        ),
"""
    assert transformation in new


HOOKED = """
    import lab
    from flax import optim
    from jax.example_libraries.optimizers import clip_grads

    LIMITS = {{"clip": 1.0}}
    lab.configure(LIMITS)

    def idle(number):
        pass

    def fit(params, grads, hook):
        optimizer = optim.Adam(0.1).create(params)
        for number, grad in enumerate(grads):
            hook({given})
            grad = clip_grads(grad, LIMITS["clip"])
            optimizer = optimizer.apply_gradient(grad)
        return optimizer.target

    fit({{}}, [], {first})
    fit({{}}, [], {second})
    """


@pytest.mark.parametrize(
    ("first", "second", "given", "is_link"),
    [
        ("idle", "idle", "LIMITS", True),
        ("idle", "lab.hook", "number", True),
        ("idle", "lab.hook", "LIMITS", False),
        ("lab.hook", "idle", "LIMITS", False),
        ("idle", "idle if lab else lab.hook", "LIMITS", False),
    ],
)
def test_a_function_that_may_be_one_of_a_library_may_change_what_it_is_given(
    first: str, second: str, given: str, is_link: bool
) -> None:
    after = migrated(HOOKED.format(first=first, second=second, given=given))
    assert ("optax.clip_by_global_norm" in after) is is_link
    assert ("clip_grads(grad" in after) is not is_link


LIMITS = {
    "once": ("", True),
    "once, and again as an attribute": ("import limits\nlimits.LIMIT = 2.0\n", False),
    "by a name of its own": ("LIMIT = 2.0\n", False),
}


@pytest.mark.parametrize(("more", "is_link"), LIMITS.values(), ids=LIMITS)
def test_a_limit_that_the_factory_and_the_step_import_is_set(
    more: str, is_link: bool
) -> None:
    train = """
        from flax import optim
        from limits import LIMIT
        from steps import train_step

        def train(params, grads):
            optimizer = optim.Adam(0.1).create(params)
            for grad in grads:
                optimizer = train_step(optimizer, grad)
            return optimizer
        """
    files = project(
        {
            "limits": "LIMIT = 1.0",
            "steps": """
                import jax
                import jax.numpy as jnp
                from limits import LIMIT

                def train_step(optimizer, grads):
                    grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -LIMIT, LIMIT), grads)
                    return optimizer.apply_gradient(grads)
                """,
            "train": dedent(train) + more,
        }
    )
    link = b"optax.chain(optax.clip(LIMIT), optax.adam(0.1))"
    assert (link in files["train"].after) is is_link
    assert (b"jnp.clip" in files["steps"].after) is not is_link
