"""How long it takes to prove 100 optimizers, all of them different, and what most of that goes into.

python -m benchmarks.parity [--jobs N]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import measured

FORMS = (
    "Adam({lr}, beta1={b})",
    "Adam({lr}, beta1={b}, weight_decay=1e-2)",
    "Momentum({lr}, {b})",
    "Momentum({lr}, {b}, weight_decay=1e-4, nesterov=True)",
    "GradientDescent({lr} + {b} / 1e3)",
    "RMSProp({lr}, beta2={b})",
    "LAMB({lr}, beta1={b})",
    "Adagrad({lr}, eps={b} / 1e6)",
    "AdaBelief({lr}, beta1={b})",
    "Adadelta({lr}, rho={b})",
)
"""In about the shares that real code has them, and the costly ones in full."""

COUNT = 100
LIMIT = 1_800


def program() -> str:
    """Legacy code with COUNT different optimizers."""
    lines = ["from flax import optim", "", "definitions = ["]
    pairs = itertools.product(range(1, COUNT // len(FORMS) + 1), FORMS)
    lines += [
        f"    optim.{form.format(lr=f'{number}e-3', b=0.8 + number / 100)},"
        for number, form in pairs
    ]
    return "\n".join([*lines, "]", ""])


def main() -> None:
    """Run the command and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(program(), encoding="utf-8")
        words = [
            sys.executable,
            "-m",
            "optim2optax",
            "parity",
            "--platform",
            "cpu",
            "--jobs",
            str(jobs),
            folder,
        ]
        taken = measured(words, LIMIT)
    print(
        next(
            line
            for line in taken.output.splitlines()
            if line.startswith(f"{COUNT} cases")
        )
    )
    print(
        f"{COUNT} optimizers with {jobs} jobs: {taken.seconds:.0f} s, {taken.processor:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
