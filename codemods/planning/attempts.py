"""How files are edited again whose edits gave no valid file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from codemods.analysis.removed_names import MODERNIZED
from codemods.analysis.uses import Use
from codemods.rewriting.editing import Problem
from codemods.sources.modules import Unit


@dataclass
class Attempts:
    """How files are edited that were not valid before.

    First what has to do with no optimizer is left as it was, then the general forms are taken, and
    at last the whole file is left as it was.

    `plain` has the files that take the general forms, `unmodernized` those in which removed names
    stay, and `failed` those in which everything stays. The last two also have the problem.
    """

    plain: set[Unit] = field(default_factory=set)
    unmodernized: dict[Unit, Problem] = field(default_factory=dict)
    failed: dict[Unit, Problem] = field(default_factory=dict)

    def problem(self, use: Use) -> Problem | None:
        """What was wrong with a file in which a use was rewritten; None if it may be rewritten."""
        problem = self.failed.get(use.unit)
        # jax.tree_map, which has to do with no optimizer
        if problem is None and use.kind in MODERNIZED:
            problem = self.unmodernized.get(use.unit)
        return problem

    def follow(
        self, invalid: Mapping[Unit, Problem], modernized: Collection[Unit]
    ) -> None:
        """Take the next step for the files that turned out invalid.

        In those of `modernized`, removed names were replaced.
        """
        for unit, problem in invalid.items():
            # perhaps the fault is in what has to do with no optimizer
            if unit in modernized:
                self.unmodernized[unit] = problem
            elif unit not in self.plain:
                self.plain.add(unit)
                self.unmodernized.pop(unit, None)
            else:
                self.failed[unit] = problem
