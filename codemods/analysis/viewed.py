"""The states of optimizers that are read for more than their step, as the legacy ones they were."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.origins import Origins, Variable
from codemods.analysis.snapshots import Snapshots
from codemods.analysis.stepping import Stepping
from codemods.analysis.steps import Steps
from codemods.analysis.uses import Use
from codemods.inference.objects import LegacyObject
from codemods.optimizers.base import Support
from codemods.optimizers.views import OPTIMIZER_STATE, is_viewable, param_state
from codemods.sources.modules import Unit


class Viewed:
    """Finds such states, and what has to be known of their classes."""

    def __init__(self, stepping: Stepping) -> None:
        self.stepping = stepping
        self.facts = stepping.facts

    @cached_property
    def states(self) -> dict[LegacyObject, str]:
        """The states that are read for more than the step, with the name of their optimizers."""
        names: dict[LegacyObject, set[str | Enum | None]] = defaultdict(set)
        for use in self._reads():
            made: set[str | Enum | None] = {
                found.made_by for found in self.stepping.definitions(use)
            }
            # optimizers of several classes, or of unknown ones, have no name in common
            if not all(
                obj.evidence == "proven" and self.facts.legacy.definitions(obj)
                for obj in use.objects
            ):
                made = {None}
            if isinstance(use.node, ast.expr):
                for state in self.facts.legacy_objects(use.node, "state"):
                    names[state] |= made
        viewable: dict[LegacyObject, str] = {}
        for state, (name, *others) in names.items():
            if isinstance(name, str) and not others and is_viewable(name):
                viewable[state] = name
        # what is changed in place is lost if the state is made anew at each read
        units = {use.unit for use in self._reads()} if viewable else ()
        changed = Snapshots(self.facts, units).changed
        return {state: name for state, name in viewable.items() if state not in changed}

    def _reads(self) -> Iterator[Use]:
        """Where the state of an optimizer is read for more than its step."""
        for use in self.facts.uses:
            if use.kind != "optimizer.state" or _is_asked_for_step(use):
                continue
            if not is_kept_for_step(use, self.facts):
                yield use

    @cached_property
    def classes(self) -> dict[str, Support]:
        """The counterparts of `OptimizerState` and of what that has for each parameter, by name."""
        found = {
            f"_{name}ParamState": param_state(name) for name in self.states.values()
        }
        return found | {"OptimizerState": OPTIMIZER_STATE} if found else {}

    @cached_property
    def files(self) -> set[Unit]:
        """The files that read or make states, each of which has classes of its own for them."""
        # OptimizerState(step, param_states)
        return {use.unit for use in self._reads()} | {
            use.unit
            for use in self.facts.uses
            if use.kind == "definition" and use.name in self.classes
        }

    @cached_property
    def together(self) -> tuple[LegacyObject, ...]:
        """The states that are read, if the program makes some itself: it may make any of these."""
        is_made = any(
            use.name in self.classes
            and use.kind in ("definition", "annotation", "check")
            for use in self.facts.uses
        )
        return tuple(self.states) if is_made else ()


def is_kept_for_step(use: Use, facts: Facts) -> bool:
    """Whether this is `state = optimizer.state`, of which `state.step` alone is read, as a number.

    A train state does for that.
    """
    statement, unit = use.parent, use.unit
    match statement:
        case ast.Assign(targets=[ast.Name() as name]):
            origins, steps = facts.of(Origins), facts.of(Steps)
            variable = origins.meant(name, statement.value)
            if variable is None or _is_read_elsewhere(variable, facts):
                return False
            reads = [unit.parents.get(load) for load in origins.loads(variable)]
            return len(origins.stores(variable)) == 1 and all(
                isinstance(read, ast.Attribute)
                and read.attr == "step"
                and isinstance(read.ctx, ast.Load)
                and not steps.needs_array(read, unit)
                for read in reads
            )
    return False


def _is_read_elsewhere(variable: Variable, facts: Facts) -> bool:
    """Whether a variable is an attribute, too: of a class, or of a module that others import."""
    match variable.scope.node:
        case ast.ClassDef():
            return True
        case ast.Module():
            return bool(facts.importers_of(variable.unit))
    return False


def _is_asked_for_step(use: Use) -> bool:
    """Whether a use of the state is `optimizer.state.step` or `optimizer.state[0].step`."""
    parent = use.parent
    # not states[optimizer.state].step
    if isinstance(parent, ast.Subscript) and parent.value is use.node:
        parent = use.unit.parents.get(parent)
    return isinstance(parent, ast.Attribute) and parent.attr == "step"
