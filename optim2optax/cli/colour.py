"""Whether output is in colour."""

from __future__ import annotations

import os
from typing import IO, Any


def forced_colour() -> bool | None:
    """What the environment says about colour; None if that depends on the stream."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def wants_colour(stream: IO[Any]) -> bool:
    """Whether a stream gets colour: a terminal does, unless NO_COLOR or FORCE_COLOR overrule."""
    forced = forced_colour()
    return stream.isatty() if forced is None else forced
