"""Links to the lines of files, in the text of a report for a terminal (OSC 8)."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from urllib.parse import quote

from codemods.model import FileResult
from optim2optax.wording import printable

PLACE = re.compile(
    r"(?P<bold>\x1b\[1m)?(?P<path>[^\s\x1b`'\"():]+)(?P<plain>\x1b\[0m)?(?::(?P<line>\d+))?"
)
"""A path, perhaps in bold, perhaps with a line."""


def with_links(text: str, results: Iterable[FileResult]) -> str:
    """A text in which each path of a result is a link, to the line that follows it."""
    known = {printable(result.path): result.path for result in results}
    host = socket.gethostname()
    in_editor = os.environ.get("TERM_PROGRAM") == "vscode"

    def linked(match: re.Match[str]) -> str:
        path = known.get(match["path"])
        if path is None:
            # a word of a message that only looks like a path
            return match[0]
        location = quote(os.path.abspath(path).replace(os.sep, "/"))
        line = match["line"]
        if in_editor:
            # vscode://file/home/me/train.py:12
            address = f"vscode://file{location}" + (f":{line}" if line else "")
        else:
            # file://host/home/me/train.py#12
            address = f"file://{host}{location}" + (f"#{line}" if line else "")
        return f"\x1b]8;;{address}\x1b\\{match[0]}\x1b]8;;\x1b\\"

    return PLACE.sub(linked, text)
