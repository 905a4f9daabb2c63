"""Values that a program hands over itself, to be compared beside the updates of its optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_listeners: list[Callable[[str, Any], None]] = []


def observe(name: str, tree: Any) -> None:
    """Let parity compare arrays or numbers of a program, such as an accuracy or running statistics.

    `optim2optax parity --before REF -- COMMAND` compares what the old side and the new hand over
    under each name, in the order in which they do, by the gate of a closed loop. Without parity
    this does nothing. It may be called within jitted code too.

        from optim2optax.parity import observe

        observe("accuracy", accuracy)

    Args:
        name: of what is observed.
        tree: any tree of arrays and numbers.
    """
    for listener in _listeners:
        listener(name, tree)


def listen(listener: Callable[[str, Any], None]) -> None:
    """Give a listener all that is observed from now on."""
    _listeners.append(listener)
