"""Statements that became too long are broken, and keep the comments between their arguments."""

from textwrap import dedent, indent

from codemods import Source, migrate


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
