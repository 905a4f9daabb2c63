"""A legacy optimizer as a function of the legacy arguments that returns what they are in optax.

For places where the arguments are not known: the class is a value, chosen at run time, or called
with `**arguments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from codemods.cst.template import expression
from codemods.model import Form
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import UNSET_RATE, with_float_rate
from codemods.optimizers.base import RATE, LegacyOptimizer, Support

BY_NAME = "FLAX_OPTIMIZERS"
WIDTH = 88
# optax.scale_by_learning_rate(learning_rate), or (learning_rate=float(learning_rate or 0)),
LAST_CALL = re.compile(r"^( +)(.*)\(((?:[^()]|float\([^()]*\))+)\),$", re.MULTILINE)
CHOICE = re.compile(r"^( +)(?![ (])(.*) (if .*) (else .*),$", re.MULTILINE)
APART = r"\1(\n\1    \2\n\1    \3\n\1    \4\n\1),"


def function_name(optimizer: str) -> str:
    """`flax_gradient_descent` for `GradientDescent`."""
    return "flax_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", optimizer).lower()


def as_function(optimizer: str, form: Form, inject: bool) -> tuple[Support, ...]:
    """The function, behind the helpers that it calls.

    Args:
      optimizer: the name of a legacy class that is not composite.
      form: the form of optax code in its body.
      inject: whether the learning rate is an injected hyperparameter; if not, the function requires
        one.
    """
    found = optimizers()[optimizer]
    name = function_name(optimizer)
    one_line, stacked = (
        found.convert(with_float_rate(call) if inject else call, form, inject)
        for call in _calls(found)
    )
    body = _body(one_line.expression)
    # with a line for each argument, if one line is not enough
    if len(f"    return {body}") > WIDTH:
        body = _body(stacked.expression)
    signature = _signature(found, inject)
    summary = f"{optimizer} by the names that its arguments had in Flax."
    if inject:
        summary += (
            "\n\n    Where no learning rate is given, each step has to set it.\n    "
        )
    source = f'''def {name}({signature}):
    """{summary}"""
    return {body}
'''
    imports: tuple[str, ...] = ("import optax",)
    if "jnp." in source:
        imports = ("import jax.numpy as jnp", *imports)
    return (*one_line.supports, Support(name, source, imports))


@dataclass(frozen=True)
class Alias:
    """A function of optax, and its names for some arguments of a legacy class."""

    function: str
    arguments: tuple[tuple[str, str], ...]

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each argument, by the legacy one."""
        return dict(self.arguments)


def alias(optimizer: str, given: Iterable[str], form: Form) -> Alias | None:
    """The function of optax that is given these arguments and nothing else, if there is one."""
    words = ", ".join(f"{name}={name}" for name in given)
    call = expression(f"optim.{optimizer}({words})")
    assert isinstance(call, cst.Call)
    if not {*given} <= {one.name for one in optimizers()[optimizer].parameters}:
        return None
    new = optimizers()[optimizer].convert(call, form, False).expression
    assert isinstance(new, cst.Call)
    names: dict[str, str] = {}
    for argument in new.args:
        if argument.keyword is None or not isinstance(argument.value, cst.Name):
            return None
        names[argument.value.value] = argument.keyword.value
    # optax.sgd(learning_rate=learning_rate, momentum=0.9)
    if names.keys() != {*given}:
        return None
    return Alias(cst.Module([]).code_for_node(new.func), (*names.items(),))


def by_name(chosen: Iterable[str], form: Form, inject: bool) -> tuple[Support, ...]:
    """A dictionary of such functions by the names of legacy classes, behind all that it needs."""
    supports: list[Support] = []
    entries = ""
    for name in sorted(chosen):
        supports += as_function(name, form, inject)
        # "GradientDescent": flax_gradient_descent,
        entries += f'    "{name}": {function_name(name)},\n'
    dictionary = f"{BY_NAME} = {{\n{entries}}}\n"
    return (*supports, Support(BY_NAME, dictionary, ()))


def _calls(optimizer: LegacyOptimizer) -> tuple[cst.Call, cst.Call]:
    """A call with every argument, on one line and with a line for each."""
    first, *rest = [parameter.name for parameter in optimizer.parameters]
    # optim.Adam(learning_rate, beta1=beta1, …)
    words = [first, *(f"{name}={name}" for name in rest)]
    arguments = ", ".join(words)
    lines = "".join(f"    {word},\n" for word in words)
    one_line = expression(f"optim.{optimizer.name}({arguments})")
    stacked = expression(f"optim.{optimizer.name}(\n{lines})")
    assert isinstance(one_line, cst.Call)
    assert isinstance(stacked, cst.Call)
    return one_line, stacked


def _signature(optimizer: LegacyOptimizer, inject: bool) -> str:
    words: list[str] = []
    for parameter in optimizer.parameters:
        name = parameter.name
        if name != RATE:
            words.append(f"{name}={parameter.default}")
        # each step may set a rate that is injected, and the call need not
        elif inject:
            words.append(f"{RATE}={UNSET_RATE}")
        else:
            words.append(RATE)
    line = ", ".join(words)
    name = function_name(optimizer.name)
    if len(f"def {name}({line}):") <= WIDTH:
        return line
    lines = "".join(f"    {word},\n" for word in words)
    return f"\n{lines}"


def _body(node: cst.BaseExpression) -> str:
    code = cst.Module([]).code_for_node(node)
    # as it stands behind `return`, in the body of a function
    text = code.replace("\n", "\n    ").replace("'", '"')
    text = CHOICE.sub(APART, text)
    return LAST_CALL.sub(_stacked, text)


def _stacked(match: re.Match[str]) -> str:
    """A call on a line of its own, with a line for each argument if it is too long."""
    indent, callee, arguments = match.groups()
    if len(match[0]) <= WIDTH:
        return match[0]
    lines = ""
    for argument in arguments.split(", "):
        lines += f"{indent}    {argument},\n"
    return f"{indent}{callee}(\n{lines}{indent}),"
