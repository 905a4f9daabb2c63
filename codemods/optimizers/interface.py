"""Classes that keep the interface of legacy definitions, and are optax transformations too.

An optimizer of the user's own derives from one. Where a program works with definitions themselves,
such as a wrapper that asks another definition for its hyperparameters or for the step of one
parameter, all of its definitions become such classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import indent

from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer, Support, helper
from codemods.optimizers.functions import BY_NAME, WIDTH, fitted

OPTIMIZER_STATE = helper(
    '''@struct.dataclass
class OptimizerState:
    """The number of steps taken, and what the optimizer keeps for each parameter."""

    step: jax.Array
    param_states: optax.Params
''',
    is_shared=True,
)

OPTIMIZER_DEF = helper(
    '''class OptimizerDef:
    """A rule that makes new parameters, and an optax transformation as well.

    A subclass has `init_param_state` and `apply_param_gradient`, or `init_state` and
    `apply_gradient`. The updates of optax are the new parameters less the old ones.
    """

    def __init__(self, hyper_params):
        self.hyper_params = hyper_params

    def init_param_state(self, param):
        raise NotImplementedError

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        raise NotImplementedError

    def init_state(self, params):
        param_states = jax.tree_util.tree_map(self.init_param_state, params)
        return OptimizerState(jnp.zeros([], jnp.int32), param_states)

    def apply_gradient(self, hyper_params, params, state, grads):
        params, treedef = jax.tree_util.tree_flatten(params)
        parts = (
            params,
            treedef.flatten_up_to(state.param_states),
            treedef.flatten_up_to(grads),
        )
        new = [
            self.apply_param_gradient(state.step, hyper_params, *part)
            for part in zip(*parts)
        ]
        new_params = treedef.unflatten([param for param, _ in new])
        new_states = treedef.unflatten([param_state for _, param_state in new])
        return new_params, OptimizerState(state.step + 1, new_states)

    def update_hyper_params(self, **overrides):
        hyper_params = overrides.pop("hyper_params", self.hyper_params)
        return hyper_params.replace(**overrides) if overrides else hyper_params

    def init(self, params):
        return self.init_state(params)

    def update(self, updates, state, params=None, **overrides):
        hyper_params = self.update_hyper_params(**overrides)
        new_params, state = self.apply_gradient(hyper_params, params, state, updates)
        return jax.tree_util.tree_map(
            lambda new, old: new - old, new_params, params
        ), state
''',
    is_shared=True,
)

APPLY_GRADIENTS_WITH = helper(
    '''def apply_gradients_with(state, grads, **hyper_params):
    """One step of a train state with other hyperparameters than usual."""
    tx, given = state.tx, state.tx.update_hyper_params(**hyper_params)
    params, opt_state = tx.apply_gradient(given, state.params, state.opt_state, grads)
    return state.replace(step=state.step + 1, params=params, opt_state=opt_state)
''',
    is_shared=True,
)

HYPER_PARAMS = "HyperParams"
PARAM_STATE = "ParamState"


def has_interface(name: str) -> bool:
    """Whether there is a class that keeps the interface of a legacy optimizer."""
    found = optimizers().get(name)
    return found is not None and bool(found.rule or found.interface)


def interface_of(name: str) -> tuple[Support, ...]:
    """What takes the place of a legacy class, behind what it needs; nothing if there is none.

    `name` is that of an optimizer, or of what it keeps for a parameter, as `_AdamParamState`, or of
    its hyperparameters.
    """
    if name == "OptimizerDef":
        return OPTIMIZER_STATE, OPTIMIZER_DEF
    if name == OPTIMIZER_STATE.name:
        return (OPTIMIZER_STATE,)
    # _AdamParamState, then _AdamHyperParams
    for part, maker in ((PARAM_STATE, param_state), (HYPER_PARAMS, _hyper_params)):
        optimizer = name.removeprefix("_").removesuffix(part)
        if name == f"_{optimizer}{part}" and has_interface(optimizer):
            found = optimizers()[optimizer]
            fields = found.state if part == PARAM_STATE else found.parameters
            return (maker(optimizer),) if fields else ()
    return _optimizer(name) if has_interface(name) else ()


def by_name(names: Iterable[str]) -> tuple[Support, ...]:
    """A dictionary of the classes that keep the interface of some legacy ones, behind these."""
    classes = {
        support.name: support for name in names for support in interface_of(name)
    }
    entries = "".join(f'    "{name}": {name},\n' for name in classes if name in names)
    table = helper(f"{BY_NAME} = {{\n{entries}}}\n", is_shared=True)
    return *classes.values(), table


def param_state(optimizer: str) -> Support:
    """The class of what an optimizer keeps for a parameter.

    It has the name of the legacy one without its underscore.
    """
    what = f"What {optimizer} keeps for a parameter."
    return _record(f"{optimizer}{PARAM_STATE}", what, optimizers()[optimizer].state)


def _hyper_params(optimizer: str) -> Support:
    """The class of the hyperparameters of an optimizer."""
    legacy = optimizers()[optimizer]
    what = f"The hyperparameters of {optimizer}."
    return _record(f"{optimizer}{HYPER_PARAMS}", what, _hyper_fields(legacy))


def _hyper_fields(optimizer: LegacyOptimizer) -> list[str]:
    """The names of the hyperparameters of an optimizer."""
    parameters = [parameter.name for parameter in optimizer.parameters]
    names = [optimizer.hyper_fields.get(one, one) for one in parameters]
    return [*filter(None, names)]


def _record(name: str, what: str, fields: Iterable[str]) -> Support:
    """A dataclass of arrays."""
    lines = "\n".join(f"    {field}: jax.Array" for field in fields)
    source = f'''@struct.dataclass
class {name}:
    """{what}"""

{lines}
'''
    return helper(source, is_shared=True)


def _title(optimizer: LegacyOptimizer) -> str:
    """The name of an optimizer with its paper."""
    return re.split("[:,]", optimizer.documentation, maxsplit=1)[0]


def _optimizer(name: str) -> tuple[Support, ...]:
    """The class that keeps the interface of an optimizer, behind what it needs."""
    found = optimizers()[name]
    names = _hyper_fields(found)
    given = [f"{parameter.name}={parameter.default}" for parameter in found.parameters]
    signature = fitted("    def __init__", ["self", *given], ":")
    passed = fitted(f"            {name}{HYPER_PARAMS}", names, "")
    made = f"        super().__init__({passed.lstrip()})"
    if len(made) > WIDTH:
        made = f"        super().__init__(\n{passed}\n        )"
    init = f"{signature}\n{made}"
    initial = found.initial or ", ".join("jnp.zeros_like(param)" for _ in found.state)
    state = fitted(f"        return {name}{PARAM_STATE}", initial.split(", "), "")
    source = f'''class {name}({OPTIMIZER_DEF.name}):
    """{_title(found)}, as a rule for each parameter."""

{init}

    def init_param_state(self, param):
{state if found.state else "        return ()"}

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
{indent(found.rule, " " * 8)}'''
    source = found.interface.replace("{init}", init) or source
    hyper_params = (_hyper_params(name),) if found.parameters else ()
    kept = (param_state(name),) if found.state else ()
    return (
        OPTIMIZER_STATE,
        OPTIMIZER_DEF,
        *kept,
        *hyper_params,
        helper(source, is_shared=True),
    )
