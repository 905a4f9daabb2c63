"""Values put into a namespace for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(
    namespace: MutableMapping[str, Any], values: Mapping[str, Any]
) -> Iterator[None]:
    """Put values into a namespace, such as the dictionary of a module, while the context lasts.

    Then the values of before come back.
    """
    before = {name: namespace[name] for name in values if name in namespace}
    namespace.update(values)
    try:
        yield
    finally:
        for name in values:
            namespace.pop(name, None)
        namespace.update(before)
