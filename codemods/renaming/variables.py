"""The variables and parameters of a function that get new names, with the keywords of its calls."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping

from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.flow.objects import Thing
from codemods.flow.out_of_view import COMPUTING
from codemods.flow.scopes import Scope
from codemods.origins import Binding, Origins, Variable
from codemods.renaming.names import (
    DEFINITIONS,
    STATE,
    TRANSFORMATION,
    WORD,
    Functions,
    Keyword,
    Renames,
    is_optimizer,
    keyword_of,
    kind_of,
    scope_path,
)

LISTING = frozenset(f"builtins.{name}" for name in ("locals", "vars", "dir", "eval", "exec"))
"""What knows the variables of the function that calls it by their names."""

BY_NAME = ("static_argnames", "donate_argnames")
"""What names parameters in quotes."""


def plan_function(
    node: Functions, unit: Unit, facts: Facts, origins: Origins, done: set[Thing], found: dict[Unit, Renames]
) -> None:
    """Note the new names in one function. Where one train state cannot have another name, none of them gets one."""
    scope = _scope_of(node, facts)
    if scope is None or any(_lists(call, facts) for call in ast.walk(node) if isinstance(call, ast.Call)):
        return
    states: dict[str, _Keywords | None] = {}
    for name in sorted(scope.names):
        items = list(facts.flow.solver.at(("variable", scope, name)))
        kind = kind_of(items, done)
        if kind != "optimizer" and WORD.search(name) and kind_of(filter(is_optimizer, items), done) == "optimizer":
            states[name] = None  # it may be something else as well
        elif kind == "optimizer" and WORD.search(name):
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
        if bindings is None or _is_called_out_of_view(node, variable, origins.facts):
            return None
        if _is_quoted(name, variable.unit) or not _plan_keywords(bindings, name, new, keywords):
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


def _lists(call: ast.Call, facts: Facts) -> bool:
    """Whether a call asks for the variables around it: `vars(x)` and `dir(x)` do not."""
    return (not call.args or ast.unparse(call.func) in ("eval", "exec")) and not LISTING.isdisjoint(
        facts.externals(call.func)
    )


def _is_called_out_of_view(node: Functions, variable: Variable, facts: Facts) -> bool:
    """Whether a base class or a decorator of another package may fill the parameters of a function by their names."""
    around = variable.scope.parent
    bases = around.node.bases if around is not None and isinstance(around.node, ast.ClassDef) else []
    decorators = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return any(not any(facts.objects(one)) and not _is_known(one, facts) for one in (*bases, *decorators))


def _is_known(node: ast.expr, facts: Facts) -> bool:
    """Whether something is of a package that does not call by names that it does not know."""
    packages = {name.partition(".")[0] for name in facts.flow.derivation.roots.names(node)}
    return bool(packages) and packages <= COMPUTING | sys.stdlib_module_names | {"builtins"}


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
        keyword = keyword_of(argument.call, argument.unit, name)
        same = [
            call
            for call in argument.unit.nodes
            if isinstance(call, ast.Call)
            and any(word.arg == name for word in call.keywords)
            and keyword_of(call, argument.unit, name) == keyword
        ]
        if len(same) != 1:
            return False
        keywords[argument.unit][keyword] = new
    return True
