"""Whole programs, before and after side by side, in what an optimizer was beside a holder of parameters."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest

from codemods import Options
from codemods.model import Style
from codemods.optimizers import optimizers
from optim2optax.legacy import legacy_flax, replaced
from tests.codemods.optimizers.published import published
from tests.codemods.programs import OPTAX_ALONE, program, result_of
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """
    import copy
    import pickle

    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import optim

    def gradients(params):
        return jax.tree_util.tree_map(lambda x: 0.1 * x + 1.0, params)

    def step(optimizer):
        return optimizer.apply_gradient(gradients(optimizer.target))

    {functions}

    def run():
        params = {{"w": jnp.arange(3.0) + 1.0, "b": jnp.ones(2)}}
        definition = optim.Adam(0.1)
        optimizer = definition.create(params)
        {body}
    """


@pytest.fixture(
    params=[False, pytest.param(True, marks=pytest.mark.thorough)],
    ids=["32 bits", "64 bits"],
)
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    with jax.enable_x64(request.param):
        yield request.param


def text_of(body: str, functions: str = "") -> str:
    above = functions.strip("\n").replace("\n", "\n    ")
    within = body.strip("\n").replace("\n", "\n        ")
    return PROGRAM.format(functions=above, body=within)


def outcome(code: str) -> Any:
    module = ModuleType("program")
    with replaced(sys.modules, {module.__name__: module}):
        exec(compile(code, "train.py", "exec"), vars(module))
        return module.run()


def assert_alike(text: str, options: Options | None = None) -> str:
    """The new code of a program, which gives what the old one does."""
    result = result_of(text, options)
    assert {site.status for site in result.sites} <= {"rewritten"}, result.sites
    with legacy_flax():
        before = outcome(program(text))
    after = outcome(result.after.decode())
    structures = [str(jax.tree_util.tree_structure(tree)) for tree in (before, after)]
    assert structures[0] == structures[1]
    for old, new in zip(*map(jax.tree_util.tree_leaves, (before, after)), strict=True):
        if isinstance(old, str):
            assert old == new
        else:
            np.testing.assert_allclose(np.asarray(new), np.asarray(old), rtol=1e-5)
    return result.after.decode()


def assert_left(text: str, code: str) -> None:
    """Nothing changes, for that reason; and the program did run."""
    result = result_of(text, OPTAX_ALONE)
    assert result.after.decode() == program(text)
    assert code in {site.code for site in result.sites}
    with legacy_flax():
        outcome(program(text))


RATES_OF_STEPS = {
    "that of the constructor, in a loop of JAX": """
def both(optimizer, rate):
    return step(optimizer.apply_gradient(gradients(optimizer.target), learning_rate=rate)), rate
return jax.lax.scan(both, optimizer, jnp.array([0.1, 0.3, 0.2]))[0].target
""",
    "read, where a step sets another": """
rate = optimizer.optimizer_def.hyper_params.learning_rate
return step(optimizer.apply_gradient(gradients(params), learning_rate=rate / 2)).target, rate
""",
    "one that may be given, by a function of the program": """
def advance(optimizer, **overrides):
    return optimizer.apply_gradient(gradients(optimizer.target), **overrides)
return advance(advance(advance(step(optimizer)), learning_rate=0.03)).target
""",
    "one that has to be given, in a dict": """
def advance(optimizer, rate):
    overrides = dict(learning_rate=rate)
    return optimizer.apply_gradient(grads=gradients(optimizer.target), **overrides)
other = optim.Momentum(beta=0.5).create(params)
return advance(advance(other, 0.03), 0.01).target, step(optimizer).target
""",
    "one for all groups": """
first = optim.ModelParamTraversal(lambda path, _: "w" in path), optim.Adam(0.1)
second = optim.ModelParamTraversal(lambda path, _: "w" not in path), optim.Momentum(0.2, beta=0.5)
optimizer = optim.MultiOptimizer(first, second).create(params)
for rate in (0.1, 0.2):
    optimizer = optimizer.apply_gradient(
        gradients(params), hyper_params=[one.replace(learning_rate=rate) for one in optimizer.optimizer_def.hyper_params]
    )
return optimizer.target, step(definition.create(params)).target
""",
}


@pytest.mark.parametrize("style", ["train-state", "functional"])
@pytest.mark.parametrize("body", RATES_OF_STEPS.values(), ids=RATES_OF_STEPS)
def test_the_learning_rates_are_those_of_before(body: str, style: Style) -> None:
    assert_alike(text_of(body), Options(style=style))


WRAPPERS = ("MultiOptimizer", "WeightNorm")


@pytest.mark.parametrize("name", [one for one in published() if one not in WRAPPERS])
def test_what_is_read_of_a_definition_is_what_it_was_made_with(name: str) -> None:
    legacy = optimizers()[name]
    read = ", ".join(
        f"made.optimizer_def.hyper_params.{one.name}"
        for one in legacy.parameters
        if one.default not in (None, "None") and "dtype" not in one.name
    )
    made = f"made = optim.{name}(0.5).create(params)"
    after = assert_alike(text_of(f"{made}\nreturn {read}"))
    assert "hyper_params" not in after


PICKLES = {
    "and steps": """
optimizer = step(optimizer)
stored = pickle.dumps(optimizer)
optimizer = pickle.loads(stored)
return step(step(optimizer)).target
""",
    "and is read": """
for epoch in range(3):
    if epoch == 2:
        optimizer = pickle.loads(stored)
        break
    optimizer = step(optimizer)
    stored = pickle.dumps(optimizer)
return optimizer.target, optimizer.state.step
""",
    "after it was copied for each device": """
state = jax_utils.replicate(step(optimizer))
state = jax_utils.unreplicate(state)
stored = pickle.dumps(state)
state = pickle.loads(stored)
return step(state).target
""",
    "in a dict": """
stored = pickle.dumps({"optimizer": step(optimizer), "epoch": 3})
return pickle.loads(stored)["epoch"]
""",
    "in a dict, out of which it is taken": """
optimizer = step(optimizer)
found = pickle.loads(pickle.dumps({"optimizer": optimizer, "epoch": 3}))
optimizer, epoch = found["optimizer"], found["epoch"]
return step(optimizer).target, epoch
""",
    "in a field": """
class Agent:
    def __init__(self, optimizer):
        self.optimizer = optimizer
    def save(self):
        return pickle.dumps((self.optimizer, 3))
    def load(self, stored):
        self.optimizer = pickle.loads(stored)[0]
agent = Agent(optimizer)
agent.load(Agent(step(optimizer)).save())
return step(agent.optimizer).target
""",
}


@pytest.mark.parametrize("body", PICKLES.values(), ids=PICKLES)
def test_an_optimizer_is_pickled_without_its_functions(body: str) -> None:
    text = text_of(body).replace("import optim", "import jax_utils, optim", 1)
    after = assert_alike(text)
    assert ".replace(apply_fn=None, tx=None)" in after


UNLIKE_PICKLES = {
    "with something else": """
class Agent:
    def __init__(self, optimizer):
        self.optimizer = optimizer
    def save(self, path):
        with open(path, "wb") as file:
            pickle.dump(self, file)  # told
return Agent(optimizer).optimizer.target
""",
    "where it is made": "return len(pickle.dumps(definition.create(params))) > 0  # told",
    "into the name of another run's": "optimizer = pickle.loads(stored)  # told\nreturn step(optimizer).target",
    "into what is unpacked": """
stored = pickle.dumps((optimizer, 3))
optimizer, epoch = pickle.loads(stored)  # told
return step(optimizer).target, epoch
""",
    "into a function that gives it": """
def load(stored):
    return pickle.loads(stored)  # told
if params is None:
    optimizer = load(pickle.dumps(optimizer))
return step(optimizer).target
""",
}


@pytest.mark.parametrize("body", UNLIKE_PICKLES.values(), ids=UNLIKE_PICKLES)
def test_other_pickles_are_told(body: str) -> None:
    text = text_of(body)
    lines = program(text).splitlines()
    (hint,) = result_of(text).hints
    assert lines[hint.line - 1].endswith("# told")


UNPACKED = {
    "with what a function adds": """
import json
overrides = {"learning_rate": 0.03}
json.loads('{"weight_decay": 0.1}', object_hook=overrides.update)
return step(optimizer).apply_gradient(gradients(params), **overrides).target
""",
    "or what a parameter may be": """
def advance(optimizer, overrides):
    return optimizer.apply_gradient(gradients(optimizer.target), **overrides)
advance(optimizer, {"learning_rate": 0.03})
return advance(step(optimizer), [dict(zip(['weight_decay'], [0.1]))][0]).target
""",
}


@pytest.mark.parametrize("body", UNPACKED.values(), ids=UNPACKED)
def test_overrides_that_may_be_others_than_a_rate_are_left(body: str) -> None:
    assert_left(text_of(body), "FO904")


READ = {
    "of each layer": "return [(layer, one.{field}) for layer, one in step(optimizer).state.param_states.items()]",
    "of one layer, under names": "state = step(optimizer).state\nreturn state.param_states['w'].{field}, state.step.dtype.name",
    "all": "return jax.tree_util.tree_leaves(step(optimizer).state)",
    "beside another tree": """
state = step(optimizer).state
return jax.tree_util.tree_map(lambda _, s: s, params, state.param_states)['w'].{field}
""",
}
FIELDS = {"Adam": "grad_ema", "LAMB": "grad_sq_ema", "AdaBelief": "grad_sq_ema"}
FIELDS |= {"Momentum": "momentum", "Adagrad": "G", "Adadelta": "acc_delta"}
READ_OF_EACH = {
    f"{name} of {optimizer}": (body, optimizer)
    for name, body in READ.items()
    for optimizer in FIELDS
}
READ_USUALLY = (
    *(f"{name} of Adam" for name in READ),
    *(f"of each layer of {optimizer}" for optimizer in FIELDS if optimizer != "Adam"),
)


@pytest.mark.parametrize(("body", "optimizer"), thinned(READ_OF_EACH, *READ_USUALLY))
def test_a_state_is_read_as_it_was(body: str, optimizer: str) -> None:
    text = text_of(body.format(field=FIELDS[optimizer]))
    assert_alike(text.replace("optim.Adam(0.1)", f"optim.{optimizer}(0.1)"))


@pytest.mark.parametrize("optimizer", ["Adam", "Momentum"])
def test_parameters_may_be_called_as_what_optax_keeps(optimizer: str) -> None:
    text = text_of(
        "return jax.tree_util.tree_leaves(step(optimizer).state.param_states)"
    )
    text = text.replace('"w"', '"mu"').replace('"b"', '"trace"')
    assert_alike(text.replace("optim.Adam(0.1)", f"optim.{optimizer}(0.1)"))


KEPT = {
    "copied leaf by leaf": "return jax.tree_util.tree_map(lambda x: x.copy(), optimizer).target",
    "measured leaf by leaf": "jax.tree_util.tree_map(lambda x: x.shape, optimizer)\nreturn optimizer.target",
    "a dimension for each leaf": "return jax.tree_util.tree_map(lambda x: x[None], optimizer).target",
    "leaves through a function made of another": """
import functools
spread = functools.partial(lambda count, x: jnp.broadcast_to(x, (count,) + x.shape), 2)
many = jax.tree_util.tree_map(spread, optimizer)
return jax.vmap(step)(many).target
""",
    "is an array asked of each leaf": """
checked = jax.tree_util.tree_map(lambda x: x if isinstance(x, jnp.ndarray) else x / 0, optimizer)
return checked.target
""",
    "leaves kept by an object": """
class Checkpoint:
    def __init__(self, leaves, **others):
        self.leaves, self.others = leaves, others
def save(tree):
    return Checkpoint(leaves=jax.device_get([leaf + 0 for leaf in jax.tree_util.tree_leaves(tree)]), best=1.0)
def restore(kept, tree):
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(tree), kept.leaves)
return step(restore(save(step(optimizer)), optimizer)).target
""",
    "are all leaves the same": """
def same(one, other):
    equal = jax.tree_util.tree_map(np.array_equal, one, other)
    return bool(jax.tree_util.tree_reduce(lambda x, y: x and y, equal))
return same(optimizer, optimizer), same(optimizer, step(optimizer))
""",
    "the largest of all leaves": """
return jax.tree_util.tree_reduce(jnp.maximum, jax.tree_util.tree_map(lambda x: jnp.abs(x).max(), step(optimizer)))
""",
    "a creation within a function that is mapped": """
many = jax.vmap(lambda scale: definition.create({"w": scale * jnp.ones(3)}))(jnp.arange(2.0))
many = jax.tree_util.tree_map(lambda x: x[::-1], many)
return jax.vmap(step)(many).target
""",
    "a type of the step": "return optimizer.state.step.dtype.name, step(optimizer).state.step.dtype.name",
    "a function by the name of a part": "for _ in range(2):\n    optimizer = step(optimizer)\nreturn optimizer.state.step",
    "a field called state": """
class Trainer:
    def __init__(self, state):
        self.state = state
trainer = Trainer(step(optimizer))
return trainer.state.state.step, trainer.state.target
""",
    "a deep copy": "return step(copy.deepcopy(step(optimizer))).target",
    "a new state by a parameter that has to be named": """
def reset(optimizer, *, states=None, fresh=True):
    if fresh:
        states = jax.tree_util.tree_map(jnp.zeros_like, optimizer.state.param_states)
    return optimizer.replace(state=optimizer.state.replace(param_states=states))
return reset(step(optimizer)).target
""",
    "some new moments, by name": """
def damp(optimizer):
    states = dict(optimizer.state.param_states)
    states["w"] = states["w"].replace(grad_ema=0.1 * states["w"].grad_ema)
    return optimizer.replace(state=optimizer.state.replace(param_states=states))
return step(damp(step(optimizer))).target
""",
    **{
        f"a state dict that is pickled, {way}": f"""
from flax import serialization
stored = pickle.dumps({stored})
return step(serialization.from_state_dict(optimizer, pickle.loads(stored))).target
"""
        for way, stored in {
            "by a function": "jax.device_get(serialization.to_state_dict(step(optimizer)))",
            "by its method": "step(optimizer).state_dict()",
        }.items()
    },
}
LEFT = {
    "the name of its type": ("return type(optimizer.optimizer_def).__name__", "FO924"),
    "a method of what made it, by its name": ("return getattr(definition, 'create')(params).target", "FO916"),
    "an attribute by a text": ("return '{0.state.step}'.format(optimizer)", "FO924"),
    "an attribute by a text with names": ("return '{o.target[w].size:d}'.format_map({'o': optimizer})", "FO924"),
    "counted": ("return len(jax.tree_util.tree_leaves(optimizer))", "FO924"),
    "measured": ("return sum(x.size for x in jax.tree_util.tree_leaves(optimizer))", "FO924"),
    "measured by a loop":
        ("total = 0\nfor leaf in jax.tree_util.tree_leaves(optimizer):\n    total += leaf.size\nreturn total", "FO924"),
    "reduced": ("return jax.tree_util.tree_reduce(lambda total, x: total + x.sum(), optimizer, 0.0)", "FO924"),
    "its leaves told apart": ("return jax.tree_util.tree_leaves(optimizer)[1].shape", "FO924"),
    "its leaves told apart by a function": (
        """
def shapes(leaves):
    first, *others = leaves
    return first.shape, len(others)
return shapes(jax.tree_util.tree_leaves(optimizer))
""",
        "FO924",
    ),
    "its leaves told apart in an object": (
        """
class Kept:
    def __init__(self, leaves):
        self.leaves = leaves
return Kept([leaf.shape for leaf in jax.tree_util.tree_leaves(optimizer)]).leaves[1]
""",
        "FO924",
    ),
    "its leaves by names": (
        """
names = ["step", "b", "b", "w", "w", "b", "w"]
return dict(zip(names, jax.tree_util.tree_leaves(optimizer)))["step"]
""",
        "FO924",
    ),
    "its leaves as arguments":
        ("return (lambda first, *others: first.shape)(*jax.tree_util.tree_leaves(optimizer))", "FO924"),
    "reduced in their order": ("return jax.tree_util.tree_reduce(lambda x, y: x - y.sum(), optimizer, 0.0)", "FO924"),
    "its leaves told apart by paths": ("return str(jax.tree_util.tree_flatten_with_path(optimizer)[0][0][0])", "FO924"),
}  # fmt: skip


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_a_train_state_does_as_well(body: str, x64: bool) -> None:
    assert_alike(text_of(body))


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_parameters_and_a_state_do_as_well(body: str) -> None:
    assert_alike(text_of(body), Options(style="functional"))


@pytest.mark.parametrize(("body", "code"), LEFT.values(), ids=LEFT)
def test_what_a_train_state_does_not(body: str, code: str) -> None:
    assert_left(text_of(body), code)


OF_ANY_SHAPE = {
    "an element of an element": 'other = definition.create({"norm": {"scale": params["w"]}}["norm"]["scale"])',
    "an element of an unpacked dict": "norm, = {**{'norm': params['w']}}.values()\nother = definition.create(norm)",
    "what a function of another package gave": """
import operator
other = definition.create(operator.itemgetter("w")(params))
""",
    "a list of NumPy's arrays": "other = definition.create([np.ones(3, np.float32), np.zeros(2, np.float32)])",
    "a tuple of them, by a generator": "other = definition.create(tuple(np.ones(size, np.float32) for size in (2, 3)))",
    "an object of a class of its own": """
@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second
    def tree_flatten(self):
        return (self.first, self.second), None
    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)
other = definition.create(Pair(params["w"], params["b"]))
""",
    "a dict": "other = definition.create({**params})",
    "a named tuple": """
import collections
Pair = collections.namedtuple("Pair", "first second")
other = definition.create(Pair(params["w"], params["b"]))
""",
}


@pytest.mark.parametrize("body", OF_ANY_SHAPE.values(), ids=OF_ANY_SHAPE)
def test_parameters_of_any_shape(body: str) -> None:
    leaves = "jax.tree_util.tree_leaves(step(other).target)"
    assert_alike(text_of(f"{body.strip()}\nreturn {leaves}"))


def test_parameters_of_which_nothing_is_known() -> None:
    """The train state says so itself if they are no mapping."""
    text = text_of("""
import types
holder = types.SimpleNamespace()
setattr(holder, 'w' * 1, params['w'])
return step(definition.create(holder.w)).target
""")
    result = result_of(text)
    with pytest.raises(TypeError, match="unsupported operand type"):
        outcome(result.after.decode())


RATES = {
    "a number": "0.05",
    "a whole number": "1",
    "one of NumPy, of 32 bits": "np.float32(0.05)",
    "one of NumPy, of 64 bits": "np.float64(0.05)",
    "a whole number of NumPy": "np.int32(1)",
    "an array": "jnp.asarray(0.05)",
    "an array of 32 bits": "jnp.asarray(0.05, jnp.float32)",
    "an array of 16 bits": "jnp.asarray(0.05, jnp.bfloat16)",
    "an array of NumPy": "np.array(0.05, np.float32)",
}
IN_LOOPS = {
    "a loop of steps": "made = jax.lax.fori_loop(0, 3, lambda _, made: rated(made), made)",
    "a loop under a condition": "made = jax.lax.while_loop(lambda made: made.state.step < 3, rated, made)",
    "a scan": "made, _ = jax.lax.scan(lambda made, _: (rated(made), None), made, jnp.arange(3))",
    "a branch": "made = jax.lax.cond(made.state.step < 3, rated, lambda made: made, made)",
    "a scan behind a step": "made = rated(made)\nmade, _ = jax.lax.scan(lambda made, _: (rated(made), 0), made, jnp.arange(3))",
}
RATED = """
def rated(made):
    return made.apply_gradient(gradients(made.target), learning_rate={rate})
"""


RATES_IN_LOOPS = {
    f"{kind}, in {name}": (rate, loop)
    for kind, rate in RATES.items()
    for name, loop in IN_LOOPS.items()
}
USUAL = (
    *(f"{kind}, in a scan" for kind in RATES),
    *(f"an array of 16 bits, in {name}" for name in IN_LOOPS if name != "a scan"),
)


@pytest.mark.parametrize(("rate", "loop"), thinned(RATES_IN_LOOPS, *USUAL))
def test_a_rate_in_a_loop_keeps_its_type(rate: str, loop: str, x64: bool) -> None:
    body = f"""
dtype = jnp.result_type(float)
made = optim.Momentum().create({{"w": jnp.arange(3, dtype=dtype)}})
{loop}
return made.target
"""
    assert_alike(text_of(body, RATED.format(rate=rate)))


TRACED = """
@jax.jit
def maybe(made, rate, skips):
    take = lambda made: made.apply_gradient(gradients(made.target), learning_rate=rate)
    return jax.lax.cond(skips, lambda made: made, take, made)
made = maybe(maybe(optim.Adam().create(params), 0.1, False), 1, False)
return maybe(made, 0.1, True).target
"""
OF_AN_ARRAY = """
def body(made, rate):
    return made.apply_gradient(gradients(made.target), learning_rate=rate), None
rates = jnp.array([0.1, 0.2]{dtype})
return jax.lax.scan(body, optim.Adam().create(params), rates)[0].target
"""


OF_TYPES = {
    "a whole number that a compiled function is given": (TRACED, True),
    "16 bits": (OF_AN_ARRAY.format(dtype=", jnp.float16"), True),
    "floats": (OF_AN_ARRAY.format(dtype=""), False),
}


@pytest.mark.parametrize(
    ("body", "is_of_another_type"), OF_TYPES.values(), ids=OF_TYPES
)
def test_a_traced_rate_in_a_loop(body: str, is_of_another_type: bool) -> None:
    assert ("keep_types(" in assert_alike(text_of(body))) == is_of_another_type


SHAPES = {
    "a method": "shape = jax.eval_shape(definition.create, params)",
    "a function": "shape = jax.eval_shape(lambda params: definition.create(params), params)",
}


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_the_type_of_the_step_of_an_optimizer_of_shapes(body: str) -> None:
    found = "shape.target['w'].shape, str(shape.state.step.dtype)"
    after = assert_alike(text_of(f"{body}\nreturn {found}"))
    assert "str(shape.step.dtype)" in after


OF_REALS = [
    *("Adam(0.1)", "AdaBelief(0.1)", "Adafactor(0.1)", "LAMB(0.1)", "RMSProp(0.1)"),
    "WeightNorm(optim.Adam(0.1))",
]
OF_ALL = [
    *("GradientDescent(0.1)", "Momentum(0.1, nesterov=True, weight_decay=0.01)"),
    *("Adadelta(0.1)", "Adagrad(0.1)", "LARS(0.1)", "LARS(0.1, weight_decay=0.01)"),
    "WeightNorm(optim.Momentum(0.1))",
]
COMPLEX = """
    import jax
    import jax.numpy as jnp
    from flax import optim

    def gradients(params):
        return jax.tree_util.tree_map(lambda x: (0.3 + {unit}) * x + 0.1, params)

    def run():
        params = None
        params = {{"w": jnp.array([[1.0, -0.5], [0.4, 2.0]]) + 0.5 * {unit}}}
        optimizer = optim.{definition}.create(params)
        for _ in range(3):
            optimizer = optimizer.apply_gradient(gradients(optimizer.target))
        return optimizer.target
    """
UNITS = {
    "a number": "1j",
    "a type": "jnp.complex64(2.0)",
    "a type by its name": 'jnp.ones((), dtype="complex64")',
    "Python's type": "complex(0, 1)",
    "made of two": "jax.lax.complex(0.0, 1.0)",
}


@pytest.mark.filterwarnings("ignore:Casting from complex")
@pytest.mark.parametrize("definition", OF_REALS)
def test_optimizers_that_step_complex_numbers_otherwise_stay(definition: str) -> None:
    assert_left(COMPLEX.format(definition=definition, unit="1j"), "FO925")


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_what_makes_complex_numbers(unit: str) -> None:
    assert_left(COMPLEX.format(definition="Adam(0.1)", unit=unit), "FO925")


@pytest.mark.parametrize("definition", OF_ALL)
def test_optimizers_that_step_complex_numbers_alike(definition: str, x64: bool) -> None:
    assert_alike(COMPLEX.format(definition=definition, unit="1j"))


def test_who_asks_for_complex_numbers_makes_none() -> None:
    asked = "isinstance(params, (complex, str))"
    assert_alike(COMPLEX.format(definition="Adam(0.1)", unit=asked))


OF_MODELS = """
    import jax
    import jax.numpy as jnp
    from flax import linen as nn
    from flax import optim

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(2)(x)

    def make(definition, seed):
        model = Net()
        return definition.create(model.init(jax.random.PRNGKey(seed), jnp.ones((1, 3)))["params"])

    def restart(definition, params):
        return definition.create(params)

    def step(optimizer):
        return optimizer.apply_gradient(jax.tree_util.tree_map(lambda x: 0.1 * x + 1.0, optimizer.target))

    def run():
        definition = optim.Adam(0.1)
        first = make(definition, 0)
        second = {second}
        both = {body}
        return jax.tree_util.tree_leaves(both.target)
    """
JOINED = {
    "stacked": ("make(definition, 1)", "step(jax.tree_util.tree_map(lambda *x: jnp.stack(x), first, second))"),
    "averaged with one that another function made":
        ("restart(definition, first.target)", "jax.tree_util.tree_map(lambda x, y: (x + y) / 2, step(first), second)"),
}  # fmt: skip


@pytest.mark.parametrize(("second", "body"), JOINED.values(), ids=JOINED)
def test_optimizers_that_meet_have_the_same_structure(second: str, body: str) -> None:
    assert_alike(OF_MODELS.format(second=second, body=body))
