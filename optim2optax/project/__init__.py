"""Finding, reading and writing the files of a project safely."""

from optim2optax.project.declaring import concerning, find_declaring
from optim2optax.project.finding import (
    EXCLUDED,
    Found,
    by_repository,
    find_files,
    repository_finder,
    shown,
    upwards,
)
from optim2optax.project.patterns import NOTHING, PatternError, Patterns
from optim2optax.project.reading_files import UnreadableError, read_file
from optim2optax.project.rest_of_project import find_context
from optim2optax.project.roots import Root, root_of
from optim2optax.project.uncommitted import UncommittedError, uncommitted
from optim2optax.project.writing_files import FileChange, write_files

__all__ = [
    "EXCLUDED",
    "NOTHING",
    "FileChange",
    "Found",
    "PatternError",
    "Patterns",
    "Root",
    "UncommittedError",
    "UnreadableError",
    "by_repository",
    "concerning",
    "find_context",
    "find_declaring",
    "find_files",
    "read_file",
    "repository_finder",
    "root_of",
    "shown",
    "uncommitted",
    "upwards",
    "write_files",
]
