"""Programs that are run to their end, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[str]


def run_program(*words: str | Path, **settings: Any) -> Done:
    """Run a program; whatever comes of that is the caller's to judge."""
    return subprocess.run(
        words, capture_output=True, text=True, check=False, **settings
    )


def run_python(*words: str | Path, **settings: Any) -> Done:
    """Run this Python, such as with `-c` and a program or with `-m` and a module."""
    return run_program(sys.executable, *words, **settings)


def run_command(*words: str | Path, **settings: Any) -> Done:
    """Run `optim2optax` with arguments."""
    return run_python("-m", "optim2optax", *words, **settings)


def environment(**variables: str) -> dict[str, str]:
    """This environment with other variables, in which programs of this Python are found first."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, **variables}
