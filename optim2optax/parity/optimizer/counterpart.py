"""An optimizer as the new tree has it."""

from __future__ import annotations

from dataclasses import dataclass

from codemods.model import EmittedOptimizer


@dataclass(frozen=True)
class Counterpart(EmittedOptimizer):
    """An optimizer as the new tree has it.

    `legacy_supports` are the functions and classes that the old expression reaches. `known` names
    those of `supports` that are as `rewrite` emits them, `changed` those that differ in the new
    tree from what `rewrite` makes of the old one. If there is a `reason`, nothing can be compared.
    """

    legacy_supports: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    reason: str = ""
