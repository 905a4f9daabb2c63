"""A learning rate that each step sets, where a parameter of the model is called `learning_rate` too."""

from textwrap import dedent

import pytest

from tests.codemods.programs import migrated

PROGRAM = """
    import flax.linen as nn
    from flax import optim
    {imports}


    class Scaled(nn.Module):
        {fields}

        @nn.compact
        def __call__(self, x):
            return {value} * x


    def train(key, x, grads, rate):
        model = {model}
        optimizer = optim.Adam().create({params})
        return optimizer.apply_gradient(grads, learning_rate=rate)
    """
PLAIN = "optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)"
ALONE = "optimizer.opt_state, is_hyperparam, learning_rate=rate"


USUAL = {
    "model": "Scaled()",
    "params": 'model.init(key, x)["params"]',
    "fields": "rate: float = 0.1",
    "imports": "",
}


def program(value: str = "nn.Dense(3)(x)", **others: str) -> str:
    return PROGRAM.format(value=value, **{**USUAL, **others})


NOT_CALLED_SO = {
    "layers of Flax": program(),
    "another parameter": program("self.param('scale', nn.initializers.ones, ())"),
    "a parameter of a computed name": program("self.param(self.name, nn.initializers.ones, ())"),
    "parameters of numbered names": program("self.param(f'scale_{len(x)}', nn.initializers.ones, ())"),
    "a field of the model": program("self.learning_rate", fields="learning_rate: float = 0.1"),
    "layers of packages that are known": program("hk.Linear(3)(x)", imports="import haiku as hk"),
    "other packages, of which no model comes": program(imports="from elsewhere import log\n    log('learning_rate')"),
    "a dict of other parameters": program(params="{'w': x}"),
    "a configuration": program(imports="config = {'learning_rate': 0.1}"),
    "a dict of which others are a part": program(params="{'w': 1.0, **x}"),
    "a model from elsewhere": program(model="Model()", imports="from elsewhere import Model"),
    "a model that a function elsewhere gives": program(model="make()", imports="from elsewhere import make"),
    "layers from elsewhere": program("Layer()(x)", imports="from elsewhere import Layer"),
    "a model of a file that is not in view": program(model="Model()", imports="from .models import Model"),
}  # fmt: skip
CALLED_SO = {
    "a parameter": program("self.param('learning_rate', nn.initializers.ones, ())"),
    "a parameter of a name that may be that": program("self.param(f'{self.name}_rate', nn.initializers.ones, ())"),
    "a layer": program("nn.Dense(3, name='learning_rate')(x)"),
    "a name that the model is given": program(model="Scaled('learning_rate')", fields="called: str"),
    "a dict of parameters": program(params="{'w': 1.0, 'learning_rate': 0.1}"),
    "a dict of parameters by keywords": program(params="dict(w=1.0, learning_rate=0.1)"),
    "a dict in one": program(params="{'w': 1.0, 'inner': {'learning_rate': 0.1}}"),
    "a key that is added": program("x", model="{}; model['learning_rate'] = x", params="model"),
    "a field": program(
        params="Params(1.0, 0.1)",
        imports="from typing import Any, NamedTuple\n    class Params(NamedTuple): w: Any; learning_rate: Any",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", NOT_CALLED_SO.values(), ids=NOT_CALLED_SO)
def test_set_by_its_name_alone(text: str) -> None:
    new = migrated(dedent(text))
    assert PLAIN in new
    assert "is_hyperparam" not in new


@pytest.mark.parametrize("text", CALLED_SO.values(), ids=CALLED_SO)
def test_set_among_hyperparameters_alone(text: str) -> None:
    new = migrated(dedent(text))
    assert ALONE in new
    assert new.count("def is_hyperparam(path, _):") == 1
