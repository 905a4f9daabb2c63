"""What `rewrite` emits, evaluated and compared; and what each wrong link of a chain is called."""

from dataclasses import replace
from textwrap import dedent

import pytest

from codemods import Source, migrate
from codemods.model import EmittedOptimizer
from optim2optax.parity.cases import optimizer_case
from optim2optax.parity.judging.comparison import Verdict
from tests.codemods.optimizers.published import published
from tests.optim2optax.parity.differences import SAME, first_difference
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel", "judged")

PROGRAM = """
    from flax import optim

    def is_frozen(path, value):
        return "bias" in path

    def create(params, config, is_trained):
        frozen = optim.ModelParamTraversal(is_frozen)
        trained = optim.ModelParamTraversal(lambda path, _: is_trained(path))
        slow = optim.Momentum(config.lr / 10, weight_decay=config.wd, nesterov=True)
        optimizer_def = optim.MultiOptimizer((frozen, slow), (trained, optim.Adam(config.lr)))
        return optimizer_def.create(params)

    def create_other(params):
        return optim.WeightNorm(optim.LAMB(beta1=0.8), wn_decay=0.1).create(params)

    def step(optimizer, grads, rate):
        return optimizer.apply_gradient(grads, learning_rate=rate)

    def train(params, grads, rate):
        return step(create_other(params), grads, rate)
    """


def emitted(program: str) -> tuple[EmittedOptimizer, ...]:
    [result] = migrate([Source("train.py", dedent(program).encode())])
    assert {site.status for site in result.sites} == {"rewritten"}
    return result.optimizers


def changed(old: str, new: str) -> EmittedOptimizer:
    return EmittedOptimizer("Any", 1, old, new, old, new, False, ())


def test_parts_from_elsewhere_are_put_in_their_place() -> None:
    by_line = {(found.line, found.name): found for found in emitted(PROGRAM)}

    whole = by_line[11, "MultiOptimizer"]
    assert whole.legacy_expression == (
        "optim.MultiOptimizer((optim.ModelParamTraversal(is_frozen), "
        "optim.Momentum(config.lr / 10, weight_decay=config.wd, nesterov=True)), "
        "(optim.ModelParamTraversal(lambda path, _: is_trained(path)), optim.Adam(config.lr)))"
    )
    assert "optax.add_decayed_weights(config.wd)" in whole.optax_expression
    assert by_line[15, "LAMB"].injected
    assert not by_line[10, "Momentum"].injected


def test_a_class_in_a_variable_is_compared_with_the_function_for_it() -> None:
    [function] = emitted("""
        from flax import optim

        make = optim.Adam
        definition = make(1e-3, beta1=0.5)
        """)
    given = "learning_rate=learning_rate, beta1=beta1, beta2=beta2, eps=eps"
    assert function.legacy_expression.startswith(f"optim.Adam({given}")
    assert function.optax_expression.startswith(f"flax_adam({given}")


@pytest.mark.parametrize(
    "number", thinned({str(number): (number,) for number in range(5)}, "3")
)
def test_a_whole_program_is_proven(number: int) -> None:
    case = optimizer_case("case", emitted(PROGRAM)[number], steps=100, seed=1)
    assert case.outcome in SAME, case


SCHEDULED = """
    from flax import optim

    def create(params, rate):
        return optim.{definition}.create(params)

    def train(params, grads, schedule):
        optimizer = create(params, 0.1)
        for grad in grads:
            lr = schedule(optimizer.state.step)
            optimizer = optimizer.apply_gradient(grad, learning_rate=lr)
        return optimizer
    """
TAKING_RATES = {
    **{name: f"{name}(rate)" for name in sorted(published().keys() - {"MultiOptimizer", "WeightNorm"})},
    "WeightNorm of Adam": "WeightNorm(optim.Adam(rate))",
    "WeightNorm of Momentum": "WeightNorm(optim.Momentum(rate))",
}  # fmt: skip
USUAL = ("Adam", "Adafactor", "WeightNorm of Adam")
"""Of which a schedule is tried in each run."""


@pytest.mark.parametrize("definition", thinned(TAKING_RATES, *USUAL))
def test_a_schedule_in_the_transformation_is_the_rate_of_each_step(
    definition: str,
) -> None:
    found = emitted(SCHEDULED.replace("{definition}", definition))

    assert {one.schedule for one in found} == {"rate"}
    for one in found:
        assert "inject" not in one.optax_expression
        case = optimizer_case("case", one, steps=100, seed=2)
        assert case.outcome in SAME, case


def test_leaves_of_the_probe_are_in_one_group_each() -> None:
    """Both predicates select `w/bias`, which the program need not have."""
    found = emitted("""
        from flax import optim

        def create(params):
            weights = optim.ModelParamTraversal(lambda path, _: "w" in path)
            biases = optim.ModelParamTraversal(lambda path, _: "b" in path)
            return optim.MultiOptimizer(
                (weights, optim.Adam(0.01)), (biases, optim.Momentum(0.1))
            ).create(params)
        """)
    [whole] = [one for one in found if one.name == "MultiOptimizer"]
    case = optimizer_case("case", whole, steps=20, seed=0)
    assert case.outcome in SAME, case


WRONG = {
    "optax.adam(0.01 * (1 + 1e-7))": ("optim.Adam(0.01)", "rate"),
    "optax.adam(0.01, b2=0.9990001)": ("optim.Adam(0.01)", "moments"),
    "optax.adam(0.01, eps=1.1e-8)": ("optim.Adam(0.01)", "epsilon"),
    "optax.rmsprop(0.01)": ("optim.RMSProp(0.01)", "epsilon"),
    "optax.adamw(0.01, weight_decay=0.011)": ("optim.Adam(0.01, weight_decay=0.01)", "decay"),
    "optax.chain(optax.clip_by_global_norm(100.0), optax.sgd(0.01))": ("optim.GradientDescent(0.01)", "clip"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("new", "old", "link"), [(new, *rest) for new, rest in WRONG.items()], ids=WRONG
)
def test_the_link_that_departs_is_named(new: str, old: str, link: str) -> None:
    case = optimizer_case("case", changed(old, new), steps=100, seed=0)

    assert first_difference(case.comparison).link == link


MOMENTUM = "optim.Momentum(0.1, 0.9, weight_decay=0.01)"
NESTEROV = "optim.Momentum(0.1, nesterov=True)"
ADAM = "optim.Adam(0.01, 0.8, 0.99, 1e-3, weight_decay=0.1)"
KERNELS = 'lambda path, _: "kernel" in path'
OTHERS = 'lambda path, _: "kernel" not in path'
GROUPS = (
    f"optim.MultiOptimizer((optim.ModelParamTraversal({KERNELS}), optim.Adam(0.01)), "
    f"(optim.ModelParamTraversal({OTHERS}), optim.GradientDescent(0.1)))"
)
LABELS = (
    "lambda params: jax.tree_util.tree_map_with_path("
    "lambda path, _: 'k' if 'kernel' in jax.tree_util.keystr(path) else 'o', params)"
)
UNCORRECTED = (
    "optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(lambda count: "
    "-0.01 * (1 - 0.9 ** (count + 1)) / jnp.sqrt(1 - 0.999 ** (count + 1))))"
)
EXCHANGED = f"optax.transforms.partition({{'o': optax.adam(0.01), 'k': optax.sgd(0.1)}}, {LABELS})"
MISTAKES = {
    "the weight decay is missing": (MOMENTUM, "optax.sgd(0.1, 0.9)"),
    "the weight decay has the wrong sign":
        (MOMENTUM, "optax.chain(optax.add_decayed_weights(-0.01), optax.sgd(0.1, 0.9))"),
    "the weight decay is not multiplied by the learning rate":
        (MOMENTUM, "optax.chain(optax.sgd(0.1, 0.9), optax.add_decayed_weights(-0.01))"),
    "the weight decay is not multiplied by the learning rate, and has the wrong sign":
        (MOMENTUM, "optax.chain(optax.sgd(0.1, 0.9), optax.add_decayed_weights(0.01))"),
    "the weight decay is added behind the momentum":
        (MOMENTUM, "optax.chain(optax.trace(0.9), optax.add_decayed_weights(0.01), optax.scale(-0.1))"),
    "the weight decay is added ahead of the moments":
        (ADAM, "optax.chain(optax.add_decayed_weights(0.1), optax.adam(0.01, 0.8, 0.99, 1e-3))"),
    "the updates have the wrong sign": ("optim.GradientDescent(0.1)", "optax.sgd(-0.1)"),
    "the updates are not multiplied by the learning rate":
        ("optim.Momentum(0.1)", "optax.chain(optax.trace(0.9), optax.scale(-1.0))"),
    "the updates are multiplied by the learning rate twice":
        ("optim.Adam(0.1)", "optax.chain(optax.adam(0.1), optax.scale(0.1))"),
    "beta1 is the default of optax": (ADAM, "optax.adamw(0.01, b2=0.99, eps=1e-3, weight_decay=0.1)"),
    "epsilon is the default of optax": (ADAM, "optax.adamw(0.01, 0.8, 0.99, weight_decay=0.1)"),
    "beta1 and beta2 are exchanged": (ADAM, "optax.adamw(0.01, 0.99, 0.8, 1e-3, weight_decay=0.1)"),
    "epsilon is inside of the square root": (ADAM, "optax.adamw(0.01, 0.8, 0.99, 0.0, 1e-3, weight_decay=0.1)"),
    "the moments are not corrected for their bias": ("optim.Adam(0.01)", UNCORRECTED),
    "there is no momentum": ("optim.Momentum(0.1)", "optax.sgd(0.1)"),
    "Nesterov momentum is missing": (NESTEROV, "optax.sgd(0.1, 0.9)"),
    "the momentum is Nesterov's": ("optim.Momentum(0.1)", "optax.sgd(0.1, 0.9, nesterov=True)"),
    "the momentum is an average: gradients are multiplied by one less its decay":
        ("optim.Momentum(0.2)", "optax.chain(optax.ema(0.9, debias=False), optax.scale(-0.2))"),
    "the trust ratio is missing": ("optim.LAMB(0.1)", "optax.adam(0.1, eps=1e-6)"),
    "the groups of parameters are exchanged": (GROUPS, EXCHANGED),
    "each update is 2.5 times as large": ("optim.GradientDescent(0.1)", "optax.sgd(0.25)"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    thinned(
        MISTAKES,
        "the weight decay is added behind the momentum",
        "epsilon is inside of the square root",
        "the momentum is an average: gradients are multiplied by one less its decay",
        "the groups of parameters are exchanged",
        "each update is 2.5 times as large",
    ),
)
def test_a_known_mistake_is_told(old: str, new: str) -> None:
    case = optimizer_case("case", changed(old, new), steps=100, seed=0)

    told = first_difference(case.comparison).cause
    assert MISTAKES.get(str(told)) == (old, new), told


@pytest.mark.parametrize(
    ("more", "words"),
    [pytest.param(1, "ahead", marks=pytest.mark.thorough), (-1, "behind")],
)
def test_a_schedule_that_is_a_step_off_is_told(more: int, words: str) -> None:
    [found] = emitted("""
        from flax import optim

        def train(params, gradients, rate):
            optimizer = optim.Adam(rate).create(params)
            for grads in gradients:
                step = optimizer.state.step
                optimizer = optimizer.apply_gradient(grads, learning_rate=rate / (1 + step))
            return optimizer.target
        """)
    assert found.schedule
    moved = f"lambda count: ({found.schedule})(count + {more})"
    wrong = found.optax_expression.replace(found.schedule, moved)
    case = optimizer_case("case", replace(found, optax_expression=wrong), 100, 0)

    cause = first_difference(case.comparison).cause
    assert cause == f"the schedule is a step {words}"


def test_a_fault_of_the_old_side_is_named_and_not_blamed() -> None:
    [found] = emitted("""
        from flax import optim

        def create(params):
            return optim.LAMB(0.1).create(params)
        """)
    case = optimizer_case("case", found, steps=100, seed=0)

    assert case.outcome is Verdict.EQUIVALENT
    why = "The old LAMB divides by zero on a leaf that never gets a gradient: unused/"
    assert case.reason.startswith(why)


def test_another_optimizer_that_divides_by_zero() -> None:
    found = changed("optim.Adam(0.1, eps=0.0)", "optax.adam(0.1, eps=0.0)")
    case = optimizer_case("case", found, steps=20, seed=0)

    assert case.outcome is Verdict.EQUIVALENT
    told = "not finite on either side, so nothing is proven of these"
    assert told in " ".join(case.remarks)


PREDICATES = {
    "leaves": ('p.endswith("rate")', 'p.endswith("weights")'),
    "layers of one parent": ('p.startswith("/enc/a/")', 'p.startswith("/enc/b/")'),
    "two words at once": ('"enc" in p and "scale" in p', '"dec" in p and "scale" in p'),
}


@pytest.mark.parametrize("wrong", ["", "sgd(0.2", "adam(0.1"])
@pytest.mark.parametrize(
    ("first", "second"), thinned(PREDICATES, "leaves", "two words at once")
)
def test_each_group_has_leaves_of_its_own(first: str, second: str, wrong: str) -> None:
    """A group without a leaf would prove nothing, and let a wrong rate of it pass."""
    [found, *_] = emitted(f"""
        from flax import optim

        def create(params):
            one = optim.ModelParamTraversal(lambda p, _: {first})
            other = optim.ModelParamTraversal(lambda p, _: {second})
            return optim.MultiOptimizer((one, optim.Momentum(0.2)), (other, optim.Adam(0.1))).create(params)
        """)
    if wrong:
        assert wrong in found.optax_expression
        text = found.optax_expression.replace(wrong, f"{wrong}1")
        found = replace(found, optax_expression=text)
    case = optimizer_case("case", found, steps=20, seed=0)
    assert case.outcome in ((Verdict.DIFFERENT,) if wrong else SAME)


UNEVALUABLE = {
    "a name that optax has not": ("optax.no_such_thing(0.1)", "no_such_thing"),
    "a schedule": ("optax.constant_schedule(0.1)", "`optax.constant_schedule(0.1)` is not a gradient transformation"),
    "nothing": ("", "there is no new expression"),
}  # fmt: skip


@pytest.mark.parametrize(("new", "why"), UNEVALUABLE.values(), ids=UNEVALUABLE)
def test_what_cannot_be_evaluated_says_so(new: str, why: str) -> None:
    case = optimizer_case("case", changed("optim.Adam(0.1)", new), steps=100, seed=0)

    assert case.outcome is Verdict.COULD_NOT_RUN
    assert why in case.reason
