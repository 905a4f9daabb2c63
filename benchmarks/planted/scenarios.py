"""Faults in the training loops of the fixtures, by kind: the fixture, what to find in `after.py`, and what to put there."""

from __future__ import annotations

from benchmarks.planted.updates import Planted

FAULTS: dict[str, list[Planted]] = {
    "rate": [
        (
            "pmap_replicate",
            "base_rate / (1.0 + step)",
            "base_rate / (1.0 + step) * 1.0001",
        ),
        (
            "carried_by_loops",
            "(optimizer, rate * 0.97)",
            "(optimizer, rate * 0.970001)",
        ),
        (
            "group_rates",
            "jnp.where(step < thaw_at, 0.0, 0.02), 0.1 / (1 + step)",
            "0.1 / (1 + step), jnp.where(step < thaw_at, 0.0, 0.02)",
        ),
    ],
    "schedule off by one": [
        (
            "trainer_class",
            "optimizer.step // self.decay_steps",
            "(optimizer.step + 1) // self.decay_steps",
        ),
        (
            "half_precision_pmap",
            "lr = learning_rate_fn(step)",
            "lr = learning_rate_fn(step + 1)",
        ),
        (
            "schedule_by_loop_counter",
            "enumerate(batches, first_step)",
            "enumerate(batches, first_step + 1)",
        ),
        (
            "learning_rate_schedule",
            "lr = learning_rate_fn(step)",
            "lr = learning_rate_fn(step + 1)",
        ),
        (
            "schedule_made_late",
            "learning_rate=learning_rate_fn, momentum=0.8",
            "learning_rate=lambda step: learning_rate_fn(step + 1), momentum=0.8",
        ),
    ],
    "beta": [
        (
            "soft_actor_critic",
            "tx=optax.adam(learning_rate=temp_lr, b1=0.5)",
            "tx=optax.adam(learning_rate=temp_lr)",
        ),
        (
            "private_training",
            "GradientNoise(Momentum(beta=0.8)",
            "GradientNoise(Momentum(beta=0.8001)",
        ),
    ],
    "decay": [
        (
            "decay_after_step",
            "0.0 if path[-1] in ('bias', 'scale') else weight_decay",
            "0.0 if path[-1] in ('bias',) else weight_decay",
        ),
        ("focus_and_restart", "p * (1 - 1e-3)", "p * (1 - 1.0001e-3)"),
        (
            "wrapped_definition",
            "decay = 1e-3 / (1.0 + optimizer.opt_state.step)",
            "decay = 1e-3 / (2.0 + optimizer.opt_state.step)",
        ),
    ],
    "clip": [
        (
            "per_example_gradients",
            "optimizer.params, x, y), 1.0)",
            "optimizer.params, x, y), 1.01)",
        ),
        (
            "clip_beside_chain",
            "jnp.minimum(1.0, 0.5 / (norm + 1e-6))",
            "jnp.minimum(1.0, 0.5 / norm)",
        ),
        ("private_training", "max_norm=0.5", "max_norm=0.6"),
        (
            "clip_by_global_norm",
            "grads, norm = clip_by_global_norm(grads, max_norm)",
            "_, norm = clip_by_global_norm(grads, max_norm)",
        ),
    ],
    "sign": [
        (
            "soft_actor_critic",
            "- jnp.exp(log_alpha_opt.params) * next_log_prob",
            "+ jnp.exp(log_alpha_opt.params) * next_log_prob",
        ),
        (
            "three_optimizers",
            "(entropy - target_entropy)",
            "(target_entropy - entropy)",
        ),
    ],
    "loss": [
        ("resume_from_bytes", "** 1.5", "** 2"),
        ("td_zero", "(jax.lax.stop_gradient(target) - value", "(target - value"),
        ("steps_inside_loss", "last = one(one(first))", "last = one(first)"),
        ("maml", "for _ in range(2):", "for _ in range(1):"),
        (
            "straight_through",
            "x + jax.lax.stop_gradient(jnp.round(x) - x)",
            "jnp.round(x) + 0.5 * (x - jax.lax.stop_gradient(x))",
        ),
        (
            "radiance_field",
            "loss + loss_c + 1e-3 * weight_l2",
            "loss + loss_c + 1.001e-3 * weight_l2",
        ),
    ],
    "mean and sum": [
        ("per_example_gradients", "jnp.mean(g, axis=0)", "jnp.sum(g, axis=0)"),
        (
            "state_around_optimizer",
            "grads = jax.lax.pmean(grads",
            "grads = jax.lax.psum(grads",
        ),
        ("averaged_optimizers", "return (x + y) / 2", "return x + y"),
    ],
    "accumulation divided wrongly": [
        (
            "gradient_accumulation",
            "g / accumulator.count",
            "g / (accumulator.count + 1)",
        ),
        (
            "gradient_accumulation",
            "return stepped, new_accumulator(stepped.params)",
            "return stepped, accumulator._replace(count=jnp.zeros((), int))",
        ),
        ("private_training", "lambda g: g / self.n", "lambda g: g"),
        (
            "gradient_accumulation",
            "accumulator.count >= every",
            "accumulator.count > every",
        ),
    ],
    "count off by one": [
        ("ensemble", "step = self.step + 1", "step = self.step + 2"),
        (
            "derived_rule",
            "OptimizerState(jnp.zeros([], jnp.int32), param_states)",
            "OptimizerState(jnp.ones([], jnp.int32), param_states)",
        ),
        (
            "bare_definition",
            "optimizer.replace(step=0, opt_state=optimizer.tx.init(optimizer.params))",
            "optimizer.replace(step=0)",
        ),
        (
            "moment_surgery",
            "OptimizerState(step=0, param_states=states)",
            "OptimizerState(step=1, param_states=states)",
        ),
        (
            "schedule_by_loop_counter",
            "step=state.step + 1, optimizer",
            "step=state.step + 2, optimizer",
        ),
    ],
    "state not carried": [
        (
            "bare_definition",
            "self.params, self.opt_state = self.optimizer_def",
            "self.params, _ = self.optimizer_def",
        ),
        (
            "state_around_optimizer",
            "checkpoints.restore_checkpoint(workdir, create_train_state(params, config))",
            "create_train_state(params, config).replace(params=state.params)",
        ),
        (
            "moment_surgery",
            "return child.replace(params=parent.params, opt_state=state)",
            "return child.replace(params=parent.params)",
        ),
        (
            "averaged_optimizers",
            "return first.replace(params=target, opt_state=moments)",
            "return first.replace(params=target)",
        ),
        (
            "resume_from_bytes",
            "optimizer = serialization.from_bytes(empty, data)",
            "optimizer = empty.replace(params=serialization.from_bytes(empty, data).params)",
        ),
        (
            "dynamic_scale",
            "return state.replace(optimizer=new_optimizer, dynamic_scale=dynamic_scale), loss",
            "return state.replace(optimizer=new_optimizer), loss",
        ),
    ],
    "a step not taken back": [
        ("finite_guard", "jnp.where(finite, new, old)", "new"),
        (
            "schedule_by_loop_counter",
            "finite = jnp.all(jnp.isfinite(grad['w']))",
            "finite = True",
        ),
        (
            "dynamic_scale",
            "functools.partial(jnp.where, is_finite)",
            "lambda new, old: new",
        ),
    ],
    "average of parameters": [
        ("extra_state", "0.99 * ema + 0.01 * p", "0.98 * ema + 0.02 * p"),
        (
            "state_beside_optimizer",
            "0.9 * mean + 0.1 * leaf, state.average, optimizer.params",
            "0.9 * mean + 0.1 * leaf, state.average, state.optimizer.params",
        ),
        (
            "decay_after_step",
            "ema_decay * e + (1 - ema_decay) * p",
            "ema_decay * e + (1.001 - ema_decay) * p",
        ),
    ],
    "target network": [
        ("target_network", ".sync(0.1)", ".sync(0.101)"),
        ("soft_actor_critic", "p * tau + tp * (1 - tau)", "p * (1 - tau) + tp * tau"),
        (
            "target_network",
            "new + (1 - rate) * old, self.optimizer.params",
            "new + (1 - rate) * old, self.target",
        ),
    ],
    "period": [
        ("averaged_optimizers", "number % 10 == 9", "number % 10 == 8"),
        (
            "wrapped_definition",
            "due = fast.step % self.period == 0",
            "due = state.step % self.period == 0",
        ),
        ("replica_moments", "number % period == 0", "number % (period + 1) == 0"),
        ("moment_surgery", "elif number == 35:", "elif number == 36:"),
    ],
    "batch statistics": [
        ("batch_stats", "(_, state), grads", "(_, _), grads"),
        ("batch_stats", "decay: float = 0.99", "decay: float = 0.9"),
        (
            "vmap_batch_norm",
            "return optimizer.apply_gradients(grads=grads), batch_stats",
            "return optimizer.apply_gradients(grads=grads), jax.tree_util.tree_map(jnp.zeros_like, batch_stats)",
        ),
        ("vmap_batch_norm", "momentum=0.9", "momentum=0.99"),
    ],
    "random key": [
        (
            "private_training",
            "return new_params, new_state.replace(param_states=(key, new_state.param_states))",
            "return new_params, new_state.replace(param_states=(state.param_states[0], new_state.param_states))",
        ),
        (
            "soft_actor_critic",
            "critic_key, actor_key = jax.random.split(key)",
            "critic_key = actor_key = key",
        ),
        (
            "radiance_field",
            "return new_state, stats, rng",
            "return new_state, stats, key",
        ),
    ],
    "axis name": [
        (
            "replica_moments",
            "target = lax.pmean(optimizer.params, axis_name='batch')",
            "target = optimizer.params",
        ),
        ("pmap_replicate", "grad = jax.lax.pmean(grad, 'batch')", "pass"),
        (
            "vmap_batch_norm",
            "axis_name='batch')\n    x = nn.Dense",
            "axis_name=None)\n    x = nn.Dense",
        ),
    ],
    "metrics": [
        (
            "mnist_momentum",
            "metrics = eval_step(optimizer.params, test_ds)",
            "metrics = eval_step(optimizer.params, train_ds)",
        ),
        ("rate_on_plateau", "self.halved + 1, 0", "self.halved + 2, 0"),
        ("any_optimizer", "return {'norm': jnp.sqrt(sum(", "return {'norm': (sum("),
    ],
    "predicate": [
        ("focus_and_restart", 'path.startswith("/head")', '"w" in path'),
    ],
    "members or devices mixed up": [
        ("ensemble", "x[i % 2::2], y[i % 2::2]", "x[::2], y[::2]"),
        ("ensemble", "learning_rate * (i + 1)", "learning_rate"),
        (
            "two_players",
            "optimizer_j.apply_gradients(grads=grad)",
            "optimizer_j.apply_gradients(grads=jax.tree_util.tree_map(jnp.negative, grad))",
        ),
        (
            "federated_rounds",
            "sum(leaves) / len(leaves)",
            "sum(leaves) / (len(leaves) + 1)",
        ),
    ],
}
