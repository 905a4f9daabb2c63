"""The codemod under LibCST's own runner, for real."""

import subprocess
import sys
from pathlib import Path

from tests.codemods.programs import migrated, program

LEGACY = """
    from flax import optim

    def create(params):
        return optim.Adam(1e-3).create(params)
    """
REFUSED = """
    from flax import optim

    def create(arguments):
        return optim.Adam(1e-3).create(*arguments)
    """


def test_libcst_runs_it_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "legacy.py").write_text(program(LEGACY))
    (tmp_path / "refused.py").write_text(program(REFUSED))
    command = (
        "-m libcst.tool codemod --no-format -x codemods.command.FlaxOptimToOptax ."
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=tmp_path,
        env={"PYTHONPATH": root, "HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Transformed 2 files successfully" in done.stderr, done.stderr
    assert (tmp_path / "legacy.py").read_text() == migrated(LEGACY)
    assert (tmp_path / "refused.py").read_text() == program(REFUSED)
    assert "FO904" in done.stderr
