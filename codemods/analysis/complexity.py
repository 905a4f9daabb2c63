"""Whether the params of an optimizer are made of complex numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import Unnamed
from codemods.analysis.naming import last_word
from codemods.analysis.uses import Use
from codemods.dataflow.program import functions_in
from codemods.inference.binding import values_of
from codemods.inference.objects import (
    Class,
    External,
    Instance,
    LegacyObject,
    Made,
    Object,
)
from codemods.inference.reading import FunctionNode
from codemods.model import Location
from codemods.optimizers import optimizers
from codemods.sources.modules import Unit, file_of
from codemods.sources.parsing import parse

NUMERIC = ("jax.", "numpy.")
TYPES = ("complex", "complex64", "complex128")
TYPE = re.compile(r"\bcomplex(?:64|128)?\b")
IMAGINARY = re.compile(r"\d\.?[jJ]\b")

INITIALIZING = ("init", "init_by_shape", "init_with_output", "initialized", "lazy_init")
"""Methods of models: their parameters are as the model says, whatever it is applied to."""


class ComplexNumbers:
    """Finds the optimizers that get complex params, so that the step of optax differs."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._found: dict[ast.expr, Location | None] = {}
        self._real: set[object] = set()
        """What is known to be made of no complex numbers."""

    def uses(self) -> Iterator[Use]:
        """The definitions of such optimizers.

        The cause of each is where what it gets is made of complex numbers.
        """
        known = optimizers().items()
        of_reals = {Unnamed.RUN_TIME, *(name for name, one in known if one.of_reals)}
        for obj, group in self.facts.groups.items():
            if obj.kind != "definition" or obj.made_by not in of_reals:
                continue
            # a file of its program has a word for complex numbers
            is_named = not self._naming.isdisjoint(self.facts.together(obj.unit))
            if is_named and isinstance(obj.node, ast.expr):
                given = self._given(self.facts.members[group])
                made = next(filter(None, map(self._complex_in, given)), None)
                if made:
                    yield Use("complex", "", obj.unit, obj.node, (obj,), cause=made)

    @cached_property
    def _naming(self) -> set[str]:
        """The files that have a word for complex numbers."""
        texts = {unit.path: unit.code for unit in self.facts.project.read}
        texts.update(self.facts.others)
        return {
            path
            for path, text in texts.items()
            if ("complex" in text and TYPE.search(text)) or IMAGINARY.search(text)
        }

    @staticmethod
    def _given(objects: Iterable[LegacyObject]) -> Iterator[ast.expr]:
        """The params that optimizers are created for."""
        for obj in objects:
            # definition.create(params), definition.init_state(params)
            if obj.kind in ("optimizer", "state") and isinstance(obj.node, ast.Call):
                yield from obj.node.args[:1]
                words = obj.node.keywords
                yield from (word.value for word in words if word.arg == "target")

    def _complex_in(self, params: ast.expr) -> Location | None:
        """Where something of which params are made is complex."""
        if params not in self._found:
            making = Making(self.facts, self._real)
            self._found[params] = next(making.followed(params), None)
            if self._found[params] is None:
                self._real |= making.seen
        return self._found[params]


class Making:
    """Follows a value backwards: what is it made of?"""

    def __init__(self, facts: Facts, known: Collection[object]) -> None:
        """What is `known` is not followed."""
        self.facts = facts
        self.engine = facts.flow.engine
        self.seen = {*known}
        self._pending: list[ast.AST] = []

    def followed(self, node: ast.expr) -> Iterator[Location]:
        """The complex numbers and types among what a value is made of."""
        self._reach(node)
        while self._pending:
            reached = self._pending.pop()
            if isinstance(reached, ast.ClassDef):
                self._read_model(reached)
            else:
                yield from self._read(reached)

    def _reach(self, *nodes: ast.AST | None) -> None:
        new = [one for one in nodes if one is not None and one not in self.seen]
        self.seen.update(new)
        self._pending += new

    def _read(self, node: ast.AST) -> Iterator[Location]:
        if isinstance(node, ast.expr) and node in self.engine.scopes:
            unit = self.facts.scope(node).unit
            if self._is_complex(node, unit):
                yield unit.location(node.lineno)
        match node:
            case ast.Name():
                self._reach_bound(node)
                yield from self._reach_objects(node)
            case ast.Attribute(value=owner, attr=name):
                self._reach(owner)
                self._reach_stored(node, owner, name)
                yield from self._reach_objects(node)
            # model.init(rng, image)
            case ast.Call(func=ast.Attribute(value=model, attr=name)) if (
                name in INITIALIZING and not self.facts.functions(node.func)
            ):
                self._reach(model)
            case ast.Call(func=callee) as call:
                # what a function of the project is given counts where it is read there
                self._reach(callee)
                if not any(functions_in(self.facts.objects(callee))):
                    self._reach(*values_of(call))
            case ast.Lambda(body=body):
                self._reach(body)
            case _:
                self._reach(*ast.iter_child_nodes(node))

    def _reach_stored(self, node: ast.Attribute, owner: ast.expr, name: str) -> None:
        """Go on with what an attribute is set to in its file, and with the default of a field."""
        scope = self.engine.scopes.get(node)
        for store in self.engine.index.stores.get(name, ()):
            if scope is not None and store.binding.scope.unit is scope.unit:
                self._reach(store.binding.source)
        for cls in map(_class_of, self.facts.objects(owner)):
            for statement in cls.body if cls else ():
                match statement:
                    # dtype: Any = jnp.complex64
                    case ast.AnnAssign(target=ast.Name(id=word)) if word == name:
                        self._reach(statement.value)

    def _reach_bound(self, name: ast.Name) -> None:
        """Go on with what a variable is set to, and with what calls give to a parameter."""
        scope = self.engine.scopes.get(name)
        bound = None if scope is None else scope.binding(name.id)
        if bound is None:
            return
        for binding in self.engine.bindings_of(bound, name.id):
            self._reach(binding.source)
            if isinstance(binding.node, ast.arg):
                function = self.engine.function_with(binding.node)
                places = self.facts.flow.given(function, binding.node)
                # def initial(*sizes, **types)
                several = (function.node.args.vararg, function.node.args.kwarg)
                if binding.node in several:
                    for site, _ in self.facts.flow.entered[function.node]:
                        places += (*site.positional, *(one for _, one in site.keywords))
                for place in places:
                    self._reach(*_expressions(place))
        # params["dense"] = kernel
        for read in self.engine.index.reads.get((bound, name.id), ()):
            owner = bound.unit.parents.get(read)
            if isinstance(owner, ast.Subscript):
                for store in self.engine.index.item_stores_of.get(owner, ()):
                    self._reach(store.binding.source)

    def _reach_objects(self, node: ast.expr) -> Iterator[Location]:
        """Go on with what functions return, and with how models make their params."""
        for item in self.facts.objects(node):
            for function in functions_in([item]):
                self._reach(*_returned(function.node))
            self._reach(_class_of(item))
            if isinstance(item, External) and (file := file_of(item.name)) is not None:
                yield from _made_out_of_view(file, self.facts.others.get(file, ""))

    def _read_model(self, cls: ast.ClassDef) -> None:
        """Go on with what the params of a model are made of."""
        self._reach(*cls.bases)
        for node in ast.walk(cls):
            match node:
                # self.param("kernel", init, (3, 3), jnp.complex64)
                # nn.Dense(features, param_dtype=self.dtype), Wave(self.dtype)
                case ast.Call(func=ast.Name() | ast.Attribute() as callee) if (
                    name := last_word(callee)
                ) == "param" or name[:1].isupper():
                    self._reach(*values_of(node))
                    self._reach(*map(_class_of, self.facts.objects(callee)))

    def _is_complex(self, node: ast.expr, unit: Unit) -> bool:
        match node:
            # 1j
            case ast.Constant(value=complex()):
                return True
            # dtype="complex64"
            case ast.Constant(value=str() as text):
                return text in TYPES[1:]
            # dtype=complex
            case ast.Name(id="complex", ctx=ast.Load()):
                # isinstance(x, complex)
                call = unit.parents.get(node)
                while isinstance(call, ast.Tuple):
                    call = unit.parents.get(call)
                is_checked = isinstance(call, ast.Call) and (
                    last_word(call.func) == "isinstance"
                )
                externals = self.facts.externals(node)
                return not is_checked and "builtins.complex" in externals
            # jnp.complex64
            case ast.Name() | ast.Attribute() if last_word(node).startswith("complex"):
                return self.facts.full_name(node).startswith(NUMERIC)
        return False


def _class_of(item: Object) -> ast.ClassDef | None:
    """The class that something is, or is an instance of, if it is one of the project."""
    cls = item.cls if isinstance(item, Instance | Made) else item
    return cls.node if isinstance(cls, Class) else None


def _expressions(place: object) -> Iterator[ast.expr]:
    """The expressions of which a place is a part or an element."""
    match place:
        case ast.expr():
            yield place
        case tuple():
            for part in place:
                yield from _expressions(part)


def _made_out_of_view(path: str, text: str) -> Iterator[Location]:
    """The complex numbers and types in a file that is not analysed."""
    try:
        tree = parse(text)
    except (SyntaxError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case (
                ast.Constant(value=complex() | "complex64" | "complex128")
                | ast.Attribute(attr="complex64" | "complex128")
                | ast.Name(id="complex" | "complex64" | "complex128")
            ):
                yield Location(path, node.lineno)


def _returned(function: FunctionNode) -> Iterator[ast.expr | None]:
    if isinstance(function, ast.Lambda):
        yield function.body
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Return | ast.Yield):
            yield node.value
