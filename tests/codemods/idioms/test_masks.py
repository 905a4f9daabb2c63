"""Groups that differ in weight decay alone. First, those that stay groups."""

from __future__ import annotations

import pytest

from codemods import Options
from codemods.optimizers import optimizers
from tests.codemods.programs import migrated, result_of

GROUPS = """
    def create(params, config, words):
        return optim.MultiOptimizer(
            (optim.ModelParamTraversal({first}), optim.{one}),
            (optim.ModelParamTraversal({second}), optim.{other}),
        ).create(params)

    def step(optimizer, grads):
        return optimizer.apply_gradient(grads)
    """
KERNELS, OTHERS = (
    "lambda path, _: 'kernel' in path",
    "lambda path, _: 'kernel' not in path",
)


def groups(
    first: str = KERNELS, second: str = OTHERS, one: str = "", other: str = ""
) -> str:
    """A program with a MultiOptimizer of two groups."""
    texts = {
        "{first}": first,
        "{second}": second,
        "{one}": one or "Adam(0.1, weight_decay=0.01)",
        "{other}": other or "Adam(0.1)",
    }
    program = GROUPS
    for hole, text in texts.items():
        program = program.replace(hole, text)
    return program


ENDING = """
    from names import simplified as str

    once = map(str.lower, ["Bias", "Scale"])
    lower = (word.lower() for word in ["Bias", "Scale"])

    def args_end_so(path, _):
        return path.endswith('/bias')
"""
NOT_OPPOSITE = [
    (KERNELS, "lambda path, _: 'bias' in path"),
    (KERNELS, "lambda path, _: 'kernel' in path"),
    (KERNELS, "lambda path, _: '/kernel' not in path"),
    ("lambda path, _: 'a' in path and 'b' in path", "lambda path, _: 'a' not in path and 'b' not in path"),
    (
        "lambda path, _: any(word in path for word in words)",
        "lambda path, _: any(word not in path for word in words)",
    ),
    (
        "lambda path, _: any(w in path for w in words)",
        "lambda path, _: all(w not in path for w in words[1:])",
    ),
    ("lambda path, _: any(w in path for w in words)", "lambda path, _: all(w not in path for w in words)"),
    (
        "lambda path, _: any(w in path for w in words if w)",
        "lambda path, _: all(w not in path for w in words)",
    ),
    ("lambda path, _: path in words", "lambda path, _: not words in path"),
    ("lambda path, value: value is None", "lambda path, value: path is not None"),
    ("lambda path, _: config.chooses(path)", "lambda path, _: not config.chooses(path)"),
    ("lambda path: 'kernel' in path", "lambda path: 'kernel' not in path"),
    ("lambda path, _: 0 < len(path) < 3", "lambda path, _: not 0 < len(path) < 3"),
    ("lambda path, _: args_end_so(*words)", "lambda path, _: not args_end_so(*words)"),
    ("lambda path, _: any(w in path for w in lower)", "lambda path, _: all(w not in path for w in lower)"),
    ("lambda path, _: any(w in path for w in once)", "lambda path, _: all(w not in path for w in once)"),
    ("lambda path, _: str(path) == 'a'", "lambda path, _: str(path) != 'a'"),
    ("lambda path, _: words.count(path) == 1", "lambda path, _: words.count(path) != 1"),
    ("lambda _, value: value.sum() == 0", "lambda _, value: value.sum() != 0"),
    ("lambda _, value: value[0] == 0", "lambda _, value: value[0] != 0"),
    ("lambda _, value: value.T == 0", "lambda _, value: value.T != 0"),
    ("lambda path, _: args_end_so(path + '/', _)", "lambda path, _: not args_end_so(path + '/', _)"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), NOT_OPPOSITE)
def test_predicates_that_are_no_negations_of_each_other(
    first: str, second: str
) -> None:
    result = result_of(groups(first, second) + ENDING)

    assert b"partition_by_path(" in result.after
    [note] = {site.note for site in result.sites} - {""}
    assert note == (
        "Its groups differ in weight decay alone, and stay groups: "
        "nothing shows that each parameter is in just one of its two groups."
    )


OTHERWISE_DIFFERENT = [
    ("Adam(0.1, weight_decay=0.01)", "Adam(0.2)"),
    ("Adam(0.1, weight_decay=0.01)", "Adam(0.1, beta1=0.8)"),
    ("Adam(0.1, weight_decay=0.01)", "Adam(0.1, weight_decay=0.02)"),
    ("Adam(0.1)", "Adam(0.1, weight_decay=0.0)"),
    ("Adam(0.1, weight_decay=0.01)", "Adam(0.1, weight_decay=config.decay)"),
    ("Adam(0.1, weight_decay=0.01)", "AdaBelief(0.1)"),
    ("LARS(0.1, weight_decay=0.01)", "LARS(0.1)"),
    ("Adam(config.pop(), weight_decay=0.01)", "Adam(config.pop(0))"),
]


@pytest.mark.parametrize(("one", "other"), OTHERWISE_DIFFERENT)
def test_groups_that_differ_in_more_or_in_nothing(one: str, other: str) -> None:
    result = result_of(groups(one=one, other=other))

    assert b"partition_by_path(" in result.after
    assert {site.note for site in result.sites} == {""}


def test_a_state_that_is_looked_into_keeps_its_groups() -> None:
    text = groups().replace(
        "return optimizer.apply_gradient(grads)",
        "optimizer = optimizer.apply_gradient(grads)\n        return optimizer, optimizer.state[0].param_states",
    )
    result = result_of(
        text
        + "\n\n    def train(params, grads):\n        return step(create(params, None, ()), grads)\n"
    )

    assert not result.changed
    assert {site.note for site in result.sites} == {""}


def test_definitions_that_are_used_elsewhere_stay() -> None:
    result = result_of(
        """
        def create(params, others):
            kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
            rest = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
            decay, plain = optim.Adam(0.1, weight_decay=0.01), optim.Adam(0.1)
            no_decay = optim.Adam(0.1)
            decays = optim.Adam(0.1, weight_decay=0.01)
            optimizer = optim.MultiOptimizer((kernels, decays), (rest, no_decay)).create(params)
            return optimizer, no_decay.create(others)
        """
    )

    assert b"partition_by_path(" in result.after
    notes = {site.note for site in result.sites} - {""}
    assert notes == {
        "Its groups differ in weight decay alone, and stay groups: `no_decay` is used elsewhere, too."
    }


PARTS = """
    def create(params, config, lr):
        {lines}
        return optim.MultiOptimizer({groups}).create(params)
    """
KERNEL_PART, OTHER_PART = (
    f"optim.ModelParamTraversal({KERNELS})",
    f"optim.ModelParamTraversal({OTHERS})",
)


def parts(lines: str, groups: str) -> str:
    """A program that makes parts of a MultiOptimizer before, line by line."""
    return PARTS.replace("{lines}", lines.replace("\n", "\n        ")).replace(
        "{groups}", groups
    )


CHANGED_BETWEEN = {
    "a variable, the other way round": (
        "plain = optim.Adam(lr)\nlr = lr / 10\ndecays = optim.Adam(lr, weight_decay=0.01)",
        f"({KERNEL_PART}, decays), ({OTHER_PART}, plain)",
    ),
    "an element that both take out": (
        "",
        f"({KERNEL_PART}, optim.Adam(config.pop(), weight_decay=0.01)), ({OTHER_PART}, optim.Adam(config.pop()))",
    ),
}


@pytest.mark.parametrize(
    ("lines", "groups"), CHANGED_BETWEEN.values(), ids=CHANGED_BETWEEN
)
def test_arguments_that_read_alike_and_are_not_the_same(
    lines: str, groups: str
) -> None:
    result = result_of(parts(lines, groups))

    assert b"partition_by_path(" in result.after
    assert {site.note for site in result.sites} == {""}


DECAY_LATER = "decay = config.decay\ndecays = optim.Adam(0.1, weight_decay=decay)\ndecay = decay / 2\nprint(decay)"


def test_an_optimizer_that_cannot_be_made_later_stays() -> None:
    result = result_of(
        parts(DECAY_LATER, f"({KERNEL_PART}, decays), ({OTHER_PART}, optim.Adam(0.1))")
    )

    assert b"partition_by_path(" in result.after
    [note] = {site.note for site in result.sites} - {""}
    assert note == (
        "Its groups differ in weight decay alone, and stay groups: what its optimizer is made of changes in between."
    )


def test_a_part_that_is_alone_in_its_block_stays() -> None:
    result = migrated(
        parts(
            f"with config:\n    others = {OTHER_PART}",
            f"({KERNEL_PART}, optim.Adam(0.1, weight_decay=0.01)), (others, optim.Adam(0.1))",
        )
    )

    assert (
        "    with config:\n        others = lambda path, _: 'kernel' not in path\n"
        in result
    )
    assert "mask=mask_by_path(" in result


def test_a_lambda_with_a_name_stays() -> None:
    result = migrated(
        parts(
            f"is_kernel = {KERNELS}\nis_other = {OTHERS}",
            "(optim.ModelParamTraversal(is_kernel), optim.Adam(0.1, weight_decay=0.01)), "
            "(optim.ModelParamTraversal(is_other), optim.Adam(0.1))",
        )
    )

    assert f"    is_kernel = {KERNELS}\n    is_other = {OTHERS}\n" in result
    assert "mask=mask_by_path(is_kernel)" in result


def test_rates_that_every_step_overrides_are_no_difference() -> None:
    result = migrated(
        """
        def train(params, grads, schedule):
            optimizer = optim.MultiOptimizer(
                (optim.ModelParamTraversal(lambda path, _: "kernel" in path), optim.Adam(0.1, weight_decay=0.01)),
                (optim.ModelParamTraversal(lambda path, _: "kernel" not in path), optim.Adam(0.2)),
            ).create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state[0].step))
            return optimizer
        """
    )

    assert (
        'tx=optax.adamw(schedule, weight_decay=0.01, mask=mask_by_path(lambda path, _: "kernel" in path)),'
        in result
    )


def test_a_comment_behind_the_decay_stays_there() -> None:
    result = migrated(
        """
        def create(params):
            kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
            others = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
            decaying = optim.Adam(
                0.1,
                weight_decay=0.01,  # tuned
                eps=1e-6,
            )
            plain = optim.Adam(0.1, eps=1e-6)
            return optim.MultiOptimizer((kernels, decaying), (others, plain)).create(params)
        """
    )

    [*_, decay, mask, epsilon, _, _] = result.splitlines()
    assert [line.strip() for line in (decay, mask, epsilon)] == [
        "weight_decay=0.01,  # tuned",
        "mask=mask_by_path(kernels),",
        "eps=1e-6,",
    ]


OPPOSITE = [
    (KERNELS, OTHERS),
    (OTHERS, KERNELS),
    (KERNELS, "lambda key, value: not 'kernel' in key"),
    ("lambda path, _: 'a' in path or 'b' in path", "lambda path, _: 'a' not in path and 'b' not in path"),
    (
        "lambda p, _: any(word in p for word in ('b', 'c'))",
        "lambda p, _: all(w not in p for w in ('b', 'c'))",
    ),
    (
        "lambda p, _: not any([word in p for word in ['b']])",
        "lambda p, _: any([word in p for word in ['b']])",
    ),
    ("lambda p, _: p.split('/')[-1] == 'bias'", "lambda p, _: p.split('/')[-1] != 'bias'"),
    ("lambda p, _: p.endswith('/bias')", "lambda *args: not args_end_so(*args)"),
    ("lambda p, _: not args_end_so(p, _)", "lambda p, _: p.endswith('/bias')"),
    ("lambda _, value: value.ndim > 1", "lambda _, value: not value.ndim > 1"),
    ("lambda _, value: len(value.shape) == 2", "lambda _, value: len(value.shape) != 2"),
    (
        "lambda p, _: p.strip('/').split('/')[0].isupper()",
        "lambda p, _: not p.strip('/').split('/')[0].isupper()",
    ),
    ("lambda p, _: p.split('/')[0] in ('a', 'b')", "lambda p, _: p.split('/')[0] not in ('a', 'b')"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), OPPOSITE)
def test_predicates_that_are_negations_of_each_other(first: str, second: str) -> None:
    text = groups(first, second) + ENDING
    result = migrated(text)

    assert (
        f"tx=optax.adamw(0.1, weight_decay=0.01, mask=mask_by_path({first}))"
        in " ".join(result.split())
    )
    assert "partition" not in result
    assert second not in result
    assert migrated(result) == result


@pytest.mark.parametrize("name", ["AdaBelief", "Adadelta", "Adam", "LAMB", "Momentum"])
@pytest.mark.parametrize("form", ["alias", "chain"])
def test_each_optimizer_whose_decay_is_a_link_of_its_own(name: str, form: str) -> None:
    assert name in optimizers()
    options = Options(form="chain" if form == "chain" else "alias")
    result = migrated(
        groups(one=f"{name}(0.1)", other=f"{name}(0.1, weight_decay=config.decay)"),
        options,
    )

    assert f"mask=mask_by_path({OTHERS})" in " ".join(result.split())
    assert "partition" not in result


def test_named_parts_move_to_where_the_groups_were_put_together() -> None:
    result = migrated(
        """
        def create(params, config):
            def excluded(path, _):
                return "bias" in path or "norm" in path

            # Adam, twice.
            decay_def = optim.Adam(config.lr, weight_decay=config.decay)
            no_decay_def = optim.Adam(config.lr, weight_decay=0)
            # Biases do not decay.
            decay = optim.ModelParamTraversal(lambda *args: not excluded(*args))
            no_decay = optim.ModelParamTraversal(excluded)

            optimizer_def = optim.MultiOptimizer((decay, decay_def), (no_decay, no_decay_def))
            return optimizer_def.create(params)
        """
    )

    assert result.endswith(
        """
def create(params, config):
    def excluded(path, _):
        return "bias" in path or "norm" in path

    # Adam, twice.
    # Biases do not decay.
    decay = lambda *args: not excluded(*args)

    optimizer_def = optax.adamw(
        config.lr, weight_decay=config.decay, mask=mask_by_path(decay)
    )
    return train_state.TrainState.create(apply_fn=None, params=params, tx=optimizer_def)
"""
    )


def test_a_file_in_which_the_name_of_the_mask_is_taken_has_the_general_forms() -> None:
    result = result_of(
        """
        from flax import optim
        from jax.experimental.optimizers import clip_grads

        def mask_by_path(params):
            return {path: value for path, value in params.items() if value is not None}

        def create(params):
            return optim.MultiOptimizer(
                (optim.ModelParamTraversal(lambda path, _: "kernel" in path), optim.Adam(0.1, weight_decay=0.01)),
                (optim.ModelParamTraversal(lambda path, _: "kernel" not in path), optim.Adam(0.1)),
            ).create(params)

        def train(params, others, grads, schedule):
            optimizer = create(params)
            other = optim.Adam(0.1).create(others)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad)
                grad = clip_grads(grad, 1.0)
                other = other.apply_gradient(grad, learning_rate=schedule(other.state.step))
            return optimizer, other
        """
    )

    assert {site.status for site in result.sites} == {"rewritten"}
    [note] = {site.note for site in result.sites if site.code == "FO204"} - {""}
    why = "the file could not be rewritten in this form"
    assert note == (
        f"The learning rate is set before this step, and is no schedule: {why}. "
        f"The gradients are clipped before this step, and not by a link of the chain: {why}."
    )
    after = result.after.decode()
    assert (
        '(lambda path, _: "kernel" in path, optax.adamw(0.1, weight_decay=0.01)),'
        in after
    )
    assert "grad = clip_grads(grad, 1.0)\n" in after
    assert "learning_rate=schedule(jnp.asarray(other.step, jnp.int32))" in after


def test_on_demand_the_groups_stay() -> None:
    assert "partition_by_path(" in migrated(groups(), Options(ignore=("FO304",)))
