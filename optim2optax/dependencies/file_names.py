"""Which files declare dependencies, by their names."""

from __future__ import annotations

import posixpath
import re

LOCKS = frozenset(
    ("poetry.lock", "pdm.lock", "uv.lock", "Pipfile.lock", "conda-lock.yml")
)
FORMATS = (
    # requirements-gpu.txt, dev_requirements.in, constraints.txt
    (
        re.compile(r"(?:.*[-_.])?(?:requirements|constraints)(?:[-_.].*)?\.(?:txt|in)"),
        "requirements_txt",
    ),
    (re.compile(r"setup\.py"), "setup_py"),
    (re.compile(r"setup\.cfg"), "setup_cfg"),
    (re.compile(r"pyproject\.toml"), "pyproject"),
    (re.compile(r"Pipfile"), "pipfile"),
    # environment.yml, conda_gpu.yaml
    (
        re.compile(r"(?:.*[-_.])?(?:environment|env|conda)(?:[-_.].*)?\.ya?ml"),
        "environment_yml",
    ),
    # gpu.Dockerfile, Dockerfile.tpu
    (re.compile(r"(?:.*\.)?[Dd]ockerfile(?:\..*)?"), "dockerfile"),
    (re.compile(r".*\.ipynb"), "notebooks"),
)
"""The names of files, and the modules that read them."""


def format_of(path: str) -> str | None:
    """The module that reads a file of this name; None if it declares nothing."""
    folder, name = posixpath.split(path.replace("\\", "/"))
    if name in LOCKS:
        return "lock_files"
    # requirements/train.txt
    if posixpath.basename(folder) == "requirements" and name.endswith((".txt", ".in")):
        return "requirements_txt"
    for pattern, module in FORMATS:
        if pattern.fullmatch(name):
            return module
    return None


def declares(path: str) -> bool:
    """Whether a file of this name declares dependencies, or locks them."""
    return format_of(path) is not None
