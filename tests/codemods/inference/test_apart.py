"""What one program makes never gets to another: helpers, containers and classes join nobody."""

from tests.codemods.inference.asking import assert_answers, each

MADE = """
adam = optim.Adam().create(params)  # makes: adam
sgd = optim.Momentum().create(params)  # makes: sgd
"""

APART = """
== pmap of partial
def step(model, rate, optimizer, batch):
    return optimizer.apply_gradient(batch), rate(0)

p_step = jax.pmap(partial(step, model, rate=lambda step: 0.1), axis_name="batch")
p_step(optimizer=adam, batch=1)[0].target  # is: adam
p_step(optimizer=sgd, batch=1)[0].target  # is: sgd
== branches of cond
def guarded(good, optimizer, other):
    return lax.cond(good, lambda pair: pair[0], lambda pair: pair[0], (optimizer, other))

guarded(True, adam, sgd).target  # is: adam
guarded(True, sgd, adam).target  # is: sgd
== elements of a tuple, and those of a dict by constant key
pair = (adam, sgd)
pair[0].target  # is: adam
left, right = pair
right.target  # is: sgd
optimizers = {"actor": adam, "critic": sgd}
optimizers["actor"].target  # is: adam
optimizers.get("critic").target  # is: sgd
optimizers[name].target  # is: adam | sgd
stored = {}
stored["actor"] = adam
stored["critic"] = sgd
stored["critic"].target  # is: sgd
"""

TOGETHER = """
== one variable in an expression that may not be evaluated
optimizer = optim.Adam().create(params)  # makes: first
fresh and (optimizer := optim.Adam().create(params))  # makes: second
optimizer.target  # is: first | second
"""


@each(APART)
def test_stays_apart(text: str) -> None:
    assert_answers(MADE + text)


@each(TOGETHER)
def test_meets(text: str) -> None:
    assert_answers(text)
