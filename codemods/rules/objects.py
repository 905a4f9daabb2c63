"""The optimizer object, which becomes a train state where it stands."""

from __future__ import annotations

import ast
import re

from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling
from codemods.analysis.initial_params import (
    apply_function,
    are_plain,
    frozen,
    need_any,
)
from codemods.analysis.origins import Origins, Variable
from codemods.analysis.reflection import RENAMED
from codemods.analysis.steps import Steps
from codemods.analysis.uses import ATTRIBUTES, Use, owner_of_state
from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject
from codemods.inference.reading import FunctionNode
from codemods.model import Refusal
from codemods.optimizers.base import Support, arguments_given, helper, is_none
from codemods.optimizers.interface import interface_of
from codemods.optimizers.methods import CREATE
from codemods.optimizers.multi_optimizer import PARTITION_BY_PATH
from codemods.rewriting.edits import (
    Argument,
    Edit,
    Holes,
    Keep,
    Replace,
    RewriteCall,
    TakeBody,
)
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.param_states import (
    counts_in_state,
    is_new_state,
    new_by_definition,
    new_step,
    state_is_used,
)
from codemods.vocabulary import CALL_WITH_OTHERS, full_names

ANY_PARAMS_TRAIN_STATE = helper('''class AnyParamsTrainState({TrainState}):
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
''')


@rule(
    "FO201",
    "create makes a TrainState",
    "definition.create",
    before="optimizer = optim.Adam(1e-3).create(params)\n",
    after=(
        "optimizer = train_state.TrainState.create(apply_fn=model.apply, params=params, "
        "tx=optax.adam(1e-3))\n"
    ),
)
def create(use: Use, context: Context) -> Edit | Refusal:
    """An `Optimizer` holds parameters, state and definition. A `TrainState` holds the same three as
    `params`, `opt_state` and `tx`, so the object keeps its place in the program. `apply_fn` is the
    model's `apply` if `params` come from that model's `init` in the same function. Otherwise, and
    if several optimizers are mapped over together, it is None.

    Parameters that are a bare array or a dataclass need a small subclass, because today's
    `TrainState` looks for a key in them. If the program calls a method of arrays on each leaf, as
    in `tree_map(lambda x: x.copy(), optimizer)`, the step is made an array. `focus=` becomes a
    partition that leaves all other parameters as they are. In `jax.jit(definition.create)(params)`,
    and wherever it is a value, the method becomes a function of the parameters.
    """
    call = use.call
    # jax.jit(definition.create)(params)
    if call is None:
        return _create_as_function(use, context)
    given = arguments_given(call, CREATE)
    if isinstance(given, Refusal):
        return given
    found = _transformation(given.get("focus"), use, context)
    if isinstance(found, Refusal):
        return found
    transformation, holes, supports = found
    made = [
        obj
        for obj in context.facts.legacy_objects(call, "optimizer")
        if obj.node is call
    ]
    state, needed = _state_class(made, context)
    # tree_map over several train states compares their static fields, `apply_fn` among them
    joined = not context.facts.of(Handling).joined.isdisjoint(made)
    apply_fn = (
        "None"
        if joined
        else apply_function(call, given["target"], use.unit, context.facts)
    )
    arguments = (
        Argument("apply_fn", template=apply_fn),
        Argument("params", index=values_of(call).index(given["target"])),
        Argument("tx", template=transformation),
    )
    span, then = use.unit.span(call), _array_as_step(made, context)
    return RewriteCall(
        span, f"{state}.create", arguments, holes, supports + needed, then=then
    )


def _transformation(
    focus: ast.expr | None,
    use: Use,
    context: Context,
) -> tuple[str, Holes, tuple[Support, ...]] | Refusal:
    """A template for the transformation of `definition.create(…)`, its holes, and helpers."""
    definition = ("definition", use.unit.span(use.owner))
    if focus is None or is_none(focus):
        return "{definition}", (definition,), ()
    # definition.create(params, focus=optim.ModelParamTraversal(…))
    if not context.facts.legacy_objects(focus, "traversal"):
        return reasons.traversal(
            "Where this `focus` comes from is not in view.",
            "Label the parameters for `optax.transforms.partition`.",
        )
    supports: tuple[Support, ...] = (PARTITION_BY_PATH,)
    if context.stepping.keeps_interface(use):
        supports = interface_of("MultiOptimizer")
    # of None, an optimizer is one of all parameters
    roots = context.facts.flow.sources.roots(context.facts.flow.places.get(focus))
    may_be_none = any(isinstance(one, ast.expr) and is_none(one) for one in roots)
    predicate = "{focus} or (lambda *_: True)" if may_be_none else "{focus}"
    template = f"{{support:{supports[-1].name}}}(({predicate}, {{definition}}))"
    return template, (definition, ("focus", use.unit.span(focus))), supports


def _array_as_step(made: list[LegacyObject], context: Context) -> str:
    """What makes the step of a new train state an array, where the program needs one."""
    zero = context.counted.zero(made)
    return f".replace(step={zero})" if zero != "0" else ""


def _create_as_function(use: Use, context: Context) -> Edit | Refusal:
    """`create = definition.create`: the method becomes a function of the parameters."""
    if _is_in_class_body(use):
        # a function would be a method there
        return reasons.create_as_value(
            "`create` is kept in a class, where a function would be a method.",
            "Write a method that calls it.",
        )
    # the call of the result makes the optimizers, so they are found by their definition
    links = context.facts.legacy.links
    made = [
        outer
        for outer, inner in links
        if inner in use.objects and outer.kind == "optimizer"
    ]
    calls = [obj.node for obj in made if isinstance(obj.node, ast.Call)]
    words = {word.arg for call in calls for word in call.keywords}
    # the parameter of the lambda must not hide a name that the definition reads
    taken = {node.id for node in ast.walk(use.owner) if isinstance(node, ast.Name)}
    # create(target=params)
    names = ("target",) if words else ("params", "target", "initial_params")
    name = next((name for name in names if name not in taken), None)
    if name is None or not words <= {"target"}:
        return reasons.create_as_value(
            "`create` is kept as a value, and called with keywords.",
            "Call it by its own name.",
        )
    state, supports = _state_class(made, context)
    # what a compiled function returns are arrays
    parameters, transformation, then = name, "{definition}", ""
    if not _is_transformed(use, context):
        # it is called later, maybe often, and the definition is made now
        parameters, transformation = f"{name}, tx={{definition}}", "tx"
        then = _array_as_step(made, context)
    template = (
        f"lambda {parameters}: {state}.create(apply_fn=None, params={name}, "
        f"tx={transformation}){then}"
    )
    return Replace(
        use.span, template, (("definition", use.unit.span(use.owner)),), supports
    )


def _is_in_class_body(use: Use) -> bool:
    """Whether a use is evaluated by a class, and not in a method of it."""
    node: ast.AST | None = use.node
    while node is not None and not isinstance(node, ast.ClassDef | FunctionNode):
        node = use.unit.parents.get(node)
    return isinstance(node, ast.ClassDef)


def _is_transformed(use: Use, context: Context) -> bool:
    """Whether a method is the first argument of `jax.jit`, `jax.vmap` or the like."""
    outer = use.parent
    if not isinstance(outer, ast.Call) or outer.args[:1] != [use.node]:
        return False
    return not CALL_WITH_OTHERS.isdisjoint(context.facts.externals(outer.func))


def _state_class(
    made: list[LegacyObject], context: Context
) -> tuple[str, tuple[Support, ...]]:
    """A template for the class of train state that optimizers become, and its helper."""
    if not _needs_any_params(made, context):
        return "{TrainState}", ()
    return f"{{support:{ANY_PARAMS_TRAIN_STATE.name}}}", (ANY_PARAMS_TRAIN_STATE,)


def _needs_any_params(made: list[LegacyObject], context: Context) -> bool:
    """Whether the parameters are shown to be no mapping, so that the plain `TrainState` fails.

    Where nothing is known of them, the optimizers that reach the same places decide. The plain one
    says so itself, at once, if it gets anything else.
    """
    for near in (made, context.stepping.companions(made)):
        known = {need_any(optimizer, context.facts) for optimizer in near} - {None}
        if known:
            return True in known
    return False


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
    """Both count the steps taken, from 0. In a `TrainState` the first 0 is a plain number, so it is
    made an array where the program needs one, for example for `astype` or a division by 0. A
    MultiOptimizer had a state for each of its parts, all with the same step: there `.state[0].step`
    becomes `.step` too.
    """
    assert isinstance(use.node, ast.Attribute)
    owner = owner_of_state(use.owner)
    if owner is None or not context.facts.legacy_objects(owner, "optimizer"):
        return Keep()
    # optimizer.state[name].step
    if isinstance(use.owner, ast.Subscript) and not _is_numbered(use.owner):
        return Keep()
    # optimizer.state.step = 0
    if not isinstance(use.node.ctx, ast.Load):
        return _assigned(use)
    template = "{owner}.step"
    optimizers = context.facts.legacy_objects(owner, "optimizer")
    # learning_rate=schedule(optimizer.state.step), of which nothing is left
    if use.node not in context.idioms.removed(optimizers):
        template = context.counted.read(use, owner, template)
    return Replace(use.span, template, (("owner", use.unit.span(owner)),))


@rule("FO210", "the optimizer's state", "optimizer.state", "state.replace")
def state(use: Use, context: Context) -> Edit | Keep | Refusal:
    """`.state.step` (FO203) and some uses of `.state.param_states` (FO211) have counterparts. Any
    other use of the state stays, with a reason.
    """
    if use.name == "replace" and (
        is_new_state(use.parent, use.unit, context)
        or new_step(use.parent, use.unit, context) is not None
    ):
        return Keep()
    if use.name == "state":
        parent = use.parent
        # optimizer.state[0].step, of a MultiOptimizer
        if parent is not None and _is_numbered(parent):
            parent = use.unit.parents.get(parent)
        # optimizer.state.step: that is a use of its own
        if isinstance(parent, ast.Attribute) and parent.attr in ATTRIBUTES["state"]:
            return Keep()
        # state = optimizer.state, for `state.step`
        if _is_kept_for_step(use, context.facts):
            return _attribute(use, "{owner}")
        # if isinstance(optimizer.state, tuple): step = optimizer.state[0].step
        branch = _check_of_state_type(use, parent)
        if branch is not None:
            return _without_check(branch, use)
    return state_is_used()


def _is_kept_for_step(use: Use, facts: Facts) -> bool:
    """Whether this is `state = optimizer.state`, of which the step alone is read, as a number."""
    statement, unit = use.parent, use.unit
    match statement:
        case ast.Assign(targets=[ast.Name() as name]):
            origins, steps = facts.of(Origins), facts.of(Steps)
            variable = origins.meant(name, statement.value)
            if variable is None or _is_read_elsewhere(variable, facts):
                return False
            reads = [unit.parents.get(load) for load in origins.loads(variable)]
            return len(origins.stores(variable)) == 1 and all(
                isinstance(read, ast.Attribute)
                and read.attr == "step"
                and isinstance(read.ctx, ast.Load)
                and not steps.needs_array(read, unit)
                for read in reads
            )
    return False


def _is_read_elsewhere(variable: Variable, facts: Facts) -> bool:
    """Whether a variable is an attribute, too: of a class, or of a module that others import."""
    match variable.scope.node:
        case ast.ClassDef():
            return True
        case ast.Module():
            return bool(facts.importers_of(variable.unit))
    return False


def _without_check(branch: ast.If, use: Use) -> Edit | Refusal:
    """What `if isinstance(optimizer.state, tuple)` becomes: its body alone, if that is simple."""
    # not `if isinstance(optimizer.state, tuple): return …` on one line
    is_below = branch.body[0].lineno > branch.lineno
    # not an `elif`, nor a statement within a loop or another branch
    is_statement_of_function = isinstance(use.unit.parents[branch], ast.FunctionDef)
    if is_below and is_statement_of_function and "#" not in use.unit.source(branch):
        return TakeBody(use.unit.span(branch))
    return _attribute(use, "{owner}.opt_state")


def _is_numbered(node: ast.AST | None) -> bool:
    """Whether this is `x[0]`, or another number."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=int())):
            return True
    return False


def _check_of_state_type(use: Use, parent: ast.AST | None) -> ast.If | None:
    """The `if isinstance(optimizer.state, tuple)` around a use, if its branches become the same."""
    branch = use.unit.parents.get(parent) if isinstance(parent, ast.Call) else None
    if not isinstance(branch, ast.If) or branch.test is not parent or not branch.orelse:
        return None
    same = _with_one_step(branch.body) == _with_one_step(branch.orelse)
    return branch if same else None


def _with_one_step(body: list[ast.stmt]) -> str:
    """The text of statements in which `.state[0].step` and `.state.step` are `.step`."""
    text = "\n".join(map(ast.unparse, body))
    return re.sub(r"\.state(?:\[\d+\])?\.step\b", ".step", text)


@rule(
    "FO205",
    "replace(target=…) is replace(params=…)",
    "optimizer.replace",
    before="optimizer = optimizer.replace(target=pretrained)\n",
    after="optimizer = optimizer.replace(params=pretrained)\n",
)
def replace(use: Use, context: Context) -> Edit | Keep | Refusal:
    """Replacing the parameters keeps the optimizer's state and step, before and after. The state
    may be replaced by one in which each array is a function of the old ones (FO211), by one with
    another step, or by a new one that the optimizer's definition makes. Frozen parameters are
    unfrozen instead, if those that they replace came from a model: they are plain dicts today, and
    so is the state.
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
    arguments: list[Argument] = []
    holes = [use.owner_hole]
    for index, keyword in enumerate(call.keywords):
        if keyword.arg == "params" and use.evidence != "proven":
            return (
                Keep()
            )  # of an optimizer that an earlier, partial run has migrated here
        new = _new_field(index, keyword, use, context)
        if isinstance(new, Refusal):
            return new
        given, values = new
        arguments += given
        holes += ((name, use.unit.span(value)) for name, value in values.items())
    return RewriteCall(
        use.unit.span(call), "{owner}.replace", tuple(arguments), tuple(holes)
    )


def _new_field(
    index: int,
    keyword: ast.keyword,
    use: Use,
    context: Context,
) -> tuple[list[Argument], dict[str, ast.expr]] | Refusal:
    """What a train state is given for one keyword, with what the holes of its templates get."""
    value = keyword.value
    if keyword.arg == "target":
        params = frozen(value, context.facts)
        # optimizer.replace(target=flax.core.freeze(params)), where a model made plain dicts
        if params is not None and are_plain(use.objects, context.facts):
            unfrozen = Argument("params", template="{flax}.core.unfreeze({params})")
            return [unfrozen], {"params": params}
        return [Argument("params", index=index)], {}
    if keyword.arg != "state":
        return reasons.definition_internals(
            f"`replace({keyword.arg}=…)` has no counterpart.", "Make a new train state."
        )
    # optimizer.replace(state=optimizer.state.replace(param_states=…))
    if is_new_state(value, use.unit, context):
        assert isinstance(value, ast.Call)
        states = value.keywords[0].value
        return [Argument("opt_state", template="{opt_state}")], {"opt_state": states}
    # optimizer.replace(state=optimizer.optimizer_def.init_state(params))
    new = new_by_definition(value, use.unit, context)
    if new is not None:
        definition, params = new
        anew = [
            Argument("step", template=context.counted.zero(use.objects)),
            Argument("opt_state", template="{definition}.init({initial})"),
        ]
        return anew, {"definition": definition, "initial": params}
    # optimizer.replace(state=optimizer.state.replace(step=0))
    step = new_step(value, use.unit, context)
    if step is not None:
        arguments = [Argument("step", template="{step}")]
        # another step also in the `opt_state`, if the transformation counts there too
        if counts_in_state(use.owner, context):
            counted = "{optax}.tree_utils.tree_set({owner}.opt_state, count={step})"
            arguments.append(Argument("opt_state", template=counted))
        return arguments, {"step": step}
    return reasons.state(
        "`replace(state=…)` exchanges the optimizer's state.",
        "Replace `opt_state` by what the transformation expects.",
    )


READING = full_names("builtins", "getattr hasattr") | {"operator.attrgetter"}


@rule("FO212", "attributes by name", "reflection")
def reflection(use: Use, context: Context) -> Edit | Refusal:
    """`getattr(optimizer, "target")` asks for `"params"`, and so do `hasattr` and
    `operator.attrgetter`. For other attributes, they stay with a reason, as `vars`,
    `dataclasses.replace` and similar functions on a legacy object do.
    """
    node = use.node
    called = {*context.facts.externals(node.func)} if isinstance(node, ast.Call) else {}
    if use.name == RENAMED and not READING.isdisjoint(called):
        assert isinstance(node, ast.Call)
        # getattr(optimizer, "target"), attrgetter("agent.target")
        path = node.args["operator.attrgetter" not in called]
        text, count = re.subn(rf"\b{RENAMED}\b", "params", use.unit.source(path))
        if count == 1:
            return Replace(use.unit.span(path), text)
    remedy = "Write the attribute out."
    if "builtins.hasattr" in called:
        remedy = "Ask by `isinstance` whether it is a `train_state.TrainState`."
    return reasons.create_as_value(
        "An attribute of a legacy object is looked up by its name, or all are.", remedy
    )


def _attribute(use: Use, template: str) -> Edit | Refusal:
    """An attribute under another name, if it is only read."""
    assert isinstance(use.node, ast.Attribute)
    if not isinstance(use.node.ctx, ast.Load):
        return _assigned(use)
    return Replace(use.span, template, (use.owner_hole,))


def _assigned(use: Use) -> Refusal:
    return reasons.arguments(
        f"`.{use.name}` is assigned to, which legacy optimizers forbid.",
        "Use `replace`.",
    )
