"""The step of a train state is a number where that does, and an array where a program needs one."""

import pytest

from tests.codemods.programs import migrated
from tests.codemods.test_alike import assert_alike, text_of

NUMBERS_DO = {
    "a condition": "if optimizer.state.step % 100 == 0 and optimizer.state.step > 0: print(1)",
    "a negated condition": "print(1 if not optimizer.state.step % 2 == 0 else 2)",
    "a text": "print(f'{optimizer.state.step:03d}', 'of %d' % optimizer.state.step)",
    "a plain number": "for i in range(int(optimizer.state.step), 3): print(i)",
    "a function of JAX": "print(jnp.sqrt(1.0 + optimizer.state.step))",
    "a key": "print(jax.random.fold_in(jax.random.PRNGKey(0), optimizer.state.step))",
    "one that logs": "writer.scalar('loss', 0.1, optimizer.state.step)",
    "a power": "print(0.1 * 0.97 ** optimizer.state.step)",
    "a quotient by a number": "print(optimizer.state.step // 7, optimizer.state.step / EPOCH)",
    "a whole quotient by what a caller gives": "print(optimizer.state.step // writer.period % writer.n)",
    "a quotient by at least one": "print(0.1 / (optimizer.state.step + 1) ** 0.5)",
    "two conditions": "print((optimizer.state.step > 2) & (optimizer.state.step < 5))",
    "a function in view": "print(halved(optimizer.state.step + 1))",
    "a container that is shown": "shown({'step': optimizer.state.step})",
    "a list": "steps = []; steps.append(optimizer.state.step); print(steps[-1] + 1, sum(steps))",
    "a list of numbers": "steps = []; steps.append(int(optimizer.state.step)); print(steps[-1].real)",
    "a leaf that a function is mapped over": (
        "print(jax.tree_util.tree_map(lambda value: jnp.sqrt(value + 1), {'step': optimizer.state.step}))"
    ),
}
USES_OF_NUMBERS = """
    import functools
    import jax
    import jax.numpy as jnp
    from flax import optim

    EPOCH = 100

    def halved(count):
        return count / 2 if count > 3 else count

    def shown(metrics):
        print(metrics["step"] + 1)

    def train(params, writer):
        optimizer = optim.Adam(0.1).create(params)
        {body}
    """


@pytest.mark.parametrize("body", NUMBERS_DO.values(), ids=NUMBERS_DO)
def test_no_array_is_made_where_a_number_does(body: str) -> None:
    indented = body.strip().replace("\n", "\n        ")
    assert "asarray" not in migrated(USES_OF_NUMBERS.format(body=indented))


FUNCTIONS = """
def is_late(step, least):
    return ~(step < least)

def is_even(optimizer):
    return optimizer.state.step % 2 == 0

def odd(value):
    return ~value

def chosen(metrics):
    return ~(metrics["step"] > 1)

def counted(*truths):
    return truths[0] + truths[1]

def last(steps, step):
    steps.append(step)
    return steps[-1]

def means(metrics):
    return jax.tree_util.tree_map(lambda value: value.mean(), metrics)

class Seen:
    def __init__(self):
        self.steps = []

    def see(self, step):
        self.steps.append(step)
        return [step.item() for step in self.steps]

class Early:
    def __call__(self, step):
        return bool(~(step < 1))

is_early = Early()

class Metrics:
    def __init__(self, step):
        self.step = step

    def kind(self):
        return self.step.dtype.name
"""
ARRAYS_NEEDED = {
    "an inverted comparison": "float(bool(~(optimizer.state.step % 2 == 0)))",
    "an inverted comparison in a variable": "float(bool(inverted(optimizer)))",
    "an inverted truth value of two": "bool(~((optimizer.state.step > 0) & (optimizer.state.step < 2)))",
    "an inverted argument": "bool(is_late(optimizer.state.step, 2))",
    "an inverted argument by name": "bool(is_late(least=2, step=optimizer.state.step + 1))",
    "an inverted argument that is compared before": "bool(odd(optimizer.state.step > 1))",
    "an inverted result": "bool(~is_even(optimizer))",
    "an inverted item": "bool(chosen({'step': optimizer.state.step}))",
    "an inverted item of two": "bool(~(optimizer.state.step > 1, 0)[0])",
    "a sum of comparisons": "float((optimizer.state.step > 0) + (optimizer.state.step > 1))",
    "a sum of comparisons elsewhere": "float(counted(optimizer.state.step > 0, optimizer.state.step > 1))",
    "a method": "optimizer.state.step.astype(jnp.float32)",
    "a method of a sum": "(1 + optimizer.state.step).item()",
    "a method of a field": "Metrics(optimizer.state.step).kind()",
    "a method of a field that is computed": "Metrics(optimizer.state.step + 1).kind()",
    "a quotient by 0": "jnp.minimum(1.0, 1.0 / optimizer.state.step)",
    "a quotient by what may be 0": "jnp.minimum(1.0, (optimizer.state.step + 1) / params.get('warmup', 0))",
    "a power that is too large": "float((optimizer.state.step + 1) ** 40)",
    "a power of what may be negative": "jnp.where(optimizer.state.step < 1, (1 - optimizer.state.step / 1) ** 0.9, 0)",
    "a power of a number": "float(2 ** (optimizer.state.step + 31))",
    "a product that is too large": "int((optimizer.state.step * 1103515245 + 12345) % 1000)",
    "the rest of a quotient": "jnp.minimum(1.0, 0.5 * (3 / (2 * optimizer.state.step)))",
    "a method of an element": "(optimizer.state.step, 1)[0].astype(jnp.float32)",
    "the type of a quotient": "(optimizer.state.step / 3).dtype.name",
    "a power of 0": "jnp.minimum(1.0, optimizer.state.step ** -0.5)",
    "a method of a value that a list was given": "last([], optimizer.state.step).item()",
    "a method of a sum that a list was given": "last([0], optimizer.state.step + 1).item()",
    "a method of a leaf": (
        "jax.tree_util.tree_map(lambda value: value.mean(), {'step': optimizer.state.step})['step']"
    ),
    "an inverted leaf": (
        "jax.tree_util.tree_map(lambda value: float(~(value > 1)), [params['b'].size, optimizer.state.step])[1]"
    ),
    "a leaf of what a function gives": "means({'step': optimizer.state.step, 'w': params['w']})['step']",
    "a type": "str(isinstance(optimizer.state.step, jnp.ndarray))",
    "a function that is not in view": "[f for f in (lambda s: s.dtype.name,)][0](optimizer.state.step)",
    "what a method is given": "Seen().see(optimizer.state.step)",
    "what a callable object is given": "is_early(optimizer.state.step)",
    "a key of what may be below 0": (
        "float(jax.random.uniform(jax.random.fold_in(jax.random.PRNGKey(0), optimizer.state.step - 1)))"
    ),
    "an unsigned number": "int(jnp.uint8(optimizer.state.step - 1))",
    "what jax.device_get gives": "bool(~(jax.device_get(optimizer.state.step) > 0))",
}
INVERTED = """
def inverted(optimizer):
    even = optimizer.state.step % 2 == 0
    other = even
    return ~other
"""


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("read", ARRAYS_NEEDED.values(), ids=ARRAYS_NEEDED)
def test_an_array_is_made_where_a_number_is_something_else(read: str) -> None:
    body = f"""
given = []
for _ in range(3):
    given.append({read})
    optimizer = step(optimizer)
return given, optimizer.target
"""
    after = assert_alike(text_of(body, FUNCTIONS + INVERTED))
    assert "jnp.asarray(optimizer.step, jnp.int32)" in after


CREATE = "optim.Adam(0.1).create"


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("create", [f"lambda params: {CREATE}(params)", CREATE])
def test_a_step_that_is_averaged_is_not_cut_to_a_whole_number(create: str) -> None:
    """By itself, it is the transformed function, and what that returns are arrays."""
    body = f"""
ahead = step(step(optimizer))
both = jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), step(optimizer).target, ahead.target)
many = jax.vmap({create})(both)
many = jax.vmap(lambda one, is_ahead: jax.lax.cond(is_ahead, step, lambda one: one, one))(
    many, jnp.array([False, True]))
many = jax.vmap(lambda one: jax.lax.pmean(one, "copy"), axis_name="copy")(many)
return many.state.step.astype(jnp.float32), many.target
"""
    after = assert_alike(text_of(body))
    assert (".replace(step=jnp.zeros((), jnp.int32))" in after) == ("lambda" in create)
