"""Faults come to programs that a person started."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Ctrl-C is heeded by what is started here, also where the tests were started in a shell's background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
