"""What a rule decides to do at a place: edits as data.

They are made from templates with holes for pieces of the original source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from codemods.optimizers.base import Support
from codemods.sources.modules import Span

IT = "{it}"
"""The hole for what an edit is about."""

Holes = tuple[tuple[str, Span], ...]


@dataclass(frozen=True)
class Edit:
    """A change of the source at `span`."""

    span: Span


@dataclass(frozen=True)
class Replace(Edit):
    """Replace the expression at `span` by a template.

    Its holes `{name}` are expressions of the original source, by span; the hole `{it}` is what is
    replaced, and `{slices}` in `x[{slices}]` is what a subscript has between its brackets.
    `{optax}`, `{jax}`, `{TrainState}` and the other keys of `planning.names.CHOICES`
    stand for the names under which the file imports these, and `{support:NAME}` for an emitted
    helper.
    """

    template: str
    holes: Holes = ()
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class Argument:
    """An argument of a rewritten call: the original one at `index`, or a template.

    It is passed by `keyword`, if that is given.
    """

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


@dataclass(frozen=True)
class MakeStatic(Edit):
    """Make parameters of these names static for the `jax.jit`, or the call of it, at `span`."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class ConvertDefinition(Edit):
    """Turn the constructor call at `span` into its optax form.

    `rate` is the source text of another learning rate, if it gets one, and `mask` the name or the
    span of the predicate that chooses the parameters whose weights decay, if not all do. `link` is
    the source text of what comes first in the chain. `note` is what the report says of the site.
    """

    optimizer: str
    inject: bool
    rate: str = ""
    mask: Span | str | None = None
    link: str = ""
    note: str = ""

    @property
    def holes(self) -> Holes:
        return (("mask", self.mask),) if isinstance(self.mask, tuple) else ()


@dataclass(frozen=True)
class TakePart(Edit):
    """Put a part of the call at `span` in its place: the one at another span.

    `opposite` has the source texts of two predicates within the call, each of which is proven to be
    the negation of the other.
    """

    part: Span
    opposite: tuple[str, str]

    @property
    def holes(self) -> Holes:
        return (("part", self.part),)


@dataclass(frozen=True)
class ConvertClass(Edit):
    """Put a function in the place of the legacy class at `span`, or of the callee of its call.

    An attribute of a class is a static method.
    """

    optimizer: str
    inject: bool
    is_static: bool = False


@dataclass(frozen=True)
class ConvertLookup(Edit):
    """Turn the lookup of a legacy class by name at `span` into one among functions.

    It is a call of `getattr` with two arguments, or of `hasattr`. The functions are those for
    `optimizers`.
    """

    optimizers: tuple[str, ...]
    inject: bool


@dataclass(frozen=True)
class ReplaceQuoted(Edit):
    """Replace names in the quoted annotation at `span`: pairs of a dotted name and a template."""

    names: tuple[tuple[str, str], ...]
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class ReplaceStatement(Edit):
    """Replace the simple statement at `span` by statements made from templates.

    Without templates, the statement or whole function is removed. The comments of a removed
    statement stay where it was, or go to the one at the span `heir`. The holes of `raw` are filled
    without what other edits do at the same spans, though with what these do within.
    """

    templates: tuple[str, ...]
    holes: Holes = ()
    raw: Holes = ()
    heir: Span | None = None
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class TakeBody(Edit):
    """Put the body of the `if` at `span` in its place."""


@dataclass(frozen=True)
class Spread(Edit):
    """Put several elements in the place of the one at `span` in a tuple or a subscript.

    They are made from templates, in which `{it}` is the element that was there.
    """

    templates: tuple[str, ...]


@dataclass(frozen=True)
class MoveStatement(Edit):
    """Move the statement at `span` to just before the one at `target`, in the same block."""

    target: Span


@dataclass(frozen=True)
class SplitParameter:
    """Several parameters for one: their names with templates of annotations, which may be empty.

    `described` has what a docstring that explains the old one says instead, by name.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    described: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ChangeParameters(Edit):
    """Add, split or drop parameters of the function at `span`, in its docstring, too.

    `added` has names with the source text of their annotations, which may be empty; those of
    `by_keyword` can be given by keyword alone. `unpacked` are the source texts of statements with
    which the body begins.
    """

    added: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    by_keyword: tuple[str, ...] = ()
    split: tuple[SplitParameter, ...] = ()
    unpacked: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeriveState(Edit):
    """Let the dataclass at `span` derive from `TrainState`, without its decorator.

    It loses the fields that are `dropped`.
    """

    dropped: tuple[str, ...]


@dataclass(frozen=True)
class MoveImport(Edit):
    """Import the name `bound`, which the statement at `span` imports, elsewhere or no more."""

    bound: str
    statement: str


@dataclass(frozen=True)
class Keep:
    """Nothing to edit: the construct is valid as it stands once the rest has changed."""


JOINED = (ChangeArguments, ChangeParameters, MakeStatic, ReplaceQuoted)
"""The edits of which two at one place are one that does all that either does."""


def merged(first: Edit, second: Edit) -> Edit | None:
    """One edit that does what two edits of the same place do; None if they do not go together."""
    match first, second:
        case _ if first == second:
            return first
        case MoveStatement(), MoveStatement():
            return min(first, second, key=lambda one: one.target)
        # (optimizer, rng) of which one edit spreads the optimizer, and another what is made of it
        case Spread(), Spread():
            inner, outer = (first, second) if IT in second.templates else (second, first)
            if IT not in outer.templates:
                return None
            place = outer.templates.index(IT)
            ahead, behind = outer.templates[:place], outer.templates[place + 1 :]
            templates = (*ahead, *inner.templates, *behind)
            return replace(first, templates=templates)
    if type(first) is not type(second) or not isinstance(first, JOINED):
        return None
    joined: dict[str, Any] = dict(vars(first))
    for name, ours in vars(first).items():
        if isinstance(ours, tuple) and name != "span":
            joined[name] = tuple(dict.fromkeys((*ours, *vars(second)[name])))
    return type(first)(**joined)
