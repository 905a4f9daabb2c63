"""The arguments of a legacy constructor call, and the optax calls that they move into."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Signature

import libcst as cst

from codemods.cst.pieces import CallLayout, Piece, new
from codemods.cst.spacing import source
from codemods.cst.template import expression
from codemods.inference.binding import Bound, bind_values, taking
from codemods.model import Form
from codemods.optimizers.base import RATE, Converted, LegacyOptimizer, Parameter
from codemods.optimizers.methods import RATE_FIRST

UNSET_RATE = "0.0"
"""Stands for a learning rate that legacy did not give because every step sets one."""


class UnsetRate(cst.Float):
    """The same as a node, which is recognised wherever it is put."""

    def _visit_and_replace_children(self, visitor: cst.CSTVisitorT) -> UnsetRate:
        # the base class gives a plain number, whatever class this is
        visited = super()._visit_and_replace_children(visitor)
        return UnsetRate(visited.value, visited.lpar, visited.rpar)


PLACEHOLDER = f"{UNSET_RATE} is a placeholder: each step has to set the learning rate."

DECAY = "weight_decay"
SET_DECAY = "set_weight_decay"
"""The name of a weight decay that each step sets, as `with_set_decay` gives it."""

NUMPY = ("np", "numpy", "onp")


class Arguments:
    """The arguments of a call by parameter, in the order in which they are written.

    Each is taken once. If the learning rate is to be injected as a hyperparameter, it is named, and
    made up if it was not given.
    """

    def __init__(
        self,
        call: cst.Call,
        signature: tuple[Parameter, ...],
        form: Form,
        inject: bool,
    ) -> None:
        self.form = form
        self.inject = inject
        self.first = signature[0].name if signature else ""
        self.layout = CallLayout(call)
        self.left: dict[str, Piece] = {}
        defaults = {parameter.name: parameter.default for parameter in signature}
        given = bound(taking("*groups", "**more", **defaults), call)
        names = {id(argument): name for name, argument in given.items()}
        for piece in self.layout.pieces:
            # the groups of a MultiOptimizer have no names
            if id(piece.argument) in names:
                self.left[names[id(piece.argument)]] = piece
        # a hyperparameter is injected by its name: Adam(0.1) becomes adam(learning_rate=0.1)
        if inject and RATE in self.left:
            rate = self.left[RATE]
            value = injectable(rate.argument.value)
            self.left[RATE] = rate.valued(value).named(RATE)
        # Adam(beta1=0.9)
        elif inject:
            self.left = {RATE: new(RATE, UnsetRate(UNSET_RATE)), **self.left}
        # an alias would make arrays of its other numbers, if one were injected
        is_plain = not inject and SET_DECAY not in self.left
        self.may_be_alias = form == "alias" and is_plain

    def __contains__(self, name: str) -> bool:
        return name in self.left

    def value(self, name: str, default: str = "None") -> cst.BaseExpression:
        """The value of an argument that was not taken yet."""
        if name in self.left:
            return self.left[name].argument.value
        return cst.parse_expression(default)

    def drop_if(self, name: str, value: object) -> None:
        """Drop an argument that is a constant without effect, unless a comment is beside it."""
        if name not in self.left or self.left[name].comments:
            return
        if constant(self.value(name)) == value:
            del self.left[name]

    def take(self, names: Mapping[str, str | None], **defaults: str) -> list[Piece]:
        """The arguments among `names` under their new names, and `defaults` for others.

        The new name is None for an argument by position.
        """
        pieces: list[Piece] = []
        present: set[str | None] = set()
        for name in [*self.left]:
            if name in names:
                keyword = names[name]
                present.add(keyword)
                pieces.append(self.left.pop(name).named(keyword))
        for keyword, value in defaults.items():
            if keyword not in present:
                pieces.append(new(keyword, value))
        return pieces

    def take_all(self, names: Mapping[str, str], **defaults: str) -> list[Piece]:
        """All arguments left, under new names if these are among `names`.

        The first parameter stays one by position.
        """
        keywords: dict[str, str | None] = {}
        for name in self.left:
            keywords[name] = names.get(name, name)
        first = self.left.get(self.first)
        # Adam(0.1, beta1=0.9)
        if first is not None and first.argument.keyword is None:
            keywords[self.first] = None
        return self.take(keywords, **defaults)

    # Building

    def alias(
        self,
        function: str,
        names: Mapping[str, str],
        **explicit: str,
    ) -> cst.Call:
        """A call of an optax optimizer in the layout of the legacy call, by the new `names`.

        `explicit` are arguments whose defaults differ, to add if they are not given.
        """
        pieces = self.take_all(names, **explicit)
        return self.layout.arrange(self.with_rate(function), pieces)

    def with_rate(self, function: str) -> cst.BaseExpression:
        """What is called with the learning rate: `function`, or what injects that."""
        if self.inject:
            return expression(f"optax.inject_hyperparams({function})")
        return expression(function)

    def link(self, function: str | cst.BaseExpression, *pieces: Piece) -> Piece:
        """A link of a chain, such as `optax.trace(decay=0.9)`."""
        callee = expression(function) if isinstance(function, str) else function
        return self.layout.nest(callee, pieces)

    def descent(self, **extra: str) -> Piece:
        """The link that multiplies by minus the learning rate."""
        # inject_hyperparams(scale_by_learning_rate)(learning_rate=0.1)
        keyword = RATE if self.inject else None
        rate = self.take({RATE: keyword})
        more = (new(keyword, value) for keyword, value in extra.items())
        callee = self.with_rate("optax.scale_by_learning_rate")
        return self.link(callee, *rate, *more)

    def decay(self) -> Piece | None:
        """The link that adds decayed weights, if there is a weight decay."""
        if SET_DECAY in self.left:
            injecting = "optax.inject_hyperparams(optax.add_decayed_weights)"
            return self.link(injecting, *self.take({SET_DECAY: DECAY}))
        decay = self.take({DECAY: None})
        return self.link("optax.add_decayed_weights", *decay) if decay else None

    def chain(self, *links: Piece | None) -> cst.Call:
        """The links as one transformation, on lines of their own if the arguments were."""
        first, *others = [link for link in links if link is not None]
        # comments beside arguments that no link has taken go to the first one
        first = self.layout.annotated(first, self.left.values())
        callee = expression("optax.chain")
        return self.layout.arrange(callee, [first, *others], stack=True)


def converted(
    optimizer: LegacyOptimizer, call: cst.Call, form: Form, inject: bool
) -> Converted:
    """What becomes of a constructor call, perhaps with an injected learning rate."""
    # the optimizers within a composite one are converted on their own
    inject = inject and not optimizer.is_composite
    return optimizer.convert(Arguments(call, optimizer.parameters, form, inject))


def bound(signature: Signature, call: cst.Call) -> dict[str, cst.Arg]:
    """The arguments of a call that unpacks nothing, by parameter; for `**words`, by keyword."""
    positional: list[cst.Arg] = []
    keywords: dict[str, cst.Arg] = {}
    for argument in call.args:
        if argument.keyword is None:
            positional.append(argument)
        else:
            keywords[argument.keyword.value] = argument
    found = bind_values(signature, positional, keywords)
    assert isinstance(found, Bound)
    return {**found.given, **found.others}


def with_rate(call: cst.Call, rate: cst.BaseExpression) -> cst.Call:
    """A constructor call with another learning rate, or with one if it had none."""
    given = bound(RATE_FIRST, call).get(RATE)
    # Adam(beta1=0.9)
    if given is None:
        layout = CallLayout(call)
        return layout.arrange(call.func, [new(RATE, rate), *layout.pieces])
    changed = given.with_changes(value=rate)
    args = [changed if arg is given else arg for arg in call.args]
    return call.with_changes(args=args)


FROM_NUMBER = "float({rate})"
FROM_NUMBER_OR_NONE = "float({rate} or 0)"


def with_float_rate(call: cst.Call, form: str = FROM_NUMBER_OR_NONE) -> cst.Call:
    """A constructor call whose learning rate is made a float, by one of these forms."""
    given = bound(RATE_FIRST, call)[RATE]
    return with_rate(call, expression(form, rate=given.value))


def has_unset_rate(node: cst.CSTNode) -> bool:
    """Whether a placeholder for a learning rate is anywhere within a node."""
    if isinstance(node, UnsetRate):
        return True
    return any(map(has_unset_rate, node.children))


def behind(link: cst.BaseExpression, transformation: cst.Call) -> cst.Call:
    """A transformation behind another, as one chain in its layout."""
    layout = CallLayout(transformation)
    # another link for a chain that is there already
    function, first = transformation.func, new(None, link)
    if source(function) == "optax.chain":
        return layout.arrange(function, [first, *layout.pieces])
    links = [first, layout.nest(function, layout.pieces)]
    return layout.arrange(expression("optax.chain"), links, stack=True)


def with_set_decay(call: cst.Call, signature: tuple[Parameter, ...]) -> cst.Call:
    """A constructor call whose weight decay is one that each step sets."""
    defaults = {parameter.name: parameter.default for parameter in signature}
    decay = bound(taking("**more", **defaults), call).get(DECAY)
    layout = CallLayout(call)
    named = [piece for piece in layout.pieces if piece.argument is decay]
    # Adam(0.1), whose default is 0
    if not named:
        return layout.arrange(call.func, [*layout.pieces, new(SET_DECAY, "0.0")])
    value = injectable(named[0].value)
    if constant(value) is ...:
        value = expression("float({decay})", decay=value)
    others = [piece for piece in layout.pieces if piece not in named]
    set_later = named[0].valued(value).named(SET_DECAY)
    return layout.arrange(call.func, [*others, set_later])


def constant(node: cst.BaseExpression) -> object:
    """The value of a number, None, True or False; `...` for all else."""
    match node:
        case cst.Integer() | cst.Float():
            return node.evaluated_value
        case cst.Name("None" | "True" | "False" as name):
            return {"None": None, "True": True, "False": False}[name]
    return ...


def injectable(rate: cst.BaseExpression) -> cst.BaseExpression:
    """A learning rate as injection takes it: a float.

    Injection ignores None and NumPy's scalars, and an integer would change its type at the first
    step.
    """
    match rate:
        case cst.Name("None"):
            return UnsetRate(UNSET_RATE)
        case cst.Integer(value=digits) if digits.isdecimal():
            return cst.Float(f"{digits}.0")
        # np.float32(rate)
        case cst.Call(
            func=cst.Attribute(value=cst.Name(module), attr=cst.Name(kind))
        ) if module in NUMPY and kind.startswith("float"):
            return expression("float({rate})", rate=rate)
    return rate
