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
    for name, parts in edit.split:
        parameters = _split(parameters, name, parts)
    for name in edit.dropped:
        parameters = _without(parameters, name)
    for name, annotation in edit.added:
        parameters = _with(parameters, name, annotation)
    return parameters


def _split(
    parameters: cst.Parameters, name: str, parts: Sequence[str]
) -> cst.Parameters:
    """The parameters with several in the place of one."""
    changes = {}
    for field in ("params", "kwonly_params", "posonly_params"):
        found: list[cst.Param] = []
        for old in getattr(parameters, field):
            found += _parts_of(old, parts) if old.name.value == name else [old]
        changes[field] = found
    return parameters.with_changes(**changes)


def _parts_of(old: cst.Param, names: Sequence[str]) -> list[cst.Param]:
    """Several parameters for one, laid out as that was."""
    comma = old.comma
    between: cst.Comma | cst.MaybeSentinel = SEPARATOR
    if isinstance(comma, cst.Comma):
        after = comma.whitespace_after
        # one parameter a line stays one parameter a line
        if isinstance(after, cst.ParenthesizedWhitespace):
            between = comma
    parts = [cst.Param(cst.Name(name), comma=between) for name in names]
    last = parts[-1]
    parts[-1] = last.with_changes(
        comma=comma, whitespace_after_param=old.whitespace_after_param
    )
    return parts


def _annotation(text: str) -> cst.Annotation | None:
    return cst.Annotation(cst.parse_expression(text)) if text else None


def _beginning(body: cst.BaseSuite, statements: Sequence[str]) -> cst.BaseSuite:
    """A body that begins with some statements, behind its docstring."""
    if not statements or not isinstance(body, cst.IndentedBlock):
        return body
    lines = list(body.body)
    start = 1 if is_docstring(lines[0]) else 0
    # params, opt_state = optimizer
    lines[start:start] = map(cst.parse_statement, statements)
    return body.with_changes(body=lines)


def _without(parameters: cst.Parameters, name: str) -> cst.Parameters:
    changes: dict[str, object] = {}
    for field in ("params", "kwonly_params", "posonly_params"):
        old = list(getattr(parameters, field))
        kept = [parameter for parameter in old if parameter.name.value != name]
        if len(kept) == len(old):
            continue
        last = old[-1]
        # the new last parameter ends as the old one did, with or without a comma
        if kept and last.name.value == name:
            kept[-1] = kept[-1].with_changes(
                comma=last.comma, whitespace_after_param=last.whitespace_after_param
            )
        changes[field] = kept
    if changes.get("kwonly_params") == []:
        _end_without_keywords(parameters, changes)
    return parameters.with_changes(**changes)


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


def _with(parameters: cst.Parameters, name: str, annotation: str) -> cst.Parameters:
    """The parameters with one more behind those without a default, laid out as the one before."""
    old = list(parameters.params)
    index = 0
    while index < len(old) and old[index].default is None:
        index += 1
    new = cst.Param(cst.Name(name), _annotation(annotation))
    # def step(optimizer, rate=0.1) has its new parameter ahead of `rate`
    if index < len(old):
        comma = old[index].comma
        separator = comma if isinstance(comma, cst.Comma) else SEPARATOR
        new = new.with_changes(comma=separator)
    # def step(optimizer, batch) has it behind `batch`
    elif old:
        last = old[-1]
        between = old[-2].comma if len(old) > 1 else SEPARATOR
        new = new.with_changes(
            comma=last.comma, whitespace_after_param=last.whitespace_after_param
        )
        old[-1] = last.with_changes(comma=between, whitespace_after_param=NOTHING)
    old.insert(index, new)
    return parameters.with_changes(params=old)


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
