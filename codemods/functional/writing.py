"""What is written in the place of an optimizer: its parts, and functions of optax."""

from __future__ import annotations

import ast

from codemods.analysis.origins import FunctionNode, Variable, function_of
from codemods.analysis.uses import Use, owner_of_state
from codemods.functional.group import Group
from codemods.functional.interfaces import Interface, Interfaces
from codemods.functional.making import Lines, Making
from codemods.functional.names import Names, Parts
from codemods.functional.transformations import Transformations
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.inference.binding import parameters_of, values_of
from codemods.rewriting.edits import (
    ChangeArguments,
    ChangeParameters,
    Edit,
    Replace,
    SplitParameter,
)
from codemods.sources.modules import Unit

TRANSFORMATION = "{optax}.GradientTransformation"
TYPES = ("{optax}.Params", "{optax}.OptState", "{jax}.Array")
TEXTS = ("the parameters.", "the optimizer's state.", "the number of steps taken.")
"""What a docstring says of the parts."""


class Draft:
    """All changes for a group.

    `outcomes` are those at uses of the optimizers, None where the use is within another change, and
    `edits` those elsewhere, with those `before`: of other groups, and of other idioms.
    """

    def __init__(
        self, group: Group, interfaces: Interfaces, names: Names, edits: Edits
    ) -> None:
        self.group = group
        self.origins = group.origins
        self.interfaces = interfaces
        self.names = names
        self.edits = edits
        self.before = Edits(edits)
        self.parts = {
            variable: names.parts(variable, group) for variable in group.variables
        }
        self.transformations = Transformations(group, interfaces, names, edits)
        self.making = Making(group, names, self.transformations)
        self.outcomes: dict[ast.AST, Edit | None] = {}
        self._done: set[ast.AST] = set()

    def write(self) -> None:
        """Write all changes for a group; whatever has no counterpart in parts raises `Unproven`."""
        group = self.group
        # the transformation has to get to each step, and goes through other functions for that
        for use in group.uses:
            if use.kind == "optimizer.apply_gradient":
                self.transformations.at(use.node, use.unit)
        for use in group.uses:
            self._read(use)
        for node, unit in group.expressions.items():
            if isinstance(node, ast.Call):
                self._call(node, unit)
        # a call has dealt with the names that its statement was rewritten with
        for node, unit in group.expressions.items():
            if isinstance(node, ast.Name) and node not in self._done:
                self._name(node, unit)
        for variable in group.variables:
            for store in self.origins.stores(variable):
                if isinstance(store, ast.Name):
                    self._store(store, variable)
        for interface in self.interfaces.found.values():
            self._signature(interface)

    def _of(self, owner: ast.expr, use: Use) -> Parts:
        """The parts of the optimizer of which something is used."""
        variable = self.origins.variable(owner)
        # optimizers[0].apply_gradient(grads)
        if not isinstance(owner, ast.Name) or variable not in self.parts:
            raise Unproven("it has no name at {}", use.location)
        self._done.add(owner)
        return self.parts[variable]

    # What is read of an optimizer

    def _read(self, use: Use) -> None:
        """What becomes of `optimizer.target`, `optimizer.state.step`, and of an annotation."""
        # optimizer.state, within optimizer.state.step
        if use.kind == "optimizer.state":
            self.outcomes[use.node] = None
        elif use.kind == "annotation":
            self.outcomes[use.node] = self._annotation(use)
        elif use.kind == "optimizer.target":
            self._part(use, use.owner, 0, "%s")
        elif use.kind == "state.step":
            owner = owner_of_state(use.owner) or use.owner
            self._part(use, owner, 2, self.group.counted.read(use, owner, "%s"))

    def _part(self, use: Use, owner: ast.expr, index: int, around: str) -> None:
        """A read of one part."""
        text = around % self._of(owner, use).names[index]
        self.outcomes[use.node] = Replace(use.span, text)

    # Calls that give an optimizer

    def _call(self, node: ast.Call, unit: Unit) -> None:
        """Rewrite the statement of a call that makes an optimizer or steps; others may stay."""
        use, parent = self.group.makers.get(node), unit.parents[node]
        where = unit.location(node.lineno)
        around = parent if isinstance(parent, ast.Tuple) else node
        statement = unit.parents[around]
        # optimizer = optimizer.apply_gradient(grads)
        if use is not None and isinstance(parent, ast.Assign):
            lines = self._made(use, node, self._target(parent, node))
            self._done.add(parent)
            self.outcomes[use.node] = lines.instead_of(parent)
        # return optimizer.apply_gradient(grads), loss
        elif use is not None and isinstance(statement, ast.Return):
            self.outcomes[use.node] = self._returned(use, node, around, statement)
        elif use is not None:
            raise Unproven("it is made or changed at {}, within something else", where)
        elif not self._stays(node, around, statement, unit):
            raise Unproven("what a call gives is handed on at once at {}", where)

    def _stays(
        self, node: ast.Call, around: ast.expr, statement: ast.AST, unit: Unit
    ) -> bool:
        """Whether a call stays as it is but for its arguments, and gives the parts as a tuple."""
        functions = self.group.functions(node)
        is_known = functions and all(one in self.interfaces.found for one in functions)
        if not is_known and not self.group.is_of_pytrees(node):
            where = unit.location(node.lineno)
            raise Unproven("it is handed to something else at {}", where)
        function = function_of(unit, node)
        if isinstance(statement, ast.Return) and function is not None:
            # return create_optimizer(params), 1
            if around is not node:
                interface = self.interfaces.of(function, unit)
                return not self.interfaces.is_flat(interface)
            # return create_optimizer(params), which returns its transformation, too
            gives = function in self.transformations.given
            return gives == (node in self.transformations.received)
        is_whole = isinstance(unit.parents[node], ast.Assign | ast.Lambda | ast.Expr)
        return is_whole or self._is_inside(node, unit)

    def _target(self, statement: ast.Assign, value: ast.expr) -> Parts:
        """The parts of the variable that an assignment of an optimizer sets."""
        [target] = statement.targets
        assert isinstance(target, ast.Name)
        return self.parts[self.group.target(target, value)]

    def _made(self, use: Use, node: ast.Call, new: Parts) -> Lines:
        """The statements that set parts to what a call makes."""
        old = None
        if use.kind != "definition.create":
            old = self._of(use.owner, use)
        return self.making.lines(use, node, old, new)

    def _returned(
        self, use: Use, node: ast.Call, around: ast.expr, statement: ast.Return
    ) -> Edit:
        """`return optimizer.apply_gradient(grads)`, perhaps with other things beside."""
        unit, scope = use.unit, self.group.facts.scope(node).function
        where = unit.location(statement.lineno)
        variable = self.origins.variable(use.owner)
        elements = around.elts if isinstance(around, ast.Tuple) else [node]
        if use.kind == "definition.create":
            # return definition.create(params)
            params = next(
                (one.id for one in values_of(node) if isinstance(one, ast.Name)), ""
            )
            parts = self.names.parts(Variable(scope, "optimizer"), self.group, params)
        elif variable is None or variable.scope is not scope:
            raise Unproven("an optimizer of another function steps at {}", where)
        else:
            # return optimizer.apply_gradient(grads), optimizer.target
            beside = {*ast.walk(statement)} - {*ast.walk(node)}
            if not beside.isdisjoint(self.origins.loads(variable)):
                raise Unproven("old and new are returned at {}", where)
            parts = self.parts[variable]
        # the call is evaluated ahead of the elements before it, in a statement of its own
        may_swap = self.group.facts.dataflow.may_swap
        ahead = elements[: elements.index(node)]
        if not all(may_swap(element, node) for element in ahead):
            raise Unproven("the order of what {} computes matters", where)
        lines = self._made(use, node, parts)
        text = self._text(node, around, parts, unit)
        texts = [text if one is node else lines.hole(one) for one in elements]
        lines.templates.append(f"return {', '.join(texts)}")
        if statement in self._done:
            raise Unproven("two optimizers are returned at {}", where)
        self._done.add(statement)
        return lines.instead_of(statement)

    def _text(self, node: ast.expr, around: ast.expr, parts: Parts, unit: Unit) -> str:
        """What a function returns for an optimizer, alone or within a tuple."""
        function = function_of(unit, node)
        assert function is not None
        interface = self.interfaces.of(function, unit)
        if around is not node and not self.interfaces.is_flat(interface):
            return parts.nested
        if function not in self.transformations.given:
            return parts.flat
        return f"{self.transformations.at(node, unit)}, {parts.flat}"

    # Names

    def _name(self, node: ast.Name, unit: Unit) -> None:
        """An optimizer that is passed on by its name."""
        variable, parent = self.origins.variable(node), unit.parents[node]
        assert variable is not None
        parts = self.parts[variable]
        # train_step(optimizer, batch)
        if node in self.interfaces.arguments:
            self._argument(node, parts)
        # return optimizer, loss
        elif isinstance(parent, ast.Tuple) and isinstance(
            unit.parents[parent], ast.Return
        ):
            self._element(node, parent, unit, self._text(node, parent, parts, unit))
        elif isinstance(parent, ast.Return):
            self.edits.replace(node, unit, self._text(node, node, parts, unit))
        # yield optimizer, or best = optimizer
        elif isinstance(parent, ast.Yield | ast.Assign):
            self.edits.replace(node, unit, parts.flat)
        # jax.lax.scan(step, optimizer, batches), or carry = (optimizer, other)
        elif self._is_inside(node, unit):
            self.edits.replace(node, unit, parts.nested)
        else:
            where = unit.location(node.lineno)
            raise Unproven("it is handed to something else at {}", where)

    def _is_inside(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an optimizer is inside a tuple or the like, or an argument that is any pytree."""
        parent = unit.parents[node]
        if isinstance(parent, ast.Tuple | ast.List | ast.Dict):
            return True
        # save_checkpoint(path, target=optimizer)
        call = unit.parents[parent] if isinstance(parent, ast.keyword) else parent
        return isinstance(call, ast.Call) and self.group.is_of_pytrees(call)

    def _argument(self, node: ast.Name, parts: Parts) -> None:
        """Give the parts as arguments of their own."""
        for variable, argument in self.interfaces.arguments[node]:
            call, keywords = argument.call, ("",) * len(parts.names)
            # train_step(optimizer=g_optimizer): by the names of the parameter's own parts
            if argument.keyword is not None:
                keywords = self.parts[variable].names
            several = tuple(zip(keywords, parts.names, strict=True))
            spread = ((values_of(call).index(node), several),)
            change = ChangeArguments(argument.unit.span(call), spread=spread)
            self.edits.put(call, argument.unit, change)

    def _element(
        self, node: ast.expr, around: ast.Tuple, unit: Unit, text: str
    ) -> None:
        """Put the parts in the place of an element of a tuple, which is written anew for that."""
        if text.startswith("("):
            self.edits.replace(node, unit, text)
            return
        lines = Lines(unit)
        texts = [text if one is node else lines.hole(one) for one in around.elts]
        edit = Replace(unit.span(around), ", ".join(texts), tuple(lines.holes))
        self.edits.put(around, unit, edit)

    def _store(self, store: ast.Name, variable: Variable) -> None:
        """A variable that an optimizer is assigned to."""
        unit, parts = variable.unit, self.parts[variable]
        outer: ast.AST = store
        while isinstance(parent := unit.parents[outer], ast.Tuple):
            outer = parent
        assert isinstance(parent, ast.Assign)
        if parent in self._done:
            return
        name = self.transformations.received.get(parent.value)
        flat = f"{name}, {parts.flat}" if name else parts.flat
        # optimizer = create_optimizer(params)
        if outer is store:
            self.edits.replace(store, unit, flat)
            return
        around = unit.parents[store]
        assert isinstance(around, ast.Tuple)
        # optimizer, loss = train_step(optimizer, batch)
        is_flat = around is outer and self.interfaces.is_flat_call(parent.value)
        self._element(store, around, unit, flat if is_flat else parts.nested)

    # Signatures

    def _signature(self, interface: Interface) -> None:
        """Change the parameters of a function."""
        node, unit = interface.node, interface.unit
        split = tuple(self._split(one, node, unit) for one in interface.split)
        # a carry of `jax.lax.scan` stays one parameter, and is unpacked in the first line
        unpacked = tuple(
            f"{self.parts[variable].flat} = {variable.name}"
            for variable in interface.whole
        )
        if split or unpacked:
            change = ChangeParameters(unit.span(node), split=split, unpacked=unpacked)
            self.edits.put(node, unit, change)

    def _split(
        self, variable: Variable, node: FunctionNode, unit: Unit
    ) -> SplitParameter:
        """The parameters in the place of one, with their annotations."""
        names = self.parts[variable].names
        annotation = _annotations(node)[variable.name]
        types = TYPES if annotation is not None else ("",) * len(TYPES)
        if annotation is not None and annotation not in self.outcomes:
            raise Unproven(
                "its annotation at {} is not the class itself",
                unit.location(node.lineno),
            )
        taken = self.transformations.taken.get(node)
        more = ((taken, "the gradient transformation."),) if taken else ()
        described = (*zip(names, TEXTS, strict=False), *more)
        parameters = tuple(zip(names, types, strict=False))
        return SplitParameter(variable.name, parameters, described)

    def _annotation(self, use: Use) -> Edit | None:
        """What becomes of the class in an annotation: the types of the parts."""
        # optimizer: "optim.Optimizer"
        if isinstance(use.node, ast.Constant):
            raise Unproven("a quoted annotation says what it is at {}", use.location)
        around = use.unit.parents[use.node]
        owner = use.unit.parents.get(around)
        types = TYPES if self.group.counts else TYPES[:2]
        # def train_step(optimizer: optim.Optimizer), whose parameters are written anew
        if isinstance(around, ast.arg) and isinstance(owner, ast.arguments):
            function = use.unit.parents[owner]
            interface = self.interfaces.found.get(function)
            split = interface.split if interface else ()
            if around.arg in [variable.name for variable in split]:
                return None
        # def create(params) -> optim.Optimizer
        given = self.transformations.given
        if around in given and isinstance(around, ast.FunctionDef):
            types = (TRANSFORMATION, *types)
        elif not given.isdisjoint(use.unit.ancestors(use.node)):
            raise Unproven("a nested annotation is at {}", use.location)
        return Replace(use.span, f"tuple[{', '.join(types)}]")


def _annotations(node: FunctionNode) -> dict[str, ast.expr | None]:
    return {one.arg: one.annotation for one in parameters_of(node.args)}
