"""Finds every legacy construct of a project."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain

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
from codemods.analysis.naming import last_word
from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES, TRAIN_STATE, Use, class_around
from codemods.inference.objects import Class, External, Function, LegacyObject
from codemods.inference.recorded import Annotation
from codemods.sources.modules import Unit
from codemods.vocabulary import words

PARAM_STATE = re.compile(r"_\w+ParamState")
"""The private classes of an optimizer's state for one parameter."""

AS_TRAIN_STATE = {
    r"\.target\b": ".params",
    r"\.state\.step\b": ".step",
    r"\.apply_gradient\((\w+)\)": r".apply_gradients(grads=\1)",
}
"""What is read of an optimizer, and called on it, as it is of a train state."""

OTHER_ATTRIBUTES = frozenset(words("traversals sub_optimizers wrapped_optimizer"))
"""Attributes of definitions that have no counterpart."""


class Uses:
    """Finds the uses of a project."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.members = Members(facts)

    def in_unit(self, unit: Unit) -> list[Use]:
        targets: dict[ast.stmt, str] = {}
        for one in self.facts.imported(unit):
            if legacy_name(one.target) is not None:
                targets.setdefault(one.statement, one.target)
        found = [
            Use("import", target, unit, statement, ())
            for statement, target in targets.items()
        ]
        annotated = {
            node: one
            for one in self.flow.reading.annotations
            if one.unit is unit
            for node in (one.node, *ast.walk(one.expression))
        }
        for node in unit.nodes:
            use: Use | None = None
            match node:
                case ast.Attribute() | ast.Name():
                    use = self._reference(unit, node, annotated.get(node))
                    if use is None and isinstance(node, ast.Attribute):
                        use = self._attribute_use(unit, node)
                    elif use is None and isinstance(node, ast.Name):
                        use = self._of_hyper_params(unit, node)
                case ast.Call():
                    use = self._dynamic_use(unit, node)
                case ast.Constant() if node in annotated:
                    found += self._quoted(unit, node, annotated[node])
            if use is not None:
                found.append(use)
        return found

    def _of_hyper_params(self, unit: Unit, node: ast.Name) -> Use | None:
        """A variable that holds hyperparameters, where one of them is read."""
        parent = unit.parents.get(node)
        if not isinstance(parent, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return None
        # used = optimizer.optimizer_def.hyper_params, not a parameter
        engine, scope = self.flow.engine, self.facts.binding(node)
        bindings = [] if scope is None else engine.bindings_of(scope, node.id)
        sources = (one.source for one in bindings)
        if not all(
            isinstance(one, ast.Attribute) and one.attr == "hyper_params"
            for one in sources
        ):
            return None
        found = self.facts.legacy_objects(node, "hyper_params")
        if not found:
            return None
        objects = tuple(replace(obj, kind="definition") for obj in found)
        return Use("definition.hyper_params", node.id, unit, node, objects)

    def _reference(
        self,
        unit: Unit,
        node: ast.Attribute | ast.Name,
        annotation: Annotation | None,
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
        use = self._made_use(unit, node, str(name), externals, others)
        if use is None and annotation is not None:
            use = self._annotated_use(unit, node, str(name), annotation, others)
        if use is None:
            use = self._class_value(unit, node, name)
        return replace(use, legacy=name)

    def _made_use(
        self,
        unit: Unit,
        node: ast.expr,
        name: str,
        externals: list[str],
        others: tuple[External, ...],
    ) -> Use | None:
        """The use of a legacy class that is called; None for a method."""
        call = unit.call_of(node)
        if call is None:
            return None
        # optim.OptimizerState(…), of a definition of the user's
        state = _class_of_state(name, externals[0].rpartition(".")[2])
        objects = self._of_class_around(unit, node) if state else ()
        if state is None and "." in name:
            return None
        # optim.Adam(…)
        if state is None:
            own = self.facts.legacy_objects(call)
            objects = tuple(obj for obj in own if obj.node is call)
        is_legacy = any(legacy_name(item) is not None for item in externals)
        return Use("definition", state or name, unit, call, objects, others, is_legacy)

    def _is_part_of_name(self, unit: Unit, node: ast.expr) -> bool:
        """Whether this is the `optim` of `optim.Adam`."""
        parent = unit.parents.get(node)
        return isinstance(parent, ast.Attribute) and any(
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
        if any(
            isinstance(outer, ast.Subscript)
            and last_word(outer.value) in ("Type", "type")
            for outer in unit.ancestors(node)
        ):
            return Use("class", name, unit, node, self._indirect(unit))
        objects = self._annotated_objects(annotation)
        return Use("annotation", name, unit, node, objects, others)

    def _of_module_in_variable(
        self, unit: Unit, node: ast.Attribute | ast.Name
    ) -> Use | None:
        """A legacy class as an attribute of a variable that holds the module `flax.optim`."""
        if not isinstance(node, ast.Attribute) or node.attr not in NAMES | {"optim"}:
            return None
        if self.facts.legacy_objects(node.value):
            return None  # a variable of any name may hold something else, too
        externals = self.facts.externals(node.value)
        # importlib.import_module("flax").optim
        if node.attr == "optim" and "flax" in externals:
            return Use("module", "", unit, node, self._made_by_name(unit, node))
        if Unnamed.MODULE not in map(legacy_name, externals):
            return None
        return Use("module", "", unit, node, self._indirect(unit, node.attr))

    def _class_value(self, unit: Unit, node: ast.expr, legacy: LegacyName) -> Use:
        """The use of a legacy class or module that is neither called nor in an annotation."""
        name = str(legacy)
        parent = unit.parents.get(node)
        tuple_or_call = (
            unit.parents.get(parent) if isinstance(parent, ast.Tuple) else parent
        )
        kind = "value"
        others: tuple[External, ...] = ()
        match parent, tuple_or_call:
            # class Mine(optim.OptimizerDef)
            case ast.ClassDef(), _:
                kind, objects = "base", self._of_class_around(unit, node)
            # case optim.Optimizer():
            case ast.MatchClass(patterns=patterns, kwd_patterns=by_name), _:
                kind = "reflection" if patterns or by_name else "check"
                objects = self._of_program(unit, "optimizer")
            # isinstance(x, optim.Optimizer), or isinstance(x, (optim.Optimizer, TrainState))
            case _, ast.Call() as call if "builtins.isinstance" in self.facts.externals(
                call.func
            ):
                kind, objects = "check", self._checked(unit, call, parent)
                others = self._train_states(unit, call, parent)
            # optim.Optimizer.apply_gradient
            case _ if "." in name:
                objects = tuple(self._all_objects)
            case _ if legacy is Unnamed.MODULE:
                kind, objects = "module", self._made_by_name(unit, node)
            case _ if name == "Optimizer" and self._tells_at_run_time(unit, node):
                objects = self._of_program(unit, "optimizer")
            case _:
                objects = self._indirect(unit, legacy)
        return Use(kind, name, unit, node, objects, others)

    def _train_states(
        self, unit: Unit, call: ast.Call, classes: ast.AST | None
    ) -> tuple[External, ...]:
        """The train states that an `isinstance` may be about, and does not ask for as well."""
        several = classes.elts if isinstance(classes, ast.Tuple) else ()
        is_for_both = any(TRAIN_STATE in self.facts.externals(one) for one in several)
        if is_for_both or _become_the_same(*_branches(unit, call)):
            return ()
        roots = self.flow.sources.roots(self.flow.places.get(call.args[0]))
        made = (one for one in roots if isinstance(one, ast.Call))
        names = {name for one in made for name in self.flow.origin_names(one)}
        return tuple(External(name) for name in names if name.startswith(TRAIN_STATE))

    def _checked(
        self, unit: Unit, call: ast.Call, classes: ast.AST | None
    ) -> tuple[LegacyObject, ...]:
        """The objects that an `isinstance` checks; any optimizer, if only this check shows one."""
        objects = tuple(
            self.facts.legacy_objects(call.args[0], "optimizer", "definition")
        )
        several = classes.elts if isinstance(classes, ast.Tuple) else ()
        is_for_both = any(TRAIN_STATE in self.facts.externals(one) for one in several)
        if is_for_both or any(obj.node is not call for obj in objects):
            return objects
        return (*objects, *self._of_program(unit, "optimizer"))

    def _made_by_name(self, unit: Unit, node: ast.expr) -> tuple[LegacyObject, ...]:
        """The definitions that the module makes where its classes are chosen by name."""
        parent = unit.parents.get(node)
        named: LegacyName = Unnamed.RUN_TIME
        match parent:
            # getattr(optim, "LAMB")
            case ast.Call(
                func=ast.Name(id="getattr"),
                args=[module, ast.Constant(value=str(word)), *_],
            ) if module is node:
                named = word
        chosen = self._indirect(unit, named)
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

    def _of_program(
        self,
        unit: Unit,
        kind: str,
        condition: Callable[[LegacyObject], bool] = lambda _: True,
    ) -> tuple[LegacyObject, ...]:
        """The objects of a kind in a file's programs that meet a condition."""
        program = self.facts.together(unit)
        return tuple(
            obj
            for obj in self._all_objects
            if obj.kind == kind and obj.unit.path in program and condition(obj)
        )

    def _indirect(
        self, unit: Unit, made_by: LegacyName | None = None
    ) -> tuple[LegacyObject, ...]:
        """The definitions that are made, by a class or any, but not by its name."""

        def is_indirect(obj: LegacyObject) -> bool:
            if made_by not in (None, obj.made_by):
                return False
            # optim.Adam(…)
            call = obj.node
            return not (
                isinstance(call, ast.Call) and self.facts.names_legacy(call.func)
            )

        return self._of_program(unit, "definition", is_indirect)

    @cached_property
    def _all_objects(self) -> list[LegacyObject]:
        """The objects that calls make, and those that annotations or uses show."""
        shown = self.flow.solver.legacy_objects()
        return [*dict.fromkeys((*self.facts.made, *shown))]

    def _of_class_around(self, unit: Unit, node: ast.expr) -> tuple[LegacyObject, ...]:
        """The custom definitions, or optimizers, of the class around an expression.

        Where nothing in view makes one, those of the nearest class from which it derives; without
        any, the outermost of these classes stands for them.
        """
        around = class_around(unit, node)
        if around is None:
            return ()
        classes = [
            cls
            for cls in self.flow.ancestry(self.flow.class_of(around))
            if isinstance(cls, Class) and any(self.facts.legacy_bases(cls))
        ]
        for cls in classes:
            for kind in ("definition", "optimizer"):
                made = self._of_program(unit, kind, self._makes(cls))
                if made:
                    return made
        return tuple(
            LegacyObject("definition", cls.unit, cls.node, Unnamed.CUSTOM)
            for cls in classes[-1:]
        )

    def _makes(self, cls: Class) -> Callable[[LegacyObject], bool]:
        """Whether the allocation site of an object makes an instance of a class of the program."""

        def makes(obj: LegacyObject) -> bool:
            is_own = obj.kind == "optimizer" or obj.made_by is Unnamed.CUSTOM
            if not is_own or not isinstance(obj.node, ast.Call):
                return False
            return any(
                isinstance(item, Class) and cls in self.flow.ancestry(item)
                for item in self.facts.objects(obj.node.func)
            )

        return makes

    def _annotated_objects(self, annotation: Annotation) -> tuple[LegacyObject, ...]:
        within = self.facts.within(annotation.target)
        return tuple(obj for obj in within if obj.kind in ("optimizer", "definition"))

    def _quoted(
        self, unit: Unit, node: ast.Constant, annotation: Annotation
    ) -> Iterator[Use]:
        """A use for each legacy name in an annotation in quotes."""
        if annotation.node is not node:
            return
        quoted = list(self.facts.with_quoted(annotation))
        objects = dict.fromkeys(
            obj for found in quoted for obj in self._annotated_objects(found)
        )
        named: dict[tuple[str, str], list[ast.expr]] = {}
        for inner in chain.from_iterable(ast.walk(one.expression) for one in quoted):
            if isinstance(inner, ast.Name | ast.Attribute) and self.facts.names_legacy(
                inner
            ):
                for name in map(legacy_name, self.facts.externals(inner)):
                    if isinstance(name, str):
                        key = name, ast.unparse(inner)
                        named.setdefault(key, []).append(inner)
        for (name, text), said in named.items():
            use = Use("annotation", name, unit, node, tuple(objects))
            yield replace(use, quoted=text, said=tuple(said))

    def _dynamic_use(self, unit: Unit, node: ast.Call) -> Use | None:
        """A call of a legacy class in a variable, or of a class that derives from one."""
        if self.facts.names_legacy(node.func):
            return None
        # make = optim.Adam; make(1e-3)
        for name in map(legacy_name, self.facts.externals(node.func)):
            if name in (*DEFINITIONS, Unnamed.RUN_TIME):
                objects = tuple(self.facts.legacy_objects(node, "definition"))
                return Use("dynamic", str(name), unit, node, objects, legacy=name)
        # class Mine(optim.OptimizerDef): …; Mine(1e-3)
        made = self.facts.made_at(node, "definition")
        own = tuple(obj for obj in made if obj.made_by is Unnamed.CUSTOM)
        if not own:
            return None
        items = self.facts.objects(node.func)
        others = tuple(item for item in items if isinstance(item, Function | External))
        return Use("custom", ast.unparse(node.func), unit, node, own, others)

    def _attribute_use(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """The use of an attribute of an object."""
        if node.attr == "_filter_fn":
            return self._filter_use(unit, node)
        if node.attr not in self._attributes and not node.attr.startswith("__"):
            return None
        objects = self.facts.legacy_objects(node.value)
        having = [obj for obj in objects if node.attr in ATTRIBUTES.get(obj.kind, ())]
        others = [
            item
            for item in (self.facts.objects(node.value) if objects else ())
            if self.members.offers(item, node.attr)
        ]
        if not having:
            # an attribute that no legacy class has, but the own class of a definition
            own = tuple(obj for obj in objects if obj.kind == "definition")
            if not own or others:
                return None
            return Use("definition.own", node.attr, unit, node, own)
        kind = having[0].kind
        call = unit.call_of(node)
        if node.attr == "apply_gradient" and call is not None:
            # that of a definition takes params and state, too
            meant = "optimizer" if len(call.args) <= 1 else "definition"
            if any(obj.kind == meant for obj in having):
                kind = meant
                having = [obj for obj in having if obj.kind == kind]
        others += [obj for obj in having if obj.kind != kind]
        name = f"{kind}.{node.attr}"
        return Use(name, node.attr, unit, node, tuple(having), tuple(others))

    @cached_property
    def _attributes(self) -> set[str]:
        """The attributes that legacy objects and those of the project's classes may have."""
        engine = self.flow.engine
        own = engine.bound_in_classes | engine.index.stores.keys() | OTHER_ATTRIBUTES
        return own.union(*ATTRIBUTES.values())

    def _filter_use(self, unit: Unit, node: ast.Attribute) -> Use | None:
        """The predicate of a traversal, in a class that derives from MultiOptimizer."""
        around = class_around(unit, node)
        if around is None or not self.facts.derives_from(
            self.flow.class_of(around), MULTI_OPTIMIZER
        ):
            return None
        return Use("filter", node.attr, unit, node, self._of_class_around(unit, node))


def _name_among(externals: list[str]) -> LegacyName | None:
    """The name within `flax.optim` of one of some full names."""
    if any(map(traversal_name, externals)):
        return "ModelParamTraversal"
    names = map(legacy_name, externals)
    return next((name for name in names if name is not None), None)


def _class_of_state(name: str, last: str) -> str | None:
    """The name of a class of states, public or private; None for other classes."""
    if name == "OptimizerState":
        return name
    return last if PARAM_STATE.fullmatch(last) else None


def _branches(unit: Unit, test: ast.expr) -> tuple[list[ast.AST], list[ast.AST]]:
    """What runs if a test holds, and if it does not; nothing where these are no branches."""
    match unit.parents.get(test):
        case ast.IfExp(test=asked, body=body, orelse=orelse) if asked is test:
            return [body], [orelse]
        case ast.If(test=asked, body=[*body], orelse=[*orelse]) as branch:
            # if isinstance(state, optim.Optimizer): return state.target
            if not orelse and isinstance(body[-1], ast.Return):
                block = unit.block_of(branch)
                orelse = block[block.index(branch) + 1 :]
            return ([*body], [*orelse]) if asked is test else ([], [])
    return [], []


def _become_the_same(legacy: list[ast.AST], other: list[ast.AST]) -> bool:
    """Whether some code does to a legacy optimizer what other code does to a train state."""
    text = "\n".join(map(ast.unparse, legacy))
    for old, new in AS_TRAIN_STATE.items():
        text = re.sub(old, new, text)
    return bool(legacy) and text == "\n".join(map(ast.unparse, other))
