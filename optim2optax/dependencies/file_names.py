"""Which files declare dependencies, by their names, and which of them matter here."""

from __future__ import annotations

import posixpath
import re

COMMANDS = {
    "poetry.lock": "poetry lock",
    "pdm.lock": "pdm lock",
    "uv.lock": "uv lock",
    "Pipfile.lock": "pipenv lock",
    "conda-lock.yml": "conda-lock",
}
"""The names of lock files, and the commands that make them."""

FORMATS = {
    # requirements-gpu.txt, dev_requirements.in, constraints.txt
    r"(.*[-_.])?(requirements|constraints)([-_.].*)?\.(txt|in)": "requirements_txt",
    r"setup\.py": "setup_py",
    r"setup\.cfg": "setup_cfg",
    r"pyproject\.toml": "pyproject",
    r".*\.ipynb": "notebooks",
    # environment.yml, conda_gpu.yaml, gpu.Dockerfile, Dockerfile.tpu
    r"Pipfile|(.*[-_.])?(environment|env|conda)([-_.].*)?\.ya?ml": "not_edited",
    r"(.*\.)?[Dd]ockerfile(\..*)?": "not_edited",
    r"tox\.ini|noxfile\.py": "shell",
    r"(GNU)?[Mm]akefile|.*\.(mk|sh|bash)|(README|INSTALL)(\..*)?": "shell",
    r"\.(gitlab-ci|travis)\.yml|azure-pipelines\.ya?ml": "shell",
    r".*\.(gin|ya?ml)": "configurations",
}
"""The names of files, and the modules that read them; of some, only commands install packages."""

WORKFLOWS = (".github/workflows", ".circleci")
"""The folders of which each YAML file is one for continuous integration."""


def format_of(path: str) -> str | None:
    """The module that reads a file of this name; None if it declares nothing."""
    folder, name = posixpath.split(path.replace("\\", "/"))
    if name in COMMANDS:
        return "not_edited"
    if folder.endswith(WORKFLOWS) and name.endswith((".yml", ".yaml")):
        return "shell"
    # requirements/train.txt
    if posixpath.basename(folder) == "requirements" and name.endswith((".txt", ".in")):
        return "requirements_txt"
    matching = (
        module for pattern, module in FORMATS.items() if re.fullmatch(pattern, name)
    )
    return next(matching, None)


def declares(path: str) -> bool:
    """Whether a file of this name declares dependencies, locks or installs them."""
    return format_of(path) is not None


def mentions(content: bytes) -> bool:
    """Whether a file says `flax` or `jax` at all, in any encoding."""
    # of UTF-16, every second byte of these letters is 0
    letters = content.replace(b"\0", b"").lower()
    return b"flax" in letters or b"jax" in letters
