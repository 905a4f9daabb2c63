"""Programs run as commands, against what `rewrite` makes of them."""

from pathlib import Path
from typing import Any

from codemods import Options, Source, migrate
from optim2optax.parity.command.runs import RunOptions
from optim2optax.parity.command.verdict import compare_command
from optim2optax.parity.judging.comparison import Comparison


def migrated(program: str, *changes: tuple[str, str]) -> str:
    """What `rewrite` makes of a program, with changes of that."""
    [result] = migrate([Source("train.py", program.encode())], Options())
    now = result.after.decode()
    for old, new in changes:
        assert old in now, now
        now = now.replace(old, new)
    return now


def compared(
    folder: Path, program: str, *changes: tuple[str, str], **options: Any
) -> Comparison:
    """A program against what `rewrite` makes of it, with changes of that."""
    for tree, text in (("before", program), ("now", migrated(program, *changes))):
        (folder / tree).mkdir()
        (folder / tree / "train.py").write_text(text)
    sides = (str(folder / "before"), folder / "now")
    return compare_command(("python", "train.py"), *sides, RunOptions(**options))
