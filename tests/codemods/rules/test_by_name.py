"""Attributes of optimizers that are read by a name in a string, old and new side by side."""

import pytest

from tests.codemods.programs import program, result_of
from tests.codemods.test_alike import assert_alike, assert_left, text_of

pytestmark = pytest.mark.usefixtures("legacy_wheel")

LEFT = {
    "a state": "return getattr(optimizer, 'state').step",
    "a name that is not a literal": "name = 'target'\nreturn getattr(optimizer, name)",
    "a method": "return getattr(optimizer, 'apply_gradient')(gradients(params)).target",
    "a step, by a getter": "return operator.attrgetter('state.step')(optimizer)",
    "a key of a sort": """
found = sorted([step(optimizer), optimizer], key=operator.attrgetter('state.step'))
return found[0].target
""",
    "an attribute that only a train state has": "return str(hasattr(optimizer, 'params'))",
    "another attribute that is asked for": "return str(hasattr(optimizer, 'state'))",
}
MIXED = {
    "params of something else": """
class Model:
    def __init__(self, params):
        self.params = params
def params_of(x):
    return x.target if hasattr(x, 'target') else x.params
return params_of(optimizer), params_of(Model(params))
""",
    "a target of something else": """
class Batch:
    def __init__(self, target):
        self.target = target
target_of = operator.attrgetter('target')
return target_of(optimizer), target_of(Batch(params))
""",
    "a getter for something unknown": """
target_of = operator.attrgetter('target')
return target_of(optimizer), target_of(types.SimpleNamespace(**{'target': params}))
""",
}
REWRITTEN = {
    "getattr": ("return getattr(optimizer, 'target')", "return getattr(optimizer, 'params')"),
    "an optimizer, or its parameters": (
        """
def params_of(x):
    return x.target if hasattr(x, 'target') else x
return params_of(step(optimizer)), params_of(params)
""",
        "return x.params if hasattr(x, 'params') else x\n",
    ),
    "a getter for several": (
        "return [*map(operator.attrgetter('target'), [optimizer, step(optimizer)])]",
        "map(operator.attrgetter('params'), [",
    ),
    "a getter, of which the results are used": (
        """
def total(tree):
    return sum(float(x.sum()) for x in jax.tree_util.tree_leaves(tree))
targets = list(map(operator.attrgetter('target'), [optimizer, step(optimizer)]))
return total(targets[0]), total(targets[1])
""",
        "map(operator.attrgetter('params'), [",
    ),
    "a getter through something else": (
        """
agent = types.SimpleNamespace(optimizer=step(optimizer))
return operator.attrgetter('optimizer.target')(agent)
""",
        "operator.attrgetter('optimizer.params')(",
    ),
}  # fmt: skip
OTHERS = {
    "a getter of other objects": """
class Batch:
    def __init__(self, target):
        self.target = target
target_of = operator.attrgetter('target')
return target_of(Batch(params)), step(optimizer).target
""",
    "an attribute of other objects": """
class Batch:
    def __init__(self, target):
        self.target = target
return getattr(Batch(params), 'target'), step(optimizer).target
""",
}


def program_of(body: str) -> str:
    imports = "    import operator\n    import types\n"
    return "\n" + imports + text_of(body).lstrip("\n")


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_is_left_by_name(body: str) -> None:
    assert_left(program_of(body), "FO916")


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_a_name_for_other_objects_too(body: str) -> None:
    assert_left(program_of(body), "FO909")


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_names_of_other_objects_stay(body: str) -> None:
    after = assert_alike(program_of(body))
    assert "'target'" in after


@pytest.mark.parametrize(("body", "new"), REWRITTEN.values(), ids=REWRITTEN)
def test_the_target_by_its_name(body: str, new: str) -> None:
    after = assert_alike(program_of(body))
    assert new in after
    assert "target'" not in after


@pytest.mark.parametrize("is_known", [True, False])
def test_what_else_may_be_asked_is_told(is_known: bool) -> None:
    other = '{"w": 1.0}' if is_known else "batch"
    text = f"""
        def params_of(x):
            return x.target if hasattr(x, "target") else x

        def train(params, batch):
            optimizer = optim.Adam(0.1).create(params)
            return params_of(optimizer), params_of({other})
        """
    result = result_of(text)
    assert {site.status for site in result.sites} == {"rewritten"}
    notes = [site.line for site in result.sites if "asked for `params`" in site.note]
    assert notes == ([] if is_known else [4])


SAID = {
    "what is asked for": ("hasattr(optimizer, 'state')", "Ask by `isinstance`"),
    "the method of a class as a value": (
        "jax.jit(optim.Optimizer.apply_gradient)(optimizer, params)",
        "grads: optimizer.apply_gradient(grads)",
    ),
}


@pytest.mark.parametrize(("value", "remedy"), SAID.values(), ids=SAID)
def test_the_remedy_says_what_to_do_instead(value: str, remedy: str) -> None:
    text = f"""
        import jax
        from flax import optim

        def read(params):
            optimizer = optim.Adam(0.1).create(params)
            return {value}
        """
    result = result_of(text)
    assert result.after.decode() == program(text)
    assert remedy in str([site.remedy for site in result.sites])
