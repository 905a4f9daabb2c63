"""The statements that set the parts of an optimizer: it is made, steps, or gets other params."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Variable
from codemods.analysis.uses import Use
from codemods.functional.draft import Draft, Lines
from codemods.functional.parts import UPDATES, Parts
from codemods.idioms import Unproven
from codemods.idioms.carried import typed
from codemods.inference.binding import arguments_of
from codemods.model import Location
from codemods.optimizers.base import RATE
from codemods.optimizers.methods import CREATE
from codemods.sources.modules import Unit


class Making:
    """Writes the statements for calls that give an optimizer."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.group = draft.group
        self.interfaces = draft.interfaces
        self.transformations = draft.transformations
        self.edits = draft.edits
        self.done = draft.done
        self.names = draft.names
        self.stepping = draft.stepping
        self.overrides = draft.overrides

    def lines(self, node: ast.Call, unit: Unit, parts: Parts, lines: Lines) -> None:
        """The statements that set the parts to what a call gives."""
        use = self.group.by_call.get(node)
        # optimizer = train_step(optimizer, batch)
        if use is None or not self.draft.is_maker(node):
            self._call(node, unit, parts, lines)
        elif use.kind == "definition.create":
            self._create(use, node, parts, lines)
        elif use.kind == "optimizer.replace":
            self._exchange(use, node, parts, lines)
        else:
            self._step(use, node, parts, lines)
        self.done.add(node)

    def _call(self, node: ast.Call, unit: Unit, parts: Parts, lines: Lines) -> None:
        """A call that stays, behind the statements for those among its arguments."""
        self.draft.is_known(node, unit)
        # jax_utils.replicate(definition.create(params))
        for inner in self.draft.inner(node):
            if inner in self.interfaces.arguments:
                where = unit.location(node.lineno)
                raise Unproven("it is made within another call at {}", where)
            self.lines(inner, unit, parts, lines)
            self.edits.replace(inner, unit, parts.nested)
        name = self.transformations.received.get(node)
        flat = f"{name}, {parts.flat}" if name else parts.flat
        # only the arguments of the call change, and not the call as a whole
        call = lines.hole(node, unit, raw=True)
        lines.templates.append(f"{flat} = {call}")

    def in_place(self, node: ast.Call, lines: Lines) -> tuple[str, ...] | None:
        """The parts of a new optimizer as expressions; None if its parameters have no name."""
        use = self.group.use_of(node, "definition.create")
        if use is None:
            return None
        definition, params = self._new(use, node)
        if not isinstance(params, ast.Name):
            return None
        made = self._made(node, definition, use.unit, lines)
        name = lines.hole(params, use.unit)
        self.done.add(node)
        # return params, tx.init(params), 0
        parts = (name, f"{made}.init({name})")
        return (*parts, self._zero(node)) if self.group.counts else parts

    def _create(self, use: Use, node: ast.Call, parts: Parts, lines: Lines) -> None:
        """`optimizer = definition.create(params)`."""
        definition, params = self._new(use, node)
        made = self._made(node, definition, use.unit, lines)
        # definition.create(params) needs no `params = params`
        has_its_name = isinstance(params, ast.Name) and params.id == parts.params
        if not has_its_name:
            value = lines.hole(params, use.unit)
            lines.templates.append(f"{parts.params} = {value}")
        lines.templates.append(f"{parts.opt_state} = {made}.init({parts.params})")
        if parts.step:
            zero = self._zero(node)
            lines.templates.append(f"{parts.step} = {zero}")

    def _zero(self, node: ast.Call) -> str:
        """The number of steps of a new optimizer."""
        optimizers = self.group.facts.legacy_objects(node, "optimizer")
        return self.group.counted.zero(optimizers)

    @staticmethod
    def _new(use: Use, node: ast.Call) -> tuple[ast.expr, ast.expr]:
        """The definition and the parameters that an optimizer is made of."""
        given = arguments_of(CREATE, node) or {}
        if given.keys() != {"target"} or not isinstance(use.node, ast.Attribute):
            where = use.unit.location(node.lineno)
            raise Unproven("it is not made plainly at {}", where)
        return use.node.value, given["target"]

    def _made(
        self,
        node: ast.Call,
        definition: ast.expr,
        unit: Unit,
        lines: Lines,
    ) -> str:
        """The transformation of a new optimizer, in a variable where it is needed further on."""
        text = lines.hole(definition, unit)
        name = self.transformations.made.get(node)
        # tx = optax.adam(1e-3)
        if name is not None:
            lines.templates.append(f"{name} = {text}")
        return name or text

    def _exchange(self, use: Use, node: ast.Call, parts: Parts, lines: Lines) -> None:
        """`optimizer = optimizer.replace(target=params)`."""
        old = self.draft.owner(use)
        words = [word.arg for word in node.keywords]
        if words != ["target"] or node.args:
            where = use.unit.location(node.lineno)
            raise Unproven("its state is exchanged at {}", where)
        params = lines.hole(node.keywords[0].value, use.unit)
        lines.templates.append(f"{parts.params} = {params}")
        # new_optimizer = optimizer.replace(target=params) has the same optimizer state
        _, *kept = zip(parts.names, old.names, strict=True)
        for new, name in kept:
            if new != name:
                lines.templates.append(f"{new} = {name}")

    def _step(self, use: Use, node: ast.Call, parts: Parts, lines: Lines) -> None:
        """`optimizer = optimizer.apply_gradient(grads)`, perhaps with a learning rate."""
        old, unit = self.draft.owner(use), use.unit
        gradients = self.stepping.gradients(use)
        where = unit.location(node.lineno)
        if gradients is None or self.stepping.axes(use.objects):
            raise Unproven("its gradients are not plain to see at {}", where)
        if self.overrides.keeps_rate(use):
            raise Unproven("the constructor's learning rate is set again at {}", where)
        state = old.opt_state
        rate = self._rate(use, gradients, where)
        # optimizer.apply_gradient(grads, learning_rate=rate)
        if rate is not None:
            text = lines.hole(rate, unit)
            state = parts.opt_state
            given = f"{old.opt_state}, learning_rate={text}"
            rated = f"{{optax}}.tree_utils.tree_set({given})"
            rated, lines.supports = typed(rated, old.opt_state, use, self.stepping)
            lines.templates.append(f"{state} = {rated}")
        scope = self.group.facts.scope(node).function
        here = Variable(scope, "optimizer")
        updates = self.names.for_a_moment(here, UPDATES, self.group)
        name = self.transformations.at(node, unit)
        grads = lines.hole(gradients, unit)
        # updates, opt_state = tx.update(grads, opt_state, params)
        results = f"{updates}, {parts.opt_state}"
        arguments = f"{grads}, {state}, {old.params}"
        lines.templates.append(f"{results} = {name}.update({arguments})")
        # params = optax.apply_updates(params, updates)
        applied = f"{{optax}}.apply_updates({old.params}, {updates})"
        lines.templates.append(f"{parts.params} = {applied}")
        if parts.step:
            lines.templates.append(f"{parts.step} = {old.step} + 1")

    def _rate(self, use: Use, gradients: ast.expr, where: Location) -> ast.expr | None:
        """The learning rate that a step sets in the state, if it does."""
        override = self.overrides.of(use)
        if override is None:
            return None
        may_swap = self.group.facts.dataflow.may_swap
        # the rate is set in the state, ahead of what computes the gradients
        if override.arg != RATE or not may_swap(gradients, override.value):
            raise Unproven("other hyperparameters are set at {}", where)
        if self.stepping.param_names.may_be_rate:
            raise Unproven(
                "the learning rate that is set at {} may be called as a parameter is",
                where,
            )
        return override.value
