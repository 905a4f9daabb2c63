"""What the constructor of each legacy optimizer becomes, as source text."""

import ast
import inspect
import io
import tokenize
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from codemods.model import Form
from codemods.optimizers import optimizers
from codemods.optimizers.base import learning_rate
from tests.codemods.optimizers.conversion import converted, supports, transformation
from tests.codemods.programs import table

FORMS: tuple[Form, ...] = ("alias", "chain")
SIMPLE = [name for name in optimizers() if name not in ("MultiOptimizer", "WeightNorm")]
SAMPLES: Mapping[str, str] = {
    "learning_rate": "0.25",
    "nesterov": "True",
    "centered": "True",
    "factored": "False",
    "multiply_by_parameter_scale": "True",  # otherwise epsilon2 does not matter
    "step_offset": "7",
    "min_dim_size_to_factor": "64",
    "dtype_momentum": "'bfloat16'",
}
"""Arguments other than the defaults; parameters that are not listed get numbers between 0 and 1."""


def call(source: str) -> ast.Call:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def refusal(source: str) -> str | None:
    node = call(source)
    assert isinstance(node.func, ast.Attribute)
    found = optimizers()[node.func.attr].refuse(node)
    return found.code if found else None


REFUSED = """
== keywords unpacked
optim.Adam(**config)
FO904
== positional arguments unpacked
optim.Momentum(*arguments)
FO904
== MultiOptimizer: keywords unpacked
optim.MultiOptimizer((kernels, inner), **config)
FO904
== unknown to legacy
optim.Adam(lr=1e-3)
FO905
== optax's name for it
optim.Momentum(0.1, momentum=0.9)
FO905
== too many
optim.GradientDescent(0.1, 0.9)
FO905
== WeightNorm without an inner optimizer
optim.WeightNorm()
FO905
== MultiOptimizer without pairs
optim.MultiOptimizer()
FO905
== Adam: None crashed legacy
optim.Adam(1e-3, weight_decay=None)
FO905
== Momentum: None is another thing to optax
optim.Momentum(0.1, beta=None)
FO905
== AdaBelief: needs eps twice
optim.AdaBelief(1e-3, eps=next(values))
FO905
== Adafactor: must ask beta1 whether it is None
optim.Adafactor(1e-3, beta1=decay())
FO905
== nothing wrong
optim.Adam(1e-3)
None
== no learning rate, which is for others to judge
optim.Adam()
None
== AdaBelief: arithmetic
optim.AdaBelief(1e-3, eps=config.eps or 10 ** -FLAGS.digits)
None
== Adafactor: None allowed
optim.Adafactor(beta1=None, clipping_threshold=None)
None
== MultiOptimizer: pairs unpacked
optim.MultiOptimizer(*pairs)
None
"""


@pytest.mark.parametrize(("source", "code"), table(REFUSED))
def test_refuses(source: str, code: str) -> None:
    assert str(refusal(source)) == code


@pytest.mark.parametrize(
    ("source", "rate"),
    [
        ("optim.Adam()", None),
        ("optim.Adam(None)", None),
        ("optim.Adam(learning_rate=None, beta1=0.8)", None),
        ("optim.Adam(lr, 0.8)", "lr"),
        ("optim.Adam(beta1=0.8, learning_rate=2 * lr)", "2 * lr"),
    ],
)
def test_finds_the_learning_rate(source: str, rate: str | None) -> None:
    found = learning_rate(call(source))
    assert (found and ast.unparse(found)) == rate


CONVERTED = """
== Momentum: legacy default made explicit
optim.Momentum(0.1)
optax.sgd(0.1, momentum=0.9)
optax.chain(optax.trace(decay=0.9), optax.scale_by_learning_rate(0.1))
== Momentum: all by position
optim.Momentum(0.1, 0.95, 1e-4, True)
optax.chain(optax.add_decayed_weights(1e-4), optax.sgd(0.1, momentum=0.95, nesterov=True))
optax.chain(optax.add_decayed_weights(1e-4), optax.trace(decay=0.95, nesterov=True), optax.scale_by_learning_rate(0.1))
== Momentum: no weight decay said aloud
optim.Momentum(0.1, beta=0.95, weight_decay=0, nesterov=FLAGS.nesterov)
optax.sgd(0.1, momentum=0.95, nesterov=FLAGS.nesterov)
optax.chain(optax.trace(decay=0.95, nesterov=FLAGS.nesterov), optax.scale_by_learning_rate(0.1))
== Adam: all by position
optim.Adam(1e-3, 0.8, 0.99, 1e-7, 0.1)
optax.adamw(1e-3, b1=0.8, b2=0.99, eps=1e-7, weight_decay=0.1)
optax.chain(optax.scale_by_adam(b1=0.8, b2=0.99, eps=1e-7), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(1e-3))
== Adam: all by keyword, in another order
optim.Adam(weight_decay=wd, eps=config.eps, beta2=b2, beta1=b1, learning_rate=lr)
optax.adamw(weight_decay=wd, eps=config.eps, b2=b2, b1=b1, learning_rate=lr)
optax.chain(optax.scale_by_adam(eps=config.eps, b2=b2, b1=b1), optax.add_decayed_weights(wd), optax.scale_by_learning_rate(lr))
== AdaBelief: epsilon given once, needed twice
optim.AdaBelief(1e-3, eps=config.eps)
optax.adabelief(1e-3, eps=config.eps, eps_root=config.eps)
optax.chain(optax.scale_by_belief(eps=config.eps, eps_root=config.eps), optax.scale_by_learning_rate(1e-3))
== Adafactor: defaults
optim.Adafactor(1e-3)
optax.adafactor(1e-3)
optax.chain(optax.scale_by_factored_rms(), optax.clip_by_block_rms(1.0), optax.scale_by_learning_rate(1e-3, flip_sign=False), optax.scale_by_param_block_rms(), optax.scale(-1))
== Adafactor: names
optim.Adafactor(learning_rate=lr, beta1=0.9, step_offset=1000, epsilon1=1e-20, dtype_momentum=jnp.bfloat16)
optax.adafactor(learning_rate=lr, momentum=0.9, decay_offset=1000, eps=1e-20, dtype_momentum=jnp.bfloat16)
optax.chain(optax.scale_by_factored_rms(step_offset=1000, epsilon=1e-20), optax.clip_by_block_rms(1.0), optax.scale_by_learning_rate(lr, flip_sign=False), optax.scale_by_param_block_rms(), optax.ema(0.9, debias=False, accumulator_dtype=jnp.bfloat16), optax.scale(-1))
== Adafactor: by position
optim.Adafactor(lr, False, False, 0.9, 0.7, 10, None, 1e-3, 64, 1e-20)
optax.adafactor(lr, factored=False, multiply_by_parameter_scale=False, momentum=0.9, decay_rate=0.7, decay_offset=10, clipping_threshold=None, weight_decay_rate=1e-3, min_dim_size_to_factor=64, eps=1e-20)
optax.chain(optax.scale_by_factored_rms(factored=False, decay_rate=0.7, step_offset=10, min_dim_size_to_factor=64, epsilon=1e-20), optax.scale_by_learning_rate(lr, flip_sign=False), optax.ema(0.9, debias=False, accumulator_dtype='float32'), optax.add_decayed_weights(1e-3), optax.scale(-1))
== Adafactor: the same epsilon2 as optax
optim.Adafactor(lr, decay_rate=0.7, epsilon2=1e-3)
optax.adafactor(lr, decay_rate=0.7)
optax.chain(optax.scale_by_factored_rms(decay_rate=0.7), optax.clip_by_block_rms(1.0), optax.scale_by_learning_rate(lr, flip_sign=False), optax.scale_by_param_block_rms(), optax.scale(-1))
== LARS: no weight decay
optim.LARS(0.1, 0.95, trust_coefficient=0.01, nesterov=True)
optax.lars(0.1, momentum=0.95, trust_coefficient=0.01, nesterov=True)
optax.chain(optax.scale_by_trust_ratio(trust_coefficient=0.01), optax.scale_by_learning_rate(0.1), optax.trace(decay=0.95, nesterov=True))
== RMSProp: centered
optim.RMSProp(1e-3, 0.95, 1e-6, True)
optax.rmsprop(1e-3, decay=0.95, eps=1e-6, centered=True, eps_in_sqrt=False)
optax.chain(optax.scale_by_stddev(decay=0.95, eps=1e-6, eps_in_sqrt=False), optax.scale_by_learning_rate(1e-3))
== RMSProp: centered or not, known at run time
optim.RMSProp(1e-3, beta2=0.95, centered=config.centered)
optax.rmsprop(1e-3, decay=0.95, centered=config.centered, eps_in_sqrt=False)
optax.chain((optax.scale_by_stddev if config.centered else optax.scale_by_rms)(decay=0.95, eps_in_sqrt=False), optax.scale_by_learning_rate(1e-3))
"""


@pytest.mark.parametrize(("before", "alias", "chain"), table(CONVERTED))
def test_converts(before: str, alias: str, chain: str) -> None:
    assert converted(before, "alias") == alias
    assert converted(before, "chain") == chain


ALIKE = """
== AdaBelief: all by position
optim.AdaBelief(1e-3, 0.8, 0.99, 1e-12, 0.1)
optax.chain(optax.scale_by_belief(b1=0.8, b2=0.99, eps=1e-12, eps_root=1e-12), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(1e-3))
== Adadelta: all by position
optim.Adadelta(1.0, 0.95, 1e-7, wd)
optax.chain(optax.scale_by_adadelta(rho=0.95, eps=1e-7), optax.add_decayed_weights(wd), optax.scale_by_learning_rate(1.0))
== Adafactor: another epsilon2
optim.Adafactor(lr, epsilon2=1e-2, weight_decay_rate=1e-3)
optax.chain(optax.scale_by_factored_rms(), optax.clip_by_block_rms(1.0), optax.scale_by_learning_rate(lr, flip_sign=False), optax.scale_by_param_block_rms(1e-2), optax.add_decayed_weights(1e-3), optax.scale(-1))
== Adafactor: values that may be None
optim.Adafactor(lr, beta1=config.beta1, clipping_threshold=config.clip, weight_decay_rate=None, multiply_by_parameter_scale=not config.absolute, epsilon2=1e-2)
optax.chain(optax.scale_by_factored_rms(), optax.clip_by_block_rms(config.clip) if config.clip is not None else optax.identity(), optax.scale_by_learning_rate(lr, flip_sign=False), optax.scale_by_param_block_rms(1e-2) if (not config.absolute) else optax.identity(), optax.ema(config.beta1, debias=False, accumulator_dtype='float32') if config.beta1 is not None else optax.identity(), optax.scale(-1))
== Adagrad
optim.Adagrad(0.1, eps=1e-6)
optax.chain(scale_by_sum_of_squares(eps=1e-6), optax.scale_by_learning_rate(0.1))
== LAMB: defaults
optim.LAMB(1e-3)
optax.chain(optax.scale_by_adam(eps=1e-6), scale_by_norm_ratio(), optax.scale_by_learning_rate(1e-3))
== LAMB: all by position
optim.LAMB(1e-3, 0.8, 0.99, 0.1, 1e-5)
optax.chain(optax.scale_by_adam(b1=0.8, b2=0.99, eps=1e-5), optax.add_decayed_weights(0.1), scale_by_norm_ratio(), optax.scale_by_learning_rate(1e-3))
== LARS: all by position
optim.LARS(0.1, 0.95, 1e-4, 0.01, 1e-9, True)
optax.chain(scale_by_decayed_trust_ratio(weight_decay=1e-4, trust_coefficient=0.01, eps=1e-9), optax.scale_by_learning_rate(0.1), optax.trace(decay=0.95, nesterov=True))
== MultiOptimizer: pairs unpacked
optim.MultiOptimizer(*pairs)
partition_by_path(*pairs)
== MultiOptimizer
optim.MultiOptimizer((optim.ModelParamTraversal(f), a), (g, b))
partition_by_path((f, a), (g, b))
== WeightNorm
optim.WeightNorm(inner, 0.1)
weight_norm(inner, decay=0.1)
== WeightNorm: by keyword
optim.WeightNorm(wn_eps=1e-6, wrapped_optimizer=inner)
weight_norm(eps=1e-6, inner=inner)
"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("before", "after"), table(ALIKE))
def test_converts_alike_in_both_forms(before: str, after: str, form: Form) -> None:
    assert converted(before, form) == after


KEPT = """
== full name
flax.optim.Adam(lr)
optax.adam(lr)
== in parentheses
(optim.Adam(lr))
(optax.adam(lr))
== spaces kept
optim.Adam( lr , beta1 = 0.8 )
optax.adam( lr , b1 = 0.8 )
== assignments in the call
optim.Adam(a := 1, b := 0.8)
optax.adam(a := 1, b1=(b := 0.8))
== conditional
optim.Adam(1e-3 if x else 1e-4)
optax.adam(1e-3 if x else 1e-4)
== not a plain zero
optim.Adam(lr, weight_decay=-0.)
optax.adamw(lr, weight_decay=-0.)
"""


@pytest.mark.parametrize(("before", "after"), table(KEPT))
def test_keeps_the_text(before: str, after: str) -> None:
    assert converted(before) == after


INJECTED = """
== GradientDescent
optim.GradientDescent(0.1)
optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)
== Momentum
optim.Momentum(0.1, nesterov=FLAGS.nesterov)
optax.chain(optax.trace(nesterov=FLAGS.nesterov, decay=0.9), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=0.1))
== a scalar of NumPy
optim.GradientDescent(np.float32(lr))
optax.inject_hyperparams(optax.sgd)(learning_rate=float(np.float32(lr)))
== another function of NumPy
optim.GradientDescent(np.exp(lr))
optax.inject_hyperparams(optax.sgd)(learning_rate=np.exp(lr))
== something else called so
optim.GradientDescent(config.float32(lr))
optax.inject_hyperparams(optax.sgd)(learning_rate=config.float32(lr))
== Adam
optim.Adam(lr, 0.8)
optax.chain(optax.scale_by_adam(b1=0.8), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=lr))
== Adam, None given
optim.Adam(None, 0.8)
optax.chain(optax.scale_by_adam(b1=0.8), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=0.0))
== Adam, an integer
optim.Adam(1)
optax.chain(optax.scale_by_adam(), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=1.0))
== Adam, a NumPy scalar
optim.Adam(np.float32(lr))
optax.chain(optax.scale_by_adam(), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=float(np.float32(lr))))
== AdaBelief
optim.AdaBelief(1e-3, eps=1e-12)
optax.chain(optax.scale_by_belief(eps=1e-12, eps_root=1e-12), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=1e-3))
== Adafactor
optim.Adafactor(beta1=0.9, weight_decay_rate=None)
optax.chain(optax.scale_by_factored_rms(), optax.clip_by_block_rms(1.0), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=0.0, flip_sign=False), optax.scale_by_param_block_rms(), optax.ema(0.9, debias=False, accumulator_dtype='float32'), optax.scale(-1))
== LARS
optim.LARS(0.1)
optax.chain(optax.scale_by_trust_ratio(trust_coefficient=0.001), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=0.1), optax.trace(decay=0.9))
== RMSProp
optim.RMSProp(1e-3)
optax.chain(optax.scale_by_rms(eps_in_sqrt=False), optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=1e-3))
"""


@pytest.mark.parametrize(("before", "after"), table(INJECTED))
def test_injects_the_learning_rate_alone(before: str, after: str) -> None:
    assert converted(before, inject=True) == after


LAID_OUT = """
== aligned with the parenthesis
optim.Adam(1e-3,
           beta1=0.9,  # b
           weight_decay=1e-4)

optax.adamw(1e-3,
           b1=0.9,  # b
           weight_decay=1e-4)

optax.chain(optax.scale_by_adam(b1=0.9),  # b
           optax.add_decayed_weights(1e-4),
           optax.scale_by_learning_rate(1e-3))
== a comment on a zero keeps it
optim.Adam(
    1e-3,
    weight_decay=0.0,  # was 0.1
)

optax.adamw(
    1e-3,
    weight_decay=0.0,  # was 0.1
)

optax.chain(
    optax.scale_by_adam(),
    optax.add_decayed_weights(0.0),  # was 0.1
    optax.scale_by_learning_rate(1e-3),
)
== comments on an argument that has no place in the chain
optim.RMSProp(
    lr,
    # subtract the mean
    centered=True,  # as in the paper
)

optax.rmsprop(
    lr,
    # subtract the mean
    centered=True,  # as in the paper
    eps_in_sqrt=False,
)

optax.chain(
    # subtract the mean
    optax.scale_by_stddev(eps_in_sqrt=False),  # as in the paper
    optax.scale_by_learning_rate(lr),
)
== all on the next line
optim.Momentum(
    config.learning_rate, beta=config.momentum, weight_decay=config.weight_decay
)

optax.chain(
    optax.add_decayed_weights(config.weight_decay),
    optax.sgd(config.learning_rate, momentum=config.momentum)
)

optax.chain(
    optax.add_decayed_weights(config.weight_decay),
    optax.trace(decay=config.momentum),
    optax.scale_by_learning_rate(config.learning_rate)
)
== the first in the line of the call, behind others now
optim.AdaBelief(rate,  # decays
    weight_decay=0.1,
    # slower
    beta1=0.8,  # tuned
)

optax.chain(
    # slower
    optax.scale_by_belief(b1=0.8),  # tuned
    optax.add_decayed_weights(0.1),
    optax.scale_by_learning_rate(rate),  # decays
)

optax.chain(
    # slower
    optax.scale_by_belief(b1=0.8),  # tuned
    optax.add_decayed_weights(0.1),
    optax.scale_by_learning_rate(rate),  # decays
)
"""


@pytest.mark.parametrize(("before", "alias", "chain"), table(LAID_OUT, between="\n\n"))
def test_keeps_lines_and_comments(before: str, alias: str, chain: str) -> None:
    assert converted(before, "alias") == alias
    assert converted(before, "chain") == chain


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(rate, nesterov=True)", "(rate, nesterov=True, momentum=0.9)"),
        ("(\n    rate, nesterov=True\n)", "(\n    rate, nesterov=True, momentum=0.9\n)"),
        ("(\n    rate, nesterov=True,\n)", "(\n    rate, nesterov=True, momentum=0.9,\n)"),
        ("(\n    rate,\n    nesterov=True,\n)", "(\n    rate,\n    nesterov=True,\n    momentum=0.9,\n)"),
        ("(\n    rate,\n    nesterov=True\n)", "(\n    rate,\n    nesterov=True,\n    momentum=0.9\n)"),
        ("(rate,\n      nesterov=True)", "(rate,\n      nesterov=True,\n      momentum=0.9)"),
        ("(\n    rate\n)", "(\n    rate,\n    momentum=0.9\n)"),
        ("(\n    rate,\n)", "(\n    rate,\n    momentum=0.9,\n)"),
    ],
)  # fmt: skip
def test_an_added_argument_is_laid_out_as_the_others(before: str, after: str) -> None:
    assert converted(f"optim.Momentum{before}") == f"optax.sgd{after}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SIMPLE)
def test_no_helper_is_added_that_is_not_used(name: str, form: Form) -> None:
    for source in (f"optim.{name}(0.1)", f"optim.{name}({', '.join(keywords(name))})"):
        names = [support.name for support in supports(source, form)]
        assert all(name in converted(source, form) for name in names)


LAYOUTS: Mapping[str, Callable[[list[str]], str]] = {
    "one a line": lambda words: ("(  # a\n    # b\n    " + ",  # c\n    # d\n    ".join(words) + ",  # e\n    # f\n)"),
    "two a line": lambda words: ("(" + ",  # a\n    ".join(", ".join(pair) for pair in pairs(words)) + ",\n)"),
    "aligned": lambda words: "(" + ",  # a\n           ".join(words) + ")",
    "no trailing comma": lambda words: "(\n  " + ",  # a\n  ".join(words) + "  # b\n)",
    "commas ahead": lambda words: "(\n    " + "  # a\n  , ".join(words) + "  # b\n)",
}  # fmt: skip


@pytest.mark.parametrize("inject", [False, True], ids=["constant", "injected"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SIMPLE)
def test_no_layout_loses_or_doubles_a_comment(
    name: str, layout: str, form: Form, inject: bool
) -> None:
    words = keywords(name)

    before = f"optim.{name}{LAYOUTS[layout](words)}"
    after = converted(before, form, inject)

    assert comments(after) == comments(before)
    plain = f"optim.{name}({', '.join(words)})"
    assert evaluated(after) == evaluated(converted(plain, form, inject))


def pairs(words: list[str]) -> list[list[str]]:
    return [words[index : index + 2] for index in range(0, len(words), 2)]


def comments(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(f"({source})").readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("inject", [False, True], ids=["constant", "injected"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SIMPLE)
def test_position_and_keyword_are_the_same(name: str, form: Form, inject: bool) -> None:
    words = keywords(name)
    expected = evaluated(converted(f"optim.{name}({', '.join(words)})", form, inject))
    values = [word.partition("=")[2] for word in words]

    for count in range(len(words) + 1):
        mixed = values[:count] + words[:count:-1] + words[count : count + 1]
        source = f"optim.{name}({', '.join(mixed)})"
        assert refusal(source) is None
        assert evaluated(converted(source, form, inject)) == expected, source


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SIMPLE)
def test_every_argument_matters(name: str, form: Form) -> None:
    words = keywords(name)
    everything = evaluated(converted(f"optim.{name}({', '.join(words)})", form))

    for word in words[1:]:
        if word == "multiply_by_parameter_scale=True":
            continue
        fewer = ", ".join(other for other in words if other != word)
        assert evaluated(converted(f"optim.{name}({fewer})", form)) != everything, word


def keywords(name: str) -> list[str]:
    """Each parameter with the value that `SAMPLES` says."""
    return [
        f"{parameter.name}={SAMPLES.get(parameter.name, f'0.{index}5')}"
        for index, parameter in enumerate(optimizers()[name].parameters)
    ]


def evaluated(source: str) -> Any:
    """What an expression builds: which factories with which arguments, checked against the signatures of optax."""
    return eval(f"({source})", {"__builtins__": {}}, Stubs())


class Stubs(dict[str, Any]):
    """For each name what stands for it: for `optax` a recorder of calls, for helpers a function that records its call."""

    def __missing__(self, name: str) -> Any:
        return (
            Recorder()
            if name == "optax"
            else lambda *values, **named: (name, values, named)
        )


class Recorder:
    """Stands for optax."""

    def __getattr__(self, name: str) -> Any:
        if name == "chain":
            return lambda *links: links
        if name == "inject_hyperparams":
            return lambda factory, static_args=(): (
                lambda **named: ("injected", {*static_args}, factory(**named))
            )
        signature = inspect.signature(getattr(optax, name))
        return lambda *values, **named: (
            name,
            dict(signature.bind(*values, **named).arguments),
        )


@pytest.mark.parametrize("given", [False, True], ids=["defaults", "all given"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SIMPLE)
def test_nothing_but_the_learning_rate_becomes_an_array(
    name: str, form: Form, given: bool
) -> None:
    source = f"optim.{name}({', '.join(keywords(name)) if given else ''})"

    state = transformation(source, form, inject=True).init({"kernel": jnp.ones((2, 3))})

    assert [list(each.hyperparams) for each in injected_states(state)] == [
        ["learning_rate"]
    ]


RATES = ["", "None", "1", "0.5", "np.float32(0.5)", "np.float64(0.5)", "jnp.float32(0.5)", "rate"]  # fmt: skip


@pytest.mark.parametrize("rate", RATES)
def test_injected_rates_keep_one_type(rate: str) -> None:
    optimizer = transformation(
        f"optim.Adam({rate})", inject=True, np=np, jnp=jnp, rate=np.asarray(0.5)
    )

    [state] = injected_states(optimizer.init({"kernel": jnp.ones((2, 3))}))

    assert state.hyperparams["learning_rate"].dtype == jnp.float32


def injected_states(state: Any) -> list[Any]:
    found = jax.tree_util.tree_leaves(
        state, is_leaf=lambda part: hasattr(part, "hyperparams")
    )
    return [part for part in found if hasattr(part, "hyperparams")]
