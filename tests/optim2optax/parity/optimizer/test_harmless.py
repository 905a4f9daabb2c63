"""What is evaluated only computes: an expression that could act is named, and nothing of it is run."""

import builtins
from pathlib import Path

import pytest

from codemods import Source, migrate
from optim2optax.parity.cases import optimizer_case
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.optimizer.harmless import possible_effect

PROGRAM = """\
import math
import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


def train(params, grads):
    optimizer = optim.Adam({}).create(params)
    return optimizer.apply_gradient(grads)
"""


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("float(open('trace', 'w').write('1'))", "open('trace', 'w').write"),
        ("np.save('trace', [1.0])", "np.save"),
        ("float(np.ones(3).tofile('trace') or 1)", "np.ones(3).tofile"),
        ("(np if 1 else jnp).save('trace', 1)", "(np if 1 else jnp).save"),
        ("float(len(list(map(open, ['trace'], ['w']))))", "open"),
        ("(lambda f: 1.0 if f('trace', 'w') else 0.0)(open)", "open"),
        ("jax.tree_util.tree_map(np.savetxt, 'trace', [1.0])", "np.savetxt"),
        ("getattr(np, 'save')('trace', 1)", "getattr"),
        ("float(eval(\"open('trace', 'w').write('1')\"))", "eval"),
        ("np.lib.npyio.os.system('touch trace')", "np.lib.npyio.os.system"),
        ("().__class__.__base__.__subclasses__()", "().__class__.__base__.__subclasses__"),
        ('float(f\'{open("trace", "w").write("1")}\')', "open('trace', 'w').write"),
    ],
)  # fmt: skip
def test_what_could_act_is_named_and_not_run(
    project: Path, argument: str, named: str
) -> None:
    found = migrate([Source("train.py", PROGRAM.format(argument).encode())])[0]
    (emitted,) = found.optimizers
    case = optimizer_case("case", emitted, 3, 0)
    assert case.outcome is Verdict.COULD_NOT_RUN
    assert f"`{named}` is not evaluated" in case.reason
    assert "a scenario" in case.reason
    assert [*project.iterdir()] == []


@pytest.mark.parametrize(
    "text",
    [
        "optim.Adam(math.pi / max(3, _0), beta2=float('0.9'))",
        "optim.Adam(learning_rate=jnp.float32(3) ** np.sqrt(2))",
        "optim.ModelParamTraversal(lambda path, _: 'bias' in path or path.split('/')[-1].endswith('scale'))",
        "optax.chain(optax.clip(1.0), optax.transforms.selective_transform(optax.sgd(SCHEDULE)))",
        "optax.masked(optax.add_decayed_weights(0.1), lambda tree: jax.tree.map(lambda leaf: leaf.ndim > 1, tree))",
    ],
)
def test_what_computes_is_evaluated(text: str) -> None:
    assert possible_effect(text) is None


def test_a_name_that_hides_a_function_of_python_is_not_trusted() -> None:
    assert possible_effect("(lambda open: open, open('trace', 'w'))") == "open"


def test_the_last_result_of_an_interactive_python_is_no_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builtins, "_", 0.5, raising=False)
    text = 'optim.ModelParamTraversal(lambda path, _: "kernel" in path)'
    assert possible_effect(text) is None
