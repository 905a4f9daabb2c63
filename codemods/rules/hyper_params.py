"""The hyperparameters of a definition: its learning rate, read from them or set for a step."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from codemods.analysis.legacy import MULTI_OPTIMIZER, Unnamed
from codemods.analysis.origins import names_read
from codemods.analysis.stepping import field_read, new_rate, rate_read
from codemods.analysis.uses import Use
from codemods.inference.binding import is_unpacked
from codemods.inference.objects import Class, LegacyObject
from codemods.messages import message
from codemods.model import Prose, Refusal
from codemods.optimizers.base import RATE, Support, helper, is_plain
from codemods.rewriting.edits import Edit, Holes, Keep, Replace, ReplaceStatement
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.sources.modules import Unit

IS_HYPERPARAM = helper('''def is_hyperparam(path, _):
    """Whether this is a hyperparameter in an optimizer's state, not a parameter."""
    return getattr(path[-2], "name", None) == "hyperparams"
''')

SET_RATES = helper('''def set_learning_rates(opt_state, *rates):
    """Set the learning rate of each group of `partition_by_path`."""
    for index, rate in enumerate(rates):
        group = jax.tree_util.DictKey(str(index))
        opt_state = optax.tree_utils.tree_set(
            opt_state, lambda path, _: group in path, learning_rate=rate
        )
    return opt_state
''')

SET_RATES_ALONE = replace(
    SET_RATES,
    source=SET_RATES.source.replace(
        "            opt_state, lambda path, _: group in path, learning_rate=rate\n",
        """\
            opt_state,
            lambda path, leaf: group in path and is_hyperparam(path, leaf),
            learning_rate=rate,
""",
    ),
)
"""The same where a parameter may be called `learning_rate`."""

Rates = tuple[ast.expr, ...]


@rule(
    "FO402",
    "hyper_params are rates in opt_state",
    "definition.hyper_params",
    before="rate = optimizer.optimizer_def.hyper_params.learning_rate\n",
    after='rate = optax.tree_utils.tree_get(optimizer.opt_state, "learning_rate")\n',
)
def hyper_params(use: Use, context: Context) -> Edit | Keep | Refusal:
    """A hyperparameter is read from where its constructor got it, if that still has the same value:
    a number of the same function, or a variable or attribute that is in scope. Otherwise the
    learning rate is read from the state as an injected hyperparameter, unless steps set others: a
    number of another function is copied then, and a note says so. Code that only makes the
    `hyper_params=` of a step is removed, because the step sets the learning rates itself. Any other
    code that reads or sets hyperparameters stays, with a reason.
    """
    # optimizer.optimizer_def.hyper_params.beta1
    field, value = field_read(use), _said(use, context)
    if field is not None and value is not None:
        return Replace(use.unit.span(field), value)
    assert isinstance(use.node, ast.expr)
    read = rate_read(use)
    is_injected = context.overrides.overridden.isdisjoint(use.objects)
    if read is not None and is_injected and not _has_own_rule(use, context):
        return _injected_rate(read, use, context)
    if _is_for_step(use.node, use.unit):
        return Keep()
    # of_kernels, of_others = optimizer.optimizer_def.hyper_params
    statement = use.parent
    if isinstance(statement, ast.Assign) and (
        _serves_steps_alone(statement, use.unit, context)
        or _is_said_elsewhere(statement, context)
    ):
        return ReplaceStatement(use.unit.span(statement), ())
    if field is not None:
        return reasons.definition_internals(
            f"`.hyper_params.{field.attr}` is what the optimizer was made with, and no name in "
            "scope holds that value.",
            "Keep the value in a variable of your own.",
        )
    return reasons.definition_internals(
        "`.hyper_params` reaches into the optimizer definition.",
        "Keep the value in a variable of your own, or read it from `opt_state.hyperparams` after "
        "`optax.inject_hyperparams`.",
    )


def _said(use: Use, context: Context) -> str | None:
    """A hyperparameter as it is said where it is read."""
    value = context.overrides.made_with.value(use)
    is_near = not context.overrides.made_with.is_far(
        use
    ) or context.overrides.is_copied(use)
    return value if is_near else None


def _is_said_elsewhere(statement: ast.Assign, context: Context) -> bool:
    """Whether all that is read of hyperparameters under a name of theirs is said there."""
    [target, *others] = statement.targets
    loads = _loads(target, statement, context)
    if others or loads is None:
        return False
    reads = [use for use in context.facts.uses if use.node in {*loads}]
    said = (_said(use, context) is not None for use in reads)
    return len(reads) == len({*loads}) and all(said)


def _loads(
    name: ast.expr, statement: ast.Assign, context: Context
) -> list[ast.Name] | None:
    """The places that read a name, if nothing but an assignment sets it."""
    if not isinstance(name, ast.Name):
        return None
    meant = context.origins.meant(name, statement.value)
    is_set_once = len(context.origins.stores(meant)) == 1
    return context.origins.loads(meant) if is_set_once else None


def _injected_rate(read: ast.expr, use: Use, context: Context) -> Edit:
    """`optimizer.optimizer_def.hyper_params.learning_rate`, from the state of the optimizer."""
    assert isinstance(use.owner, ast.Attribute)
    owner = (("owner", use.unit.span(use.owner.value)),)
    filtering = ""
    supports: tuple[Support, ...] = ()
    if context.stepping.param_names.may_be_rate:
        filtering = f", filtering={{support:{IS_HYPERPARAM.name}}}"
        supports = (IS_HYPERPARAM,)
    template = (
        f'{{optax}}.tree_utils.tree_get({{owner}}.opt_state, "{RATE}"{filtering})'
    )
    return Replace(use.unit.span(read), template, owner, supports)


@rule(
    "FO403",
    "update_hyper_params are rates in opt_state",
    "definition.update_hyper_params",
)
def update_hyper_params(use: Use, context: Context) -> Keep | Refusal:
    """A call that only makes the hyperparameters of a step is removed, because the step sets the
    learning rate itself.
    """
    call = use.call
    sets_rate = call is not None and new_rate(call) is not None
    if call is not None and sets_rate and _is_for_step(call, use.unit):
        return Keep()
    return reasons.definition_internals(
        "`.update_hyper_params` reaches into the optimizer definition.",
        "Set the learning rate in `opt_state.hyperparams` after `optax.inject_hyperparams`.",
    )


@rule(
    "FO106",
    "optimizer_def is tx",
    "optimizer.optimizer_def",
    before="other = optimizer.optimizer_def.create(other_params)\n",
    after=(
        "other = train_state.TrainState.create(apply_fn=None, params=other_params, "
        "tx=optimizer.tx)\n"
    ),
)
def optimizer_def(use: Use, context: Context) -> Edit | Keep | Refusal:
    """A train state holds its transformation as the optimizer held its definition."""
    assert isinstance(use.node, ast.Attribute)
    parent = use.parent
    if context.facts.legacy_objects(use.node, "definition"):
        if isinstance(parent, ast.Attribute) and parent.attr == "hyper_params":
            return Keep()
    elif isinstance(parent, ast.Attribute):
        return reasons.definition_internals(
            f"`.{parent.attr}` is used of an optimizer definition that is made nowhere in view.",
            "Run on the files that make it too, or keep the value in a variable of your own.",
        )
    return Replace(use.span, "{owner}.tx", (use.owner_hole,))


def keeps_rate(remedy: str) -> Refusal:
    """Why a step stays that sets no learning rate, if others do."""
    return reasons.overrides(
        "This step keeps the constructor's learning rate, while another step of the same optimizer "
        "sets one.",
        remedy,
    )


def refuse_rate(use: Use, context: Context) -> Refusal | None:
    """Why a step cannot set the learning rate of its optimizer or definition, if it cannot."""
    if (refusal := refuse_unseen(use, context)) is not None:
        return refusal
    if _has_own_rule(use, context):
        return reasons.overrides(
            "A step sets the learning rate of an optimizer of your own.",
            "Inject it with `optax.inject_hyperparams` by hand.",
        )
    # make_optimizer().apply_gradient(grads, learning_rate=rate)
    if not is_plain(use.owner):
        return reasons.overrides(
            "This step sets the learning rate of an optimizer that has no name.",
            "Give the optimizer a name before the step.",
        )
    return None


def refuse_unseen(use: Use, context: Context) -> Refusal | None:
    """Why a step cannot set hyperparameters, if not all that makes its optimizers is in view."""
    made = _definitions(use, context)
    unseen = next((one for one in made if one.made_by is Unnamed.UNSEEN), None)
    if unseen is None and all(_is_made_in_view(obj, context) for obj in use.objects):
        return None
    what: Prose = "the place that makes the optimizer is not in view."
    if unseen is not None:
        where = unseen.unit.location(getattr(unseen.node, "lineno", 1))
        what = message("what makes the optimizer at {} is not all in view.", where)
    return reasons.overrides(
        message("This step sets the learning rate, but {}", what),
        "Run on the files that make it too, or inject its learning rate with "
        "`optax.inject_hyperparams` by hand.",
    )


def _definitions(use: Use, context: Context) -> list[LegacyObject]:
    """The definitions at a use, and those of the optimizers there."""
    own = (obj for obj in use.objects if obj.kind == "definition")
    return [*own, *context.stepping.definitions(use)]


def _is_made_in_view(obj: LegacyObject, context: Context) -> bool:
    if obj.kind == "definition":
        return obj.evidence == "proven"
    return bool(context.facts.legacy.definitions(obj))


def _has_own_rule(use: Use, context: Context) -> bool:
    """Whether a class of the program's own has the hyperparameters of an optimizer at a use."""
    own = (one for one in _definitions(use, context) if one.made_by is Unnamed.CUSTOM)
    return any(not multi_classes(definition.node, context) for definition in own)


def multi_classes(call: ast.AST, context: Context) -> list[Class]:
    """The classes that derive from MultiOptimizer of which a call makes one."""
    made = context.facts.objects(call.func) if isinstance(call, ast.Call) else ()
    classes = (item for item in made if isinstance(item, Class))
    derives_from = context.facts.derives_from
    return [item for item in classes if derives_from(item, MULTI_OPTIMIZER)]


def with_rate(
    state: str,
    word: str,
    context: Context,
    names: Iterable[str] = (RATE,),
) -> tuple[str, tuple[Support, ...]]:
    """A template for a state with a new learning rate, and its helpers.

    `word` is the rate as a keyword of a call, or a hole for that; it may be several. Where a
    parameter may be called by one of the `names` too, a filter tells the two apart.
    """
    if not any(map(context.stepping.param_names.may_be, names)):
        return f"{{optax}}.tree_utils.tree_set({state}, {word})", ()
    is_hyperparam = f"{{support:{IS_HYPERPARAM.name}}}"
    return f"{{optax}}.tree_utils.tree_set({state}, {is_hyperparam}, {word})", (
        IS_HYPERPARAM,
    )


def rates_of_step(
    value: ast.expr,
    use: Use,
    context: Context,
) -> tuple[str, Holes, tuple[Support, ...]] | Refusal:
    """The new `opt_state` of a step with `hyper_params=value`: a template, its holes, and helpers.

    The hole of the owner is left out. Where optimizers of one and of several groups reach the step,
    legacy could take it with those of one sort only.
    """
    rate = _rate_of_all(value, context)
    if rate is not None:
        return _one_rate(rate, use, context)
    rates = _new_rates(value, use.unit, context)
    sizes = _group_counts(use, context)
    if isinstance(rates, ast.expr) and None in sizes:
        return _one_rate(rates, use, context)
    # hyper_params=[a.replace(learning_rate=rate), b.replace(…)], of a MultiOptimizer of two groups
    if isinstance(rates, tuple) and sizes - {None} == {len(rates)}:
        return _rates_of_groups(rates, use, context)
    return reasons.overrides(
        "This step overrides `hyper_params` by more than learning rates of what the definition "
        "had, or it is not clear what it sets.",
        "Set the learning rates in `opt_state` by hand.",
    )


def _one_rate(
    rate: ast.expr,
    use: Use,
    context: Context,
) -> tuple[str, Holes, tuple[Support, ...]]:
    """An `opt_state` in which every learning rate is the same."""
    template, supports = with_rate("{owner}.opt_state", f"{RATE}={{rate}}", context)
    return template, (("rate", use.unit.span(rate)),), supports


def _rates_of_groups(
    rates: Rates,
    use: Use,
    context: Context,
) -> tuple[str, Holes, tuple[Support, ...]]:
    """An `opt_state` with a learning rate for each group of a MultiOptimizer."""
    spans = map(use.unit.span, rates)
    holes = tuple((f"rate{index}", span) for index, span in enumerate(spans))
    arguments = ", ".join(f"{{{name}}}" for name, _ in holes)
    supports: tuple[Support, ...] = (SET_RATES,)
    if context.stepping.param_names.may_be_rate:
        supports = (IS_HYPERPARAM, SET_RATES_ALONE)
    template = f"{{support:{SET_RATES.name}}}({{owner}}.opt_state, {arguments})"
    return template, holes, supports


def _group_counts(use: Use, context: Context) -> set[int | None]:
    """How many groups the definitions of the optimizers at a use have."""
    links = context.facts.legacy.links
    inner_things = [inner for outer, inner in links if outer in use.objects]
    definitions = (inner for inner in inner_things if inner.kind == "definition")
    return {_group_count(definition, context) for definition in definitions}


def _group_count(definition: LegacyObject, context: Context) -> int | None:
    """How many groups a MultiOptimizer has; None for any other definition."""
    call = definition.node
    if not isinstance(call, ast.Call) or is_unpacked(call):
        return None
    # class LoggingOptimizer(optim.MultiOptimizer), with the constructor of its base
    classes = multi_classes(call, context)
    derived = any("__init__" not in item.scope.names for item in classes)
    return len(call.args) if derived or definition.made_by == "MultiOptimizer" else None


def _new_rates(
    value: ast.expr,
    unit: Unit,
    context: Context,
) -> ast.expr | Rates | None:
    """The rate that `hyper_params=value` sets, or those of all groups; None for anything else."""
    # hyper_params=[first.replace(learning_rate=rate), second]
    if isinstance(value, ast.List | ast.Tuple):
        return _rates_of_elements(value.elts, unit, context)
    rate = new_rate(value)
    if rate is None:
        return None
    # hyper_params=optimizer.optimizer_def.hyper_params.replace(learning_rate=rate)
    assert isinstance(value, ast.Call)
    assert isinstance(value.func, ast.Attribute)
    return (
        rate if context.facts.legacy_objects(value.func.value, "hyper_params") else None
    )


def _rates_of_elements(
    elements: list[ast.expr],
    unit: Unit,
    context: Context,
) -> Rates | None:
    """The rates in a list of the hyperparameters of each group, in order, with another rate."""
    rates: list[ast.expr] = []
    for index, element in enumerate(elements):
        rate = new_rate(element)
        if rate is None:
            return None
        # groups[0].replace(learning_rate=rate)
        assert isinstance(element, ast.Call)
        assert isinstance(element.func, ast.Attribute)
        if _element(element.func.value, unit, context) != index:
            return None
        rates.append(rate)
    return tuple(rates)


def _rate_of_all(value: ast.expr, context: Context) -> ast.expr | None:
    """The rate in `[one.replace(learning_rate=rate) for one in definition.hyper_params]`."""
    match value:
        case ast.ListComp(
            elt=ast.Call(func=ast.Attribute(value=ast.Name(id=name))) as new,
            generators=[
                ast.comprehension(target=ast.Name(id=target), iter=rates, ifs=[])
            ],
        ) if name == target and context.facts.legacy_objects(rates, "hyper_params"):
            rate = new_rate(new)
            # a rate such as 0.1 * one.learning_rate is another for each group
            names = names_read([rate]) if rate is not None else ()
            return None if any(one.id == name for one in names) else rate
    return None


def _element(node: ast.expr, unit: Unit, context: Context) -> int | None:
    """The index at which an expression was taken from the hyperparameters of a MultiOptimizer."""
    # optimizer.optimizer_def.hyper_params[0]
    match node:
        case ast.Subscript(value=value, slice=ast.Constant(value=int(index))):
            all_groups = context.facts.legacy_objects(value, "hyper_params")
            return index if all_groups else None
    # first, second = optimizer.optimizer_def.hyper_params
    variable = context.origins.variable(node)
    stores: list[ast.AST] = context.origins.stores(variable)
    target = unit.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(target, ast.Tuple | ast.List):
        return None
    statement = unit.parents.get(target)
    if not isinstance(statement, ast.Assign):
        return None
    if not context.facts.legacy_objects(statement.value, "hyper_params"):
        return None
    elements = enumerate(target.elts)
    return next(index for index, element in elements if element is stores[0])


def _is_for_step(node: ast.expr, unit: Unit) -> bool:
    """Whether an expression is part of the hyperparameters given to a step, and not of a rate."""
    inner: ast.AST = node
    for outer in unit.ancestors(node):
        if isinstance(outer, ast.keyword) and outer.arg != "hyper_params":
            return False
        match outer:
            case ast.Call(func=ast.Attribute(attr="apply_gradient")):
                # optimizer.apply_gradient(grads, hyper_params=…)
                return isinstance(inner, ast.keyword)
        inner = outer
    return False


def _serves_steps_alone(statement: ast.Assign, unit: Unit, context: Context) -> bool:
    """Whether all that an assignment sets is only read to make the hyperparameters of steps."""
    [target, *others] = statement.targets
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    every = [_loads(name, statement, context) for name in names]
    return not others and all(
        loads is not None and all(_is_for_step(load, unit) for load in loads)
        for loads in every
    )
