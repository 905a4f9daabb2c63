"""Right programs of every kind, as commands: the program, no fault, the command, what is linked, and variables."""

from __future__ import annotations

Given = tuple[
    str, tuple[tuple[str, str], ...], str, tuple[str, ...], tuple[tuple[str, str], ...]
]

TRAIN = "python train.py"
FOUR_DEVICES = (("XLA_FLAGS", "--xla_force_host_platform_device_count=4"),)
SOURCES = (("PYTHONPATH", "src"),)


def _given(
    program: str,
    command: str = TRAIN,
    variables: tuple[tuple[str, str], ...] = (),
    links: tuple[str, ...] = (),
) -> Given:
    return program, (), command, links, variables


COMMANDS: dict[str, Given] = {
    "gradient accumulation": _given("accumulation"),
    "two models with the same text": _given("adversaries"),
    "pmap with donated buffers, BatchNorm, a checkpoint": _given(
        "convnet", variables=FOUR_DEVICES
    ),
    "the same on one device": _given("convnet"),
    "clipping, a schedule, dropout": _given("language"),
    "a large leaf": _given("large"),
    "bfloat16 and float16": _given("low_precision"),
    "members under vmap and a model for each device": _given(
        "members", variables=FOUR_DEVICES
    ),
    "several models in turn": _given("ppo"),
    "a target network": _given("q_learning"),
    "float32 parameters from NumPy": _given("regression"),
    "a scan, a while loop, idle steps": _given("scanning"),
    "a path that is set in the script": _given("package", "python main.py"),
    "a module": _given("package", "python -u -m lab", variables=SOURCES),
    "flags of Python": _given("package", "python -X dev -W ignore main.py"),
    "a script of the shell": _given("package", "bash run.sh"),
    "make": _given("package", "make train"),
    "a console script": _given("package", "bin/lab-train", variables=SOURCES),
    "os._exit": _given("package", "python ending.py"),
    "workers that are spawned": _given("package", "python workers.py"),
    "a launcher with subprocesses": _given("package", "python launch.py"),
    "a script that asks git": _given("package", "python asks_git.py"),
    "a thread": _given("package", "python threads.py"),
    "asyncio": _given("package", "python asynchronous.py"),
    "a checkpoint beside the script": _given("package", "python checkpointing.py"),
    "env in front of the command": _given(
        "package", "env PYTHONPATH=src python -m lab"
    ),
    "a command of the shell": _given(
        "package", "bash -c 'cd src && python -m lab && python -c pass'"
    ),
    "without float64 in the program": _given(
        "regression", variables=(("JAX_ENABLE_X64", "0"),)
    ),
    "without jit": _given("q_learning", variables=(("JAX_DISABLE_JIT", "1"),)),
    "definitions that are stepped by hand": _given("functional"),
    "optax.MultiSteps in the place of a loop": _given("multisteps"),
    "optax.partition with labels": _given("partition"),
    "numbers of NumPy in a carry, lax.conv": _given("carries"),
    "data that git ignores": _given("package", "python reads_data.py", links=("data",)),
    "data that git ignores, without an option": _given(
        "package", "python reads_data.py"
    ),
    "flags of absl": _given("package", "python with_absl.py --steps=15"),
    "arguments": _given("package", "python with_arguments.py --trainer momentum"),
    "a configuration": _given(
        "package", "python with_arguments.py --config config.json"
    ),
    "a variable of the environment": _given(
        "package", "env RATE=0.02 python with_arguments.py"
    ),
    "a test by pytest": _given("package", "python -m pytest -q test_training.py"),
}
