"""Careless and hostile uses: each is refused by name, within five seconds and 300 MB, and nothing is written."""

import json
import os
import pickle
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import jax
import msgpack
import numpy as np
import pytest

from tests.optim2optax.checkpoints.test_converting import converted, folder
from tests.optim2optax.checkpoints.test_loading import stored
from tests.optim2optax.processes import environment, run_program, run_python

__all__ = ["folder"]
pytestmark = pytest.mark.usefixtures("legacy_wheel")

LIMITED = """
import resource, signal, sys
from pathlib import Path
from optim2optax.checkpoints.listing import as_text, inspect

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 300_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sorted(Path(sys.argv[1]).iterdir()):
    signal.setitimer(signal.ITIMER_PROF, 5)  # of its own time
    print(path.name, as_text([inspect(path)]).splitlines()[0], sep=": ")
"""
"""What is left to do is done within the limits, or the process ends."""


def array(shape: Any, data: bytes = b"", dtype: str = "float32") -> bytes:
    """A file with one array, which need not hold together."""
    return msgpack.packb(msgpack.ExtType(1, msgpack.packb((shape, dtype, data))))  # type: ignore[no-any-return]


FILES: dict[str, tuple[bytes, str]] = {
    "huge dimensions": (array([2**62] * 300_000), "an array of 300000 dimensions"),
    "one dimension more than NumPy has": (array([1] * 65, b"\0\0\0\0"), "an array of 65 dimensions"),
    "dimensions that multiply to nothing": (array([2**62, 0, 2**62]), "an array whose shape is none"),
    "a million dimensions": (array([1] * 1_000_000), "an array of 1000000 dimensions"),
    "fifty million nils": (b"\xdd" + (50_000_000).to_bytes(4, "big") + b"\xc0" * 50_000_000, "more than a model has"),
    "more nils than the file has": (b"\xdd\xff\xff\xff\xff\xc0", "is empty or cut off"),
    "a map of more than the file has": (b"\xdf\xff\xff\xff\xff\xa1a\xc0", "is empty or cut off"),
    "a text that is longer than the file": (b"\xdb\xff\xff\xff\xffa", "is empty or cut off"),
    "maps in maps": (b"\x81\xa1a" * 1_000_000, "nested too deeply"),
    "a pickle": (pickle.dumps({"params": np.ones(3)}), "is a pickle, which is not loaded"),
    "an archive of NumPy": (b"PK\x03\x04\x14\0\0\0\0\0", "is no checkpoint of Flax"),
    "text that is none": (b"\x81\xa1\xff\xc0", "is no checkpoint of Flax"),
}  # fmt: skip
LARGE = 2**30


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is told of each file, by one process with little memory."""
    files = tmp_path_factory.mktemp("files")
    for name, (content, _) in FILES.items():
        (files / name).write_bytes(content)
    with (files / "larger than memory").open("wb") as file:
        file.write(b"\x81")
        file.truncate(LARGE)
    done = run_python("-c", LIMITED, files, env=environment(OPENBLAS_NUM_THREADS="1"))
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


WHY = {
    **{name: why for name, (_, why) in FILES.items()},
    "larger than memory": "takes more memory",
}


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
@pytest.mark.parametrize(("name", "why"), WHY.items(), ids=WHY)
def test_a_file_that_is_none_is_told_with_little_memory(
    name: str, why: str, told: dict[str, str]
) -> None:
    assert why in told[name]


FUNCTIONS = {
    "a program that is not migrated": ("from flax import optim", "Is the program migrated?"),
    "a module that fails": ("raise RuntimeError('no data here')", "fails when it is imported, with RuntimeError: no data here"),
    "a module that does not end a line": ("def create(:", "fails when it is imported, with SyntaxError"),
    "a module that ends": ("import sys; sys.exit(0)", "fails when it is imported, with SystemExit: 0"),
    "a module that asks for arguments": ("import sys; sys.exit(2)", "SystemExit: 2. It gets no arguments here"),
    "a flag that is not parsed": (
        "from absl import flags\nflags.DEFINE_float('careless', 0.1, '')\ndef create(): flags.FLAGS.careless",
        "Name a function that calls `flags.FLAGS(['program'])` first.",
    ),
    "a function that ends": ("import sys\ndef create(): sys.exit(0)", "failed with SystemExit: 0"),
    "one that needs arguments": (
        "def create(rate_fn, seed): ...\ndef rate_fn(step): ...",
        "such as `def fresh_state(): return create(rate_fn=rate_fn, seed=...)` in the module careless.",
    ),
    "one that gives nothing": ("def create(): ...", "the new state is of the type NoneType: it has to be"),
    "one that gives an object": ("class create: ...", "the new state is of the type create: it has to be"),
    "one that gives a state dict": (
        "import flax, program_of_mine\ndef create(): return flax.serialization.to_state_dict(program_of_mine.create_state())",
        "is in no state of optax, as in a state dict: give the state itself",
    ),
    "none": ("create = 3", "has no function create"),
    "control characters": ("def create(): raise ValueError('\\x1b[2J')", "ValueError: \\x1b[2J"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "why"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_gives_no_state(program: str, why: str, folder: Path) -> None:
    (folder / "careless.py").write_text(program)
    sys.modules.pop("careless", None)
    result = converted("checkpoint_3", "new", state="careless:create")

    assert (result.exit_code, why in result.stderr) == (1, True), result.output
    assert result.stderr.count("\n") == 1
    assert not (folder / "new").exists()


def test_a_module_that_is_called_as_one_of_python_s_own(folder: Path) -> None:
    (folder / "types.py").write_text("def create(): ...")
    result = converted("checkpoint_3", "new", state="types:create")

    assert result.exit_code == 1
    assert f"the module types, {types.__file__}, has no function" in result.output


def test_names_do_nothing_to_the_terminal(folder: Path) -> None:
    stored(
        folder / "checkpoint_3",
        lambda optimizer: {"epoch": 7, "optimizer": optimizer, "\x1b[2J": 7},
    )
    result = converted("checkpoint_3", "new")

    assert result.exit_code == 1
    assert "`\\x1b[2J` of the checkpoint has no place" in result.output


def test_numbers_that_are_none_are_carried_with_a_warning(folder: Path) -> None:
    def broken(optimizer: Any) -> Any:
        nan = np.float32(np.nan)
        target = jax.tree_util.tree_map(lambda leaf: leaf * nan, optimizer.target)
        return {"epoch": 7, "optimizer": optimizer.replace(target=target)}

    stored(folder / "checkpoint_3", broken)
    result = converted("checkpoint_3", "new")

    assert result.exit_code == 0, result.output
    warned = [line.partition(" has")[0] for line in result.stderr.splitlines()]
    leaves = ("bias", "kernel")
    assert warned == [f"warning: `optimizer/params/{leaf}`" for leaf in leaves]


UNPRIVILEGED = """
import json, sys
from click.testing import CliRunner
from optim2optax.cli import application

for words in json.loads(sys.argv[1]):
    result = CliRunner().invoke(application, ["checkpoint", *words])
    print(json.dumps([result.exit_code, result.output]))
"""


@pytest.mark.skipif(os.name != "posix", reason="the permissions are those of POSIX")
def test_folders_that_are_closed_or_only_to_be_read(folder: Path) -> None:
    for name in ("readable", "closed"):
        (folder / name).mkdir()
        (folder / name / "there").write_bytes((folder / "checkpoint_3").read_bytes())
    words = ["convert", "checkpoint_3", "--state", "program_of_mine:create_state"]
    refused = {
        "readable/new": words,
        "readable/of_orbax": [*words, "--format", "orbax"],
        "readable/there": [*words, "--force"],
        "closed/new": words,
        "closed/of_orbax": [*words, "--format", "orbax"],
        "closed/there": ["inspect"],
    }
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / "readable").chmod(0o555)
    (folder / "closed").chmod(0)
    calls = json.dumps([[*words, path] for path, words in refused.items()])
    variables = environment(PYTHONPATH=os.pathsep.join(sys.path), JAX_PLATFORMS="cpu")
    python = (*unprivileged(), sys.executable, "-c", UNPRIVILEGED)
    done = run_program(*python, calls, env=variables)
    for name in ("readable", "closed"):
        (folder / name).chmod(0o755)
    assert done.returncode == 0, done.stderr
    for path, line in zip(refused, done.stdout.splitlines(), strict=True):
        code, output = json.loads(line)
        is_read = refused[path] == ["inspect"]
        assert code == (1 if is_read else 2)
        verb = "read" if is_read else "written"
        assert output == f"error: {path} cannot be {verb}: Permission denied.\n"
    files = [path for path in folder.rglob("*") if path.is_file()]
    after = {path: path.read_bytes() for path in files if path.suffix != ".pyc"}
    assert after == before


def unprivileged() -> list[str]:
    """What takes from root, if this is root, that permissions do not bind it."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("permissions do not bind root, and there is no setpriv")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
