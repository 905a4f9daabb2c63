"""Legacy programs at random: whole, small, and able to run.

Each has a function `run(params, batches)`, which gives the parameters after every step. What varies is what varies in real code:
how `flax.optim` is imported, which optimizers there are and how they are made, through what they pass, how a step is taken, what
is read of them beside it, and how all this is written: indentation, line ends, comments, blank lines, parentheses, encoding.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from hypothesis import strategies as st

Draw = st.DrawFn

IMPORTS = {
    "from flax import optim": "optim.",
    "import flax": "flax.optim.",
    "import flax.optim": "flax.optim.",
    "from flax import optim as flax_optim": "flax_optim.",
    "import flax.optim as fo": "fo.",
    "from flax import linen as nn, optim": "optim.",
    "import flax\nfrom flax import optim": "optim.",
}
"""Import statements, and what stands before the name of a class after them; None of them: the classes themselves."""

RATES = (
    "0.01",
    "1e-2",
    ".02",
    "0.1 * 0.3",
    "RATE",
    "config['rate']",
    "float(config['rate'])",
    "config.get('rate', 0.1)",
)
NUMBERS = {
    "beta": ("0.9", "0.5", "BETA"),
    "beta1": ("0.9", "0.8", "BETA"),
    "beta2": ("0.999", "0.9", "1 - 1e-2"),
    "eps": ("1e-8", "1e-6"),
    "weight_decay": ("0.0", "0", "1e-3", "config['decay']", "0.1"),
    "nesterov": ("True", "False", "config['nesterov']"),
    "centered": ("True", "False"),
    "rho": ("0.9", "0.8"),
    "trust_coefficient": ("0.001", "0.02"),
}
CLASSES = {
    "Adam": ("beta1", "beta2", "eps", "weight_decay"),
    "Momentum": ("beta", "weight_decay", "nesterov"),
    "GradientDescent": (),
    "Adagrad": ("eps",),
    "RMSProp": ("beta2", "eps", "centered"),
    "LAMB": ("beta1", "beta2", "weight_decay", "eps"),
    "LARS": ("beta", "weight_decay", "trust_coefficient"),
    "AdaBelief": ("beta1", "beta2", "eps", "weight_decay"),
    "Adadelta": ("rho", "eps", "weight_decay"),
}

COMMENTS = (
    "  # optim.Adam was slower", "  # the optimizer's target", "  #: once per step", "  # noqa: E501", "  # type: ignore", "  #",
)  # fmt: skip
ASIDES = (
    "# apply_gradient() is called below.\n",
    '"""A text with optimizer.target in it."""\n',
    "PLAN = {'optimizer': 'Adam', 'target': 'params', 'state': None}\n",
    (
        "class Camera:\n  def __init__(self):\n    self.target, self.state = (0, 0), 'on'\n\n"
        "  def apply_gradient(self, grad):\n    self.target = grad\n    return self.target\n\n\nCamera().apply_gradient((1, 2))\n"
    ),
    "def describe(optimizer='adam', step=0):\n  return f'{optimizer} at {step:>5}'\n",
    "assert describe is not None if 'describe' in globals() else True\n",
    "optimizers = ['adam', 'sgd']  # by name\n",
)
"""What has nothing to do with it, and looks as if it had."""


@dataclass
class Writer:
    """Writes lines, with what varies in how they are written."""

    draw: Draw
    unit: str
    lines: list[str] = field(default_factory=list)

    def line(self, depth: int, text: str) -> None:
        """A line of code, at a depth. May get a comment, a blank line before it or spaces after it."""
        chance = self.draw(st.integers(0, 30))
        if chance == 1:
            self.lines.append("")
        if chance == 2:
            self.lines.append(f"{self.unit * depth}# A comment of its own.")
        end = (
            self.draw(st.sampled_from(COMMENTS))
            if chance == 3
            else "  "
            if chance == 4
            else ""
        )
        self.lines.append(f"{self.unit * depth}{text}{end}")

    def block(self, depth: int, text: str) -> None:
        """Lines whose own depth is two spaces."""
        for line in text.splitlines():
            inner = len(line) - len(line.lstrip(" "))
            self.lines.append(
                f"{self.unit * (depth + inner // 2)}{line.lstrip(' ')}"
                if line.strip()
                else ""
            )


@dataclass
class Names:
    """What things are called in a program."""

    prefix: str
    optimizer: str
    grads: str


@st.composite
def programs(draw: Draw) -> bytes:
    """A program, as the bytes of its file."""
    unit = draw(st.sampled_from(("  ", "    ", "\t")))
    writer = Writer(draw, unit)
    statement = draw(st.sampled_from((*IMPORTS, "")))
    names = Names(
        IMPORTS.get(statement, ""),
        draw(
            st.sampled_from(
                ("optimizer", "opt", "optimizer", "state", "self_optimizer")
            )
        ),
        draw(st.sampled_from(("grads", "grad", "g"))),
    )
    with_state = draw(st.integers(0, 4)) == 0
    _head(draw, writer, statement)
    for _ in range(draw(st.integers(0, 2))):
        writer.block(0, draw(st.sampled_from(ASIDES)))
    writer.block(0, CONSTANTS)
    if with_state:
        kind = draw(st.sampled_from(("@flax.struct.dataclass", "@struct.dataclass")))
        if kind.startswith("@struct"):
            writer.line(0, "from flax import struct")
        elif "import flax" not in statement.split("\n"):
            writer.line(0, "import flax")
        writer.block(
            0, f"\n\n{kind}\nclass TrainState:\n  step: int\n  {names.optimizer}: Any\n"
        )
    writer.block(0, LOSS)
    _creation(draw, writer, names)
    rate = _step(draw, writer, names)
    _run(draw, writer, names, rate, with_state)
    return _encoded(draw, writer.lines)


CONSTANTS = """
RATE, BETA = 0.05, 0.7
config = {'rate': 0.03, 'decay': 1e-2, 'nesterov': True}

"""
LOSS = """

def loss_fn(params, x, y):
  return jnp.mean((jnp.tanh(x @ params['w'] + params['b']) - y) ** 2)


def schedule(step):
  return 0.1 / (1.0 + 0.1 * step)


"""


def _head(draw: Draw, writer: Writer, statement: str) -> None:
    if draw(st.booleans()):
        writer.block(
            0,
            draw(
                st.sampled_from(
                    ('"""Trains."""', "'''Trains\n\nwith flax.optim.'''", "# Trains.")
                )
            ),
        )
    lines = [
        "import functools",
        "from typing import Any",
        "import jax",
        "import jax.numpy as jnp",
    ]
    if statement:
        lines += statement.split("\n")
    else:
        listed = draw(
            st.permutations([*CLASSES, "MultiOptimizer", "ModelParamTraversal"])
        )
        separator = draw(st.sampled_from((", ", ",\n    ")))
        lines.append(f"from flax.optim import ({separator.join(listed)})")
    for line in draw(st.permutations(lines)):
        writer.block(0, line)


def _definition(draw: Draw, names: Names) -> str:
    """An expression that makes a definition."""
    if draw(st.integers(0, 7)) == 0:
        traversal, groups = (
            f"{names.prefix}ModelParamTraversal",
            f"{names.prefix}MultiOptimizer",
        )
        first, second = _single(draw, names), _single(draw, names)
        word = draw(st.sampled_from(("w", "b")))
        rest = draw(st.sampled_from((f"'{word}' not in path", f"not '{word}' in path")))
        return (
            f"{groups}(({traversal}(lambda path, _: '{word}' in path), {first}), "
            f"({traversal}(lambda path, _: {rest}), {second}))"
        )
    return _single(draw, names)


def _single(draw: Draw, names: Names) -> str:
    name = draw(st.sampled_from([*CLASSES]))
    chosen = [one for one in CLASSES[name] if draw(st.booleans())]
    words = [
        f"{one}={draw(st.sampled_from(NUMBERS[one]))}"
        for one in draw(st.permutations(chosen))
    ]
    rate = draw(st.sampled_from(RATES))
    arguments = [draw(st.sampled_from((rate, f"learning_rate={rate}"))), *words]
    separator = draw(st.sampled_from((", ", ", ", ",", ",\n      ")))
    end = draw(st.sampled_from(("", "", ",")))
    return f"{names.prefix}{name}({separator.join(arguments)}{end})"


def _creation(draw: Draw, writer: Writer, names: Names) -> None:
    """The function `create`, in one of its forms."""
    definition = _definition(draw, names)
    form = draw(st.integers(0, 5))
    if form == 0:
        writer.block(0, f"def create(params):\n  return {definition}.create(params)")
    elif form == 1:
        writer.block(0, f"def create(params):\n  optimizer_def = {definition}")
        writer.line(1, f"{names.optimizer} = optimizer_def.create(params)")
        writer.line(1, f"return {names.optimizer}")
    elif form == 2:
        writer.block(
            0,
            f"definition = {definition}\n\n\ndef create(params):\n  return definition.create(target=params)",
        )
    elif form == 3:
        writer.block(
            0,
            f"def make_definition():\n  return {definition}\n\n\ncreate = lambda params: make_definition().create(params)",
        )
    elif form == 4:
        writer.block(
            0,
            f"class Maker:\n  def __init__(self):\n    self.definition = {definition}\n\n  def create(self, params):\n"
            "    return self.definition.create(params)\n\n\ndef create(params):\n  return Maker().create(params)",
        )
    else:
        name = draw(st.sampled_from(("Adam", "Momentum", "RMSProp")))
        writer.block(
            0,
            f"make = functools.partial({names.prefix}{name}, learning_rate=0.02)\n\n\ndef create(params):\n"
            "  return make().create(params)",
        )
    writer.block(0, "\n")


def _step(draw: Draw, writer: Writer, names: Names) -> str:
    """The function `train_step`; what it takes beside optimizer and batch."""
    opt, grads = names.optimizer, names.grads
    rate = draw(
        st.sampled_from(
            ("", "", "0.02", f"schedule({opt}.state.step)", "lr", "RATE * 2")
        )
    )
    given = f", learning_rate={rate}" if rate else ""
    parameter = ", lr" if rate == "lr" else ""
    if draw(st.booleans()):
        writer.line(
            0,
            draw(
                st.sampled_from(("@jax.jit", "@functools.partial(jax.jit)", "@jax.jit"))
            ),
        )
    writer.line(0, f"def train_step({opt}, x, y{parameter}):")
    form = draw(st.integers(0, 5))
    step = f"{opt} = {opt}.apply_gradient({grads}{given})"
    if form in (0, 1):
        writer.line(
            1, f"loss, {grads} = jax.value_and_grad(loss_fn)({opt}.target, x, y)"
        )
        _between(draw, writer, names)
        writer.line(1, step)
    elif form == 2:
        writer.line(1, f"{grads} = jax.grad(lambda p: loss_fn(p, x, y))({opt}.target)")
        writer.line(1, f"new_{opt} = {opt}.apply_gradient({grads}{given})")
        writer.line(1, f"{opt} = new_{opt}")
    elif form == 3:
        writer.line(
            1, f"loss, {grads} = {opt}.compute_gradient(lambda p: loss_fn(p, x, y))"
        )
        writer.line(1, step)
    elif form == 4:
        writer.line(
            1, f"{opt}, loss = {opt}.optimize(lambda p: loss_fn(p, x, y){given})"
        )
    else:
        writer.line(
            1,
            f"return {opt}.apply_gradient(jax.grad(loss_fn)({opt}.target, x, y){given})",
        )
        writer.block(0, "\n")
        return parameter
    _after(draw, writer, names)
    writer.line(1, f"return {opt}")
    writer.block(0, "\n")
    return parameter


def _between(draw: Draw, writer: Writer, names: Names) -> None:
    grads = names.grads
    form = draw(st.integers(0, 6))
    if form == 0:
        writer.line(
            1,
            f"norm = jnp.sqrt(sum([jnp.vdot(v, v) for v in jax.tree_util.tree_leaves({grads})]))",
        )
        writer.line(
            1,
            f"{grads} = jax.tree_util.tree_map(lambda v: v * jnp.minimum(1.0, 0.5 / norm), {grads})",
        )
    elif form == 1:
        writer.line(
            1,
            f"{grads} = jax.tree_util.tree_map(lambda v: jnp.clip(v, -0.1, 0.1), {grads})",
        )
    elif form == 2:
        writer.line(
            1,
            f"{grads} = jax.tree_util.tree_map(lambda v, p: v + 0.01 * p, {grads}, {names.optimizer}.target)",
        )


def _after(draw: Draw, writer: Writer, names: Names) -> None:
    opt = names.optimizer
    form = draw(st.integers(0, 6))
    if form == 0:
        writer.line(1, f"count = {opt}.state.step + 1")
    elif form == 1:
        writer.line(
            1,
            f"{opt} = {opt}.replace(target=jax.tree_util.tree_map(lambda p: 0.99 * p, {opt}.target))",
        )
    elif form == 2:
        writer.line(
            1,
            f"size = sum(leaf.size for leaf in jax.tree_util.tree_leaves({opt}.target))",
        )
    elif form == 3:
        writer.line(1, f"params = {opt}.target; bias = params['b']")


def _run(
    draw: Draw, writer: Writer, names: Names, parameter: str, with_state: bool
) -> None:
    opt = names.optimizer
    given = ", 0.04" if parameter else ""
    writer.line(0, "def run(params, batches):")
    writer.line(1, f"{opt} = create(params)")
    form = draw(st.integers(0, 4))
    if with_state:
        writer.line(1, f"train_state = TrainState(step=0, {opt}={opt})")
        writer.line(1, "found = []")
        writer.line(1, "for x, y in batches:")
        writer.line(2, f"new = train_step(train_state.{opt}, x, y{given})")
        writer.line(
            2,
            f"train_state = train_state.replace(step=train_state.step + 1, {opt}=new)",
        )
        writer.line(2, f"found.append(train_state.{opt}.target)")
        writer.line(1, "return found")
    elif form == 0:
        writer.line(1, "def body(carry, batch):")
        writer.line(2, f"carry = train_step(carry, *batch{given})")
        writer.line(2, "return carry, carry.target")
        writer.line(
            1,
            "batches = jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *batches)",
        )
        writer.line(1, f"{opt}, found = jax.lax.scan(body, {opt}, batches)")
        writer.line(1, "return [found]")
    elif form == 1:
        writer.line(1, f"state_of = {{'optimizer': {opt}, 'found': []}}")
        writer.line(1, "for x, y in batches:")
        writer.line(
            2, f"state_of['optimizer'] = train_step(state_of['optimizer'], x, y{given})"
        )
        writer.line(2, "state_of['found'].append(state_of['optimizer'].target)")
        writer.line(1, "return state_of['found']")
    elif form == 2:
        writer.line(1, "found, step = [], 0")
        writer.line(1, "while step < len(batches):")
        writer.line(
            2, f"{opt}, step = train_step({opt}, *batches[step]{given}), step + 1"
        )
        writer.line(2, f"found.append({opt}.target)")
        writer.line(1, "return found")
    else:
        writer.line(1, "found = []")
        writer.line(1, "for x, y in batches:")
        writer.line(2, f"{opt} = train_step({opt}, x, y{given})")
        writer.line(2, f"found += [{opt}.target]")
        writer.line(1, f"assert int({opt}.state.step) == len(batches)")
        writer.line(1, "return found")


def _encoded(draw: Draw, lines: list[str]) -> bytes:
    newline = draw(st.sampled_from(("\n", "\n", "\n", "\r\n")))
    text = newline.join(lines) + draw(
        st.sampled_from((newline, newline, "", newline * 3))
    )
    form = draw(st.integers(0, 9))
    if form == 0:
        return codecs.BOM_UTF8 + text.encode()
    if form == 1:
        return f"# -*- coding: latin-1 -*-{newline}# Größe{newline}{text}".encode(
            "latin-1"
        )
    if form == 2:
        return f"# Größe, 大小{newline}{text}".encode()
    return text.encode()
