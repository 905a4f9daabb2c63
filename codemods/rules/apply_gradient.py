"""The step of an optimizer, which becomes that of a train state."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterable
from itertools import takewhile

from codemods.analysis.stepping import DECAY, OVERRIDES
from codemods.analysis.uses import Use
from codemods.dataflow.definitions import function_of
from codemods.idioms.carried import typed
from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject
from codemods.model import Refusal
from codemods.optimizers.base import RATE, UNPACKED, Support, arguments_given, is_none
from codemods.optimizers.methods import STEP
from codemods.rewriting.edits import Argument, Edit, Holes, Replace, RewriteCall
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.hyper_params import (
    keeps_rate,
    rates_of_step,
    refuse_rate,
    with_rate,
)


@rule(
    "FO204",
    "apply_gradient is apply_gradients",
    "optimizer.apply_gradient",
    before="optimizer = optimizer.apply_gradient(grads)\n",
    after="optimizer = optimizer.apply_gradients(grads=grads)\n",
)
def apply_gradient(use: Use, context: Context) -> Edit | Refusal:
    """This is the step itself. With `learning_rate=…`, the rate becomes an injected hyperparameter
    that is set before the step, unless it is a function of the optimizer's own step (FO404). So
    does a `weight_decay=…` that all steps set. As a value, the method becomes a function of the
    gradients, unless a call gives more.
    """
    call = use.call
    if call is None:
        return _as_function(use, context)
    override = context.overrides.of(use)
    # optimizer.apply_gradient(grads, **overrides)
    if override is not None and override.arg is None:
        return _set_unpacked(use, context, call, override)
    # optimizer.apply_gradient(grads, **options) of `def train(params, **options)`
    empty = context.stepping.empty_overrides(call)
    words = [word for word in call.keywords if word not in empty]
    arguments = arguments_given(ast.Call(call.func, call.args, words), STEP)
    if isinstance(arguments, Refusal):
        return arguments
    if (refusal := _refuse_overrides(words, use, context)) is not None:
        return refusal
    averaged = averaged_gradients(use, context)
    if isinstance(averaged, Refusal):
        return averaged
    legacy = _legacy_step(use, context, call, arguments["grads"], averaged, empty)
    decay = context.stepping.given_decay(use)
    if decay is not None:
        return legacy.with_decay(override, decay)
    if override is not None:
        return legacy.with_rate(override)
    if context.overrides.keeps_rate(use):
        return legacy.with_first_rate()
    function = "{owner}.apply_gradients"
    return RewriteCall(use.unit.span(call), function, legacy.arguments, legacy.holes)


def _as_function(use: Use, context: Context) -> Edit | Refusal:
    """`apply = optimizer.apply_gradient`: a function of the gradients."""
    is_plain = not context.stepping.axes(use.objects) and not _is_given_rate(
        use, context
    )
    if is_plain and not context.overrides.keeps_rate(use):
        template = "lambda grads, state={owner}: state.apply_gradients(grads=grads)"
        return Replace(use.span, template, (use.owner_hole,))
    return reasons.create_as_value(
        "`apply_gradient` is passed on instead of being called.",
        "Pass on a function that calls it: "
        "`lambda grads: optimizer.apply_gradient(grads)`.",
    )


def _is_given_rate(use: Use, context: Context) -> bool:
    """Whether a call of a method, or of what one makes of it, gives more than gradients."""
    parents, pending = use.unit.parents, [use.node]
    seen: set[ast.AST | None] = set()
    while pending:
        node = pending.pop()
        around = parents.get(node)
        # step = other, where `other` is `step`
        if around in seen:
            continue
        seen.add(around)
        match around:
            # functools.partial(optimizer.apply_gradient, learning_rate=0.1)
            case ast.Call(keywords=words) as call:
                if not {word.arg for word in words}.isdisjoint((*OVERRIDES, None)):
                    return True
                pending.append(call)
            # step = jax.jit(optimizer.apply_gradient)
            case ast.Assign(targets=[ast.Name() as name]):
                pending += context.origins.loads(context.origins.variable(name))
    return False


@dataclasses.dataclass(frozen=True)
class LegacyStep:
    """A call of `apply_gradient`, with its gradients as an argument, and empty `unpacked` ones."""

    use: Use
    context: Context
    call: ast.Call
    gradients: Argument
    holes: Holes
    unpacked: tuple[Argument, ...] = ()

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What `apply_gradients` is given."""
        return (self.gradients, *self.unpacked)

    def with_first_rate(self) -> Edit | Refusal:
        """A step that sets no rate, where others do: it takes that of the constructor."""
        # the state may still have the rate of another step, so this one is set again
        rate = self.context.overrides.made_with.rate(self.use)
        if rate is None:
            return keeps_rate("Pass `learning_rate=` here too.")
        return self.set_again(rate)

    def with_rate(self, override: ast.keyword) -> Edit | Refusal:
        """A step with `learning_rate=…` or `hyper_params=…`, which are set in the state first."""
        if (refusal := refuse_rate(self.use, self.context)) is not None:
            return refusal
        if override.arg == RATE:
            return self._set_first([override])
        # optimizer.apply_gradient(grads, hyper_params=hyper_params.replace(learning_rate=rate))
        rates = rates_of_step(override.value, self.use, self.context)
        if isinstance(rates, Refusal):
            return rates
        if not self._may_come_first([override]):
            return _refuse_order()
        opt_state, holes, supports = rates
        with_rates = dataclasses.replace(self, holes=(*self.holes, *holes))
        return with_rates.with_state(opt_state, supports, [override.value])

    def with_decay(
        self, override: ast.keyword | None, decay: ast.keyword
    ) -> Edit | Refusal:
        """A step with `weight_decay=…`, perhaps beside a learning rate."""
        if (refusal := refuse_rate(self.use, self.context)) is not None:
            return refusal
        if self.context.overrides.keeps_rate(self.use):
            return keeps_rate("Pass `learning_rate=` here too.")
        given = [word for word in self.call.keywords if word in (override, decay)]
        return self._set_first(given)

    def _set_first(self, given: list[ast.keyword]) -> Edit | Refusal:
        """A step with hyperparameters that are set in the state before it."""
        # optimizer.apply_gradient(compute_gradients(), learning_rate=next(rates))
        if not self._may_come_first(given):
            return _refuse_order()
        before = len(self.call.args)
        places = [before + self.call.keywords.index(word) for word in given]
        words = ", ".join(f"{{argument:{place}}}" for place in places)
        names = [str(word.arg) for word in given]
        opt_state, supports = with_rate("{owner}.opt_state", words, self.context, names)
        return self.with_state(opt_state, supports, [word.value for word in given])

    def set_again(self, rate: str, *moved: ast.expr) -> Edit | Refusal:
        """A step with a rate from a template, such as the number that the constructor was given."""
        if (refusal := refuse_rate(self.use, self.context)) is not None:
            return refusal
        word = f"{RATE}={rate}"
        opt_state, supports = with_rate("{owner}.opt_state", word, self.context)
        return self.with_state(opt_state, supports, moved)

    def with_state(
        self, opt_state: str, supports: tuple[Support, ...], moved: Iterable[ast.expr]
    ) -> RewriteCall:
        """The step of an optimizer with another state, in a statement of its own if it may be.

        `optimizer.replace(opt_state=…)` reads the optimizer twice, and what is `moved` earlier.
        """
        use, stepping = self.use, self.context.stepping
        opt_state, more = typed(opt_state, "{owner}.opt_state", use, stepping)
        prelude = ""
        if self._may_precede((use.owner, *moved)):
            prelude, opt_state = f"opt_state = {opt_state}", "opt_state"
        return RewriteCall(
            use.unit.span(self.call),
            f"{{owner}}.replace(opt_state={opt_state}).apply_gradients",
            self.arguments,
            self.holes,
            supports + more,
            prelude,
        )

    def _may_come_first(self, overrides: list[ast.keyword]) -> bool:
        """Whether hyperparameters may be computed ahead of the other arguments of the step."""
        words = (word.value for word in self.call.keywords if word not in overrides)
        others = [*self.call.args, *words]
        may_swap = self.context.facts.dataflow.may_swap
        return all(may_swap(one.value, other) for one in overrides for other in others)

    def _may_precede(self, moved: tuple[ast.expr, ...]) -> bool:
        """Whether a statement before may name the new state.

        The call always runs, nothing in its statement that comes before it matters to what moves,
        there is no other step in it, and the name is free.
        """
        scope = self.context.facts.scope(self.call)
        if scope.binding("opt_state") is not None:
            return False
        # a lambda or a comprehension has no statements, and a class would get an attribute
        with_statements = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
        if not isinstance(scope.node, with_statements):
            return False
        may_swap = self.context.facts.dataflow.may_swap
        node: ast.AST = self.call
        for parent in self.use.unit.ancestors(self.call):
            if isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr):
                return self._is_only_step_and_line(parent)
            if not _always_runs(node, parent):
                return False
            ahead = _ahead(parent, node)
            if any(not may_swap(one, other) for one in moved for other in ahead):
                return False
            node = parent
        return False

    def _is_only_step_and_line(self, statement: ast.stmt) -> bool:
        """Whether a statement takes one step, and no other statement begins on its line."""
        inside = {*ast.walk(statement)}
        nodes = self.use.unit.nodes
        statements = (found for found in nodes if isinstance(found, ast.stmt))
        line = [found for found in statements if found.lineno == statement.lineno]
        steps = (step.node in inside for step in self.context.stepping.all_steps)
        return len(line) == 1 and sum(steps) == 1


def _legacy_step(
    use: Use,
    context: Context,
    call: ast.Call,
    gradients: ast.expr,
    averaged: str,
    empty: list[ast.keyword],
) -> LegacyStep:
    """A step whose gradients come from a template, or stay as they are written."""
    values = values_of(call)
    unpacked = tuple(Argument(None, index=values.index(word.value)) for word in empty)
    if averaged == "{grads}":
        same = Argument("grads", index=values.index(gradients))
        return LegacyStep(use, context, call, same, (use.owner_hole,), unpacked)
    holes = (use.owner_hole, ("grads", use.unit.span(gradients)))
    given = Argument("grads", template=averaged)
    return LegacyStep(use, context, call, given, holes, unpacked)


def _refuse_order() -> Refusal:
    return reasons.overrides(
        "The gradients and the hyperparameters of this step are computed by expressions whose "
        "order matters.",
        "Compute the gradients in a statement before.",
    )


def averaged_gradients(use: Use, context: Context) -> str | Refusal:
    """A template for the gradients of a step, averaged over devices after `replicate()`."""
    axes = context.stepping.axes(use.objects)
    if not axes:
        return "{grads}"
    if any(
        _stand_together(use, other)
        for other in context.stepping.replicated(use.objects)
    ):
        return reasons.deprecated_method(
            "This step is taken where the optimizer is replicated, and may come before that.",
            "Use `jax_utils.replicate`, and `jax.lax.pmean` on the gradients of the steps on all "
            "devices.",
        )
    # an axis is None where it is computed, or for an optimizer that averages nothing
    if len(axes) > 1 or None in axes:
        return reasons.deprecated_method(
            "Not all optimizers that take this step average the gradients over the same devices.",
            "Use `jax_utils.replicate`, and `jax.lax.pmean` on the gradients before each step.",
        )
    return f"{{jax}}.lax.pmean({{grads}}, axis_name={json.dumps(axes.pop(), ensure_ascii=False)})"


def _stand_together(one: Use, other: Use) -> bool:
    """Whether two uses stand in the same function."""
    if one.unit is not other.unit:
        return False
    return function_of(one.unit, one.node) is function_of(other.unit, other.node)


def _set_unpacked(
    use: Use,
    context: Context,
    call: ast.Call,
    overrides: ast.keyword,
) -> Edit | Refusal:
    """`apply_gradient(grads, **overrides)`: a rate in it is set, else that of the constructor."""
    rate = context.overrides.made_with.rate(use)
    place = _place_of_gradients(use, call, overrides, context)
    if place is None:
        return UNPACKED
    # without a number to fall back on, the rate has to be among the overrides
    if rate is None and not all(
        map(_is_made_without_rate, context.stepping.definitions(use))
    ):
        return keeps_rate("Pass `learning_rate=` in any case.")
    read = f'["{RATE}"]' if rate is None else f'.get("{RATE}", {rate})'
    holes = (use.owner_hole, ("overrides", use.unit.span(overrides.value)))
    legacy = LegacyStep(use, context, call, Argument("grads", index=place), holes)
    return legacy.set_again(f"{{overrides}}{read}", overrides.value)


def _place_of_gradients(
    use: Use,
    call: ast.Call,
    overrides: ast.keyword,
    context: Context,
) -> int | None:
    """The index of the gradients, if nothing but `**overrides` is beside them and both may swap."""
    words = [*call.args, *call.keywords]
    others = [index for index, word in enumerate(words) if word is not overrides]
    if len(others) != 1:
        return None
    word = words[others[0]]
    gradients = word.value if isinstance(word, ast.keyword) else word
    _, by_type = typed("", "", use, context.stepping)
    if (
        isinstance(gradients, ast.Starred)
        or by_type
        or context.stepping.axes(use.objects)
    ):
        return None
    return (
        others[0]
        if context.facts.dataflow.may_swap(gradients, overrides.value)
        else None
    )


def _is_made_without_rate(definition: LegacyObject) -> bool:
    """Whether a constructor is not given a learning rate, so that each step had to be."""
    call = definition.node
    if not isinstance(call, ast.Call) or call.args:
        return False
    return all(word.arg not in (RATE, None) for word in call.keywords)


def _always_runs(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a part of an expression runs whenever that does, and its value is only passed on."""
    # not `x and y`, `x if y else z` or a comprehension; nor optimizer.apply_gradient(grads)(batch)
    if isinstance(parent, ast.Call):
        return node is not parent.func
    return isinstance(parent, ast.Tuple | ast.keyword | ast.Attribute)


def _ahead(parent: ast.AST, node: ast.AST) -> list[ast.expr]:
    """What is evaluated ahead of one of the parts of an expression."""
    parts: list[ast.expr] = []
    if isinstance(parent, ast.Tuple):
        parts = parent.elts
    elif isinstance(parent, ast.Call):
        node = node.value if isinstance(node, ast.keyword) else node
        parts = [parent.func, *values_of(parent)]
    return [*takewhile(lambda part: part is not node, parts)]


def _refuse_overrides(
    words: list[ast.keyword], use: Use, context: Context
) -> Refusal | None:
    """Why the hyperparameters that a step sets cannot be set in the state, if they cannot."""
    known = ["grads", *OVERRIDES]
    if context.stepping.sets_decay(use):
        known.append(DECAY)
    for keyword in words:
        # optimizer.apply_gradient(grads, beta1=0.8)
        if keyword.arg not in known:
            remedy = (
                "Inject that hyperparameter with `optax.inject_hyperparams` by hand."
            )
            return reasons.overrides(f"This step overrides `{keyword.arg}`.", remedy)
        if keyword.arg == RATE and is_none(keyword.value):
            return reasons.overrides(
                "This step sets the learning rate to None.", "Give a number."
            )
    names = {word.arg for word in words}
    if "hyper_params" in names and not names.isdisjoint((RATE, DECAY)):
        return reasons.overrides(
            "This step sets a hyperparameter twice.", "Set it once."
        )
    return None
