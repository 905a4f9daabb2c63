"""What a rule decides to do at a place: edits as data, which know their own consequences.

They are made from templates with holes for pieces of the original source. A new kind of edit is one
class here, and one function of `rewriting` that carries it out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from itertools import chain
from typing import Any, Protocol, TypeVar

from codemods.cst.template import SLICES
from codemods.inference.binding import values_of
from codemods.optimizers import composite
from codemods.optimizers.base import Support
from codemods.optimizers.functions import Alias
from codemods.sources.modules import Span, Unit

EditT = TypeVar("EditT", bound="Edit")

IT = "{it}"
"""The hole for what an edit is about."""

Holes = tuple[tuple[str, Span], ...]

PLACEHOLDER = re.compile(r"\{(\w+)\}")
HOLE = re.compile(r"\{[^{}]*\}")
ROOT = re.compile(r"(?<![\w.])[^\W\d]\w*")
"""A word that is not an attribute."""


class Place(Protocol):
    """The construct that an edit is made for: a use, of which `analysis.uses` has the record."""

    @property
    def unit(self) -> Unit: ...
    @property
    def node(self) -> ast.expr | ast.stmt: ...
    @property
    def said(self) -> tuple[ast.expr, ...]: ...


@dataclass(frozen=True)
class Edit:
    """A change of the source at `span`, with its consequences, by default none."""

    span: Span

    @property
    def holes(self) -> Holes:
        """The pieces of the source that it puts elsewhere, by name."""
        return ()

    @property
    def supports(self) -> tuple[Support, ...]:
        """The helpers that its templates name."""
        return ()

    @property
    def needs(self) -> set[str]:
        """The keys of `analysis.names.CHOICES`, among others, that its templates name."""
        return {name for text in self.texts for name in PLACEHOLDER.findall(text)}

    @property
    def words(self) -> list[str]:
        """The words of source text that it may put into the file as they are."""
        return [
            word for text in self.texts for word in ROOT.findall(HOLE.sub("it", text))
        ]

    @property
    def texts(self) -> Iterator[str]:
        """All its texts, those of its parts included."""
        return _texts(self)

    def gone(self, place: Place) -> Iterable[ast.AST]:
        """The nodes that are not in the file any more."""
        del place
        return ()

    def merged(self, other: Edit) -> Edit | None:
        """One edit that does what two of the same place do; None if they do not go together."""
        return self if self == other else None


@dataclass(frozen=True)
class Keep:
    """Nothing to edit: the construct is valid as it stands once the rest has changed."""


# Expressions


@dataclass(frozen=True)
class Replace(Edit):
    """Replace the expression at `span` by a template.

    Its holes `{name}` are expressions of the original source, by span; the hole `{it}` is what is
    replaced, and `{slices}` in `x[{slices}]` is what a subscript has between its brackets.
    `{optax}`, `{jax}`, `{TrainState}` and the other keys of `analysis.names.CHOICES`
    stand for the names under which the file imports these, and `{support:NAME}` for an emitted
    helper.
    """

    template: str
    holes: Holes = ()
    supports: tuple[Support, ...] = ()

    def gone(self, place: Place) -> Iterable[ast.AST]:
        if IT in self.template or not isinstance(place.node, ast.expr):
            return ()
        unit = place.unit
        whole = self._whole(place.node, unit)
        kept = [span for _, span in self.holes]
        gone: list[ast.AST] = []
        for part in expressions_within(whole):
            # optimizer.target, which becomes `{optimizer}.params`
            is_kept = any(unit.is_in(part, hole) for hole in kept)
            if unit.is_in(part, self.span) and not is_kept:
                gone.append(part)
        return gone

    def _whole(self, node: ast.expr, unit: Unit) -> ast.expr:
        """The outermost expression around a node that is replaced with it; the node if none is."""
        whole = node
        # Type[optim.Optimizer], where the use is `optim.Optimizer`
        for outer in unit.ancestors(node):
            if isinstance(outer, ast.stmt):
                break
            if isinstance(outer, ast.expr) and unit.is_in(outer, self.span):
                whole = outer
        return whole


@dataclass(frozen=True)
class ReplaceQuoted(Edit):
    """Replace names in the quoted annotation at `span`: pairs of a dotted name and a template."""

    names: tuple[tuple[str, str], ...]
    supports: tuple[Support, ...] = ()

    @property
    def texts(self) -> Iterator[str]:
        return (template for _, template in self.names)

    def gone(self, place: Place) -> Iterable[ast.AST]:
        return [part for node in place.said for part in ast.walk(node)]

    def merged(self, other: Edit) -> Edit | None:
        return joined(self, other)


# Calls


@dataclass(frozen=True)
class Argument:
    """An argument of a new call, by a keyword if given: the original at `index`, or a template."""

    keyword: str | None
    index: int | None = None
    template: str = ""


@dataclass(frozen=True)
class RewriteCall(Edit):
    """Rewrite the call at `span`: a new callee from a template, and other arguments.

    Arguments that stay keep their layout. In templates, `{argument:N}` stands for the original
    argument N. `prelude` is a template of a statement that goes before the one with the call.
    `then` is a template of what is done with the result, such as `.replace(step=0)`.
    """

    function: str
    arguments: tuple[Argument, ...]
    holes: Holes = ()
    supports: tuple[Support, ...] = ()
    prelude: str = ""
    then: str = ""

    def gone(self, place: Place) -> Iterable[ast.AST]:
        call = _call_at(self.span, place)
        if call is None:
            return ()
        unit = place.unit
        kept = [span for _, span in self.holes]
        gone: list[ast.AST] = []
        for part in expressions_within(call.func):
            is_kept = any(unit.is_in(part, hole) for hole in kept)
            if not is_kept:
                gone.append(part)
        for argument in self._arguments_that_go(call, unit):
            gone += ast.walk(argument)
        return gone

    def _arguments_that_go(self, call: ast.Call, unit: Unit) -> Iterator[ast.expr]:
        """The arguments that are in no hole of a template."""
        kept = {argument.index for argument in self.arguments}
        text = " ".join(self.texts)
        holes = {span for _, span in self.holes}
        sliced = [span for name, span in self.holes if name == SLICES]
        for index, value in enumerate(values_of(call)):
            # jax.ops.index_update(x, jax.ops.index[1:], y): slices stay without what is indexed
            if isinstance(value, ast.Subscript) and unit.span(value) in sliced:
                yield value.value
            is_in_template = f"{{argument:{index}}}" in text
            if index in kept or is_in_template:
                continue
            spans = map(unit.span, expressions_within(value))
            if holes.isdisjoint(spans):
                yield value


@dataclass(frozen=True)
class ChangeArguments(Edit):
    """Take the arguments at some indices out of the call at `span`, and put others behind the rest.

    `added` has keywords, empty for an argument by position, with templates of values; `spread` has
    such arguments to put in the place of one. If a partial application is left with its function
    alone, the function takes its place.
    """

    dropped: tuple[int, ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    is_partial: bool = False
    spread: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()

    def gone(self, place: Place) -> Iterable[ast.AST]:
        call = _call_at(self.span, place)
        if call is None:
            return ()
        values = values_of(call)
        parts = [values[index] for index in self.dropped]
        # partial(step, optimizer=optimizer), of which only `step` is left
        is_alone = not self.added and len(values) == 1 + len(self.dropped)
        if self.is_partial and is_alone:
            parts.append(call.func)
        return [inner for part in parts for inner in ast.walk(part)]

    def merged(self, other: Edit) -> Edit | None:
        both = joined(self, other)
        names = [name for name, _ in both.added if name] if both else []
        # jax.jit(both, static_argnames="g_tx"), which cannot get that again
        return both if len(names) == len({*names}) else None


def _call_at(span: Span, place: Place) -> ast.Call | None:
    """The call at a span, of which the construct of an edit is the whole or a part."""
    node, unit = place.node, place.unit
    # the node is the call, or `optimizer.apply_gradient` in `optimizer.apply_gradient(grads)`
    for found in (node, unit.parents.get(node)):
        if isinstance(found, ast.Call) and unit.span(found) == span:
            return found
    return None


# Definitions


@dataclass(frozen=True)
class ConvertDefinition(Edit):
    """Turn the constructor call at `span` into its optax form.

    `rate` is the source text of another learning rate, if it gets one, and `as_float` the form that
    makes a float of its own, if that may be none when the program runs. `sets_decay` says that each
    step sets the weight decay. `link` is the source text of what comes first in the chain. `note`
    is what the report says of the site.
    """

    optimizer: str
    inject: bool
    rate: str = ""
    as_float: str = ""
    sets_decay: bool = False
    link: str = ""
    note: str = ""

    @property
    def needs(self) -> set[str]:
        # a composite is written with helpers
        return set() if self.optimizer in composite() else {"optax"}

    def gone(self, place: Place) -> Iterable[ast.AST]:
        # optim.Adam(rate), whose arguments stay
        return ast.walk(place.node.func) if isinstance(place.node, ast.Call) else ()


@dataclass(frozen=True)
class ConvertClass(Replace):
    """Put a function, perhaps of optax, in the place of a legacy class, alone or called."""

    inject: bool = False
    alias: Alias | None = None


@dataclass(frozen=True)
class ConvertPartial(RewriteCall):
    """Put the function in the place of the class in `functools.partial(optim.Adam, beta1=0.5)`."""

    alias: Alias | None = None


# Statements


@dataclass(frozen=True)
class StatementEdit(Edit):
    """An edit of a whole statement, or of the head of one, that starts where `span` does."""


@dataclass(frozen=True)
class ReplaceStatement(StatementEdit):
    """Replace the simple statement at `span` by statements made from templates.

    Without templates, the statement or whole function is removed, and its comments stay where it
    was.
    """

    templates: tuple[str, ...]
    holes: Holes = ()
    supports: tuple[Support, ...] = ()

    @property
    def removes(self) -> bool:
        return not self.templates

    def gone(self, place: Place) -> Iterable[ast.AST]:
        return ast.walk(place.node) if self.removes else ()


@dataclass(frozen=True)
class TakeBody(StatementEdit):
    """Put the body of the `if` at `span` in its place."""


@dataclass(frozen=True)
class MoveStatement(StatementEdit):
    """Move the statement at `span` to just before the one at `target`, in the same block."""

    target: Span

    def merged(self, other: Edit) -> Edit | None:
        if not isinstance(other, MoveStatement):
            return super().merged(other)
        # ahead of both targets
        return self if self.target <= other.target else other


@dataclass(frozen=True)
class ChangeParameters(StatementEdit):
    """Add, split or drop parameters of the function at `span`, in its docstring, too.

    `added` has names with the source text of their annotations, which may be empty. `split` has
    the names in the place of one. `unpacked` are the source texts of statements with which the
    body begins.
    """

    added: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    split: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unpacked: tuple[str, ...] = ()

    def merged(self, other: Edit) -> Edit | None:
        return joined(self, other)


@dataclass(frozen=True)
class DeriveState(StatementEdit):
    """Let the dataclass at `span` derive from `TrainState`, without the `dropped` fields."""

    dropped: tuple[str, ...]

    @property
    def needs(self) -> set[str]:
        return {"TrainState"}

    def gone(self, place: Place) -> Iterable[ast.AST]:
        if not isinstance(place.node, ast.ClassDef):
            return ()
        # @struct.dataclass
        return chain.from_iterable(map(ast.walk, place.node.decorator_list))


@dataclass(frozen=True)
class MoveImport(Edit):
    """Import the name `bound`, which the statement at `span` imports, elsewhere or no more."""

    bound: str
    statement: str


# Parts of edits


def joined(first: EditT, second: Edit) -> EditT | None:
    """One edit with all that two of one kind have in their tuples; None for different kinds."""
    if type(first) is not type(second):
        return None
    both: dict[str, Any] = {}
    for name, ours in vars(first).items():
        if name == "span" or not isinstance(ours, tuple):
            continue
        theirs = vars(second)[name]
        both[name] = tuple(dict.fromkeys((*ours, *theirs)))
    return replace(first, **both)


def expressions_within(node: ast.AST) -> Iterator[ast.expr]:
    """An expression, and all that it is made of."""
    return (part for part in ast.walk(node) if isinstance(part, ast.expr))


def _texts(part: object) -> Iterator[str]:
    """All texts within an edit, or within a part of it, but names of holes."""
    if isinstance(part, str):
        yield part
    parts: Iterable[object] = ()
    if isinstance(part, tuple):
        parts = part
    elif is_dataclass(part) and not isinstance(part, Support):
        parts = (inner for name, inner in vars(part).items() if name != "holes")
    for inner in parts:
        yield from _texts(inner)
