"""The edits of expressions, carried out: one function for each kind."""

from __future__ import annotations

import re
from functools import singledispatch

import libcst as cst

from codemods.cst.pieces import CallLayout, Piece, new
from codemods.cst.quotes import quoted_as
from codemods.cst.spacing import bare
from codemods.cst.template import expression, statement
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import (
    behind,
    converted,
    with_float_rate,
    with_rate,
    with_set_decay,
)
from codemods.rewriting.edited_file import EditedFile
from codemods.rewriting.edits import (
    Argument,
    ChangeArguments,
    ConvertDefinition,
    Edit,
    Replace,
    ReplaceQuoted,
    RewriteCall,
)

NUMBERED = re.compile(r"\{argument:(\d+)\}")


@singledispatch
def carried_out(
    edit: Edit, node: cst.BaseExpression, file: EditedFile
) -> cst.BaseExpression:
    """What an edit makes of an expression, the parts of which have been edited already."""
    del edit, file
    return node


@carried_out.register
def _replaced(
    edit: Replace, node: cst.BaseExpression, file: EditedFile
) -> cst.BaseExpression:
    made = file.fill(edit.template, edit.holes, edit.supports, it=node)
    # in the parentheses of what it replaces, unless it has its own; those of a tuple are its part
    if node.lpar and not made.lpar and not isinstance(node, cst.Tuple):
        return made.with_changes(lpar=node.lpar, rpar=node.rpar)
    return made


@carried_out.register
def _requoted(
    edit: ReplaceQuoted, node: cst.BaseExpression, file: EditedFile
) -> cst.BaseExpression:
    # optimizer: "optim.Optimizer"
    if isinstance(node, cst.SimpleString):
        return node.with_changes(value=_text_of_annotation(node.value, edit, file))
    # optimizer: "optim." "Optimizer"
    whole = cst.ensure_type(node, cst.ConcatenatedString)
    value = f"{file.quote}{whole.evaluated_value!s}{file.quote}"
    return cst.SimpleString(
        _text_of_annotation(value, edit, file), whole.lpar, whole.rpar
    )


def _text_of_annotation(value: str, edit: ReplaceQuoted, file: EditedFile) -> str:
    """The text of an annotation with other names, of which longer ones come first."""
    said = {name: file.say(template, edit.supports) for name, template in edit.names}
    longest_first = sorted(said, key=len, reverse=True)
    names = "|".join(map(re.escape, longest_first))
    dotted = re.compile(rf"(?<![\w.])(?:{names})\b")
    return dotted.sub(lambda found: said[found[0]], value)


# Definitions


@carried_out.register
def _converted(
    edit: ConvertDefinition, node: cst.BaseExpression, file: EditedFile
) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    if edit.rate:
        call = with_rate(call, expression(edit.rate))
    if edit.as_float:
        call = with_float_rate(call, edit.as_float)
    if edit.sets_decay:
        call = with_set_decay(call, optimizers()[edit.optimizer].parameters)
    file.left.has_unset = file.left.has_unset or edit.inject
    made = converted(optimizers()[edit.optimizer], call, file.form, edit.inject)
    file.need(made.supports, are_fixed=True)
    if not edit.link:
        return made.expression
    # optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
    return behind(expression(edit.link), made.expression)


# Calls


@carried_out.register
def _call_rewritten(
    edit: RewriteCall, node: cst.BaseExpression, file: EditedFile
) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    holes: dict[str, cst.BaseExpression | cst.Arg] = {**file.pieces(edit.holes)}
    for number, argument in enumerate(call.args):
        holes[f"argument_{number}"] = bare(argument)
    callee = expression(_numbered(edit.function, edit, file), **holes)
    if edit.prelude:
        prelude = statement(_numbered(edit.prelude, edit, file), **holes)
        file.left.preludes.append(prelude)
    layout = CallLayout(call)
    arguments = [_argument_of(one, layout, edit, file) for one in edit.arguments]
    # the comments beside arguments that go are put above the statement
    kept = {argument.index for argument in edit.arguments}
    for number, piece in enumerate(layout.pieces):
        if number not in kept:
            file.left.comments += [comment.value for comment in piece.comments]
    indent = file.indent_within(edit.span)
    made = layout.enclose(callee, arguments, file.is_narrow, indent)
    file.left.shrinks = file.left.shrinks or len(arguments) < len(call.args)
    if not edit.then:
        return made
    # optimizer.create(params).replace(step=0)
    return expression(file.say("{it}" + edit.then), it=made)


def _numbered(template: str, edit: RewriteCall, file: EditedFile) -> str:
    """A template with holes for the original arguments."""
    return NUMBERED.sub(r"{argument_\1}", file.say(template, edit.supports))


def _argument_of(
    argument: Argument, layout: CallLayout, edit: RewriteCall, file: EditedFile
) -> Piece:
    """An argument of a rewritten call."""
    if argument.index is None:
        value = file.fill(argument.template, edit.holes, edit.supports)
        return new(argument.keyword, value)
    kept = layout.pieces[argument.index]
    # `f(optimizer)` or `f(target=optimizer)` becomes `f(state=optimizer)`
    return kept.named(argument.keyword) if argument.keyword else kept


@carried_out.register
def _arguments_changed(
    edit: ChangeArguments, node: cst.BaseExpression, file: EditedFile
) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    spread = dict(edit.spread)
    layout = CallLayout(call)
    kept: list[Piece] = []
    for index, piece in enumerate(layout.pieces):
        if index in spread:
            kept += [
                new(keyword or None, expression(file.say(text)))
                for keyword, text in spread[index]
            ]
        elif index in edit.dropped:
            file.left.comments += [comment.value for comment in piece.comments]
        else:
            kept.append(piece)
    file.left.shrinks = file.left.shrinks or bool(edit.dropped)
    for keyword, template in edit.added:
        value = quoted_as(expression(file.say(template)), file.quote)
        kept.append(new(keyword or None, value))
    # partial(train_step, optimizer=optimizer) without its argument is train_step
    if edit.is_partial and len(kept) == 1:
        return kept[0].value
    return layout.arrange(call.func, kept)
