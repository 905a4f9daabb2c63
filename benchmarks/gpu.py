"""What parity promises, on a GPU or TPU, in one run of at most eight minutes: verdicts as on the CPU, and what it costs.

    python -m benchmarks.gpu --markdown gpu.md

Four parts, each a table: a training program as a command, in each of the manners in which programs use a device, with a fault
planted in the last; the time and the memory of such a command with 100 million parameters; the fixtures, on the device and on the
CPU of the same machine, with every case in which the two verdicts differ; and one step of each optimizer, new over old. Each part has its share of the time, and says what it left out. Fixtures run
a few at a time, as long as the next few will be done, and those first that hold the most optimizers. `--platform cpu` tries the
script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from benchmarks.steps import CALLS
from benchmarks.training import compared, ratio, verdict

FIXTURES = Path(__file__).parents[1] / "fixtures"
PARITY = (sys.executable, "-m", "optim2optax", "parity")
PASSED = ("identical", "equivalent")

COMMANDS_UNTIL, TRAINING_UNTIL, VERDICTS_UNTIL = 0.25, 0.5, 0.8
"""The shares of the time that are over when each part but the last has to end. What one leaves over is the next one's."""

PARAMETERS, STEPS = 100_000_000, 20

FIRST = (
    "optimizer_zoo",
    "adam_variants",
    "weight_norm",
    "backbone_and_head",
    "custom_rules",
    "dynamic_scale",
)
"""The fixtures that hold every legacy optimizer, and rules of a program's own."""

MARGIN = 1.5
"""Fixtures are started only if there is so many times the time left that those before them took."""

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
@click.option(
    "--platform",
    type=click.Choice(("gpu", "tpu", "cpu")),
    default="gpu",
    show_default=True,
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=max(1, (os.cpu_count() or 2) // 2),
    show_default=True,
)
@click.option(
    "--minutes", type=float, default=8.0, show_default=True, help="When to stop."
)
@click.option(
    "--fixtures",
    default="*",
    show_default=True,
    metavar="GLOB",
    help="Which folders of fixtures/.",
)
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the tables.",
)
def main(
    platform: str, jobs: int, minutes: float, fixtures: str, markdown: Path | None
) -> None:
    """Run all parts, and print their tables as they come."""
    # Several processes share the device: none may take all of its memory.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    lines = [f"# Parity on {device_of(platform)}", ""]
    start, seconds = time.monotonic(), 60 * minutes
    for part in (
        commands(platform, start + COMMANDS_UNTIL * seconds),
        training(platform, start + TRAINING_UNTIL * seconds),
        verdicts(platform, jobs, in_order(fixtures), start + VERDICTS_UNTIL * seconds),
        costs(platform, start + seconds),
    ):
        for line in part:
            click.echo(line)
            lines.append(line)
            if markdown is not None:
                markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


def in_order(pattern: str) -> list[Path]:
    """The folders of the fixtures that fit a pattern, those first that a device should see if it sees no other."""
    folders = [case.parent for case in FIXTURES.glob(f"{pattern}/before.*")]
    places = {name: place for place, name in enumerate(FIRST)}
    return sorted(
        set(folders),
        key=lambda folder: (places.get(folder.name, len(FIRST)), folder.name),
    )


def device_of(platform: str) -> str:
    """The name of the device, and the version of JAX. Ends the script if JAX finds none of the platform."""
    asked = (
        "import jax; print(jax.devices()[0].device_kind, 'with JAX', jax.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=_on(platform),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(
            (done.stderr.strip().splitlines() or ["JAX does not start"])[-1]
        )
    return done.stdout.strip()


def verdicts(
    platform: str, jobs: int, folders: Sequence[Path], end: float
) -> Iterator[str]:
    """The fixtures, on the device and on the CPU: how many cases end how, and those that end otherwise on the device."""
    yield from ("", "## Fixtures", "")
    sides = (platform, "cpu")
    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    left, number = list(folders), 1
    while left and number:
        start = time.monotonic()
        reports = _compared(sides, jobs, left[:number], end - start)
        if reports is None:
            break
        for known, report in zip(found, reports, strict=True):
            known.update(report)
        del left[:number]
        seconds_each = (time.monotonic() - start) / number
        number = min(
            2 * number, int((end - time.monotonic()) / (MARGIN * seconds_each))
        )
    there, here = found
    if here:
        yield from _table(sides, there, here)
    if left:
        yield ""
        yield f"Not done in time, and left out: {len(left)} of {len(folders)} fixtures, from {left[0].name} on."


def _compared(
    sides: tuple[str, str], jobs: int, folders: Sequence[Path], seconds: float
) -> tuple[dict[str, str], dict[str, str]] | None:
    """The verdicts of some fixtures on both sides, which run at once; None if one of them takes longer than that."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder, f"{place}.json") for place, _ in enumerate(sides)]
        running = [
            subprocess.Popen(
                [
                    *PARITY,
                    "--platform",
                    side,
                    "--jobs",
                    str(jobs),
                    "--json",
                    str(report),
                    *map(str, folders),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for side, report in zip(sides, reports, strict=True)
        ]
        for process in running:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
        there, here = reports
        return (
            (_by_name(there), _by_name(here))
            if there.exists() and here.exists()
            else None
        )


def _table(
    sides: tuple[str, str], there: Mapping[str, str], here: Mapping[str, str]
) -> Iterator[str]:
    outcomes = sorted({*there.values(), *here.values()})
    yield from (
        "| | " + " | ".join(outcomes) + " |",
        "|---" * (1 + len(outcomes)) + "|",
    )
    for side, found in zip(sides, (there, here), strict=True):
        counted = Counter(found.values())
        yield (
            f"| {side} | "
            + " | ".join(str(counted[outcome]) for outcome in outcomes)
            + " |"
        )
    yield ""
    others = [
        name for name in here if (there.get(name) in PASSED) != (here[name] in PASSED)
    ]
    yield from (
        f"- {name}: {there.get(name, 'missing')} on {sides[0]}, {here[name]} on cpu"
        for name in others
    )
    yield f"{len(here) - len(others)} of {len(here)} cases pass or fail on {sides[0]} as on the CPU."


def _by_name(report: Path) -> dict[str, str]:
    cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
    return {case["name"]: case["verdict"] for case in cases}


def commands(platform: str, end: float) -> Iterator[str]:
    """The training program in each manner, migrated, as a command on both sides."""
    yield from (
        "",
        "## A training program",
        "",
        "| Manner | Verdict | Error over movement |",
        "|---|---|---|",
    )
    with tempfile.TemporaryDirectory() as folder:
        old, new, report = (
            Path(folder, "old"),
            Path(folder, "new"),
            Path(folder, "report.json"),
        )
        for tree in (old, new):
            tree.mkdir()
            (tree / "train.py").write_text(PROGRAM, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "optim2optax", "rewrite", str(new)],
            check=True,
            capture_output=True,
        )
        for done, (manner, environment) in enumerate(MANNERS.items()):
            if manner == "fault":
                text = (new / "train.py").read_text(encoding="utf-8")
                assert FAULT[0] in text
                (new / "train.py").write_text(text.replace(*FAULT), encoding="utf-8")
            words = [
                *PARITY,
                "--platform",
                platform,
                "--before",
                str(old),
                "--json",
                str(report),
                "--",
            ]
            report.unlink(missing_ok=True)
            try:
                ran = subprocess.run(
                    [*words, "python", "train.py", manner],
                    cwd=new,
                    env={**os.environ, **environment},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    check=False,
                    timeout=max(1.0, end - time.monotonic()),
                )
            except subprocess.TimeoutExpired:
                yield from (
                    "",
                    f"Not done in time, and left out: {', '.join([*MANNERS][done:])}.",
                )
                return
            if not report.exists():
                why = (ran.stderr.strip().splitlines() or ["no report"])[-1]
                yield f"| {manner} | parity itself failed: {why} | |"
                continue
            [case] = json.loads(report.read_text(encoding="utf-8"))["cases"]
            error = "" if case["error"] is None else f"{case['error']:.1e}"
            yield f"| {manner} | {case['verdict']} {case['reason']} | {error} |"


def training(platform: str, end: float) -> Iterator[str]:
    """A program with many parameters: plain runs of both sides, and their comparison."""
    yield from (
        "",
        f"## {PARAMETERS // 1_000_000} million parameters, {STEPS} steps",
        "",
        "| Run | Seconds | Memory |",
        "|---|---|---|",
    )
    costs = {}
    try:
        for name, cost in compared(
            PARAMETERS, STEPS, platform, max(1.0, end - time.monotonic())
        ):
            yield f"| {name} | {cost.seconds:.1f} | {cost.memory / 1024:.2f} GB |"
            costs[name] = cost
    except RuntimeError as error:
        yield from ("", f"Not done in time, or failed: {error}")
        return
    yield from (
        "",
        f"{ratio(costs):.2f} times the two plain runs. {verdict(costs['compared'])}",
    )


def costs(platform: str, end: float) -> Iterator[str]:
    """One step of each optimizer: its time, the bytes that it moves by the compiler's count, and compiling it, new over old."""
    yield from (
        "",
        "## One step, new over old",
        "",
        "| Legacy | Step | Bytes | Compiling |",
        "|---|---|---|---|",
    )
    words = [sys.executable, "-m", "benchmarks.steps", "--json"]
    process = subprocess.Popen(
        words, cwd=FIXTURES.parent, env=_on(platform), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    alarm = threading.Timer(max(0.0, end - time.monotonic()), process.terminate)
    alarm.start()
    done = 0
    for line in process.stdout:
        row = json.loads(line)
        yield f"| `{row['before']}` | {row['step']:.2f} | {row['bytes']:.2f} | {row['compiling']:.2f} |"
        done += 1
    alarm.cancel()
    code = process.wait()
    if code:
        why = (
            "Not done in time"
            if code < 0
            else f"benchmarks.steps failed with exit code {code}"
        )
        left = ", ".join(f"`optim.{call}`" for call in CALLS[done:])
        yield from ("", f"{why}, and left out: {left}.")


def _on(platform: str) -> dict[str, str]:
    return {**os.environ, "JAX_PLATFORMS": {"gpu": "cuda"}.get(platform, platform)}


if __name__ == "__main__":
    main()
