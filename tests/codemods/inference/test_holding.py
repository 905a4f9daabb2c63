"""What containers, classes and their instances hold."""

from tests.codemods.inference.asking import assert_answers, each

MAKE = """
made = optim.Adam().create(params)  # makes: made
"""

HELD = """
== the keys of a dict, and its elements by them
optimizers = {"a": made, **{"b": made}}
for name in optimizers:
    name.target  # is: unknown
    optimizers[name].target  # is: made
[key.target for key in {made: "adam"}]  # is: made
== extend, insert and concatenation
one, two = [], []
one.extend([made])
two.insert(0, made)
one[0].target  # is: made
two[0].target  # is: made
([] + [made])[0].target  # is: made
([made] * 3)[2].target  # is: made
(*[made], None)[0].target  # is: made
== lists and dicts of a defaultdict
class History:
    def __init__(self):
        self.kept = collections.defaultdict(list)
    def keep(self, name, value):
        self.kept[name].append(value)

history = History()
history.keep("best", made)
history.kept["best"][-1].target  # is: made
lists = collections.defaultdict(lambda: [])
lists["best"].append(made)
lists["best"][0].target  # is: made
groups = collections.defaultdict(dict)
groups["actor"]["best"] = made
groups["actor"]["best"].target  # is: made
== a namedtuple
State = collections.namedtuple("State", "optimizer step")
state = State(made, step=0)
state.optimizer.target  # is: made
state[0].target  # is: made
optimizer, step = state
optimizer.target  # is: made
state._replace(step=1).optimizer.target  # is: made
== a constructor of a base, called by that of a class
class Base:
    def __init__(self, optimizer, name=None):
        self.optimizer = optimizer

class Middle(Base):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

class Adam(Middle):
    def __init__(self, params):
        super().__init__(optim.Adam().create(params))  # makes: adam
        self.optimizer.target  # is: adam

class Momentum(Base):
    def __init__(self, params):
        made = optim.Momentum().create(params)  # makes: momentum
        Base.__init__(self, optimizer=made)

Adam(params).optimizer.target  # is: adam
Momentum(params).optimizer.target  # is: momentum
== a method below a decorator
import functools

def logged(method):
    @functools.wraps(method)
    def wrapper(self, *args):
        return method(self, *args)
    return wrapper

def counted(method):
    def wrapper(*args):
        return method(*args)
    return wrapper

class Trainer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    @logged
    def get(self):
        return self.optimizer

    @property
    @counted
    def current(self):
        return self.optimizer

    @staticmethod
    @counted
    def same(optimizer):
        return optimizer

adam = optim.Adam().create(params)  # makes: adam
momentum = optim.Momentum().create(params)  # makes: momentum
Trainer(adam).get().target  # is: adam
Trainer(momentum).get().target  # is: momentum
Trainer(adam).current.target  # is: adam
Trainer.same(momentum).target  # is: momentum
== a field of attrs
import attr

@attr.s
class Trainer:
    optimizer = attr.ib()

made = optim.Adam().create(params)  # makes: made
Trainer(made).optimizer.target  # is: made
== what a callable instance of a field is given
class Show:
    def __call__(self, shown):
        shown.target  # is: made

class Trainer:
    def __init__(self, show):
        self.show = show

    def run(self):
        self.show(made)

Trainer(show=Show()).run()
== a class that its own methods call
class Agent:
    def __init__(self, held):
        self.held = held

    @classmethod
    def create(cls):
        return cls(made)

    def twin(self):
        return type(self)(self.held)

    def other(self):
        return self.__class__(held=self.held)

    def show(self):
        self.held.target  # is: made

class Derived(Agent):
    def tell(self):
        self.held.target  # is: made

Agent.create().twin().held.target  # is: made
Derived.create().other().held.target  # is: made
== the method of a list, under another name
class Subject:
    def __init__(self):
        self.callbacks = []

    def on_step(self, callback):
        self.callbacks.append(callback)

    def tell(self, value):
        for callback in self.callbacks:
            callback(value)

seen, subject = [], Subject()
subject.on_step(seen.append)
subject.tell(made)
seen[0].target  # is: made
== a class that its base lists
class Trainer:
    pass

class Agent(Trainer):
    def __init__(self, optimizer):
        self.optimizer = optimizer

def make(name, *given):
    table = {cls.__name__: cls for cls in Trainer.__subclasses__()}
    return table[name](*given)

agent = make("Agent", made)
agent.optimizer.target  # is: made
== a method by a name that begins so
class Callback:
    def on_start(self, started):
        started.target  # is: made

    def on_end(self, ended):
        ended.target  # is: made

    def off(self, other):
        other.target  # is: unknown

def each(callbacks, event):
    for callback in callbacks:
        getattr(callback, f"on_{event}")(made)
        getattr(callback, "on_" + event, print)(made)

each([Callback()], "end")
== what a generator is sent, and gives back
def steps():
    kept = None
    while True:
        kept = yield kept
        kept.target  # is: made

def others():
    other = yield
    other.target  # is: unknown

running = steps()
next(running)
running.send(made).target  # is: made
others().send(1)
== what a setter is given
class Agent:
    @property
    def optimizer(self):
        return self.held

    @optimizer.setter
    def optimizer(self, given):
        given.target  # is: made
        self.held = given

agent = Agent()
agent.optimizer = made
agent.optimizer.target  # is: made
== what is behind a mixin
class Clipped:
    def update(self, optimizer):
        return super().update(optimizer)

class Agent:
    def update(self, optimizer):
        optimizer.target  # is: made
        return optimizer

class ClippedAgent(Clipped, Agent):
    pass

ClippedAgent().update(made).target  # is: made
== the tables of tests
import pytest
from absl.testing import parameterized

ROWS = [pytest.param(made, 1, id="one"), (made, 2)]

@pytest.mark.parametrize("optimizer", [made, pytest.param(made, id="other")])
def test_one(optimizer, rate):
    optimizer.target  # is: made
    rate.target  # is: unknown

@pytest.mark.parametrize(("optimizer", "rate"), ROWS)
def test_two(rate, optimizer):
    optimizer.target  # is: made
    rate.target  # is: unknown

class Tests(parameterized.TestCase):
    @parameterized.parameters((1, made), {"optimizer": made})
    def test_three(self, rate, optimizer):
        optimizer.target  # is: made
        rate.target  # is: unknown

    @parameterized.named_parameters(("one", made), ("two", made))
    def test_four(self, optimizer):
        optimizer.target  # is: made
== the fixtures of pytest
import pytest

@pytest.fixture
def agent():
    return made

@pytest.fixture(scope="module")
def stepped(agent):
    yield agent.apply_gradient(grads)

def test_agent(agent, stepped):
    agent.target  # is: made
    stepped.target  # is: made
== the key by which a list is sorted
made_of_two = [made, made]
made_of_two.sort(key=lambda one: one.target)  # is: made
== special methods
class Agents:
    def __init__(self, optimizers):
        self.optimizers = optimizers

    def __getitem__(self, key):
        return self.optimizers[key]

    def __iter__(self):
        return iter(self.optimizers)

Agents([made])[0].target  # is: made
for optimizer in Agents([made]):
    optimizer.target  # is: made
"""


@each(HELD)
def test_what_containers_and_classes_hold(text: str) -> None:
    assert_answers(MAKE + text)
