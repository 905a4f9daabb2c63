"""What must not change: what admits the new versions, what has nothing to do with them, and what is not understood."""

from dataclasses import replace

import pytest

from codemods import Options, Source
from optim2optax.dependencies import declares
from optim2optax.dependencies.updating import dependencies
from tests.optim2optax.dependencies.files import CHANGING, result_of, text

ENOUGH = {
    "a version that is admitted": ("requirements.txt", "flax==0.10.2\noptax==0.2.4\n"),
    "an open end": ("requirements.txt", "flax>=0.3.4\noptax\njax>=0.2.5\n"),
    "what their repositories have now":
        ("requirements.txt", "flax @ git+https://github.com/google/flax.git#egg=flax\noptax\n"),
    "what a repository has now, by its place alone":
        ("requirements.txt", "flax\ngit+https://github.com/google-deepmind/optax\n"),
    "an upper end above": ("requirements.txt", "flax>=0.3.4,<0.9\noptax~=0.2\n"),
    "versions that are left out": ("requirements.txt", "flax!=0.8.*,!=0.9.0\noptax!=0.2.4\n"),
    "packages with like names":
        ("requirements.txt", "flaxmodels==0.1\njax-md==0.1\nmy-flax==1\noptax-extra==1\nnumpy-stl<1\n"),
    "an old package without Flax or JAX": ("requirements.txt", "numpy==1.19.5\nscipy<1.5\n"),
    "names in comments": ("requirements.txt", "# flax==0.3.4\nnumpy  # jax==0.2\n"),
    "constraints on Flax alone": ("constraints.txt", "flax<0.9\n"),
    "requirements of another tool": ("setup.py", 'setup(name="flax", keywords=["jax", "flax"], version="0.3.4")\n'),
    "a version in a variable": ("setup.py", 'FLAX = ">=0.9"\nsetup(install_requires=["flax" + FLAX])\n'),
    "another key": ("setup.cfg", "[metadata]\nname = flax\ndescription = flax==0.3.4\n"),
    "the Python of a setup.cfg": ("setup.cfg", "[options]\npython_requires = >=3.6\ninstall_requires =\n    jax\n"),
    "another table":
        ("pyproject.toml", '[tool.black]\nflax = "==0.3.4"\n[project]\nname = "flax"\nversion = "0.3.4"\n'),
    "optax in the base": (
        "pyproject.toml",
        '[project]\ndependencies = ["optax"]\n\n[project.optional-dependencies]\nmodels = ["flax"]\n',
    ),
    "Poetry's way":
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.9"\nflax = "*"\noptax = "^0.2"\njax = "^0"\n'),
    "conda's way": ("environment.yml", "dependencies:\n  - flax\n  - optax=0.2\n  - jax>=0.3|0.2.9\n  - python=3.11\n"),
    "pip's part of an environment": ("environment.yml", "dependencies:\n- optax\n- pip:\n  - flax>0.7\n"),
    "an environment without dependencies": ("environment.yml", "# flax\nname: flax\nchannels: [conda-forge]\n"),
    "a Pipfile": ("Pipfile", '[packages]\nflax = "*"\noptax = {version = "*"}\n[requires]\npython_version = "3.10"\n'),
    "what is only said": ("Dockerfile", "FROM python:3.11\n# RUN pip install flax==0.3.4\nRUN echo flax==0.3.4\n"),
    "what comes behind the command": ("Dockerfile", "RUN pip install numpy && echo flax==0.3.4\n"),
    "a cell of text": ("a.ipynb", '{"cells": [{"cell_type": "markdown", "source": ["!pip install flax==0.3.4"]}]}'),
    "code of a cell": ("a.ipynb", '{"cells": [{"cell_type": "code", "source": ["f(\'pip install flax==0.3.4\')"]}]}'),
    "a lock file that has what is needed": (
        "poetry.lock",
        '[[package]]\nname = "flax"\nversion = "0.8.0"\n\n[[package]]\nname = "optax"\nversion = "0.2.4"\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "content"), ENOUGH.values(), ids=ENOUGH)
def test_untouched(path: str, content: str) -> None:
    result = result_of(path, content)
    assert result.after == content.encode()
    assert result.sites == ()


OTHER = "train.py notes.txt setup.md Dockerfile2 lock.json a/b.toml"
DECLARING = """
    requirements.txt requirements-dev.txt dev_requirements.txt a/requirements/gpu.txt
    constraints.txt requirements.in setup.py setup.cfg a/pyproject.toml a.ipynb
    Pipfile environment.yml environment-gpu.yaml conda_env.yml
    Dockerfile gpu.Dockerfile Dockerfile.gpu
    poetry.lock uv.lock pdm.lock Pipfile.lock conda-lock.yml
"""


@pytest.mark.parametrize("path", [*OTHER.split(), *DECLARING.split()])
def test_files_that_declare(path: str) -> None:
    assert declares(path) == (path in DECLARING.split())


def test_without_modernize_nothing_is_changed() -> None:
    result = result_of("requirements.txt", "flax==0.3.4\njax[cuda111]\n", Options())
    assert not result.changed
    assert result.sites == ()
    hints = [(site.code, site.line, site.column) for site in result.hints]
    assert hints == [("FO851", 1, 1), ("FO852", 1, 1), ("FO953", 2, 1)]
    assert {(site.status, site.after) for site in result.hints} == {("hint", None)}


def test_codes_that_are_not_wanted() -> None:
    for wanted in (Options(select=("FO2",)), Options(ignore=("FO85",))):
        options = replace(wanted, modernize=True)
        assert result_of("requirements.txt", "flax==0.3.4\n", options).sites == ()


def test_comments_that_suppress() -> None:
    content = "flax<0.4  # optim2optax: ignore[FO852]\njax<0.3  # optim2optax: ignore\n"
    result = result_of("requirements.txt", content)
    assert result.after.decode() == content.replace("\njax", "\noptax>=0.2.4\njax")
    added, *others = [(site.code, site.status) for site in result.sites]
    assert added == ("FO851", "rewritten")
    assert others == [("FO852", "suppressed")] * 2


def test_what_is_included_is_not_added() -> None:
    files = {
        "requirements.txt": "-r requirements/base.txt\nflax\n",
        "requirements/base.txt": "--requirement common.txt\njax\n",
        "requirements/common.txt": "optax\n-r base.txt\njax\n",
        "environment.yml": "dependencies:\n  - flax\n  - pip:\n    - -r requirements.txt\n",
        "dev-requirements.txt": "-r none.txt\nflax\n",
    }
    sources = [Source(path, content.encode()) for path, content in files.items()]
    results = dependencies(sources, CHANGING)
    changed = [result.path for result in results if result.changed]
    assert changed == ["dev-requirements.txt"]


def test_a_text_that_is_indented() -> None:
    assert text("\n    a\n      b\n") == "a\n  b\n"
