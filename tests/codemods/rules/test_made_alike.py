"""All that one place may make is treated alike: the learning rate that a step sets reaches all of it, or none of it moves."""

from textwrap import dedent

import pytest

from codemods import FileResult
from tests.codemods.analysis.test_out_of_view import COMMON
from tests.codemods.programs import result_of
from tests.generated.verdicts import verdict

UNSEEN = """
from functools import partial

import elsewhere
import jax
from elsewhere import DEFAULT, OWN, Own, make_optimizer, restore
from flax import jax_utils, optim


def make(params, name):
    {made}


def step(optimizer, grads, rate):
    return optimizer.apply_gradient(grads{given})


def train(params, grads, name):
    optimizer = make(params, name)
    return step(optimizer, grads, 0.01)
"""
RATE = ", learning_rate=rate"


def unseen(made: str, given: str) -> FileResult:
    body = "\n    ".join(dedent(made).strip("\n").splitlines())
    return result_of(UNSEEN.format(made=body, given=given))


KNOWN = {
    "the same optimizer that a package restores": """
        optimizer = optim.Adam(0.1).create(params)
        return restore(name, optimizer) if name else optimizer
    """,
    "what comes from a package that has no optimizers": """
        optimizer = jax_utils.replicate(optim.Adam(0.1).create(params))
        return jax.device_put(optimizer)
    """,
    "a definition that is a parameter": """
        def create(definition=None):
            return (definition or optim.Adam(0.1)).create(params)
        return create()
    """,
}


@pytest.mark.parametrize("made", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("given", ["", RATE])
def test_what_is_known_migrates(made: str, given: str) -> None:
    result = unseen(made, given)
    assert {site.status for site in result.sites} == {"rewritten"}
    assert "optim." not in result.after.decode().replace("optax.", "")


BESIDE = {
    "a class by a branch": """
        if name == "own":
            definition = Own(0.1)
        elif name == "other":
            definition = optim.Adam(0.1)
        else:
            definition = optim.Momentum(0.1)
        return definition.create(params)
    """,
    "a class in a variable": """
        definition_class = Own if name else optim.Momentum
        return definition_class(0.1).create(params)
    """,
    "a definition that is imported": """
        definition = DEFAULT if name else optim.Momentum(0.1)
        return definition.create(params)
    """,
    "a partial application in a table": """
        table = {"momentum": partial(optim.Momentum, beta=0.5), "own": partial(Own, beta=0.3)}
        return table[name](0.1).create(params)
    """,
    "an optimizer": """
        return make_optimizer(params) if name else optim.Adam(0.1).create(params)
    """,
}


@pytest.mark.parametrize("made", BESIDE.values(), ids=BESIDE)
def test_beside_what_is_not_in_view_no_rate_is_set(made: str) -> None:
    """Whether it has a learning rate in its state is not known: a constant rate could be lost there without a word."""
    result = unseen(made, RATE)
    assert not result.changed
    [step] = [site for site in result.sites if site.code == "FO910"]
    line = result.before.decode().split("\n")[step.line - 1]
    assert line == "    return optimizer.apply_gradient(grads, learning_rate=rate)"
    assert "not all in view" in step.message
    # without one, all else migrates: it may be a transformation by now, and an exception tells if not
    assert {site.status for site in unseen(made, "").sites} == {"rewritten"}


OF_CLASS = """
from flax import optim

from common import gradients


class Trainer:
    def __init_subclass__(cls, definition=None):
        cls.definition = definition


class Small(Trainer, definition=optim.Adam(0.1)):
    pass


def run(params, batches):
    optimizer = Small.definition.create(params)
    for batch in batches:
        optimizer = optimizer.apply_gradient(gradients(optimizer.target, batch){given})
    return [optimizer.target], []
"""


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("given", ["", ", learning_rate=0.1 * batch"])
def test_a_definition_that_a_class_is_made_with_is_told(given: str) -> None:
    """Where it comes out again is not followed: no rate is set there, and without one it is the transformation."""
    files = {"train.py": OF_CLASS.replace("{given}", given), "common.py": COMMON}
    found = verdict(files)
    assert (found.kind, found.said) == ("told" if given else "equal", True)


OWN = (
    COMMON
    + """

from flax import struct, optim


@struct.dataclass
class HyperParams:
    learning_rate: float


class Sign(optim.OptimizerDef):
    def __init__(self, learning_rate=None):
        super().__init__(HyperParams(learning_rate))

    def init_param_state(self, param):
        return ()

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return param - hyper_params.learning_rate * jnp.sign(grad), ()


class Soft(Sign):
    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return param - hyper_params.learning_rate * jnp.tanh(grad), ()
"""
)
RUN = """
{more}

@jax.jit
def step(optimizer, batch, rate):
    return optimizer.apply_gradient(gradients(optimizer.target, batch){given})


def run(params, batches):
    trained, told = [], []
    for name in {names}:
        optimizer = {made}.create(params)
        for number, batch in enumerate(batches):
            optimizer = step(optimizer, batch, 0.1 / (1 + number))
        trained.append(optimizer.target)
        {tell}
    return trained, told
"""


def own(
    more: str,
    made: str = "make(name)",
    given: str = RATE,
    names: str = '("adam", "sign")',
    tell: str = "pass",
) -> dict[str, str]:
    """A program with a definition of its own and others, in one file and in two."""
    parts = {"more": dedent(more).lstrip("\n"), "made": made, "given": given}
    return {"train.py": OWN + RUN.format(names=names, tell=tell, **parts)}


GROUPS = """
TABLE = {"adam": optim.Adam, "sign": Sign}
KERNELS = optim.ModelParamTraversal(lambda path, _: path.endswith("w"))
OTHERS = optim.ModelParamTraversal(lambda path, _: not path.endswith("w"))


def make(name):
    kernels, others = (KERNELS, TABLE[name](0.3)), (OTHERS, optim.Momentum(0.2))
    return optim.MultiOptimizer(kernels, others)
"""
TABLES = {
    "a table": own('TABLE = {"adam": optim.Adam, "sign": Sign}', "TABLE[name](learning_rate=0.3)"),
    "a table without rates": own('TABLE = {"adam": optim.Adam, "sign": Sign}', "TABLE[name]()"),
    "a table of partial applications": own(
        """
        import functools
        PARTS = (functools.partial(optim.Momentum, beta=0.5), functools.partial(Sign))
        """,
        "PARTS[name](learning_rate=0.2)",
        names="(0, 1)",
    ),
    "an expression": own("", '(Sign(0.3) if name == "sign" else optim.Adagrad(0.3))'),
    "a rate that is read": own(
        'TABLE = {"adam": optim.Adam, "sign": Sign}',
        "TABLE[name](0.3)",
        given="",
        tell="told.append(float(optimizer.optimizer_def.hyper_params.learning_rate))",
    ),
    **{
        f"a check for definitions of {made}": own(
            """
            def checked(made):
                return made if isinstance(made, optim.OptimizerDef) else None
            """,
            f"checked({made}(0.3))",
            given="",
        )
        for made in ("Sign", "optim.Adam")
    },
    "a group": own(GROUPS, names='("sign",)'),
    "groups": own(GROUPS),
}  # fmt: skip


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("files", TABLES.values(), ids=TABLES)
def test_an_own_class_and_others_train_as_before(files: dict[str, str]) -> None:
    found = verdict(files)
    assert found.kind == "equal", found
    assert "flax.optim" not in found.after["train.py"]
    assert "optim." not in found.after["train.py"].replace("optax.", "")
