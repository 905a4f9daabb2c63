"""What parity promises, on a GPU or TPU, in one run of at most ten minutes: verdicts as on the CPU, and what a step costs there.

    python -m benchmarks.gpu --markdown gpu.md

Three parts, each a table: all fixtures, on the device and on the CPU of the same machine, with every case in which the two
verdicts differ; a training program as a command, in each of the manners in which programs use a device, with a fault planted in
the last; and one step of each optimizer, new over old. What does not get done in time is said. `--platform cpu` tries the script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

FIXTURES = Path(__file__).parents[1] / "fixtures"
PARITY = (sys.executable, "-m", "optim2optax", "parity")
PASSED = ("identical", "equivalent")

PROGRAM = '''"""A small model, trained in the manner that the first argument names."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

MANNER = sys.argv[1]
DTYPE = jnp.bfloat16 if MANNER == "bfloat16" else jnp.float32


def loss_fn(params, x, y):
    hidden = jax.nn.relu(x @ params["in"]["kernel"] + params["in"]["bias"])
    return jnp.mean((hidden @ params["out"]["kernel"] - y) ** 2)


def train_step(optimizer, x, y):
    grads = jax.grad(loss_fn)(optimizer.target, x, y)
    if MANNER == "pmap":
        grads = jax.lax.pmean(grads, "batch")
    return optimizer.apply_gradient(grads)


def main():
    rng = np.random.default_rng(0)
    shapes = {"in": {"kernel": (32, 64), "bias": (64,)}, "out": {"kernel": (64, 4)}}
    params = {
        layer: {name: jnp.asarray(0.1 * rng.normal(size=shape), DTYPE) for name, shape in leaves.items()}
        for layer, leaves in shapes.items()
    }
    # The old Adam never moves parameters in bfloat16: it rounds beta2 to one.
    definition = optim.Momentum(1e-2) if MANNER == "bfloat16" else optim.Adam(1e-2, weight_decay=1e-3)
    optimizer = definition.create(params)
    step = jax.jit(train_step)
    if MANNER == "pmap":
        step = jax.pmap(train_step, axis_name="batch", devices=jax.devices()[:1])
        optimizer = jax.tree_util.tree_map(lambda leaf: leaf[None], optimizer)
    if MANNER == "donated":
        step = jax.jit(train_step, donate_argnums=0)
    for _ in range(20):
        x, y = jnp.asarray(rng.normal(size=(16, 32)), DTYPE), jnp.asarray(rng.normal(size=(16, 4)), DTYPE)
        optimizer = step(optimizer, x[None], y[None]) if MANNER == "pmap" else step(optimizer, x, y)


main()
'''
FAULT = ("weight_decay=1e-3", "weight_decay=1.0001e-3")

MANNERS: Mapping[str, Mapping[str, str]] = {
    "jit": {},
    "pmap": {},
    "donated": {},
    "bfloat16": {},
    "tf32": {"JAX_DEFAULT_MATMUL_PRECISION": "tensorfloat32"},
    "not_deterministic": {"XLA_FLAGS": "--xla_gpu_deterministic_ops=false"},
    "fault": {},
}
"""The manners of the program, and the environment of each: `fault` is `jit` with a weight decay that is a ten-thousandth off."""


@click.command()
@click.option("--platform", type=click.Choice(("gpu", "tpu", "cpu")), default="gpu", show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=max(1, (os.cpu_count() or 2) // 2), show_default=True)
@click.option("--minutes", type=float, default=10.0, show_default=True, help="When to stop.")
@click.option("--fixtures", default="*", show_default=True, metavar="GLOB", help="Which folders of fixtures/.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the tables.")
def main(platform: str, jobs: int, minutes: float, fixtures: str, markdown: Path | None) -> None:
    """Run all three parts, and print their tables as they come."""
    end = time.monotonic() + 60 * minutes
    # Several processes share the device: none may take all of its memory.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    lines = [f"# Parity on {device_of(platform)}", ""]
    for part in (
        commands(platform, end),
        verdicts(platform, jobs, sorted(FIXTURES.glob(f"{fixtures}/before.*")), end),
        costs(platform, end),
    ):
        for line in part:
            click.echo(line)
            lines.append(line)
            if markdown is not None:
                markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


def device_of(platform: str) -> str:
    """The name of the device, and the version of JAX. Ends the script if JAX finds none of the platform."""
    asked = "import jax; print(jax.devices()[0].device_kind, 'with JAX', jax.__version__)"
    done = subprocess.run([sys.executable, "-c", asked], env=_on(platform), capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException((done.stderr.strip().splitlines() or ["JAX does not start"])[-1])
    return done.stdout.strip()


def verdicts(platform: str, jobs: int, cases: Sequence[Path], end: float) -> Iterator[str]:
    """All fixtures, on the device and on the CPU: how many cases end how, and those that end otherwise on the device."""
    yield from ("", "## Fixtures", "")
    with tempfile.TemporaryDirectory() as folder:
        folders = [str(case.parent) for case in cases]
        reports = {side: Path(folder, f"{side}.json") for side in (platform, "cpu")}
        running = [
            subprocess.Popen(
                [*PARITY, "--platform", side, "--jobs", str(jobs), "--json", str(report), *folders],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for side, report in reports.items()
        ]
        for process in running:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
        if not all(report.exists() for report in reports.values()):
            yield "Not done in time."
            return
        there, here = (_by_name(report) for report in reports.values())
    yield from ("| | " + " | ".join(_outcomes(there, here)) + " |", "|---" * (1 + len(_outcomes(there, here))) + "|")
    for side, found in ((platform, there), ("cpu", here)):
        counted = Counter(found.values())
        yield f"| {side} | " + " | ".join(str(counted[outcome]) for outcome in _outcomes(there, here)) + " |"
    yield ""
    others = [name for name in here if (there.get(name) in PASSED) != (here[name] in PASSED)]
    yield from (f"- {name}: {there.get(name, 'missing')} on {platform}, {here[name]} on cpu" for name in others)
    yield f"{len(here) - len(others)} of {len(here)} cases pass or fail on {platform} as on the CPU."


def _outcomes(*sides: Mapping[str, str]) -> list[str]:
    return sorted({outcome for side in sides for outcome in side.values()})


def _by_name(report: Path) -> dict[str, str]:
    cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
    return {case["name"]: case["verdict"] for case in cases}


def commands(platform: str, end: float) -> Iterator[str]:
    """The training program in each manner, migrated, as a command on both sides."""
    yield from ("", "## A training program", "", "| Manner | Verdict | Error over movement |", "|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        old, new, report = Path(folder, "old"), Path(folder, "new"), Path(folder, "report.json")
        for tree in (old, new):
            tree.mkdir()
            (tree / "train.py").write_text(PROGRAM, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "optim2optax", "rewrite", str(new)], check=True, capture_output=True)
        for manner, environment in MANNERS.items():
            if manner == "fault":
                text = (new / "train.py").read_text(encoding="utf-8")
                assert FAULT[0] in text
                (new / "train.py").write_text(text.replace(*FAULT), encoding="utf-8")
            words = [*PARITY, "--platform", platform, "--before", str(old), "--json", str(report), "--"]
            report.unlink(missing_ok=True)
            try:
                subprocess.run(
                    [*words, "python", "train.py", manner],
                    cwd=new,
                    env={**os.environ, **environment},
                    capture_output=True,
                    check=False,
                    timeout=max(1.0, end - time.monotonic()),
                )
            except subprocess.TimeoutExpired:
                yield f"| {manner} | not done in time | |"
                return
            if not report.exists():
                yield f"| {manner} | parity itself failed | |"
                continue
            [case] = json.loads(report.read_text(encoding="utf-8"))["cases"]
            error = "" if case["error"] is None else f"{case['error']:.1e}"
            yield f"| {manner} | {case['verdict']} {case['reason']} | {error} |"


def costs(platform: str, end: float) -> Iterator[str]:
    """One step of each optimizer: its time, the bytes that it moves by the compiler's count, and compiling it, new over old."""
    yield from ("", "## One step, new over old", "", "| Legacy | Step | Bytes | Compiling |", "|---|---|---|---|")
    words = [sys.executable, "-m", "benchmarks.steps", "--json"]
    process = subprocess.Popen(words, cwd=FIXTURES.parent, env=_on(platform), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        row = json.loads(line)
        yield f"| `{row['before']}` | {row['step']:.2f} | {row['bytes']:.2f} | {row['compiling']:.2f} |"
        if time.monotonic() > end:
            process.terminate()
            yield "The others were not done in time."
    process.wait()


def _on(platform: str) -> dict[str, str]:
    return {**os.environ, "JAX_PLATFORMS": {"gpu": "cuda"}.get(platform, platform)}


if __name__ == "__main__":
    main()
