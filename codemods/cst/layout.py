"""The layout of rewritten calls: as the original was, and within the file's line length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

from codemods.cst.pieces import BLANK, NOTHING, SEPARATOR, source

ExpressionT = TypeVar("ExpressionT", bound=cst.BaseExpression)

BLACK_LIMIT = 88
NARROW_LIMIT = 80
WIDE_LIMIT = 120
MOST_BREAKS = 8
TOLERANCE = 20
"""A line that was too long already may grow by so much before it is broken."""

ALIGNED = 12
"""Arguments that are indented more than this, from their statement, are aligned; others hang."""


def enclose(
    call: cst.Call,
    callee: cst.BaseExpression,
    arguments: Sequence[cst.Arg],
    hanging: bool,
    base: int,
) -> cst.Call:
    """`arrange`, where new arguments may have several lines.

    These are indented further, and break a call that stood on one line. `hanging` leaves the last
    parenthesis on the last line. `base` is how far the call's line is indented within its
    statement. Arguments that were aligned far to the right, below the old callee, move to where
    they hang.
    """
    old = {argument.value for argument in call.args}
    has_tall = False
    moved: list[cst.Arg] = []
    for item in arguments:
        is_tall = item.value not in old and "\n" in source(item.value)
        has_tall = has_tall or is_tall
        moved.append(_deeper(item) if is_tall else item)
    before = call.whitespace_before_args
    if isinstance(before, cst.ParenthesizedWhitespace):
        # step(
        #                 optimizer, batch)
        is_aligned = len(before.last_line.value) > base + ALIGNED
        stacks = is_aligned and not any(map(comments_of, call.args)) and not _has_tall(call.args)
    else:
        stacks = has_tall
    if stacks:
        return _stacked(call, callee, moved, hanging, base)
    return arrange(call, callee, moved)


def _has_tall(arguments: Sequence[cst.Arg]) -> bool:
    """Whether some argument has several lines."""
    return any("\n" in source(argument.value) for argument in arguments)


def arrange(call: cst.Call, callee: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> cst.Call:
    """A call with a new callee and new arguments.

    Each is on its own line if they were, and a trailing comma stays.
    """
    before = call.whitespace_before_args
    multiline = isinstance(before, cst.ParenthesizedWhitespace)
    last = call.args[-1] if call.args else None
    # The first comma without a comment is the model for all.
    plain = (argument for argument in call.args[:-1] if not comments_of(argument))
    model = next(plain, None)
    space = before if multiline else BLANK
    between = cst.Comma(whitespace_after=space) if model is None else model.comma
    arranged = []
    for index, argument in enumerate(arguments):
        was_last = last is not None and argument.value is last.value
        if index < len(arguments) - 1:
            arranged.append(_continued(argument, was_last, before, between))
        elif last is None or was_last:
            arranged.append(argument)
        # Another argument is the last now: it closes the call in the place of the old one.
        elif comments_of(argument):
            arranged.append(_closing_behind_comment(last, argument))
        else:
            arranged.append(_closing_as(last, argument))
    return call.with_changes(func=callee, args=arranged)


def _stacked(
    call: cst.Call,
    callee: cst.BaseExpression,
    arguments: Sequence[cst.Arg],
    hanging: bool,
    base: int,
) -> cst.Call:
    """A call with each argument on its own line."""
    inner = _newline(base + 4)
    comma = cst.Comma(whitespace_after=inner)
    args = [one.with_changes(comma=comma, whitespace_after_arg=NOTHING) for one in arguments]
    end = cst.MaybeSentinel.DEFAULT if hanging else cst.Comma(whitespace_after=_newline(base))
    args[-1] = args[-1].with_changes(comma=end)
    return call.with_changes(func=callee, whitespace_before_args=inner, args=args)


def _newline(width: int) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(" " * width))


def _deeper(argument: cst.Arg) -> cst.Arg:
    """An argument whose further lines move in by one step."""
    return cst.ensure_type(argument.visit(_Deeper()), cst.Arg)


class _Deeper(cst.CSTTransformer):
    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        lines: list[cst.EmptyLine] = []
        for line in updated_node.empty_lines:
            if line.comment:
                indent = cst.SimpleWhitespace("    " + line.whitespace.value)
                lines.append(line.with_changes(whitespace=indent))
            else:
                lines.append(line)
        last = cst.SimpleWhitespace("    " + updated_node.last_line.value)
        return updated_node.with_changes(empty_lines=lines, last_line=last)


def _continued(
    argument: cst.Arg,
    was_last: bool,
    before: cst.BaseParenthesizableWhitespace,
    between: cst.Comma | cst.MaybeSentinel,
) -> cst.Arg:
    """An argument that another one follows."""
    # An argument that was followed by another keeps its comma, and the comment behind that.
    if not was_last and isinstance(argument.comma, cst.Comma):
        return argument
    comma = between
    if comments_of(argument):
        comma = cst.Comma(whitespace_after=_comment_then(argument, before))
    return argument.with_changes(comma=comma, whitespace_after_arg=NOTHING)


def _comment_then(
    last: cst.Arg, before: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """The comment behind what was the last argument, then a new line for the next."""
    after = _space_behind(last)
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return after
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return after
    return after.with_changes(indent=before.indent, last_line=before.last_line)


def _space_behind(argument: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """The white space between an argument, with its comma, and what comes next."""
    if isinstance(argument.comma, cst.Comma):
        return argument.comma.whitespace_after
    return argument.whitespace_after_arg


def _closing_as(last: cst.Arg, argument: cst.Arg) -> cst.Arg:
    """A new last argument that closes the call as the old one did.

    The comment behind the old one belongs to that, and is left out.
    """
    comma = last.comma
    after = last.whitespace_after_arg
    if comments_of(last):
        match comma:
            case cst.Comma(whitespace_after=cst.ParenthesizedWhitespace() as space):
                comma = comma.with_changes(whitespace_after=_without_comments(space))
            case _ if isinstance(after, cst.ParenthesizedWhitespace):
                after = _without_comments(after)
    return argument.with_changes(comma=comma, whitespace_after_arg=after)


def _without_comments(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())


def _closing_behind_comment(last: cst.Arg, argument: cst.Arg) -> cst.Arg:
    """A new last argument with the comment behind it, and the closing parenthesis where it was."""
    closing = _space_behind(last)
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return argument
    match argument.comma:
        case cst.Comma(whitespace_after=cst.ParenthesizedWhitespace() as behind):
            space = behind.with_changes(indent=closing.indent, last_line=closing.last_line)
            return argument.with_changes(comma=cst.Comma(whitespace_after=space))
    return argument


def line_limit(code: str) -> int:
    """The line length of a file: the smallest of the usual limits that nearly all lines respect."""
    lines = [len(line) for line in code.split("\n")]
    exceptions = max(2, len(lines) // 50)
    for limit in (NARROW_LIMIT, BLACK_LIMIT, 100):
        if sum(length > limit for length in lines) <= exceptions:
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
    hanging = len(module.default_indent) == 2  # as Google's style has it
    old_lines = _lines(module, original).split("\n")
    before = max(map(len, old_lines)) + indent
    limit = before + TOLERANCE if before > limit else limit
    # Each break changes the lines, so the next call is chosen in the new text.
    for _ in range(MOST_BREAKS):
        breaker = _Breaker(module, updated, hanging, limit - indent)
        broken = updated.visit(breaker)
        if breaker.chosen is None or not isinstance(broken, cst.SimpleStatementLine):
            return updated
        updated = broken
    return updated


def joined(
    module: cst.Module,
    limit: int,
    original: cst.SimpleStatementLine,
    updated: cst.SimpleStatementLine,
    indent: int,
) -> cst.SimpleStatementLine:
    """A statement on one line, if it was too long for one before, and is not any more."""
    text = _lines(module, updated)
    # Comments end in a line break, and strings may have some.
    if "#" in text or '"""' in text or "\\" in text:
        return updated
    length_before = indent + len(_lines(module, _flat(original)))
    length = indent + len(_lines(module, _flat(updated)))
    return _flat(updated) if length_before > limit >= length else updated


def _flat(statement: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    return cst.ensure_type(statement.visit(_Flat()), cst.SimpleStatementLine)


class _Flat(cst.CSTTransformer):
    """Puts the arguments of calls on the line of the call."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        old = updated_node.args
        args = [one.with_changes(comma=SEPARATOR, whitespace_after_arg=NOTHING) for one in old]
        if args:
            args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(args=args, whitespace_before_args=NOTHING)


def limit_of_rewritten(code: str, indent: str) -> int:
    """How long the lines of rewritten statements may be, in a file with some indentation."""
    return max(line_limit(code), NARROW_LIMIT if len(indent) == 2 else BLACK_LIMIT)


def _lines(module: cst.Module, statement: cst.SimpleStatementLine) -> str:
    """A statement's text, without the indentation of its block."""
    return module.code_for_node(statement.with_changes(leading_lines=())).rstrip()


class _Breaker(cst.CSTTransformer):
    """Breaks one call behind its opening parenthesis.

    It is the outermost one that has arguments on a line which is too long.
    """

    def __init__(
        self, module: cst.Module, statement: cst.SimpleStatementLine, hanging: bool, limit: int
    ) -> None:
        super().__init__()
        self.module = module
        self.text = _lines(module, statement)
        self.hanging = hanging
        self.limit = limit
        self.chosen: cst.Call | cst.IfExp | None = None
        self.base = self.behind = 0

    def visit_Call(self, node: cst.Call) -> bool:
        if self.chosen is None and node.args and not _is_broken(node):
            candidate = _widest(node, self.module)
            code = self.module.code_for_node(candidate)
            callee = self.module.code_for_node(candidate.func)
            line = self._line(self.text.find(code) + len(callee))
            if len(line) > self.limit:
                self.chosen = candidate
                self.base = len(line) - len(line.lstrip(" "))
                following = self.text.split(code, 1)[1].split("\n", 1)[0]
                self.behind = len(following) + 1
        return True

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        return self._broken(updated_node) if original_node is self.chosen else updated_node

    def visit_Arg_value(self, node: cst.Arg) -> None:
        # f(rate if warm else 0.0): it breaks before `if`.
        choice = node.value
        if self.chosen is None and isinstance(choice, cst.IfExp):
            line = self._line(self.text.find(self.module.code_for_node(choice)))
            is_whole = isinstance(choice.whitespace_before_if, cst.SimpleWhitespace)
            if len(line) > self.limit and is_whole:
                self.chosen = choice
                self.base = len(line) - len(line.lstrip(" "))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.IfExp:
        if original_node is not self.chosen:
            return updated_node
        return updated_node.with_changes(whitespace_before_if=_newline(self.base + 4))

    def _line(self, index: int) -> str:
        """The line on which something stands."""
        start = self.text.rfind("\n", 0, index) + 1
        line, _, _ = self.text[start:].partition("\n")
        return line

    def _broken(self, call: cst.Call) -> cst.Call:
        step = self.base + 4
        inner = _newline(step)
        texts = map(self.module.code_for_node, call.args)
        width = step + sum(map(len, texts))
        # All arguments go on one line, if they fit, or else each on its own.
        behind = self.behind if self.hanging else 0
        stacked = width + behind > self.limit
        arguments = list(call.args)
        if stacked:
            comma = cst.Comma(whitespace_after=inner)
            arguments = [argument.with_changes(comma=comma) for argument in arguments]
        *others, last = arguments
        # A trailing comma would make a bare generator one of several arguments.
        is_bare = isinstance(last.value, cst.GeneratorExp) and not last.value.lpar
        if stacked and not self.hanging and not is_bare:
            last = last.with_changes(comma=cst.Comma(whitespace_after=_newline(self.base)))
        else:
            after = NOTHING if self.hanging else _newline(self.base)
            last = last.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=after)
        return call.with_changes(whitespace_before_args=inner, args=[*others, last])


def _is_broken(call: cst.Call) -> bool:
    return isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)


def _widest(call: cst.Call, module: cst.Module) -> cst.Call:
    """Of a chain of calls `a(…).b(…)`, the one with the longest arguments."""
    best, width = call, -1
    node: cst.BaseExpression = call
    while isinstance(node, cst.Call | cst.Attribute):
        if isinstance(node, cst.Call):
            texts = map(module.code_for_node, node.args)
            size = sum(map(len, texts))
            if size > width and not _is_broken(node):
                best, width = node, size
            node = node.func
        else:
            node = node.value
    return best


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a text."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()), *_]
        ):
            return True
    return False


def comments_of(argument: cst.Arg) -> list[str]:
    """The comments behind an argument, in order."""
    return [*comments_within(argument.comma), *comments_within(argument.whitespace_after_arg)]


def comments_within(node: cst.CSTNode | cst.MaybeSentinel) -> list[str]:
    """The comments of a statement, those above it included, or of white space."""
    visitor = _Comments()
    if isinstance(node, cst.CSTNode):
        node.visit(visitor)
    return visitor.found


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node.value)


def usual_quote(code: str) -> str:
    """The quotation mark that a file has most of."""
    plain = code.replace('"""', "").replace("'''", "")  # docstrings have theirs in any style
    return '"' if plain.count('"') >= plain.count("'") else "'"


def quoted_as(call: ExpressionT, quote: str) -> ExpressionT:
    """A converted call with the quotation marks of the file in its `static_args`."""
    updated = call.visit(_Requote(quote))
    return updated if isinstance(updated, type(call)) else call


class _Requote(cst.CSTTransformer):
    def __init__(self, quote: str) -> None:
        super().__init__()
        self.quote = quote

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        if updated_node.keyword is None or updated_node.keyword.value != "static_args":
            return updated_node
        names = cst.ensure_type(updated_node.value, cst.Tuple)
        elements: list[cst.BaseElement] = []
        for one in names.elements:
            if isinstance(one.value, cst.SimpleString):
                text = f"{self.quote}{one.value.raw_value}{self.quote}"
                elements.append(one.with_changes(value=cst.SimpleString(text)))
        return updated_node.with_changes(value=names.with_changes(elements=elements))
