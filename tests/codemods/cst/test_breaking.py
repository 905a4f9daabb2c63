"""Statements that became too long are broken, and keep the comments between their arguments."""

from __future__ import annotations

from textwrap import dedent, indent

from codemods import Source, migrate

BEFORE = dedent("""\
    from flax import optim


    def make(params, config):
        optimizer_def = optim.Adam(learning_rate=config.rate,  # the base rate
                                   beta1=0.9, beta2=0.98,  # as in the paper
                                   eps=1e-9, weight_decay=0.1)
        return optimizer_def.create(params)


    def train(params, config, rates, grads):
        optimizer = make(params, config)
        for rate, grad in zip(rates, grads):
            optimizer = optimizer.apply_gradient(grad, learning_rate=rate)
        return optimizer
    """)
DEFINITION = dedent("""\
    optimizer_def = optax.chain(optax.scale_by_adam(
                                    b1=0.9,
                                    b2=0.98,  # as in the paper
                                    eps=1e-9,
                                ),
                                optax.add_decayed_weights(0.1),
                                optax.inject_hyperparams(optax.scale_by_learning_rate)(
                                    learning_rate=config.rate
                                )  # the base rate
                                )
    """)


def test_arguments_with_comments_behind_them_keep_their_lines() -> None:
    [result] = migrate([Source("train.py", BEFORE.encode())])
    assert indent(DEFINITION, "    ") in result.after.decode()
    assert {site.status for site in result.sites} == {"rewritten"}


def test_a_call_behind_one_that_is_broken_stays_whole() -> None:
    code = dedent("""\
        import jax
        from flax import optim


        def start(params_cpu, config):
          return jax.jit(optim.Momentum(config.rate, beta=0.8).create)(params_cpu)
        """)
    [result] = migrate([Source("train.py", code.encode())])
    start = dedent("""\
        return jax.jit(
            lambda params: train_state.TrainState.create(
                apply_fn=None,
                params=params,
                tx=optax.sgd(config.rate, momentum=0.8)))(params_cpu)
        """)
    assert indent(start, " " * 2) in result.after.decode()
