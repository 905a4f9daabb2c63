"""What functions of JAX, Flax and Python hand through, and what they make of it."""

from tests.codemods.inference.asking import assert_answers, each

MAKE = """
made = optim.Adam().create(params)  # makes: made
"""

HANDED = """
== arrays that are concatenated
np.concatenate([made.target, made.target]).target  # is: numpy.concatenate()
== arithmetic on what may be a list
data = [[1.0, 2.0], [3.0, 4.0]]
(data * scale).target  # is: unknown
(data - jnp.mean(data)).target  # is: jax.numpy.ndarray()
== arithmetic on an instance
class Number:
    def __init__(self, value):
        self.value = value

class Vector(Number):
    def __add__(self, other):
        return self

(Number(1) * 2).target  # is: unknown
(Vector(1) + 2).target  # is: Vector
== what a scan stacks
_, losses = lax.scan(lambda carry, batch: (carry, 0.0), made, batches)
losses.target  # is: unknown
== a queue that a thread fills
import queue
import threading

made = optim.Adam().create(params)  # makes: made
box = queue.Queue()
threading.Thread(target=box.put, args=(made,)).start()
box.get().target  # is: made
== pmap, vmap, checkpoint and named_call
def step(optimizer):
    return optimizer

jax.pmap(step)(made).target  # is: made
jax.vmap(step, in_axes=0)(made).target  # is: made
jax.checkpoint(step)(made).target  # is: made
jax.named_call(step, name="step")(made).target  # is: made
== grad with an auxiliary output
def loss_fn(params):
    return 0.0, made

grads, aux = jax.grad(loss_fn, has_aux=True)(made.target)
aux.target  # is: made
== scan over optimizers
_, stacked = lax.scan(lambda carry, o: (carry, o), 0, made)
stacked.target  # is: made
== cond
def yes(optimizer):
    return optimizer.apply_gradient(grads)

lax.cond(good, yes, lambda o: o, made).target  # is: made
lax.cond(good, yes, lambda o: o, operand=made).target  # is: made
lax.cond(good, made, yes, made, lambda o: o).target  # is: made
lax.cond(good, lambda: made, lambda: made).target  # is: made
== switch
branches = [lambda o: o, lambda o: o.apply_gradient(grads)]
lax.switch(index, branches, made).target  # is: made
== lax.map
lax.map(lambda o: o, made).target  # is: made
== methods of the optimizer
made.apply_gradient(grads).target  # is: made
made.apply_gradient(grads, learning_rate=0.1).target  # is: made
made.replace(target=params).target  # is: made
made.restore_state(state).target  # is: made
made.replicate().unreplicate().target  # is: made
dataclasses.replace(made, target=params).target  # is: made
made.optimize(loss_fn)[0].target  # is: made
== reduce
functools.reduce(lambda o, batch: o.apply_gradient(batch), batches, made).target  # is: made
functools.reduce(lambda total, o: total, [made], 0.0).target  # is: unknown
functools.reduce(lambda first, o: first, [made]).target  # is: made
== map, filter, sorted, reversed
[*map(lambda o: o, [made])][0].target  # is: made
list(filter(None, [made]))[0].target  # is: made
sorted([made], key=id)[0].target  # is: made
sorted({"a": made})[0].target  # is: unknown
next(reversed([made])).target  # is: made
max([made], key=id).target  # is: made
next(iter([made])).target  # is: made
== zip and enumerate
for optimizer, batch in zip([made], batches):
    optimizer.target  # is: made
    batch.target  # is: unknown
for index, optimizer in enumerate((made,)):
    optimizer.target  # is: made
    index.target  # is: unknown
for index, (optimizer, batch) in enumerate(zip([made], batches)):
    optimizer.target  # is: made
== itertools
next(itertools.cycle([made])).target  # is: made
list(itertools.chain([made], []))[0].target  # is: made
next(itertools.repeat(made)).target  # is: made
== operator
operator.itemgetter("optimizer")({"optimizer": made}).target  # is: made
operator.methodcaller("apply_gradient", grads)(made).target  # is: made
several = operator.attrgetter("state", "optimizer_def")(made)
several[0].step  # is: state made
several[1].hyper_params  # is: definition made
== a single dispatch
@functools.singledispatch
def step(batch, optimizer):
    return optimizer

@step.register(int)
def step_int(batch, optimizer):
    return optimizer

step(1, made).target  # is: made
"""

GIVEN_TO_FUNCTIONS = """
== those in a slice
steps = [other, step]
for one in steps[1:]:
    one(made)
== the others in a list
first, *others = [other, other, step]
for one in others:
    one(made)
== one that four functions have given back
def a(function):
    return function

def b(function):
    return function

def c(function):
    return function

def d(function):
    return function

a(b(c(d(step))))(made)
== those in a sorted table
table = {"a": other, "b": step}
for name, one in sorted(table.items())[:2]:
    one(made)
== those in a table that another is merged into
table = {}
table.update({"step": step})
table["step"](made)
"""
CALLED = """
def other(optimizer):
    return None

def step(optimizer):
    return optimizer.target  # is: made

"""


@each(HANDED)
def test_what_is_handed_through(text: str) -> None:
    assert_answers(MAKE + text)


@each(GIVEN_TO_FUNCTIONS)
def test_a_function_that_stands_in_a_container_is_given_it(text: str) -> None:
    assert_answers(MAKE + CALLED + text)
