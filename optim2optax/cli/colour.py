"""Whether output is in colour, and whether it has links."""

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


def wants_links(stream: IO[Any]) -> bool:
    """Whether a stream gets links to files: a terminal does that is known to have them."""
    return wants_colour(stream) and stream.isatty() and _has_links(os.environ)


def _has_links(environment: os._Environ[str]) -> bool:
    # GNOME Terminal and its like have links since 0.50, but 0.50.0 crashed on them
    version = environment.get("VTE_VERSION", "")
    if version.isdigit():
        return int(version) > 5000
    if environment.get("TERM_PROGRAM") in (
        "iTerm.app",
        "WezTerm",
        "vscode",
        "ghostty",
        "zed",
    ):
        return True
    term = environment.get("TERM", "")
    if term.startswith(("xterm-kitty", "xterm-ghostty", "alacritty", "foot")):
        return True
    return any(
        name in environment for name in ("WT_SESSION", "KONSOLE_VERSION", "DOMTERM")
    )
