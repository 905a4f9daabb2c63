"""From where the paths of a project's modules go, and what a folder that is a package is called."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from optim2optax.project import Patterns, Root, find_files, read_file, root_of


def make_files(folder: Path, *names: str, **texts: str) -> None:
    for name, text in {**dict.fromkeys(names, ""), **texts}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def root(*arguments: str) -> Root:
    """The root of the files that some arguments name."""
    found = find_files(arguments, Patterns(".", ()))
    return root_of({file: read_file(file.location) for file in found})


def paths(*arguments: str) -> list[str]:
    """The paths of their modules."""
    found = find_files(arguments, Patterns(".", ()))
    return [root(*arguments).path(file.location) for file in found]


@pytest.mark.parametrize("marker", ["pyproject.toml", ".git", "setup.py"])
@pytest.mark.parametrize("current", [".", "src", "src/pkg"])
def test_modules_are_named_from_the_root_on(
    project: Path, monkeypatch: pytest.MonkeyPatch, marker: str, current: str
) -> None:
    """Wherever the command is run, and whatever part of the project it is given."""
    make_files(project, marker, "src/pkg/a.py", "src/pkg/b.py")
    monkeypatch.chdir(project / current)
    one, other = str(project / "src/pkg/a.py"), str(project / "src/pkg/b.py")
    assert paths(one, other) == ["src/pkg/a.py", "src/pkg/b.py"]
    assert paths(one) == ["src/pkg/a.py"]


@pytest.mark.parametrize(
    ("files", "named", "expected"),
    [
        ("x/a.py x/y/b.py", "x", "a.py y/b.py"),
        ("x/a.py x/y/b.py", "x/y x", "a.py y/b.py"),
        ("x/a.py x/y/b.py", "x/y", "b.py"),
        ("x/a.py x/y/b.py", "x/a.py x/y", "a.py y/b.py"),
        ("x/pkg/a.py x/pkg/b.py", "x", "pkg/a.py pkg/b.py"),
        ("pkg/__init__.py pkg/in/__init__.py pkg/in/a.py", "pkg/in/a.py", "pkg/in/a.py"),
        ("pkg/__init__.py pkg/in/a.py", "pkg", "pkg/__init__.py pkg/in/a.py"),
    ],
)  # fmt: skip
def test_modules_without_a_root_are_named_from_what_was_named_on(
    project: Path, files: str, named: str, expected: str
) -> None:
    """Or from the folder around the outermost package."""
    make_files(project, *files.split())
    assert paths(*named.split()) == expected.split()


NO_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "there is another of the name in it":
        {"train.py": "from pkg import models\n", "models.py": "", "pkg/models.py": ""},
    "it has no __init__.py, and not all of what is imported":
        {"train.py": "from pkg import models\nfrom pkg.layers import dense\n", "models.py": ""},
    "nothing is imported by its name": {"__init__.py": "", "train.py": "import models\n", "models.py": ""},
    "what is imported by its name is not in it":
        {"__init__.py": "", "train.py": "from pkg import linen\nfrom pkg.core import frozen_dict\n"},
    "the name is that of a longer one":
        {"__init__.py": "", "train.py": "from pkgs.models import vit\nimport other.pkg.models\n", "models/vit.py": ""},
    "only a text has the name": {"__init__.py": "", "train.py": '"""Part of pkg.models."""\n', "models.py": ""},
}  # fmt: skip


@pytest.mark.parametrize("files", NO_PACKAGES.values(), ids=NO_PACKAGES)
def test_a_root_that_is_no_package_has_no_name(
    project: Path, files: Mapping[str, str]
) -> None:
    make_files(project / "pkg", ".git", **files)
    assert root("pkg") == Root(str(project / "pkg"))


@pytest.mark.parametrize(
    "statement",
    [
        "from pkg import models",
        "from pkg import (  # the parts\n    models as parts,\n    VERSION,\n)",
        "from pkg.models import vit",
        "import pkg.models.vit as vit",
        "from pkg import VERSION",
        # one of the modules may be made by a build
        "from pkg import models\nfrom pkg._version import version",
    ],
)
def test_a_root_that_is_a_package_has_the_name_of_its_folder(
    project: Path, statement: str
) -> None:
    make_files(
        project / "pkg",
        ".git",
        "models/vit.py",
        **{"__init__.py": "VERSION = 1\n", "train.py": statement},
    )
    found = root("pkg")
    assert found == Root(str(project / "pkg"), "pkg")
    assert paths("pkg") == ["pkg/__init__.py", "pkg/models/vit.py", "pkg/train.py"]
    assert found.location("pkg/models/vit.py") == str(project / "pkg/models/vit.py")
    # what is imported beside the package is not within the repository
    assert found.is_around("pkg/models")
    assert not found.is_around("models")


@pytest.mark.parametrize("folder", ["pkg-main", "owner__pkg", "my.pkg", "PKG-pkg"])
@pytest.mark.parametrize("marker", [["pyproject.toml"], []])
def test_a_copy_has_the_name_by_which_it_is_imported(
    project: Path, folder: str, marker: list[str]
) -> None:
    files = {"__init__.py": "", "train.py": "from pkg.models import vit\n"}
    make_files(project / folder, *marker, "models/vit.py", **files)
    assert root(folder).package == "pkg"
    # that is sure as long as nothing else is imported from a package of the name
    more = {"eval.py": "from pkg.layers import dense\n"}
    make_files(project / folder, **more)
    assert root(folder).package == ""
