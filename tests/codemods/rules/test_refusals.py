"""What is left as it is, and the reason that is given. Nothing of such an optimizer changes."""

import pytest

from codemods import Source, migrate
from codemods.rules import catalogue
from tests.codemods.programs import OPTAX_ALONE, migrated, program, result_of, table

REFUSED = """
== no learning rate, and a step that sets none
FO902
def train(params, grads):
    optimizer = optim.Adam(beta1=0.8).create(params)
    return optimizer.apply_gradient(grads)
== a class looked up by a function from elsewhere
FO903
from flax import optim
from registry import lookup

def create(params, name):
    return getattr(optim, name)(0.1).create(params), lookup(optim, name)
== a class that is put into an unknown object
FO903
def configure(config):
    config.optimizer = optim.Adam

def create(params, optimizer_class=optim.Adam):
    return optimizer_class(0.1).create(params)
== a class made of others
FO903
def create(params, normalized):
    definition = optim.Momentum(0.1)
    wrapper = optim.WeightNorm if normalized else optim.MultiOptimizer
    return wrapper(definition).create(params)
== an optimizer that is put together by hand
FO907
def start(params, state):
    optimizer_def = optim.GradientDescent(0.1)
    return optim.Optimizer(optimizer_def, state=state, target=params)

def train(params, state, grads):
    return start(params, state).apply_gradient(grads).target
== an optimizer of a class of one's own
FO908
class Logged(optim.Optimizer):
    def log(self):
        print(self.state.step)

def train(params, grads):
    definition = optim.Momentum(0.1)
    optimizer = Logged(definition, definition.init_state(params), params)
    optimizer = optimizer.apply_gradient(grads)
    optimizer.log()
    return optimizer.target
== a function of all arrays in the state of weight normalization, its directions too
FO906
import jax

def train(params, grads, reset):
    optimizer = optim.WeightNorm(optim.Adam(0.1)).create(params)
    optimizer = optimizer.replace(state=jax.tree_util.tree_map(reset, optimizer.state))
    return optimizer.apply_gradient(grads)
== moments mapped together with parameters
FO906
import jax

def scale(params):
    optimizer = optim.Adafactor(0.1).create(params)
    states = jax.tree_util.tree_map(lambda p, s: s, params, optimizer.state.param_states)
    return optimizer.replace(state=optimizer.state.replace(param_states=states))
== a function of the states of two kinds of optimizers
FO906
import jax

def smaller(state):
    return state.replace(param_states=jax.tree_util.tree_map(lambda x: x / 2, state.param_states))

def restart(params):
    first, second = optim.Adam(0.1).create(params), optim.Adagrad(0.1).create(params)
    return first.replace(state=smaller(first.state)), second.replace(state=smaller(second.state))
== hyperparameters of the wrong group
FO910
def step(params, grads, kernels, biases):
    kernels, biases = optim.ModelParamTraversal(kernels), optim.ModelParamTraversal(biases)
    optimizer = optim.MultiOptimizer((kernels, optim.Adam(0.1)), (biases, optim.Adam(0.2))).create(params)
    hparams = optimizer.optimizer_def.hyper_params
    return optimizer.apply_gradient(
        grads, hyper_params=[hparams[1].replace(learning_rate=1.0), hparams[0].replace(learning_rate=2.0)])
== a method that makes a state of another optimizer's parts
FO907
class Trainer:
    def __init__(self, params):
        self.optimizer = optim.Adam(0.1).create(params)

    def changed(self, state):
        return optim.OptimizerState(state.step, optim.lamb._LAMBParamState(1.0, state.param_states.grad_ema))

    def restart(self):
        self.optimizer = self.optimizer.replace(state=self.changed(self.optimizer.state))
== a function of the state of LARS, which optax keeps with the opposite sign
FO906
from flax import optim
import jax

def smaller(state):
    return state.replace(param_states=jax.tree_util.tree_map(lambda x: x / 2, state.param_states))

def restart(params):
    optimizer = optim.LARS(0.1).create(params)
    return optimizer.replace(state=smaller(optimizer.state))
== the groups of a MultiOptimizer read back
FO907
def create(params, kernels):
    kernels = optim.ModelParamTraversal(kernels)
    optimizer = optim.MultiOptimizer((kernels, optim.Adam(0.1))).create(params)
    return optimizer.optimizer_def.traversals
== a definition of one's own that works on the whole tree
FO908
class Frozen(optim.MultiOptimizer):
    def init_state(self, params):
        return self.sub_optimizers[0].init_state(params)

def create(params, traversal):
    return Frozen((traversal, optim.Adam(0.1))).create(params)
== a definition of one's own that stores its state in a way of its own
FO908
class SignDescent(optim.OptimizerDef):
    def __init__(self, learning_rate):
        super().__init__(learning_rate)

    def state_dict(self, target, state):
        return {"target": target}

def create(params):
    return SignDescent(0.1).create(params)
== a definition of one's own without a constructor, whose rate a step sets
FO910
class Descent(optim.OptimizerDef):
    def init_param_state(self, param):
        return ()

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return param - hyper_params.learning_rate * grad, state

def step(params, grads, hyper_params):
    return Descent(hyper_params).create(params).apply_gradient(grads, learning_rate=0.1)
== several groups in a way of one's own
FO908
class Frozen(optim.MultiOptimizer):
    def apply_gradient(self, hyper_params, params, state, grads):
        return params, state

def create(params):
    kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
    return Frozen((kernels, optim.Adam(0.1))).create(params)
== hyperparameters and gradients that are computed in order
FO910
def train(params, numbers):
    optimizer = optim.Adam().create(params)
    hyper_params = optimizer.optimizer_def.hyper_params
    return optimizer.apply_gradient(next(numbers), hyper_params=hyper_params.replace(learning_rate=next(numbers)))
== optimizers that are told from train states
FO909
from flax import optim
from flax.training.train_state import TrainState

def rate_of(state):
    return 0.1 if isinstance(state, optim.Optimizer) else 0.2

def train(params, tx):
    old = optim.Adam(0.1).create(params)
    new = TrainState.create(apply_fn=None, params=params, tx=tx)
    return rate_of(old), rate_of(new)
== a rate for an optimizer that a call gives
FO910
def pick(optimizers, index):
    return optimizers[index]

def train(params, grads, rate):
    optimizers = [optim.Adam(0.1).create(params)]
    return pick(optimizers, 0).apply_gradient(grads, learning_rate=rate)
== replicate over an axis that is not plain to see
FO913
def create(params, axis):
    return optim.Adam(0.1).create(params).replicate(axis_name=axis)
== one step for optimizers that were replicated over different axes
FO913
def train(params, grads, deep):
    first = optim.Adam(0.1).create(params).replicate(axis_name="first")
    second = optim.Momentum(0.1).create(params).replicate(axis_name="second")
    return (first if deep else second).apply_gradient(grads)
== a checkpoint of a replicated optimizer, which was one of a single copy
FO913
from flax import optim
from flax.training import checkpoints

def train(params, batches, directory):
    optimizer = optim.Adam(0.1).create(params)
    optimizer = optimizer.replicate()
    for step, batch in enumerate(batches):
        checkpoints.save_checkpoint(directory, (optimizer, step), step)
== replicate with arguments that are unpacked
FO913
def create(params, devices):
    return optim.Adam(0.1).create(params).replicate(*devices)
== a checkpoint of several copies, which an expression gives
FO913
import jax
from flax import optim
from flax.training import checkpoints

def save(params, directory):
    optimizer = optim.Adam(0.1).create(params).replicate()
    checkpoints.save_checkpoint(directory, jax.device_get(optimizer), 0)
== a state dict of several copies, in an attribute
FO913
from flax import optim, serialization

class Trainer:
    def __init__(self, params):
        self.optimizer = optim.Adam(0.1).create(params).replicate()

    def restore(self, data):
        self.optimizer = self.optimizer.restore_state(serialization.msgpack_restore(data))
== a step of two optimizers of which one averages its gradients
FO913
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)

def create(params, grads):
    first = optim.Adam(0.1).create(params).replicate()
    second = optim.Adam(0.1).create(params)
    return step(first, grads), step(second, grads)
== state_dict passed on
FO906
from flax import optim, serialization

def save(params, file, log):
    optimizer = optim.Adam(0.1).create(params)
    file.on_close(optimizer.state_dict)
== restore_state passed on
FO906
from flax import optim, serialization

def save(params, file, log):
    optimizer = optim.Adam(0.1).create(params)
    file.on_open(optimizer.restore_state)
== a traversal that is also iterated
FO915
def create(params):
    kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
    count = len(list(kernels.iterate(params)))
    return optim.MultiOptimizer((kernels, optim.Adam(0.1))).create(params), count
== a traversal from elsewhere
FO915
def create(params, traversal):
    return optim.MultiOptimizer((traversal, optim.Adam(0.1))).create(params)
== a predicate that is unpacked
FO905
def create(params, predicates):
    kernels = optim.ModelParamTraversal(*predicates)
    return optim.MultiOptimizer((kernels, optim.Adam(0.1))).create(params)
== create kept in a class
FO916
class Agent:
    make = optim.Adam(0.1).create

    def start(self, params):
        return self.make(params)
== the state dict by key
FO906
from flax import optim, serialization

def read(params):
    optimizer = optim.Adam(0.1).create(params)
    return serialization.to_state_dict({"optimizer": optimizer})["optimizer"]["state"]
== an import behind a colon
FO917
if True: from flax.optim import Adam
== a checkpoint by key
FO906
from flax.training import checkpoints

def load(directory, optimizer):
    optimizer = optimizer.apply_gradient(None, beta1=0.5)
    restored = checkpoints.restore_checkpoint(directory, None)
    del restored["optimizer"]["target"]
== moments of a checkpoint by key
FO906
from flax.training import checkpoints

def moments(directory, optimizer):
    optimizer = optimizer.apply_gradient(None, beta1=0.5)
    restored = checkpoints.restore_checkpoint(directory, None)
    return restored["optimizer"]["state"]["param_states"]
== used as parameters, by something unknown
FO912
import jax

def step(optimizer, grads):
    return optimizer.apply_gradient(grads, beta1=0.5)

def evaluate(model, thing, batch):
    return model.apply({"params": thing.target}, batch)
== the name optax means something else
FO918
def create(params, optax):
    return optim.Adam(0.1).create(params)
== an attribute of a class that never was
FO916
def train(params, grads):
    definition = optim.SM3.with_momentum(0.1)
    optimizer = definition.create(params)
    return optimizer.apply_gradient(grads)
"""


@pytest.mark.parametrize(("code", "text"), table(REFUSED, values=2))
def test_refused_whole_with_a_reason(code: str, text: str) -> None:
    source = program(text).encode()
    [result] = migrate([Source("train.py", source)], OPTAX_ALONE)

    assert result.error is None
    assert result.after == source
    assert {site.status for site in result.sites} == {"unresolved"}
    assert code in {site.code for site in result.sites}
    assert all(site.message and site.remedy for site in result.sites)
    assert {site.code for site in result.sites} <= set(catalogue())
    # with an interface it is refused whole, too, or not at all
    assert len({site.status for site in result_of(text).sites}) == 1


def test_every_reason_is_documented() -> None:
    for rule in catalogue().values():
        assert rule.summary
        if rule.code.startswith("FO9"):
            assert len(rule.explanation) > len(rule.summary)


UNKNOWN_ORIGINS = """
== the definition of an optimizer from elsewhere
4 FO901, 5 FO907
import jax

def rate_of(optimizer, grads):
    stepped = optimizer.apply_gradient(grads)
    return stepped, optimizer.optimizer_def.hyper_params.learning_rate
== a step by a definition from elsewhere
4 FO907, 4 FO907
import jax

def step(definition, params, state, grads):
    return definition.apply_gradient(definition.hyper_params, params, state, grads)
== one that sets the learning rate
5 FO907, 6 FO907
import jax

class Learner:
    def step(self, grads, rate):
        self.params, self.state = self.definition.apply_gradient(
            self.definition.hyper_params.replace(learning_rate=rate), self.params, self.state, grads
        )
== an optimizer that is declared by a name from a star import
5 FO208, 6 FO204
import jax
from names_of_ours import *

def step(optimizer: Optimizer, loss_fn):
    loss, grad = optimizer.compute_gradient(loss_fn)
    return optimizer.apply_gradient(grad)
"""


@pytest.mark.parametrize(("sites", "text"), table(UNKNOWN_ORIGINS, values=2))
def test_what_comes_from_nowhere_in_view_is_a_site(sites: str, text: str) -> None:
    """Whether the learning rate of such a definition can be set is known to what makes it."""
    found = result_of(text).sites
    assert ", ".join(f"{site.line} {site.code}" for site in found) == sites


def test_a_module_from_a_star_import_is_flax() -> None:
    text = """
        from names_of_ours import *

        def create(params):
            return flax.optim.Momentum(0.1).create(params)
        """
    assert "tx=optax.sgd(0.1, momentum=0.9)" in migrated(text)


def test_what_is_zipped_apart_is_not_mixed() -> None:
    result = result_of("""
        def rates(groups):
            choices, definitions = zip(*groups)
            names = [name for choice in choices for name in choice.iterate({})]
            return names, [one.hyper_params.learning_rate for one in definitions]

        def make(params, kernels):
            groups = ((kernels, optim.Adam(0.1)), (kernels, optim.Momentum(0.2)))
            return rates(groups), optim.Adam(0.3).create(params).target
        """)
    left = [site.line for site in result.sites if site.code == "FO907"]
    assert left == [6]


def test_a_class_without_a_function_in_its_place_is_to_be_named() -> None:
    result = result_of("""
        Base = optim.OptimizerDef
        """)
    [site] = [site for site in result.sites if site.code == "FO903"]
    assert site.remedy == "Name `OptimizerDef` itself where this value is used."


def test_a_key_of_ones_own_in_a_state_dict() -> None:
    text = """
        def save(params, epoch):
            optimizer = optim.Adam(0.1).create(params)
            saved = optimizer.state_dict()
            saved["epoch"] = epoch
            return optimizer.restore_state(saved), saved["target"]
        """
    result = result_of(text)
    # Flax says itself that it does not know the key
    assert 'saved["params"]' in result.after.decode()
    [hint] = result.hints
    assert (hint.code, hint.line) == ("FO932", 6)
