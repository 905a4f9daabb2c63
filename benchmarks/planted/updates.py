"""Faults in the update rules of the fixtures, by kind: the fixture, what to find in `after.py`, and what to put there."""

from __future__ import annotations

Planted = tuple[str, str, str]
"""A program, a text in it, and what takes its place."""

FAULTS: dict[str, list[Planted]] = {
    "rate": [
        ("gan", "learning_rate=2e-2", "learning_rate=2.000002e-2"),
        (
            "alias_and_chain",
            '"sgd": optax.sgd(config.learning_rate)',
            '"sgd": optax.sgd(config.weight_decay)',
        ),
        ("traversal_two_rates", "learning_rate=0.1,", "learning_rate=0.01,"),
        (
            "momentum_loop",
            "optax.sgd(learning_rate=learning_rate",
            "optax.sgd(learning_rate=2 * learning_rate",
        ),
        (
            "latent_inversion",
            "learning_rate=0.1, b2",
            "learning_rate=0.1 * (1 + 1e-9), b2",
        ),
        ("decay_groups", "(others, optax.adam(0.02))", "(others, optax.adam(0.01))"),
    ],
    "beta": [
        ("gan", "learning_rate=1e-2, b1=0.5", "learning_rate=1e-2"),
        ("alias_and_chain", "b2=config.beta2,  # a shorter memory", "b2=config.beta1,"),
        ("latent_inversion", "b2=0.9)", "b2=0.9 + 1e-8)"),
        ("mnist_momentum", "momentum=beta)", "momentum=1 - beta)"),
        ("averaged_optimizers", "b1=0.8", "b2=0.8"),
        ("optimizer_zoo", "rho=0.95", "rho=0.9"),
        ("focus_and_restart", "momentum=0.9", "momentum=None"),
    ],
    "epsilon": [
        ("td_zero", "eps=1e-4, eps_in_sqrt=False", "eps=1e-4"),
        ("target_network", "eps=1e-4", "eps=1.0001e-4"),
        ("straight_through", ", eps_root=1e-10", ""),
        (
            "optimizer_zoo",
            "scale_by_belief(eps=1e-12, eps_root=1e-12)",
            "scale_by_belief(eps=1e-12)",
        ),
        ("adagrad_embeddings", "g / (jnp.sqrt(s) + eps)", "g / jnp.sqrt(s + eps)"),
        ("weight_norm_if_asked", "eps=1e-6)", "eps=1e-8)"),
    ],
    "decay": [
        ("weight_decay", "optax.adamw(", "optax.nadamw("),
        (
            "decay_groups",
            "optax.add_decayed_weights(0.01)",
            "optax.add_decayed_weights(0.1)",
        ),
        (
            "train_script",
            "optax.adamw(learning_rate, weight_decay=1e-3)",
            "optax.adamw(learning_rate)",
        ),
        (
            "averaged_optimizers",
            "optax.adamw(learning_rate=0.05, b1=0.8, weight_decay=1e-3)",
            "optax.adam(learning_rate=0.05, b1=0.8)",
        ),
        (
            "large_batch",
            "weight_decay=1e-2, trust_coefficient",
            "weight_decay=1e-3, trust_coefficient",
        ),
        (
            "resume_from_bytes",
            "optax.add_decayed_weights(1e-3)",
            "optax.add_decayed_weights(1.0001e-3)",
        ),
    ],
    "decay's groups exchanged": [
        (
            "decayed_kernels",
            "(decayed, decayed_def), (not_decayed, not_decayed_def)",
            "(not_decayed, decayed_def), (decayed, not_decayed_def)",
        ),
        (
            "decayed_kernels",
            "(decay, decay_def), (no_decay, no_decay_def)",
            "(no_decay, decay_def), (decay, no_decay_def)",
        ),
        (
            "replicate_method",
            'kernels = lambda path, _: "bias" not in path\n    biases =',
            'biases = lambda path, _: "bias" not in path\n    kernels =',
        ),
        (
            "traversal_frozen_rest",
            "not is_bias(*args) and 'kernel' in args[0]",
            "not is_bias(*args)",
        ),
    ],
    "decay's groups in a helper": [
        ("decayed_kernels", 'EXCLUDED = ("bias", "scale")', 'EXCLUDED = ("bias",)'),
        (
            "decayed_kernels",
            ' and "scale" not in key\n\n    def filter_other(key, _):\n        return "bias" in key or "scale" in key',
            '\n\n    def filter_other(key, _):\n        return "bias" in key',
        ),
        (
            "decayed_kernels",
            "return str(selected[0])",
            "return str(1 - selected[0])",
        ),
        (
            "traversal_frozen_rest",
            "return path.endswith('/bias')",
            "return path.startswith('/bias')",
        ),
    ],
    "clip threshold": [
        (
            "clip_in_chain",
            "optax.clip_by_global_norm(max_norm),",
            "optax.clip_by_global_norm(max_norm * 1.00001),",
        ),
        ("clip_in_chain", "optax.clip(0.3)", "optax.clip_by_global_norm(0.3)"),
        ("backbone_and_head", "optax.clip_by_global_norm(1.0)", "optax.clip(1.0)"),
        ("optimizer_zoo", "clipping_threshold=0.5", "clipping_threshold=1.0"),
    ],
    "schedule off by one": [
        (
            "extra_state",
            "lambda step: 0.1 * 0.9 ** step",
            "lambda step: 0.1 * 0.9 ** (step + 1)",
        ),
        ("handwritten_schedules", "rate ** (step // 7)", "rate ** ((step + 1) // 7)"),
        (
            "schedule_beside_counter",
            "lambda step: learning_rate_fn(step + 1),\n        weight_decay",
            "learning_rate_fn,\n        weight_decay",
        ),
        (
            "handwritten_schedules",
            "jnp.minimum(1.0, step / warmup)",
            "jnp.minimum(1.0, (step + 1) / warmup)",
        ),
    ],
    "sign": [
        (
            "pmap_replicate",
            "optax.add_decayed_weights(1e-3)",
            "optax.add_decayed_weights(-1e-3)",
        ),
        (
            "optimize_methods",
            "optax.sgd(learning_rate=0.1)",
            "optax.sgd(learning_rate=-0.1)",
        ),
        ("class_by_name", "optax.scale(-1),", "optax.scale(1),"),
    ],
    "order or links of a chain": [
        (
            "resume_from_bytes",
            "          optax.scale_by_belief(b1=0.8),\n          optax.add_decayed_weights(1e-3),",
            "          optax.add_decayed_weights(1e-3),\n          optax.scale_by_belief(b1=0.8),",
        ),
        (
            "weight_decay",
            '            optax.add_decayed_weights(config["weight_decay"]),  # before the momentum\n',
            "",
        ),
        (
            "large_batch",
            "optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=1.0),\n          optax.trace(decay=0.9)",
            "optax.trace(decay=0.9),\n          optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate=1.0)",
        ),
        (
            "optimizer_zoo",
            "            optax.scale_by_adadelta(rho=0.95),\n            optax.add_decayed_weights(1e-3),",
            "            optax.add_decayed_weights(1e-3),\n            optax.scale_by_adadelta(rho=0.95),",
        ),
    ],
    "twins swapped": [
        (
            "gan",
            "params=generator_params, tx=optax.adam(learning_rate=1e-2",
            "params=generator_params, tx=optax.adam(learning_rate=2e-2",
        ),
        (
            "decay_groups",
            "(kernels, optax.adamw(0.01, weight_decay=0.1)), (others, optax.adam(0.02))",
            "(others, optax.adamw(0.01, weight_decay=0.1)), (kernels, optax.adam(0.02))",
        ),
        (
            "traversal_two_rates",
            "(kernels, kernel_opt), (biases, bias_opt)",
            "(kernels, bias_opt), (biases, kernel_opt)",
        ),
    ],
    "helper's body": [
        (
            "pmap_replicate",
            "jnp.where(param_norm + update_norm > 0.0, ratio, 1.0)",
            "jnp.where(param_norm + update_norm > 0.0, ratio, 0.0)",
        ),
        (
            "large_batch",
            "ratio * (grad + weight_decay * param)",
            "ratio * grad + weight_decay * param",
        ),
        (
            "large_batch",
            "decayed_norm = grad_norm + weight_decay * param_norm + eps",
            "decayed_norm = jnp.linalg.norm(grad + weight_decay * param) + eps",
        ),
        ("adagrad_embeddings", "s + jnp.square(g)", "0.999999 * s + jnp.square(g)"),
        (
            "weight_norm",
            "return g + decay * v if is_split(v) else g",
            "return g + decay * v",
        ),
        ("weight_norm", "return leaf.size > leaf.shape[-1]", "return leaf.ndim > 0"),
        (
            "weight_norm",
            "scale = tree_map(norm, params)",
            "scale = tree_map(lambda w: 1.1 * norm(w) if is_split(w) else (), params)",
        ),
    ],
    "predicate": [
        (
            "backbone_and_head",
            "any(name in path for name in frozen)",
            "all(name in path for name in frozen)",
        ),
        (
            "backbone_and_head",
            "return path.startswith(prefix)",
            "return prefix in path[1:]",
        ),
        ("group_rates", 'path.startswith("/backbone/")', 'path.startswith("/head/")'),
        (
            "traversal_two_rates",
            'biases = lambda path, _: "bias" in path',
            'biases = lambda path, _: "Dense_0/bias" in path',
        ),
    ],
    "boolean": [
        ("optimizer_zoo", "centered=True", "centered=False"),
        ("schedule_beside_counter", "nesterov=True", "nesterov=False"),
        ("optimizer_zoo", "momentum=0.8, nesterov=True", "momentum=0.8"),
    ],
    "branch by name or size": [
        ("optimizer_zoo", "min_dim_size_to_factor=2", "min_dim_size_to_factor=128"),
        (
            "clip_in_chain",
            "if max_norm else optax.identity()",
            "if not max_norm else optax.identity()",
        ),
        ("class_by_name", "if beta1 is not None", "if beta1 is None"),
    ],
    "steps past a boundary": [
        ("handwritten_schedules", "jnp.minimum(t, config['steps'])", "t"),
        ("handwritten_schedules", "(1 - jnp.minimum(step, n) / n)", "(1 - step / n)"),
    ],
    "state not carried": [
        (
            "adagrad_embeddings",
            "return updates, ScaleBySumOfSquaresState(sums)",
            "return updates, state",
        ),
        (
            "weight_norm",
            "return updates, WeightNormState(**split, inner_state=inner_state)",
            "return updates, WeightNormState(**split, inner_state=state.inner_state)",
        ),
    ],
    "dtype of moments": [
        (
            "gan",
            "learning_rate=2e-2, b1=0.5",
            "learning_rate=2e-2, b1=0.5, mu_dtype=jnp.bfloat16",
        ),
        (
            "mnist_momentum",
            "momentum=beta)",
            "momentum=beta, accumulator_dtype=jnp.float32)",
        ),
    ],
    "leaf frozen": [
        (
            "traversal_two_rates",
            "(biases, bias_opt))",
            "(biases, optax.set_to_zero()))",
        ),
        (
            "decay_groups",
            "(biases, optax.adam(0.01))",
            "(lambda path, _: 'hidden/bias' in path, optax.adam(0.01))",
        ),
    ],
}
