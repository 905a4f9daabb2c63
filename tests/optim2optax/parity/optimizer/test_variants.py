"""What a program may choose, how many steps it may take, how large its leaves may be and what its gradients may hold."""

import pytest

from codemods.model import EmittedOptimizer
from optim2optax.parity.cases import optimizer_case
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.optimizer.coverage import LONGEST, horizon, sizes
from optim2optax.parity.optimizer.variants import MOST, variants
from optim2optax.parity.reports.result import Case
from tests.optim2optax.parity.differences import SAME
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel", "judged")


def emitted(old: str, new: str) -> EmittedOptimizer:
    return EmittedOptimizer("Any", 1, old, new, old, new, False, ())


def case(old: str, new: str) -> Case:
    return optimizer_case("case", emitted(old, new), 12, 0)


CHOICES = {
    "a boolean parameter": ("optim.Momentum(0.1, nesterov=config.fast)", ["False", "True"]),
    "a branch": ("optim.Adam(0.1 if flag else 0.2)", ["0.1 if False else 0.2", "0.1 if True else 0.2"]),
    "a literal": (
        "optim.Adam(0.1 if cfg.kind == 'a' else 0.2 if cfg.kind == 'b' else 0.3)",
        ["'a' == 'a'", "'any other' == 'a'", "'b' == 'a'"],
    ),
    "None":
        ("optim.Adam(0.1 if cfg.rate is None else cfg.rate)", ["0.1 if None is None else None", "cfg.rate is None"]),
    "a default": ("optim.Adam(cfg.rate or 0.1)", ["None or 0.1", "cfg.rate or 0.1"]),
    "keys": ("optim.Adam({'a': 0.1, 'b': 0.2}[name])", ["['a']", "['b']"]),
    "nothing to choose": ("optim.Adam(lr, beta1=b)", ["optim.Adam(lr, beta1=b)"]),
    "a parameter of a predicate": (
        "optim.ModelParamTraversal(lambda path, value: value.ndim > 1 if path else False)",
        ["(lambda path, value: value.ndim > 1 if path else False)"],
    ),
    "a function of what a predicate is given":
        ("optim.ModelParamTraversal(lambda *args: not is_bias(*args))", ["(lambda *args: not is_bias(*args))"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), CHOICES.values(), ids=CHOICES)
def test_every_choice_is_made(text: str, parts: list[str]) -> None:
    made = variants(emitted(text, "optax.sgd(1)"))
    found = sorted(one.legacy_expression for one in made)
    assert len(found) == len(parts)
    assert all(part in one for part, one in zip(parts, found, strict=True)), found


def test_many_choices_are_made_one_by_one() -> None:
    text = f"optim.Adam({' + '.join(f'(1 if flag{number} else 2)' for number in range(7))})"
    assert len(variants(emitted(text, "optax.sgd(1)"))) == 8 < MOST


OTHER = {
    "a boolean that is taken for true":
        ("optim.Momentum(0.1, nesterov=config.fast)", "optax.sgd(0.1, momentum=0.9, nesterov=True)"),
    "an exchanged branch": ("optim.Adam(0.1 if flag else 0.2)", "optax.adam(0.1)"),
    "a literal that is spelled otherwise":
        ("optim.Adam(0.1 if cfg.kind == 'a' else 0.2)", "optax.adam(0.1 if cfg.kind == 'b' else 0.2)"),
    "a schedule that begins late":
        ("optim.GradientDescent(0.1)", "optax.sgd(optax.piecewise_constant_schedule(0.1, {3000: 0.5}))"),
    "NaN that is taken away": ("optim.GradientDescent(0.1)", "optax.chain(optax.zero_nans(), optax.sgd(0.1))"),
    "a clip for what is very large": ("optim.GradientDescent(0.1)", "optax.chain(optax.clip(1e20), optax.sgd(0.1))"),
    "a step that is left out where it is not finite":
        ("optim.GradientDescent(0.1)", "optax.apply_if_finite(optax.sgd(0.1), 1000)"),
    "a size that no leaf of the probe has": (
        "optim.GradientDescent(0.1)",
        "optax.masked(optax.sgd(0.1), lambda tree: jax.tree.map(lambda leaf: leaf.size != 300, tree))",
    ),
    "a rank that no leaf of the probe has": (
        "optim.GradientDescent(0.1)",
        "optax.chain(optax.sgd(0.1), optax.masked(optax.set_to_zero(), lambda t: jax.tree.map(lambda x: x.ndim > 4, t)))",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    thinned(
        OTHER,
        "an exchanged branch",
        "a schedule that begins late",
        "a clip for what is very large",
        "a size that no leaf of the probe has",
    ),
)
def test_a_difference_that_one_replay_does_not_show(old: str, new: str) -> None:
    found = case(old, new)
    assert found.outcome is Verdict.DIFFERENT, found


ALIKE = {
    "a boolean":
        (12, "optim.Momentum(0.1, nesterov=config.fast)", "optax.sgd(0.1, momentum=0.9, nesterov=config.fast)"),
    "factors by size":
        (12, "optim.Adafactor(0.1, min_dim_size_to_factor=20)", "optax.adafactor(0.1, min_dim_size_to_factor=20)"),
    "extreme gradients": (100, "optim.Adam(0.1, weight_decay=0.1)", "optax.adamw(0.1, weight_decay=0.1)"),
    "extreme gradients, which are averaged": (100, "optim.Adadelta(0.1)", "optax.adadelta(0.1, rho=0.9, eps=1e-6)"),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("steps", "old", "new"), ALIKE.values(), ids=ALIKE)
def test_the_same_function_in_every_way(steps: int, old: str, new: str) -> None:
    found = optimizer_case("case", emitted(old, new), steps, 0)
    assert found.outcome in SAME, found


LEAST = {
    "optax.sgd(optax.cosine_decay_schedule(0.1, 5000))": 5000,
    "optax.sgd(optax.linear_schedule(0.1, 0.0, transition_steps=10 * 300))": 3000,
    "optax.sgd(lambda count: jnp.where(count < 1e4, 0.1, 0.2))": 10_000,
}


@pytest.mark.parametrize(("text", "least"), LEAST.items())
def test_steps_go_past_what_the_expression_holds(text: str, least: int) -> None:
    assert least < horizon(emitted("optim.GradientDescent(0.1)", text), 120) <= LONGEST


def test_sizes_are_read_from_comparisons() -> None:
    new = "optax.masked(optax.sgd(0.1), lambda t: jax.tree.map(lambda x: x.ndim > 4 or x.size >= 256, t))"
    assert sizes(emitted("optim.GradientDescent(0.1)", new)) == (4, 256)
    assert horizon(emitted("optim.GradientDescent(0.1)", new), 120) == 0
