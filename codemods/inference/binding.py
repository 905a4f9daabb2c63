"""Which argument of a call is which parameter."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import chain
from typing import Generic, TypeVar

from codemods.inference.objects import Arguments, Frame, Place
from codemods.sources.modules import Unit

T = TypeVar("T")
REQUIRED = Parameter.empty


@dataclass(frozen=True)
class Bound(Generic[T]):
    """What a call gives, by parameter.

    Attributes:
      given: the parameters that get an argument of their own.
      rest: what goes into `*args`.
      others: what goes into `**kwargs`.
      defaults: the defaults of the parameters that get nothing.
      unpacked: whether the call unpacks containers. Parameters that are not in `given` may then get
        something, too.
    """

    given: dict[str, T]
    rest: tuple[T, ...]
    others: dict[str, T]
    defaults: dict[str, T]
    unpacked: bool

    @property
    def complete(self) -> dict[str, T]:
        """What each parameter has, defaults included."""
        return {**self.defaults, **self.given}


@dataclass(frozen=True)
class Wrong:
    """A call that Python refuses, and what it says: `too many positional arguments`."""

    why: str


def bind(
    signature: Signature, call: ast.Call, *earlier: ast.Call
) -> Bound[ast.expr] | Wrong:
    """The arguments of a call.

    Args:
      signature: of what is called, without the parameters that are bound to an instance.
      call: the call.
      earlier: calls of `functools.partial` that filled in arguments before, the innermost first.
    """
    # Those of `functools.partial(step, rate)` without `step`.
    calls = [ast.Call(one.func, one.args[1:], one.keywords) for one in earlier]
    calls.append(call)
    positional: list[ast.expr] = []
    keywords: dict[str, ast.expr] = {}
    unpacked = False
    for one in calls:
        plain = _ahead_of_unpacked(one.args)
        # Behind `step(*batch)`, no position is known.
        if not unpacked:
            positional += plain
        unpacked |= len(plain) < len(one.args)
        # A later call has another value for the keyword of an earlier one.
        for word in one.keywords:
            if word.arg is not None:
                keywords[word.arg] = word.value
    words = chain.from_iterable(one.keywords for one in calls)
    # step(**options)
    unpacked |= any(word.arg is None for word in words)
    return bind_values(signature, positional, keywords, unpacked)


def bind_values(
    signature: Signature,
    positional: Sequence[T],
    keywords: Mapping[str, T],
    unpacked: bool = False,
) -> Bound[T] | Wrong:
    """The same for values of any kind. More of them may follow if they are `unpacked`."""
    # With unpacked arguments, it is no error that some seem to be missing.
    bind_to = signature.bind_partial if unpacked else signature.bind
    try:
        found = bind_to(*positional, **keywords)
    except TypeError as error:
        return Wrong(str(error))
    parameters = signature.parameters
    given = dict(found.arguments)
    rest: tuple[T, ...] = ()
    others: dict[str, T] = {}
    for name in found.arguments:
        kind = parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            rest = given.pop(name)
        elif kind is Parameter.VAR_KEYWORD:
            others = given.pop(name)
    defaults: dict[str, T] = {}
    for name, parameter in parameters.items():
        if name not in given and parameter.default is not REQUIRED:
            defaults[name] = parameter.default
    return Bound(given, rest, others, defaults, unpacked)


def arguments_of(
    signature: Signature, call: ast.Call, *earlier: ast.Call
) -> dict[str, ast.expr] | None:
    """The arguments by the parameters that get one.

    None if Python refuses the call, or if it is not known which argument a parameter gets.
    """
    found = bind(signature, call, *earlier)
    if isinstance(found, Wrong) or found.unpacked:
        return None
    return found.given


# Signatures


def taking(*names: str, **defaults: object) -> Signature:
    """A signature as data: parameters that calls have to give, then those with defaults.

    `"*name"` and `"**name"` are those that take whatever is left.
    """
    kinds = {
        0: Parameter.POSITIONAL_OR_KEYWORD,
        1: Parameter.VAR_POSITIONAL,
        2: Parameter.VAR_KEYWORD,
    }
    found: list[Parameter] = []
    for name in names:
        stars = name.count("*")
        found.append(Parameter(name.lstrip("*"), kinds[stars]))
    for name, value in defaults.items():
        found.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value))
    return Signature(sorted(found, key=lambda parameter: parameter.kind))


def signature_of(parameters: ast.arguments, bound: int = 0) -> Signature:
    """The signature of a function in view; the first `bound` of its parameters are left out.

    They are bound to something else, such as `self`. Defaults are their nodes.
    """
    by_position = [*parameters.posonlyargs, *parameters.args]
    # `ast` has the defaults of the last parameters alone.
    required = len(by_position) - len(parameters.defaults)
    defaults = [*([REQUIRED] * required), *parameters.defaults]
    found: list[Parameter] = []
    with_defaults = zip(by_position, defaults, strict=True)
    for at, (one, value) in enumerate(with_defaults):
        by_name = at >= len(parameters.posonlyargs)
        kind = Parameter.POSITIONAL_OR_KEYWORD if by_name else Parameter.POSITIONAL_ONLY
        found.append(Parameter(one.arg, kind, default=value))
    del found[:bound]
    if parameters.vararg is not None:
        found.append(Parameter(parameters.vararg.arg, Parameter.VAR_POSITIONAL))
    for one, value in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        default = REQUIRED if value is None else value
        found.append(Parameter(one.arg, Parameter.KEYWORD_ONLY, default=default))
    if parameters.kwarg is not None:
        found.append(Parameter(parameters.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(found)


def parameters_of(parameters: ast.arguments) -> list[ast.arg]:
    """The parameters that take one argument each, in order."""
    return [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]


def names_by_position(parameters: ast.arguments, bound: int = 0) -> list[str]:
    """The names of the parameters that calls may give by position."""
    by_position = (*parameters.posonlyargs, *parameters.args)
    names = [one.arg for one in by_position]
    return names[bound:]


# Arguments as they are written


def values_of(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call in the order of the source, whatever they are given to."""
    by_name = [word.value for word in call.keywords]
    return [*call.args, *by_name]


def is_unpacked(call: ast.Call) -> bool:
    """Whether some arguments of a call are in a container: `*arguments` or `**arguments`."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    return any(word.arg is None for word in call.keywords)


def _ahead_of_unpacked(positional: Sequence[ast.expr]) -> list[ast.expr]:
    """The arguments of which the position is known."""
    known: list[ast.expr] = []
    for argument in positional:
        if isinstance(argument, ast.Starred):
            break
        known.append(argument)
    return known


def arguments_in(unit: Unit, call: ast.Call, frame: Frame | None) -> Arguments:
    """What a call gives, in one frame."""
    positional: list[Place] = []
    starred: int | None = None
    for index, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            starred = index if starred is None else starred
            positional.append(("expression", argument.value, frame))
        else:
            positional.append(("expression", argument, frame))
    keywords = tuple(
        (one.arg, ("expression", one.value, frame))
        for one in call.keywords
        if one.arg is not None
    )
    unpacked = tuple(
        ("expression", one.value, frame) for one in call.keywords if one.arg is None
    )
    return Arguments(
        unit, call, tuple(positional), keywords, starred, unpacked, (), frame
    )
