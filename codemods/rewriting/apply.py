"""The planned edits of one file, carried out on its LibCST tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import libcst as cst

from codemods.cst.breaking import fit, joined
from codemods.cst.comments import comments_within
from codemods.cst.quotes import within_quotes
from codemods.cst.template import closed, expression, statement
from codemods.optimizers.arguments import PLACEHOLDER, has_unset_rate
from codemods.rewriting.edited_file import EditedFile
from codemods.rewriting.edits import (
    ChangeParameters,
    DeriveState,
    ReplaceStatement,
    TakeBody,
)
from codemods.rewriting.expressions import carried_out
from codemods.rewriting.imports import ImportEditor
from codemods.rewriting.lines import (
    closed_up,
    gap_and_comments,
    header_end,
    remarks,
    span_in_ast,
    span_of,
    with_gap,
    with_lines,
)
from codemods.rewriting.movement import Block, Moves
from codemods.rewriting.original import Positions
from codemods.rewriting.parameters import changed, with_parameters
from codemods.rewriting.planned import Planned
from codemods.sources.modules import Span
from codemods.sources.suppression import MARKER

Node = cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]
Statements = cst.FlattenSentinel[cst.BaseStatement]
COMPOUND = (cst.FunctionDef, cst.ClassDef, cst.If, cst.For, cst.While, cst.With)
OPERANDS: dict[type, tuple[str, ...]] = {
    cst.IfExp: ("test", "body"),
    cst.BooleanOperation: ("left", "right"),
    cst.BinaryOperation: ("left", "right"),
    cst.Comparison: ("left",),
    cst.ComparisonTarget: ("comparator",),
    cst.Call: ("func",),
    cst.Attribute: ("value",),
    cst.Subscript: ("value",),
}
"""The parts of expressions in which a lambda needs parentheses."""
STATEMENTS = {cst.SimpleStatementLine, *COMPOUND, cst.Try, cst.TryStar, cst.Match}
"""All statements. LibCST's classes are abstract ones, and to ask for an instance of one is slow."""
PASS = statement("pass")


class Applier(cst.CSTTransformer):
    """Applies edits bottom-up, so that a piece of source put into a hole has been edited itself."""

    def __init__(
        self,
        file: EditedFile,
        positions: Positions,
        planned: Planned,
        imports: ImportEditor,
        comments: Mapping[int, Sequence[str]],
    ) -> None:
        """`comments` are to be put above the statements on some lines."""
        super().__init__()
        self.file = file
        self.applied = file.applied
        self._places = positions
        self.positions = positions.known
        self.planned = planned
        self.moves = Moves(planned.moves)
        self.imports = imports
        self.comments = comments
        # statements in which nothing changes
        self.skipped: set[cst.CSTNode] = set()
        # what has been made of each statement
        self.became: dict[cst.CSTNode, Node] = {}
        # the comments of a removed statement, for the next one
        self.carried: list[cst.EmptyLine] = []
        # whether the function around has a comment on a placeholder for a learning rate
        self.has_comment = False

    def _span(self, node: cst.CSTNode) -> Span:
        return span_of(self.positions[node])

    def _code(self, nodes: Iterable[cst.CSTNode]) -> str:
        return "".join(map(self.file.module.code_for_node, nodes)).strip()

    # Statements that change, and expressions

    def on_visit(self, node: cst.CSTNode) -> bool:
        if type(node) in STATEMENTS and not self._changes(node):
            self.skipped.add(node)
            return False
        return super().on_visit(node)

    def _changes(self, node: cst.CSTNode) -> bool:
        """Whether anything changes in a statement. It is known then where its nodes are."""
        gets_more = bool(self.carried) or self.file.left.is_pending
        if node not in self.positions:
            if gets_more:
                self._places.look_into(node)
            return gets_more
        first, self.file.indent, last, _ = self._span(node)
        decorators = getattr(node, "decorators", ())
        if decorators:
            first = self.positions[decorators[0]].start.line
        return gets_more or self.planned.touches(first, last)

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: Node) -> Node:  # type: ignore[override]
        if original_node in self.skipped:
            self.became[original_node] = updated_node
            return updated_node
        updated: Node = super().on_leave(original_node, updated_node)  # type: ignore[arg-type]
        for part in OPERANDS.get(type(updated), ()):
            # (lambda path, _: "kernel" in path) if frozen else None
            operand = getattr(updated, part)
            if isinstance(operand, cst.Lambda) and not operand.lpar:
                updated = updated.with_changes(**{part: closed(operand)})  # type: ignore[union-attr]
        position = self.positions.get(original_node)
        if position is None:
            return updated
        span = span_in_ast(original_node, position)
        if type(original_node) in STATEMENTS:
            if isinstance(updated, COMPOUND):
                updated = self._commented(original_node, updated)
            self.moves.note(span, updated)
            self.became[original_node] = updated
        elif span in self.planned.spans and isinstance(updated, cst.BaseExpression):
            return self._edited(span, updated)
        return updated

    def _edited(self, span: Span, node: cst.BaseExpression) -> cst.BaseExpression:
        """What the expression at a span becomes. It is kept for the holes that take it."""
        edit = self.planned.of_expressions.get(span)
        if edit is not None:
            node = carried_out(edit, node, self.file)
            self.applied.after[span] = self.file.module.code_for_node(node)
        if span in self.planned.wanted:
            self.file.done[span] = node
        return node

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        # f"{optimizer.optimizer_def.hyper_params.learning_rate}"
        return within_quotes(updated_node, original_node)

    # Simple statements

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        """Look only where expressions change: there may be data of any size beside them."""
        first, _, last, _ = self._span(node)
        return self.planned.change_within(first, last)

    def leave_SimpleStatementLine(
        self,
        original_node: cst.SimpleStatementLine,
        updated_node: cst.SimpleStatementLine,
    ) -> cst.BaseStatement | cst.RemovalSentinel | Statements:
        span = self._span(original_node)
        edit = self.planned.at(ReplaceStatement, span[:2])
        if edit is not None and edit.span == span:
            return self._replace_statement(edit, updated_node)
        updated_node = self._commented(original_node, updated_node)
        if self.carried:
            blank, own = gap_and_comments(updated_node)
            lines = [*blank, *self.carried, *own]
            updated_node = updated_node.with_changes(leading_lines=lines)
            self.carried = []
        strays, self.file.left.comments = self.file.left.comments, []
        updated_node = self._marked_unset(with_lines(updated_node, remarks(strays)))
        result = self.imports.statement(original_node, updated_node)
        if isinstance(result, cst.SimpleStatementLine):
            result = self._laid_out(original_node, result)
        self.file.left.shrinks = False
        if not self.file.left.preludes:
            return result
        return self._with_preludes(result, span[1])

    def _laid_out(
        self, original: cst.SimpleStatementLine, line: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        """A statement in lines that are short enough, if anything within it has changed."""
        first, column, last, _ = self._span(original)
        changed_lines = (span[0] for span in self.applied.after)
        if not any(first <= number <= last for number in changed_lines):
            return line
        module, limit = self.file.module, self.file.limit
        line = fit(module, limit, original, line, column)
        return joined(module, limit, original, line, column, self.file.left.shrinks)

    def _with_preludes(
        self, line: cst.SimpleStatementLine | Statements, indent: int
    ) -> Statements:
        """A statement behind those that its expressions need ahead of it."""
        assert isinstance(line, cst.SimpleStatementLine)
        preludes, self.file.left.preludes = self.file.left.preludes, []
        before = [self._fitting(prelude, indent) for prelude in preludes]
        # the comments above the statement are above all of them
        first = before[0].with_changes(leading_lines=line.leading_lines)
        last = line.with_changes(leading_lines=())
        return cst.FlattenSentinel([first, *before[1:], last])

    def _fitting(
        self, line: cst.SimpleStatementLine, indent: int
    ) -> cst.SimpleStatementLine:
        """A new statement in lines that are short enough."""
        return fit(self.file.module, self.file.limit, PASS, line, indent)

    def _marked_unset(
        self, statement: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        """A statement with a comment above it, if it has the first rate that is a placeholder."""
        if self.has_comment or not self.file.left.has_unset:
            return statement
        if not has_unset_rate(statement):
            return statement
        self.has_comment = True
        return with_lines(statement, remarks([f"# {PLACEHOLDER}"]))

    def _replace_statement(
        self, edit: ReplaceStatement, node: cst.SimpleStatementLine
    ) -> Statements | cst.RemovalSentinel:
        if edit.removes:
            above = node.leading_lines
            comments = (line for line in above if line.comment is not None)
            return self._removed(edit, comments)
        holes = self.file.pieces(edit.holes)
        texts = (self.file.say(template, edit.supports) for template in edit.templates)
        lines = [
            self._fitting(statement(text, **holes), edit.span[1]) for text in texts
        ]
        # the comments above go to the first line, the one behind to the last
        lines[0] = lines[0].with_changes(leading_lines=node.leading_lines)
        lines = [self._marked_unset(line) for line in lines]
        lines[-1] = lines[-1].with_changes(trailing_whitespace=node.trailing_whitespace)
        self.applied.after[edit.span] = self._code(lines)
        return cst.FlattenSentinel(lines)

    def _removed(
        self, edit: ReplaceStatement, comments: Iterable[cst.EmptyLine] = ()
    ) -> cst.RemovalSentinel:
        """Nothing in the place of a statement, whose comments stay where it was."""
        self.applied.after[edit.span] = ""
        self.carried.extend(comments)
        return cst.RemovalSentinel.REMOVE

    def _commented(self, original: cst.CSTNode, updated: cst.CSTNodeT) -> cst.CSTNodeT:
        """A statement with the markers for its sites above it, unless it has some."""
        for line in getattr(updated, "leading_lines", ()):
            comment = line.comment
            if comment is not None and comment.value.startswith(MARKER):
                return updated
        first, _, last, _ = self._span(original)
        if not isinstance(original, cst.SimpleStatementLine):
            last = header_end(original, self.positions)
        markers: dict[str, None] = {}
        for number in range(first, last + 1):
            markers |= dict.fromkeys(self.comments.get(number, ()))
        return with_lines(updated, remarks(markers))

    # Blocks

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return self.imports.block(self._arranged(original_node, updated_node))

    def leave_Module(
        self, original_node: cst.Module, updated_node: cst.Module
    ) -> cst.Module:
        return self._arranged(original_node, updated_node)

    def _arranged(self, original: Block, updated: Block) -> Block:
        """A block after its moves, with the gaps that removed statements had above them."""
        gaps = self._gaps(original)
        if gaps:
            body: list[cst.CSTNode] = []
            for node in updated.body:
                gap = gaps.get(id(node), ())
                body.append(with_gap(node, gap))
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
            is_gone = became is cst.RemovalSentinel.REMOVE

            if is_gone and self.planned.removal(self._span(node)[:2]):
                gap = gap or gap_and_comments(node)[0]
            elif gap:
                # several statements are in its place
                if isinstance(became, cst.FlattenSentinel):
                    became = became[0]
                gaps[id(became)] = gap
                gap = []
        return gaps

    # Compound statements, and lambdas

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.RemovalSentinel:
        start = self._span(original_node)[:2]
        removal = self.planned.removal(start)
        if removal is not None:
            return self._removed(removal)
        edit = self.planned.at(ChangeParameters, start)
        if edit is None:
            return updated_node
        updated_node = with_parameters(updated_node, edit)
        text = self.file.module.code_for_node(updated_node.params)
        self.applied.after[edit.span] = text
        return updated_node

    def leave_Lambda(
        self, original_node: cst.Lambda, updated_node: cst.Lambda
    ) -> cst.Lambda:
        edit = self.planned.at(ChangeParameters, self._span(original_node)[:2])
        if edit is None:
            return updated_node
        self.applied.after[edit.span] = ""
        # lambda optimizer, batch: …
        params = changed(updated_node.params, edit)
        return updated_node.with_changes(params=params)

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        edit = self.planned.at(DeriveState, self._span(original_node)[:2])
        if edit is None:
            return updated_node
        base = expression(self.file.say("{TrainState}"))
        updated_node = _derived_state(updated_node, base, edit.dropped)
        without_comments = updated_node.with_changes(leading_lines=())
        self.applied.after[edit.span] = self._code([without_comments])
        return updated_node

    def leave_If(
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.If | cst.RemovalSentinel | Statements:
        start = self._span(original_node)[:2]
        taken = self.planned.at(TakeBody, start)
        removal = self.planned.removal(start)
        # `if hasattr(state, "optimizer"):` of which only the branch stays
        if taken is not None and isinstance(updated_node.body, cst.IndentedBlock):
            first, *others = updated_node.body.body
            first = first.with_changes(leading_lines=updated_node.leading_lines)
            lines = [first, *others]
            self.applied.after[taken.span] = self._code(lines)
            return cst.FlattenSentinel(lines)
        if removal is None:
            return updated_node
        return self._removed(removal, remarks(comments_within(updated_node)))


def _derived_state(
    cls: cst.ClassDef, base: cst.BaseExpression, dropped: Sequence[str]
) -> cst.ClassDef:
    """A class with a base in the place of its decorator, and without some fields."""
    body = cst.ensure_type(cls.body, cst.IndentedBlock)
    kept = closed_up(body.body, lambda line: _field(line) in dropped)
    first, *others = kept or [cst.parse_statement("pass")]
    # no blank line below the head of the class
    first = first.with_changes(leading_lines=gap_and_comments(first)[1])
    return cls.with_changes(
        decorators=(),
        lines_after_decorators=(),
        bases=[cst.Arg(base)],
        lpar=cst.LeftParen(),
        rpar=cst.RightParen(),
        body=body.with_changes(body=[first, *others]),
    )


def _field(statement: cst.CSTNode) -> str:
    """The name of the field that a statement declares; empty for others."""
    match statement:
        # optimizer: optim.Optimizer
        case cst.SimpleStatementLine(
            body=[cst.AnnAssign(target=cst.Name(value=name)), *_]
        ):
            return name
    return ""
