"""docs/reference/flax-optim.md: what becomes of each use of `flax.optim`, found by using it. As a script, this writes it anew."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from codemods import Source, migrate
from codemods.vocabulary import words
from tests.codemods.analysis.test_out_of_view import COMMON
from tests.generated.verdicts import verdict

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "flax-optim.md"
HEAD = """# What becomes of each use

This page lists every public name and method of `flax.optim` 0.5.3, how programs use it, and what each use becomes. Each row is a
small program that was migrated. If the migration changed it, it was trained before and after in float64, with the same numbers.

- **optax**: it becomes an optax function, or a function in the file that is built from optax.
- **interface**: the definition keeps its interface, as a class in the file that is an optax transformation too
  ([FO706](../rules/FO706.md)).
- **left**: the optimizer stays as it was, and the report says why.
"""

PROGRAM = """\
import copy
import functools
import pickle
from typing import Any, Type

import jax
import jax.numpy as jnp
from flax import jax_utils, optim, serialization, struct

from common import gradients, loss

{above}
definition = {definition}


def near(value):
    return round(float(value), 9)


def run(params, batches):
    optimizer = definition.create(params)
    for batch in batches:
        grads = gradients(optimizer.target, batch)
        {step}
    told = []
    {after}
    return [optimizer.target], told
"""
STEP = "optimizer = optimizer.apply_gradient(grads)"


@dataclass(frozen=True)
class Row:
    """A use: what it is called, and where its lines go in a program."""

    use: str
    definition: str = "optim.Adam(0.1)"
    step: str = STEP
    after: str = "told.append(int(optimizer.state.step))"
    above: str = ""

    @property
    def program(self) -> str:
        lines = self.after.replace("\n", "\n    ")
        step = self.step.replace("\n", "\n        ")
        return PROGRAM.format(
            definition=self.definition, step=step, after=lines, above=self.above
        )


def bare(use: str, line: str) -> Row:
    """A definition that is used without an optimizer."""
    state = "params, state = optimizer.target, definition.init_state(params)"
    return Row(use, after=f"{state}\n{line}")


STATES = "optimizer.state.param_states"
GROUPS = (
    "optim.MultiOptimizer((KERNELS, optim.Adam(0.1)), (OTHERS, optim.Momentum(0.1)))"
)
PAIR = (
    "KERNELS = optim.ModelParamTraversal(lambda path, _: path.endswith('w'))\n"
    "OTHERS = optim.ModelParamTraversal(lambda path, _: not path.endswith('w'))\n"
)
RULE = """\
class Sign(optim.OptimizerDef):
    def __init__(self, learning_rate=None):
        super().__init__(Hyper(learning_rate))

    def init_param_state(self, param):
        return ()

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return param - hyper_params.learning_rate * jnp.sign(grad), state
"""
HYPER = "@struct.dataclass\nclass Hyper:\n    learning_rate: float\n\n\n"
WHOLE = """\
class Whole(optim.OptimizerDef):
    def __init__(self, learning_rate):
        super().__init__(Hyper(learning_rate))

    def init_state(self, params):
        return optim.OptimizerState(jnp.zeros([], jnp.int32), ())

    def apply_gradient(self, hyper_params, params, state, grads):
        new = jax.tree_util.tree_map(lambda p, g: p - hyper_params.learning_rate * g, params, grads)
        return new, state.replace(step=state.step + 1)
"""
WRAPPER = """\
class Clipped(optim.OptimizerDef):
    def __init__(self, inner):
        super().__init__(inner.hyper_params)
        self.inner = inner

    def init_state(self, params):
        return self.inner.init_state(params)

    def apply_gradient(self, hyper_params, params, state, grads):
        grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -0.1, 0.1), grads)
        return self.inner.apply_gradient(hyper_params, params, state, grads)
"""
CENTERED = """\
class Centered(optim.Adam):
    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return super().apply_param_gradient(step, hyper_params, param, state, grad - grad.mean())
"""
STORED = """\
class Stored(optim.Adam):
    def state_dict(self, target, state):
        return super().state_dict(target, state)
"""
TABLE = {
    "The optimizers": [
        *(
            Row(f"`{name}(…)`", f"optim.{name}(0.1)")
            for name in words("GradientDescent Momentum Adam AdaBelief Adadelta Adafactor Adagrad LAMB LARS RMSProp")
        ),
        Row("`WeightNorm(definition)`", "optim.WeightNorm(optim.Adam(0.1))"),
        Row("`MultiOptimizer((traversal, definition), …)`", GROUPS, above=PAIR),
        Row("`optim.adam.Adam(…)`", "optim.adam.Adam(0.1)"),
        Row("`from flax.optim import *`", "RMSProp(0.1)", above="from flax.optim import *\n"),
        Row("arguments that are unpacked", "optim.Adam(**{'learning_rate': 0.1})"),
        Row("the class in a table", "{'adam': optim.Adam}['adam'](0.1)"),
        Row("the class as a default", "make()", above="def make(kind=optim.Adam):\n    return kind(0.1)\n"),
        Row("`functools.partial(optim.Adam, …)`", "functools.partial(optim.Adam, beta1=0.8)(0.1)"),
        Row("`getattr(optim, name)`", "getattr(optim, str('Adam'))(0.1)"),
        Row("`Type[optim.OptimizerDef]`", above="def make(kind: Type[optim.OptimizerDef]):\n    return kind(0.1)\n",
            definition="make(optim.Adam)"),
        Row("a comparison of classes", "optim.Adam(0.1) if KIND is optim.Adam else optim.LAMB(0.1)", above="KIND = optim.Adam\n"),
        Row("`DynamicScale()`", after="told.append(int(optim.DynamicScale(growth_interval=3).growth_interval))"),
    ],
    "Definitions": [
        Row("`definition.create(params)`"),
        Row("`definition.create(params, focus=traversal)`", above=PAIR,
            after="focused = definition.create(params, focus=KERNELS)\n"
                  "told.append(near(focused.apply_gradient(grads).target['b'].sum()))"),
        Row("`jax.jit(definition.create)`", after="told.append(int(jax.jit(definition.create)(params).state.step))"),
        Row("`definition.hyper_params.learning_rate`", after="told.append(near(definition.hyper_params.learning_rate))"),
        Row("`optimizer.optimizer_def.hyper_params` as a whole",
            after="told.append(sorted(vars(optimizer.optimizer_def.hyper_params)))"),
        bare("`definition.update_hyper_params(…)`", "told.append(definition.update_hyper_params(beta1=0.5).beta1)"),
        bare("`definition.init_state(params)`, `definition.apply_gradient(…)`",
             "told.append(int((lambda: definition.apply_gradient(definition.hyper_params, params, state, params))()[1].step))"),
        bare("`definition.init_param_state(param)`",
             "told.append(near(definition.init_param_state(params['b']).grad_ema.sum()))"),
        bare("`definition.apply_param_gradient(…)`",
             "kept = definition.init_param_state(params['b'])\n"
             "hyper = definition.hyper_params\n"
             "told.append(near(definition.apply_param_gradient(0, hyper, params['b'], kept, params['b'])[0].sum()))"),
        bare("`definition.state_dict(params, state)`", "told.append(sorted(definition.state_dict(params, state)))"),
        bare("`definition.restore_state(…)`",
             "told.append(int(definition.restore_state(params, state, definition.state_dict(params, state))[1].step))"),
        Row("`isinstance(definition, optim.OptimizerDef)`", after="told.append(isinstance(definition, optim.OptimizerDef))"),
        Row("`isinstance(definition, optim.Adam)`", after="told.append(isinstance(definition, optim.Adam))"),
        Row("`type(definition).__name__`", after="told.append(type(optimizer.optimizer_def).__name__)"),
    ],
    "Optimizers": [
        Row("`optimizer.target`"),
        Row("`optimizer.state.step`"),
        Row("`optimizer.optimizer_def`", after="told.append(int(optimizer.optimizer_def.create(params).state.step))"),
        Row("`optimizer.apply_gradient(grads)`"),
        Row("`apply_gradient(grads, learning_rate=rate)`",
            step="optimizer = optimizer.apply_gradient(grads, learning_rate=batch)"),
        Row("the same, a function of the step",
            step="optimizer = optimizer.apply_gradient(grads, learning_rate=0.1 / (1 + optimizer.state.step))"),
        Row("a step with a rate beside one without",
            step=f"{STEP}\noptimizer = optimizer.apply_gradient(grads, learning_rate=batch)"),
        Row("`apply_gradient(grads, weight_decay=…)`", step="optimizer = optimizer.apply_gradient(grads, weight_decay=batch)"),
        Row("`hyper_params=….replace(learning_rate=…)`",
            step="hyper = optimizer.optimizer_def.hyper_params\n"
                 "optimizer = optimizer.apply_gradient(grads, hyper_params=hyper.replace(learning_rate=batch))"),
        Row("`hyper_params=[…]` for groups", GROUPS, above=PAIR,
            step="first, second = optimizer.optimizer_def.hyper_params\n"
                 "hyper = [first.replace(learning_rate=batch), second]\n"
                 "optimizer = optimizer.apply_gradient(grads, hyper_params=hyper)"),
        Row("`hyper_params=[…]` with other fields", GROUPS, above=PAIR,
            step="first, second = optimizer.optimizer_def.hyper_params\n"
                 "hyper = [first.replace(beta1=0.5), second.replace(beta=0.5)]\n"
                 "optimizer = optimizer.apply_gradient(grads, hyper_params=hyper)"),
        Row("`apply_gradient(grads, **overrides)`", step="optimizer = optimizer.apply_gradient(grads, **{'beta1': 0.5})"),
        Row("`apply_gradient` as a value", step="step = optimizer.apply_gradient\noptimizer = step(grads)"),
        Row("`optimizer.compute_gradient(loss_fn)`",
            step="_, grads = optimizer.compute_gradient(lambda p: loss(p, batch))\n" + STEP),
        Row("the same in an expression", step="optimizer = optimizer.apply_gradient(optimizer.compute_gradient(loss)[1])"),
        Row("`optimizer.optimize(loss_fn)`", step="optimizer, value = optimizer.optimize(lambda p: loss(p, batch))"),
        Row("the same with a rate", step="optimizer, value = optimizer.optimize(loss, learning_rate=batch)"),
        Row("the same in an expression", step="optimizer = optimizer.optimize(loss)[0]"),
        Row("`optimizer.replace(target=…)`", step=f"{STEP}\noptimizer = optimizer.replace(target=params)"),
        Row("`optimizer.replace(state=…)`", step=f"{STEP}\noptimizer = optimizer.replace(state=definition.init_state(params))"),
        Row("`optimizer.replace(optimizer_def=…)`", step=f"optimizer = optimizer.replace(optimizer_def=optim.Adam(0.2))\n{STEP}"),
        Row("`optimizer.state_dict()`", after="told.append(near(optimizer.state_dict()['target']['b'].sum()))"),
        Row("`optimizer.restore_state(…)`", after="told.append(int(optimizer.restore_state(optimizer.state_dict()).state.step))"),
        Row("`serialization.to_bytes`, `from_bytes`",
            after="optimizer = serialization.from_bytes(optimizer, serialization.to_bytes(optimizer))"),
        Row("`jax_utils.replicate`, `unreplicate`", after="optimizer = jax_utils.unreplicate(jax_utils.replicate(optimizer))"),
        Row("`optimizer.replicate()`, `unreplicate()`", after="optimizer = optimizer.replicate().unreplicate()"),
        Row("`jax.jit` of a step", step="optimizer = jax.jit(lambda one, g: one.apply_gradient(g))(optimizer, grads)"),
        Row("`tree_map` over an optimizer", after="optimizer = jax.tree_util.tree_map(lambda x: x * 1, optimizer)"),
        Row("the number of its leaves", after="told.append(len(jax.tree_util.tree_leaves(optimizer)))"),
        Row("`copy.deepcopy(optimizer)`", after="optimizer = copy.deepcopy(optimizer)"),
        Row("`pickle.dumps(optimizer)`", after="told.append(len(pickle.dumps(optimizer)) > 0)"),
        Row("`isinstance(x, optim.Optimizer)`", after="told.append(isinstance(optimizer, optim.Optimizer))"),
        Row("`def f(optimizer: optim.Optimizer)`", above="def f(one: optim.Optimizer):\n    return one.target\n",
            after="told.append(f(optimizer)['b'].size)"),
        Row("`type(optimizer).__name__`", after="told.append(type(optimizer).__name__)"),
    ],
    "States": [
        Row("`state.param_states`, one moment", after=f"told.append(near({STATES}['b'].grad_ema.sum()))"),
        Row("the same of RMSProp", "optim.RMSProp(0.1)", after=f"told.append(near({STATES}['b'].v.sum()))"),
        Row("all moments, in any order", after=f"told.append(near(sum(x.sum() for x in jax.tree_util.tree_leaves({STATES}))))"),
        Row("moments that are set back",
            after=f"zero = jax.tree_util.tree_map(jnp.zeros_like, {STATES})\n"
                  "optimizer = optimizer.replace(state=optimizer.state.replace(param_states=zero))\n"
                  "optimizer = optimizer.apply_gradient(grads)"),
        Row("`state.replace(step=…)`",
            after="optimizer = optimizer.replace(state=optimizer.state.replace(step=7))\n"
                  "optimizer = optimizer.apply_gradient(grads)"),
        Row("`OptimizerState(step, param_states)`",
            after=f"optimizer = optimizer.replace(state=optim.OptimizerState(optimizer.state.step, {STATES}))"),
        Row("`_AdamParamState(…)`", above="from flax.optim.adam import _AdamParamState\n",
            after=f"told.append(isinstance({STATES}['b'], _AdamParamState))"),
    ],
    "Traversals": [
        Row("`ModelParamTraversal` in a `MultiOptimizer`", GROUPS, above=PAIR),
        Row("`traversal.iterate(params)`", GROUPS, above=PAIR, after="told.append(len(list(KERNELS.iterate(params))))"),
        Row("`traversal.update(function, params)`", GROUPS, above=PAIR,
            after="told.append(near(KERNELS.update(lambda x: x * 2, params)['w'].sum()))"),
    ],
    "Classes of your own": [
        Row("`init_param_state`, `apply_param_gradient`", "Sign(0.1)", above=HYPER + RULE),
        Row("the same, with a rate at each step", "Sign()", above=HYPER + RULE,
            step="optimizer = optimizer.apply_gradient(grads, learning_rate=batch)"),
        Row("`init_state`, `apply_gradient`", "Whole(0.1)", above=HYPER + WHOLE),
        Row("one that asks `super()` of an optimizer", "Centered(0.1)", above=CENTERED),
        Row("one that wraps another definition", "Clipped(optim.Adam(0.1))", above=WRAPPER),
        Row("one with a `state_dict` of its own", "Stored(0.1)", above=STORED),
    ],
}  # fmt: skip


def became(row: Row) -> str:
    """What becomes of a row's program: which form, or why it is left."""
    files = {"train.py": row.program, "common.py": COMMON}
    found = verdict(files)
    assert found.kind in ("equal", "refused"), f"{row.use}: {found.kind}: {found.why}"
    results = migrate([Source(path, text.encode()) for path, text in files.items()])
    sites = [site for result in results for site in result.sites]
    if found.kind == "equal":
        return "interface" if any(site.code == "FO706" for site in sites) else "optax"
    left, *_ = (
        site
        for site in sites
        if site.status == "unresolved" and site.code not in ("FO901", "FO911")
    )
    return f"left: {left.message} ([{left.code}](../rules/{left.code}.md))"


def page() -> str:
    """The page as the tool makes it now."""
    sections = (
        f"\n## {title}\n\n| use | becomes |\n|---|---|\n" + "".join(map(line, rows))
        for title, rows in TABLE.items()
    )
    return HEAD + "".join(sections)


def line(row: Row) -> str:
    return f"| {row.use} | {became(row)} |\n"


@pytest.mark.thorough
@pytest.mark.usefixtures("legacy_wheel")
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("section", TABLE)
def test_every_section_is_up_to_date(section: str) -> None:
    """Its first and its last row; all of them are thorough."""
    first, *_, last = TABLE[section]
    assert line(first) in PAGE.read_text()
    assert line(last) in PAGE.read_text()


if __name__ == "__main__":
    sys.stdout.write(page()) if "--print" in sys.argv else PAGE.write_text(page())
