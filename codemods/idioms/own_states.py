"""Dataclasses that hold an optimizer beside other things: in today's Flax, subclasses of `TrainState`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codemods.edits import Argument, DeriveState, Edit, Replace, ReplaceStatement, RewriteCall
from codemods.evidence import CONFIG_LIKE, last_word
from codemods.flow.modules import Unit
from codemods.flow.objects import Class, Instance, Module, Thing
from codemods.idioms import Unproven
from codemods.idioms.counters import Counters
from codemods.idioms.leftovers import Leftovers
from codemods.idioms.order import Edits
from codemods.idioms.quiet import acts
from codemods.optimizers.base import RATE
from codemods.origins import Variable, block_of, statement_of
from codemods.rules.model_apply import apply_function
from codemods.rules.params import needs_any_params
from codemods.uses import Use

if TYPE_CHECKING:
    from codemods.rules.context import Context

CODE = "FO214"
STRUCT = ("flax.struct.dataclass",)
STEP = "step"
TAKEN = ("params", "tx", "opt_state", "apply_fn", "create", "apply_gradients")
"""What a `TrainState` has beside its step."""

INNER = ("optimizer.target", "optimizer.apply_gradient", "state.step", "optimizer.state", "optimizer.replace")
"""The uses of an optimizer that a state of its own answers to itself."""


@dataclass
class OwnState:
    """What becomes of a dataclass with an optimizer: other edits for the uses of the optimizer, and edits elsewhere."""

    things: tuple[Thing, ...]
    outcomes: dict[ast.AST, Edit | None] = field(default_factory=dict)
    edits: Edits = field(default_factory=Edits)


class OwnStates:
    """The dataclasses of a project that become subclasses of `TrainState`; for those that do not, the reason."""

    def __init__(self, context: Context) -> None:
        self.found: dict[Class, OwnState | str] = {}
        if context.options.partial or not context.options.selects(CODE):
            return
        for cls in context.facts.flow.reading.classes:
            attempt = _Attempt(context, cls)
            if len(attempt.fields) == 1:
                try:
                    self.found[cls] = attempt.state()
                except Unproven as why:
                    self.found[cls] = str(why)

    @property
    def states(self) -> list[OwnState]:
        return [state for state in self.found.values() if isinstance(state, OwnState)]

    def concerns(self, node: ast.AST) -> bool:
        """Whether the use of an optimizer at a node is one of such a state."""
        return any(node in state.outcomes for state in self.states)

    def outcome(self, node: ast.AST) -> Edit | None:
        """What becomes of such a use; None if that is done elsewhere."""
        return next(state.outcomes[node] for state in self.states if node in state.outcomes)

    def reason(self, use: Use) -> str:
        """Why the dataclass around an annotation stays as it is; empty if it does not."""
        around = [outer for outer in use.unit.ancestors(use.node) if isinstance(outer, ast.ClassDef)]
        return next((why for cls, why in self.found.items() if isinstance(why, str) and cls.node in around), "")

    def edit(self, use: Use) -> Edit:
        """What changes at one of `uses`."""
        return next(state.edits[use.node][1] for state in self.states if use.node in state.edits)

    def uses(self) -> list[Use]:
        """What changes beside the legacy constructs."""
        return [
            Use("own_state", "", unit, node, state.things)  # type: ignore[arg-type]
            for state in self.states
            for node, (unit, _) in state.edits.items()
        ]


class _Attempt:
    """The proof for one class; whatever cannot be shown raises `Unproven`."""

    def __init__(self, context: Context, cls: Class) -> None:
        self.context = context
        self.facts = context.facts
        self.origins = context.origins
        self.cls = cls
        self.fields = [
            name for name in self.facts.flow.fields_in_order(cls) if self._optimizers(name) and not self._others(name)
        ]

    def _optimizers(self, name: str) -> list[Thing]:
        items = self.facts.flow.solver.at(self.facts.flow.field(self.cls, name))
        return [item for item in items if isinstance(item, Thing) and item.kind == "optimizer"]

    def _others(self, name: str) -> bool:
        items = self.facts.flow.solver.at(self.facts.flow.field(self.cls, name))
        return any(isinstance(item, Thing) and item.kind != "optimizer" for item in items)

    def state(self) -> OwnState:
        self._check_class()
        [self.name] = self.fields
        self.things = tuple(self._optimizers(self.name))
        self.result = OwnState(self.things)
        gone = self.context.schedules.gone(self.things) | self.context.clippings.gone(self.things)
        self.leftovers = Leftovers(self.facts, self.origins, self.result.edits, (), gone)
        self.stepped: dict[ast.expr, Use] = {}
        self.created: dict[ast.expr, Use] = {}
        self._classify()
        made = 0
        for unit, call in self.facts.flow.reading.calls:
            if self.cls in self.facts.objects(call.func):
                self._make(unit, call)
                made += 1
            elif (base := self._replaced(call)) is not None:
                self._replace(unit, call, base)
        if not made:
            raise Unproven("the place that makes one is not in view")
        if self.created or self.stepped:
            left = next(iter((*self.created.values(), *self.stepped.values())))
            raise Unproven(f"its optimizer goes elsewhere at {left.unit.place(left.node.lineno)}")
        self._change_class()
        units = {unit for unit, _ in self.result.edits.values()} | {thing.unit for thing in self.things}
        if not units.isdisjoint(self.context.plain):
            raise Unproven("the file could not be rewritten in this form")
        return self.result

    # The class

    def _check_class(self) -> None:
        node = self.cls.node
        decorated = [name for one in node.decorator_list for name in self.facts.externals(one)]
        full = [self.facts.full_name(one) for one in node.decorator_list]
        if len(node.decorator_list) != 1 or not ({*decorated, *full} & {*STRUCT}) or node.bases or node.keywords:
            raise Unproven("it is no plain `flax.struct.dataclass`")
        if self.cls.scope.names & {*TAKEN}:
            raise Unproven("it has a field or method that a `TrainState` has, too")
        if any(isinstance(one, ast.FunctionDef) and self._mentions_field(one) for one in node.body):
            raise Unproven("its own methods use the optimizer")
        self.counts = STEP in self.facts.flow.fields_in_order(self.cls)
        if self.counts and Counters(self.facts, self.origins).ahead(self.cls, STEP, self.fields[0]) != 0:
            raise Unproven("its step does not begin at 0")
        for heir in self.facts.flow.reading.classes:
            if heir is not self.cls and self.cls in self.facts.flow.ancestry(heir):
                raise Unproven("another class derives from it")

    def _mentions_field(self, method: ast.FunctionDef) -> bool:
        return any(isinstance(inner, ast.Attribute) and inner.attr == self.fields[0] for inner in ast.walk(method))

    def _change_class(self) -> None:
        unit = self.cls.unit
        dropped = (self.name, STEP) if self.counts else (self.name,)
        self.result.edits.put(self.cls.node, unit, DeriveState(unit.span(self.cls.node), dropped))

    # The uses of the optimizer

    def _classify(self) -> None:
        """Decide on each use of the optimizer, by where it gets it from."""
        group = {*self.things}
        self._refuse_unknown(group)
        known: set[ast.AST] = set()
        for use in self.facts.uses:
            if use.kind == "definition.create":
                self._note_created(use, group)
            if not group & {*use.things} and not self._is_state_of(use, group):
                continue
            if use.kind == "annotation":
                continue
            if use.kind not in INNER or not isinstance(use.node, ast.Attribute):
                raise Unproven(f"its optimizer is used by itself at {use.unit.place(use.node.lineno)}")
            known.add(self._decide(use))
        for unit, node in self.facts.flow.reading.attributes:
            if node.attr == self.name and isinstance(node.ctx, ast.Load) and self._is_one(node.value):
                parent = unit.parents.get(node)
                alias = isinstance(parent, ast.Assign) and parent.value is node
                if node not in known and not alias:
                    raise Unproven(f"its optimizer is handed on at {unit.place(node.lineno)}")

    def _refuse_unknown(self, group: set[Thing]) -> None:
        """Whoever says the field's name has to be known to speak of such a state, or of something else."""
        together = {self.facts.groups[thing] for thing in group if thing in self.facts.groups}
        for thing, whole in self.facts.groups.items():
            if thing.kind == "optimizer" and whole in together and thing not in group:
                where = thing.unit.place(getattr(thing.node, "lineno", 1))
                raise Unproven(f"what its optimizer meets at {where} is no part of it")
        for unit, node in self.facts.flow.reading.attributes:
            if node.attr == self.name and isinstance(node.ctx, ast.Load) and not self._is_told(node.value):
                raise Unproven(f"nothing tells of which class the object is at {unit.place(node.lineno)}")
        for unit, call in self.facts.flow.reading.calls:
            names = {word.arg for word in call.keywords}
            is_replace = isinstance(call.func, ast.Attribute) and call.func.attr == "replace" and self.name in names
            if is_replace and isinstance(call.func, ast.Attribute) and not self._is_told(call.func.value):
                raise Unproven(f"nothing tells of which class the object is at {unit.place(call.lineno)}")

    def _is_told(self, node: ast.expr) -> bool:
        """Whether it is known what an object is; one that is called like a configuration holds words and numbers."""
        known = any(isinstance(item, Instance | Module | Thing) for item in self.facts.objects(node))
        return known or bool(self.facts.full_name(node)) or CONFIG_LIKE.search(last_word(node)) is not None

    def _is_state_of(self, use: Use, group: set[Thing]) -> bool:
        """Whether a use of a state is one of an optimizer's in question."""
        if use.kind != "state.step" or not isinstance(use.node, ast.Attribute):
            return False
        inner = use.node.value
        if isinstance(inner, ast.Subscript):
            inner = inner.value
        return isinstance(inner, ast.Attribute) and bool(group & {*self.facts.things(inner.value, "optimizer")})

    def _is_one(self, node: ast.expr) -> bool:
        return any(isinstance(item, Instance) and item.cls is self.cls for item in self.facts.objects(node))

    def _holder(self, receiver: ast.expr) -> ast.Attribute | None:
        """`state.optimizer`, where an expression is that, or a local variable for it."""
        node = self.origins.expanded(receiver)
        held = isinstance(node, ast.Attribute) and node.attr == self.name and self._is_one(node.value)
        return node if held and isinstance(node, ast.Attribute) else None

    def _decide(self, use: Use) -> ast.AST:
        """Note what becomes of a use; the expression for the optimizer that it is about."""
        assert isinstance(use.node, ast.Attribute)
        receiver = use.node.value
        if use.kind == "state.step":
            inner = receiver.value if isinstance(receiver, ast.Subscript) else receiver
            receiver = inner.value if isinstance(inner, ast.Attribute) else inner
        holder = self._holder(receiver)
        where = use.unit.place(use.node.lineno)
        if holder is None or not self._is_unchanged(holder, receiver):
            raise Unproven(f"its optimizer is used by itself at {where}")
        base = (("base", use.unit.span(holder.value)),)
        outcomes = self.result.outcomes
        if use.kind == "optimizer.target":
            outcomes[use.node] = Replace(use.unit.span(use.node), "{base}.params", base)
        elif use.kind == "state.step":
            outcomes[use.node] = Replace(use.unit.span(use.node), "{base}.step", base)
        elif use.kind == "optimizer.state":
            outcomes[use.node] = None
        else:
            call = self.context.call_of(use)
            if call is None:
                raise Unproven(f"its optimizer is used by itself at {where}")
            self.stepped[call] = use
            outcomes[use.node] = None
        if isinstance(receiver, ast.Name):
            self._drop_alias(receiver)
        return holder

    def _is_unchanged(self, holder: ast.Attribute, receiver: ast.expr) -> bool:
        path = self.origins.path(holder.value)
        return holder is receiver or (path is not None and self.origins.unchanged(path.root, holder, receiver))

    def _drop_alias(self, name: ast.Name) -> None:
        """Take `optimizer = state.optimizer` away."""
        variable = self.origins.variable(name)
        setting = self.origins.setting(variable) if variable is not None else None
        if variable is None or setting is None or len(block_of(variable.unit, setting)) < 2:
            raise Unproven("a variable for its optimizer cannot be taken away")
        for load in self.origins.loads(variable):
            if not isinstance(variable.unit.parents.get(load), ast.Attribute):
                raise Unproven(f"its optimizer is handed on at {variable.unit.place(load.lineno)}")
        self.result.edits[setting] = (variable.unit, ReplaceStatement(variable.unit.span(setting), ()))

    def _note_created(self, use: Use, group: set[Thing]) -> None:
        call = self.context.call_of(use)
        outer = use.unit.parents.get(use.node)
        whole = call if call is not None else outer
        if not isinstance(whole, ast.expr) or not group & {*self.facts.things(whole, "optimizer")}:
            return
        if call is None or len(call.args) + len(call.keywords) != 1:
            raise Unproven(f"its optimizer is not made plainly at {use.unit.place(use.node.lineno)}")
        if any(needs_any_params(self.facts, thing) for thing in self.facts.things(call, "optimizer")):
            raise Unproven("its parameters are an array or a dataclass")
        self.created[call] = use

    # Where a state is made

    def _make(self, unit: Unit, call: ast.Call) -> None:
        """`State(step=0, optimizer=definition.create(params), …)` becomes `State.create(…)`."""
        where = unit.place(call.lineno)
        if any(isinstance(one, ast.Starred) for one in call.args) or any(word.arg is None for word in call.keywords):
            raise Unproven(f"its fields are unpacked at {where}")
        names = self.facts.flow.fields_in_order(self.cls)
        values = [*call.args, *(word.value for word in call.keywords)]
        given = dict(zip(names, call.args, strict=False)) | {str(word.arg): word.value for word in call.keywords}
        if self.name not in given:
            raise Unproven(f"it has no optimizer at {where}")
        makers = self._makers(given[self.name], where)
        params = {
            ast.unparse(value) for maker in makers for value in (*maker.args, *(word.value for word in maker.keywords))
        }
        if len(params) != 1:
            raise Unproven(f"its optimizers are made for different parameters before {where}")
        holes: list[tuple[str, tuple[int, int, int, int]]] = []
        transformation = self._transformation(given[self.name], makers, unit, holes)
        value = makers[0].args[0] if makers[0].args else makers[0].keywords[0].value
        apply_fn = apply_function(makers[0], value, unit, self.facts)
        holes += [("callee", unit.span(call.func)), ("params", unit.span(value))]
        kept = [
            Argument(name, index=values.index(node)) for name, node in given.items() if name not in (self.name, STEP)
        ]
        arguments = (
            Argument("apply_fn", template=apply_fn),
            Argument("params", template="{params}"),
            Argument("tx", template=transformation),
            *kept,
        )
        edit = RewriteCall(unit.span(call), "{callee}.create", arguments, tuple(holes))
        self.result.edits.put(call, unit, edit)
        self.result.outcomes.update(dict.fromkeys((self.created.pop(maker).node for maker in makers), edit))

    def _makers(self, value: ast.expr, where: str) -> list[ast.Call]:
        """The calls of `create` that may have given a value."""
        found: list[ast.expr | None] = [value]
        if isinstance(value, ast.Name):
            variable = self.origins.variable(value)
            found = [] if variable is None else self.origins.values(variable)
            if variable is None or self.origins.loads(variable) != [value]:
                raise Unproven(f"its optimizer is used by itself before {where}")
        calls = [one for one in found if isinstance(one, ast.Call) and one in self.created]
        if not calls or len(calls) != len(found):
            raise Unproven(f"its optimizer is not made plainly before {where}")
        return calls

    def _transformation(
        self, value: ast.expr, makers: list[ast.Call], unit: Unit, holes: list[tuple[str, tuple[int, int, int, int]]]
    ) -> str:
        """What the state is given as its transformation, and the edits of the statements that made the optimizer."""
        definitions = [maker.func.value for maker in makers if isinstance(maker.func, ast.Attribute)]
        if not isinstance(value, ast.Name):
            holes.append(("tx", unit.span(definitions[0])))
            return "{tx}"
        statements = [statement_of(unit, maker) for maker in makers]
        only = definitions[0]
        variable = self.origins.variable(value)
        assert variable is not None
        stores = [store for store in self.origins.stores(variable) if isinstance(store, ast.Name)]
        deleted = [store for store in stores if isinstance(store.ctx, ast.Del)]
        alone = len(makers) == 1 and not deleted and len(block_of(unit, statements[0])) > 1
        if alone and isinstance(only, ast.Name):
            self.result.edits[statements[0]] = (unit, ReplaceStatement(unit.span(statements[0]), ()))
            return only.id
        name = self._free_name(variable, "tx", value.id)
        for maker, definition in zip(makers, definitions, strict=True):
            self.result.edits[maker] = (unit, Replace(unit.span(maker), "{tx}", (("tx", unit.span(definition)),)))
        for store in stores if name != value.id else ():
            self.result.edits[store] = (unit, Replace(unit.span(store), name))
        return name

    def _free_name(self, variable: Variable, wanted: str, otherwise: str) -> str:
        within = ast.walk(variable.scope.node)
        taken = any(
            (isinstance(node, ast.Name) and node.id == wanted) or (isinstance(node, ast.arg) and node.arg == wanted)
            for node in within
        )
        return otherwise if taken else wanted

    # Where it changes

    def _replaced(self, call: ast.Call) -> ast.expr | None:
        match call:
            case ast.Call(func=ast.Attribute(attr="replace", value=base)) if self._is_one(base):
                return base
        return None

    def _replace(self, unit: Unit, call: ast.Call, base: ast.expr) -> None:
        """`state.replace(optimizer=stepped, …)` becomes `state.apply_gradients(grads=…, …)`."""
        where = unit.place(call.lineno)
        given = {str(word.arg): index for index, word in enumerate(call.keywords, len(call.args))}
        if call.args or any(word.arg is None for word in call.keywords):
            raise Unproven(f"its fields are unpacked at {where}")
        if self.name not in given:
            if STEP in given and self.counts:
                raise Unproven(f"its step changes by itself at {where}")
            return
        word = call.keywords[given[self.name]]
        value = self.origins.expanded(word.value)
        use = self.stepped.pop(value, None)
        if use is None or not isinstance(value, ast.Call):
            raise Unproven(f"its optimizer comes from elsewhere at {where}")
        if isinstance(word.value, ast.Name):
            self._drop_result(word.value, unit, where)
        holder = self._holder(value.func.value) if isinstance(value.func, ast.Attribute) else None
        path = self.origins.path(base)
        if holder is None or path is None or self.origins.path(holder.value) != path:
            raise Unproven(f"its optimizer comes from another state at {where}")
        if not self.origins.unchanged(path.root, value, call):
            raise Unproven(f"its optimizer comes from another state at {where}")
        kept = tuple(
            Argument(name, index=index) for name, index in given.items() if name != self.name and not self._counts(name)
        )
        if self._counts(STEP) and STEP in given:
            self.leftovers.clear(call.keywords[given[STEP]].value)
        edit = self._stepping(unit, call, base, value, use, kept)
        self.result.edits.put(call, unit, edit)
        self.result.outcomes[use.node] = edit

    def _counts(self, name: str) -> bool:
        return self.counts and name == STEP

    def _drop_result(self, name: ast.Name, unit: Unit, where: str) -> None:
        """Take `new_optimizer = …` away, which only the new state was to have."""
        variable = self.origins.variable(name)
        setting = self.origins.setting(variable) if variable is not None else None
        if variable is None or setting is None or self.origins.loads(variable) != [name]:
            raise Unproven(f"its new optimizer is used by itself before {where}")
        self.result.edits[setting] = (unit, ReplaceStatement(unit.span(setting), ()))

    def _stepping(
        self,
        unit: Unit,
        call: ast.Call,
        base: ast.expr,
        value: ast.Call,
        use: Use,
        kept: tuple[Argument, ...],
    ) -> Edit:
        where = unit.place(value.lineno)
        holes = [("base", unit.span(base))]
        if use.kind == "optimizer.replace":
            if [word.arg for word in value.keywords] != ["target"] or value.args:
                raise Unproven(f"its optimizer's state is exchanged at {where}")
            holes.append(("params", unit.span(value.keywords[0].value)))
            return RewriteCall(
                unit.span(call), "{base}.replace", (Argument("params", template="{params}"), *kept), tuple(holes)
            )
        gradients = self.context.gradients(use)
        if gradients is None or self.context.axes(use.things) or not self._may_wait(gradients, value, call):
            raise Unproven(f"the gradients at {where} would be others where the state changes")
        others = (word.value for word in call.keywords if word.value is not value)
        if acts(gradients) and any(acts(other) for other in others):
            raise Unproven(f"the order of what {where} computes matters")
        holes.append(("grads", unit.span(gradients)))
        function, prelude = "{base}.apply_gradients", ""
        override = self.context.override(use)
        if override is not None:
            if override.arg != RATE or not self._may_wait(override.value, value, call):
                raise Unproven(f"the learning rate at {where} would be another where the state changes")
            holes.append(("rate", unit.span(override.value)))
            state = "{optax}.tree_utils.tree_set({base}.opt_state, learning_rate={rate})"
            if isinstance(unit.parents.get(call), ast.Assign) and self._is_free("opt_state", call):
                prelude, state = f"opt_state = {state}", "opt_state"
            function = f"{{base}}.replace(opt_state={state}).apply_gradients"
        grads = Argument("grads", template="{grads}")
        return RewriteCall(unit.span(call), function, (grads, *kept), tuple(holes), prelude=prelude)

    def _is_free(self, name: str, node: ast.expr) -> bool:
        scope = self.facts.scope(node)
        return scope.binding(name) is None and isinstance(scope.node, ast.FunctionDef)

    def _may_wait(self, node: ast.expr, first: ast.Call, second: ast.Call) -> bool:
        """Whether an expression has the same value at a later call, or at one around the first."""
        path = self.origins.path(node)
        if isinstance(node, ast.Constant) or first in ast.walk(second):
            return True
        return path is not None and self.origins.unchanged(path.root, first, second)
