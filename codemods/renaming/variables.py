"""The variables and parameters of a function that get new names, with the keywords of its calls."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping

from codemods.analysis.facts import Facts
from codemods.analysis.origins import Binding, Origins, Variable, names_within
from codemods.inference.objects import LegacyObject, Object
from codemods.inference.out_of_view import COMPUTING
from codemods.inference.scopes import Scope
from codemods.renaming import new_names
from codemods.sources.modules import Unit

LISTING = frozenset(
    f"builtins.{name}" for name in ("locals", "vars", "dir", "eval", "exec")
)
"""Functions that read the variables of their caller by name."""

BY_NAME = ("static_argnames", "donate_argnames")
"""Keywords of JAX whose values have names of parameters in quotes."""

_Keywords = dict[Unit, dict[new_names.Keyword, str]]
"""The new names of keywords in calls, by file."""

_Renamed = tuple[str, _Keywords]
"""The new name of a variable, and the keywords that get it, too."""


def plan_function(
    node: new_names.Functions,
    unit: Unit,
    facts: Facts,
    origins: Origins,
    done: set[LegacyObject],
    found: dict[Unit, new_names.Renames],
) -> None:
    """Note the new names in a function, if each of its train states can have one."""
    scope = _scope_of(node, facts)
    if scope is None:
        return
    calls = (call for call in ast.walk(node) if isinstance(call, ast.Call))
    # print(locals()): the names are values here
    if any(_lists(call, facts) for call in calls):
        return
    states: dict[str, _Renamed | None] = {}
    for name in sorted(scope.names):
        variable = Variable(scope, name)
        place = ("variable", scope, name)
        items = list(facts.flow.solver.at(place))
        kind = new_names.kind_of(items, done)
        has_word = new_names.WORD.search(name) is not None
        # state = train_step(state, batch)
        if has_word and kind == "optimizer":
            new = new_names.WORD.sub(new_names.STATE, name)
            states[name] = _planned(new, node, variable, origins)
        # another object may be in the variable as well
        elif has_word and _may_be_optimizer(items, done):
            states[name] = None
        # tx = optax.adam(1e-3)
        elif kind == "definition" and name in new_names.DEFINITIONS:
            planned = _planned(new_names.TRANSFORMATION, node, variable, origins)
            if planned is not None:
                _note({name: planned}, node, unit, found)
    known = {name: planned for name, planned in states.items() if planned is not None}
    if len(known) == len(states):
        _note(known, node, unit, found)


def _may_be_optimizer(items: Iterable[Object], done: set[LegacyObject]) -> bool:
    """Whether there are optimizers among some objects, and these have all migrated."""
    optimizers = filter(new_names.is_optimizer, items)
    return new_names.kind_of(optimizers, done) == "optimizer"


def _planned(
    new: str, node: new_names.Functions, variable: Variable, origins: Origins
) -> _Renamed | None:
    """The new name, with the keywords that get it, too; None if the variable keeps its name."""
    name = variable.name
    stores = origins.stores(variable)
    # global optimizer, or case {"optimizer": optimizer}
    if not all(isinstance(store, ast.Name | ast.arg) for store in stores):
        return None
    # the function has a `state` already
    if new in names_within(node):
        return None
    keywords: _Keywords = defaultdict(dict)
    # def train_step(optimizer, batch)
    if any(isinstance(store, ast.arg) for store in stores):
        bindings = origins.bindings(node)
        if bindings is None or _is_called_out_of_view(node, variable, origins.facts):
            return None
        if _is_quoted(name, variable.unit):
            return None
        if not _plan_keywords(bindings, name, new, keywords):
            return None
    return new, keywords


def _note(
    renamed: Mapping[str, _Renamed],
    node: new_names.Functions,
    unit: Unit,
    found: dict[Unit, new_names.Renames],
) -> None:
    for name, (new, keywords) in renamed.items():
        path = new_names.scope_path(node, unit)
        found[unit].variables[path][name] = new
        for other, words in keywords.items():
            found[other].keywords.update(words)


def _scope_of(node: new_names.Functions, facts: Facts) -> Scope | None:
    # what stands in the body has the scope of the function
    for inner in ast.walk(node):
        scope = facts.flow.reading.scopes.get(inner)
        if scope is not None and scope.node is node:
            return scope
    return None


def _lists(call: ast.Call, facts: Facts) -> bool:
    """Whether a call reads the variables around it: `vars(x)` and `dir(x)` do not."""
    if call.args and ast.unparse(call.func) not in ("eval", "exec"):
        return False
    return not LISTING.isdisjoint(facts.externals(call.func))


def _is_called_out_of_view(
    node: new_names.Functions, variable: Variable, facts: Facts
) -> bool:
    """Whether a base class or decorator of another package may call a function by keywords."""
    outer = variable.scope.parent
    around = None if outer is None else outer.node
    callers: list[ast.expr] = []
    # class Trainer(pl.Trainer)
    if isinstance(around, ast.ClassDef):
        callers += around.bases
    for decorator in node.decorator_list:
        # @app.command(name="train")
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        callers.append(called)
    out_of_view = (one for one in callers if not any(facts.objects(one)))
    return not all(_is_known(one, facts) for one in out_of_view)


def _words(call: ast.Call) -> list[str | None]:
    """The keywords of a call."""
    return [word.arg for word in call.keywords]


def _is_known(node: ast.expr, facts: Facts) -> bool:
    """Whether an object is of a package that does not call functions by keywords of their own."""
    names = facts.flow.origin_names(node)
    packages = {name.partition(".")[0] for name in names}
    known = COMPUTING | sys.stdlib_module_names | {"builtins"}
    return bool(packages) and packages <= known


def _is_quoted(name: str, unit: Unit) -> bool:
    """Whether a parameter may be named in quotes: `jax.jit(f, static_argnames="optimizer")`."""
    if not any(word in unit.code for word in BY_NAME):
        return False
    constants = (node for node in unit.nodes if isinstance(node, ast.Constant))
    return any(node.value == name for node in constants)


def _plan_keywords(
    bindings: Iterable[Binding], name: str, new: str, keywords: _Keywords
) -> bool:
    """Note the keywords for a parameter in calls; return whether all can be renamed."""
    for binding in bindings:
        argument = binding.given.get(name)
        # train_step(optimizer, batch)
        if argument is None or argument.keyword is None:
            continue
        unit = argument.unit
        # a keyword is found again by the text of its call, so there may be only one such
        keyword = new_names.keyword_of(argument.call, unit, name)
        calls = (call for call in unit.nodes if isinstance(call, ast.Call))
        giving = (call for call in calls if name in _words(call))
        same = [new_names.keyword_of(call, unit, name) for call in giving]
        if same.count(keyword) != 1:
            return False
        keywords[unit][keyword] = new
    return True
