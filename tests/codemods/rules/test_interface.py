"""Programs that work with definitions themselves: these keep their interface, and the programs train as before."""

from textwrap import dedent

import pytest

from codemods import Source, migrate
from tests.codemods.analysis.test_out_of_view import COMMON
from tests.generated.verdicts import verdict

pytestmark = pytest.mark.usefixtures("legacy_wheel")

HEAD = """\
import jax
import jax.numpy as jnp
from flax import optim, struct
from flax.optim import OptimizerDef, OptimizerState

from common import gradients, loss
"""
WRAPPER = """

class Lookahead(OptimizerDef):
    def __init__(self, inner, every=2):
        super().__init__(inner.hyper_params)
        self.inner, self.every = inner, every

    def update_hyper_params(self, **overrides):
        return self.inner.update_hyper_params(**overrides)

    def init_state(self, params):
        return OptimizerState(jnp.zeros([], jnp.int32), (self.inner.init_state(params), params))

    def apply_gradient(self, hyper_params, params, state, grads):
        inner, slow = state.param_states
        params, inner = self.inner.apply_gradient(hyper_params, params, inner, grads)
        step = state.step + 1
        slow = jax.tree_util.tree_map(lambda s, p: jnp.where(step % self.every == 0, (s + p) / 2, s), slow, params)
        return params, OptimizerState(step, (inner, slow))
"""
TRAIN = """

def run(params, batches):
    optimizer = {made}.create(params)
    for number, batch in enumerate(batches):
        optimizer = optimizer.apply_gradient(gradients(optimizer.target, batch){given})
    return [optimizer.target], {told}
"""


def one(made: str, told: str = "[]", given: str = "", more: str = "") -> dict[str, str]:
    return {
        "train.py": HEAD
        + dedent(more).lstrip("\n")
        + TRAIN.format(made=made, told=told, given=given)
    }


STEPPED = """

def run(params, batches):
    definition = {made}
    state = definition.init_state(params)
    for batch in batches:
        {step}
    return [params], {told}
"""


def bare(
    step: str, told: str = "[int(state.step)]", made: str = "optim.Adam(0.1)"
) -> dict[str, str]:
    return {"train.py": HEAD + STEPPED.format(made=made, step=step, told=told)}


RATE = ", learning_rate=0.1 / (1 + number)"
CALL = "definition.apply_gradient(definition.hyper_params, params, state, gradients(params, batch))"
PROGRAMS = {
    "a wrapper": one("Lookahead(optim.Adam(0.1))", more=WRAPPER),
    "a wrapper, with rates": one("Lookahead(optim.Momentum())", given=RATE, more=WRAPPER),
    "a wrapper of a wrapper, and its states": one(
        "Lookahead(Lookahead(optim.RMSProp(0.1, centered=True)), 3)",
        told="[int(optimizer.state.param_states[0].param_states[0].step)]",
        more=WRAPPER,
    ),
    "another hyperparameter": one("optim.Adam(0.1)", given=", beta2=0.9 + 0.01 * number"),
    "several hyperparameters": one("optim.Momentum()", given=", learning_rate=0.1, beta=0.5 + 0.1 * number"),
    "unpacked hyperparameters": one("optim.LAMB(0.1)", given=", **({'eps': 0.1} if number else {})"),
    "hyperparameters by their names": one(
        "optim.LAMB(0.1)",
        told="[getattr(optimizer.optimizer_def.hyper_params, name) for name in ('learning_rate', 'beta2')]",
    ),
    "the hyperparameters of groups": one(
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'w' in path), optim.Adam(0.1)))",
        given=", hyper_params=[one.replace(beta1=0.5) for one in optimizer.optimizer_def.hyper_params]",
    ),
    "hyperparameters of a class": one(
        "Clipped(0.1, limit=0.2)",
        told="[optimizer.optimizer_def.hyper_params.limit]",
        more="""
        from flax.optim.momentum import _MomentumHyperParams


        @struct.dataclass
        class Limited(_MomentumHyperParams):
            limit: float = 1.0


        class Clipped(optim.Momentum):
            def __init__(self, learning_rate, limit):
                super().__init__(learning_rate)
                self.hyper_params = Limited(*vars(self.hyper_params).values(), limit=limit)

            def apply_param_gradient(self, step, hyper_params, param, state, grad):
                limited = jnp.clip(grad, -hyper_params.limit, hyper_params.limit)
                return super().apply_param_gradient(step, hyper_params, param, state, limited)
        """,
    ),
    "by its name, for its states": one(
        "make('RMSProp')",
        told="[float(jnp.sum(optimizer.state.param_states['b'].v)) > 0]",
        more="""
        def make(name):
            return getattr(optim, name)(0.1)
        """,
    ),
    "of a table, told apart": one(
        "TABLE['adam'](0.1)",
        told="[type(optimizer.optimizer_def).__name__, isinstance(optimizer.optimizer_def, optim.Adam)]",
        more="TABLE = {'adam': optim.Adam, 'sgd': optim.GradientDescent}\n",
    ),
    "another definition": one(
        "optim.Adam(0.1)",
        told="[optimizer.replace(optimizer_def=optim.Adam(0.2)).optimizer_def.hyper_params.learning_rate]",
    ),
    "a bare step, among others": bare(f"(params, state), batch = {CALL}, 0"),
    "a bare state, stored": bare(
        f"params, state = {CALL}; stored = definition.state_dict(params, state)",
        told="[sorted(stored), int(definition.restore_state(params, state, stored)[1].step)]",
    ),
    "in several files": {
        "kit/__init__.py": "from flax.optim import Adam, Optimizer, OptimizerState\n\nfrom .ahead import Lookahead\n",
        "kit/ahead.py": HEAD.replace("from common import gradients, loss\n", "")
        + WRAPPER,
        "kit/moments.py": (
            "from flax.optim.adam import _AdamParamState\n\n\n"
            "def zero(state):\n    return _AdamParamState(state.grad_ema * 0, state.grad_sq_ema)\n\n\n"
            "def is_moment(state):\n    return isinstance(state, _AdamParamState)\n"
        ),
        "train.py": """\
import jax
from flax import optim

from common import gradients
from kit import Lookahead
from kit.moments import is_moment, zero


def reset(state):
    inner, slow = state.param_states
    moments = jax.tree_util.tree_map(zero, inner.param_states, is_leaf=is_moment)
    return state.replace(param_states=(inner.replace(param_states=moments), slow))


def run(params, batches):
    optimizer = Lookahead(optim.Adam(0.1)).create(params)
    for batch in batches:
        optimizer = optimizer.apply_gradient(gradients(optimizer.target, batch))
        optimizer = optimizer.replace(state=reset(optimizer.state))
    return [optimizer.target], [int(optimizer.state.step)]
""",
    },
    "variables that are called as helpers are": one(
        "optim.Adam(0.1)",
        given=", beta1=0.5",
        told="[restored, apply_gradients_with, state.step]",
        more="""
        restored = apply_gradients_with = 3
        definition = optim.Adam(0.3)
        state = definition.init_state({"w": jnp.ones(2)})
        stored = definition.state_dict({"w": jnp.ones(2)}, state)
        _, state = definition.restore_state({"w": jnp.ones(2)}, state, stored)
        """,
    ),
    "struct of the standard library": {
        "train.py": one(
            "optim.Adam(0.1)",
            given=", beta1=0.5",
            told="[calcsize(struct), calcsize(jax_numpy)]",
            more="""
            def calcsize(module):
                return module.calcsize("i")

            jax_numpy = struct
            """,
        )["train.py"].replace("import optim, struct", "import optim").replace("import jax.numpy as jnp", "import struct\nimport numpy as jnp")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_trains_as_before(name: str) -> None:
    found = verdict({**PROGRAMS[name], "common.py": COMMON})
    assert found.kind == "equal", f"{found.kind}: {found.why}"
    assert not found.said
    assert "OptimizerDef:" in "".join(found.after.values())


def test_several_files_share_one_class() -> None:
    after = verdict({**PROGRAMS["in several files"], "common.py": COMMON}).after
    having = [path for path, text in after.items() if "class AdamParamState:" in text]
    assert len(having) == 1
    assert after["kit/__init__.py"].startswith("from ")
    assert "TrainState as Optimizer" in after["kit/__init__.py"]


SCRIPT = (
    HEAD
    + """
import sys
sys.argv.append("NAME")


def run(params, batches):
    optimizer = optim.Adam(0.1).create(params)
    for batch in batches:
        optimizer = optimizer.apply_gradient(gradients(optimizer.target, batch), beta1=0.5)
    return [optimizer.target], [0]
"""
)


def test_a_new_module_has_the_classes_of_several_files() -> None:
    loud = {name: SCRIPT.replace("NAME", name) for name in ("one.py", "two.py")}
    quiet = {name: SCRIPT.replace('sys.argv.append("NAME")\n', "") for name in loud}
    both = {"train.py": "import one\nimport two\nrun = one.run\n", "common.py": COMMON}
    for scripts in (loud, quiet):
        after = verdict({**both, **scripts}).after
        for name in scripts:
            assert "from optax_compat import Adam" in after[name]
            assert "class Adam" not in after[name]
        assert "class Adam(OptimizerDef)" in after["optax_compat.py"]


STAYING = {
    "a class of one's own takes the name of what is imported": one(
        "OptimizerDef(0.1)", more="class OptimizerDef(optim.Momentum):\n    pass\n"
    ),
    "what it is of has another method of the name": one(
        "optim.Adam(0.1)",
        told="[pair.pop().apply_gradient is not None for pair in ([optimizer, optimizer.optimizer_def],)]",
    ),
}


@pytest.mark.parametrize("name", STAYING)
def test_it_stays(name: str) -> None:
    found = verdict({**STAYING[name], "common.py": COMMON})
    assert found.kind == "refused", f"{found.kind}: {found.why}"


def test_the_reason_is_told() -> None:
    texts = PROGRAMS["another hyperparameter"].items()
    [result] = migrate([Source(path, text.encode()) for path, text in texts])
    assert (
        "Its definition keeps the interface that it had: This step overrides `beta2` (train.py:12)."
        in {site.note for site in result.sites}
    )
