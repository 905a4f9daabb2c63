"""How long it takes to prove 100 optimizers, all of them different, and what most of that goes into.

python benchmarks/parity.py [--jobs N]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from click.testing import CliRunner

from optim2optax.cli import application

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


def program() -> str:
    """Legacy code with COUNT different optimizers."""
    lines = ["from flax import optim", "", "definitions = ["]
    pairs = itertools.product(range(1, COUNT // len(FORMS) + 1), FORMS)
    lines += [f"    optim.{form.format(lr=f'{number}e-3', b=0.8 + number / 100)}," for number, form in pairs]
    return "\n".join([*lines, "]", ""])


def main() -> None:
    """Run the command and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(program(), encoding="utf-8")
        start = time.perf_counter()
        words = ["parity", "--platform", "cpu", "--steps", "100", "--jobs", str(jobs), folder]
        result = CliRunner().invoke(application, words)
        seconds = time.perf_counter() - start
    print(result.output.splitlines()[-2])
    print(f"{COUNT} optimizers with {jobs} jobs: {seconds:.0f} s, {seconds / COUNT:.2f} s each")


if __name__ == "__main__":
    main()
