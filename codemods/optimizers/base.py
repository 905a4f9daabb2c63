"""How a module describes a legacy optimizer, and the pieces that its conversion is built from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import libcst as cst

from codemods.layout import arrange
from codemods.model import Form, Refusal
from codemods.template import expression

RATE = "learning_rate"
UNSET_RATE = "0.0"
"""Stands where legacy gave no learning rate because every step sets one."""


@dataclass(frozen=True)
class Parameter:
    """A constructor parameter: its name and its default as source text (None: required). Order is positional order."""

    name: str
    default: str | None


@dataclass(frozen=True)
class Support:
    """Code that is emitted once into the user's file: a function or class `name`, and the imports that it needs."""

    name: str
    source: str
    imports: tuple[str, ...]


@dataclass(frozen=True)
class Converted:
    """The optax expression for a constructor call, and the helpers it calls."""

    expression: cst.BaseExpression
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class LegacyOptimizer:
    """All that is known of one legacy optimizer.

    `refuse` decides on the plain syntax tree before anything is edited; after None, `convert` cannot fail. The last argument of
    `convert` tells whether the learning rate is to be an injected hyperparameter. `state` maps each field of the legacy state of
    a parameter to the field of the optax state that holds the same values.
    """

    name: str
    parameters: tuple[Parameter, ...]
    state: Mapping[str, str]
    refuse: Callable[[ast.Call], Refusal | None]
    convert: Callable[[cst.Call, Form, bool], Converted]
    documentation: str


def parameters(**defaults: str | None) -> tuple[Parameter, ...]:
    """Parameters from `name="default"`, in order."""
    return tuple(Parameter(name, default) for name, default in defaults.items())


# Deciding, on the plain syntax tree


def given(call: ast.Call, signature: Iterable[Parameter]) -> dict[str, ast.expr] | Refusal:
    """The arguments of a call by parameter, or why they cannot be told."""
    names = [parameter.name for parameter in signature]
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        word.arg is None for word in call.keywords
    ):
        return Refusal(
            "FO904",
            "The arguments of this optimizer are unpacked from a variable.",
            "Name the arguments, as optax names them.",
        )
    found = dict(zip(names, call.args, strict=False))
    if len(call.args) > len(names):
        return Refusal("FO905", f"More than {len(names)} positional arguments.", "Correct the call.")
    for word in call.keywords:
        if word.arg not in names or word.arg in found:
            return Refusal("FO905", f"The argument `{word.arg}` is unknown or given twice.", "Correct the call.")
        found[str(word.arg)] = word.value
    missing = [parameter.name for parameter in signature if parameter.default is None and parameter.name not in found]
    if missing:
        return Refusal("FO905", f"The argument `{missing[0]}` is missing.", "Correct the call.")
    return found


def refuser(signature: tuple[Parameter, ...], never_none: Iterable[str] = ()) -> Callable[[ast.Call], Refusal | None]:
    """A `refuse` that checks the call against a signature; the parameters in `never_none` crashed legacy when None."""

    def refuse(call: ast.Call) -> Refusal | None:
        found = given(call, signature)
        if isinstance(found, Refusal):
            return found
        for name in never_none:
            if name in found and is_none(found[name]):
                return Refusal("FO905", f"`{name}=None` failed at the first step.", "Give a number.")
        return None

    return refuse


def learning_rate(call: ast.Call) -> ast.expr | None:
    """The learning rate that a constructor is given, which is the first parameter of all but the composite ones."""
    value = call.args[0] if call.args else next((word.value for word in call.keywords if word.arg == RATE), None)
    return None if value is None or is_none(value) else value


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_plain(node: ast.expr) -> bool:
    """Whether an expression may be written twice: literals, names, attributes, constant subscripts."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()) | ast.UnaryOp(operand=value):
            return is_plain(value)
        case _:
            return False


# Converting


class Arguments:
    """The arguments of a constructor call by parameter, in the order in which they are written."""

    def __init__(self, call: cst.Call, signature: tuple[Parameter, ...]) -> None:
        self.call = call
        self.by_name: dict[str, cst.Arg] = {}
        for index, argument in enumerate(call.args):
            self.by_name[argument.keyword.value if argument.keyword else signature[index].name] = argument

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def source(self, name: str) -> str:
        """The source text of an argument; empty if it is not given."""
        return cst.Module([]).code_for_node(self.by_name[name].value) if name in self.by_name else ""

    def drop_if(self, name: str, *sources: str) -> None:
        """Forget an argument that says what is the default anyway, unless a comment stands beside it."""
        if name in self.by_name and self.source(name) in sources and not has_comment(self.by_name[name]):
            del self.by_name[name]

    def moved(self, name: str, keyword: str | None = None) -> cst.Arg:
        """An argument for another call: without its layout, unless a comment is part of that."""
        return renamed(compact(self.by_name[name]), keyword)


def has_comment(argument: cst.Arg) -> bool:
    return "#" in cst.Module([]).code_for_node(argument).replace(cst.Module([]).code_for_node(argument.value), "", 1)


def compact(argument: cst.Arg) -> cst.Arg:
    """An argument without the layout around it, unless that holds a comment."""
    if has_comment(argument):
        return argument
    return argument.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))


def renamed(argument: cst.Arg, keyword: str | None) -> cst.Arg:
    """The same argument under another keyword, or by position."""
    if keyword is None:
        return argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    if argument.keyword is not None:
        return argument.with_changes(keyword=cst.Name(keyword))
    return argument.with_changes(keyword=cst.Name(keyword), equal=NO_SPACE)


NO_SPACE = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def argument(keyword: str | None, source: str) -> cst.Arg:
    """A new argument from source text."""
    return renamed(cst.Arg(cst.parse_expression(source)), keyword)


def alias(
    arguments: Arguments,
    function: str,
    names: Mapping[str, tuple[str, ...]],
    inject: bool,
    static: tuple[str, ...] = (),
    explicit: Mapping[str, str] | None = None,
) -> cst.BaseExpression:
    """A call of an optax optimizer in the layout of the legacy call.

    Args:
      arguments: the legacy arguments.
      function: `optax.adam`.
      names: the optax keywords for each legacy parameter; a parameter that is not in it keeps its name.
      inject: whether the learning rate is an injected hyperparameter; it is then named, and made up if it was not given.
      static: the numeric parameters of `function` other than the learning rate. Injection must be told of each: it turns
        every number into an array, defaults included.
      explicit: arguments to add, where the defaults of legacy and optax differ.
    """
    written: list[cst.Arg] = []
    for name, kept in arguments.by_name.items():
        keywords = names.get(name, (name,))
        positional = name == RATE and kept.keyword is None and not inject
        written.append(renamed(kept, None if positional else keywords[0]))
        written.extend(renamed(compact(kept), keyword) for keyword in keywords[1:])
    if inject and RATE not in arguments:
        written.insert(0, argument(RATE, UNSET_RATE))
    written.extend(argument(keyword, source) for keyword, source in (explicit or {}).items())
    callee = expression(injected(function, static) if inject else function)
    return arrange(arguments.call, callee, written)


def injected(function: str, static: tuple[str, ...] = ()) -> str:
    """Source of the factory whose learning rate is a hyperparameter in the state."""
    if not static:
        return f"optax.inject_hyperparams({function})"
    words = ", ".join(f"'{name}'" for name in static)
    return f"optax.inject_hyperparams({function}, static_args=({words}{',' if len(static) == 1 else ''}))"


def link(function: str, *arguments: cst.Arg) -> cst.BaseExpression:
    """A link of a chain: `optax.trace(decay=0.9)`."""
    return cst.Call(func=expression(function), args=_separated(arguments))


def _separated(arguments: tuple[cst.Arg, ...]) -> list[cst.Arg]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [
        given if isinstance(given.comma, cst.Comma) or index == len(arguments) - 1 else given.with_changes(comma=comma)
        for index, given in enumerate(arguments)
    ]


def rate(arguments: Arguments, inject: bool, **extra: str) -> cst.BaseExpression:
    """The link that multiplies by minus the learning rate."""
    function = injected("optax.scale_by_learning_rate") if inject else "optax.scale_by_learning_rate"
    value = arguments.moved(RATE, RATE if inject else None) if RATE in arguments else argument(RATE, UNSET_RATE)
    return link(function, value, *(argument(keyword, source) for keyword, source in extra.items()))


def chain(arguments: Arguments, *links: cst.BaseExpression | None) -> cst.BaseExpression:
    """The links as one transformation, one on each line if the legacy call had its arguments so."""
    present = [item for item in links if item is not None]
    if len(present) == 1:
        return present[0].with_changes(lpar=arguments.call.lpar, rpar=arguments.call.rpar)
    written = [_commented(item, arguments.call) for item in present]
    return arrange(arguments.call, expression("optax.chain"), written)


def _commented(item: cst.BaseExpression, legacy: cst.Call) -> cst.Arg:
    """A link as an argument of a chain. A comment behind its last argument goes behind the link; others break its lines."""
    inside = [argument for argument in item.args if has_comment(argument)] if isinstance(item, cst.Call) else []
    if not inside or not isinstance(item, cst.Call):
        return cst.Arg(item)
    before = legacy.whitespace_before_args
    last = item.args[-1]
    if inside == [last]:
        comma = (
            last.comma if isinstance(last.comma, cst.Comma) else cst.Comma(whitespace_after=last.whitespace_after_arg)
        )
        if isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace) and isinstance(
            before, cst.ParenthesizedWhitespace
        ):
            after = comma.whitespace_after.with_changes(indent=before.indent, last_line=before.last_line)
            comma = comma.with_changes(whitespace_after=after)
        bare = last.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))
        return cst.Arg(item.with_changes(args=[*item.args[:-1], bare]), comma=comma)
    return cst.Arg(_broken(item, before))


def _broken(item: cst.Call, before: cst.BaseParenthesizableWhitespace) -> cst.Call:
    """A link with each argument on a line of its own, below the link, comments behind them."""
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return item
    deeper = before.with_changes(last_line=cst.SimpleWhitespace(before.last_line.value + "    "))
    arguments = []
    for given in item.args:
        after = given.comma.whitespace_after if isinstance(given.comma, cst.Comma) else given.whitespace_after_arg
        line_end = after.first_line if isinstance(after, cst.ParenthesizedWhitespace) else cst.TrailingWhitespace()
        following = before if given is item.args[-1] else deeper
        comma = cst.Comma(whitespace_after=following.with_changes(first_line=line_end))
        arguments.append(given.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")))
    return item.with_changes(whitespace_before_args=deeper, args=arguments)


def decay(arguments: Arguments, name: str = "weight_decay") -> cst.BaseExpression | None:
    """The link that adds decayed weights, if there is a weight decay."""
    return link("optax.add_decayed_weights", arguments.moved(name)) if name in arguments else None


def named(arguments: Arguments, names: Mapping[str, str], **defaults: str) -> list[cst.Arg]:
    """The arguments among `names` that are given, renamed; those of `defaults`, by their new name, where they are not."""
    written = [arguments.moved(name, names[name]) for name in arguments.by_name if name in names]
    present = {names[name] for name in arguments.by_name if name in names}
    return written + [argument(keyword, source) for keyword, source in defaults.items() if keyword not in present]
