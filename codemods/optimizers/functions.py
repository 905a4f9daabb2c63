"""A legacy optimizer as a function of the legacy arguments that returns what they are in optax.

For places where the arguments are not known: the class is a value, chosen at run time, or called
with `**arguments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from codemods.cst.template import expression
from codemods.model import Form
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import UNSET_RATE
from codemods.optimizers.base import RATE, LegacyOptimizer, Support

BY_NAME = "FLAX_OPTIMIZERS"
WIDTH = 88
LAST_CALL = re.compile(r"^( +)(.*)\(([^()]+)\),$", re.MULTILINE)
CHOICE = re.compile(r"^( +)(.*) (if .*) (else .*),$", re.MULTILINE)
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
    one_line, stacked = (found.convert(call, form, inject) for call in _calls(found))
    body = _body(one_line.expression)
    # with a line for each argument, if one line is not enough
    if len(f"    return {body}") > WIDTH:
        body = _body(stacked.expression)
    summary = f"{optimizer} by the names that its arguments had in Flax."
    if inject:
        summary += (
            "\n\n    Where no learning rate is given, each step has to set it.\n    "
        )
    source = f'''def {function_name(optimizer)}({_signature(found, inject)}):
    """{summary}"""
    return {body}
'''
    numpy = ("import jax.numpy as jnp",) if "jnp." in source else ()
    imports = (*numpy, "import optax")
    return (*one_line.supports, Support(function_name(optimizer), source, imports))


def by_name(chosen: Iterable[str], form: Form, inject: bool) -> tuple[Support, ...]:
    """A dictionary of such functions by the names of legacy classes, behind all that it needs."""
    names = sorted(chosen)
    supports = [
        support for name in names for support in as_function(name, form, inject)
    ]
    entries = "".join(f'    "{name}": {function_name(name)},\n' for name in names)
    return (*supports, Support(BY_NAME, f"{BY_NAME} = {{\n{entries}}}\n", ()))


def _calls(optimizer: LegacyOptimizer) -> tuple[cst.Call, cst.Call]:
    """A call with every argument, on one line and with a line for each."""
    first, *rest = [parameter.name for parameter in optimizer.parameters]
    words = [first, *(f"{name}={name}" for name in rest)]
    lines = "".join(f"    {word},\n" for word in words)
    texts = (
        f"optim.{optimizer.name}({', '.join(words)})",
        f"optim.{optimizer.name}(\n{lines})",
    )
    one_line, stacked = (expression(text) for text in texts)
    assert isinstance(one_line, cst.Call)
    assert isinstance(stacked, cst.Call)
    return one_line, stacked


def _signature(optimizer: LegacyOptimizer, inject: bool) -> str:
    words = []
    for parameter in optimizer.parameters:
        if parameter.name == RATE:
            words.append(f"{RATE}={UNSET_RATE}" if inject else RATE)
        else:
            words.append(f"{parameter.name}={parameter.default}")
    line = ", ".join(words)
    if len(f"def {function_name(optimizer.name)}({line}):") <= WIDTH:
        return line
    return "\n" + "".join(f"    {word},\n" for word in words)


def _body(node: cst.BaseExpression) -> str:
    text = cst.Module([]).code_for_node(node).replace("\n", "\n    ").replace("'", '"')
    return LAST_CALL.sub(_stacked, CHOICE.sub(APART, text))


def _stacked(match: re.Match[str]) -> str:
    """A call on a line of its own, with a line for each argument if it is too long."""
    indent, callee, arguments = match.groups()
    if len(match[0]) <= WIDTH:
        return match[0]
    lines = "".join(f"{indent}    {argument},\n" for argument in arguments.split(", "))
    return f"{indent}{callee}(\n{lines}{indent}),"
