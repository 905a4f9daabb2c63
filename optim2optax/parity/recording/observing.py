"""Values that a program hands over itself, to be compared beside the updates of its optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Listener = Callable[[str, Any], None]

_listeners: list[Listener] = []


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


def listen(listener: Listener) -> None:
    """Give a listener all that is observed from now on."""
    _listeners.append(listener)
