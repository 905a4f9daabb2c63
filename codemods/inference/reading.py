"""What stands in a file: scopes, what binds each name, calls, stores. Nothing is answered here."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from codemods.inference.annotations import is_generic_type
from codemods.inference.objects import Class, Function, Key
from codemods.inference.scopes import SCOPES, Scope, open_scope
from codemods.sources.modules import Unit
from codemods.vocabulary import words

Step: TypeAlias = tuple[
    Literal["item", "each", "turn", "enter", "aenter", "attribute", "rest"],
    "int | str | None",
]
"""From a value to a part of it: an item, each element, what loops or `with` give, an attribute."""

MODULES = frozenset(
    words("import_module __import__ modules module_from_spec load_source globals")
)
"""What gives a module, by the names with which expressions end."""

REFLECTING = frozenset(("setattr", "globals", "vars", "locals", "exec"))
PLAIN = {
    *(ast.Constant, ast.keyword, ast.arg, ast.arguments, ast.alias),
    *(ast.Expr, ast.BinOp, ast.Tuple, ast.List),
}
"""Kinds of nodes that are in every file, and of which there is nothing to note."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, eq=False)
class Binding:
    """What sets a name, an attribute or an item.

    `source` is the value of which the steps lead to what is set. A parameter, an import, a class or
    a function has none: `node` is it. `alias` is that of an import.
    """

    node: ast.AST
    scope: Scope
    source: ast.expr | None = None
    steps: tuple[Step, ...] = ()
    alias: ast.alias | None = None


@dataclass(frozen=True, eq=False)
class AttributeStore:
    """`owner.name = …`, `setattr(owner, "name", …)`, `vars(owner)["name"] = …`."""

    target: ast.expr
    owner: ast.expr
    binding: Binding


@dataclass(frozen=True, eq=False)
class ItemStore:
    """`owner[key] = …`."""

    target: ast.Subscript
    binding: Binding


@dataclass(frozen=True, eq=False)
class Lookup:
    """`getattr(owner, key)`, `vars(owner)[key]`, where None stands for any key."""

    node: ast.expr
    owner: ast.expr
    key: str | None


def _lists() -> defaultdict[Any, list[Any]]:
    return defaultdict(list)


@dataclass
class Index:
    """What stands in the files of a project, by nodes or by the names with which these end."""

    bindings: dict[tuple[Scope, str], list[Binding]] = field(default_factory=_lists)
    functions: dict[ast.AST, Function] = field(default_factory=dict)
    classes: dict[ast.AST, Class] = field(default_factory=dict)
    returned: dict[ast.AST, list[ast.expr]] = field(default_factory=_lists)
    """What each function returns."""
    yielded: dict[ast.AST, list[ast.Yield | ast.YieldFrom]] = field(
        default_factory=_lists
    )
    stores: dict[str, list[AttributeStore]] = field(default_factory=_lists)
    called: dict[str, list[ast.Call]] = field(default_factory=_lists)
    """The calls, by the name of the callee."""
    heirs: dict[str, list[Class]] = field(default_factory=_lists)
    """The classes, by the names of their bases."""
    defined: dict[str, list[Function | Class]] = field(default_factory=_lists)
    imported: dict[str, list[Binding]] = field(default_factory=_lists)
    """What `from module import name` binds, by that name."""
    attributes_read: dict[str, list[tuple[ast.expr, ast.expr]]] = field(
        default_factory=_lists
    )
    """`owner.name`, `getattr(owner, "name")` and `vars(owner)["name"]`, each with the owner."""
    reads: dict[tuple[Scope, str], list[ast.Name]] = field(default_factory=_lists)
    item_stores_of: dict[ast.AST, list[ItemStore]] = field(default_factory=_lists)
    item_stores: list[ItemStore] = field(default_factory=list)
    stores_by_key: list[AttributeStore] = field(default_factory=list)
    """Where attributes are set by a name that is computed."""
    lookups: list[Lookup] = field(default_factory=list)
    raised: list[ast.expr] = field(default_factory=list)
    keywords: set[str | None] = field(default_factory=set)
    """The names by which calls give arguments."""
    reflects: bool = False
    """Whether variables or fields are got at by computed names."""


@dataclass
class Contents:
    """What stands in one file."""

    unit: Unit
    scope: Scope
    calls: list[ast.Call] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    attributes: list[ast.Attribute] = field(default_factory=list)
    stars: list[ast.ImportFrom] = field(default_factory=list)
    annotated: list[tuple[ast.expr, Scope, ast.AST]] = field(default_factory=list)
    """Annotations, with what they are of: an argument, a function or an `AnnAssign`."""


class Reader:
    """Reads a file, in one pass over its nodes."""

    def __init__(self, unit: Unit, scopes: dict[ast.AST, Scope], index: Index) -> None:
        self.unit = unit
        self.index = index
        self.scopes = scopes
        """The scope in which each node stands; that which a class opens, for the class."""
        self._opened: dict[ast.AST, Scope] = {}
        self.contents = Contents(unit=unit, scope=open_scope(unit, unit.tree, None))
        self._opened[unit.tree] = self.contents.scope
        self.stands: dict[ast.AST, Scope] = {unit.tree: self.contents.scope}
        for node in unit.nodes[1:]:
            self._enter(node)
        for node in unit.nodes[1:]:
            if type(node) not in PLAIN:
                self._note(node, self.stands[node])

    # Scopes

    def _enter(self, node: ast.AST) -> None:
        parent = self.unit.parents[node]
        scope = self._scope_within(parent, node)
        self.stands[node] = scope
        if isinstance(node, ast.expr):
            self.scopes[node] = scope
        if isinstance(node, SCOPES):
            self._opened[node] = inner = open_scope(self.unit, node, scope)
            if isinstance(node, ast.ClassDef):
                self.scopes[node] = inner
                cls = Class(self.unit, node, inner)
                self.contents.classes.append(cls)
                self.index.classes[node] = cls
            elif isinstance(node, FunctionNode):
                function = Function(self.unit, node, inner)
                self.contents.functions.append(function)
                self.index.functions[node] = function

    def _scope_within(self, parent: ast.AST, child: ast.AST) -> Scope:
        around = self.stands[parent]
        if parent not in self._opened:
            return around
        match parent:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                is_within = isinstance(child, ast.stmt)
            case ast.ClassDef():
                is_within = isinstance(child, ast.stmt)
            case ast.Lambda():
                is_within = child is parent.body
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                is_within = True
            case _:
                is_within = False
        return self._opened[parent] if is_within else around

    # What stands where

    def _note(self, node: ast.AST, scope: Scope) -> None:
        found, index = self.contents, self.index
        match node:
            # what there is most of comes first
            case ast.Name(id=name, ctx=ast.Load()):
                index.reads[scope.binding(name) or scope.module, name].append(node)
            case ast.Attribute():
                found.attributes.append(node)
                # self.__dict__.update(fields)
                if node.attr == "__dict__":
                    index.reflects = True
                if isinstance(node.ctx, ast.Load):
                    index.attributes_read[node.attr].append((node, node.value))
            case ast.Call():
                found.calls.append(node)
                index.called[last_name(node.func)].append(node)
                index.keywords.update(one.arg for one in node.keywords)
                if last_name(node.func) in REFLECTING:
                    index.reflects = True
                self._note_by_key(node, scope)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, Binding(node, scope, value))
                # Step = Callable[[optim.Optimizer], float]
                if is_generic_type(value):
                    found.annotated.append((value, scope, node))
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                found.annotated.append((annotation, scope, node))
                if value is not None:
                    self._bind(target, Binding(node, scope, value))
            case ast.AugAssign(target=target):
                self._bind(target, Binding(node, scope))
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, Binding(node, scope, value))
            case (
                ast.For(target=target, iter=source)
                | ast.AsyncFor(target=target, iter=source)
            ):
                self._bind(target, Binding(node, scope, source, (("turn", None),)))
            case ast.comprehension(target=target, iter=source):
                self._bind(target, Binding(node, scope, source, (("turn", None),)))
            case ast.withitem(context_expr=source, optional_vars=ast.expr() as target):
                word: Literal["enter", "aenter"] = "enter"
                if isinstance(self.unit.parents[node], ast.AsyncWith):
                    word = "aenter"
                self._bind(target, Binding(node, scope, source, ((word, None),)))
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    self._bind_name(bound, Binding(node, scope, alias=alias))
            case ast.ImportFrom(names=names):
                for alias in names:
                    binding = Binding(node, scope, alias=alias)
                    if alias.name == "*":
                        found.stars.append(node)
                    else:
                        index.imported[alias.name].append(binding)
                        self._bind_name(alias.asname or alias.name, binding)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._bind_name(node.name, Binding(node, scope))
                self._parameters(node, scope)
                index.defined[node.name].append(index.functions[node])
                if node.returns is not None:
                    found.annotated.append((node.returns, scope, node))
            case ast.Lambda():
                self._parameters(node, scope)
                index.returned[node].append(node.body)
            case ast.ClassDef():
                self._bind_name(node.name, Binding(node, scope))
                cls = index.classes[node]
                index.defined[node.name].append(cls)
                for base in node.bases:
                    index.heirs[last_name(base)].append(cls)
            case ast.Return(value=ast.expr() as value):
                index.returned[scope.node].append(value)
            case ast.Yield() | ast.YieldFrom():
                function = function_around(scope)
                if function is not None:
                    index.yielded[function].append(node)
            case ast.Raise(exc=ast.Call() as raised):
                index.raised.append(raised)
            case ast.Match():
                for case in node.cases:
                    self._pattern(case.pattern, Binding(node, scope, node.subject))
            case ast.ExceptHandler(name=str(name)):
                self._bind_name(name, Binding(node, scope))
            # globals()["optimizer"]
            case ast.Subscript(value=value, slice=key, ctx=ast.Load()):
                owner = namespace_owner(value)
                if owner is not None:
                    self._look_up(node, owner, key_of(key))
            case ast.Subscript(ctx=ast.Del()):
                self._bind(node, Binding(node, scope))

    def _note_by_key(self, call: ast.Call, scope: Scope) -> None:
        """Note which attributes a call reads or sets by a key."""
        match call:
            # getattr(state, "optimizer")
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, key, *_]):
                self._look_up(call, owner, key_of(key))
            # setattr(state, "optimizer", optimizer)
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, key, value]):
                self._store(call, owner, key_of(key), Binding(call, scope, value))
            # vars(state).items()
            case ast.Call(func=ast.Attribute(value=namespace, attr=method)):
                held = namespace_owner(namespace)
                if held is not None:
                    self._note_method(call, method, held, scope)

    def _note_method(
        self, call: ast.Call, method: str, owner: ast.expr, scope: Scope
    ) -> None:
        """Note what a method of the dict of something's attributes reads or sets."""
        has_key = method in ("get", "pop") and call.args
        self._look_up(call, owner, key_of(call.args[0]) if has_key else None)
        if method == "update":
            # globals().update(optimizer=optimizer)
            for word in call.keywords:
                steps: tuple[Step, ...] = () if word.arg else (("each", None),)
                binding = Binding(call, scope, word.value, steps)
                self._store(call, owner, word.arg, binding)
            for argument in call.args:
                binding = Binding(call, scope, argument, (("each", None),))
                self._store(call, owner, None, binding)

    def _look_up(self, node: ast.expr, owner: ast.expr, key: Key) -> None:
        name = key if isinstance(key, str) else None
        self.index.lookups.append(Lookup(node, owner, name))
        if name is not None:
            self.index.attributes_read[name].append((node, owner))

    def _store(
        self, target: ast.expr, owner: ast.expr, key: Key, binding: Binding
    ) -> None:
        store = AttributeStore(target, owner, binding)
        if isinstance(key, str):
            self.index.stores[key].append(store)
        else:
            self.index.stores_by_key.append(store)

    def _parameters(self, node: FunctionNode, scope: Scope) -> None:
        declared = node.args
        inner = self._opened[node]
        named = (*declared.posonlyargs, *declared.args, *declared.kwonlyargs)
        extra = (one for one in (declared.vararg, declared.kwarg) if one is not None)
        for argument in (*named, *extra):
            self.index.bindings[inner, argument.arg].append(Binding(argument, inner))
            if argument.annotation is not None:
                self.contents.annotated.append((argument.annotation, scope, argument))

    def _bind_name(self, name: str, binding: Binding) -> None:
        owner = binding.scope.binding(name) or binding.scope
        self.index.bindings[owner, name].append(binding)

    def _bind(self, target: ast.expr, binding: Binding) -> None:
        match target:
            case ast.Name(id=name):
                # in [(last := x) for x in xs], and `for x in xs` within it
                scope = self.stands[target]
                owner = scope.binding(name) or scope
                self.index.bindings[owner, name].append(binding)
            case ast.Starred(value=value):
                self._bind(value, self._step(binding, "rest", None))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                is_exact = True
                for at, element in enumerate(elements):
                    # first, *rest, last = values: from the star on, any element may come
                    if isinstance(element, ast.Starred):
                        is_exact = False
                        self._bind(element, binding)
                        continue
                    key = at if is_exact else None
                    self._bind(element, self._step(binding, "item", key))
            case ast.Attribute(value=owner, attr=name):
                self._store(target, owner, name, binding)
            case ast.Subscript(value=value, slice=key):
                namespace = namespace_owner(value)
                if namespace is not None:
                    self._store(target, namespace, key_of(key), binding)
                stored = ItemStore(target, binding)
                self.index.item_stores.append(stored)
                self.index.item_stores_of[target].append(stored)

    @staticmethod
    def _step(
        binding: Binding,
        word: Literal["item", "attribute", "rest"],
        key: int | str | None,
    ) -> Binding:
        steps = (*binding.steps, (word, key))
        return Binding(binding.node, binding.scope, binding.source, steps)

    def _pattern(self, pattern: ast.pattern, binding: Binding) -> None:
        """Bind the names in a pattern to the parts of the value."""
        match pattern:
            case ast.MatchAs(pattern=inner, name=name):
                if name is not None:
                    self._bind_name(name, binding)
                if inner is not None:
                    self._pattern(inner, binding)
            case ast.MatchOr(patterns=patterns):
                for choice in patterns:
                    self._pattern(choice, binding)
            # case [first, *rest]:
            case ast.MatchSequence(patterns=patterns):
                for part in patterns:
                    if isinstance(part, ast.MatchStar):
                        if part.name is not None:
                            self._bind_name(
                                part.name, self._step(binding, "rest", None)
                            )
                    else:
                        self._pattern(part, self._step(binding, "item", None))
            # case {"optimizer": optimizer, **rest}:
            case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
                for key, part in zip(keys, patterns, strict=True):
                    self._pattern(part, self._step(binding, "item", key_of(key)))
                if rest is not None:
                    self._bind_name(rest, binding)
            # case TrainState(step, optimizer=optimizer):
            case ast.MatchClass(patterns=patterns, kwd_attrs=names, kwd_patterns=named):
                for index, part in enumerate(patterns):
                    self._pattern(part, self._step(binding, "item", index))
                for name, part in zip(names, named, strict=True):
                    self._pattern(part, self._step(binding, "attribute", name))


def function_around(scope: Scope) -> FunctionNode | None:
    """The function or lambda that a scope is, or is in."""
    around: Scope | None = scope
    while around is not None:
        if isinstance(around.node, FunctionNode):
            return around.node
        around = around.parent
    return None


def last_name(node: ast.expr) -> str:
    """The name that an expression ends with, behind whatever is done with what it names."""
    while True:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
            case (
                ast.Subscript(value=inner)
                | ast.Call(func=inner)
                | ast.Await(value=inner)
            ):
                node = inner
            case _:
                return ""


def namespace_owner(node: ast.expr) -> ast.expr | None:
    """What has the variables or fields of which an expression is the dict: `x` of `vars(x)`.

    `globals()` stands for the module itself.
    """
    match node:
        case (
            ast.Attribute(value=owner, attr="__dict__")
            | ast.Call(func=ast.Name(id="vars"), args=[owner])
        ):
            return owner
        case ast.Call(func=ast.Name(id="globals")):
            return node
    return None


def key_of(node: ast.expr) -> int | str | None:
    """The literal index or key that a subscript has; None for any other."""
    # values[-1] is not followed: lengths are not known
    match node:
        case ast.Constant(value=int() | str() as key):
            return key
    return None


def parameters(node: FunctionNode) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters that take one argument each, with their defaults."""
    declared = node.args
    positional = [*declared.posonlyargs, *declared.args]
    missing = len(positional) - len(declared.defaults)
    defaults = [*([None] * missing), *declared.defaults]
    yield from zip(positional, defaults, strict=True)
    yield from zip(declared.kwonlyargs, declared.kw_defaults, strict=True)
