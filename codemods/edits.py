"""What a rule decides to do at a place: edits as data, made from templates with holes for pieces of the original source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from codemods.flow.modules import Span
from codemods.optimizers.base import Support

IT = "{it}"
"""The hole for what an edit is about."""

Holes = tuple[tuple[str, Span], ...]


@dataclass(frozen=True)
class Replace:
    """Replace the expression at `span` by a template.

    Its holes `{name}` are expressions of the original source, by span; the hole `{it}` is what is replaced.
    `{optax}`, `{jax}`, `{TrainState}` and the other keys of `codemods.names.CHOICES` stand for the names under which the file
    imports these, and `{support:NAME}` for an emitted helper.
    """

    span: Span
    template: str
    holes: Holes = ()
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class Argument:
    """An argument of a rewritten call: the original one at `index`, or a template; under `keyword`, if it has one."""

    keyword: str | None
    index: int | None = None
    template: str = ""


@dataclass(frozen=True)
class RewriteCall:
    """Rewrite the call at `span`: a new callee from a template, and arguments of which the kept ones keep their layout.

    In templates, `{argument:N}` stands for the original argument N. `prelude` is a template of a statement that goes before
    the one that holds the call. `then` is a template of what is done with the result, such as `.replace(step=0)`.
    """

    span: Span
    function: str
    arguments: tuple[Argument, ...]
    holes: Holes = ()
    supports: tuple[Support, ...] = ()
    prelude: str = ""
    then: str = ""


@dataclass(frozen=True)
class ChangeArguments:
    """Take the arguments at some indices out of the call at `span`, and put others behind the rest.

    `added` has keywords, empty for an argument by position, with templates of values; `spread` has such arguments to put in the
    place of one. If a partial application is left with its function alone, the function takes its place.
    """

    span: Span
    dropped: tuple[int, ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    is_partial: bool = False
    spread: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()


@dataclass(frozen=True)
class MakeStatic:
    """Tell `jax.jit` at `span`, which may be a call of it, that parameters of these names are static."""

    span: Span
    names: tuple[str, ...]


@dataclass(frozen=True)
class ConvertDefinition:
    """Turn the constructor call at `span` into its optax form.

    `rate` is the source text of another learning rate, if it gets one, and `mask` the name or the span of the predicate that
    chooses the parameters whose weights decay, if not all do. `link` is the source text of what comes first in the chain.
    """

    span: Span
    optimizer: str
    inject: bool
    rate: str = ""
    mask: Span | str | None = None
    link: str = ""

    @property
    def holes(self) -> Holes:
        return (("mask", self.mask),) if isinstance(self.mask, tuple) else ()


@dataclass(frozen=True)
class TakePart:
    """Put a part of the call at `span` in its place: what stands at another span.

    `opposite` has the source texts of two predicates within the call, of which each was shown to be the negation of the other.
    """

    span: Span
    part: Span
    opposite: tuple[str, str]

    @property
    def holes(self) -> Holes:
        return (("part", self.part),)


@dataclass(frozen=True)
class ConvertClass:
    """Put a function in the place of the legacy class at `span`; if a call of the class stands there, of its callee."""

    span: Span
    optimizer: str
    inject: bool


@dataclass(frozen=True)
class ConvertLookup:
    """Turn the lookup of a legacy class by its name at `span` into one among functions for `optimizers`.

    It is a call of `getattr` with two arguments, or of `hasattr`.
    """

    span: Span
    optimizers: tuple[str, ...]
    inject: bool


@dataclass(frozen=True)
class ConvertCustom:
    """Take the transformation of the optimizer made by the call at `span`.

    If the learning rate is to be an injected hyperparameter, `rate` is its index among the arguments, or None if it is not given.
    """

    span: Span
    inject: bool = False
    rate: int | None = None


@dataclass(frozen=True)
class ReplaceQuoted:
    """Replace words of the quoted annotation at `span`: pairs of a legacy word and a template."""

    span: Span
    words: tuple[tuple[str, str], ...]
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class ReplaceStatement:
    """Replace the simple statement at `span` by statements made from templates; by none, take it away, or a whole function.

    The comments of a statement that goes stay where it was, or go to the one at the span `heir`. The holes of `raw` are filled
    without what other edits do at the same spans, though with what these do within.
    """

    span: Span
    templates: tuple[str, ...]
    holes: Holes = field(default=())
    raw: Holes = field(default=())
    heir: Span | None = None
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True)
class TakeBody:
    """Put what stands under the `if` at `span` in the place of all of it."""

    span: Span


@dataclass(frozen=True)
class Spread:
    """Put several elements, made from templates, in the place of the one at `span` in a tuple or a subscript; `{it}` is that."""

    span: Span
    templates: tuple[str, ...]


@dataclass(frozen=True)
class MoveStatement:
    """Move the statement at `span` to just before the one at `target`, in the same block."""

    span: Span
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
class ChangeParameters:
    """Give the function at `span` further parameters, or take some away, along with what its docstring says of them.

    `added` has names with the source text of their annotations, which may be empty; those of `by_keyword` can be given by keyword
    alone. `unpacked` are the source texts of
    statements with which the body begins.
    """

    span: Span
    added: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    by_keyword: tuple[str, ...] = ()
    split: tuple[SplitParameter, ...] = ()
    unpacked: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeriveState:
    """Let the dataclass at `span` derive from `TrainState`, without its decorator and some of its fields."""

    span: Span
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class MoveImport:
    """Import the name `bound`, which the statement at `span` imports, by another statement."""

    span: Span
    bound: str
    statement: str


@dataclass(frozen=True)
class Keep:
    """Nothing to edit: the construct is valid as it stands once the rest has changed."""


Edit = (
    Replace
    | RewriteCall
    | ChangeArguments
    | MakeStatic
    | ConvertDefinition
    | TakePart
    | ConvertClass
    | ConvertLookup
    | ConvertCustom
    | ReplaceQuoted
    | ReplaceStatement
    | TakeBody
    | Spread
    | MoveStatement
    | ChangeParameters
    | DeriveState
    | MoveImport
)


def merged(first: Edit, second: Edit) -> Edit | None:
    """One edit that does what two edits of the same place do; None if they do not go together."""
    if first == second:
        return first
    if isinstance(first, ChangeArguments) and isinstance(second, ChangeArguments):
        arguments = (*first.added, *(one for one in second.added if one not in first.added))
        dropped = tuple({*first.dropped, *second.dropped})
        return replace(first, dropped=dropped, added=arguments, spread=(*first.spread, *second.spread))
    if isinstance(first, ReplaceQuoted) and isinstance(second, ReplaceQuoted):
        supports = (*first.supports, *second.supports)
        return replace(first, words=(*first.words, *second.words), supports=supports)
    if isinstance(first, MoveStatement) and isinstance(second, MoveStatement):
        return min(first, second, key=lambda one: one.target)
    if isinstance(first, MakeStatic) and isinstance(second, MakeStatic):
        return replace(first, names=(*first.names, *second.names))
    if isinstance(first, Spread) and isinstance(second, Spread):
        inner, outer = (first, second) if IT in second.templates else (second, first)
        if IT not in outer.templates:
            return None
        at = outer.templates.index(IT)
        return replace(first, templates=(*outer.templates[:at], *inner.templates, *outer.templates[at + 1 :]))
    if isinstance(first, ChangeParameters) and isinstance(second, ChangeParameters):
        parameters = (*first.added, *(one for one in second.added if one not in first.added))
        return replace(
            first,
            dropped=(*first.dropped, *second.dropped),
            added=parameters,
            by_keyword=(*first.by_keyword, *second.by_keyword),
            split=(*first.split, *second.split),
            unpacked=(*first.unpacked, *second.unpacked),
        )
    return None
