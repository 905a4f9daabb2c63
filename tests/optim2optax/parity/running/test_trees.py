"""What copies of trees keep."""

from pathlib import Path

import pytest

from optim2optax.parity.running.trees import copy_tree
from optim2optax.project import by_repository, find_files
from optim2optax.project.patterns import Patterns

TREES = {
    "repositories side by side": (("one/.git", "two/.git"), ["one", "two"]),
    "one repository": ((".git", "one/.git"), [""]),
    "one within another": (("one/.git", "one/inner/.git"), ["", "one"]),
    "no repository": ((), [""]),
}


@pytest.mark.parametrize(("repositories", "projects"), TREES.values(), ids=TREES)
def test_projects_stay_what_they_are(
    repositories: tuple[str, ...], projects: list[str], tmp_path: Path
) -> None:
    """`rewrite` may come to other forms where it takes several projects for one."""
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("one/train.py", "one/inner/train.py", "two/train.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).touch()
    for name in repositories:
        (source / name).mkdir()

    copy_tree(source, target)

    found = by_repository(find_files([str(target)], Patterns(str(target), ())))
    names = [folder.removeprefix(str(target)).strip("/") for folder in found]
    assert sorted(names) == projects
