"""Every legacy construct of a project: where it is, of which kind, and which objects meet there."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from codemods.analysis.legacy import DEFINITIONS, MULTI_OPTIMIZER, legacy_name, traversal_name
from codemods.analysis.members import Members
from codemods.analysis.queries import Queries
from codemods.flow.binding import values_of
from codemods.flow.objects import Class, External, Function, Object, Thing
from codemods.flow.reading import Annotation
from codemods.model import Evidence
from codemods.sources.modules import Span, Unit
from codemods.vocabulary import words

PARAM_STATE = re.compile(r"_\w+ParamState")
"""The private classes of what an optimizer keeps for a parameter."""

STRENGTH: tuple[Evidence, ...] = ("proven", "declared", "deduced", "likely")

ATTRIBUTES = {
    kind: frozenset(words(names))
    for kind, names in {
        "definition": "create hyper_params apply_gradient init_state update_hyper_params state_dict restore_state "
        "apply_param_gradient init_param_state",
        "optimizer": "target state optimizer_def apply_gradient replace compute_gradient compute_gradients optimize replicate "
        "unreplicate state_dict restore_state",
        "state": "step param_states replace",
        "state_dict": "",
        "hyper_params": "",
        "step": "",
        "traversal": "iterate update set compose merge filter tree each __getitem__",
    }.items()
}


@dataclass(frozen=True, eq=False)
class Use:
    """One legacy construct: what kind of use it is, where, and which objects meet there.

    `kind` is `import`, `module`, `definition`, `base`, `annotation`, `check` (isinstance), `value` (a class or method used as a
    value), `class` (a class in `Type[…]`), `dynamic` (a class chosen at run time), `custom` (an optimizer of the user's own class
    is made), `reflection` (an attribute by its name), `filter` (the predicate of a traversal), `stored` (an optimizer that goes
    to a checkpoint), `restored` (what reads one), `state_dict` (an item of a state dict), `checkpoint` (an item of a checkpoint
    that was read as plain dicts), `patched` (an attribute of a class or module that is set), or `KIND.ATTRIBUTE` for an attribute
    of a thing, such as `optimizer.target`. `quoted` is what the name is called in an annotation in quotes, and
    `said` are the expressions that say it there.
    """

    kind: str
    name: str
    unit: Unit
    node: ast.expr | ast.stmt
    things: tuple[Thing, ...]
    others: tuple[Object, ...] = ()
    legacy_import: bool = True
    quoted: str = ""
    said: tuple[ast.expr, ...] = ()

    @property
    def span(self) -> Span:
        return self.unit.span(self.node)

    @property
    def where(self) -> str:
        """Where it is, for people."""
        return self.unit.place(self.node.lineno)

    @property
    def parent(self) -> ast.AST | None:
        return self.unit.parents.get(self.node)

    @property
    def call(self) -> ast.Call | None:
        """The call of the attribute that this is about; None where the attribute is not called."""
        parent = self.parent
        return parent if isinstance(parent, ast.Call) and parent.func is self.node else None

    @property
    def owner(self) -> ast.expr:
        """What the attribute or item that this is about is read from."""
        assert isinstance(self.node, ast.Attribute | ast.Subscript)
        return self.node.value

    @property
    def owner_hole(self) -> tuple[str, Span]:
        """The hole `{owner}` of a template, for that."""
        return "owner", self.unit.span(self.owner)

    @property
    def evidence(self) -> Evidence:
        found = {thing.evidence for thing in self.things}
        return next((level for level in STRENGTH if level in found), "proven")


class Uses:
    """Finds the uses of a project."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.members = Members(facts)

    def in_unit(self, unit: Unit) -> list[Use]:
        legacy = [one for one in self.facts.imported(unit) if legacy_name(one.target) is not None]
        targets = {one.statement: one.target for one in reversed(legacy)}
        statements = dict.fromkeys(one.statement for one in legacy)
        found = [Use("import", targets[statement], unit, statement, ()) for statement in statements]
        annotated = self._annotated_nodes(unit)
        for node in unit.nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                uses = [self._reference(unit, node, annotated) or self._attribute_use(unit, node)]
            elif isinstance(node, ast.Call):
                uses = [self._dynamic_use(unit, node)]
            elif isinstance(node, ast.Constant) and node in annotated:
                uses = [*self._quoted(unit, node, annotated[node])]
            else:
                continue
            found += [use for use in uses if use is not None]
        return found

    def _annotated_nodes(self, unit: Unit) -> dict[ast.AST, Annotation]:
        own = (
            annotation
            for annotation in self.facts.flow.reading.annotations
            if annotation.unit is unit
        )
        return {node: one for one in own for node in (one.node, *ast.walk(one.expression))}

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
        others = tuple(
            External(item)
            for item in externals
            if legacy_name(item) is None and not traversal_name(item)
        )
        if isinstance(parent, ast.Attribute) and any(
            legacy_name(item) is not None for item in self.facts.externals(parent)
        ):
            return None
        if isinstance(parent, ast.Call) and parent.func is node:
            last = externals[0].rpartition(".")[2]
            made = (
                "OptimizerState"
                if name == "OptimizerState"
                else last
                if PARAM_STATE.fullmatch(last)
                else ""
            )
            things = tuple(thing for thing in self.facts.things(parent) if thing.node is parent)
            if made or "." not in name:
                found = self._of_class_around(unit, node) if made else things
                return Use("definition", made or name, unit, parent, found, others, legacy_import)
        if node in annotated and self._in_type_of_class(unit, node):
            return Use(
                "class",
                name,
                unit,
                node,
                self._made_by(unit, lambda thing: not self._direct(thing)),
            )
        if node in annotated:
            return Use(
                "annotation", name, unit, node, self._annotated_things(annotated[node]), others
            )
        return self._class_value(unit, node, name, parent)

    def _of_module_in_variable(self, unit: Unit, node: ast.Attribute | ast.Name) -> Use | None:
        """A legacy class as an attribute of what holds the module `flax.optim`."""
        if not isinstance(node, ast.Attribute) or self.facts.things(node.value):
            return None  # whatever else a variable of any name may hold
        if not any(legacy_name(name) == "" for name in self.facts.externals(node.value)):
            return None
        made = self._made_by(
            unit, lambda thing: thing.name == node.attr and not self._direct(thing)
        )
        return Use("module", "", unit, node, made)

    @staticmethod
    def _in_type_of_class(unit: Unit, node: ast.expr) -> bool:
        """Whether this is the `X` of `Type[X]`."""
        around = (outer.value for outer in unit.ancestors(node) if isinstance(outer, ast.Subscript))
        named = (value for value in around if isinstance(value, ast.Name | ast.Attribute))
        return any(ast.unparse(value).rpartition(".")[2] in ("Type", "type") for value in named)

    def _class_value(self, unit: Unit, node: ast.expr, name: str, parent: ast.AST | None) -> Use:
        if isinstance(parent, ast.ClassDef):
            return Use("base", name, unit, node, self._of_class_around(unit, node))
        if isinstance(parent, ast.MatchClass):
            subject = next(
                outer.subject for outer in unit.ancestors(parent) if isinstance(outer, ast.Match)
            )
            plain = not (parent.patterns or parent.kwd_patterns)
            things = tuple(self.facts.things(subject)) or self._any_optimizer(unit)
            return Use("check" if plain else "reflection", name, unit, node, things)
        container = unit.parents.get(parent) if isinstance(parent, ast.Tuple) else parent
        if isinstance(container, ast.Call) and "builtins.isinstance" in self.facts.externals(
            container.func
        ):
            things = tuple(self.facts.things(container.args[0], "optimizer", "definition"))
            for_both = any(
                "flax.training.train_state.TrainState" in self.facts.externals(one)
                for one in _each(parent)
            )
            if not for_both and all(
                thing.node is container for thing in things
            ):  # nothing but this check tells of any
                things = (*things, *self._any_optimizer(unit))
            return Use("check", name, unit, node, things)
        if "." in name:
            return Use("value", name, unit, node, self._of_method(parent, node))
        if name == "":
            chosen = self._made_by(unit, lambda thing: thing.name == "?")
            by_name = (
                isinstance(parent, ast.Call) and parent.args[:1] == [node] and len(parent.args) > 1
            )
            made = chosen if by_name and chosen else (*chosen, *self.facts.made_by_modules)
            return Use("module", name, unit, node, made)
        things = self._made_by(unit, lambda thing: thing.name == name and not self._direct(thing))
        if name == "Optimizer" and self._tells_at_run_time(unit, node):
            things = self._any_optimizer(unit)
        return Use("value", name, unit, node, things)

    def _tells_at_run_time(self, unit: Unit, node: ast.expr) -> bool:
        """Whether the class of all optimizers is not only named for a type, but kept in a table or handed to a function."""
        for outer in unit.ancestors(node):
            if isinstance(outer, ast.Call):
                return not any(
                    name.startswith("typing.") for name in self.facts.externals(outer.func)
                )
            if not isinstance(outer, ast.Subscript | ast.BinOp):
                return isinstance(outer, ast.Dict | ast.Tuple | ast.List | ast.Set | ast.Compare)
        return False

    def _any_optimizer(self, unit: Unit) -> tuple[Thing, ...]:
        """The optimizers of the programs to which a file belongs: what is asked of anything may be asked of each."""
        paths = self.facts.together(unit)
        return tuple(
            thing
            for thing in self._all_things
            if thing.kind == "optimizer" and thing.unit.path in paths
        )

    def _of_method(self, parent: ast.AST | None, node: ast.expr) -> tuple[Thing, ...]:
        """What the method of a legacy class may be called with: what a call gives it, or anything."""
        if not (isinstance(parent, ast.Call) and parent.func is node):
            return tuple(self._all_things)
        given = (thing for argument in values_of(parent) for thing in self.facts.things(argument))
        return tuple(dict.fromkeys(given))

    def _made_by(self, unit: Unit, condition: Callable[[Thing], bool]) -> tuple[Thing, ...]:
        """The definitions of a file's programs of which something holds."""
        made = (
            thing for thing in self._all_things if thing.kind == "definition" and condition(thing)
        )
        program = self.facts.together(unit)
        return tuple(thing for thing in made if thing.unit.path in program)

    @cached_property
    def _all_things(self) -> list[Thing]:
        return list(
            dict.fromkeys(
                thing for node in self.facts.flow.places for thing in self.facts.things(node)
            )
        )

    def _direct(self, thing: Thing) -> bool:
        return isinstance(thing.node, ast.Call) and self.facts.names_legacy(thing.node.func)

    def _of_class_around(self, unit: Unit, node: ast.expr) -> tuple[Thing, ...]:
        """The custom definitions of the class in which an expression is."""
        around = class_around(unit, node)
        if around is None:
            return ()
        cls = self.facts.flow.class_of(around)
        return self._made_by(unit, lambda thing: thing.name == "custom" and self._makes(thing, cls))

    def _makes(self, thing: Thing, cls: Class) -> bool:
        items = self.facts.objects(thing.node.func) if isinstance(thing.node, ast.Call) else ()
        return any(
            isinstance(item, Class) and cls in self.facts.flow.ancestry(item) for item in items
        )

    def _annotated_things(self, annotation: Annotation) -> tuple[Thing, ...]:
        within = self.facts.within(annotation.target)
        return tuple(thing for thing in within if thing.kind in ("optimizer", "definition"))

    def _quoted(self, unit: Unit, node: ast.Constant, annotation: Annotation) -> Iterable[Use]:
        if annotation.node is not node:
            return
        quoted = list(self.facts.with_quoted(annotation))
        things = tuple(
            dict.fromkeys(thing for found in quoted for thing in self._annotated_things(found))
        )
        inside = (inner for found in quoted for inner in ast.walk(found.expression))
        said = [
            one
            for one in inside
            if isinstance(one, ast.Name | ast.Attribute) and self.facts.names_legacy(one)
        ]
        externals = ((one, legacy_name(name)) for one in said for name in self.facts.externals(one))
        named: dict[tuple[str, str], list[ast.expr]] = {}
        for one, name in externals:
            if name:
                named.setdefault((name, ast.unparse(one)), []).append(one)
        for (name, quoted_name), where in named.items():
            yield Use("annotation", name, unit, node, things, quoted=quoted_name, said=tuple(where))

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
        others = tuple(
            item for item in self.facts.objects(node.func) if isinstance(item, Function | External)
        )
        return Use("custom", ast.unparse(node.func), unit, node, own, others) if own else None

    def _attribute_use(self, unit: Unit, node: ast.Attribute | ast.Name) -> Use | None:
        if not isinstance(node, ast.Attribute):
            return None
        if node.attr == "_filter_fn":
            return self._filter_use(unit, node)
        things = self.facts.things(node.value)
        if not things:
            return None
        having = [thing for thing in things if node.attr in ATTRIBUTES.get(thing.kind, ())]
        kinds = list(dict.fromkeys(thing.kind for thing in having))
        if not kinds:
            return self._own_attribute(unit, node)
        call = unit.parents.get(node)
        if (
            node.attr == "apply_gradient"
            and len(kinds) > 1
            and isinstance(call, ast.Call)
            and call.func is node
        ):
            kinds = [
                "optimizer" if len(call.args) <= 1 else "definition"
            ]  # which takes parameters and state too
            having = [thing for thing in having if thing.kind in kinds]
        others = [
            item for item in self.facts.objects(node.value) if self.members.offers(item, node.attr)
        ]
        others += [thing for thing in having if thing.kind != kinds[0]]
        return Use(f"{kinds[0]}.{node.attr}", node.attr, unit, node, tuple(having), tuple(others))

    def _own_attribute(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """An attribute that a definition has beside those of its base, such as one that its own class sets."""
        objects = list(self.facts.objects(node.value))
        things = tuple(
            item for item in objects if isinstance(item, Thing) and item.kind == "definition"
        )
        if not things or any(self.members.offers(item, node.attr) for item in objects):
            return None
        return Use("definition.own", node.attr, unit, node, things)

    def _filter_use(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """The predicate of a traversal, in a class that derives from MultiOptimizer."""
        around = class_around(unit, node)
        if around is None or not self.facts.derives_from(
            self.facts.flow.class_of(around), MULTI_OPTIMIZER
        ):
            return None
        return Use("filter", node.attr, unit, node, self._of_class_around(unit, node))


def _each(node: ast.AST | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else []


def owner_of_state(node: ast.expr) -> ast.expr | None:
    """The optimizer in `optimizer.state`, or in an element of that, as a MultiOptimizer had it."""
    state = node.value if isinstance(node, ast.Subscript) else node
    return state.value if isinstance(state, ast.Attribute) and state.attr == "state" else None


def class_around(unit: Unit, node: ast.AST) -> ast.ClassDef | None:
    """The class in which a node is."""
    return next((outer for outer in unit.ancestors(node) if isinstance(outer, ast.ClassDef)), None)
