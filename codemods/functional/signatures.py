"""The signatures and docstrings of functions that take optimizers or return one."""

from __future__ import annotations

import ast

from codemods.analysis.origins import FunctionNode, Variable
from codemods.functional.draft import Draft
from codemods.functional.interfaces import Interface
from codemods.functional.part_types import annotated, annotations_of
from codemods.inference.binding import parameters_of
from codemods.rewriting.edits import ChangeParameters, SplitParameter
from codemods.sources.modules import Unit


class Signatures:
    """Changes the parameters of functions, and the annotations of what they return."""

    def __init__(self, draft: Draft) -> None:
        self.group = draft.group
        self.transformations = draft.transformations
        self.edits = draft.edits
        self.parts = draft.parts
        self.origins = draft.origins
        self.replaced = draft.replaced

    def change(self, interface: Interface) -> None:
        """Change the parameters and the annotations of a function."""
        node = interface.node
        if not (interface.split or interface.whole or interface.returns):
            return
        units = self.group.facts.project.units
        unit = next(unit for unit in units if node in unit.parents)
        # def train_step(optimizer, batch)
        if interface.split:
            self._split(interface, unit)
        # a carry of `jax.lax.scan` stays one parameter, and is unpacked in the first line
        if interface.whole:
            unpacked: list[str] = []
            for variable in interface.whole:
                names = self._needed(variable)
                unpacked.append(f"{names} = {variable.name}")
            change = ChangeParameters(unit.span(node), unpacked=tuple(unpacked))
            self.edits.put(node, unit, change)
        if isinstance(node, ast.FunctionDef):
            is_given = node in self.transformations.given
            for found, edit in annotated(node, interface, unit, self.group, is_given):
                self.edits.put(found, unit, edit)

    def _split(self, interface: Interface, unit: Unit) -> None:
        """Put several parameters in the place of one, and shift positions that JAX is given."""
        node = interface.node
        split: list[SplitParameter] = []
        for variable in interface.split:
            parameters = self._parameters(variable, node, unit)
            described = self._described(variable, node)
            split.append(SplitParameter(variable.name, parameters, described))
        change = ChangeParameters(unit.span(node), split=tuple(split))
        self.edits.put(node, unit, change)
        transformations = self.transformations
        first = self.parts[interface.split[0]]
        more = len(first.names) - 1
        is_given_one = transformations.is_by_position(interface)
        transformations.wrappers.shift(interface, unit, self.edits, more, is_given_one)
        # the types in the place of `optim.Optimizer` are written with the parameters
        names = {variable.name for variable in interface.split}
        for one in parameters_of(node.args):
            if one.arg in names and one.annotation is not None:
                self.replaced.append(one.annotation)

    def _needed(self, variable: Variable) -> str:
        """The names of the parts, with `_` for those that are never read."""
        parts = self.parts[variable]
        loads = self.origins.loads(variable)
        reads: dict[ast.expr, str] = {}
        for use in self.group.uses:
            if use.kind in ("optimizer.target", "optimizer.state"):
                reads[use.owner] = use.name
        # the optimizer goes elsewhere, too
        if not all(load in reads for load in loads):
            return parts.flat
        # params, _, step = optimizer
        asked = {reads[load] for load in loads}
        known = zip(parts.names, ("target", "", "state"), strict=False)
        return ", ".join(name if word in asked else "_" for name, word in known)

    def _parameters(
        self,
        variable: Variable,
        node: FunctionNode,
        unit: Unit,
    ) -> tuple[tuple[str, str], ...]:
        """The names and annotations of the parameters in the place of one."""
        names = self.parts[variable].names
        annotations = annotations_of(variable, node, unit, self.group, len(names))
        return tuple(zip(names, annotations, strict=True))

    def _described(
        self,
        variable: Variable,
        node: FunctionNode,
    ) -> tuple[tuple[str, str], ...]:
        """What a docstring that explains the parameter says of those in its place."""
        parts = self.parts[variable]
        texts = (
            "the parameters.",
            "the optimizer's state.",
            "the number of steps taken.",
        )
        taken = self.transformations.taken.get(node)
        more = ((taken, "the gradient transformation."),) if taken else ()
        return (*zip(parts.names, texts, strict=False), *more)
