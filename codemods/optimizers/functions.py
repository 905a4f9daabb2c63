"""A legacy optimizer as a function of the legacy arguments that returns what they are in optax.

For places where the arguments are not known: the class is a value, chosen at run time, or called
with `**arguments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent

import libcst as cst

from codemods.cst.breaking import fit
from codemods.cst.template import expression, statement
from codemods.model import Form
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import UNSET_RATE, converted, with_float_rate
from codemods.optimizers.base import RATE, LegacyOptimizer, Parameter, Support, helper

BY_NAME = "FLAX_OPTIMIZERS"
WIDTH = 88
INDENT = " " * 4
PASS = statement("pass")


def function_name(optimizer: str) -> str:
    """`flax_gradient_descent` for `GradientDescent`."""
    return "flax_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", optimizer).lower()


def as_function(optimizer: str, form: Form, inject: bool) -> tuple[Support, ...]:
    """The function for a class that is not composite, behind the helpers that it calls.

    Unless the learning rate is injected, it requires one.
    """
    found = optimizers()[optimizer]
    name = function_name(optimizer)
    call = _call(found)
    call = with_float_rate(call) if inject else call
    new = converted(found, call, form, inject)
    returned = cst.SimpleStatementLine([cst.Return(new.expression)])
    module = cst.Module([])
    body = module.code_for_node(fit(module, WIDTH, PASS, returned, len(INDENT)))
    words = [_parameter(one, inject) for one in found.parameters]
    summary = f"{optimizer} by the names that its arguments had in Flax."
    if inject:
        summary += (
            "\n\n    Where no learning rate is given, each step has to set it.\n    "
        )
    source = f'''{fitted(f"def {name}", words, ":")}
    """{summary}"""
'''
    source += indent(body.replace("'", '"'), INDENT)
    return (*new.supports, helper(source))


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
    new = converted(optimizers()[optimizer], call, form, inject=False).expression
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
    return (*supports, helper(f"{BY_NAME} = {{\n{entries}}}\n"))


def _call(optimizer: LegacyOptimizer) -> cst.Call:
    """A call with every argument: `optim.Adam(learning_rate, beta1=beta1, …)`."""
    first, *rest = [parameter.name for parameter in optimizer.parameters]
    words = ", ".join((first, *(f"{name}={name}" for name in rest)))
    return cst.ensure_type(expression(f"optim.{optimizer.name}({words})"), cst.Call)


def _parameter(parameter: Parameter, inject: bool) -> str:
    """A parameter of the function, with its default."""
    if parameter.name != RATE:
        return f"{parameter.name}={parameter.default}"
    # each step may set a rate that is injected, and the call need not
    return f"{RATE}={UNSET_RATE}" if inject else RATE


def fitted(head: str, parts: Sequence[str], tail: str) -> str:
    """A call or signature, with its parts on lines of their own if they need them."""
    text = ", ".join(parts)
    line = f"{head}({text}){tail}"
    indentation = head[: len(head) - len(head.lstrip())]
    inner = indentation + INDENT
    if len(line) <= WIDTH:
        return line
    if len(inner + text) <= WIDTH:
        return f"{head}(\n{inner}{text}\n{indentation}){tail}"
    lines = "".join(f"{inner}{part},\n" for part in parts)
    return f"{head}(\n{lines}{indentation}){tail}"
