"""The command that installs an extra of this package, in the way in which the package was."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME = "optim2optax"
UVX_FOLDERS = frozenset(("archive-v0", "environments-v2"))
"""The folders in uv's cache that hold the environments of `uvx`."""


def command_to_install(extra: str) -> str:
    """What to type to have an extra, too."""
    source, is_editable = _source(extra)
    wanted = shlex.quote(source)
    environment = Path(sys.prefix)
    if UVX_FOLDERS.intersection(environment.parts):
        return f"uvx --from {wanted} {NAME} …"
    if (environment / "uv-receipt.toml").exists():
        return f"uv tool install --force {wanted}"
    if (environment / "pipx_metadata.json").exists():
        return f"pipx install --force {wanted}"
    option = "--editable " if is_editable else ""
    if find_spec("pip") is None and shutil.which("uv") is not None:
        python = shlex.quote(sys.executable)
        return f"uv pip install --python {python} {option}{wanted}"
    return f"{_python()} -m pip install {option}{wanted}"


def _source(extra: str) -> tuple[str, bool]:
    """What to install, and whether from a clone in which it is to stay editable."""
    origin = _origin()
    url = origin.get("url", "")
    if "dir_info" in origin:
        folder = url2pathname(urlsplit(url).path)
        is_here = os.path.realpath(folder) == os.getcwd()
        is_editable = bool(origin["dir_info"].get("editable"))
        return f"{os.curdir if is_here else folder}[{extra}]", is_editable
    if "vcs_info" in origin:
        version = origin["vcs_info"]
        url = f"{version['vcs']}+{url}@{version['commit_id']}"
    return f"{NAME}[{extra}] @ {url}" if url else f"{NAME}[{extra}]", False


def _origin() -> Any:
    """Where the package was installed from, as its installer recorded it (PEP 610)."""
    try:
        recorded = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return json.loads(recorded) if recorded else {}


def _python() -> str:
    """How to call the Python that runs."""
    found = shutil.which("python")
    # a link to the same file in another environment is another Python
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "python"
    return shlex.quote(sys.executable)
