"""Dataclasses that lose fields to a base."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.rewriting.lines import gap_and_comments, with_gap


def derived_state(
    cls: cst.ClassDef, base: cst.BaseExpression, dropped: Sequence[str]
) -> cst.ClassDef:
    """A class with a base in the place of its decorator, and without some fields."""
    body = cst.ensure_type(cls.body, cst.IndentedBlock)
    kept: list[cst.BaseStatement] = []
    gap: list[cst.EmptyLine] = []
    for statement in body.body:
        blank, comments = gap_and_comments(statement)
        if _field(statement) in dropped:
            gap = gap or blank
            continue
        if kept:
            kept.append(with_gap(statement, gap))
        else:
            # no blank line below the head of the class
            kept.append(statement.with_changes(leading_lines=comments))
        gap = []
    if not kept:
        kept = [cst.parse_statement("pass")]
    return cls.with_changes(
        decorators=(),
        lines_after_decorators=(),
        bases=[cst.Arg(base)],
        lpar=cst.LeftParen(),
        rpar=cst.RightParen(),
        body=body.with_changes(body=kept),
    )


def _field(statement: cst.BaseStatement) -> str:
    """The name of the field that a statement declares; empty for others."""
    match statement:
        # optimizer: optim.Optimizer
        case cst.SimpleStatementLine(
            body=[cst.AnnAssign(target=cst.Name(value=name)), *_]
        ):
            return name
    return ""
