"""What has been tried of files whose edits did not go together, and what is tried next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from codemods.analysis.removed_names import MODERNIZED
from codemods.analysis.uses import Use
from codemods.sources.modules import Unit


@dataclass
class Attempts:
    """How files are edited that were not valid before: without what has to do with no optimizer, then in general forms.

    `plain` has those that take the general forms, `unmodernized` those in which removed names stay, and `failed` those in which
    all stays; each of these two with what was wrong.
    """

    plain: set[Unit] = field(default_factory=set)
    unmodernized: dict[Unit, str] = field(default_factory=dict)
    failed: dict[Unit, str] = field(default_factory=dict)

    def problem(self, use: Use) -> str | None:
        """What was wrong with a file in which a use was rewritten; None if it may be."""
        left = self.unmodernized if use.kind in MODERNIZED else {}
        return self.failed.get(use.unit, left.get(use.unit))

    def follow(self, invalid: Mapping[Unit, str], modernized: Collection[Unit]) -> None:
        """Take the next step for the files that turned out invalid; in those of `modernized`, removed names were replaced."""
        for unit, problem in invalid.items():
            if unit in modernized:
                self.unmodernized[unit] = problem
            elif unit not in self.plain:
                self.plain.add(unit)
                self.unmodernized.pop(unit, None)
            else:
                self.failed[unit] = problem
