"""Parameters that a function gains or loses."""

from __future__ import annotations

import re

import libcst as cst

from codemods.edits import ChangeParameters

NOTHING = cst.SimpleWhitespace("")


def with_parameters(function: cst.FunctionDef, edit: ChangeParameters) -> cst.FunctionDef:
    """A function with other parameters, and a docstring that says nothing of those that are gone."""
    parameters = function.params
    for name in edit.dropped:
        parameters = _without(parameters, name)
    for name, annotation in edit.added:
        parameters = _with(parameters, name, annotation)
    return function.with_changes(params=parameters, body=_documented(function.body, edit.dropped))


def _without(parameters: cst.Parameters, name: str) -> cst.Parameters:
    changes: dict[str, object] = {}
    for field in ("params", "kwonly_params", "posonly_params"):
        old = list(getattr(parameters, field))
        kept = [parameter for parameter in old if parameter.name.value != name]
        if len(kept) != len(old):
            if kept and old[-1].name.value == name:
                kept[-1] = kept[-1].with_changes(
                    comma=old[-1].comma, whitespace_after_param=old[-1].whitespace_after_param
                )
            changes[field] = kept
    if changes.get("kwonly_params") == []:
        changes["star_arg"] = cst.MaybeSentinel.DEFAULT
    return parameters.with_changes(**changes)


def _with(parameters: cst.Parameters, name: str, annotation: str) -> cst.Parameters:
    """The parameters with one more behind those without a default, laid out as the one before."""
    old = list(parameters.params)
    index = next((number for number, parameter in enumerate(old) if parameter.default is not None), len(old))
    typed = cst.Annotation(cst.parse_expression(annotation)) if annotation else None
    new = cst.Param(cst.Name(name), typed)
    if old:
        model = old[index - 1] if index else old[0]
        last = index == len(old)
        if last:
            between = old[-2].comma if len(old) > 1 else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            new = new.with_changes(comma=model.comma, whitespace_after_param=model.whitespace_after_param)
            old[-1] = model.with_changes(comma=between, whitespace_after_param=NOTHING)
        else:
            space = (
                old[index].comma
                if isinstance(old[index].comma, cst.Comma)
                else cst.Comma(NOTHING, cst.SimpleWhitespace(" "))
            )
            new = new.with_changes(comma=space)
    return parameters.with_changes(params=[*old[:index], new, *old[index:]])


def _documented(body: cst.BaseSuite, dropped: tuple[str, ...]) -> cst.BaseSuite:
    """The body without the lines of its docstring that describe some parameters."""
    if not dropped or not isinstance(body, cst.IndentedBlock) or not body.body:
        return body
    first = body.body[0]
    if not isinstance(first, cst.SimpleStatementLine) or not isinstance(first.body[0], cst.Expr):
        return body
    text = first.body[0].value
    if not isinstance(text, cst.SimpleString):
        return body
    value = text.value
    for name in dropped:
        value = _entry(name).sub("", value, count=1)
    expression = first.body[0].with_changes(value=text.with_changes(value=value))
    return body.with_changes(body=[first.with_changes(body=[expression]), *body.body[1:]])


def _entry(name: str) -> re.Pattern[str]:
    """The lines of a docstring about a parameter: the first, and those indented deeper."""
    first = rf"(?P<indent>[ \t]+)(?::param )?{re.escape(name)}[ \t]*(?:\([^)\n]*\))?:[^\n]*\n"
    return re.compile(rf"(?<=\n){first}(?:(?P=indent)[ \t]+[^\n]+\n)*")
