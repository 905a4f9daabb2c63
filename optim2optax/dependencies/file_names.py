"""Which files declare dependencies, by their names."""

from __future__ import annotations

import posixpath
import re

from optim2optax.dependencies.elsewhere import COMMANDS

FORMATS = {
    # requirements-gpu.txt, dev_requirements.in, constraints.txt
    r"(.*[-_.])?(requirements|constraints)([-_.].*)?\.(txt|in)": "requirements_txt",
    r"setup\.py": "setup_py",
    r"setup\.cfg": "setup_cfg",
    r"pyproject\.toml": "pyproject",
    r".*\.ipynb": "notebooks",
    # environment.yml, conda_gpu.yaml, gpu.Dockerfile, Dockerfile.tpu
    r"Pipfile|(.*[-_.])?(environment|env|conda)([-_.].*)?\.ya?ml": "elsewhere",
    r"(.*\.)?[Dd]ockerfile(\..*)?": "elsewhere",
}
"""The names of files, and the modules that read them."""


def format_of(path: str) -> str | None:
    """The module that reads a file of this name; None if it declares nothing."""
    folder, name = posixpath.split(path.replace("\\", "/"))
    if name in COMMANDS:
        return "elsewhere"
    # requirements/train.txt
    if posixpath.basename(folder) == "requirements" and name.endswith((".txt", ".in")):
        return "requirements_txt"
    matching = (
        module for pattern, module in FORMATS.items() if re.fullmatch(pattern, name)
    )
    return next(matching, None)


def declares(path: str) -> bool:
    """Whether a file of this name declares dependencies, or locks them."""
    return format_of(path) is not None
