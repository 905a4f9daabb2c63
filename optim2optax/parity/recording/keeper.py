"""The receiver of the steps that are recorded.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Keeper(Protocol):
    """The receiver of each step."""

    def keep(
        self, step: Any, before: Any, gradients: Any, rate: Any, after: Any
    ) -> None:
        """Take the facts of a step of an optimizer.

        They are its count, the parameters ahead of it, the gradients, the learning rate that it
        was given (NaN: none), and the new parameters.
        """

    def update(self, before: Any, after: Any) -> None:
        """Take the parameters around a call of `optax.apply_updates` outside of any train state."""

    def functional(self, step: Any, before: Any, after: Any) -> None:
        """Take the facts of a step that a definition takes without an optimizer.

        They are its count, the parameters ahead of it, and the new ones.
        """

    def meet(self, state: Any) -> None:
        """Take the traced legacy optimizer, definition or train state that is about to step."""

    def widen(self) -> None:
        """Note that an optimizer is created with float64 in the place of given float32."""

    def lose(self) -> None:
        """Note that an optimizer's state or hyperparameters do not follow from its steps so far."""


class Settings(NamedTuple):
    """The arguments of `recording`: who receives the steps, and which parts of them."""

    keeper: Keeper
    start: Callable[[Any], Any]
    part: Callable[[Any], Any]
    beside: Callable[[Any, Any, Any], Any]
    rounding: bool
    wide: bool
