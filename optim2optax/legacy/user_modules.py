"""Files of the user's, executed as modules that no `import` finds."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from optim2optax.legacy.namespaces import replaced
from optim2optax.legacy.old_flax import give_removed_names, legacy_flax

_load_count = itertools.count()


def load_module(path: Path, name: str, legacy: bool) -> ModuleType:
    """Execute a user's file as a module of its own, which no later `import` finds.

    Args:
        path: the file.
        name: what the module is called in tracebacks; made unique, so that the same file can be
            loaded often.
        legacy: execute it within `legacy_flax`. Its functions may be called outside, unless they
            themselves import something that only the old Flax has.

    Returns:
        The module.
    """
    spec = importlib.util.spec_from_file_location(f"{name}_{next(_load_count)}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    spec.loader = _Fresh(spec.name, str(path))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name while they are being defined.
    with (
        legacy_flax() if legacy else nullcontext(),
        replaced(sys.modules, {module.__name__: module}),
    ):
        spec.loader.exec_module(module)
    if legacy:
        give_removed_names(module)
    return module


class _Fresh(SourceFileLoader):
    """Reads a file anew: bytecode may be that of another text of the same second and length."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(path)
