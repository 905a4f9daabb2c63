"""Code in which no step is recorded.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_thread = threading.local()


def is_suspended() -> bool:
    """Whether this thread is inside a step, or records none for another reason."""
    return getattr(_thread, "is_suspended", False)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record no step that this thread takes while the context lasts."""
    before = is_suspended()
    _thread.is_suspended = True
    try:
        yield
    finally:
        _thread.is_suspended = before


def suspending(step: Callable[..., Any]) -> Callable[..., Any]:
    """A function in which nothing is recorded."""

    @wraps(step)
    def within(*args: Any, **kwargs: Any) -> Any:
        with unrecorded():
            return step(*args, **kwargs)

    return within
