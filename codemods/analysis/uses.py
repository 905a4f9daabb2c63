"""Every legacy construct of a project: where it is, its kind, and which objects reach it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

from codemods.analysis.legacy import (
    DEFINITIONS,
    MULTI_OPTIMIZER,
    NAMES,
    LegacyName,
    Unnamed,
    legacy_name,
    traversal_name,
)
from codemods.analysis.members import Members
from codemods.analysis.queries import Queries
from codemods.inference.binding import values_of
from codemods.inference.objects import Class, External, Function, LegacyObject, Object
from codemods.inference.recorded import Annotation
from codemods.model import Evidence, Location
from codemods.sources.modules import Span, Unit
from codemods.vocabulary import words

PARAM_STATE = re.compile(r"_\w+ParamState")
"""The private classes of an optimizer's state for one parameter."""

TRAIN_STATE = "flax.training.train_state.TrainState"

STRENGTH: tuple[Evidence, ...] = ("proven", "declared", "deduced", "likely")

ATTRIBUTES = {
    kind: frozenset(words(names))
    for kind, names in {
        "definition": "create hyper_params apply_gradient init_state update_hyper_params "
        "state_dict restore_state apply_param_gradient init_param_state",
        "optimizer": "target state optimizer_def apply_gradient replace compute_gradient "
        "compute_gradients optimize replicate unreplicate state_dict restore_state",
        "state": "step param_states replace",
        "state_dict": "",
        "hyper_params": "",
        "step": "",
        "traversal": "iterate update set compose merge filter tree each __getitem__",
    }.items()
}


OTHER_ATTRIBUTES = frozenset(words("traversals sub_optimizers wrapped_optimizer"))
"""Attributes of definitions that have no counterpart."""


@dataclass(frozen=True, eq=False)
class Use:
    """One legacy construct: its kind, its place, and the objects that reach it.

    `kind` is one of these:

    - `import`, `module`, `definition`, `base`, `annotation`,
    - `check` (isinstance),
    - `value` (a class or method used as a value),
    - `class` (a class in `Type[…]`),
    - `dynamic` (a class chosen at run time),
    - `custom` (an optimizer of the user's own class is made),
    - `reflection` (an attribute by its name),
    - `in_text` (a text that is run as code, or a key, that may name what is legacy),
    - `filter` (the predicate of a traversal),
    - `stored` (an optimizer that goes to a checkpoint),
    - `restored` (a call that reads one),
    - `state_dict` (an item of a state dict),
    - `checkpoint` (an item of a checkpoint that was read as plain dicts),
    - `patched` (an attribute of a class or module that is assigned),
    - `KIND.ATTRIBUTE` for an attribute of an object, such as `optimizer.target`.

    `name` is what messages say, `legacy` the legacy class or module that it is, if it is one, and
    `cause` another place that the use is about.
    `quoted` is the name in an annotation in quotes, `said` are the expressions that name it there.
    """

    kind: str
    name: str
    unit: Unit
    node: ast.expr | ast.stmt
    objects: tuple[LegacyObject, ...]
    others: tuple[Object, ...] = ()
    legacy_import: bool = True
    quoted: str = ""
    said: tuple[ast.expr, ...] = ()
    legacy: LegacyName | None = None
    cause: Location | None = None

    @property
    def span(self) -> Span:
        return self.unit.span(self.node)

    @property
    def location(self) -> Location:
        """Where it is."""
        return self.unit.location(self.node.lineno)

    @property
    def parent(self) -> ast.AST | None:
        return self.unit.parents.get(self.node)

    @property
    def call(self) -> ast.Call | None:
        """The call of the attribute that this is about; None where the attribute is not called."""
        parent = self.parent
        return (
            parent
            if isinstance(parent, ast.Call) and parent.func is self.node
            else None
        )

    @property
    def owner(self) -> ast.expr:
        """The object whose attribute or item this is about."""
        assert isinstance(self.node, ast.Attribute | ast.Subscript)
        return self.node.value

    @property
    def owner_hole(self) -> tuple[str, Span]:
        """The hole `{owner}` of a template, for that."""
        return "owner", self.unit.span(self.owner)

    @property
    def evidence(self) -> Evidence:
        found = {obj.evidence for obj in self.objects}
        return next((level for level in STRENGTH if level in found), "proven")


class Uses:
    """Finds the uses of a project."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.members = Members(facts)

    def in_unit(self, unit: Unit) -> list[Use]:
        legacy = [
            one
            for one in self.facts.imported(unit)
            if legacy_name(one.target) is not None
        ]
        targets = {one.statement: one.target for one in reversed(legacy)}
        statements = dict.fromkeys(one.statement for one in legacy)
        found = [
            Use("import", targets[statement], unit, statement, ())
            for statement in statements
        ]
        annotated = self._annotated_nodes(unit)
        for node in unit.nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                use = self._reference(unit, node, annotated) or self._attribute_use(
                    unit, node
                )
            elif isinstance(node, ast.Call):
                use = self._dynamic_use(unit, node)
            elif isinstance(node, ast.Constant) and node in annotated:
                found += self._quoted(unit, node, annotated[node])
                continue
            else:
                continue
            if use is not None:
                found.append(use)
        return found

    def _annotated_nodes(self, unit: Unit) -> dict[ast.AST, Annotation]:
        annotations = self.facts.flow.reading.annotations
        own = (annotation for annotation in annotations if annotation.unit is unit)
        return {
            node: one for one in own for node in (one.node, *ast.walk(one.expression))
        }

    def _reference(
        self,
        unit: Unit,
        node: ast.Attribute | ast.Name,
        annotated: dict[ast.AST, Annotation],
    ) -> Use | None:
        """The use that names a legacy class or module."""
        if not isinstance(node.ctx, ast.Load):
            return None
        if not self.facts.names_legacy(node):
            return self._of_module_in_variable(unit, node)
        externals = self.facts.externals(node)
        name = _name_among(externals)
        if name is None or self._is_part_of_name(unit, node):
            return None
        others = tuple(
            External(item)
            for item in externals
            if legacy_name(item) is None and not traversal_name(item)
        )
        parent = unit.parents.get(node)
        use = None
        if isinstance(parent, ast.Call) and parent.func is node:
            use = self._made_use(unit, node, str(name), parent, others)
        if use is None and node in annotated:
            use = self._annotated_use(unit, node, str(name), annotated[node], others)
        if use is None:
            use = self._class_value(unit, node, name, parent)
        return replace(use, legacy=name)

    def _made_use(
        self,
        unit: Unit,
        node: ast.expr,
        name: str,
        call: ast.Call,
        others: tuple[External, ...],
    ) -> Use | None:
        """The use of a legacy class that is called; None for a method."""
        externals = self.facts.externals(node)
        is_legacy = any(legacy_name(item) is not None for item in externals)
        # optim.OptimizerState(…), of a definition of the user's
        state = _class_of_state(name, externals[0].rpartition(".")[2])
        if state is not None:
            around = self._of_class_around(unit, node)
            return Use("definition", state, unit, call, around, others, is_legacy)
        # optim.Adam(…)
        if "." not in name:
            objects = tuple(
                obj for obj in self.facts.legacy_objects(call) if obj.node is call
            )
            return Use("definition", name, unit, call, objects, others, is_legacy)
        return None

    def _is_part_of_name(self, unit: Unit, node: ast.expr) -> bool:
        """Whether this is the `optim` of `optim.Adam`."""
        parent = unit.parents.get(node)
        if not isinstance(parent, ast.Attribute):
            return False
        return any(
            legacy_name(item) is not None for item in self.facts.externals(parent)
        )

    def _annotated_use(
        self,
        unit: Unit,
        node: ast.expr,
        name: str,
        annotation: Annotation,
        others: tuple[External, ...],
    ) -> Use:
        # def make(cls: Type[optim.Adam])
        if self._in_type_of_class(unit, node):
            made = self._made_by(unit, lambda obj: not self._direct(obj))
            return Use("class", name, unit, node, made)
        return Use(
            "annotation", name, unit, node, self._annotated_objects(annotation), others
        )

    def _of_module_in_variable(
        self, unit: Unit, node: ast.Attribute | ast.Name
    ) -> Use | None:
        """A legacy class as an attribute of a variable that holds the module `flax.optim`."""
        if not isinstance(node, ast.Attribute) or node.attr not in NAMES | {"optim"}:
            return None
        if self.facts.legacy_objects(node.value):
            return None  # a variable of any name may hold something else, too
        # importlib.import_module("flax").optim
        if node.attr == "optim" and "flax" in self.facts.externals(node.value):
            made = self._made_by_name(unit, node, unit.parents.get(node))
            return Use("module", "", unit, node, made)
        if Unnamed.MODULE not in map(legacy_name, self.facts.externals(node.value)):
            return None
        made = self._made_by(
            unit, lambda obj: obj.made_by == node.attr and not self._direct(obj)
        )
        return Use("module", "", unit, node, made)

    @staticmethod
    def _in_type_of_class(unit: Unit, node: ast.expr) -> bool:
        """Whether this is the `X` of `Type[X]`."""
        around = (
            outer.value
            for outer in unit.ancestors(node)
            if isinstance(outer, ast.Subscript)
        )
        named = (
            value for value in around if isinstance(value, ast.Name | ast.Attribute)
        )
        return any(
            ast.unparse(value).rpartition(".")[2] in ("Type", "type") for value in named
        )

    def _class_value(
        self, unit: Unit, node: ast.expr, legacy: LegacyName, parent: ast.AST | None
    ) -> Use:
        """The use of a legacy class or module that is neither called nor in an annotation."""
        name = str(legacy)
        # class Mine(optim.OptimizerDef)
        if isinstance(parent, ast.ClassDef):
            return Use("base", name, unit, node, self._of_class_around(unit, node))
        # case optim.Optimizer():
        if isinstance(parent, ast.MatchClass):
            is_plain = not (parent.patterns or parent.kwd_patterns)
            kind = "check" if is_plain else "reflection"
            return Use(kind, name, unit, node, self._any_optimizer(unit))
        # isinstance(x, optim.Optimizer), or isinstance(x, (optim.Optimizer, TrainState))
        container = (
            unit.parents.get(parent) if isinstance(parent, ast.Tuple) else parent
        )
        if isinstance(container, ast.Call) and self._is_isinstance(container):
            return Use(
                "check", name, unit, node, self._checked(unit, container, parent)
            )
        # optim.Optimizer.apply_gradient
        if "." in name:
            return Use("value", name, unit, node, self._of_method(parent, node))
        if legacy is Unnamed.MODULE:
            return Use(
                "module", name, unit, node, self._made_by_name(unit, node, parent)
            )
        objects = self._made_by(
            unit, lambda obj: obj.made_by == legacy and not self._direct(obj)
        )
        if name == "Optimizer" and self._tells_at_run_time(unit, node):
            objects = self._any_optimizer(unit)
        return Use("value", name, unit, node, objects)

    def _is_isinstance(self, call: ast.Call) -> bool:
        return "builtins.isinstance" in self.facts.externals(call.func)

    def _checked(
        self, unit: Unit, call: ast.Call, classes: ast.AST | None
    ) -> tuple[LegacyObject, ...]:
        """The objects that an `isinstance` checks; any optimizer, if only this check shows one."""
        objects = tuple(
            self.facts.legacy_objects(call.args[0], "optimizer", "definition")
        )
        if any(TRAIN_STATE in self.facts.externals(one) for one in _each(classes)):
            return objects
        if all(obj.node is call for obj in objects):
            return (*objects, *self._any_optimizer(unit))
        return objects

    def _made_by_name(
        self, unit: Unit, node: ast.expr, parent: ast.AST | None
    ) -> tuple[LegacyObject, ...]:
        """The definitions that the module makes where its classes are chosen by name."""
        named: LegacyName = Unnamed.RUN_TIME
        match parent:
            # getattr(optim, "LAMB")
            case ast.Call(
                func=ast.Name(id="getattr"),
                args=[module, ast.Constant(value=str(word)), *_],
            ) if module is node:
                named = word
        chosen = self._made_by(
            unit, lambda obj: obj.made_by == named and not self._direct(obj)
        )
        match parent:
            # getattr(optim, name)
            case ast.Call(args=[module, _, *_]) if module is node and chosen:
                return chosen
        return (*chosen, *self.facts.made_by_modules)

    def _tells_at_run_time(self, unit: Unit, node: ast.expr) -> bool:
        """Whether the class `Optimizer` is in a table or an argument, and not only in a type."""
        for outer in unit.ancestors(node):
            if isinstance(outer, ast.Call):
                names = self.facts.externals(outer.func)
                return not any(name.startswith("typing.") for name in names)
            if not isinstance(outer, ast.Subscript | ast.BinOp):
                return isinstance(
                    outer, ast.Dict | ast.Tuple | ast.List | ast.Set | ast.Compare
                )
        return False

    def _any_optimizer(self, unit: Unit) -> tuple[LegacyObject, ...]:
        """The optimizers of a file's programs, for questions that may be about each of them."""
        paths = self.facts.together(unit)
        return tuple(
            obj
            for obj in self._all_objects
            if obj.kind == "optimizer" and obj.unit.path in paths
        )

    def _of_method(
        self, parent: ast.AST | None, node: ast.expr
    ) -> tuple[LegacyObject, ...]:
        """The objects that a method of a legacy class may be called with.

        They are the arguments of a call; any, if it is not called here.
        """
        if not (isinstance(parent, ast.Call) and parent.func is node):
            return tuple(self._all_objects)
        given = (
            obj
            for argument in values_of(parent)
            for obj in self.facts.legacy_objects(argument)
        )
        return tuple(dict.fromkeys(given))

    def _made_by(
        self, unit: Unit, condition: Callable[[LegacyObject], bool]
    ) -> tuple[LegacyObject, ...]:
        """The definitions of a file's programs that meet a condition."""
        program = self.facts.together(unit)
        return tuple(
            obj
            for obj in self._all_objects
            if obj.kind == "definition" and condition(obj) and obj.unit.path in program
        )

    @cached_property
    def _all_objects(self) -> list[LegacyObject]:
        """The objects that calls make, and those that annotations or uses show."""
        found: dict[LegacyObject, None] = {}
        for _, call in self.facts.flow.reading.calls:
            found |= dict.fromkeys(self.facts.made_at(call))
        found |= dict.fromkeys(self.facts.flow.solver.legacy_objects())
        return [*found]

    def _direct(self, obj: LegacyObject) -> bool:
        """Whether an object is made by the name of its class, as in `optim.Adam(…)`."""
        return isinstance(obj.node, ast.Call) and self.facts.names_legacy(obj.node.func)

    def _of_class_around(self, unit: Unit, node: ast.expr) -> tuple[LegacyObject, ...]:
        """The custom definitions of the class around an expression.

        Where nothing in view makes one, those of the nearest class from which it derives; without
        any, the outermost of these classes stands for them.
        """
        around = class_around(unit, node)
        if around is None:
            return ()
        ancestry = self.facts.flow.ancestry(self.facts.flow.class_of(around))
        own = (item for item in ancestry if isinstance(item, Class))
        classes = [cls for cls in own if self._is_definition(cls)]
        for cls in classes:
            made = self._made_by(unit, partial(self._makes, cls=cls))
            if made:
                return made
        if not classes:
            return ()
        outermost = classes[-1]
        kind, made_by = "definition", Unnamed.CUSTOM
        return (LegacyObject(kind, outermost.unit, outermost.node, made_by),)

    def _is_definition(self, cls: Class) -> bool:
        """Whether a class of the program derives from a legacy one."""
        ancestry = self.facts.flow.ancestry(cls)
        bases = (item.name for item in ancestry if isinstance(item, External))
        return any(legacy_name(name) is not None for name in bases)

    def _makes(self, obj: LegacyObject, cls: Class) -> bool:
        """Whether the allocation site of an object makes an instance of a class of the program."""
        if not _is_custom(obj):
            return False
        items = (
            self.facts.objects(obj.node.func) if isinstance(obj.node, ast.Call) else ()
        )
        classes = (item for item in items if isinstance(item, Class))
        return any(cls in self.facts.flow.ancestry(item) for item in classes)

    def _annotated_objects(self, annotation: Annotation) -> tuple[LegacyObject, ...]:
        within = self.facts.within(annotation.target)
        return tuple(obj for obj in within if obj.kind in ("optimizer", "definition"))

    def _quoted(
        self, unit: Unit, node: ast.Constant, annotation: Annotation
    ) -> Iterable[Use]:
        """A use for each legacy name in an annotation in quotes."""
        if annotation.node is not node:
            return
        quoted = list(self.facts.with_quoted(annotation))
        objects = dict.fromkeys(
            obj for found in quoted for obj in self._annotated_objects(found)
        )
        named: dict[tuple[str, str], list[ast.expr]] = {}
        for inner in (
            inner for found in quoted for inner in ast.walk(found.expression)
        ):
            if not isinstance(inner, ast.Name | ast.Attribute):
                continue
            if not self.facts.names_legacy(inner):
                continue
            for name in map(legacy_name, self.facts.externals(inner)):
                if isinstance(name, str):
                    named.setdefault((name, ast.unparse(inner)), []).append(inner)
        for (name, text), where in named.items():
            yield Use(
                "annotation",
                name,
                unit,
                node,
                tuple(objects),
                quoted=text,
                said=tuple(where),
            )

    def _dynamic_use(self, unit: Unit, node: ast.Call) -> Use | None:
        """A call of a legacy class in a variable, or of a class that derives from one."""
        if self.facts.names_legacy(node.func):
            return None
        # make = optim.Adam; make(1e-3)
        names = [legacy_name(name) for name in self.facts.externals(node.func)]
        name = next(
            (name for name in names if name in (*DEFINITIONS, Unnamed.RUN_TIME)), None
        )
        if name is not None:
            objects = tuple(self.facts.legacy_objects(node, "definition"))
            return Use("dynamic", str(name), unit, node, objects, legacy=name)
        # class Mine(optim.OptimizerDef): …; Mine(1e-3)
        own = tuple(filter(_is_custom, self.facts.made_at(node, "definition")))
        if not own:
            return None
        items = self.facts.objects(node.func)
        others = tuple(item for item in items if isinstance(item, Function | External))
        return Use("custom", ast.unparse(node.func), unit, node, own, others)

    def _attribute_use(self, unit: Unit, node: ast.Attribute | ast.Name) -> Use | None:
        """The use of an attribute of an object."""
        if not isinstance(node, ast.Attribute):
            return None
        if node.attr == "_filter_fn":
            return self._filter_use(unit, node)
        if node.attr not in self._attributes and not node.attr.startswith("__"):
            return None
        objects = self.facts.legacy_objects(node.value)
        if not objects:
            return None
        having = [obj for obj in objects if node.attr in ATTRIBUTES.get(obj.kind, ())]
        kinds = list(dict.fromkeys(obj.kind for obj in having))
        if not kinds:
            return self._own_attribute(unit, node)
        call = unit.parents.get(node)
        is_ambiguous = node.attr == "apply_gradient" and len(kinds) > 1
        if is_ambiguous and isinstance(call, ast.Call) and call.func is node:
            # that of a definition takes params and state, too
            kinds = ["optimizer" if len(call.args) <= 1 else "definition"]
            having = [obj for obj in having if obj.kind in kinds]
        others = [
            item
            for item in self.facts.objects(node.value)
            if self.members.offers(item, node.attr)
        ]
        others += [obj for obj in having if obj.kind != kinds[0]]
        return Use(
            f"{kinds[0]}.{node.attr}",
            node.attr,
            unit,
            node,
            tuple(having),
            tuple(others),
        )

    @cached_property
    def _attributes(self) -> set[str]:
        """The attributes that legacy objects and those of the project's classes may have."""
        engine = self.facts.flow.engine
        own = engine.bound_in_classes | engine.index.stores.keys() | OTHER_ATTRIBUTES
        return own.union(*ATTRIBUTES.values())

    def _own_attribute(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """An attribute of a definition that legacy classes do not have, but its own class."""
        objects = list(self.facts.objects(node.value))
        legacy_objects = tuple(
            item
            for item in objects
            if isinstance(item, LegacyObject) and item.kind == "definition"
        )
        if not legacy_objects or any(
            self.members.offers(item, node.attr) for item in objects
        ):
            return None
        return Use("definition.own", node.attr, unit, node, legacy_objects)

    def _filter_use(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """The predicate of a traversal, in a class that derives from MultiOptimizer."""
        around = class_around(unit, node)
        if around is None:
            return None
        if not self.facts.derives_from(
            self.facts.flow.class_of(around), MULTI_OPTIMIZER
        ):
            return None
        return Use("filter", node.attr, unit, node, self._of_class_around(unit, node))


def _name_among(externals: list[str]) -> LegacyName | None:
    """The name within `flax.optim` of one of some full names."""
    if any(traversal_name(item) for item in externals):
        return "ModelParamTraversal"
    return next(
        (name for name in map(legacy_name, externals) if name is not None), None
    )


def _is_custom(obj: LegacyObject) -> bool:
    """Whether a class of the program made a definition."""
    return obj.made_by is Unnamed.CUSTOM


def _class_of_state(name: str, last: str) -> str | None:
    """The name of a class of states, public or private; None for other classes."""
    if name == "OptimizerState":
        return name
    return last if PARAM_STATE.fullmatch(last) else None


def _each(node: ast.AST | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else []


def owner_of_state(node: ast.expr) -> ast.expr | None:
    """The optimizer in `optimizer.state`, or `optimizer.state[0]` as of a MultiOptimizer."""
    state = node.value if isinstance(node, ast.Subscript) else node
    return (
        state.value
        if isinstance(state, ast.Attribute) and state.attr == "state"
        else None
    )


def legacy_bases(use: Use, facts: Queries) -> set[LegacyName]:
    """The legacy classes from which the class around a use derives."""
    around = class_around(use.unit, use.node)
    if around is None:
        return set()
    ancestry = facts.flow.ancestry(facts.flow.class_of(around))
    names = (legacy_name(item.name) for item in ancestry if isinstance(item, External))
    return {name for name in names if name not in (None, Unnamed.MODULE)}


def class_around(unit: Unit, node: ast.AST) -> ast.ClassDef | None:
    """The class in which a node is."""
    return next(
        (outer for outer in unit.ancestors(node) if isinstance(outer, ast.ClassDef)),
        None,
    )
