"""A learning rate that steps set is injected as it is, and made a float where something shows that it may be none."""

import pytest

from tests.codemods.programs import migrated

PROGRAM = """
    import argparse
    import dataclasses
    import types
    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import optim

    RATE = 0.1
    SCALE = 2
    TABLE = {{"base": 0.1, "whole": 1}}
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=np.float32, default=0.1)
    parser.add_argument("--beta", type=float)
    ARGS = parser.parse_args()
    settings = types.SimpleNamespace(rate=0.1, late=None)

    class Trainer:
        rate = None

    def scaled(size, base=0.1):
        return base * size / 256

    @dataclasses.dataclass
    class Config:
        rate: float = 0.1
        late: float = None

    def chosen(path, _):
        return "kernel" in path

    def train(params, grads, rates, {parameter}):
        optimizer = {definition}.create(params)
        for grad, other in zip(grads, rates):
            optimizer = optimizer.apply_gradient(grad, learning_rate=other)
        return optimizer

    {call}
    """
AS_THEY_ARE = {
    "a number": ("0.1", "", ""),
    "a constant": ("RATE", "", ""),
    "a quotient of numbers": ("1 / SCALE / 10", "", ""),
    "computed of floats": ("SCALE * RATE", "", ""),
    "a parameter with a default": ("lr", "lr=0.1", ""),
    "a parameter that is declared": ("lr", "lr: float", ""),
    "a parameter that calls give": ("lr", "lr", "train({}, [], [], 0.1)"),
    "made a float": ("float(lr)", "lr", ""),
    "an array of JAX": ("jnp.asarray(lr)", "lr", ""),
    "a field that is declared": ("config.rate", "config", "train({}, [], [], Config())"),
    "a parameter of unknown callers": ("lr", "lr", ""),
    "an element": ("config['rate']", "config", ""),
    "an attribute": ("config.rate", "config", ""),
    "an element of a table": ("TABLE['base']", "", ""),
    "found in a table, or a number": ("TABLE.get('base', 0.1)", "", ""),
    "an attribute of a namespace": ("settings.rate", "", ""),
    "an argument of the command line": ("ARGS.beta", "", ""),
    "a plain number of NumPy's": ("np.array([0.1]).item()", "", ""),
    "given back by a function": ("scaled(64)", "", ""),
    "traced": ("lr", "lr", "jax.vmap(train)({}, [], [], jnp.ones(2))"),
}  # fmt: skip
NUMBERS = {
    "a whole number": ("lr", "lr=1", ""),
    "a whole number that calls give": ("lr", "lr=0.1", "train({}, [], [], 1)"),
    "a number of NumPy": ("lr", "lr", "train({}, [], [], np.float32(0.1))"),
    "a whole constant": ("SCALE", "", ""),
    "computed of whole numbers": ("SCALE * 2", "", ""),
    "a whole number that is negated": ("-lr", "lr=1", ""),
    "a field that is declared, and given another":
        ("config.rate", "config", "train({}, [], [], Config(rate=np.float32(0.1)))"),
    "an element of a table": ("TABLE['whole']", "", ""),
    "found in a table, or a whole number": ("TABLE.get('base', 1)", "", ""),
    "an element of an array of NumPy": ("np.linspace(0.1, 0.2, 3)[0]", "", ""),
    "given back by a function": ("scaled(64, np.float32(0.1))", "", ""),
    "the larger of two whole numbers": ("max(1, SCALE)", "", ""),
    "rounded": ("round(lr)", "lr", ""),
    "an argument that argparse makes one of NumPy": ("ARGS.rate", "", ""),
}  # fmt: skip
MAYBE_NONE = {
    "a parameter that is None": ("lr", "lr=None", "train({}, [], [])"),
    "one that is declared, and None": ("lr", "lr: float = None", ""),
    "a number of NumPy, or None": ("np.linspace(0.1, 0.2, 3)[0] if lr else None", "lr", ""),
    "a truth value": ("True", "", ""),
    "a field that may be None": ("config.late", "config", "train({}, [], [], Config())"),
    "a parameter with a default, of a function in a table":
        ("lr", "lr=0.1", "MAKERS = {'one': train}\n    MAKERS['one'](*given)"),
    "one of two": ("0.1 if lr else None", "lr", ""),
    "not in a table": ("TABLE.get('late')", "", ""),
    "an attribute of a namespace": ("settings.late", "", ""),
    "an attribute of a class": ("Trainer().rate", "", ""),
}  # fmt: skip


SINGLE = "optim.Momentum({rate}, beta=0.5)"
GROUP = "optim.MultiOptimizer((optim.ModelParamTraversal(chosen), optim.Momentum({rate}, beta=0.5)))"


def rewritten(definition: str, rate: str, parameter: str, call: str) -> str:
    made = definition.format(rate=rate)
    program = PROGRAM.format(definition=made, parameter=parameter, call=call)
    return "".join(migrated(program).split())


def made_float(rate: str) -> str:
    """`float(lr)`, without its spaces."""
    return f"float({''.join(rate.split())})"


def made_float_or_0(rate: str) -> str:
    """`float(lr or 0)`, without its spaces."""
    value = "".join(rate.split())
    is_atom = rate[-1] in ")]" or (" " not in rate and not rate.startswith("-"))
    return f"float({value}or0)" if is_atom else f"float(({value})or0)"


@pytest.mark.parametrize("given", AS_THEY_ARE.values(), ids=AS_THEY_ARE)
def test_rates_are_as_they_were(given: tuple[str, str, str]) -> None:
    rate = "".join(given[0].split())

    assert f"(learning_rate={rate})" in rewritten(SINGLE, *given)


@pytest.mark.parametrize("given", NUMBERS.values(), ids=NUMBERS)
def test_what_may_be_another_number_is_made_a_float(
    given: tuple[str, str, str],
) -> None:
    assert f"(learning_rate={made_float(given[0])})" in rewritten(SINGLE, *given)


@pytest.mark.parametrize("given", MAYBE_NONE.values(), ids=MAYBE_NONE)
def test_what_may_be_none_is_made_a_float_as_well(given: tuple[str, str, str]) -> None:
    assert f"(learning_rate={made_float_or_0(given[0])})" in rewritten(SINGLE, *given)


@pytest.mark.parametrize(
    ("rate", "is_made_float"), [("lr", True), ("RATE", False), ("config.rate", True)]
)
def test_a_group_whose_rate_would_not_be_missed_has_a_float_for_certain(
    rate: str, is_made_float: bool
) -> None:
    expected = made_float(rate) if is_made_float else rate

    assert f"(learning_rate={expected})" in rewritten(GROUP, rate, "lr, config", "")
