"""Parameters that a function gains or loses."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from codemods.cst.comments import is_docstring
from codemods.cst.spacing import NOTHING, SEPARATOR
from codemods.rewriting.edits import ChangeParameters


def with_parameters(
    function: cst.FunctionDef, edit: ChangeParameters
) -> cst.FunctionDef:
    """A function with other parameters, and a docstring that describes none that is gone."""
    body = _beginning(_documented(function.body, edit), edit.unpacked)
    return function.with_changes(params=changed(function.params, edit), body=body)


def changed(parameters: cst.Parameters, edit: ChangeParameters) -> cst.Parameters:
    """Other parameters for a function or a lambda."""
    split = dict(edit.split)
    changes: dict[str, object] = {}
    for field in ("params", "kwonly_params", "posonly_params"):
        old = list(getattr(parameters, field))
        new: list[cst.Param] = []
        for one in old:
            name = one.name.value
            if name in split:
                *ahead, last = (cst.Param(cst.Name(part)) for part in split[name])
                new += [*ahead, last.with_changes(comma=one.comma)]
            elif name not in edit.dropped:
                new.append(one)
        if field == "params":
            # def step(optimizer, rate=0.1) gets a new parameter ahead of `rate`
            at = next((index for index, one in enumerate(new) if one.default), len(new))
            new[at:at] = [_added(*one) for one in edit.added]
        if new != old:
            changes[field] = _laid_out(old, new)
    if changes.get("kwonly_params") == []:
        _end_without_keywords(parameters, changes)
    return parameters.with_changes(**changes)


def _added(name: str, annotation: str) -> cst.Param:
    parsed = cst.parse_expression(annotation) if annotation else None
    return cst.Param(cst.Name(name), cst.Annotation(parsed) if parsed else None)


def _laid_out(old: list[cst.Param], new: list[cst.Param]) -> list[cst.Param]:
    """Parameters with the commas of old ones; the last one ends as the last one did."""
    if not (old and new):
        return new
    end, between = old[-1], old[-2].comma if len(old) > 1 else SEPARATOR
    found: list[cst.Param] = []
    for one in new[:-1]:
        is_divided = one is not end and isinstance(one.comma, cst.Comma)
        divided = one.with_changes(comma=between, whitespace_after_param=NOTHING)
        found.append(one if is_divided else divided)
    last = new[-1].with_changes(
        comma=end.comma, whitespace_after_param=end.whitespace_after_param
    )
    return [*found, last]


def _beginning(body: cst.BaseSuite, statements: Sequence[str]) -> cst.BaseSuite:
    """A body that begins with some statements, behind its docstring."""
    if not statements or not isinstance(body, cst.IndentedBlock):
        return body
    lines = list(body.body)
    start = 1 if is_docstring(lines[0]) else 0
    # params, opt_state = optimizer
    lines[start:start] = map(cst.parse_statement, statements)
    return body.with_changes(body=lines)


def _end_without_keywords(
    parameters: cst.Parameters, changes: dict[str, object]
) -> None:
    """End a list of parameters as it ended behind the last keyword-only one; a bare `*` goes."""
    removed, star = parameters.kwonly_params[-1], parameters.star_arg
    end = {
        "comma": removed.comma,
        "whitespace_after_param": removed.whitespace_after_param,
    }
    # def step(state, *rest, optimizer)
    if isinstance(star, cst.Param):
        if parameters.star_kwarg is None:
            star = star.with_changes(**end)
        changes["star_arg"] = star
        return
    # def step(state, *, optimizer)
    changes["star_arg"] = cst.MaybeSentinel.DEFAULT
    if parameters.params and parameters.star_kwarg is None:
        *before, last = parameters.params
        changes["params"] = [*before, last.with_changes(**end)]


def _documented(body: cst.BaseSuite, edit: ChangeParameters) -> cst.BaseSuite:
    """The body with a docstring that describes the parameters as they are now."""
    if not isinstance(body, cst.IndentedBlock) or not body.body:
        return body
    match body.body[0]:
        case (
            cst.SimpleStatementLine(
                body=[cst.Expr(value=cst.SimpleString(value=value) as text) as only, *_]
            ) as first
        ):
            for name in (*edit.dropped, *(one for one, _ in edit.split)):
                value = _entry(name).sub("", value, count=1)
            expression = only.with_changes(value=text.with_changes(value=value))
            docstring = first.with_changes(body=[expression])
            return body.with_changes(body=[docstring, *body.body[1:]])
    return body


def _entry(name: str) -> re.Pattern[str]:
    """The lines of a docstring about a parameter: the first, and those indented deeper."""
    first = rf"(?P<indent>[ \t]+)(?::param )?{re.escape(name)}[ \t]*(?:\([^)\n]*\))?:[^\n]*\n"
    return re.compile(rf"(?<=\n){first}(?:(?P=indent)[ \t]+[^\n]+\n)*")
