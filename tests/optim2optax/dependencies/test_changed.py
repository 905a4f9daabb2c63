"""What changes: before and after, side by side. All that is beside it stays, to the byte."""

import pytest

from tests.codemods.programs import changes
from tests.optim2optax.dependencies.files import after, result_of, text

REQUIREMENTS = {
    "a pin": ("flax==0.3.4\n", "flax>=0.8.0\noptax>=0.2.4\n"),
    "a range": ("jax>=0.2.5,<0.3\n", "jax>=0.4.27\n"),
    "a local version": ("jaxlib==0.1.67+cuda111\n", "jaxlib>=0.4.27\n"),
    "an extra": ("jax[cpu]==0.2.9\n", "jax[cpu]>=0.4.27\n"),
    "an extra that has another name": ("jax[cuda12_pip, tpu]<0.4.20\n", "jax[cuda12, tpu]>=0.4.27\n"),
    "arbitrary equality": ("jax===0.2.9\n", "jax>=0.4.27\n"),
    "a compatible release": ("jax~=0.2.9\n", "jax>=0.4.27\n"),
    "a wildcard": ("jax==0.3.*\n", "jax>=0.4.27\n"),
    "spaces": ("  flax == 0.3.4\n", "  flax >= 0.8.0\n  optax >= 0.2.4\n"),
    "brackets": ("jax (>=0.2, <0.3)\n", "jax (>=0.4.27)\n"),
    "other letters": ("Flax==0.3.4\nJAX==0.2\n", "Flax>=0.8.0\noptax>=0.2.4\nJAX>=0.4.27\n"),
    "markers and comments": (
        "jax==0.2.9 ; python_version < '3.8'  # why\njax>=0.3\n",
        "jax>=0.4.27 ; python_version < '3.8'  # why\njax>=0.3\n",
    ),
    "no versions": ("flax\nclu\n", "flax\noptax\nclu\n"),
    "sorted names": ("absl-py\nflax\njax\nnumpy\nscipy\n", "absl-py\nflax\njax\nnumpy\noptax\nscipy\n"),
    "the last line, without an end": ("numpy\njax\nflax>=0.3", "numpy\njax\nflax>=0.3\noptax>=0.2.4"),
    "lines that go on":
        ("flax==0.3.4 \\\n  --no-binary flax\njax\n", "flax>=0.8.0 \\\n  --no-binary flax\noptax>=0.2.4\njax\n"),
    "a version behind the end of a line": ("jax \\\n  ==0.2.9\n", "jax \\\n  >=0.4.27\n"),
    "options and other packages": (
        "-f ./wheels\n--extra-index-url x\nclu==0.0.6\njax==0.2  # a\n\n# end",
        "-f ./wheels\n--extra-index-url x\nclu==0.0.6\njax>=0.4.27  # a\n\n# end",
    ),
    "what optax needs":
        ("jax\nnumpy<1.20\nscipy==1.5\nchex==0.0.8\n", "jax\nnumpy>=1.24.1\nscipy>=1.9.0\nchex>=0.1.87\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "new"), REQUIREMENTS.values(), ids=REQUIREMENTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_requirements(before: str, new: str, end: str) -> None:
    found = after("requirements.txt", before.replace("\n", end))
    assert found == new.replace("\n", end)


def test_constraints_are_raised_and_not_added_to() -> None:
    assert after("constraints.txt", "flax==0.3.4\n") == "flax>=0.8.0\n"


SETUP = """
== a list
  from setuptools import setup

  setup(
      name="models",
-     python_requires=">=3.6,<3.9",
+     python_requires=">=3.9",
      install_requires=[
          # arrays
-         'jax>=0.2.5,<0.3',
-         'flax==0.3.4',  # see #12, please
+         'jax>=0.4.27',
+         'flax>=0.8.0',  # see #12, please
+         'optax>=0.2.4',
          "numpy",
      ],
  )
== a name, sums and extras
  import setuptools

- REQUIRED = ["flax", "jax==0.2"]
- GPU = ["jax[cpu]<0.3"]
- EXTRAS = {"gpu": GPU, "all": GPU + ["flax>=0.3, <0.4"], "none": []}
+ REQUIRED = ["flax", "optax", "jax>=0.4.27"]
+ GPU = ["jax[cpu]>=0.4.27"]
+ EXTRAS = {"gpu": GPU, "all": GPU + ["flax>=0.8.0"], "none": []}
  setuptools.setup(install_requires=REQUIRED + ["clu"], extras_require=EXTRAS)
== the last of a list without a comma
  setup(install_requires=[
      'clu',
-     'flax>=0.3'  # last
+     'flax>=0.3',  # last
+     'optax>=0.2.4'
  ])
== commas ahead
  setup(install_requires=[
-     'flax'
+     'flax', 'optax'
      , 'clu'
  ])
== a tuple of one
- setup(install_requires=('flax',))
+ setup(install_requires=('flax', 'optax',))
== letters of several bytes
- setup(author='é', install_requires=['jax<0.3'])
+ setup(author='é', install_requires=['jax>=0.4.27'])
"""


@pytest.mark.parametrize(("before", "expected"), changes(SETUP))
def test_setup_py(before: str, expected: str) -> None:
    assert after("setup.py", text(before)) == text(expected)


CFG = """
== lists
  [metadata]
  name = models

  [options]
- python_requires = ==3.8.*
+ python_requires = >=3.9
  install_requires =
      # arrays
-     jax>=0.2,<0.3
-     flax==0.3.4  # pinned
+     jax>=0.4.27
+     flax>=0.8.0  # pinned
+     optax>=0.2.4
      numpy
  zip_safe = no

  [options.extras_require]
  dev =
-   flax<0.4; python_version > "3.6"
+   flax>=0.8.0; python_version > "3.6"
    pytest
== one line
  [options]
- install_requires = flax<0.4
+ install_requires = flax>=0.8.0
+     optax>=0.2.4
"""


@pytest.mark.parametrize(("before", "expected"), changes(CFG))
def test_setup_cfg(before: str, expected: str) -> None:
    assert after("setup.cfg", text(before)) == text(expected)


PYPROJECT = """
== the project, its extras and its groups
  # the project
  [project]
  name = "models"   # aligned
- requires-python = ">= 3.7, < 3.12"
+ requires-python = ">= 3.9, < 3.12"
  dependencies = [
-     "flax==0.3.4", # pinned, for now
-     'jax>=0.2,<0.3; python_version < "3.10"',
+     "flax>=0.8.0", # pinned, for now
+     "optax>=0.2.4",
+     'jax>=0.4.27; python_version < "3.10"',
  ]

  [project.optional-dependencies]
- gpu = [ "jax[cuda12_pip]" , "jaxlib==0.1.67+cuda111" ]
+ gpu = [ "jax[cuda12]" , "jaxlib>=0.4.27" ]

  [dependency-groups]
- dev = ["pytest", {include-group = "lint"}, "flax <0.4"]
+ dev = ["pytest", {include-group = "lint"}, "flax >=0.8.0"]
  lint = []
== extras and groups alone
  [project.optional-dependencies]
- models = ["flax>=0.3", "jax"]
+ models = ["flax>=0.3", "optax>=0.2.4", "jax"]
  [dependency-groups]
  dev = [
-   "flax"
+   "flax",
+   "optax"
  ]
== Poetry
  [tool.poetry.dependencies]
- python = "^3.7"
- flax   = "^0.3.4"  # pinned
- jax    = {version = "~0.2", extras = ["cpu"]}
- numpy  = "1.19.*"
- jaxlib = [{version = "0.1.67", python = "<3.8"}, {version = ">=0.2 <0.3 || ^0.4", python = ">=3.8"}]
+ python = "^3.9"
+ flax   = ">=0.8.0"  # pinned
+ optax  = ">=0.2.4"
+ jax    = {version = ">=0.4.27", extras = ["cpu"]}
+ numpy  = ">=1.24.1"
+ jaxlib = [{version = ">=0.4.27", python = "<3.8"}, {version = ">=0.2 <0.3 || ^0.4", python = ">=3.8"}]

  [tool.poetry.group.dev.dependencies]
  pytest = "*"

  [build-system]
  requires = ["poetry-core"]
== Poetry, in tables of their own
  [tool.poetry.dependencies]
- python = '>=3.8,<3.9'
+ python = '>=3.9'
  clu = '*'
+ optax = '>=0.2.4'

  [tool.poetry.dependencies.flax]
- version = '^0.3'
+ version = '>=0.8.0'
"""


@pytest.mark.parametrize(("before", "expected"), changes(PYPROJECT))
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_pyproject(before: str, expected: str, end: str) -> None:
    found = after("pyproject.toml", text(before).replace("\n", end))
    assert found == text(expected).replace("\n", end)


NOTEBOOK = """\
{
 "cells": [
  {"cell_type": "code",   "outputs": [], "source": [
    "# \\u00e9tude\\n",
    "!pip install -q flax==0.3.4 \\"jax<0.3\\"\\n",
    "import jax"
   ]},
  {"cell_type": "code", "source": "%%bash\\npip install \\\\\\n  jaxlib==0.1.67"}
 ],
 "nbformat": 4
}"""


def test_notebooks() -> None:
    flax = '\\"flax>=0.8.0\\" \\"optax>=0.2.4\\"'
    expected = NOTEBOOK.replace("flax==0.3.4", flax).replace("jax<0.3", "jax>=0.4.27")
    expected = expected.replace("jaxlib==0.1.67", '\\"jaxlib>=0.4.27\\"')
    assert after("a.ipynb", NOTEBOOK) == expected
    sites = result_of("a.ipynb", NOTEBOOK).sites
    places = [(site.line, site.column) for site in sites]
    assert places == [(5, 17), (5, 17), (5, 29), (8, 3)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_encodings(encoding: str) -> None:
    result = result_of("requirements.txt", "# é\r\nflax==0.3.4\r\n".encode(encoding))
    assert result.after == "# é\r\nflax>=0.8.0\r\noptax>=0.2.4\r\n".encode(encoding)


def test_the_coding_line_of_a_setup_py() -> None:
    text = (
        "# -*- coding: latin-1 -*-\nsetup(author='é', install_requires=['jax<0.3'])\n"
    )
    before = text.encode("latin-1")
    assert result_of("setup.py", before).after == before.replace(b"<0.3", b">=0.4.27")


def test_sites() -> None:
    [added, raised] = result_of("requirements.txt", "numpy\n flax==0.3.4\n").sites
    assert (added.code, added.line, added.column) == ("FO851", 2, 2)
    assert added.after == "optax>=0.2.4"
    assert (raised.code, raised.end_column) == ("FO852", 13)
    assert (raised.before, raised.after) == ("flax==0.3.4", "flax>=0.8.0")
    assert raised.message == "The new code needs Flax 0.8.0 or later."
    [local] = result_of("requirements.txt", "jaxlib==0.1.67+cuda111\n").sites
    assert local.note.startswith("`+cuda111` is dropped. For a GPU, ")
