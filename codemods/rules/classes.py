"""Optimizer classes that are values, looked up by name, or called with unknown arguments."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from itertools import chain

from codemods.analysis.legacy import Unnamed, legacy_name
from codemods.analysis.uses import Use
from codemods.analysis.values import kept_as_value
from codemods.inference.binding import is_unpacked
from codemods.inference.objects import LegacyObject, Partial
from codemods.model import Refusal
from codemods.optimizers import composite, functions, optimizers
from codemods.optimizers.base import Support, learning_rate
from codemods.optimizers.functions import Alias
from codemods.rewriting.edits import (
    Argument,
    ConvertClass,
    ConvertPartial,
    Edit,
    Keep,
    Replace,
)
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.same_arguments import alias_of_value, partial_of
from codemods.sources.modules import Unit

COMMONEST = ("Adam", "GradientDescent", "Momentum")
"""The classes that a lookup by name gets in a project that names none."""

LOOKUPS = frozenset(("builtins.getattr", "builtins.hasattr"))
"""The functions that look a class up by its name."""

BY_KEY = "Put the classes that may be meant into a dictionary, and look them up there."
CALLABLE = Support("Callable", "", ("from typing import Callable",))


@rule(
    "FO103",
    "an optimizer class used as a value becomes a function",
    "value",
    "class",
    "dynamic",
    "module",
    "in_text",
    "patched",
    before=(
        "optimizer_class = optim.LAMB if config.lamb else optim.Adam\n"
        "optimizer_def = optimizer_class(config.lr)\n"
    ),
    after=(
        "optimizer_class = flax_lamb if config.lamb else optax.adam\n"
        "optimizer_def = optimizer_class(config.lr)\n"
    ),
)
def class_value(use: Use, context: Context) -> Edit | Keep | Refusal:
    """A class that is kept in a variable, passed on or looked up by name is replaced by a function.
    If optax has one that takes what all calls in view give by the same names, as `optax.adam` takes
    a learning rate, it is that. Otherwise `flax_adam`, which takes all the old arguments, is added
    to the project. Calls of it stay as they are. `getattr(optim, name)` becomes
    `FLAX_OPTIMIZERS[name]`, a dictionary of the classes that the project names in quotes, or of the
    three most common ones if it names none.

    As an attribute of a class it becomes `staticmethod(flax_adam)`, and as a member of an enum
    `enum.member(flax_adam)`, because a plain function would become a method there.

    A class stays, with a reason, if it is compared, is a key, has an attribute read or set, or goes
    to an unknown function or, through a variable, to another class. Everything that it may have
    made out of view stays too. The same holds for the module `flax.optim` if it is held in a
    variable or looked up by its name, with everything that it made, and for a string that is the
    path of one of its names.
    """
    # getattr(optim, name)
    if use.kind == "module":
        return _looked_up(use, context)
    # {"class": "flax.optim.Adam"}
    if use.kind == "in_text":
        return reasons.run_time_class(
            f"`{use.name}` is the path of something legacy, which may be looked up by it.",
            BY_KEY,
        )
    # optimizer_class: Type[optim.Optimizer]
    if use.kind == "class":
        return _annotation(use)
    # optim.Adam.apply_param_gradient = clipped
    if use.kind == "patched":
        return reasons.run_time_class(
            f"An attribute of `flax.optim{use.name and '.'}{use.name}` is set here, for all that "
            "is made by it.",
            "Write a function that is given the object.",
        )
    # optim.Adam.create
    if "." in use.name:
        return reasons.create_as_value(
            f"`{use.name}` is taken from its class.",
            "Call it on the object, as in `lambda optimizer, grads: "
            "optimizer.apply_gradient(grads)`.",
        )
    # optimizer_class(rate): it stays, as functions take the place of the classes that it may call
    classes = {use.legacy, *(obj.made_by for obj in use.objects)}
    replaceable = {*optimizers(), Unnamed.RUN_TIME, Unnamed.CUSTOM} - composite()
    if use.kind == "dynamic" and classes <= replaceable:
        # globals()[name]: only a class of the same name can take its place
        if _is_looked_up(classes, context) and not context.stepping.options.selects(
            "FO706"
        ):
            return reasons.run_time_class(
                "A class is looked up by its name among the variables of a module.",
                BY_KEY,
            )
        return Keep()
    is_value = f"The class `{use.name}` is used as a value"
    # Base = optim.OptimizerDef
    if use.name not in optimizers():
        return reasons.run_time_class(
            f"{is_value}.", f"Name `{use.name}` itself where this value is used."
        )
    remedy = (
        "Use the optax function instead, and rename the arguments where it is called."
    )
    if not classes.isdisjoint(composite()):
        return reasons.run_time_class(f"{is_value}.", remedy)
    # optimizer_class is optim.Adam, optimizer_class.__name__
    # class Kind(enum.Enum), whose members are called by other names
    kept_by = kept_as_value(use.node, use.unit, context.facts)
    if use.name in context.exposed or (kept_by and not use.objects):
        return reasons.run_time_class(
            f"{is_value}, and more than a call may become of it.", remedy
        )
    partial = partial_of(use, context)
    new = as_function(use, context, alias_of_value(use, context))
    if partial is None or new.alias is None:
        return new
    return _in_partial(partial, new, new.alias, use.unit)


def _in_partial(
    partial: ast.Call, new: ConvertClass, alias: Alias, unit: Unit
) -> ConvertPartial:
    """`functools.partial(optim.Adam, beta1=0.5)`, with the names of the function of optax."""
    words = [*(None for _ in partial.args), *(one.arg for one in partial.keywords)]
    given = enumerate(words[1:], 1)
    arguments = [
        Argument(alias.names[word] if word else None, at) for at, word in given
    ]
    return ConvertPartial(
        unit.span(partial),
        "{callee}",
        (Argument(None, template=new.template), *arguments),
        (("callee", unit.span(partial.func)),),
        alias=alias,
    )


def _is_looked_up(classes: Collection[object], context: Context) -> bool:
    """Whether one of some classes is imported where it may be read by a key."""
    return any(
        not {None, item.name}.isdisjoint(context.facts.looked_up(unit))
        for unit in context.facts.project.units
        for item in context.facts.imported(unit)
        if legacy_name(item.target) in classes
    )


def as_function(use: Use, context: Context, alias: Alias | None) -> ConvertClass:
    """A function in the place of a class or of the callee of a call."""
    is_late = _sets_rate_later(use.objects, context)
    alias = None if is_late else alias
    form = context.stepping.options.form
    supports = () if alias else functions.as_function(use.name, form, is_late)
    if alias is not None:
        name = alias.function.replace("optax.", "{optax}.")
    else:
        name = f"{{support:{supports[-1].name}}}"
    # optim.Adam(**arguments)
    if isinstance(use.node, ast.Call):
        span = use.unit.span(use.node.func)
        return ConvertClass(span, name, (), supports, is_late, alias)
    # an attribute of a class, which must not become a method: kind = optim.Adam
    kept_by = kept_as_value(use.node, use.unit, context.facts)
    if kept_by:
        name = f"{kept_by}({name})"
    return ConvertClass(use.span, name, (), supports, is_late, alias)


def _looked_up(use: Use, context: Context) -> Edit | Refusal:
    """`getattr(optim, name)` or `hasattr(optim, name)`, as a lookup among functions."""
    lookup = lookup_of(use)
    if lookup is not None and _may_be_any(lookup, use, context):
        named = tuple(sorted({*context.facts.named_classes} - composite())) or COMMONEST
        is_late = _sets_rate_later(use.objects, context)
        form = context.stepping.options.form
        return in_table(lookup, use, functions.by_name(named, form, is_late))
    return reasons.run_time_class(
        "The module `flax.optim` itself is used as a value, or looked up by its name.",
        "Name the optax function that is meant, for each choice.",
    )


def lookup_of(use: Use) -> ast.Call | None:
    """The whole of `getattr(optim, name)` or `hasattr(optim, name)`, if this is its module."""
    match use.parent:
        case (
            ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[module, _], keywords=[]
            ) as lookup
        ) if module is use.node:
            return lookup
    return None


def in_table(lookup: ast.Call, use: Use, supports: tuple[Support, ...]) -> Edit:
    """A lookup of a class by its name, in the dictionary that is the last of some helpers."""
    table = f"{{support:{supports[-1].name}}}"
    is_check = isinstance(lookup.func, ast.Name) and lookup.func.id == "hasattr"
    template = f"({{name}} in {table})" if is_check else f"{table}[{{name}}]"
    name = (("name", use.unit.span(lookup.args[1])),)
    return Replace(use.unit.span(lookup), template, name, supports)


def _may_be_any(lookup: ast.Call, use: Use, context: Context) -> bool:
    """Whether a lookup is of a class by its name, and only calls may become of it."""
    called = {*context.facts.externals(lookup.func)} & LOOKUPS
    name = lookup.args[1]
    named: object = Unnamed.RUN_TIME
    if isinstance(name, ast.Constant):
        named = name.value
        if named not in optimizers() or named in composite():
            return False
    is_used = bool(use.objects) or "builtins.hasattr" in called
    return bool(called) and is_used and named not in context.exposed


def _annotation(use: Use) -> Edit | Refusal:
    """`Type[Optimizer]` is the type of what makes a transformation."""
    outer = use.parent
    if isinstance(outer, ast.Subscript) and outer.slice is use.node:
        template = "Callable[..., {optax}.GradientTransformation]"
        return Replace(use.unit.span(outer), template, supports=(CALLABLE,))
    return reasons.run_time_class(
        f"The class `{use.name}` stands in the type of a class.",
        "Annotate with what makes the optax transformation.",
    )


def _sets_rate_later(objects: Iterable[LegacyObject], context: Context) -> bool:
    """Whether a step sets the learning rate, or none is given and no step is in view."""
    definitions = list(objects)
    if any(obj in context.overrides.injected for obj in definitions):
        return True
    calls = (obj.node for obj in definitions if isinstance(obj.node, ast.Call))
    is_unset = not all(_gives_rate(call, context) for call in calls)
    return is_unset and not are_stepped(definitions, context)


def are_stepped(definitions: Iterable[LegacyObject], context: Context) -> bool:
    """Whether an optimizer of some definitions takes a step in view."""
    stepping = context.stepping
    return bool(
        stepping.steps(chain.from_iterable(map(stepping.optimizers_of, definitions)))
    )


def _gives_rate(call: ast.Call, context: Context) -> bool:
    """Whether a call of a class, or the partial application that is called, gives a rate."""
    if learning_rate(call) is not None or is_unpacked(call):
        return True
    return any(
        learning_rate(given) is not None or is_unpacked(given)
        for one in context.facts.objects(call.func)
        if isinstance(one, Partial)
        # of the class, what else is given
        for given in [ast.Call(one.call.func, one.call.args[1:], one.call.keywords)]
    )
