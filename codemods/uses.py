"""Every legacy construct of a project: where it is, of which kind, and which objects meet there."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from codemods.flow.constraints import Annotation
from codemods.flow.modules import Unit
from codemods.flow.objects import Class, External, Function, Object, Thing
from codemods.legacy import DEFINITIONS, MULTI_OPTIMIZER, legacy_name, traversal_name
from codemods.members import Members
from codemods.model import Evidence

if TYPE_CHECKING:
    from codemods.facts import Facts

PARAM_STATE = re.compile(r"_\w+ParamState")
"""The private classes of what an optimizer keeps for a parameter."""

STRENGTH: tuple[Evidence, ...] = ("proven", "declared", "deduced", "likely")

ATTRIBUTES = {
    "definition": frozenset(
        (
            "create",
            "hyper_params",
            "apply_gradient",
            "init_state",
            "update_hyper_params",
            "state_dict",
            "restore_state",
            "apply_param_gradient",
            "init_param_state",
        )
    ),
    "optimizer": frozenset(
        (
            "target",
            "state",
            "optimizer_def",
            "apply_gradient",
            "replace",
            "compute_gradient",
            "compute_gradients",
            "optimize",
            "replicate",
            "unreplicate",
            "state_dict",
            "restore_state",
        )
    ),
    "state": frozenset(("step", "param_states", "replace")),
    "state_dict": frozenset(),
    "hyper_params": frozenset(),
    "step": frozenset(),
    "traversal": frozenset(("iterate", "update", "set", "compose", "merge", "filter", "tree", "each", "__getitem__")),
}


@dataclass(frozen=True, eq=False)
class Use:
    """One legacy construct: what kind of use it is, where, and which objects meet there.

    `kind` is `import`, `module`, `definition`, `base`, `annotation`, `check` (isinstance), `value` (a class or method used as a
    value), `class` (a class in `Type[…]`), `dynamic` (a class chosen at run time), `custom` (an optimizer of the user's own class
    is made), `reflection` (an attribute by its name), `filter` (the predicate of a traversal), `stored` (an optimizer that goes
    to a checkpoint), `restored` (what reads one), `state_dict` (an item of a state dict), `checkpoint` (an item of a checkpoint
    that was read as plain dicts), `patched` (an attribute of a class or module that is set), or `KIND.ATTRIBUTE` for an attribute
    of a thing, such as `optimizer.target`. `quoted` is what the name is called in an annotation in quotes.
    """

    kind: str
    name: str
    unit: Unit
    node: ast.expr | ast.stmt
    things: tuple[Thing, ...]
    others: tuple[Object, ...] = ()
    legacy_import: bool = True
    quoted: str = ""

    @property
    def evidence(self) -> Evidence:
        found = {thing.evidence for thing in self.things}
        return next((level for level in STRENGTH if level in found), "proven")


class Uses:
    """Finds the uses of a project."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.members = Members(facts)

    def in_unit(self, unit: Unit) -> list[Use]:
        found: list[Use] = []
        for imported in self.facts.imported(unit):
            known = any(use.node is imported.statement for use in found)
            if legacy_name(imported.target) is not None and not known:
                found.append(Use("import", imported.target, unit, imported.statement, ()))
        annotated = self._annotated_nodes(unit)
        for node in unit.nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                use = self._reference(unit, node, annotated) or self._attribute_use(unit, node)
                if use is not None:
                    found.append(use)
            elif isinstance(node, ast.Call):
                use = self._dynamic_use(unit, node)
                if use is not None:
                    found.append(use)
            elif isinstance(node, ast.Constant) and node in annotated:
                found.extend(self._quoted(unit, node, annotated[node]))
        return found

    def _annotated_nodes(self, unit: Unit) -> dict[ast.AST, Annotation]:
        return {
            node: annotation
            for annotation in self.facts.flow.reading.annotations
            if annotation.unit is unit
            for node in (annotation.node, *ast.walk(annotation.expression))
        }

    def _reference(
        self, unit: Unit, node: ast.Attribute | ast.Name, annotated: dict[ast.AST, Annotation]
    ) -> Use | None:
        if not isinstance(node.ctx, ast.Load):
            return None
        if not self.facts.names_legacy(node):
            return self._of_module_in_variable(unit, node)
        externals = self.facts.externals(node)
        name = next((name for item in externals if (name := legacy_name(item)) is not None), None)
        legacy_import = name is not None
        parent = unit.parents.get(node)
        if any(traversal_name(item) for item in externals):
            name = "ModelParamTraversal"
        if name is None:
            return None
        others = tuple(External(item) for item in externals if legacy_name(item) is None and not traversal_name(item))
        if isinstance(parent, ast.Attribute) and any(
            legacy_name(item) is not None for item in self.facts.externals(parent)
        ):
            return None
        if isinstance(parent, ast.Call) and parent.func is node and name == "OptimizerState":
            return Use("definition", name, unit, parent, self._of_class_around(unit, node), others, legacy_import)
        last = externals[0].rpartition(".")[2]
        if isinstance(parent, ast.Call) and parent.func is node and PARAM_STATE.fullmatch(last):
            return Use("definition", last, unit, parent, self._of_class_around(unit, node), others, legacy_import)
        if isinstance(parent, ast.Call) and parent.func is node and "." not in name:
            things = tuple(thing for thing in self.facts.things(parent) if thing.node is parent)
            return Use("definition", name, unit, parent, things, others, legacy_import)
        if node in annotated and self._in_type_of_class(unit, node):
            return Use("class", name, unit, node, self._made_by(lambda thing: not self._direct(thing)))
        if node in annotated:
            return Use("annotation", name, unit, node, self._annotated_things(annotated[node]), others)
        return self._class_value(unit, node, name, parent)

    def _of_module_in_variable(self, unit: Unit, node: ast.Attribute | ast.Name) -> Use | None:
        """A legacy class as an attribute of what holds the module `flax.optim`."""
        if not isinstance(node, ast.Attribute) or not any(map(_is_module, self.facts.externals(node.value))):
            return None
        if self.facts.things(node.value):  # whatever else a variable of any name may hold
            return None
        return Use(
            "module", "", unit, node, self._made_by(lambda thing: thing.name == node.attr and not self._direct(thing))
        )

    @staticmethod
    def _in_type_of_class(unit: Unit, node: ast.expr) -> bool:
        """Whether this is the `X` of `Type[X]`."""
        return any(
            isinstance(outer, ast.Subscript)
            and isinstance(outer.value, ast.Name | ast.Attribute)
            and ast.unparse(outer.value).rpartition(".")[2] in ("Type", "type")
            for outer in unit.ancestors(node)
        )

    def _class_value(self, unit: Unit, node: ast.expr, name: str, parent: ast.AST | None) -> Use:
        if isinstance(parent, ast.ClassDef):
            cls = self.facts.flow.class_of(parent)
            return Use(
                "base",
                name,
                unit,
                node,
                self._made_by(lambda thing: thing.name == "custom" and self._makes(thing, cls)),
            )
        if isinstance(parent, ast.MatchClass):
            subject = next(outer.subject for outer in unit.ancestors(parent) if isinstance(outer, ast.Match))
            plain = not (parent.patterns or parent.kwd_patterns)
            return Use("check" if plain else "reflection", name, unit, node, tuple(self.facts.things(subject)))
        container = unit.parents.get(parent) if isinstance(parent, ast.Tuple) and parent is not None else parent
        if isinstance(container, ast.Call) and "builtins.isinstance" in self.facts.externals(container.func):
            things = tuple(self.facts.things(container.args[0], "optimizer", "definition"))
            return Use("check", name, unit, node, things)
        if "." in name:
            return Use("value", name, unit, node, self._of_method(parent, node))
        if name == "":
            chosen = self._made_by(lambda thing: thing.name == "?")
            by_name = isinstance(parent, ast.Call) and parent.args[:1] == [node] and len(parent.args) > 1
            return Use(
                "module", name, unit, node, chosen if by_name and chosen else (*chosen, *self.facts.made_by_modules)
            )
        return Use(
            "value", name, unit, node, self._made_by(lambda thing: thing.name == name and not self._direct(thing))
        )

    def _of_method(self, parent: ast.AST | None, node: ast.expr) -> tuple[Thing, ...]:
        """What the method of a legacy class may be called with: what a call gives it, or anything."""
        if not (isinstance(parent, ast.Call) and parent.func is node):
            return tuple(self._all_things)
        given = [*parent.args, *(word.value for word in parent.keywords)]
        return tuple(dict.fromkeys(thing for argument in given for thing in self.facts.things(argument)))

    def _made_by(self, condition: Callable[[Thing], bool]) -> tuple[Thing, ...]:
        made = (thing for thing in self._all_things if thing.kind == "definition" and condition(thing))
        return tuple(made)

    @cached_property
    def _all_things(self) -> list[Thing]:
        found: dict[Thing, None] = {}
        for node in self.facts.flow.places:
            found.update(dict.fromkeys(self.facts.things(node)))
        return list(found)

    def _direct(self, thing: Thing) -> bool:
        return isinstance(thing.node, ast.Call) and self.facts.names_legacy(thing.node.func)

    def _of_class_around(self, unit: Unit, node: ast.expr) -> tuple[Thing, ...]:
        """The custom definitions of the class in which an expression is."""
        around = next((outer for outer in unit.ancestors(node) if isinstance(outer, ast.ClassDef)), None)
        if around is None:
            return ()
        cls = self.facts.flow.class_of(around)
        return self._made_by(lambda thing: thing.name == "custom" and self._makes(thing, cls))

    def _makes(self, thing: Thing, cls: Class) -> bool:
        if not isinstance(thing.node, ast.Call):
            return False
        return any(
            isinstance(item, Class) and cls in self.facts.flow.ancestry(item)
            for item in self.facts.objects(thing.node.func)
        )

    def _annotated_things(self, annotation: Annotation) -> tuple[Thing, ...]:
        return tuple(
            thing for thing in self.facts.within(annotation.target) if thing.kind in ("optimizer", "definition")
        )

    def _quoted(self, unit: Unit, node: ast.Constant, annotation: Annotation) -> Iterable[Use]:
        if annotation.node is not node:
            return
        quoted = list(self.facts.with_quoted(annotation))
        things = tuple(dict.fromkeys(thing for found in quoted for thing in self._annotated_things(found)))
        named = [
            (name, ast.unparse(inner).rpartition(".")[2])
            for found in quoted
            for inner in ast.walk(found.expression)
            if isinstance(inner, ast.Name | ast.Attribute) and self.facts.names_legacy(inner)
            for external in self.facts.externals(inner)
            if (name := legacy_name(external))
        ]
        for name, word in dict.fromkeys(named):
            yield Use("annotation", name, unit, node, things, quoted=word)

    def _dynamic_use(self, unit: Unit, node: ast.Call) -> Use | None:
        """A call of a legacy class that came through a variable, or of a class that derives from one."""
        if self.facts.names_legacy(node.func):
            return None
        things = tuple(self.facts.things(node, "definition"))
        names = [legacy_name(name) for name in self.facts.externals(node.func)]
        name = next((name for name in names if name in (*DEFINITIONS, "?")), None)
        if name is not None:
            return Use("dynamic", name, unit, node, things)
        own = tuple(thing for thing in things if thing.node is node and thing.name == "custom")
        others = tuple(item for item in self.facts.objects(node.func) if isinstance(item, Function | External))
        return Use("custom", ast.unparse(node.func), unit, node, own, others) if own else None

    def _attribute_use(self, unit: Unit, node: ast.Attribute | ast.Name) -> Use | None:
        if not isinstance(node, ast.Attribute):
            return None
        if node.attr == "_filter_fn":
            return self._filter_use(unit, node)
        things = self.facts.things(node.value)
        if not things:
            return None
        kinds = {thing.kind: None for thing in things}
        owner = next((kind for kind in kinds if node.attr in ATTRIBUTES.get(kind, ())), None)
        if owner is None:
            return self._own_attribute(unit, node)
        if owner == "definition" and "optimizer" in kinds and self._is_step(unit, node):
            owner = "optimizer"
        others = tuple(item for item in self.facts.objects(node.value) if self.members.offers(item, node.attr))
        owners = tuple(thing for thing in things if thing.kind == owner)
        return Use(f"{owner}.{node.attr}", node.attr, unit, node, owners, others)

    def _own_attribute(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """An attribute that a definition has beside those of its base, such as one that its own class sets."""
        objects = list(self.facts.objects(node.value))
        things = tuple(item for item in objects if isinstance(item, Thing) and item.kind == "definition")
        if not things or any(self.members.offers(item, node.attr) for item in objects):
            return None
        return Use("definition.own", node.attr, unit, node, things)

    def _filter_use(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """The predicate of a traversal, in a class that derives from MultiOptimizer."""
        around = next((outer for outer in unit.ancestors(node) if isinstance(outer, ast.ClassDef)), None)
        if around is None or not self.facts.derives_from(self.facts.flow.class_of(around), MULTI_OPTIMIZER):
            return None
        return Use("filter", node.attr, unit, node, self._of_class_around(unit, node))

    @staticmethod
    def _is_step(unit: Unit, node: ast.Attribute) -> bool:
        """Whether this is an optimizer's `apply_gradient(grads)`: a definition's takes parameters and state too."""
        call = unit.parents.get(node)
        return node.attr == "apply_gradient" and isinstance(call, ast.Call) and len(call.args) <= 1


def _is_module(name: str) -> bool:
    return legacy_name(name) == ""
