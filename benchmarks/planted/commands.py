"""Faults in whole programs, each run as a command: by kind, the program, what to find in its new form, and what to put there."""

from __future__ import annotations

from benchmarks.planted.updates import Planted

TRAIN = "python train.py"
COMMANDS = {
    "accumulation": TRAIN,
    "adversaries": TRAIN,
    "convnet": TRAIN,
    "language": TRAIN,
    "large": TRAIN,
    "low_precision": TRAIN,
    "members": TRAIN,
    "package": "python main.py",
    "ppo": TRAIN,
    "q_learning": TRAIN,
    "regression": TRAIN,
    "scanning": TRAIN,
}
EDITED = {"package": "src/lab/settings.py"}
"""The file in which faults are planted, if it is another than train.py."""

GRADIENTS = "jax.tree_util.tree_map_with_path(lambda path, g: {}, jax.grad(loss_fn)(optimizer.params)))"
FROZEN_BIAS = GRADIENTS.format("g if g.size != 3 else 0 * g")
ONE_ELEMENT = GRADIENTS.format("g if g.size != 200_000 else g.at[7, 7].set(0.0)")
FROZEN_TABLE_BIAS = (
    "optax.chain(optax.adamw(0.01, weight_decay=1e-3), optax.masked(optax.set_to_zero(), "
    "lambda params: jax.tree_util.tree_map(lambda p: p.size == 400, params)))"
)

FAULTS: dict[str, list[Planted]] = {
    "rate": [
        ("members", "tx=optax.adam(0.02)", "tx=optax.adam(0.020002)"),
        ("package", "RATE = 0.05", "RATE = 0.051"),
    ],
    "beta": [
        (
            "members",
            "inner_def = Momentum(learning_rate=0.05, beta=0.8)",
            "inner_def = Momentum(learning_rate=0.05, beta=0.9)",
        ),
        ("scanning", "b1=0.7", "b1=0.70001"),
        ("accumulation", "b1=0.8", "b2=0.8"),
    ],
    "epsilon": [
        ("q_learning", "eps=1e-4, eps_in_sqrt=False", "eps=1e-4"),
        ("scanning", ", eps=1e-6", ""),
    ],
    "decay": [
        ("large", "weight_decay=1e-3", "weight_decay=1.01e-3"),
        ("convnet", "optax.add_decayed_weights(1e-3), ", ""),
        ("regression", "weight_decay=0.01", "weight_decay=0.010001"),
    ],
    "decay's groups exchanged": [
        (
            "regression",
            "decayed = lambda path, _: 'kernel' in path\n    others =",
            "others = lambda path, _: 'kernel' in path\n    decayed =",
        ),
        (
            "language",
            "matrices = lambda path, _: is_decayed(path)\n    vectors =",
            "vectors = lambda path, _: is_decayed(path)\n    matrices =",
        ),
    ],
    "decay's groups in a helper": [
        ("language", "or 'embedding' in path", ""),
        ("regression", "return str(selected[0])", 'return "0"'),
    ],
    "clip threshold": [
        ("language", "optax.clip(0.1)", "optax.clip(0.1001)"),
        (
            "ppo",
            "g / jnp.maximum(1.0, norm / 0.05)",
            "jnp.clip(g, -0.05, 0.05)",
        ),
        (
            "convnet",
            "optax.clip_by_global_norm(0.5)",
            "optax.clip_by_global_norm(0.51)",
        ),
    ],
    "schedule off by one": [
        (
            "regression",
            "(others, optax.adam(learning_rate=schedule,",
            "(others, optax.adam(learning_rate=lambda step: schedule(step + 1),",
        ),
        (
            "language",
            "adamw(learning_rate_fn, b2",
            "adamw(lambda step: learning_rate_fn(step + 1), b2",
        ),
        ("regression", "step >= drop_at", "step > drop_at"),
        ("language", "step < WARMUP", "step <= WARMUP + 1"),
    ],
    "sign": [
        (
            "q_learning",
            "wanted = reward + discount * best",
            "wanted = reward - discount * best",
        ),
        ("ppo", "return -jnp.mean(jnp.minimum(", "return jnp.mean(jnp.minimum("),
    ],
    "order of a chain": [
        (
            "convnet",
            "optax.clip_by_global_norm(0.5), optax.add_decayed_weights(1e-3)",
            "optax.add_decayed_weights(1e-3), optax.clip_by_global_norm(0.5)",
        ),
    ],
    "leaf frozen beside a large one": [
        ("large", "jax.grad(loss_fn)(optimizer.params))", FROZEN_BIAS),
        ("large", "optax.adamw(0.01, weight_decay=1e-3)", FROZEN_TABLE_BIAS),
        (
            "large",
            "optimizer.params))",
            "optimizer.params)).replace(step=optimizer.step)",
        ),
        ("large", "jax.grad(loss_fn)(optimizer.params))", ONE_ELEMENT),
    ],
    "twins swapped": [
        ("adversaries", "params=init_params(0)", "params=init_params(1)"),
        (
            "adversaries",
            "return generator, critic\n\n\n@jax.jit",
            "return critic, generator\n\n\n@jax.jit",
        ),
        (
            "adversaries",
            "params=init_params(1), tx=optax.adam(learning_rate=0.01, b1=0.5)",
            "params=init_params(1), tx=optax.adam(learning_rate=0.01, b1=0.51)",
        ),
    ],
    "state not carried": [
        (
            "adversaries",
            "critic = critic.replace(params=",
            "critic = critic.replace(opt_state=critic.tx.init(critic.params), params=",
        ),
        (
            "convnet",
            "serialization.from_bytes(create()[0], file.read())",
            "create()[0].replace(params=serialization.from_bytes(create()[0], file.read()).params)",
        ),
        ("members", "params, state = all_steps", "params, _ = all_steps"),
    ],
    "count off by one": [
        ("scanning", "count >= 2", "count >= 1"),
        ("scanning", "optimizer.step < 24", "optimizer.step < 23"),
        (
            "q_learning",
            "jnp.asarray(state.optimizer.step, jnp.int32)",
            "jnp.asarray(state.optimizer.step + 1, jnp.int32)",
        ),
    ],
    "number of steps": [
        ("ppo", "epochs=3", "epochs=2"),
        ("accumulation", "batches=36", "batches=39"),
    ],
    "loss": [
        ("q_learning", "jnp.abs(error) < 1.0", "jnp.abs(error) < 0.5"),
        ("low_precision", "jnp.mean((hidden", "jnp.sum((hidden"),
        ("ppo", "return 0.5 * jnp.mean", "return jnp.mean"),
    ],
    "accumulation divided wrongly": [
        ("accumulation", "g / EVERY", "g / (EVERY + 1)"),
        (
            "accumulation",
            "return optimizer.apply_gradients(grads=grads), zeros_like(sums)",
            "return optimizer.apply_gradients(grads=grads), sums",
        ),
    ],
    "axis name": [
        ("convnet", "grads = jax.lax.pmean(grads, axis_name='batch')", "pass"),
        ("convnet", "momentum=0.9, axis_name='batch')(x)", "momentum=0.9)(x)"),
    ],
    "average of parameters": [
        ("regression", "0.9 * mean + 0.1 * new", "0.91 * mean + 0.09 * new"),
        ("regression", "ema, optimizer.params)\n    return", "ema, ema)\n    return"),
    ],
    "target network": [
        ("q_learning", "PERIOD = 5", "PERIOD = 6"),
        (
            "q_learning",
            "steps % PERIOD == 0, new, old",
            "(steps + 1) % PERIOD == 0, new, old",
        ),
    ],
    "batch statistics": [
        (
            "convnet",
            "optimizer, batch_stats, accuracy = train_step",
            "optimizer, _, accuracy = train_step",
        ),
        ("convnet", "train, momentum=0.9", "train, momentum=0.99"),
    ],
    "random key": [
        ("regression", "key, dropout_key = jax.random.split(key)", "dropout_key = key"),
        ("language", "jax.random.fold_in(key, step)", "key"),
    ],
    "metrics": [
        ("convnet", "logits.argmax(-1) == labels", "logits.argmin(-1) == labels"),
        ("language", "jnp.exp(metrics['loss'])", "jnp.exp2(metrics['loss'])"),
        ("regression", "losses.append(float(loss))", "losses.append(float(loss) / 16)"),
    ],
    "dtype": [
        (
            "low_precision",
            "tx=optax.sgd(0.1, momentum=0.9)",
            "tx=optax.sgd(0.1, momentum=0.9, accumulator_dtype=jnp.float32)",
        ),
        ("low_precision", "jnp.ones(8, jnp.float16)", "jnp.ones(8, jnp.bfloat16)"),
        (
            "accumulation",
            "optax.adam(learning_rate=0.03, b1=0.8)",
            "optax.adam(learning_rate=0.03, b1=0.8, mu_dtype=jnp.bfloat16)",
        ),
    ],
}
