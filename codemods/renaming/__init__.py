"""New names for variables and parameters of optimizers that have a train state now.

`optimizer` becomes `state`, and a variable for the transformation alone `tx`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from codemods.analysis.facts import Facts
from codemods.analysis.origins import Origins
from codemods.inference.objects import LegacyObject
from codemods.renaming.attributes import plan_attributes
from codemods.renaming.new_names import (
    WORD,
    Functions,
    Renames,
    attribute_of,
    keyword_of,
    kind_of,
)
from codemods.renaming.variables import plan_function
from codemods.sources.modules import Unit


def plan_renames(
    facts: Facts, origins: Origins, migrated: Iterable[LegacyObject]
) -> dict[Unit, Renames]:
    """The new names for variables that only have migrated optimizers.

    Only where no name collides and all calls are in view. A name gets a new one everywhere in the
    project or nowhere: as a variable, a keyword and an attribute.
    """
    done = {*migrated}
    found: dict[Unit, Renames] = defaultdict(Renames)
    for unit in facts.project.units:
        for node in unit.nodes:
            if isinstance(node, Functions):
                plan_function(node, unit, facts, origins, done, found)
    plan_attributes(facts, done, found)
    for name in sorted({*_staying(facts, done, found)}):
        for renames in found.values():
            renames.drop(name)
    return found


def _staying(
    facts: Facts, done: set[LegacyObject], found: Mapping[Unit, Renames]
) -> Iterator[str]:
    """The names that an attribute or a keyword keeps although it has a migrated optimizer."""

    def has_migrated(node: ast.expr) -> bool:
        return kind_of(facts.objects(node), done) == "optimizer"

    for unit in facts.project.units:
        renames = found.get(unit, Renames())
        for node in unit.nodes:
            # state.optimizer, whose class is a dataclass
            if isinstance(node, ast.Attribute) and WORD.search(node.attr):
                is_new = attribute_of(node, unit) in renames.attributes
                if not is_new and has_migrated(node):
                    yield node.attr
            if not isinstance(node, ast.Call):
                continue
            for word in node.keywords:
                # Agent(optimizer=optimizer)
                if word.arg is None or not WORD.search(word.arg):
                    continue
                is_new = keyword_of(node, unit, word.arg) in renames.keywords
                if not is_new and has_migrated(word.value):
                    yield word.arg
