"""The planned edits of one file, carried out on its LibCST tree."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import CodeRange

from codemods.cst.layout import (
    arrange,
    comments_of,
    comments_within,
    enclose,
    fit,
    joined,
    limit_of_rewritten,
    quoted_as,
    usual_quote,
)
from codemods.cst.pieces import EQUAL, NOTHING, SEPARATOR
from codemods.cst.template import expression, statement
from codemods.model import Form
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import PLACEHOLDER as PLACEHOLDER_RATE
from codemods.optimizers.arguments import behind, has_unset_rate, with_mask, with_rate
from codemods.optimizers.base import Support
from codemods.optimizers.functions import as_function, by_name
from codemods.optimizers.multi_optimizer import MASK_BY_PATH
from codemods.rewriting import edits
from codemods.rewriting.fields import derived_state
from codemods.rewriting.imports import ImportEditor
from codemods.rewriting.movement import Block, Moves, gap_and_comments, with_gap
from codemods.rewriting.parameters import changed, with_parameters
from codemods.sources.modules import Span
from codemods.sources.suppression import MARKER
from codemods.sources.text import LINE_END

Node = cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]
COMPOUND = (cst.FunctionDef, cst.ClassDef, cst.If, cst.For, cst.While, cst.With)
OF_STATEMENTS = (
    edits.ReplaceStatement,
    edits.MoveStatement,
    edits.ChangeParameters,
    edits.DeriveState,
    edits.TakeBody,
)
Element = cst.BaseElement | cst.SubscriptElement
PLACEHOLDER = re.compile(r"\{(\w+(?::\w+)?)\}")
WORD = re.compile(r"\b[^\W\d]\w*")
PASS = statement("pass")


def span_of(position: CodeRange) -> Span:
    return (position.start.line, position.start.column, position.end.line, position.end.column)


@dataclass
class Applied:
    """What came of the edits.

    `after` has the new source of each edited span, `supports` the helpers that the file now needs.
    `fixed` are the names of helpers that cannot be called otherwise.
    """

    after: dict[Span, str] = field(default_factory=dict)
    supports: dict[str, Support] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)


class Applier(cst.CSTTransformer):
    """Applies edits bottom-up, so that a piece of source put into a hole has been edited itself."""

    def __init__(
        self,
        module: cst.Module,
        code: str,
        positions: Mapping[cst.CSTNode, CodeRange],
        planned: Sequence[edits.Edit],
        names: Mapping[str, str],
        form: Form,
        imports: ImportEditor,
        comments: Mapping[int, Sequence[str]],
        called: Mapping[str, str],
    ) -> None:
        """`called` has the other names under which the file has some helpers."""
        super().__init__()
        self.called = called
        self.module = module
        self.limit = limit_of_rewritten(code, module.default_indent)
        self.positions = positions
        self.lines = LINE_END.split(code)
        self.quote = usual_quote(code)
        self.names = names
        self.form = form
        self.imports = imports
        self.comments = comments
        self.applied = Applied()
        self._sort_edits(planned)
        self.inherited = self._inherited()
        self._sort_holes(planned)
        # what has been made of each statement, and of the expressions that holes take
        self.became: dict[cst.CSTNode, Node] = {}
        self.done: dict[Span, cst.BaseExpression] = {}
        self.raw: dict[Span, cst.BaseExpression] = {}
        # what expressions leave to the statement that they are in
        self.preludes: list[cst.SimpleStatementLine] = []
        self.stray: list[str] = []
        self.has_unset = False
        self.shrinks = False
        self.block = 0
        # the comments of a removed statement, for the next one
        self.carried: list[cst.EmptyLine] = []

    def _sort_edits(self, planned: Sequence[edits.Edit]) -> None:
        """Sort the edits by kind. Those of statements that may be decorated go by their start."""
        self.edits: dict[Span, edits.Edit] = {}
        self.statements: dict[Span, edits.ReplaceStatement] = {}
        self.parameters: dict[tuple[int, int], edits.ChangeParameters] = {}
        self.classes: dict[tuple[int, int], edits.DeriveState] = {}
        self.taken: dict[tuple[int, int], edits.TakeBody] = {}
        moving: list[edits.MoveStatement] = []
        for edit in planned:
            match edit:
                case edits.ReplaceStatement():
                    self.statements[edit.span] = edit
                case edits.ChangeParameters():
                    self.parameters[edit.span[:2]] = edit
                case edits.DeriveState():
                    self.classes[edit.span[:2]] = edit
                case edits.TakeBody():
                    self.taken[edit.span[:2]] = edit
                case edits.MoveStatement():
                    moving.append(edit)
                case _:
                    self._put_edit(edit)
        self.moves = Moves(moving)
        self.removed = {
            span[:2]: edit for span, edit in self.statements.items() if not edit.templates
        }

    def _put_edit(self, edit: edits.Edit) -> None:
        """Note the edit of an expression. Two edits of one quoted annotation become one."""
        other = self.edits.get(edit.span)
        is_quoted = isinstance(other, edits.ReplaceQuoted)
        together = edits.merged(other, edit) if other is not None and is_quoted else None
        self.edits[edit.span] = together or edit

    def _sort_holes(self, planned: Sequence[edits.Edit]) -> None:
        """Note which expressions holes take, and the lines on which any edit begins."""
        self.wanted = {span for edit in planned for _, span in getattr(edit, "holes", ())}
        self.wanted_raw = {span for edit in self.statements.values() for _, span in edit.raw}
        spans = (*self.edits, *self.wanted, *self.wanted_raw)
        self.begun = sorted({span[0] for span in spans})

    def _inherited(self) -> dict[Span, list[cst.EmptyLine]]:
        """The comments that go to other statements, by the spans of these."""
        heirs = {span: edit.heir for span, edit in self.statements.items() if edit.heir is not None}
        found: dict[Span, list[cst.EmptyLine]] = {}
        for node, position in self.positions.items() if heirs else ():
            heir = heirs.get(span_of(position))
            if heir is not None and isinstance(node, cst.BaseStatement):
                found.setdefault(heir, []).extend(_remarks(comments_within(node)))
        return found

    # Expressions

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: Node) -> Node:  # type: ignore[override]
        updated: Node = super().on_leave(original_node, updated_node)  # type: ignore[arg-type]
        if isinstance(updated, COMPOUND):
            updated = self._commented(original_node, updated)
        position = self.positions.get(original_node)
        if position is None:
            return updated
        span = _with_own_parentheses(original_node, span_of(position))
        if isinstance(original_node, cst.BaseStatement):
            self.moves.note(span, updated)
            self.became[original_node] = updated
        if not isinstance(updated, cst.BaseExpression):
            return updated
        edit = self.edits.get(span)
        if span in self.wanted_raw:
            self.raw[span] = updated
        # the tuple or subscript around it puts several elements in its place
        if isinstance(edit, edits.Spread):
            self.applied.after[span] = ", ".join(map(self._say, edit.templates))
        elif edit is not None:
            updated = self._edit(edit, updated)
            self.applied.after[span] = self.module.code_for_node(updated)
        if span in self.wanted:
            self.done[span] = updated
        return updated

    def _edit(self, edit: edits.Edit, node: cst.BaseExpression) -> cst.BaseExpression:
        """What an expression becomes."""
        match edit:
            case edits.Replace():
                new = self._fill(edit.template, edit.holes, edit.supports, it=node)
                return _parenthesized_as(node, new)
            case edits.RewriteCall() if isinstance(node, cst.Call):
                return self._rewrite_call(edit, node)
            case edits.ChangeArguments() if isinstance(node, cst.Call):
                return self._change_arguments(edit, node)
            case edits.MakeStatic(names=names):
                return self._make_static(names, node)
            case edits.ConvertDefinition() if isinstance(node, cst.Call):
                return self._convert(edit, node)
            case edits.TakePart(part=part):
                return _parenthesized_as(node, self.done[part])
            case edits.ConvertClass():
                return self._convert_class(edit, node)
            case edits.ConvertLookup() if isinstance(node, cst.Call):
                return self._convert_lookup(edit, node)
            # optimizer: "optim.Optimizer"
            case edits.ReplaceQuoted() if isinstance(node, cst.SimpleString):
                return node.with_changes(value=self._quoted(node.value, edit))
            # optimizer: "optim." "Optimizer"
            case edits.ReplaceQuoted() if isinstance(node, cst.ConcatenatedString):
                value = f"{self.quote}{node.evaluated_value!s}{self.quote}"
                return cst.SimpleString(self._quoted(value, edit), node.lpar, node.rpar)
            case _:
                return node

    def _convert_class(
        self, edit: edits.ConvertClass, node: cst.BaseExpression
    ) -> cst.BaseExpression:
        name = self._helper(as_function(edit.optimizer, self.form, edit.inject))
        # optim.Adam(learning_rate=0.1)
        if isinstance(node, cst.Call):
            return node.with_changes(func=name)
        # an attribute of a class, which must not become a method: kind = optim.Adam
        if edit.is_static:
            return _parenthesized_as(node, expression("staticmethod({name})", name=name))
        return _parenthesized_as(node, name)

    def _convert_lookup(self, edit: edits.ConvertLookup, call: cst.Call) -> cst.BaseExpression:
        table = self._helper(by_name(edit.optimizers, self.form, edit.inject))
        # hasattr(optim, name), otherwise getattr(optim, name)
        is_check = isinstance(call.func, cst.Name) and call.func.value == "hasattr"
        template = "({name} in {table})" if is_check else "{table}[{name}]"
        return expression(template, table=table, name=call.args[1].value)

    def _convert(self, edit: edits.ConvertDefinition, call: cst.Call) -> cst.Call:
        """What a constructor call becomes."""
        if edit.rate:
            call = with_rate(call, expression(edit.rate))
        if edit.mask is not None:
            self._need([MASK_BY_PATH])
            self.applied.fixed.add(MASK_BY_PATH.name)
            mask = expression(edit.mask) if isinstance(edit.mask, str) else self.done[edit.mask]
            call = with_mask(call, mask)
        self.has_unset = self.has_unset or edit.inject
        converted = optimizers()[edit.optimizer].convert(call, self.form, edit.inject)
        self._need(converted.supports)
        self.applied.fixed.update(support.name for support in converted.supports)
        new = quoted_as(converted.expression, self.quote)
        return behind(expression(edit.link), new) if edit.link else new

    def _need(self, supports: Sequence[Support]) -> None:
        self.applied.supports.update((support.name, support) for support in supports)

    def _helper(self, supports: Sequence[Support]) -> cst.BaseExpression:
        """The name of the last of some helpers, all of which the file now needs."""
        self._need(supports)
        return cst.Name(self.called.get(supports[-1].name, supports[-1].name))

    def _say(self, template: str, supports: Sequence[Support] = ()) -> str:
        """A template in which the placeholders for names are filled in."""
        self._need(supports)
        # a helper that a template names outside of placeholders cannot be called otherwise
        literal = {*WORD.findall(PLACEHOLDER.sub("", template))}
        known = dict(self.names)
        for support in supports:
            if support.name in literal:
                self.applied.fixed.add(support.name)
            known[f"support:{support.name}"] = self.called.get(support.name, support.name)
        return PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), template)

    def _fill(
        self,
        template: str,
        holes: Sequence[tuple[str, Span]],
        supports: Sequence[Support] = (),
        **more: cst.BaseExpression,
    ) -> cst.BaseExpression:
        filled = {name: self.done[span] for name, span in holes}
        return expression(self._say(template, supports), **filled, **more)

    def _rewrite_call(self, edit: edits.RewriteCall, call: cst.Call) -> cst.BaseExpression:
        holes: dict[str, cst.BaseExpression | cst.Arg] = {
            name: self.done[span] for name, span in edit.holes
        }
        for number, argument in enumerate(call.args):
            holes[f"argument_{number}"] = argument.with_changes(
                comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=NOTHING
            )
        callee = expression(self._numbered(edit.function, edit.supports), **holes)
        if edit.prelude:
            self.preludes.append(statement(self._numbered(edit.prelude, edit.supports), **holes))
        arguments = [self._argument(argument, call, edit) for argument in edit.arguments]
        # the comments beside arguments that go are put above the statement
        kept = {argument.index for argument in edit.arguments}
        for number, argument in enumerate(call.args):
            if number not in kept:
                self.stray.extend(comments_of(argument))
        is_narrow = len(self.module.default_indent) == 2
        new = enclose(call, callee, arguments, is_narrow, self._indent_within(edit.span))
        return expression(self._say("{it}" + edit.then), it=new) if edit.then else new

    def _change_arguments(self, edit: edits.ChangeArguments, call: cst.Call) -> cst.BaseExpression:
        spread = dict(edit.spread)
        kept: list[cst.Arg] = []
        for index, argument in enumerate(call.args):
            if index in spread:
                for keyword, text in spread[index]:
                    kept.append(_argument(keyword, expression(self._say(text))))
            elif index not in edit.dropped:
                kept.append(argument)
        self.shrinks = self.shrinks or bool(edit.dropped)
        for index in edit.dropped:
            self.stray.extend(comments_of(call.args[index]))
        for keyword, template in edit.added:
            value = quoted_as(expression(self._say(template)), self.quote)
            kept.append(_argument(keyword, value))
        # partial(train_step, optimizer=optimizer) without its argument is train_step
        if edit.is_partial and len(kept) == 1:
            return kept[0].value
        return arrange(call, call.func, kept)

    def _make_static(self, names: Sequence[str], node: cst.BaseExpression) -> cst.BaseExpression:
        value = names[0] if len(names) == 1 else tuple(names)
        static = quoted_as(expression(repr(value)), self.quote)
        # jax.jit(train_step, donate_argnums=0)
        if isinstance(node, cst.Call):
            return arrange(node, node.func, [*node.args, _argument("static_argnames", static)])
        # @jax.jit
        template = self._say("{partial}({jit}, static_argnames={names})")
        return expression(template, jit=node, names=static)

    def _indent_within(self, span: Span) -> int:
        """How far the line on which an expression starts is indented within its statement."""
        line = self.lines[span[0] - 1]
        return max(0, len(line) - len(line.lstrip()) - self.block)

    def _numbered(self, template: str, supports: Sequence[Support] = ()) -> str:
        return re.sub(r"\{argument:(\d+)\}", r"{argument_\1}", self._say(template, supports))

    def _argument(
        self, argument: edits.Argument, call: cst.Call, edit: edits.RewriteCall
    ) -> cst.Arg:
        if argument.index is None:
            value = self._fill(argument.template, edit.holes, edit.supports)
            return _argument(argument.keyword, value)
        kept = call.args[argument.index]
        if argument.keyword is None:
            return kept
        # `f(optimizer)` or `f(target=optimizer)` becomes `f(state=optimizer)`
        equal = kept.equal if kept.keyword is not None else EQUAL
        return kept.with_changes(keyword=cst.Name(argument.keyword), equal=equal)

    def _quoted(self, value: str, edit: edits.ReplaceQuoted) -> str:
        """The text of an annotation with other names, of which longer ones come first."""
        new = {name: self._say(template, edit.supports) for name, template in edit.names}
        names = "|".join(map(re.escape, sorted(new, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.])(?:{names})\b", lambda found: new[found[0]], value)

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.Tuple:
        elements = self._spread(original_node.elements, updated_node.elements)
        return updated_node if elements is None else updated_node.with_changes(elements=elements)

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.Subscript:
        elements = self._spread(original_node.slice, updated_node.slice)
        return updated_node if elements is None else updated_node.with_changes(slice=elements)

    def _spread(
        self, original: Sequence[Element], updated: Sequence[Element]
    ) -> list[Element] | None:
        """Elements with several in the place of some; None if none is spread."""
        found: list[Element] = []
        for old, new in zip(original, updated, strict=True):
            before, it = _value_of(old), _value_of(new)
            edit = None
            if before is not None:
                edit = self.edits.get(self._span(before))
            if not isinstance(edit, edits.Spread) or it is None:
                found.append(new)
                continue
            values = [expression(self._say(template), it=it) for template in edit.templates]
            *ahead, last = [_element(new, value) for value in values]
            found += [*ahead, last.with_changes(comma=new.comma)]
        return found if len(found) != len(updated) else None

    # Statements

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        """Look only into statements that change: there may be data of any size beside them."""
        first, column, last, _ = self._span(node)
        self.block = column
        return bisect_right(self.begun, last) > bisect_left(self.begun, first)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]:
        span = self._span(original_node)
        edit = self.statements.get(span)
        updated_node = _with_lines(updated_node, self.inherited.get(span, ()))
        if edit is not None:
            return self._replace_statement(edit, updated_node)
        updated_node = self._commented(original_node, updated_node)
        if self.carried:
            blank, own = gap_and_comments(updated_node)
            updated_node = updated_node.with_changes(leading_lines=[*blank, *self.carried, *own])
            self.carried = []
        strays, self.stray = self.stray, []
        updated_node = self._marked_unset(_with_lines(updated_node, _remarks(strays)))
        result = self.imports.statement(original_node, updated_node)
        if isinstance(result, cst.SimpleStatementLine):
            result = self._laid_out(original_node, result)
        self.shrinks = False
        return self._with_preludes(result, span[1]) if self.preludes else result

    def _laid_out(
        self, original: cst.SimpleStatementLine, line: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        """A statement in lines that are short enough, if anything within it has changed."""
        first, column, last, _ = self._span(original)
        if not any(first <= start[0] <= last for start in self.applied.after):
            return line
        line = fit(self.module, self.limit, original, line, column)
        if self.shrinks:
            line = joined(self.module, self.limit, original, line, column)
        return line

    def _with_preludes(
        self, line: cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement], indent: int
    ) -> cst.FlattenSentinel[cst.BaseStatement]:
        """A statement behind those that its expressions need ahead of it."""
        assert isinstance(line, cst.SimpleStatementLine)
        before = [fit(self.module, self.limit, PASS, prelude, indent) for prelude in self.preludes]
        self.preludes = []
        first = before[0].with_changes(leading_lines=line.leading_lines)
        return cst.FlattenSentinel([first, *before[1:], line.with_changes(leading_lines=())])

    def _marked_unset(self, statement: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """A statement with a comment above it, if its learning rate is a placeholder."""
        if self.has_unset and has_unset_rate(statement):
            return _with_lines(statement, _remarks([f"# {PLACEHOLDER_RATE}"]))
        return statement

    def _replace_statement(
        self, edit: edits.ReplaceStatement, node: cst.SimpleStatementLine
    ) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        holes = {name: self.done[span] for name, span in edit.holes}
        holes |= {name: self.raw[span] for name, span in edit.raw}
        lines = [
            statement(self._say(template, edit.supports), **holes) for template in edit.templates
        ]
        if not lines:
            self.applied.after[edit.span] = ""
            # without an heir, the comments stay where the statement was
            if edit.heir is None:
                self.carried.extend(line for line in node.leading_lines if line.comment is not None)
            return cst.RemovalSentinel.REMOVE
        lines = [fit(self.module, self.limit, PASS, line, edit.span[1]) for line in lines]
        lines[0] = lines[0].with_changes(leading_lines=node.leading_lines)
        lines = [self._marked_unset(line) for line in lines]
        lines[-1] = lines[-1].with_changes(trailing_whitespace=node.trailing_whitespace)
        self.applied.after[edit.span] = self._code(lines)
        return cst.FlattenSentinel(lines)

    def _commented(self, original: cst.CSTNode, updated: cst.CSTNodeT) -> cst.CSTNodeT:
        """A statement with the markers for its sites above it, unless it has some."""
        comments = (line.comment for line in getattr(updated, "leading_lines", ()))
        if any(comment is not None and comment.value.startswith(MARKER) for comment in comments):
            return updated
        first, _, last, _ = self._span(original)
        if not isinstance(original, cst.SimpleStatementLine):
            last = _header_end(original, self.positions)
        texts = [text for line in range(first, last + 1) for text in self.comments.get(line, ())]
        return _with_lines(updated, _remarks(dict.fromkeys(texts)))

    def _span(self, node: cst.CSTNode) -> Span:
        return span_of(self.positions[node])

    def _code(self, nodes: Iterable[cst.CSTNode]) -> str:
        return "".join(map(self.module.code_for_node, nodes)).strip()

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return self.imports.block(self._arranged(original_node, updated_node))

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        return self._arranged(original_node, updated_node)

    def _arranged(self, original: Block, updated: Block) -> Block:
        """A block after its moves, with the gaps that removed statements had above them."""
        gaps = self._gaps(original)
        if gaps:
            body = [with_gap(node, gaps.get(id(node), ())) for node in updated.body]
            updated = updated.with_changes(body=body)
        block, done = self.moves.carry_out(updated)
        for span, nodes in done.items():
            self.applied.after[span] = self._code(nodes)
        return block

    def _gaps(self, original: Block) -> dict[int, list[cst.EmptyLine]]:
        """The blank lines above removed statements, by the identity of the following statement."""
        gaps: dict[int, list[cst.EmptyLine]] = {}
        gap: list[cst.EmptyLine] = []
        for node in original.body:
            became = self.became.get(node)
            if became is cst.RemovalSentinel.REMOVE and self._span(node)[:2] in self.removed:
                gap = gap or gap_and_comments(node)[0]
            elif gap:
                first = became[0] if isinstance(became, cst.FlattenSentinel) else became
                gaps[id(first)] = gap
                gap = []
        return gaps

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.RemovalSentinel:
        start = self._span(original_node)[:2]
        if (removed := self.removed.get(start)) is not None:
            self.applied.after[removed.span] = ""
            return cst.RemovalSentinel.REMOVE
        edit = self.parameters.get(start)
        if edit is None:
            return updated_node
        updated_node = with_parameters(updated_node, edit, self._say)
        self.applied.after[edit.span] = self.module.code_for_node(updated_node.params)
        return updated_node

    def leave_Lambda(self, original_node: cst.Lambda, updated_node: cst.Lambda) -> cst.Lambda:
        edit = self.parameters.get(self._span(original_node)[:2])
        if edit is None:
            return updated_node
        self.applied.after[edit.span] = ""
        return updated_node.with_changes(params=changed(updated_node.params, edit, self._say))

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        edit = self.classes.get(self._span(original_node)[:2])
        if edit is None:
            return updated_node
        base = expression(self._say("{TrainState}"))
        updated_node = derived_state(updated_node, base, edit.dropped)
        self.applied.after[edit.span] = self._code([updated_node.with_changes(leading_lines=())])
        return updated_node

    def leave_If(
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.If | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]:
        start = self._span(original_node)[:2]
        taken, removed = self.taken.get(start), self.removed.get(start)
        # `if hasattr(state, "optimizer"):` of which only the branch stays
        if taken is not None and isinstance(updated_node.body, cst.IndentedBlock):
            first, *others = updated_node.body.body
            lines = [first.with_changes(leading_lines=updated_node.leading_lines), *others]
            self.applied.after[taken.span] = self._code(lines)
            return cst.FlattenSentinel(lines)
        if removed is None:
            return updated_node
        self.applied.after[removed.span] = ""
        if removed.heir is None:
            self.carried.extend(_remarks(comments_within(updated_node)))
        return cst.RemovalSentinel.REMOVE


def _with_own_parentheses(node: cst.CSTNode, span: Span) -> Span:
    """The span of a node as `ast` has it: only that of a tuple includes its parentheses."""
    if not (isinstance(node, cst.Tuple) and node.lpar):
        return span
    before, after = node.lpar[-1].whitespace_after, node.rpar[0].whitespace_before
    if not (isinstance(before, cst.SimpleWhitespace) and isinstance(after, cst.SimpleWhitespace)):
        return span
    first, start, last, end = span
    start -= len("(") + len(before.value)
    end += len(after.value) + len(")")
    return first, start, last, end


def _header_end(node: cst.CSTNode, positions: Mapping[cst.CSTNode, CodeRange]) -> int:
    """The last line of a compound statement's header."""
    body = positions.get(getattr(node, "body", node))
    first = positions[node].start.line
    return first if body is None else max(first, body.start.line - 1)


def _value_of(element: Element) -> cst.BaseExpression | None:
    if isinstance(element, cst.SubscriptElement):
        return element.slice.value if isinstance(element.slice, cst.Index) else None
    return element.value


def _element(like: Element, value: cst.BaseExpression) -> Element:
    if isinstance(like, cst.SubscriptElement):
        return cst.SubscriptElement(cst.Index(value), SEPARATOR)
    return cst.Element(value, SEPARATOR)


def _remarks(texts: Iterable[str]) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(comment=cst.Comment(text)) for text in texts]


def _with_lines(statement: cst.CSTNodeT, lines: Sequence[cst.EmptyLine]) -> cst.CSTNodeT:
    """A statement with more lines above."""
    above = getattr(statement, "leading_lines", ())
    return statement.with_changes(leading_lines=[*above, *lines]) if lines else statement


def _argument(keyword: str | None, value: cst.BaseExpression) -> cst.Arg:
    return cst.Arg(value, cst.Name(keyword), EQUAL) if keyword else cst.Arg(value)


def _parenthesized_as(node: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """The new expression in the parentheses of the one that it replaces, unless it has its own."""
    if node.lpar and not new.lpar:
        return new.with_changes(lpar=node.lpar, rpar=node.rpar)
    return new
