"""New names for variables and parameters that are called optimizers, and hold a train state now: `state` for `optimizer`.

One that holds the transformation alone is `tx`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codemods.facts import Facts
from codemods.flow.modules import Span, Unit
from codemods.flow.objects import Derived, Object, Result, Thing
from codemods.flow.scopes import Scope, ScopeNode, open_scope
from codemods.origins import Binding, Origins, Variable

WORD = re.compile(r"optimizer|(?<![a-z])opt(?![a-z])")
STATE = "state"
TRANSFORMATION = "tx"
DEFINITIONS = ("optimizer_def", "opt_def", "optim_def", "optimizer_definition")
BY_NAME = ("static_argnames", "donate_argnames")
"""What names parameters in quotes."""

Functions = ast.FunctionDef | ast.AsyncFunctionDef
ScopePath = tuple[tuple[str, int], ...]
"""The functions and classes around a scope, outermost first, each with its number among those of its name beside it."""


@dataclass(frozen=True)
class Keyword:
    """The keyword of a call in some scope, by the source text of what is called."""

    scope: ScopePath
    called: str
    name: str


@dataclass
class Renames:
    """The new names in one file: of the variables of each scope, and of keywords."""

    variables: dict[ScopePath, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    keywords: dict[Keyword, str] = field(default_factory=dict)


def plan_renames(facts: Facts, origins: Origins, migrated: Iterable[Thing]) -> dict[Unit, Renames]:
    """The new names for what holds nothing but migrated optimizers, where no name collides and all calls are in view."""
    done = {*migrated}
    found: dict[Unit, Renames] = defaultdict(Renames)
    for unit in facts.project.units:
        for node in unit.nodes:
            if isinstance(node, Functions):
                _plan_function(node, unit, facts, origins, done, found)
    return found


def _plan_function(
    node: Functions, unit: Unit, facts: Facts, origins: Origins, done: set[Thing], found: dict[Unit, Renames]
) -> None:
    """Note the new names in one function. Where one train state cannot have another name, none of them gets one."""
    scope = _scope_of(node, facts)
    if scope is None:
        return
    states: dict[str, _Keywords | None] = {}
    for name in sorted(scope.names):
        kind = _kind(facts.flow.solver.at(("variable", scope, name)), done)
        if kind == "optimizer" and WORD.search(name):
            states[name] = _planned(name, WORD.sub(STATE, name), node, Variable(scope, name), origins)
        elif kind == "definition" and name in DEFINITIONS:
            words = _planned(name, TRANSFORMATION, node, Variable(scope, name), origins)
            _note({name: (TRANSFORMATION, words)} if words is not None else {}, node, unit, found)
    known = {name: (WORD.sub(STATE, name), words) for name, words in states.items() if words is not None}
    if len(known) == len(states):
        _note(known, node, unit, found)


_Keywords = dict[Unit, dict[Keyword, str]]


def _planned(name: str, new: str, node: Functions, variable: Variable, origins: Origins) -> _Keywords | None:
    """The keywords that follow a new name; None if the variable has to keep its own."""
    stores = origins.stores(variable)
    if any(isinstance(store, ast.Global | ast.Nonlocal) for store in stores) or new in _names_within(node):
        return None
    keywords: _Keywords = defaultdict(dict)
    if any(isinstance(store, ast.arg) for store in stores):
        bindings = origins.bindings(node)
        if bindings is None or _is_quoted(name, variable.unit) or not _plan_keywords(bindings, name, new, keywords):
            return None
    return keywords


def _note(names: Mapping[str, tuple[str, _Keywords]], node: Functions, unit: Unit, found: dict[Unit, Renames]) -> None:
    for name, (new, keywords) in names.items():
        found[unit].variables[scope_path(node, unit)][name] = new
        for other, words in keywords.items():
            found[other].keywords.update(words)


def _scope_of(node: Functions, facts: Facts) -> Scope | None:
    inside = (facts.flow.reading.scopes.get(inner) for inner in ast.walk(node))
    return next((scope for scope in inside if scope is not None and scope.node is node), None)


def _kind(items: Iterable[Object], done: set[Thing]) -> str:
    """The kind of some objects, if they are all of one kind and have all migrated; empty otherwise."""
    held = [item for item in items if not isinstance(item, Derived) and not _is_restored(item)]
    kinds = {item.kind if isinstance(item, Thing) and item in done else "" for item in held}
    return kinds.pop() if len(kinds) == 1 else ""


def _is_restored(item: Object) -> bool:
    """Whether this is what reads checkpoints, of which the target tells what it gives."""
    return isinstance(item, Result) and item.name.rpartition(".")[2] == "restore_checkpoint"


def _names_within(node: ast.AST) -> set[str]:
    found = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return found | {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}


def _is_quoted(name: str, unit: Unit) -> bool:
    """Whether a parameter may be named in quotes."""
    return any(word in unit.code for word in BY_NAME) and any(
        isinstance(node, ast.Constant) and node.value == name for node in unit.nodes
    )


def _plan_keywords(bindings: Iterable[Binding], name: str, new: str, keywords: dict[Unit, dict[Keyword, str]]) -> bool:
    """Note the keywords by which calls give a parameter. Whether they can all be renamed."""
    for binding in bindings:
        argument = binding.given.get(name)
        if argument is None or argument.keyword is None:
            continue
        keyword = _keyword(argument.call, argument.unit, name)
        same = [
            call
            for call in argument.unit.nodes
            if isinstance(call, ast.Call)
            and any(word.arg == name for word in call.keywords)
            and _keyword(call, argument.unit, name) == keyword
        ]
        if len(same) != 1:
            return False
        keywords[argument.unit][keyword] = new
    return True


def _keyword(call: ast.Call, unit: Unit, name: str) -> Keyword:
    called = [call.func, *call.args[:1]] if ast.unparse(call.func).endswith("partial") else [call.func]
    return Keyword(scope_path(call, unit), ", ".join(map(ast.unparse, called)), name)


def scope_path(node: ast.AST, unit: Unit) -> ScopePath:
    """Where a scope is, or the scope in which a node is, by names that outlast a change of the file."""
    chain = [node, *unit.ancestors(node)]
    owners = [
        owner for owner in reversed(chain) if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    return tuple((owner.name, _number(owner, unit)) for owner in owners)


def _number(owner: Functions | ast.ClassDef, unit: Unit) -> int:
    around = next((outer for outer in unit.ancestors(owner) if isinstance(outer, ScopeNode)), unit.tree)
    same = [
        node
        for node in ast.walk(around)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and node.name == owner.name
        and node is not around
    ]
    return sorted(node.lineno for node in same).index(owner.lineno)


# The names in place


def renamed(path: str, code: str, renames: Renames) -> str | None:
    """A file with new names; None if a keyword is not where it was, so that nothing may be renamed."""
    left = {*renames.keywords}
    unit = Unit(path, code, ast.parse(code))
    spans: dict[Span, str] = {}
    scopes: dict[ast.AST, Scope] = {unit.tree: open_scope(unit, unit.tree, None)}
    for node in unit.nodes:
        match node:
            case ast.Name(id=name):
                binding = _scope_around(node, unit, scopes).binding(name)
                new = _new_name(binding, name, unit, renames) if binding is not None else None
                if new is not None:
                    spans[unit.span(node)] = new
            case ast.arg(arg=name):
                owner = next(outer for outer in unit.ancestors(node) if isinstance(outer, ScopeNode))
                new = renames.variables.get(scope_path(owner, unit), {}).get(name)
                if new is not None and isinstance(owner, Functions):
                    first, column, _, _ = unit.span(node)
                    spans[first, column, first, column + len(name)] = new
            case ast.Call(keywords=words):
                for word in words:
                    keyword = _keyword(node, unit, word.arg or "")
                    new = renames.keywords.get(keyword)
                    left.discard(keyword)
                    if new is not None:
                        first, column, _, _ = unit.span(word)
                        spans[first, column, first, column + len(word.arg or "")] = new
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                spans |= _in_docstring(node, unit, renames.variables.get(scope_path(node, unit), {}))
    return None if left else _spliced(code, spans)


def _scope_around(node: ast.AST, unit: Unit, scopes: dict[ast.AST, Scope]) -> Scope:
    owners = [outer for outer in unit.ancestors(node) if isinstance(outer, ScopeNode)]
    scope = scopes[unit.tree]
    for owner in reversed(owners[:-1]):
        if owner not in scopes:
            scopes[owner] = open_scope(unit, owner, scope)
        scope = scopes[owner]
    return scope


def _new_name(scope: Scope, name: str, unit: Unit, renames: Renames) -> str | None:
    if not isinstance(scope.node, Functions):
        return None
    return renames.variables.get(scope_path(scope.node, unit), {}).get(name)


def _in_docstring(node: Functions, unit: Unit, names: Mapping[str, str]) -> dict[Span, str]:
    """The places of a docstring that name a parameter: at the beginning of an entry, or in backquotes."""
    first = node.body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and ast.get_docstring(node)):
        return {}
    found: dict[Span, str] = {}
    start, _, end, _ = unit.span(first.value)
    for number, line in enumerate(unit.code.split("\n")[start - 1 : end], start):
        for name, new in names.items():
            for match in re.finditer(rf"(?:^\s+(?::param )?|`){re.escape(name)}(?=\s*(?:\([^)]*\))?:|`)", line):
                found[number, match.end() - len(name), number, match.end()] = new
    return found


def _spliced(code: str, spans: Mapping[Span, str]) -> str:
    lines = code.split("\n")
    for (number, start, _, end), new in sorted(spans.items(), reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:start] + new + line[end:]
    return "\n".join(lines)
