"""Edits of calls: another callee, other arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codemods.cst.template import SLICES
from codemods.inference.binding import values_of
from codemods.optimizers.base import Support
from codemods.rewriting.edits.base import (
    Edit,
    Holes,
    Place,
    expressions_within,
    joined,
)
from codemods.sources.modules import Span, Unit


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
