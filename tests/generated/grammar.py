"""Legacy programs at random: whole, small, and able to run.

Each has a function `run(params, batches)`, which gives the parameters after every step. What varies is what varies in real code:
how `flax.optim` is imported, which optimizers there are and how they are made, through what they pass, how a step is taken, what
is read of them beside it, and how all this is written: indentation, line ends, comments, blank lines, parentheses, encoding.
"""

from __future__ import annotations

import codecs
import re
from string import Template

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


CONSTANTS = """
RATE, BETA = 0.05, 0.7
config = {'rate': 0.03, 'decay': 1e-2, 'nesterov': True}


def loss_fn(params, x, y):
  return jnp.mean((jnp.tanh(x @ params['w'] + params['b']) - y) ** 2)


def schedule(step):
  return 0.1 / (1.0 + 0.1 * step)


"""
TITLES = (
    *("", "", ""),
    *('"""Trains."""\n', "'''Trains\n\nwith flax.optim.'''\n", "# Trains.\n"),
)
MODULES = (
    "import functools",
    "from typing import Any",
    "import jax",
    "import jax.numpy as jnp",
)
STATES = (
    "from flax import struct\n\n\n@struct.dataclass",
    "import flax\n\n\n@flax.struct.dataclass",
)
STATE = """$decorator
class TrainState:
  step: int
  $opt: Any


"""

CREATION = (
    """
def create(params):
  return $definition.create(params)
""",
    """
def create(params):
  optimizer_def = $definition
  $opt = optimizer_def.create(params)
  return $opt
""",
    """
definition = $definition


def create(params):
  return definition.create(target=params)
""",
    """
def make_definition():
  return $definition


create = lambda params: make_definition().create(params)
""",
    """
class Maker:
  def __init__(self):
    self.definition = $definition

  def create(self, params):
    return self.definition.create(params)


def create(params):
  return Maker().create(params)
""",
    """
make = functools.partial(${prefix}$chosen, learning_rate=0.02)


def create(params):
  return make().create(params)
""",
)
DECORATORS = ("", "", "", "@jax.jit\n", "@jax.jit\n", "@functools.partial(jax.jit)\n")
RATES_OF_STEPS = ("", "", "0.02", "schedule($opt.state.step)", "lr", "RATE * 2")
STEP = """
${decorator}def train_step($opt, x, y$parameter):
"""
BY_GRADIENT = """  loss, $grads = jax.value_and_grad(loss_fn)($opt.target, x, y)
$between  $opt = $opt.apply_gradient($grads$given)
$after  return $opt
"""
STEPS = (
    BY_GRADIENT,
    BY_GRADIENT,
    """  $grads = jax.grad(lambda p: loss_fn(p, x, y))($opt.target)
  new_$opt = $opt.apply_gradient($grads$given)
  $opt = new_$opt
$after  return $opt
""",
    """  loss, $grads = $opt.compute_gradient(lambda p: loss_fn(p, x, y))
  $opt = $opt.apply_gradient($grads$given)
$after  return $opt
""",
    """  $opt, loss = $opt.optimize(lambda p: loss_fn(p, x, y)$given)
$after  return $opt
""",
    """  return $opt.apply_gradient(jax.grad(loss_fn)($opt.target, x, y)$given)
""",
)
BETWEEN = (
    """  norm = jnp.sqrt(sum([jnp.vdot(v, v) for v in jax.tree_util.tree_leaves($grads)]))
  $grads = jax.tree_util.tree_map(lambda v: v * jnp.minimum(1.0, 0.5 / norm), $grads)
""",
    "  $grads = jax.tree_util.tree_map(lambda v: jnp.clip(v, -0.1, 0.1), $grads)\n",
    "  $grads = jax.tree_util.tree_map(lambda v, p: v + 0.01 * p, $grads, $opt.target)\n",
    *("", "", "", ""),
)
AFTER = (
    "  count = $opt.state.step + 1\n",
    "  $opt = $opt.replace(target=jax.tree_util.tree_map(lambda p: 0.99 * p, $opt.target))\n",
    "  size = sum(leaf.size for leaf in jax.tree_util.tree_leaves($opt.target))\n",
    "  params = $opt.target; bias = params['b']\n",
    *("", "", ""),
)
RUN = """

def run(params, batches):
  $opt = create(params)
"""
RUN_OF_STATE = """  train_state = TrainState(step=0, $opt=$opt)
  found = []
  for x, y in batches:
    new = train_step(train_state.$opt, x, y$rate)
    train_state = train_state.replace(step=train_state.step + 1, $opt=new)
    found.append(train_state.$opt.target)
  return found
"""
IN_A_LOOP = """  found = []
  for x, y in batches:
    $opt = train_step($opt, x, y$rate)
    found += [$opt.target]
  assert int($opt.state.step) == len(batches)
  return found
"""
RUNS = (
    """  def body(carry, batch):
    carry = train_step(carry, *batch$rate)
    return carry, carry.target
  batches = jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *batches)
  $opt, found = jax.lax.scan(body, $opt, batches)
  return [found]
""",
    """  state_of = {'optimizer': $opt, 'found': []}
  for x, y in batches:
    state_of['optimizer'] = train_step(state_of['optimizer'], x, y$rate)
    state_of['found'].append(state_of['optimizer'].target)
  return state_of['found']
""",
    """  found, step = [], 0
  while step < len(batches):
    $opt, step = train_step($opt, *batches[step]$rate), step + 1
    found.append($opt.target)
  return found
""",
    IN_A_LOOP,
    IN_A_LOOP,
)


@st.composite
def programs(draw: Draw) -> bytes:
    """A program, as the bytes of its file."""

    def one(*values: str) -> str:
        return draw(st.sampled_from(values))

    statement = one(*IMPORTS, "")
    opt = one("optimizer", "opt", "optimizer", "state", "self_optimizer")
    rate, prefix = one(*RATES_OF_STEPS), IMPORTS.get(statement, "")
    names = {
        "opt": opt,
        "grads": one("grads", "grad", "g"),
        "prefix": prefix,
        "definition": _definition(draw, prefix),
        "chosen": one("Adam", "Momentum", "RMSProp"),
        "parameter": ", lr" if rate == "lr" else "",
        "rate": ", 0.04" if rate == "lr" else "",
        "given": f", learning_rate={Template(rate).substitute(opt=opt)}"
        if rate
        else "",
    }

    def filled(text: str, **more: str) -> str:
        return Template(text).substitute(names, **more)

    of_state = draw(st.integers(0, 4)) == 0
    plain = one(*TITLES) + _imports(draw, statement)
    plain += "".join(draw(st.lists(st.sampled_from(ASIDES), max_size=2))) + CONSTANTS
    if of_state:
        plain += filled(STATE, decorator=one(*STATES))
    parts = filled(one(*CREATION)) + filled(STEP, decorator=one(*DECORATORS))
    between, after = filled(one(*BETWEEN)), filled(one(*AFTER))
    parts += filled(one(*STEPS), between=between, after=after)
    parts += filled(RUN) + filled(RUN_OF_STATE if of_state else one(*RUNS))
    unit = one("  ", "    ", "\t")
    lines = plain.split("\n") + _varied(draw, parts.split("\n"))
    return _encoded(draw, [_indented(line, unit) for line in lines])


def _imports(draw: Draw, statement: str) -> str:
    """The imports in some order, `statement` among them; without one, all classes by their names."""
    lines = [*MODULES, *filter(None, statement.split("\n"))]
    if not statement:
        names = [*CLASSES, "MultiOptimizer", "ModelParamTraversal"]
        separator = draw(st.sampled_from((", ", ",\n    ")))
        listed = separator.join(draw(st.permutations(names)))
        lines.append(f"from flax.optim import ({listed})")
    return "\n".join(draw(st.permutations(lines))) + "\n"


def _definition(draw: Draw, prefix: str) -> str:
    """An expression that makes a definition."""
    if draw(st.integers(0, 7)):
        return _single(draw, prefix)
    word = draw(st.sampled_from(("w", "b")))
    rest = draw(st.sampled_from((f"'{word}' not in path", f"not '{word}' in path")))
    groups = ", ".join(
        f"({prefix}ModelParamTraversal(lambda path, _: {chosen}), {_single(draw, prefix)})"
        for chosen in (f"'{word}' in path", rest)
    )
    return f"{prefix}MultiOptimizer({groups})"


def _single(draw: Draw, prefix: str) -> str:
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
    return f"{prefix}{name}({separator.join(arguments)}{end})"


def _varied(draw: Draw, lines: list[str]) -> list[str]:
    """Some lines of code with a comment, a blank line before them or spaces behind them."""
    found = []
    for line in lines:
        chance = draw(st.integers(0, 30)) if line else 0
        if chance in (1, 2):
            indent = re.match(" *", line)
            found.append(
                f"{indent[0]}# A comment of its own." if indent and chance == 2 else ""
            )
        ends = {3: draw(st.sampled_from(COMMENTS)), 4: "  "}
        found.append(line + ends.get(chance, ""))
    return found


def _indented(line: str, unit: str) -> str:
    """A line whose depth is told by two spaces, with other indentation."""
    code = line.lstrip(" ")
    return unit * ((len(line) - len(code)) // 2) + code


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
