"""The arguments of a legacy constructor call, and the optax calls that they move into, with their comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from codemods.optimizers.base import Parameter
from codemods.optimizers.pieces import Piece, Style, new
from codemods.template import expression

RATE = "learning_rate"
UNSET_RATE = "0.0"
"""Stands where legacy gave no learning rate because every step sets one."""

NUMPY = ("np", "numpy", "onp")


class Arguments:
    """The arguments of a call by parameter, in the order in which they are written."""

    def __init__(self, call: cst.Call, signature: tuple[Parameter, ...]) -> None:
        self.style = Style(call)
        self.by_name: dict[str, Piece] = {}
        for index, piece in enumerate(self.style.pieces):
            keyword = piece.argument.keyword
            self.by_name[keyword.value if keyword else signature[index].name] = piece

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def drop_if(self, name: str, value: object) -> None:
        """Forget an argument that is a constant which says nothing, unless a comment stands beside it."""
        piece = self.by_name.get(name)
        if piece is not None and constant(piece.value) == value and not piece.commented:
            del self.by_name[name]

    def named(self, names: Mapping[str, str], **defaults: str) -> list[Piece]:
        """The arguments among `names`, under their new names; of `defaults`, by new name, those that are not given."""
        given = {names[name]: piece for name, piece in self.by_name.items() if name in names}
        written = [piece.named(keyword) for keyword, piece in given.items()]
        return written + [new(keyword, value) for keyword, value in defaults.items() if keyword not in given]

    def rate(self, inject: bool) -> Piece:
        """The learning rate; to be injected, it is named, and of a type that injection takes for a number."""
        piece = self.by_name.get(RATE, new(RATE, UNSET_RATE))
        return piece.valued(_injectable(piece.value)).named(RATE) if inject else piece

    # Building

    def alias(
        self,
        function: str,
        names: Mapping[str, tuple[str, ...]],
        inject: bool,
        static: Sequence[str] = (),
        explicit: Mapping[str, str] | None = None,
    ) -> cst.Call:
        """A call of an optax optimizer in the layout of the legacy call.

        Args:
          function: `optax.adam`.
          names: the optax keywords for each legacy parameter; a parameter that is not in it keeps its name.
          inject: whether the learning rate is an injected hyperparameter; it is then made up if it was not given.
          static: the numeric parameters of `function` other than the learning rate. Injection must be told of each: it
            turns every number into an array, defaults included.
          explicit: arguments to add, where the defaults of legacy and optax differ.
        """
        written = [self.rate(inject)] if inject and RATE not in self else []
        for name, piece in self.by_name.items():
            if name == RATE:
                written.append(self.rate(inject))
                continue
            *others, last = names.get(name, (name,))
            written.extend(piece.bare().named(other) for other in others)
            written.append(piece.named(last))
        written.extend(new(keyword, value) for keyword, value in (explicit or {}).items())
        return self.style.arrange(injected(function, static) if inject else expression(function), written)

    def link(self, function: str | cst.BaseExpression, *pieces: Piece) -> Piece:
        """A link of a chain, such as `optax.trace(decay=0.9)`. With several arguments, comments break it into lines."""
        return self.style.nest(expression(function) if isinstance(function, str) else function, pieces)

    def decay(self) -> Piece | None:
        """The link that adds decayed weights, if there is a weight decay."""
        given = self.named({"weight_decay": "weight_decay"})
        return self.link("optax.add_decayed_weights", given[0].named(None)) if given else None

    def descent(self, inject: bool, *extra: Piece) -> Piece:
        """The link that multiplies by minus the learning rate."""
        function = "optax.scale_by_learning_rate"
        rate = self.rate(inject)
        return self.link(injected(function) if inject else function, rate if inject else rate.named(None), *extra)

    def chain(self, *links: Piece | None) -> cst.Call:
        """The links as one transformation, one on each line if the legacy call had its arguments so."""
        return self.style.arrange(expression("optax.chain"), [link for link in links if link is not None])


def injected(function: str, static: Sequence[str] = ()) -> cst.BaseExpression:
    """The factory whose learning rate is a hyperparameter in the state."""
    words = ", ".join(f"'{name}'" for name in static)
    comma = "," if len(static) == 1 else ""
    return expression(f"optax.inject_hyperparams({function}{f', static_args=({words}{comma})' if static else ''})")


def constant(node: cst.BaseExpression) -> object:
    """The value of a number, None, True or False; `...` for all else."""
    match node:
        case cst.Integer() | cst.Float():
            return node.evaluated_value
        case cst.Name("None" | "True" | "False" as name):
            return {"None": None, "True": True, "False": False}[name]
        case _:
            return ...


def _injectable(rate: cst.BaseExpression) -> cst.BaseExpression:
    """Injection passes over None and NumPy's scalars, and an integer would not keep its type over the steps."""
    match rate:
        case cst.Name("None"):
            return cst.Float(UNSET_RATE)
        case cst.Integer(value=digits) if digits.isdecimal():
            return cst.Float(f"{digits}.0")
        case cst.Call(func=cst.Attribute(value=cst.Name(module), attr=cst.Name(kind))) if module in NUMPY:
            return expression("float({rate})", rate=rate) if kind.startswith("float") else rate
        case _:
            return rate
