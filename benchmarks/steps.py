"""What a step costs, and compiling it, with the new optimizers as a ratio to the old ones.

python -m benchmarks.steps [--rounds N] [--json] [--markdown docs/cost.md]

Both sides get the same 10 million parameters and gradients in float32, and take steps in turn. One step is compiled as a whole
and gives its buffers back, as training loops do. The ratios are medians: of the rounds for a step, of a few for compiling.
Bytes are those that the compiler counts for one step. With `--json`, each optimizer is a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import flax
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from codemods import Source, migrate
from codemods.model import EmittedOptimizer
from optim2optax.legacy import legacy_flax
from optim2optax.parity.optimizer.evaluating import evaluate

CALLS = (
    "GradientDescent(0.1)",
    "Momentum(0.1)",
    "Momentum(0.1, weight_decay=1e-4, nesterov=True)",
    "Adam(1e-3)",
    "Adam(1e-3, weight_decay=1e-4)",
    "AdaBelief(1e-3)",
    "Adadelta(0.1)",
    "Adafactor(1e-3)",
    "Adafactor(1e-3, beta1=0.9)",
    "Adagrad(0.1)",
    "LAMB(1e-3, weight_decay=0.01)",
    "LARS(0.1)",
    "LARS(0.1, weight_decay=1e-4)",
    "RMSProp(1e-3)",
    "WeightNorm(optim.Adam(1e-3))",
    "MultiOptimizer((kernels, optim.Adam(1e-3)), (biases, optim.Momentum(0.1)))",
)
PROGRAM = """from flax import optim

kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
biases = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
"""
LAYERS, WIDTH = 6, 645
COMPILATIONS = 3
Step = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Row:
    """An optimizer, and what its new form takes over the old: the time of a step, the bytes of one, the time of compiling it."""

    optimizer: EmittedOptimizer
    step: float
    bytes: float
    compiling: float


def emitted() -> list[EmittedOptimizer]:
    """What `rewrite` makes of each call, in order, and not what it makes of the calls within."""
    program = PROGRAM + "".join(
        f"optimizer_{index} = optim.{call}\n" for index, call in enumerate(CALLS)
    )
    [result] = migrate([Source("steps.py", program.encode())])
    first = PROGRAM.count("\n") + 1
    by_call = {(found.line, found.before): found for found in result.optimizers}
    return [by_call[first + index, f"optim.{call}"] for index, call in enumerate(CALLS)]


def parameters() -> dict[str, Any]:
    """The kernels and biases of dense layers, 10 million numbers in 24 leaves."""
    keys = iter(jax.random.split(jax.random.key(0), LAYERS * 2))

    def dense(inputs: int, outputs: int) -> dict[str, jax.Array]:
        kernel = jax.random.normal(next(keys), (inputs, outputs)) / inputs**0.5
        return {"kernel": kernel, "bias": jnp.zeros(outputs)}

    return {
        f"layer_{n}": {"in": dense(WIDTH, 2 * WIDTH), "out": dense(2 * WIDTH, WIDTH)}
        for n in range(LAYERS)
    }


def ratios(optimizer: EmittedOptimizer, rounds: int) -> Row:
    """What a step of the new optimizer takes over one of the old."""
    definition, tx = evaluate(optimizer)
    params = parameters()
    grads = jax.tree.map(lambda leaf: 1e-2 * jnp.cos(1e3 * leaf), params)
    with legacy_flax():
        old = definition.create(params)
        new = TrainState.create(apply_fn=_no_model, params=params, tx=tx)  # type: ignore[no-untyped-call]
        sides: list[tuple[Step, Any]] = [
            (lambda state, grads: state.apply_gradient(grads), old),
            (lambda state, grads: state.apply_gradients(grads=grads), new),
        ]
        compiling = [
            [_seconds(partial(_compiled, *side, grads)) for side in sides]
            for _ in range(COMPILATIONS)
        ]
        steps = [_compiled(*side, grads) for side in sides]
    states = [jax.tree.map(jnp.copy, state) for _, state in sides]
    times = []
    for _ in range(rounds + 2):
        taken = []
        for side, step in enumerate(steps):
            start = time.perf_counter()
            states[side] = jax.block_until_ready(step(states[side], grads))  # type: ignore[no-untyped-call]
            taken.append(time.perf_counter() - start)
        times.append(taken)
    moved = [_bytes(step) for step in steps]
    return Row(optimizer, _ratio(times[2:]), moved[1] / moved[0], _ratio(compiling))


def _no_model(*_: Any) -> None: ...


def _compiled(step: Step, state: Any, grads: Any) -> Any:
    jax.clear_caches()  # type: ignore[no-untyped-call]
    return jax.jit(step, donate_argnums=0).lower(state, grads).compile()


def _bytes(compiled: Any) -> float:
    """What a compiled step reads and writes; NaN where the compiler of the platform does not tell."""
    return float((compiled.cost_analysis() or {}).get("bytes accessed", "nan"))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _ratio(times: list[list[float]]) -> float:
    return median(new / old for old, new in times)


def page(rows: list[Row]) -> str:
    """The table, with where it was measured."""
    device = jax.devices()[0]
    versions = (
        f"JAX {jax.__version__}, Flax {flax.__version__}, optax {optax.__version__}"
    )
    count = sum(leaf.size for leaf in jax.tree.leaves(parameters()))
    lines = [
        "# What a step costs",
        "",
        "The table shows the time of the new optimizer divided by that of the old one: below 1, the new one is faster. It measures",
        "one compiled step, update and application together,",
        f"of {count / 1e6:.1f} million float32 parameters in 24 leaves: medians of ratios, with old and new in turn.",
        "Bytes are those that the compiler counts for one step.",
        "",
        f"{device.device_kind} ({device.platform}), {versions}.",
        "`python -m benchmarks.steps --markdown docs/cost.md` updates this page.",
        "",
        "| Legacy | Now | Step | Bytes | Compiling |",
        "|---|---|---|---|---|",
        *(
            f"| `{row.optimizer.before}` | `{' '.join(row.optimizer.after.split())}` "
            f"| {row.step:.2f} | {row.bytes:.2f} | {row.compiling:.2f} |"
            for row in rows
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    rows = []
    for optimizer in emitted():
        row = ratios(optimizer, arguments.rounds)
        rows.append(row)
        figures = {"step": row.step, "bytes": row.bytes, "compiling": row.compiling}
        if arguments.json:
            print(json.dumps({"before": optimizer.before, **figures}), flush=True)
        else:
            shown = "  ".join(
                f"{name} {figure:5.2f}" for name, figure in figures.items()
            )
            print(f"{optimizer.before:60} {shown}", flush=True)
    if arguments.markdown:
        arguments.markdown.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
