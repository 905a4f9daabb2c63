"""The process that is recorded: the user's script in it, and its end."""

from __future__ import annotations

import ast
import atexit
import importlib
import os
import sys
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from optim2optax.parity.recording.observing import listen
from optim2optax.parity.recording.patching import recording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from optim2optax.parity.recording.recorder import Recorder


def begin(recorder: Recorder, side: Mapping[str, Any]) -> None:
    """Record the steps of this process, and import the packages that the user's script imports."""
    until_exit(recording(recorder, side["legacy"]))
    listen(recorder.observe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_packages(_script([copy for _, copy in side["copies"]]))


def until_exit(context: AbstractContextManager[Any]) -> None:
    """Enter a context, which lasts until all is written at the end of this process."""
    stack = ExitStack()
    stack.enter_context(context)
    atexit.register(stack.close)


def _script(copies: Sequence[str]) -> Path | None:
    """The file of the user's that this process runs, if it runs one."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    # A console script is outside of the tree.
    is_of_the_user = any(Path(copy) in path.parents for copy in copies)
    return path if is_of_the_user else None


def finish_at_exit(
    recorder: Recorder,
    foreign: Callable[[], Sequence[str]],
    last: Callable[[], None],
) -> None:
    """Let all be written ahead of the end of this process.

    `last` writes the last records, `foreign` gives the modules that were loaded from the user's
    own tree.
    """

    def finish() -> None:
        # Callbacks may still be under way.
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        last()
        found = foreign()
        if found:
            recorder.writer.write({"foreign": list(found)})

    end: Callable[[int], Any] = os._exit
    process = os.getpid()

    def end_recorded(status: int) -> None:
        # A process that was forked off records nothing.
        if os.getpid() == process:
            finish()
        end(status)

    atexit.register(finish)
    # A program may end by `os._exit`, without the functions of `atexit`.
    vars(os)["_exit"] = end_recorded


def import_packages(path: Path | None) -> None:
    """Import the packages that a file imports ahead of `precise`.

    A package that is imported within it would keep float64 as its `jnp.float32` for ever after.
    Modules beside the file are not packages: they are to compute in float64.
    """
    if path is None:
        return
    for node in ast.walk(ast.parse(path.read_bytes())):
        for name in _imported_by(node):
            if _is_beside(path, name):
                continue
            # A file may import what is not installed, in a `try`.
            with suppress(ImportError):
                importlib.import_module(name)


def _is_beside(path: Path, name: str) -> bool:
    """Whether a module is one of the folder of a file, such as `models` or `models.mlp`."""
    folder = path.parent / name.partition(".")[0]
    file = path.parent / f"{name}.py"
    return folder.exists() or file.exists()


def _imported_by(node: ast.AST) -> list[str]:
    """The modules that a statement may import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
        return []
    # `from flax import linen` imports `flax.linen`, if that is a module.
    inner = [f"{node.module}.{alias.name}" for alias in node.names]
    return [node.module, *inner]
