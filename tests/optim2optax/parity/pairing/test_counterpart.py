"""What the new tree has where `rewrite` would put an optimizer: which belongs to which, and what it rests on there."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from codemods import Source, migrate
from codemods.model import EmittedOptimizer
from optim2optax.parity.cases import optimizer_case
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.pairing.counterpart import Pairing
from tests.optim2optax.parity.differences import SAME

pytestmark = pytest.mark.usefixtures("legacy_wheel", "judged")

Now = Callable[..., tuple[EmittedOptimizer, ...]]


@pytest.fixture
def now() -> Now:
    """The optimizers of a program in the new tree: what `rewrite` makes of the old one, with texts exchanged."""

    def build(
        program: str, changes: dict[str, str], **others: tuple[str, str]
    ) -> tuple[EmittedOptimizer, ...]:
        before = {f"{name}.py": text.encode() for name, (text, _) in others.items()}
        before["train.py"] = dedent(program).encode()
        results = migrate([Source(name, text) for name, text in before.items()])
        by_path = {result.path: result for result in results}
        text = by_path["train.py"].after.decode()
        for one, other in changes.items():
            assert one in text, text
            text = text.replace(one, other)
        after = {result.path: result.after for result in results}
        after |= {f"{name}.py": text.encode() for name, (_, text) in others.items()}
        after["train.py"] = text.encode()
        return Pairing(before, after, by_path).in_new_tree("train.py")

    return build


def outcomes(found: tuple[EmittedOptimizer, ...]) -> list[Verdict]:
    cases = [optimizer_case(emitted.name, emitted, 12, 0) for emitted in found]
    return [case.outcome for case in cases]


TWINS = """
    from flax import optim

    def create(generator, discriminator, lr):
        gen = optim.Adam(lr, beta1=0.5).create(generator)
        disc = optim.Adam(lr, beta1=0.5).create(discriminator)
        return gen, disc
    """
DISC = "params=discriminator, tx=optax.adam(lr, b1=0.5)"


OTHERS = TWINS.replace("disc = optim.Adam(lr, beta1=0.5)", "disc = optim.Momentum(lr)")
EXCHANGED = {
    "    gen = train_state": "    disc = train_state.TrainState.create(\n        apply_fn=None, params=discriminator, "
    "tx=optax.sgd(lr, momentum=0.9)\n    )\n    gen = train_state",
    "    disc = train_state.TrainState.create(\n        apply_fn=None, params=discriminator, tx=optax.sgd(lr, momentum=0.9)\n"
    "    )\n    return": "    return",
}
PAIRED = {
    "each with its own": (TWINS, {DISC: DISC.replace("0.5", "0.6")}, [True, False], ""),
    "in another order": (OTHERS, EXCHANGED, [True, True], ""),
    "one without a counterpart": (
        TWINS,
        {DISC: "params=discriminator, tx=make(lr)"},
        [True, False],
        "the new tree has no transformation at this place",
    ),
    "one that is nobody's": (
        TWINS,
        {"    return gen": "    third = optax.sgd(lr)\n    return gen"},
        [True, True, False],
        "no optimizer of the old tree",
    ),
}


@pytest.mark.parametrize(
    ("program", "changes", "same", "why"), PAIRED.values(), ids=PAIRED
)
def test_twins(
    now: Now, program: str, changes: dict[str, str], same: list[bool], why: str
) -> None:
    found = now(program, changes)
    cases = [optimizer_case("case", emitted, 12, 0) for emitted in found]
    assert [case.outcome in SAME for case in cases] == same
    if not all(same):
        expected = Verdict.COULD_NOT_RUN if why else Verdict.DIFFERENT
        assert cases[-1].outcome is expected
        assert why in cases[-1].reason


def by_hand(old: dict[str, str], new: dict[str, str]) -> list[EmittedOptimizer]:
    """The optimizers of an old tree, and what a person has made of them."""
    before, after = (
        {f"{name}.py": dedent(text).encode() for name, text in side.items()}
        for side in (old, new)
    )
    found = migrate([Source(path, text) for path, text in before.items()])
    pairing = Pairing(before, after, {result.path: result for result in found})
    paths = dict.fromkeys((*before, *after))
    return [one for path in paths for one in pairing.in_new_tree(path)]


def verdicts(old: dict[str, str], new: dict[str, str]) -> list[Verdict]:
    return outcomes(tuple(by_hand(old, new)))


GAN = """
    from flax import optim

    def init(generator, discriminator):
        g_opt = optim.Adam(2e-4, beta1=0.5).create(generator)
        d_opt = optim.Adam(1e-3).create(discriminator)
        return g_opt, d_opt
    """
SPLIT = """
    import optax

    d_tx = optax.adam({})
    g_tx = optax.adam({})
    """


def test_names_tell_which_belong_together_in_any_order_and_file() -> None:
    old = {"train": GAN}
    right = SPLIT.format("1e-3", "2e-4, b1=0.5")
    swapped = SPLIT.format("2e-4, b1=0.5", "1e-3")
    for file in ("train", "models"):
        assert {*verdicts(old, {file: right})} <= {*SAME}
        assert verdicts(old, {file: swapped}) == [Verdict.DIFFERENT] * 2


def test_those_that_nothing_tells_apart_are_not_paired() -> None:
    new = SPLIT.replace("d_tx", "first").replace("g_tx", "second")
    found = verdicts({"train": GAN}, {"train": new.format("1e-2", "2e-2")})
    assert {*found} == {Verdict.COULD_NOT_RUN}


FOCUSED = """
    from flax import optim

    def build(params):
        head = optim.ModelParamTraversal(lambda path, _: path.startswith("/head"))
        return optim.Momentum(0.1).create(params, focus=head)
    """
APART = {
    "in one call": FOCUSED,
    "made before": FOCUSED.replace("optim.Momentum(0.1).", "made.").replace(
        "head =", "made = optim.Momentum(0.1)\n        head ="
    ),
}
FROZEN = """
    import jax
    import optax

    def labels(params):
        return jax.tree_util.tree_map_with_path(
            lambda path, _: "train" if path[0].key == "head" else "freeze", params
        )

    def build(params):
        groups = {"train": optax.sgd(0.1, 0.9), "freeze": optax.set_to_zero()}
        return optax.multi_transform(groups, labels)
    """
WHOLE = "import optax\n\ndef build(params):\n    return optax.sgd(0.1, 0.9)\n"


@pytest.mark.parametrize("program", APART.values(), ids=APART)
def test_what_has_a_focus_leaves_the_rest(program: str) -> None:
    [found] = verdicts({"train": program}, {"train": FROZEN})
    assert found in SAME
    assert verdicts({"train": program}, {"train": WHOLE}) == [Verdict.DIFFERENT]


FOLLOWED = """
    import jax.numpy as jnp
    from flax import optim

    def rate(step, base=0.1, warmup=5):
        return base * jnp.minimum(1.0, step / warmup)

    def train_step(optimizer, grad):
        return optimizer.apply_gradient(grad, learning_rate={rate})

    def build(params):
        return optim.Momentum(beta=0.9).create(params)
    """
BUILT = (
    "import optax\n\ndef build(params):\n    tx = {}\n    return tx, tx.init(params)\n"
)


KNOWN, GIVEN = "rate(optimizer.state.step)", "next(rates)"
SET = {
    "the same schedule": (KNOWN, "optax.sgd(optax.linear_schedule(0.0, 0.1, 5), 0.9)", Verdict.EQUIVALENT),
    "another one": (KNOWN, "optax.sgd(optax.linear_schedule(0.0, 0.1, 6), 0.9)", Verdict.DIFFERENT),
    "one for unknown rates": (GIVEN, "optax.sgd(optax.linear_schedule(0.0, 0.1, 5), 0.9)", Verdict.COULD_NOT_RUN),
    "a constant for them": (GIVEN, "optax.sgd(0.1, 0.9)", Verdict.DIFFERENT),
    "one that nothing sets": (GIVEN, "optax.inject_hyperparams(optax.sgd)(0.1, 0.9)", Verdict.DIFFERENT),
}  # fmt: skip


@pytest.mark.parametrize(("rate", "tx", "outcome"), SET.values(), ids=SET)
def test_rates_that_old_steps_set(rate: str, tx: str, outcome: Verdict) -> None:
    old = {"train": FOLLOWED.format(rate=rate)}
    assert verdicts(old, {"train": BUILT.format(tx)}) == [outcome]


def test_what_steps_do_is_said_not_to_be_compared() -> None:
    sgd = "optax.inject_hyperparams(optax.sgd)(0.1, 0.9)"
    built = BUILT.format(f"optax.chain(optax.clip(1.0), {sgd})")
    step = "def step(state, rate):\n    state.hyperparams['learning_rate'] = rate\n"
    new = {"train": f"{built}\n\n{step}"}
    [found] = by_hand({"train": FOLLOWED.format(rate="next(rates)")}, new)
    case = optimizer_case("case", found, 12, 0)
    assert case.comparison is not None
    said = " ".join(case.comparison.remarks)
    assert "sets the learning rate as the old one does is not compared" in said
    assert "`optax.clip(1.0)` is no part of the old definition" in said


def test_all_of_a_new_file_are_nobodys() -> None:
    new = b"import optax as ox\n\ntx = ox.adam(ox.constant_schedule(0.1))\n"
    [found] = Pairing({}, {"more.py": new}, {}).in_new_tree("more.py")
    assert optimizer_case("case", found, 12, 0).outcome is Verdict.COULD_NOT_RUN


BY_HAND = """
    from flax import optim

    def create_optimizer(params, learning_rate, beta, decay=1e-4):
        definition = optim.Momentum(learning_rate, beta, weight_decay=decay)
        return definition.create(params)

    def train(params, config):
        return create_optimizer(params, config.learning_rate, config.momentum)
    """
DEFINITION = """    definition = optax.chain(
        optax.add_decayed_weights(decay), optax.sgd(learning_rate, momentum=beta)
    )
"""
CREATED = "    return create_optimizer(params, config.learning_rate, config.momentum)\n"


NONE = {DEFINITION: "    definition = None\n"}
WRITTEN = {
    "as before, with a name of an old optax": "additive_weight_decay(1e-4), optax.sgd(config.learning_rate, config.momentum)",
    "another decay": "additive_weight_decay(2e-4), optax.sgd(config.learning_rate, config.momentum)",
    "no momentum": "add_decayed_weights(1e-4), optax.sgd(config.learning_rate)",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_parameters_are_what_the_calls_in_the_file_give(now: Now, name: str) -> None:
    """As a person migrates: the function goes, and its arguments with it."""
    created = f"    return optax.chain(optax.{WRITTEN[name]})\n"
    [outcome] = outcomes(now(BY_HAND, {**NONE, CREATED: created}))
    assert outcome in (SAME if "as before" in name else (Verdict.DIFFERENT,))


def test_calls_that_are_not_alike_say_nothing_of_a_parameter(now: Now) -> None:
    program = dedent(BY_HAND) + dedent("""
        def warm_up(params, config):
            return create_optimizer(params, config.first_rate, config.momentum)
        """)
    created = "    return optax.sgd(config.learning_rate, config.momentum)\n"
    [emitted] = now(program, {**NONE, CREATED: created})
    case = optimizer_case("case", emitted, 12, 0)
    assert case.outcome is Verdict.COULD_NOT_RUN
    assert "the new code needs `config.learning_rate`" in case.reason


GROUPS = """
    from flax import optim

    DECAY = 0.1

    def create(params, lr):
        decayed = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
        rest = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
        return optim.MultiOptimizer(
            (decayed, optim.Adam(lr, weight_decay=DECAY)), (rest, optim.Momentum(lr))
        ).create(params)
    """
DECAYED = "(decayed, optax.adamw(lr, weight_decay=DECAY))"
WITH_PARTS = {
    "    return train_state": "    kernels = optax.adamw(lr, weight_decay={})\n    return train_state",
    DECAYED: "(decayed, kernels)",
}


def test_parts_are_compared_within_the_whole(now: Now) -> None:
    assert [emitted.name for emitted in now(GROUPS, {})] == ["MultiOptimizer"]


CHANGED = {
    "a predicate": {'decayed = lambda path, _: "kernel" in path': 'decayed = lambda path, _: "Dense_0/kernel" in path'},
    "a constant": {"DECAY = 0.1": "DECAY = 0.2"},
    "a part by its own name": {one: other.format("0.3") for one, other in WITH_PARTS.items()},
    "two parts exchanged":
        {"(decayed, optax.adamw(": "(rest, optax.adamw(", "(rest, optax.sgd(": "(decayed, optax.sgd("},
    "a helper that selects otherwise": {"if selects(path, value)]": "if not selects(path, value)]"},
}  # fmt: skip


@pytest.mark.parametrize("changes", CHANGED.values(), ids=CHANGED)
def test_what_the_new_tree_has_changed_is_what_runs(
    now: Now, changes: dict[str, str]
) -> None:
    assert outcomes(now(GROUPS, changes)) == [Verdict.DIFFERENT]


ONE_NAME = """
    from flax import optim

    def create(params):
        named = optim.ModelParamTraversal(lambda path, _: "NAME" in path)
        return optim.MultiOptimizer((named, optim.GradientDescent(0.1))).create(params)
    """


@pytest.mark.parametrize(
    ("name", "layer"), [("bias", "Dense_0"), ("scale", "BatchNorm_0")]
)
def test_a_predicate_that_leaves_out_another_layer(
    now: Now, name: str, layer: str
) -> None:
    changes = {f'"{name}" in path': f'"{layer}/{name}" in path'}
    found = now(ONE_NAME.replace("NAME", name), changes)
    assert outcomes(found) == [Verdict.DIFFERENT]


KEPT = {
    "a part by its own name": {one: other.format("DECAY") for one, other in WITH_PARTS.items()},
    "optax by another name": {"import optax\n": "import optax\nimport optax as ox\n", "optax.adamw": "ox.adamw"},
    "a name imported from optax": {"import optax\n": "import optax\nfrom optax import adamw\n", "optax.adamw": "adamw"},
    "labels of its own": {
        "    return train_state": """
    kernels = optax.adamw(lr, weight_decay=DECAY)

    def label(params):
        return jax.tree_util.tree_map_with_path(lambda path, _: "kernel" in jax.tree_util.keystr(path), params)

    return train_state""",
        f"partition_by_path(\n            {DECAYED},\n"
        "            (rest, optax.sgd(lr, momentum=0.9)),\n        )": (
            "optax.partition({True: kernels, False: optax.sgd(lr, 0.9)}, label)"
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize("changes", KEPT.values(), ids=KEPT)
def test_another_way_to_write_it_is_the_same_function(
    now: Now, changes: dict[str, str]
) -> None:
    found = now(GROUPS, changes)
    assert [outcome in SAME for outcome in outcomes(found)] == [True]


def test_what_another_file_of_the_new_tree_has_changed_is_what_runs(now: Now) -> None:
    program = GROUPS.replace("DECAY = 0.1", "from common import DECAY")
    found = now(program, {}, common=("DECAY = 0.1\n", "DECAY = 0.2\n"))
    assert outcomes(found) == [Verdict.DIFFERENT]


SAMPLED = """
    from flax import optim

    def create(params, words, lr):
        chosen = tuple(words)

        def is_chosen(path, _):
            return any(word in path for word in chosen)

        return optim.MultiOptimizer((optim.ModelParamTraversal(is_chosen), optim.Adam(lr))).create(params)
    """


def test_a_predicate_of_unknown_words_that_is_another_in_the_new_tree(now: Now) -> None:
    [found] = now(SAMPLED, {"any(word in path": "all(word in path"})
    case = optimizer_case("case", found, 12, 0)
    assert case.outcome is Verdict.COULD_NOT_RUN


def test_a_helper_that_acts_is_not_run(now: Now, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    line = "    transforms = {str"
    [found] = now(GROUPS, {line: f"    open({str(trace)!r}, 'w')\n{line}"})
    case = optimizer_case("case", found, 12, 0)
    assert case.outcome is Verdict.COULD_NOT_RUN
    assert "`open` is not evaluated" in case.reason
    assert not trace.exists()


CLIPPED = """
    import jax
    import jax.numpy as jnp
    from flax import optim

    def create(params, lr):
        return optim.Adam(lr).create(params)

    def step(optimizer, grads):
        grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -1.0, 1.0), grads)
        return optimizer.apply_gradient(grads)

    def train(params, lr, grads):
        return step(create(params, lr), grads)
    """


def test_what_rewrite_has_moved_ahead_is_no_part_of_the_definition(now: Now) -> None:
    found = now(CLIPPED, {"optax.adam(lr)": "optax.adam(learning_rate=lr)"})
    assert [outcome in SAME for outcome in outcomes(found)] == [True]


SCHEDULED = """
    from flax import optim

    def create(params, config):
        rate = make_schedule(config)
        optimizer = optim.Adam(0.1).create(params)
        return optimizer, rate

    def make_schedule(config):
        return lambda step: config.lr * 0.9**step

    def train(params, config, grads):
        optimizer = optim.Momentum(0.1).create(params)
        rate = make_schedule(config)
        for grad in grads:
            optimizer = optimizer.apply_gradient(grad, learning_rate=rate(optimizer.state.step))
        return optimizer
    """


def test_every_way_to_hand_a_rate_over_keeps_its_verdict(now: Now) -> None:
    found = now(SCHEDULED, {"momentum=0.9": "momentum=0.9, nesterov=False"})
    assert [outcome in SAME for outcome in outcomes(found)] == [True, True]
