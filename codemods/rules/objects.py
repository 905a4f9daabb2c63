"""The optimizer object, which becomes a train state where it stands."""

from __future__ import annotations

import ast
import dataclasses
import re
from inspect import Signature
from itertools import takewhile

from codemods.analysis.carried import typed
from codemods.analysis.legacy import BARE
from codemods.analysis.model_apply import apply_function
from codemods.analysis.stepping import OVERRIDES
from codemods.analysis.uses import ATTRIBUTES, Use, owner_of_state
from codemods.dataflow.definitions import function_of
from codemods.flow.binding import Wrong, bind, values_of
from codemods.flow.objects import Thing
from codemods.model import Refusal
from codemods.optimizers.base import RATE, Support
from codemods.optimizers.interface import interface_of
from codemods.optimizers.methods import CREATE, STEP
from codemods.optimizers.multi_optimizer import PARTITION_BY_PATH
from codemods.optimizers.views import SET_COUNT, from_legacy
from codemods.rewriting.edits import Argument, Edit, Holes, Keep, Replace, RewriteCall, TakeBody
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.hyper_params import (
    IS_HYPERPARAM,
    keeps_rate,
    made_with,
    rates_of_step,
    refuse_rate,
    with_rate,
)
from codemods.rules.legacy_states import legacy_state, put_back, viewed_as
from codemods.rules.param_states import counts_in_state, is_new_state, new_step, state_is_used
from codemods.rules.transformations import makes_state
from codemods.vocabulary import CALL_WITH_OTHERS

ANY_PARAMS_TRAIN_STATE = Support(
    name="AnyParamsTrainState",
    source='''class AnyParamsTrainState({TrainState}):
    """A train state whose params may be any pytree, such as an array or a dataclass.

    The plain one looks for a key in its params.
    """

    @classmethod
    def create(cls, *, apply_fn, params, tx, **kwargs):
        fields = {"apply_fn": apply_fn, "params": params, "tx": tx, **kwargs}
        return cls(step=0, opt_state=tx.init(params), **fields)

    def apply_gradients(self, *, grads, **kwargs):
        updates, opt_state = self.tx.update(grads, self.opt_state, self.params)
        params = optax.apply_updates(self.params, updates)
        step = self.step + 1
        return self.replace(step=step, params=params, opt_state=opt_state, **kwargs)
''',
    imports=("import optax",),
)


STEP_WITH_RATE = Support(
    name="step_with_rate",
    source='''def step_with_rate(state, grads, learning_rate):
    """One step of a train state whose learning rate is an injected hyperparameter."""
    opt_state = optax.tree_utils.tree_set(state.opt_state, learning_rate=learning_rate)
    return state.replace(opt_state=opt_state).apply_gradients(grads=grads)
''',
    imports=("import optax",),
)

STEP_WITH_RATE_ALONE = dataclasses.replace(
    STEP_WITH_RATE,
    source='''def step_with_rate(state, grads, learning_rate):
    """One step of a train state whose learning rate is an injected hyperparameter."""
    opt_state = optax.tree_utils.tree_set(state.opt_state, is_hyperparam, learning_rate=learning_rate)
    return state.replace(opt_state=opt_state).apply_gradients(grads=grads)
''',
)
"""The same where a parameter may be called `learning_rate`."""


@rule(
    "FO201",
    "create makes a TrainState",
    "definition.create",
    before="optimizer = optim.Adam(1e-3).create(params)\n",
    after="optimizer = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))\n",
)
def create(use: Use, context: Context) -> Edit | Refusal:
    """An `Optimizer` holds parameters, state and definition; a `TrainState` holds the same three as
    `params`, `opt_state` and `tx`, so the object keeps its place in the program. `apply_fn` is the
    model's `apply` where `params` come from that model's `init` in the same function; else, and
    where several optimizers are mapped over together, None.

    Parameters that are a bare array or a dataclass need a small subclass, because today's
    `TrainState` looks for a key in them. Where the program asks of each leaf what only an array
    has, as in `tree_map(lambda x: x.copy(), optimizer)`, the step is made an array. `focus=`
    becomes a partition that leaves all other parameters as they are. In
    `jax.jit(definition.create)(params)` the method becomes a function of the parameters.
    """
    call = use.call
    if call is None:
        return _create_within(use, context)
    given = _arguments(call, CREATE)
    if isinstance(given, Refusal):
        return given
    holes = [("definition", use.unit.span(use.owner))]
    supports: tuple[Support, ...] = ()
    transformation = "{definition}"
    if "focus" in given:
        focus = given["focus"]
        if not context.facts.things(focus, "traversal"):
            return reasons.traversal(
                "Where this `focus` comes from is not in view.",
                "Label the parameters for `optax.transforms.partition`.",
            )
        holes.append(("focus", use.unit.span(focus)))
        supports = (
            interface_of("MultiOptimizer") if context.keeps_interface(use) else (PARTITION_BY_PATH,)
        )
        transformation = f"{{support:{supports[-1].name}}}(({{focus}}, {{definition}}))"
    made = [thing for thing in context.facts.things(call, "optimizer") if thing.node is call]
    state, needed = _state_class(made, context)
    joined = not context.handling.joined.isdisjoint(made)
    apply_fn = "None" if joined else apply_function(call, given["target"], use.unit, context.facts)
    arguments = (
        Argument("apply_fn", template=apply_fn),
        Argument("params", index=values_of(call).index(given["target"])),
        Argument("tx", template=transformation),
    )
    then = _then(made, context)
    supports += needed
    return RewriteCall(
        use.unit.span(call), f"{state}.create", arguments, tuple(holes), supports, then=then
    )


def _then(made: list[Thing], context: Context) -> str:
    """What is done with the train state that some optimizers become: it is given an array as its step, if it needs one."""
    zero = context.counted.zero(made)
    return f".replace(step={zero})" if zero != "0" else ""


def _create_within(use: Use, context: Context) -> Edit | Refusal:
    """`jax.jit(definition.create)(params)`: the method becomes a function of the parameters."""
    outer = use.parent
    is_first = isinstance(outer, ast.Call) and outer.args[:1] == [use.node]
    if not (
        isinstance(outer, ast.Call)
        and is_first
        and CALL_WITH_OTHERS & {*context.facts.externals(outer.func)}
    ):
        return reasons.create_as_value(
            "`create` is passed on instead of being called.",
            "Call it where the parameters are known, outside of other functions.",
        )
    links = context.facts.legacy.links
    made = [outer for outer, inner in links if inner in use.things and outer.kind == "optimizer"]
    state, supports = _state_class(made, context)
    names = {node.id for node in ast.walk(use.owner) if isinstance(node, ast.Name)}
    name = next(name for name in ("params", "target", "initial_params") if name not in names)
    template = f"lambda {name}: {state}.create(apply_fn=None, params={name}, tx={{definition}}){_then(made, context)}"
    return Replace(use.span, template, (("definition", use.unit.span(use.owner)),), supports)


def _state_class(made: list[Thing], context: Context) -> tuple[str, tuple[Support, ...]]:
    """How to say the class of train state that these optimizers become, and the helper that this needs."""
    if not _needs_any_params(made, context):
        return "{TrainState}", ()
    return f"{{support:{ANY_PARAMS_TRAIN_STATE.name}}}", (ANY_PARAMS_TRAIN_STATE,)


def _needs_any_params(made: list[Thing], context: Context) -> bool:
    """What the parameters need; where nothing is known of them, what those of the optimizers beside them need, if anything is."""
    known = {context.parameters.need_any(thing) for thing in made} - {None}
    known = known or {context.parameters.need_any(thing) for thing in context.companions(made)} - {
        None
    }
    return True in known or (not known and not all(map(context.parameters.come_from_outside, made)))


@rule(
    "FO202",
    "target is params",
    "optimizer.target",
    before="logits = model.apply(optimizer.target, x)\n",
    after="logits = model.apply(optimizer.params, x)\n",
)
def target(use: Use, context: Context) -> Edit | Refusal:
    """The parameters of a train state are its `params`."""
    return _attribute(use, "{owner}.params")


@rule(
    "FO203",
    "state.step is step",
    "state.step",
    before="step = int(optimizer.state.step)\n",
    after="step = int(optimizer.step)\n",
)
def step(use: Use, context: Context) -> Edit | Keep | Refusal:
    """Both count the steps taken: 0 before the first. That 0 is a plain number in a `TrainState`,
    so where the program asks for what only an array has or does, such as `astype` or a quotient by
    0, an array is made of it. A MultiOptimizer had a state for each of its parts, with the same
    step in all of them: there `.state[0].step` is `.step` too.
    """
    assert isinstance(use.node, ast.Attribute)
    if any(thing.name == BARE for thing in use.things):
        return reasons.state(
            "The state that a definition made without an optimizer has no step of its own any more.",
            "Count the steps in a variable.",
        )
    owner = owner_of_state(use.owner)
    owners = [] if owner is None else context.facts.things(owner, "optimizer")
    if (
        owner is None
        or not owners
        or (isinstance(use.owner, ast.Subscript) and not _is_first(use.owner))
    ):
        return Keep()
    if not isinstance(use.node.ctx, ast.Load):
        return _assigned(use)
    template = context.counted.read(use, owner, "{owner}.step")
    return Replace(use.span, template, (("owner", use.unit.span(owner)),))


@rule("FO210", "the optimizer's state", "optimizer.state", "state.replace")
def state(use: Use, context: Context) -> Edit | Keep | Refusal:
    """The counterparts of `.state.step` (FO203) and of some uses of `.state.param_states` (FO211)
    are known; any other use of the state is left, with a reason.
    """
    parent = use.parent
    if use.name == "replace" and (
        is_new_state(parent, use.unit, context) or new_step(parent, use.unit, context) is not None
    ):
        return Keep()
    if parent is not None and _is_first(parent):
        parent = use.unit.parents.get(parent)
    if (
        use.name == "state"
        and isinstance(parent, ast.Attribute)
        and parent.attr in ATTRIBUTES["state"]
    ):
        return Keep()  # that is a use of its own
    if use.name == "state" and (branch := _asks_for_parts(use, parent)) is not None:
        below = branch.body[0].lineno > branch.lineno and isinstance(
            use.unit.parents[branch], ast.FunctionDef
        )
        plain = below and "#" not in use.unit.source(branch)
        return TakeBody(use.unit.span(branch)) if plain else _attribute(use, "{owner}.opt_state")
    name = viewed_as(use, context)
    if name is None or not isinstance(use.node, ast.Attribute):
        return state_is_used()
    return legacy_state(use.node if use.name == "state" else use.owner, use, name)


def _is_first(node: ast.AST | None) -> bool:
    """Whether this is `x[0]`, or another number."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=int())):
            return True
    return False


def _asks_for_parts(use: Use, parent: ast.AST | None) -> ast.If | None:
    """The `if isinstance(optimizer.state, (list, tuple))` that this is in, if both of its branches will do the same."""
    branch = use.unit.parents.get(parent) if isinstance(parent, ast.Call) else None
    if not isinstance(branch, ast.If) or branch.test is not parent or not branch.orelse:
        return None
    first, second = (
        re.sub(r"\.state(?:\[\d+\])?\.step\b", ".step", "\n".join(map(ast.unparse, body)))
        for body in (branch.body, branch.orelse)
    )
    return branch if first == second else None


@rule(
    "FO204",
    "apply_gradient is apply_gradients",
    "optimizer.apply_gradient",
    before="optimizer = optimizer.apply_gradient(grads)\n",
    after="optimizer = optimizer.apply_gradients(grads=grads)\n",
)
def apply_gradient(use: Use, context: Context) -> Edit | Refusal:
    """The step itself. With `learning_rate=…`, the rate is an injected hyperparameter that is set
    before the step, unless it is a function of the optimizer's own step (FO404).
    """
    call = use.call
    if call is None:
        return reasons.create_as_value(
            "`apply_gradient` is passed on instead of being called.",
            "Call it in a function of its own.",
        )
    override = context.overrides.of(use)
    if override is not None and override.arg is None:
        return _set_unpacked(use, context, call, override)
    given = _arguments(call, STEP)
    if isinstance(given, Refusal):
        return given
    if (refusal := _refuse_overrides(call)) is not None:
        return refusal
    averaged = averaged_gradients(use, context)
    if isinstance(averaged, Refusal):
        return averaged
    holes = [use.owner_hole]
    argument = Argument("grads", index=values_of(call).index(given["grads"]))
    if averaged != "{grads}":
        argument = Argument("grads", template=averaged)
        holes.append(("grads", use.unit.span(given["grads"])))
    if override is not None:
        return _set_rate(use, context, call, override, argument, tuple(holes))
    if context.overrides.keeps_rate(use):
        rate = made_with(RATE, use, context)
        remedy = "Pass `learning_rate=` here too."
        return (
            keeps_rate(remedy)
            if rate is None
            else _set_again(use, context, call, rate, argument, tuple(holes))
        )
    return RewriteCall(use.unit.span(call), "{owner}.apply_gradients", (argument,), tuple(holes))


def averaged_gradients(use: Use, context: Context) -> str | Refusal:
    """A template for the gradients of a step: averaged over the devices, if the optimizer was replicated by its own method."""
    axes = context.axes(use.things)
    if not axes:
        return "{grads}"
    if any(_stand_together(use, other) for other in context.replicated(use.things)):
        return reasons.deprecated_method(
            "This step is taken where the optimizer is replicated, and may come before that.",
            "Use `jax_utils.replicate`, and `jax.lax.pmean` on the gradients of the steps on all devices.",
        )
    if len(axes) > 1 or None in axes:
        return reasons.deprecated_method(
            "Not all optimizers that take this step average the gradients over the same devices.",
            "Use `jax_utils.replicate`, and `jax.lax.pmean` on the gradients before each step.",
        )
    return f"{{jax}}.lax.pmean({{grads}}, axis_name={axes.pop()!r})"


def _stand_together(one: Use, other: Use) -> bool:
    """Whether two uses stand in the same function."""
    return one.unit is other.unit and function_of(one.unit, one.node) is function_of(
        other.unit, other.node
    )


def _set_rate(
    use: Use,
    context: Context,
    call: ast.Call,
    override: ast.keyword,
    gradients: Argument,
    holes: Holes,
) -> Edit | Refusal:
    if (refusal := refuse_rate(use, context)) is not None:
        return refusal
    supports: tuple[Support, ...] = ()
    if override.arg == RATE:
        if not _may_come_first(call, override, context):
            return _step_with_rate(use, context, call, holes, gradients)
        rate = len(call.args) + call.keywords.index(override)
        opt_state, supports = with_rate("{owner}.opt_state", f"{{argument:{rate}}}", context)
    else:
        rates = rates_of_step(override.value, use, context)
        if isinstance(rates, Refusal):
            return rates
        if not _may_come_first(call, override, context):
            return reasons.overrides(
                "The gradients and the hyperparameters of this step are computed by expressions whose order matters.",
                "Compute the gradients in a statement before.",
            )
        opt_state, more, supports = rates
        holes = (*holes, *more)
    opt_state, more_supports = typed(
        opt_state, "{owner}.opt_state", use, context, context.parameters
    )
    prelude = ""
    if _may_precede(call, (use.owner, override.value), use, context):
        prelude, opt_state = f"opt_state = {opt_state}", "opt_state"
    function = f"{{owner}}.replace(opt_state={opt_state}).apply_gradients"
    return RewriteCall(
        use.unit.span(call), function, (gradients,), holes, supports + more_supports, prelude
    )


def _set_unpacked(
    use: Use, context: Context, call: ast.Call, overrides: ast.keyword
) -> Edit | Refusal:
    """A step with `**overrides` in which there may be a learning rate: without one, it is that of the constructor."""
    words = [*call.args, *call.keywords]
    others = [index for index, word in enumerate(words) if word is not overrides]
    given = [words[index] for index in others]
    values = [word.value if isinstance(word, ast.keyword) else word for word in given]
    rate = made_with(RATE, use, context)
    _, by_type = typed("", "", use, context, context.parameters)
    is_plain = len(values) == 1 and not isinstance(values[0], ast.Starred) and not by_type
    if (
        not is_plain
        or context.axes(use.things)
        or not context.facts.dataflow.may_swap(values[0], overrides.value)
    ):
        return reasons.unpacked_arguments(
            "The arguments of this call are unpacked.", "Name the arguments."
        )
    if rate is None and not all(map(_is_made_without_rate, context.definitions(use))):
        return keeps_rate("Pass `learning_rate=` in any case.")
    read = f'["{RATE}"]' if rate is None else f'.get("{RATE}", {rate})'
    holes = (use.owner_hole, ("overrides", use.unit.span(overrides.value)))
    argument = Argument("grads", index=others[0])
    return _set_again(
        use, context, call, f"{{overrides}}{read}", argument, holes, (overrides.value,)
    )


def _is_made_without_rate(definition: Thing) -> bool:
    """Whether a constructor is not given a learning rate, so that each step had to be."""
    call = definition.node
    return (
        isinstance(call, ast.Call)
        and not call.args
        and all(word.arg not in (RATE, None) for word in call.keywords)
    )


def _set_again(
    use: Use,
    context: Context,
    call: ast.Call,
    rate: str,
    gradients: Argument,
    holes: Holes,
    moved: tuple[ast.expr, ...] = (),
) -> Edit | Refusal:
    """A step with a rate that is told by a template, such as the one that the constructor was given."""
    if (refusal := refuse_rate(use, context)) is not None:
        return refusal
    opt_state, filters = with_rate("{owner}.opt_state", f"{RATE}={rate}", context)
    opt_state, supports = typed(opt_state, "{owner}.opt_state", use, context, context.parameters)
    prelude = ""
    if _may_precede(call, (use.owner, *moved), use, context):
        prelude, opt_state = f"opt_state = {opt_state}", "opt_state"
    function = f"{{owner}}.replace(opt_state={opt_state}).apply_gradients"
    return RewriteCall(
        use.unit.span(call), function, (gradients,), holes, filters + supports, prelude
    )


def _step_with_rate(
    use: Use, context: Context, call: ast.Call, holes: Holes, gradients: Argument
) -> RewriteCall:
    """The step as a call of a helper that is given the same, in the same order."""
    given: list[Argument] = [Argument(None, template="{owner}")]
    for index, word in enumerate((*call.args, *call.keywords)):
        is_rate = isinstance(word, ast.keyword) and word.arg == RATE
        given.append(Argument(RATE, index=index) if is_rate else gradients)
    function = f"{{support:{STEP_WITH_RATE.name}}}"
    supports = (
        (IS_HYPERPARAM, STEP_WITH_RATE_ALONE)
        if context.param_names.may_be_rate
        else (STEP_WITH_RATE,)
    )
    return RewriteCall(use.unit.span(call), function, tuple(given), holes, supports)


def _may_come_first(call: ast.Call, override: ast.keyword, context: Context) -> bool:
    """Whether the rate may be computed ahead of what else the step is given."""
    others = [*call.args, *(word.value for word in call.keywords if word is not override)]
    return all(context.facts.dataflow.may_swap(override.value, other) for other in others)


def _may_precede(call: ast.Call, moved: tuple[ast.expr, ...], use: Use, context: Context) -> bool:
    """Whether a statement before may name the new state.

    The call always runs, nothing in its statement that comes before it matters to that, there is no other step in it, and the
    name is free.
    """
    scope = context.facts.scope(call)
    if scope.binding("opt_state") is not None or not isinstance(
        scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
    ):
        return False
    node: ast.AST = call
    for parent in use.unit.ancestors(call):
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr):
            inside = {*ast.walk(parent)}
            line = [
                found
                for found in use.unit.nodes
                if isinstance(found, ast.stmt) and found.lineno == parent.lineno
            ]
            return len(line) == 1 and sum(step.node in inside for step in context.all_steps) == 1
        if not isinstance(parent, ast.Tuple | ast.Call | ast.keyword | ast.Attribute) or (
            isinstance(parent, ast.Call) and node is parent.func
        ):
            return False
        if any(
            not context.facts.dataflow.may_swap(one, other)
            for one in moved
            for other in _ahead(parent, node)
        ):
            return False
        node = parent
    return False


def _ahead(parent: ast.AST, node: ast.AST) -> list[ast.expr]:
    """What is evaluated ahead of one of the parts of an expression."""
    parts: list[ast.expr] = []
    if isinstance(parent, ast.Tuple):
        parts = parent.elts
    elif isinstance(parent, ast.Call):
        node = node.value if isinstance(node, ast.keyword) else node
        parts = [parent.func, *values_of(parent)]
    return [*takewhile(lambda part: part is not node, parts)]


def _refuse_overrides(call: ast.Call) -> Refusal | None:
    for keyword in call.keywords:
        if keyword.arg not in ("grads", *OVERRIDES):
            remedy = "Inject that hyperparameter with `optax.inject_hyperparams` by hand."
            return reasons.overrides(f"This step overrides `{keyword.arg}`.", remedy)
        if (
            keyword.arg == RATE
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value is None
        ):
            return reasons.overrides("This step sets the learning rate to None.", "Give a number.")
    if len({word.arg for word in call.keywords if word.arg in OVERRIDES}) > 1:
        return reasons.overrides("This step sets the learning rate twice.", "Set it once.")
    return None


@rule(
    "FO205",
    "replace(target=…) is replace(params=…)",
    "optimizer.replace",
    before="optimizer = optimizer.replace(target=pretrained)\n",
    after="optimizer = optimizer.replace(params=pretrained)\n",
)
def replace(use: Use, context: Context) -> Edit | Keep | Refusal:
    """Exchanging the parameters keeps the optimizer's state and step on both sides. The state may
    be exchanged for one in which each array is a function of the old ones (FO211), for one with
    another step, or for a new one, whose step is 0.
    """
    call = use.call
    if call is None:
        return reasons.create_as_value(
            "`replace` is passed on instead of being called.", "Call it."
        )
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        return reasons.unpacked_arguments(
            "The arguments of `replace` are unpacked.", "Name the fields."
        )
    holes = [use.owner_hole]
    arguments: list[Argument] = []
    supports: tuple[Support, ...] = ()
    for index, keyword in enumerate(call.keywords):
        if keyword.arg == "target":
            arguments.append(Argument("params", index=index))
        elif keyword.arg == "params" and use.evidence != "proven":
            return Keep()  # of an optimizer that an earlier, partial run has migrated here
        elif keyword.arg == "state" and is_new_state(keyword.value, use.unit, context):
            assert isinstance(keyword.value, ast.Call)
            arguments.append(Argument("opt_state", template="{opt_state}"))
            holes.append(("opt_state", use.unit.span(keyword.value.keywords[0].value)))
        elif (
            keyword.arg == "state"
            and (step := new_step(keyword.value, use.unit, context)) is not None
        ):
            arguments.append(Argument("step", template="{step}"))
            holes.append(("step", use.unit.span(step)))
            if counts_in_state(use.owner, context):
                supports = (SET_COUNT,)
                template = f"{{support:{SET_COUNT.name}}}({{owner}}.opt_state, {{step}})"
                arguments.append(Argument("opt_state", template=template))
        elif keyword.arg == "state" and makes_state(keyword.value, context):
            zero = context.counted.zero(use.things)
            arguments += [Argument("step", template=zero), Argument("opt_state", index=index)]
        elif keyword.arg == "state" and (name := put_back(keyword.value, use, context)) is not None:
            return _put_back(use, call, name, context)
        elif keyword.arg == "state":
            return reasons.state(
                "`replace(state=…)` exchanges the optimizer's state.",
                "Replace `opt_state` by what the transformation expects.",
            )
        else:
            return no_counterpart(keyword.arg)
    return RewriteCall(
        use.unit.span(call), "{owner}.replace", tuple(arguments), tuple(holes), supports
    )


def _put_back(use: Use, call: ast.Call, optimizer: str, context: Context) -> Edit | Refusal:
    """`replace(state=…)` with a state of the legacy form, and perhaps `target=…` beside it."""
    supports = from_legacy(optimizer, bool(counts_in_state(use.owner, context)))
    given = {word.arg: (index, word.value) for index, word in enumerate(call.keywords)}
    index, state = given.pop("state")
    holes, owner = [use.owner_hole], "{owner}"
    if "target" in given:
        _, target = given.pop("target")
        if not context.facts.dataflow.may_swap(target, state):
            return reasons.statement_form(
                "The order of what `replace` is given matters.", "Replace one after the other."
            )
        holes.append(("target", use.unit.span(target)))
        owner = "{owner}.replace(params={target})"
    if given:
        return no_counterpart(*given)
    arguments = (Argument(None, template=owner), Argument("state", index=index))
    return RewriteCall(
        use.unit.span(call), f"{{support:{supports[-1].name}}}", arguments, tuple(holes), supports
    )


def no_counterpart(*fields: str | None) -> Refusal:
    """Why `replace` of something else than the parameters and the state stays."""
    words = ", ".join(f"{field}=…" for field in fields)
    return reasons.definition_internals(
        f"`replace({words})` has no counterpart.", "Make a new train state."
    )


@rule("FO212", "attributes by name", "reflection")
def reflection(use: Use, context: Context) -> Refusal:
    """`getattr`, `vars`, `dataclasses.replace`, patterns and the like on a legacy object are left,
    with a reason.
    """
    return reasons.create_as_value(
        "An attribute of a legacy object is looked up by its name, or all are.",
        "Write the attribute out.",
    )


def _attribute(use: Use, template: str) -> Edit | Refusal:
    assert isinstance(use.node, ast.Attribute)
    if not isinstance(use.node.ctx, ast.Load):
        return _assigned(use)
    return Replace(use.span, template, (use.owner_hole,))


def _assigned(use: Use) -> Refusal:
    return reasons.arguments(
        f"`.{use.name}` is assigned to, which legacy optimizers forbid.", "Use `replace`."
    )


def _arguments(call: ast.Call, signature: Signature) -> dict[str, ast.expr] | Refusal:
    """The arguments of a call by parameter, or why they cannot be told."""
    found = bind(signature, call)
    if isinstance(found, Wrong):
        return reasons.arguments(f"Python refuses this call: {found.why}.", "Correct the call.")
    if found.unpacked:
        return reasons.unpacked_arguments(
            "The arguments of this call are unpacked.", "Name the arguments."
        )
    return found.given
