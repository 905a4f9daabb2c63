"""Whose `apply_gradient` it is: a line changes only if its own receiver is shown to be an optimizer."""

import pytest

from codemods import Options
from tests.codemods.programs import program, project, table

Texts = dict[str, str]


def alone(text: str) -> Texts:
    return {"train": text}


def steps(
    texts: Texts, options: Options | None = None
) -> list[tuple[str, str, str, str]]:
    """Of every `apply_gradient` that is reported: what is called, status, code and evidence."""
    results = project(texts, options).values()
    sites = [site for result in results for site in result.sites]
    steps = [site for site in sites if site.before.endswith(".apply_gradient")]
    return [(site.before, site.status, site.code, site.evidence) for site in steps]


NOT_OF_AN_OPTIMIZER = """
== a function as its argument, of any kind
import jax
from functools import partial

def loss_fn(params):
    return params

@jax.jit
def compiled(params):
    return params

def steps(one, two, three, four, five, six, batch):
    def within(params):
        return params * batch

    six = six.apply_gradient(within)
    return (
        one.apply_gradient(lambda p: p * batch), two.apply_gradient(loss_fn), three.apply_gradient(grads=lambda p: p),
        four.apply_gradient(partial(loss_fn, batch)), five.apply_gradient(jax.checkpoint(compiled)), six
    )

class Trainer:
    def loss(self, params):
        return params

    def step(self, model):
        return model.apply_gradient(self.loss)
== arguments and results that it never had
import jax
from elsewhere import Rule

def steps(one, two, three, four, hyper_params, params, state, grads):
    print(one.apply_gradient(), two.apply_gradient(loss_fn=params), three.apply_gradient(params, grads))
    rule = Rule(0.1)
    four, info = four.apply_gradient(grads)
    return four, rule.apply_gradient(hyper_params, params, state, grads)

def first(model, grads):
    return model.apply_gradient(grads)[0]
== an instance of a class out of view
import jax
from elsewhere import Agent, models
from .model import Model

Agent(3).apply_gradient(grads)

def train(key, grads):
    model, other = models.Model(key), Model.create(key)
    return model.apply_gradient(grads), other.apply_gradient(grads)

def step(agent, grads):
    return agent.apply_gradient(grads)

step(Agent(3), 1.0)

def steps(grads):
    agents = {"first": Agent(1)}
    agents["first"] = agents["first"].apply_gradient(grads)
    return [agent.apply_gradient(grads) for agent in [Agent(2), Agent(3)]]
== a class with a base out of view
import jax
from elsewhere import Base

class Learner(Base):
    def update(self, grads):
        return self.apply_gradient(grads)

    def apply_gradients(self, grads):
        return super().apply_gradient(grads)

class Other(Base):
    pass

class Trainer:
    def __init__(self, key):
        self.made = Other.create(key)
        self.other = Other(key)

    def step(self, grads):
        self.made = self.made.apply_gradient(grads)
        self.other = self.other.apply_gradient(grads)

def step(learner, grads):
    return learner.apply_gradient(grads)

step(Other(1), 1.0)
== what an annotation says to be something else
import dataclasses
import jax
from typing import Optional
from project.models import Model

@dataclasses.dataclass
class State:
    actor: Model

def make() -> Model:
    ...

def update(actor: Optional[Model], critic: "Model", state: State, grads):
    model = make()
    print(model.apply_gradient(grads), state.actor.apply_gradient(grads))
    return actor.apply_gradient(grads), critic.apply_gradient(grads)
"""


@pytest.mark.parametrize("text", table(NOT_OF_AN_OPTIMIZER, values=1))
def test_what_is_shown_to_be_no_optimizer_is_no_site(text: str) -> None:
    result = project(alone(text))["train"]
    assert not result.changed
    assert result.sites == ()


BESIDE = """
    import {module}

    def train(params, grads):
        optimizer = optim.Adam(0.1).create(params)
        return optimizer.apply_gradient(grads), {module}
    """


@pytest.mark.parametrize("text", table(NOT_OF_AN_OPTIMIZER, values=1))
def test_nor_is_it_one_beside_an_optimizer(text: str) -> None:
    text = text.replace("import jax\n", "import jax\nfrom flax import optim\n")
    results = project({"agents": text, "train": BESIDE.format(module="agents")})
    assert {site.code for site in results["agents"].sites} <= {"FO101"}
    assert b"optimizer.apply_gradients(grads=grads)" in results["train"].after


def test_a_class_out_of_view_is_no_optimizer_though_it_is_given_one() -> None:
    text = """
        from elsewhere import Agent, Model
        from flax import optim

        def train(params, grads):
            agent = Agent(optim.Adam(0.1).create(params))
            model = Model.create(params, tx=optim.Adam(0.1))
            return agent.apply_gradient(grads), model.apply_gradient(grads)
        """
    assert steps(alone(text)) == []


MODEL = """
    class Model:
        def __init__(self, params):
            self.params = params

        def apply_gradient(self, grads):
            return Model(grads)
    """


UNKNOWN = """
    import jax
    import model

    def step(thing, grads):
        return thing.apply_gradient(grads)
    """


def test_something_unknown_is_none_where_only_a_class_in_view_has_that() -> None:
    assert steps({"model": MODEL, "train": UNKNOWN}) == []


def test_something_unknown_is_likely_where_there_are_optimizers_too() -> None:
    texts = {
        "model": MODEL,
        "train": """
            import jax
            import model
            from flax import optim

            def make(params):
                return optim.Adam(0.1).create(params)

            def step(thing, grads):
                return thing.apply_gradient(grads)
            """,
    }
    assert steps(texts) == [("thing.apply_gradient", "unresolved", "FO912", "likely")]
    careful = project(texts)["train"]
    bold = project(texts, Options(unsafe=True))["train"]
    assert b"thing.apply_gradient(grads)" in careful.after
    assert b"train_state.TrainState.create(" in careful.after
    assert b"thing.apply_gradients(grads=grads)" in bold.after
    [message] = [site.message for site in careful.sites if site.code == "FO912"]
    assert "A class of this program has an `apply_gradient`, too" in message


DEDUCED = {
    "whatever its gradients are": alone("""
        import functools
        import jax

        def step(one, two, three, four, loss, parts, grads):
            one.apply_gradient(grads)
            two.apply_gradient(grads=grads)
            added = functools.reduce(lambda a, b: jax.tree_map(jax.numpy.add, a, b), parts)
            grads = jax.grad(loss)
            grads = grads(three.target)
            return three.apply_gradient(grads), four.apply_gradient(added)

        class Trainer:
            def grads(self, params):
                return params

            def step(self, thing):
                return thing.apply_gradient(self.grads(thing.target))
        """),
    "types that say nothing": alone("""
        import jax
        from typing import Any, Optional, TypeVar
        from jaxtyping import PyTree

        T = TypeVar("T")
        Tree = Any

        def step(a: Any, b: Tree, c: PyTree, d: T, e: Optional["Any"], grads) -> T:
            first = a.apply_gradient(grads), b.apply_gradient(grads), c.apply_gradient(grads)
            return first, d.apply_gradient(grads), e.apply_gradient(grads)
        """),
    "what comes from out of view": alone("""
        import jax
        from elsewhere import Base, make_optimizer, Trainer

        def train(grads):
            thing, other, trainer = make_optimizer(), Trainer().make_optimizer(), Trainer()
            print(thing.apply_gradient(grads), other.apply_gradient(grads))
            return trainer.optimizer.apply_gradient(grads)

        class Mine(Base):
            def step(self, grads):
                self.optimizer = self.optimizer.apply_gradient(grads)
        """),
    "a class with such a method in another program": {"model": MODEL, "train": UNKNOWN.replace("import model\n", "")},
    "a class whose method takes more": {"model": MODEL.replace("self, grads", "self, params, grads"), "train": UNKNOWN},
    "what the class does not have is read of it, too": {
        "model": MODEL,
        "train": """
            import jax
            import model

            class Trainer:
                def __init__(self, thing):
                    self.thing = thing

                def read(self):
                    return self.thing.target

                def step(self, grads):
                    self.thing = self.thing.apply_gradient(grads)
            """,
    },
}  # fmt: skip


@pytest.mark.parametrize("texts", DEDUCED.values(), ids=DEDUCED)
def test_what_is_used_as_only_an_optimizer_is_one(texts: Texts) -> None:
    found = steps(texts)
    kinds = {(status, evidence) for _, status, _, evidence in found}
    assert kinds == {("rewritten", "deduced")}
    assert len(found) == program("".join(texts.values())).count(".apply_gradient(")


@pytest.mark.parametrize(
    "read", ["camera.target", "table['camera'].target", "camera.replace(target=1)"]
)
def test_an_attribute_of_a_class_in_view_is_its_own(read: str) -> None:
    text = f"""
        import jax
        import toolbelt
        from flax import optim

        class Camera:
            def __init__(self, target):
                self.target = target

            def replace(self, target):
                return Camera(target)

        def same(value):
            return value

        def train(params):
            optimizer = optim.Adam(0.1).create(params)
            table = dict(camera=None)
            toolbelt.fill(table, optimizer)
            table["camera"] = camera = same(Camera(1))
            return optimizer.target, {read}, same(toolbelt.load())
        """
    result = project(alone(text))["train"]
    assert {site.status for site in result.sites} == {"rewritten"}
    assert f"optimizer.params, {read}".encode() in result.after


def test_what_is_asked_for_the_hyperparameters_of_its_definition_is_one() -> None:
    texts = {
        "train": """
            import jax
            from flax import optim

            def make(params):
                return optim.Adam(1e-3).create(params)

            def step(state, grads):
                return state.apply_gradient(grads)

            def rate(state):
                return state.optimizer_def.hyper_params.learning_rate
            """,
        "other": """
            import jax

            class Model:
                def __init__(self, optimizer_def):
                    self.optimizer_def = optimizer_def

                def rate(self):
                    return self.optimizer_def.hyper_params.learning_rate
            """,
    }
    results = project(texts)
    assert {site.status for site in results["train"].sites} == {"rewritten"}
    assert b'tree_get(state.opt_state, "learning_rate")' in results["train"].after
    assert not results["other"].changed


def test_a_file_that_imports_flax_alone_reads_the_optimizers_of_others() -> None:
    """Its text has no word of JAX, and its state comes from a file that nobody can parse."""
    texts = {
        "state": """
            import flax
            from flax import optim

            @flax.struct.dataclass
            class TrainState:
                optimizer: optim.Optimizer
                epoch: int

            def create(params):
                return TrainState(optimizer=optim.Adam(0.1).create(params), epoch=0)
            """,
        "restore": """
            import flax

            def restore(train_state, given):
                params = flax.core.unfreeze(train_state.optimizer.target)
                return {**params, **given}
            """,
    }
    results = project(texts)
    assert b"unfreeze(train_state.optimizer.params)" in results["restore"].after
    torch = {**texts, "restore": texts["restore"].replace("flax", "torch")}
    assert b"train_state.optimizer.target" in project(torch)["restore"].after
    # without a word of either, but in a program with what makes optimizers
    beside = {**torch, "restore": f"import state\n{program(torch['restore'])}"}
    assert b"train_state.optimizer.params" in project(beside)["restore"].after
