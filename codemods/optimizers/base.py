"""How a module describes a legacy optimizer, and how it decides whether a call can be converted."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Signature
from typing import TYPE_CHECKING

import libcst as cst

from codemods.inference.binding import Wrong, bind, taking
from codemods.messages import paragraphs
from codemods.model import Refusal
from codemods.optimizers.methods import RATE_FIRST

if TYPE_CHECKING:
    from codemods.optimizers.arguments import Arguments

RATE = "learning_rate"
SAMPLES: Mapping[str, float] = {
    RATE: 0.013,
    "beta": 0.83,
    "beta1": 0.87,
    "beta2": 0.983,
    "eps": 3e-6,
    "weight_decay": 0.017,
}
"""A value for each parameter that several constructors take, away from their defaults."""

OTHER_SAMPLE = 0.71

TRAIN_STATE = "{TrainState}"
"""Stands for the class of train states in the source of a helper."""


@dataclass(frozen=True)
class Parameter:
    """A constructor parameter: its name and its default as source text (None: required).

    The order of parameters is that of arguments by position.
    """

    name: str
    default: str | None


@dataclass(frozen=True)
class Support:
    """Code that is emitted once into the user's project.

    It is a function or class `name`, and the imports that it needs. A program has only one copy of
    a shared one.
    """

    name: str
    source: str
    imports: tuple[str, ...]
    is_shared: bool = False


IMPORTS = {
    "NamedTuple": "from typing import NamedTuple",
    "struct": "from flax import struct",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "optax": "import optax",
    "jax_utils": "from flax import jax_utils",
    "serialization": "from flax import serialization",
}
"""The imports of helpers, by the names that they read."""


def helper(source: str, is_shared: bool = False) -> Support:
    """A helper by its code: its last definition gives the name, what it reads the imports."""
    tree = ast.parse(source)
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imports = tuple(statement for name, statement in IMPORTS.items() if name in read)
    match tree.body[-1]:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return Support(name, source, imports, is_shared)
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return Support(name, source, imports, is_shared)
    raise ValueError(source)


def called_otherwise(support: Support, names: Mapping[str, str]) -> Support:
    """A helper whose code calls itself and others by other names."""
    lines = support.source.split("\n")
    tokens = [*tokenize.generate_tokens(io.StringIO(support.source).readline)]
    before = ["", *(token.string for token in tokens)]
    pairs = [*zip(before, tokens, strict=False)]
    # from the end, so that the places of the tokens ahead stay the same
    for previous, token in reversed(pairs):
        is_name = token.type == tokenize.NAME and token.string in names
        # state.step is no mention of `step`
        if is_name and previous != ".":
            (number, start), (_, end) = token.start, token.end
            line = lines[number - 1]
            ahead, behind = line[:start], line[end:]
            lines[number - 1] = f"{ahead}{names[token.string]}{behind}"
    name = names.get(support.name, support.name)
    return replace(support, name=name, source="\n".join(lines))


def other_names(name: str) -> tuple[str, ...]:
    """What a helper may be called where its own name means something else."""
    prefixes = ("flax_", "flax_optim_")
    # a class
    if name[0].isupper():
        prefixes = ("Flax", "FlaxOptim")
    return tuple(f"{prefix}{name}" for prefix in prefixes)


@dataclass(frozen=True)
class Converted:
    """The optax expression for a constructor call, and the helpers it calls."""

    expression: cst.Call
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class LegacyOptimizer:
    """All that is known of one legacy optimizer.

    `state` maps each field of the legacy state of a parameter to the field of the
    optax state that has the same values. `of_reals` says that complex parameters are stepped
    otherwise. `refuses` decides on a call in the place of the check against the parameters alone.
    `module` is the module of `flax.optim` that defined the class.

    Of the state in optax, `kept_in` names the types that have the fields of `state`, for
    checkpoints. It `counts` the steps, or not. One that `is_composite` is made of other optimizers.
    In a chain, one that `adds_decay` has its weight decay as a link of its own.

    For a class that keeps the legacy interface, `rule` is the body of `apply_param_gradient`, and
    `initial` has the fields of the state of a parameter before the first step, where these are not
    all zeros; of one that has more, `interface` is the class. `hyper_fields` are the fields of its
    hyperparameters whose names are not the constructor's, empty for no field.

    `samples` has a value away from the default for each number that only this constructor takes, to
    be compared with in the place of a program's own. `sizes` are the parameters that leaves are
    compared with. The legacy one `takes_scalars`, or no parameter without an axis; `fault` is what
    it does wrong, as the new one does. Its steps may give parameters another type, unless it
    `keeps_types`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    state: Mapping[str, str]
    convert: Callable[[Arguments], Converted]
    module: str
    kept_in: tuple[str, ...] = ()
    counts: bool = False
    is_composite: bool = False
    adds_decay: bool = False
    of_reals: bool = False
    refuses: Callable[[ast.Call], Refusal | None] | None = None
    rule: str = ""
    initial: str = ""
    interface: str = ""
    hyper_fields: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, float] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    takes_scalars: bool = True
    keeps_types: bool = False
    fault: str = ""

    @property
    def documentation(self) -> str:
        """The docstring of its module, each paragraph on one line."""
        return paragraphs(sys.modules[self.convert.__module__].__doc__)

    def sample(self, parameter: str) -> float:
        """A value for a parameter, in the place of a program's own."""
        return {**SAMPLES, **self.samples}.get(parameter, OTHER_SAMPLE)

    def refuse(self, call: ast.Call) -> Refusal | None:
        """Why a call stays, by its syntax tree before any edit; if None, `convert` cannot fail."""
        refuse = self.refuses or refuser(self.parameters)
        return refuse(call)


def parameters(**defaults: str | None) -> tuple[Parameter, ...]:
    """Parameters from `name="default"`, in order."""
    return tuple(Parameter(name, default) for name, default in defaults.items())


# Deciding, on the plain syntax tree

UNPACKED = Refusal(
    "FO904", "The arguments of this call are unpacked.", "Name the arguments."
)


def arguments_given(
    call: ast.Call, signature: Signature
) -> dict[str, ast.expr] | Refusal:
    """The arguments of a call by parameter, or why they are unknown."""
    found = bind(signature, call)
    # optim.Adam(0.1, learning_rate=0.1)
    if isinstance(found, Wrong):
        why = f"Python refuses this call: {found.why}."
        return Refusal("FO905", why, "Correct the call.")
    return UNPACKED if found.unpacked else found.given


def signature_of(parameters: Iterable[Parameter]) -> Signature:
    """The signature of a constructor."""
    parameters = list(parameters)
    required = [one.name for one in parameters if one.default is None]
    optional = {one.name: one.default for one in parameters if one.default is not None}
    return taking(*required, **optional)


def refuser(
    signature: tuple[Parameter, ...],
    optional: Iterable[str] = (),
    plain: Iterable[str] = (),
) -> Callable[[ast.Call], Refusal | None]:
    """A `refuse` that checks a call against a signature.

    Where a number is the default, None made legacy fail, unless it is `optional`. The new code has
    the value of `plain` parameters twice, so that it must not be computed in the call.
    """
    with_numbers = (one.name for one in signature if _is_number(one.default))
    numbers = {*with_numbers} - {*optional}

    def refuse(call: ast.Call) -> Refusal | None:
        found = arguments_given(call, signature_of(signature))
        if isinstance(found, Refusal):
            return found
        for name, value in found.items():
            # optim.Adam(0.1, eps=None)
            if name in numbers and is_none(value):
                why = f"With `{name}=None` the first step fails."
                return Refusal("FO905", why, "Give a number.")
            # optim.AdaBelief(0.1, eps=next(epsilons))
            if name in plain and not is_plain(value):
                why = f"The new code needs `{name}` twice."
                return Refusal("FO905", why, "Give its value a name first.")
        return None

    return refuse


def _is_number(default: str | None) -> bool:
    return default is not None and default[0].isdigit()


def learning_rate(call: ast.Call) -> ast.expr | None:
    """The learning rate that a constructor is given, first of all but the composite ones."""
    found = bind(RATE_FIRST, call)
    value = None if isinstance(found, Wrong) else found.given.get(RATE)
    return None if value is None or is_none(value) else value


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_plain(node: ast.expr) -> bool:
    """Whether an expression may be evaluated twice.

    That is so for literals, names, attributes, elements, and arithmetic with them.
    """
    return all(isinstance(part, PLAIN) for part in ast.walk(node))


PATHS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript)
OPERATIONS = (ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp)
PLAIN = (
    *PATHS,
    *OPERATIONS,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
