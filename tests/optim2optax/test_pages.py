"""Every command in README.md and docs/ does what it says there. As a script, this writes the outputs anew."""

import os
import re
import shlex
import tempfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from optim2optax.cli import application
from tests.optim2optax.processes import environment, run_program

ROOT = Path(__file__).parents[2]
PROGRAM = re.compile(r"^```python title=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
SHELL = {*"|;&<>"}
"""A command that has one of these takes a shell; others are run in this process."""

WIDE = {"COLUMNS": "100"}
ALL = (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")))
PAGES = [page for page in ALL if CONSOLE.search(page.read_text())]


def with_real_outputs(text: str, folder: Path) -> str:
    """The text with the output of each command below it, run in a folder with the programs that the text shows."""
    for name, program in PROGRAM.findall(text):
        (folder / name).write_text(program)
    if "runs/" in text:
        _store_a_run(folder / "runs")
    return CONSOLE.sub(_transcripts, text)


def _store_a_run(folder: Path) -> None:
    """A checkpoint of the old Flax, of 5,000 steps."""
    from optim2optax.legacy import legacy_flax

    folder.mkdir()
    kernel, bias = np.full((784, 10), 0.1, np.float32), np.zeros(10, np.float32)
    params = {"dense": {"kernel": kernel, "bias": bias}}
    with legacy_flax() as flax:
        optimizer = flax.optim.Adam(1e-3, weight_decay=1e-4).create(params)
        state = optimizer.state.replace(step=np.asarray(5000, np.int32))
        stored = {"optimizer": optimizer.replace(state=state), "epoch": 12}
        content = flax.serialization.to_bytes(stored)
    (folder / "checkpoint_5000").write_bytes(content)


def _transcripts(console: re.Match[str]) -> str:
    commands = [line[2:] for line in console[0].splitlines() if line.startswith("$ ")]
    return "\n".join(map(_transcript, commands))


def _transcript(command: str) -> str:
    name, *words = shlex.split(command)
    if name == "optim2optax" and SHELL.isdisjoint(command):
        done = CliRunner(env=WIDE).invoke(application, words, prog_name=name)
        return f"$ {command}\n{done.output}"
    written = run_program("sh", "-c", f"exec 2>&1; {command}", env=environment(**WIDE))
    return f"$ {command}\n{written.stdout}"


@pytest.mark.usefixtures("legacy_wheel", "settings_of_jax")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_outputs_are_real(page: Path, project: Path) -> None:
    text = page.read_text()
    assert text.count("$ optim2optax") >= 1
    assert with_real_outputs(text, project) == text


if __name__ == "__main__":
    for file in PAGES:
        content = file.read_text()
        with tempfile.TemporaryDirectory() as temporary:
            os.chdir(temporary)
            file.write_text(with_real_outputs(content, Path(temporary)))
