"""Of which numbers the params of an optimizer are made: they are traced backwards."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import ClassVar

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
from codemods.sources.relevance import COMMENT
from codemods.vocabulary import SHAPES_OF, words

NUMERIC = ("jax.", "numpy.")
SHORT = frozenset(("bfloat16", "float16"))
DTYPES = SHORT.union(words("float32 float64 int8 int16 int32 int64 uint8"))

INITIALIZING = ("init", "init_by_shape", "init_with_output", "initialized", "lazy_init")
"""Methods of models: their parameters are as the model says, whatever it is applied to."""


class ParamTypes:
    """Finds the optimizers whose params are made of numbers of some types.

    A file in which `named` finds nothing has none of these; `making` recognizes them.
    """

    named: ClassVar[re.Pattern[str]]
    making: ClassVar[type[Making]]

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._found: dict[ast.expr, Location | None] = {}
        self._others: set[object] = set()
        """What is known to be made of no such numbers."""

    def made_of_them(self, objects: Iterable[LegacyObject]) -> Location | None:
        """Where the params of some optimizers get such a type, if they may have it."""
        given = self._given(objects)
        return next(filter(None, map(self._type_in, given)), None)

    @cached_property
    def _naming(self) -> set[str]:
        """The files that have a word for such numbers."""
        texts = {unit.path: unit.code for unit in self.facts.project.read}
        texts.update(self.facts.others)
        found = {path: text for path, text in texts.items() if self.named.search(text)}
        # not in a comment
        return {
            path
            for path, text in found.items()
            if self.named.search(COMMENT.sub("", text))
        }

    def _given(self, objects: Iterable[LegacyObject]) -> Iterator[ast.expr]:
        """The params that optimizers are created for, in programs that have such numbers."""
        for obj in objects:
            if self._naming.isdisjoint(self.facts.together(obj.unit)):
                continue
            # definition.create(params), definition.init_state(params)
            is_made = obj.kind in ("optimizer", "state")
            if is_made and isinstance(obj.node, ast.Call):
                yield from obj.node.args[:1]
                by_name = obj.node.keywords
                yield from (word.value for word in by_name if word.arg == "target")

    def _type_in(self, params: ast.expr) -> Location | None:
        if params not in self._found:
            making = self.making(self.facts, self._others)
            self._found[params] = next(making.followed(params), None)
            if self._found[params] is None:
                self._others |= making.seen
        return self._found[params]


class Making(ABC):
    """Follows a value backwards: is it made of numbers of some types?"""

    def __init__(self, facts: Facts, known: Collection[object]) -> None:
        """What is `known` is not followed."""
        self.facts = facts
        self.engine = facts.flow.engine
        self.seen = {*known}
        self._pending: list[ast.AST] = []

    def followed(self, node: ast.expr) -> Iterator[Location]:
        """Where what a value is made of has such a type."""
        self._reach(node)
        while self._pending:
            reached = self._pending.pop()
            if isinstance(reached, ast.ClassDef):
                yield from self._read_model(reached)
            else:
                yield from self._read(reached)

    @abstractmethod
    def is_typed(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an expression shows such a type."""

    def made_out_of_view(self, path: str, text: str) -> Iterable[Location]:
        """Where a file that is not analysed has such a type."""
        return ()

    def arguments(self, call: ast.Call) -> list[ast.expr]:
        """The arguments of a function out of view of which its result is made."""
        return values_of(call)

    def parts(self, call: ast.Call) -> list[ast.expr]:
        """The parts of a call of which its result is made."""
        callee = call.func
        # what a function of the project is given counts where it is read there
        is_own = any(functions_in(self.facts.objects(callee)))
        return [callee] if is_own else [callee, *self.arguments(call)]

    def _reach(self, *nodes: ast.AST | None) -> None:
        new = [one for one in nodes if one is not None and one not in self.seen]
        self.seen.update(new)
        self._pending += new

    def _read(self, node: ast.AST) -> Iterator[Location]:
        if isinstance(node, ast.expr) and node in self.engine.scopes:
            yield from self._told(node)
        match node:
            case ast.Name():
                self._reach_bound(node)
                yield from self._reach_objects(node)
            # image.shape[-1], whatever the image is made of
            case ast.Attribute(attr="shape" | "ndim" | "size"):
                pass
            case ast.Attribute(value=owner, attr=name):
                self._reach(owner)
                self._reach_stored(node, owner, name)
                yield from self._reach_objects(node)
            # model.init(rng, image)
            case ast.Call(func=ast.Attribute(value=model, attr=name)) if (
                name in INITIALIZING and not self.facts.functions(node.func)
            ):
                self._reach(model)
            case ast.Call() as call:
                self._reach(*self.parts(call))
            case ast.Lambda(body=body):
                self._reach(body)
            case _:
                self._reach(*ast.iter_child_nodes(node))

    def _told(self, node: ast.expr) -> Iterator[Location]:
        unit = self.facts.scope(node).unit
        if self.is_typed(node, unit):
            yield unit.location(node.lineno)

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
                places = self.facts.flow.sources.given(function, binding.node)
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
                yield from self.made_out_of_view(file, self.facts.others.get(file, ""))

    def _read_model(self, cls: ast.ClassDef) -> Iterator[Location]:
        """Go on with what the params of a model are made of."""
        self._reach(*cls.bases)
        for node in ast.walk(cls):
            match node:
                # self.param("kernel", init, (3, 3), jnp.complex64)
                # nn.Dense(features, param_dtype=self.dtype), Wave(self.dtype)
                case ast.Call(func=ast.Name() | ast.Attribute() as callee) if (
                    name := last_word(callee)
                ) == "param" or name[:1].isupper():
                    yield from self._told(node)
                    self._reach(*self.arguments(node))
                    self._reach(*map(_class_of, self.facts.objects(callee)))


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


def _returned(function: FunctionNode) -> Iterator[ast.expr | None]:
    if isinstance(function, ast.Lambda):
        yield function.body
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Return | ast.Yield):
            yield node.value


# Complex numbers


class MakingComplex(Making):
    """Follows a value back to complex numbers, and to their types wherever these are."""

    def is_typed(self, node: ast.expr, unit: Unit) -> bool:
        match node:
            # 1j
            case ast.Constant(value=complex()):
                return True
            # dtype="complex64"
            case ast.Constant(value=str() as text):
                return text in ("complex64", "complex128")
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

    def made_out_of_view(self, path: str, text: str) -> Iterator[Location]:
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


class ComplexNumbers(ParamTypes):
    """Finds the optimizers that get complex params, so that the step of optax differs."""

    named = re.compile(r"(?<!\btf\.)\bcomplex(?:64|128)?\b|\d\.?[jJ]\b")
    making = MakingComplex

    def uses(self) -> Iterator[Use]:
        """The definitions of such optimizers.

        The cause of each is where what it gets is made of complex numbers.
        """
        known = optimizers().items()
        of_reals = {Unnamed.RUN_TIME, *(name for name, one in known if one.of_reals)}
        for obj, group in self.facts.groups.items():
            if obj.kind == "definition" and obj.made_by in of_reals:
                made = self.made_of_them(self.facts.members[group])
                if made and isinstance(obj.node, ast.expr):
                    yield Use("complex", "", obj.unit, obj.node, (obj,), cause=made)


# Numbers of 16 bits


class MakingShort(Making):
    """Follows a value back to where a part of it is given a type of 16 bits.

    What a model computes with is none: `nn.Dense(3, dtype=jnp.bfloat16)` has float32 params.
    """

    def is_typed(self, node: ast.expr, unit: Unit) -> bool:
        if not isinstance(node, ast.Call):
            return False
        types = [word.value for word in node.keywords if word.arg == "param_dtype"]
        # kernel.astype(jnp.bfloat16), jnp.bfloat16(kernel)
        if self._is_numeric(node):
            types += [node.func, *values_of(node)]
            # jnp.ones(3, **options)
            unpacked = (word.value for word in node.keywords if word.arg is None)
            for options in unpacked:
                place = ("item of", ("expression", options, None), "dtype")
                found = self.facts.flow.sources.of(place)
                types += (one for one in found if isinstance(one, ast.expr))
        return any(not self._types(one).isdisjoint(SHORT) for one in types)

    def arguments(self, call: ast.Call) -> list[ast.expr]:
        values = values_of(call)
        name = self.facts.full_name(call.func)
        # jax.eval_shape(model.init, rng, image)
        if name in SHAPES_OF:
            return values[:1]
        is_known = self._is_numeric(call) or name.startswith(("flax.", "functools."))
        return values if is_known else []

    def parts(self, call: ast.Call) -> list[ast.expr]:
        # kernel.astype(jnp.float32), whatever the kernel was
        is_given_type = any(map(self._types, values_of(call)))
        return [] if self._is_numeric(call) and is_given_type else super().parts(call)

    def _is_numeric(self, call: ast.Call) -> bool:
        """Whether a call makes numbers, of a type that may be an argument."""
        is_method = last_word(call.func) in ("astype", "view", "param")
        return is_method or self.facts.full_name(call.func).startswith(NUMERIC)

    def _types(self, node: ast.expr) -> set[str]:
        """The types of numbers that an expression may be."""
        match node:
            # dtype="bfloat16"
            case ast.Constant(value=str(text)):
                found = {text}
            case _:
                names = self.facts.names(node)
                numeric = (name for name in names if name.startswith(NUMERIC))
                found = {name.rpartition(".")[2] for name in numeric}
        return found & DTYPES


class LowPrecision(ParamTypes):
    """Finds the optimizers that get params of 16 bits, which a legacy step may make float32."""

    named = re.compile(r"float16\b")
    making = MakingShort
