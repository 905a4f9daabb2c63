"""New names for variables and parameters of optimizers that have a train state now.

`optimizer` becomes `state`, and a variable for the transformation alone `tx`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from codemods.analysis.facts import Facts
from codemods.analysis.origins import Origins
from codemods.inference.objects import LegacyObject
from codemods.renaming.attributes import plan_attributes
from codemods.renaming.new_names import Functions, Renames
from codemods.renaming.variables import plan_function
from codemods.sources.modules import Unit


def plan_renames(
    facts: Facts, origins: Origins, migrated: Iterable[LegacyObject]
) -> dict[Unit, Renames]:
    """The new names for variables that only have migrated optimizers.

    Only where no name collides and all calls are in view.
    """
    done = {*migrated}
    found: dict[Unit, Renames] = defaultdict(Renames)
    for unit in facts.project.units:
        for node in unit.nodes:
            if isinstance(node, Functions):
                plan_function(node, unit, facts, origins, done, found)
    plan_attributes(facts, done, found)
    return found
