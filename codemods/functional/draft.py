"""What is known of a group while its parts are written, and what has been written of it."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from codemods.analysis.origins import Variable
from codemods.analysis.uses import Use
from codemods.functional.group import Group
from codemods.functional.interfaces import Interfaces
from codemods.functional.parts import Names, Parts
from codemods.functional.transformations import Transformations
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.idioms.overrides import Overrides
from codemods.inference.binding import values_of
from codemods.optimizers.base import Support
from codemods.rewriting.edits import Edit
from codemods.sources.modules import Span, Unit
from codemods.vocabulary import CONTROL, PYTREES

MAKERS = ("definition.create", "optimizer.apply_gradient", "optimizer.replace")


@dataclass
class Lines:
    """Statements in the place of one: templates, and the pieces of source that they have.

    `supports` are the helpers that they call.
    """

    templates: list[str] = field(default_factory=list)
    holes: list[tuple[str, Span]] = field(default_factory=list)
    raw: list[tuple[str, Span]] = field(default_factory=list)
    supports: tuple[Support, ...] = ()

    def hole(self, node: ast.expr, unit: Unit, raw: bool = False) -> str:
        """A hole for a piece of source; `raw` leaves out what is done to the piece as a whole."""
        number = len(self.holes) + len(self.raw)
        name = f"piece_{number}"
        pieces = self.raw if raw else self.holes
        pieces.append((name, unit.span(node)))
        return f"{{{name}}}"


class Draft:
    """All changes for a group.

    `outcomes` are those at uses of the optimizers, `edits` those elsewhere. `before` are the edits
    of groups before, `done` the expressions that need no other change, `rewritten` the statements
    that are replaced by others, `taken` those that are replaced for another group.
    """

    def __init__(
        self,
        group: Group,
        interfaces: Interfaces,
        names: Names,
        edits: Edits,
        taken: Collection[ast.AST],
    ) -> None:
        self.group = group
        self.stepping = group.beside.stepping
        self.overrides = group.beside.results[Overrides]
        self.origins = group.origins
        self.interfaces = interfaces
        self.names = names
        self.edits = edits
        self.before = Edits(edits)
        self.taken = taken
        self.outcomes: dict[ast.AST, Edit | None] = {}
        self.parts = {
            variable: names.parts(variable, group) for variable in group.variables
        }
        self.transformations = Transformations(group, interfaces, names)
        self.by_variable: dict[ast.expr, Parts] = {}
        for node in group.expressions:
            # create_optimizer(params) is in no variable
            if not isinstance(node, ast.Name):
                continue
            variable = self.origins.variable(node)
            if variable is not None:
                self.by_variable[node] = self.parts[variable]
        self.done: set[ast.expr] = set()
        self.rewritten: dict[ast.AST, Edit] = {}
        self.replaced: list[ast.expr] = []

    def named(self, variable: Variable) -> Parts:
        """The parts under the names that go with a variable, which may be a new one."""
        if variable not in self.parts:
            self.parts[variable] = self.names.parts(variable, self.group)
        return self.parts[variable]

    def owner(self, use: Use) -> Parts:
        """The parts of the optimizer that a method is called on."""
        owner = use.node.value if isinstance(use.node, ast.Attribute) else None
        # optimizers[0].apply_gradient(grads)
        if not isinstance(owner, ast.Name) or owner not in self.by_variable:
            raise Unproven("it has no name at {}", use.location)
        self.done.add(owner)
        return self.by_variable[owner]

    def is_maker(self, node: ast.Call) -> bool:
        """Whether a call makes or changes an optimizer itself."""
        use = self.group.by_call.get(node)
        return use is not None and use.kind in MAKERS

    def is_known(self, node: ast.Call, unit: Unit) -> bool:
        """Refuse a call of which it is not known what it does with an optimizer."""
        if self.is_maker(node) or self.group.is_of_pytrees(node, PYTREES | CONTROL):
            return True
        functions = self.group.functions(node)
        if functions and all(one.node in self.interfaces.found for one in functions):
            return True
        where = unit.location(node.lineno)
        raise Unproven("it is handed to something else at {}", where)

    def inner(self, node: ast.Call) -> list[ast.Call]:
        """The arguments of a call that are calls which give an optimizer."""
        calls = [one for one in values_of(node) if isinstance(one, ast.Call)]
        return [call for call in calls if call in self.group.expressions]

    def is_inside(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an optimizer is inside a tuple or the like, or an argument that is any pytree."""
        if isinstance(unit.parents[node], ast.Tuple | ast.List | ast.Dict):
            return True
        return self.goes_to_jax(node, unit)

    def goes_to_jax(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an optimizer is an argument of a call that takes any pytree."""
        parent = unit.parents[node]
        # save_checkpoint(path, target=optimizer)
        call = unit.parents[parent] if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call) or call.func is node:
            return False
        return self.group.is_of_pytrees(call, PYTREES | CONTROL)
