"""One file while it is edited: what the edits of its parts share, and leave to one another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from codemods.cst.breaking import limit_of_rewritten
from codemods.cst.quotes import usual_quote
from codemods.cst.template import expression
from codemods.model import Form
from codemods.optimizers.base import Support
from codemods.rewriting.edits import Holes
from codemods.sources.modules import Span
from codemods.sources.text import LINE_END

PLACEHOLDER = re.compile(r"\{(\w+(?::\w+)?)\}")
WORD = re.compile(r"\b[^\W\d]\w*")


@dataclass
class Applied:
    """What came of the edits.

    `after` has the new source of each edited span, `supports` the helpers that the file now needs.
    `fixed` are the names of helpers that cannot be called otherwise.
    """

    after: dict[Span, str] = field(default_factory=dict)
    supports: dict[str, Support] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)


@dataclass
class Left:
    """What the expressions of a statement leave to that.

    `preludes` go before it, and `comments` above. `has_unset` says that a learning rate may be a
    placeholder, `shrinks` that arguments were taken away.
    """

    preludes: list[cst.SimpleStatementLine] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    has_unset: bool = False
    shrinks: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether anything of it is for the next statement."""
        return bool(self.preludes or self.comments or self.shrinks)


class EditedFile:
    """The names and the style of a file, and the pieces of it that have been edited so far."""

    def __init__(
        self,
        module: cst.Module,
        code: str,
        names: Mapping[str, str],
        form: Form,
        called: Mapping[str, str],
    ) -> None:
        """`called` has the other names under which the file has some helpers."""
        self.module = module
        self.names = names
        self.form = form
        self.called = called
        self.limit = limit_of_rewritten(code, module.default_indent)
        self.lines = LINE_END.split(code)
        self.quote = usual_quote(code)
        self.is_narrow = len(module.default_indent) == 2
        self.applied = Applied()
        self.left = Left()
        # how far the statement is indented that is edited now
        self.indent = 0
        # what holes take: with what edits do at the same spans, and without
        self.done: dict[Span, cst.BaseExpression] = {}

    def say(self, template: str, supports: Sequence[Support] = ()) -> str:
        """A template in which the placeholders for names are filled in, with the file's quotes."""
        self.need(supports)
        # not where one stands within the other
        if not re.search(r"['\\]", template):
            template = template.replace('"', self.quote)
        # a helper that a template names outside of placeholders cannot be called otherwise
        literal = {*WORD.findall(PLACEHOLDER.sub("", template))}
        known = dict(self.names)
        for support in supports:
            if support.name in literal:
                self.applied.fixed.add(support.name)
            name = self.called.get(support.name, support.name)
            known[f"support:{support.name}"] = name
        # `{it}` and other holes stay
        return PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), template)

    def fill(
        self,
        template: str,
        holes: Holes,
        supports: Sequence[Support] = (),
        **more: cst.BaseExpression,
    ) -> cst.BaseExpression:
        """The expression that a template makes of pieces of the source, and of some more."""
        filled = self.pieces(holes)
        return expression(self.say(template, supports), **filled, **more)

    def pieces(self, holes: Holes) -> dict[str, cst.BaseExpression]:
        """The pieces of the source that holes take, as they have been edited."""
        return {name: self.done[span] for name, span in holes}

    def need(self, supports: Sequence[Support], are_fixed: bool = False) -> None:
        """Note the helpers that the file needs; those that are fixed keep their names."""
        self.applied.supports.update((support.name, support) for support in supports)
        if are_fixed:
            self.applied.fixed.update(support.name for support in supports)

    def indent_within(self, span: Span) -> int:
        """How far the line on which an expression starts is indented within its statement."""
        line = self.lines[span[0] - 1]
        indent = len(line) - len(line.lstrip())
        return max(0, indent - self.indent)
