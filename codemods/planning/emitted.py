"""Every optimizer that a run converts, as two expressions that stand alone: the old and the new."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from codemods.analysis.facts import Facts
from codemods.inference.binding import arguments_of
from codemods.model import EmittedOptimizer
from codemods.optimizers import composite, optimizers
from codemods.optimizers.base import RATE, Parameter, learning_rate
from codemods.optimizers.functions import Alias, function_name
from codemods.optimizers.interface import has_interface
from codemods.optimizers.methods import CREATE
from codemods.planning.decisions import Decision
from codemods.rewriting.edits import ConvertClass, ConvertDefinition, ConvertPartial
from codemods.sources.modules import Span, Unit

DEEPEST = 8
"""How many levels of definitions made elsewhere are put in place."""

CREATING = ("FO102", "FO302", "FO706")
"""The rules for the calls that create a definition."""


class Emitter:
    """Replaces names in definitions by what they stand for; `after` has the new texts of spans."""

    def __init__(
        self,
        facts: Facts,
        decisions: Iterable[Decision],
        after: Mapping[Unit, Mapping[Span, str]],
    ) -> None:
        self.facts = facts
        self.after = after
        self.functions: dict[ast.AST, Decision] = {}
        self.converted: dict[ast.AST, Decision] = {}
        self.created: list[Decision] = []
        for decision in decisions:
            if not decision.applies or decision.edit is None:
                continue
            node = decision.use.node
            is_creating = decision.rule.code in CREATING
            # make = optim.Adam
            if isinstance(decision.edit, ConvertClass | ConvertPartial):
                self.functions[node] = decision
            elif decision.rule.code == "FO201":
                self.created.append(decision)
            # optim.Adam(learning_rate=0.1)
            elif is_creating and isinstance(node, ast.Call):
                self.converted[node] = decision

    def emitted(
        self, unit: Unit, supports: tuple[str, ...]
    ) -> tuple[EmittedOptimizer, ...]:
        """The optimizers of a file, in order. `supports` are the sources of its new helpers."""
        found: list[EmittedOptimizer] = []
        for node, decision in self.converted.items():
            # and no traversal
            is_definition = isinstance(decision.edit, ConvertDefinition)
            is_definition = is_definition or _keeps_interface(decision)
            if decision.use.unit is not unit or not is_definition:
                continue
            is_whole = all(part in self.converted for part in self._inner(decision))
            if isinstance(node, ast.Call) and is_whole:
                found.append(self._optimizer(node, decision, supports))
        for decision in self.functions.values():
            if decision.use.unit is unit:
                text = decision.text_after(self.after[decision.use.unit])
                found.append(_function(decision, text, supports))
        created = (one for one in self.created if one.use.unit is unit)
        found += filter(None, (self._focused(one, supports) for one in created))
        return tuple(found)

    def _focused(
        self, decision: Decision, supports: tuple[str, ...]
    ) -> EmittedOptimizer | None:
        """The optimizer that `definition.create(params, focus=traversal)` makes of a definition."""
        use, call = decision.use, decision.use.call
        given = None if call is None else arguments_of(CREATE, call)
        if call is None or given is None or "focus" not in given:
            return None
        parts = [
            self._made_elsewhere(one, None) or one
            for one in (given["focus"], use.owner)
        ]
        made = parts[1]
        if not isinstance(made, ast.Call) or not self.converted.keys() >= {*parts}:
            return None
        definition = self._optimizer(made, self.converted[made], supports)
        old, new = (
            ", ".join(ast.unparse(texts(part, DEEPEST)) for part in parts)
            for texts in (self._legacy, self._optax)
        )
        created = ast.parse(decision.text_after(self.after[use.unit]), mode="eval")
        words = (one for one in ast.walk(created) if isinstance(one, ast.keyword))
        tx = next(word.value for word in words if word.arg == "tx")
        assert isinstance(tx, ast.Call)
        return replace(
            definition,
            name="MultiOptimizer",
            line=use.unit.line(call.lineno),
            before=use.unit.source(call),
            after=ast.unparse(tx),
            legacy_expression=f"optim.MultiOptimizer(({old}))",
            optax_expression=f"{ast.unparse(tx.func)}(({new}))",
        )

    def _optimizer(
        self, node: ast.Call, decision: Decision, supports: tuple[str, ...]
    ) -> EmittedOptimizer:
        unit = decision.use.unit
        return EmittedOptimizer(
            name=decision.use.name,
            line=unit.line(node.lineno),
            before=unit.source(node),
            after=decision.text_after(self.after[decision.use.unit]),
            legacy_expression=ast.unparse(self._legacy(node, DEEPEST)),
            optax_expression=ast.unparse(self._optax(node, DEEPEST)),
            injected=_is_given_rates(decision),
            supports=supports,
            schedule=self._schedule(decision),
        )

    def _inner(self, decision: Decision) -> Iterator[ast.AST]:
        """The allocation sites of the definitions that a definition is made of."""
        for obj in decision.use.objects:
            for found in self.facts.legacy.definitions(obj):
                yield found.node

    def _expression(self, decision: Decision) -> ast.expr:
        """The new transformation, without the link for what stood beside the old one."""
        text = decision.text_after(self.after[decision.use.unit])
        found = ast.parse(f"({text})", mode="eval").body
        edit = decision.edit
        has_link = isinstance(edit, ConvertDefinition) and edit.link
        if not has_link or not isinstance(found, ast.Call):
            return found
        # optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
        _, *links = found.args
        found.args = links
        return links[0] if len(links) == 1 else found

    def _schedule(self, decision: Decision) -> str:
        """The schedule of a definition, or of those that it is made of."""
        for node in (decision.use.node, *self._inner(decision)):
            converted = self.converted.get(node)
            edit = None if converted is None else converted.edit
            if isinstance(edit, ConvertDefinition) and not edit.inject and edit.rate:
                return edit.rate
        return ""

    def _legacy(self, node: ast.expr, depth: int) -> ast.expr:
        """The old definition."""
        parts = self._parts(node, depth, self._legacy)
        for inner in ast.walk(node):
            decision = self.converted.get(inner)
            # the file may call it `Adam` or `flax.optim.Adam`; here it is `optim.Adam`
            if decision is not None and isinstance(inner, ast.Call):
                legacy = ast.parse(f"optim.{decision.use.name}", mode="eval").body
                parts[ast.unparse(inner.func)] = legacy
        return _substituted(copy.deepcopy(node), parts)

    def _optax(self, node: ast.expr, depth: int) -> ast.expr:
        """The new transformation."""
        parts = self._parts(node, depth, self._optax)
        return _substituted(self._expression(self.converted[node]), parts)

    def _parts(
        self, node: ast.expr, depth: int, of: Callable[[ast.Call, int], ast.expr]
    ) -> dict[str, ast.expr]:
        """What has the place of names: `optim.MultiOptimizer((traversal, definition))`."""
        parts: dict[str, ast.expr] = {}
        for inner in ast.walk(node) if depth else ():
            made = self._made_elsewhere(inner, node)
            if made is not None:
                parts[ast.unparse(inner)] = of(made, depth - 1)
        return parts

    def _made_elsewhere(self, node: ast.AST, whole: ast.expr | None) -> ast.Call | None:
        """The converted call that makes the definition or traversal at a name within `whole`."""
        if node is whole:
            return None
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return None
        for obj in self.facts.legacy_objects(node, "definition", "traversal"):
            if obj.node in self.converted and isinstance(obj.node, ast.Call):
                return obj.node
        return None


def _keeps_interface(decision: Decision) -> bool:
    """Whether a definition becomes one with the same interface."""
    return decision.rule.code == "FO706" and has_interface(decision.use.name)


def _injects(decision: Decision) -> bool:
    edit = decision.edit
    return isinstance(edit, ConvertDefinition | ConvertClass) and edit.inject


def _is_given_rates(decision: Decision) -> bool:
    """Whether the learning rate of a definition is set at each step, as far as is known."""
    if not _keeps_interface(decision):
        return _injects(decision)
    call, name = decision.use.node, decision.use.name
    if name in composite():
        return False
    # optim.Adam(), then apply_gradient(grads, learning_rate=rate)
    return not isinstance(call, ast.Call) or learning_rate(call) is None


def _function(
    decision: Decision, after: str, supports: tuple[str, ...]
) -> EmittedOptimizer:
    """A class that became a function, called with values for its parameters that are numbers."""
    use, name = decision.use, decision.use.name
    assert isinstance(decision.edit, ConvertClass | ConvertPartial)
    parameters = optimizers()[name].parameters
    alias = decision.edit.alias or Alias(
        function_name(name), tuple((one.name, one.name) for one in parameters)
    )
    real = [one.name for one in parameters if _is_real(one) and one.name in alias.names]
    # optim.Adam(learning_rate=learning_rate, beta1=beta1)
    arguments = ", ".join(f"{one}={one}" for one in real)
    words = ", ".join(f"{alias.names[one]}={one}" for one in real)
    return EmittedOptimizer(
        name=name,
        line=use.unit.line(use.node.lineno),
        before=use.unit.source(use.node),
        after=after,
        legacy_expression=f"optim.{name}({arguments})",
        optax_expression=f"{alias.function}({words})",
        injected=_injects(decision),
        supports=supports,
    )


def _is_real(parameter: Parameter) -> bool:
    if parameter.name == RATE:
        return True
    default = ast.parse(parameter.default or "None", mode="eval").body
    return isinstance(default, ast.Constant) and isinstance(default.value, float)


class _Substitution(ast.NodeTransformer):
    """Replaces expressions by their source text, outermost first."""

    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self.parts = parts

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            part = self.parts.get(ast.unparse(node))
            if part is not None:
                return copy.deepcopy(part)
        return super().generic_visit(node)


def _substituted(node: ast.expr, parts: Mapping[str, ast.expr]) -> ast.expr:
    whole = ast.Expression(node)
    _Substitution(parts).visit(whole)
    return ast.fix_missing_locations(whole).body
