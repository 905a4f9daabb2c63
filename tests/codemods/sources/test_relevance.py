"""Which files are parsed at all: first what must not be, then every way for an optimizer to get to a file."""

import pytest

from codemods import Source, migrate
from codemods.sources.relevance import Relevance

TRAIN = "from flax import optim\n\ndef make(params):\n    return optim.Adam(1e-3).create(params)\n"


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"data.py": "import numpy\n", "plot.py": "import data\n"}, id="no optimizer at all"),
        pytest.param({"a.py": "import jax\nlabels = batch['target']\n"}, id="a key of a batch, and no optimizer"),
        pytest.param({"a.py": "import torch\nvalues = optimizer.target\n"}, id="no JAX"),
    ],
)  # fmt: skip
def test_nothing_is_relevant(files: dict[str, str]) -> None:
    assert Relevance(files).paths == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("notes.py", "print 'Python 2'\n", id="unrelated, and no Python"),
        pytest.param("other/main.py", "import pandas\nimport trainer\n", id="imports a module of a similar name"),
        pytest.param("other/main.py", "# import train\n", id="names it in a comment"),
        pytest.param("other/main.py", "important = train\n", id="no import"),
    ],
)  # fmt: skip
def test_unrelated_files_are_left_out(path: str, text: str) -> None:
    assert Relevance({"train.py": TRAIN, path: text}).paths == ["train.py"]


@pytest.mark.parametrize(
    "text",
    [
        "import train\n",
        "import os, train as t\n",
        "import os; import train\n",
        "import train; import os\n",
        "from train import make; from os import path; import sys\n",
        "x = 'important'; import train\n",
        "import os, \\\n    train\n",
        "if True: import train\n",
        "try:\n    from train import make\nexcept ImportError:\n    make = None\n",
        "from train import (\n    make,  # builds it\n)\n",
        "from train import *\n",
        "from . import train\n",
        "from .train import make\n",
        "import importlib\ntrain = importlib.import_module('train')\n",
        "train = __import__('train')\n",
        "from\ttrain  import\tmake\r\n",
    ],
)
def test_importers_are_relevant(text: str) -> None:
    both = {"main.py": text, "train.py": TRAIN}
    assert {*Relevance(both).paths} == {*both}


def test_a_whole_program_is_relevant() -> None:
    """From the importer of an importer down to what that imports besides, through packages and roots."""
    files = {
        "src/lab/__init__.py": "from lab.models import net\n",
        "src/lab/models/__init__.py": "",
        "src/lab/models/net.py": "import jax\n",
        "src/lab/train.py": TRAIN,
        "src/lab/loop.py": "from lab import train\n",
        "scripts/run.py": "from lab.loop import train\nimport lab.evaluate\n",
        "src/lab/evaluate.py": "def evaluate(o): return o.target\n",
        "src/lab/unrelated.py": "import lab.models\n",
        "elsewhere/loop.py": "import math\n",
    }
    left = ["elsewhere/loop.py", "src/lab/unrelated.py"]
    assert sorted(set(files) - {*Relevance(files).paths}) == left


def test_a_test_is_relevant_for_what_it_shares() -> None:
    shared = f"import pytest\n{TRAIN}"
    files = {
        "tests/conftest.py": shared,
        "tests/agents/test_target.py": "def test_target(agent): agent.target\n",
        "tests/target.py": "def read(agent): return agent.target\n",
        "test_target.py": "def test_target(agent): agent.target\n",
    }
    shared_with = ["tests/agents/test_target.py", "tests/conftest.py"]
    assert sorted(Relevance(files).paths) == shared_with


def test_readers_without_an_import_are_relevant_beside_an_optimizer() -> None:
    reader = "import jax\n\ndef restore(checkpoint):\n    return checkpoint['target']\n"
    both = {"train.py": TRAIN, "restore.py": reader}
    assert {*Relevance(both).paths} == {*both}


@pytest.mark.parametrize("text", ["print 'Python 2'\n", "x = 'caf\xe9'\n"])
def test_an_unrelated_file_that_cannot_be_read_is_no_error(text: str) -> None:
    content = text.encode("latin-1")
    sources = [Source("train.py", TRAIN.encode()), Source("left.py", content)]
    done, left = migrate(sources)
    assert done.changed
    assert (left.error, left.after, left.sites) == (None, content, ())


def test_names_of_the_standard_library_mean_it() -> None:
    """A package's own `types.py` is not what `import types` imports; a script's neighbour is."""
    train = f"import types\n{TRAIN}"
    package = {"lab/__init__.py": "", "lab/train.py": train, "lab/types.py": ""}
    script = {"train.py": train, "types.py": ""}
    assert Relevance(package).paths == ["lab/train.py"]
    assert set(Relevance(script).paths) == {"train.py", "types.py"}


def test_of_modules_of_one_name_the_nearest_is_meant() -> None:
    files = {
        "one/train.py": TRAIN,
        "one/main.py": "import train\n",
        "two/train.py": "",
        "two/main.py": "import train\n",
    }
    assert set(Relevance(files).paths) == {"one/train.py", "one/main.py"}
