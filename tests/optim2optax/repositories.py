"""Git repositories in which the application is run."""

import subprocess
from pathlib import Path

SETTINGS = (
    *("-c", "user.name=Tester", "-c", "user.email=tester@example.org"),
    *("-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always"),
)


def git(folder: Path, *words: str) -> None:
    """Run git in a folder, whoever the user is, and whatever hooks there are."""
    subprocess.run(
        ["git", *SETTINGS, *words], cwd=folder, check=True, capture_output=True
    )


def commit_all(folder: Path, message: str = "all") -> None:
    """Make a repository of a folder, with one commit of all that is in it."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
