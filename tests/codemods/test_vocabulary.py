"""The vocabulary is what exists, or existed, under these names; and nothing else says names of these packages."""

import importlib
import re
import warnings
from pathlib import Path

import pytest

import codemods
from codemods import vocabulary

ALL = vars(vocabulary).items()
SETS = {name: value for name, value in ALL if isinstance(value, frozenset)}
ABSENT = ("TREE_NORM", "CLIP_GRADIENTS", "CHECKPOINTS")
"""Of modules that are gone, or of packages that are not installed here."""

FOLDER = Path(codemods.__file__).parent
NAMED = re.compile(r'"(?:jax|numpy)\.\w[\w.]*"')
TABLES = ("vocabulary.py", "removed.py", "import_names.py", "pure.py", "evidence.py")
"""The vocabulary itself, the table of what was removed, imports; and lists of modules."""


def exists(name: str) -> bool:
    module, _, word = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may be deprecated by now
        try:
            return hasattr(importlib.import_module(module), word)
        except ImportError:
            return False


@pytest.mark.parametrize("name", [name for name in SETS if name not in ABSENT])
def test_of_each_set_a_member_is_there_today(name: str) -> None:
    assert any(map(exists, SETS[name]))


def test_no_other_module_lists_functions() -> None:
    found = {
        (path.name, name)
        for path in FOLDER.rglob("*.py")
        if path.name not in TABLES and path.parent.name != "optimizers"
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
    }

    assert not found
