"""Rewritten statements within the line length of their file."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from codemods.cst.spacing import (
    BLANK,
    INDENT,
    NOTHING,
    bare,
    closed,
    lined_up,
    newline,
    one_per_line,
)

BLACK_LIMIT = 88
NARROW_LIMIT = 80
WIDE_LIMIT = 120
MOST_BREAKS = 8
OPEN = re.compile(r",\s*\)")
TOLERANCE = 20
"""A line that was too long already may grow by so much before it is broken."""


def limit_of_rewritten(code: str, indent: str) -> int:
    """How long the lines of rewritten statements may be, in a file with some indentation."""
    usual = NARROW_LIMIT if len(indent) == 2 else BLACK_LIMIT
    return max(line_limit(code), usual)


def line_limit(code: str) -> int:
    """The line length of a file: the smallest of the usual limits that nearly all lines respect."""
    lines = [len(line) for line in code.split("\n")]
    exceptions = max(2, len(lines) // 50)
    for limit in (NARROW_LIMIT, BLACK_LIMIT, 100):
        longer = sum(length > limit for length in lines)
        if longer <= exceptions:
            return limit
    return WIDE_LIMIT


def fit(
    module: cst.Module,
    limit: int,
    original: cst.SimpleStatementLine,
    updated: cst.SimpleStatementLine,
    indent: int,
) -> cst.SimpleStatementLine:
    """Break the calls of a rewritten statement, outermost first, until its lines fit a limit.

    Lines may be as long as they were.
    """
    # Google's style indents by two, and leaves the last parenthesis on the last line.
    hanging = len(module.default_indent) == 2
    old_lines = _lines(module, original).split("\n")
    before = max(map(len, old_lines)) + indent
    limit = before + TOLERANCE if before > limit else limit
    # Each break changes the lines, so the next call is chosen in the new text.
    for _ in range(MOST_BREAKS):
        # what is as it was is broken last
        for kept in ("\n".join(old_lines), ""):
            breaker = _Breaker(module, updated, hanging, limit - indent, kept)
            broken = updated.visit(breaker)
            if breaker.chosen is not None:
                break
        if breaker.chosen is None or not isinstance(broken, cst.SimpleStatementLine):
            return updated
        updated = broken
    return updated


class _Breaker(cst.CSTTransformer):
    """Breaks one call behind its opening parenthesis.

    It is the outermost one with a parenthesis within the limit, on a line that is too long, and not
    in the text that is kept; of a chain, the last one.
    """

    def __init__(
        self,
        module: cst.Module,
        statement: cst.SimpleStatementLine,
        hanging: bool,
        limit: int,
        kept: str,
    ) -> None:
        super().__init__()
        self.module = module
        self.kept = kept
        self.text = _lines(module, statement)
        self.hanging = hanging
        self.limit = limit
        self.chosen: cst.Call | cst.IfExp | None = None
        self.base = self.behind = 0

    def visit_Call(self, node: cst.Call) -> bool:
        if self.chosen is not None or not node.args or _is_broken(node):
            return True
        for link in _links(node):
            code = self.module.code_for_node(link)
            callee = self.module.code_for_node(link.func)
            behind_callee = self.text.find(code) + len(callee)
            line = self._line(behind_callee)
            start = self.text.rfind("\n", 0, behind_callee) + 1
            # state.replace(opt_state=opt_state).apply_gradients(
            is_within = behind_callee < start + self.limit and code not in self.kept
            if len(line) > self.limit and is_within:
                self.chosen = link
                self.base = _indent_of(line)
                # What follows the call on its last line, and the parenthesis.
                behind = self.text.split(code, 1)[1]
                following, _, _ = behind.partition("\n")
                self.behind = len(following) + 1
                break
        return True

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if original_node is not self.chosen:
            return updated_node
        return self._broken(updated_node)

    def visit_Parameters(self, node: cst.Parameters) -> bool:
        # lambda params, tx=optax.adam(0.1): create(…) breaks in its body
        return False

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        # Before Python 3.12, no line ends within f"{step(state)}".
        return False

    def visit_Arg_value(self, node: cst.Arg) -> None:
        # f(rate if warm else 0.0): it breaks before `if`.
        choice = node.value
        if self.chosen is not None or not isinstance(choice, cst.IfExp):
            return
        code = self.module.code_for_node(choice)
        line = self._line(self.text.find(code))
        is_whole = isinstance(choice.whitespace_before_if, cst.SimpleWhitespace)
        if len(line) > self.limit and is_whole:
            self.chosen = choice
            self.base = _indent_of(line)

    def leave_IfExp(
        self, original_node: cst.IfExp, updated_node: cst.IfExp
    ) -> cst.IfExp:
        if original_node is not self.chosen:
            return updated_node
        before_if = newline(self.base + INDENT)
        return updated_node.with_changes(whitespace_before_if=before_if)

    def _line(self, index: int) -> str:
        """The line on which something stands."""
        start = self.text.rfind("\n", 0, index) + 1
        rest = self.text[start:]
        line, _, _ = rest.partition("\n")
        return line

    def _broken(self, call: cst.Call) -> cst.Call:
        step = self.base + INDENT
        opening = newline(step)
        texts = [self.module.code_for_node(one) for one in call.args]
        # f(rate,  # the base rate
        #   beta)
        if any("#" in text for text in texts):
            arguments = [_set_in(one, step) for one in call.args]
            return call.with_changes(whitespace_before_args=opening, args=arguments)
        width = step + sum(map(len, texts))
        # All arguments go on one line, if they fit, or else each on its own.
        behind = self.behind if self.hanging else 0
        if len(texts) > 1 and width + behind > self.limit:
            without_commas = [
                one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in call.args
            ]
            arguments = one_per_line(without_commas, self.base, self.hanging)
        else:
            *others, last = call.args
            closing = NOTHING if self.hanging else newline(self.base)
            arguments = [*others, closed(last, closing, comma=False)]
        return call.with_changes(whitespace_before_args=opening, args=arguments)


def _set_in(argument: cst.Arg, width: int) -> cst.Arg:
    """An argument with the line behind its comma, if that ends one, set in by some blanks."""
    comma = argument.comma
    if not isinstance(comma, cst.Comma):
        return argument
    behind = comma.whitespace_after
    if not isinstance(behind, cst.ParenthesizedWhitespace):
        return argument
    blanks = cst.SimpleWhitespace(" " * width)
    behind = behind.with_changes(indent=True, last_line=blanks)
    return argument.with_changes(comma=comma.with_changes(whitespace_after=behind))


def _links(call: cst.Call) -> Iterator[cst.Call]:
    """The calls of a chain `a(…).b(…)(…)` that can be broken, the last one first."""
    node: cst.BaseExpression = call
    while isinstance(node, cst.Call | cst.Attribute):
        if isinstance(node, cst.Attribute):
            node = node.value
            continue
        if node.args and not _is_broken(node):
            yield node
        node = node.func


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_broken(call: cst.Call) -> bool:
    return isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)


def joined(
    module: cst.Module,
    limit: int,
    original: cst.SimpleStatementLine,
    updated: cst.SimpleStatementLine,
    indent: int,
    shrinks: bool,
) -> cst.SimpleStatementLine:
    """A statement that was too long for one line, on fewer lines if it needs no more.

    Arguments were taken away, or it has more lines than before, and none was held open by a comma.
    """
    text, before = _lines(module, updated), _lines(module, original)
    has_grown = text.count("\n") > before.count("\n")
    if not shrinks and (not has_grown or OPEN.search(before)):
        return updated
    # Comments end in a line break, and strings may have some.
    if "#" in text or '"""' in text or "\\" in text:
        return updated
    if indent + len(_lines(module, _flat(original))) <= limit:
        return updated
    again = fit(module, limit, original, _flat(updated), indent)
    is_shorter = _lines(module, again).count("\n") < text.count("\n")
    return again if is_shorter else updated


def _flat(statement: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    return cst.ensure_type(statement.visit(_Flat()), cst.SimpleStatementLine)


class _Flat(cst.CSTTransformer):
    """Puts the arguments of calls on the line of the call."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        arguments = [bare(argument) for argument in updated_node.args]
        args = lined_up(arguments, BLANK, NOTHING, trailing_comma=False)
        return updated_node.with_changes(args=args, whitespace_before_args=NOTHING)


def _lines(module: cst.Module, statement: cst.SimpleStatementLine) -> str:
    """A statement's text, without the indentation of its block."""
    bare_statement = statement.with_changes(leading_lines=())
    return module.code_for_node(bare_statement).rstrip()
