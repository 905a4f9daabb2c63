"""Where a file uses names that JAX, Flax or NumPy have removed."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from codemods.analysis.queries import Queries
from codemods.analysis.uses import Use
from codemods.inference.recorded import Import
from codemods.removed.indexing import IndexedUpdate, updated
from codemods.removed.present import unknown
from codemods.removed.table import Removed, once_modules, packages, row_of, table
from codemods.sources.modules import Unit
from codemods.vocabulary import INDEX

Named = ast.Attribute | ast.Name
Targets = dict[str, set[str]]
"""What the imports of a file bind each name to."""

DOTTED = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.\w+)+")
UNKNOWN = "unknown"
"""The kind of use of a name that does not exist and never did, or is private."""

MODERNIZED = ("removed", "removed_import", "removed_module")
"""The kinds of use that are only rewritten on demand: they have to do with no optimizer."""

IN_PLACE = ("call", "drop", "helper", "value")
"""How rows are replaced where their names are used, imported names included."""

POPPED = ("params",)
"""The collections that `variables.pop(…)` took out of the variables; it returned a pair."""

WITHOUT_NAME = ("AttributeError",)
WITHOUT_IMPORT = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
"""The exceptions that are handled by code that can do without an attribute, or an import.

A handler of all exceptions is not written for a missing attribute.
"""


def says_package(content: bytes) -> bool:
    """Whether a file has the name of a package that has removed anything."""
    return any(package.encode() in content for package in packages())


def uses_removed(code: str) -> bool:
    """Whether a file may use a name that does not exist (any more). False is certain."""
    return any(package in code for package in packages())


def names_removed(unit: Unit) -> bool:
    """Whether a file may use a name that does not exist (any more). False is certain.

    Only its imports and attributes are looked at.
    """
    bound: Targets = defaultdict(set)
    for bound_as, target, imported in _imports(unit):
        bound[bound_as].add(target)
        if row_of(imported) is not None or imported in once_modules():
            return True
        if unknown(imported) is not None:
            return True
    for node in unit.nodes:
        # jax.tree_map, or `j.tree_map` after `import jax as j`
        if isinstance(node, ast.Attribute):
            *steps, root = _steps(node)
            for target in bound.get(root, ()):
                name = ".".join((target, *reversed(steps)))
                if name in table() or unknown(name) is not None:
                    return True
        elif isinstance(node, ast.Assign) and _is_popped_pair(node):
            return True
    return _quotes_removed(unit, bound)


def _quotes_removed(unit: Unit, bound: Targets) -> bool:
    """Whether a text, such as an annotation in quotes, may have such a name."""
    for node in unit.nodes:
        match node:
            case ast.Constant(value=str(text)):
                for name in DOTTED.findall(text):
                    root, _, rest = name.partition(".")
                    full_names = (f"{target}.{rest}" for target in bound.get(root, ()))
                    if any(row_of(full_name) is not None for full_name in full_names):
                        return True
    return False


def _imports(unit: Unit) -> Iterator[tuple[str, str, str]]:
    """For each absolute import the name that it binds, its target, and the name it imports."""
    for node in unit.nodes:
        match node:
            # import jax.ops, import jax.ops as ops
            case ast.Import(names=aliases):
                for alias in aliases:
                    root, _, _ = alias.name.partition(".")
                    target = alias.name if alias.asname else root
                    yield alias.asname or root, target, alias.name
            # from jax import ops, but not `from . import ops`
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                for alias in aliases:
                    name = f"{module}.{alias.name}"
                    # from jax.ops import *
                    if alias.name == "*":
                        name = module
                    yield alias.asname or alias.name, name, name


def _steps(node: ast.expr) -> Iterator[str]:
    """The words of a dotted name, the last one first.

    The first word is empty if the expression does not begin with a name.
    """
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    yield node.id if isinstance(node, ast.Name) else ""


def removed_uses(facts: Queries, unit: Unit) -> Iterator[Use]:
    """The uses of removed names in a file.

    Their kind is `removed` for an expression, `removed_import` for an imported name, and
    `removed_module` for the import of a module, `import a.b.c`, that only such expressions use, or
    that is an attribute today. It is `unknown` for an expression or import of what never existed,
    or is private.
    """
    if not uses_removed(unit.code):
        return
    names = _Names(facts, unit)
    says_flax = "flax" in unit.code
    covered: set[ast.AST] = set()
    for node in unit.nodes:
        if isinstance(node, Named) and node not in covered:
            row = names.row(node, node)
            if row is not None:
                covered.update(ast.walk(node))
                covered.update(_index(unit, node, row, names))
                yield Use("removed", row.name, unit, node, ())
        # state, params = variables.pop("params")
        elif says_flax and isinstance(node, ast.Assign) and _is_popped_pair(node):
            yield Use("removed", "pop", unit, node.value, ())
    yield from _in_quotes(unit, names, covered)
    for item in names.imports:
        yield from _of_import(unit, item, names, covered)
    yield from _unknown(unit, names)


def _of_import(
    unit: Unit, item: Import, names: _Names, covered: set[ast.AST]
) -> Iterator[Use]:
    """The uses that an import is."""
    statement = item.statement
    name = imported_name(item)
    row = row_of(name)
    if is_guarded(unit, statement):
        return
    # import jax.ops, which is not a module any more
    if isinstance(statement, ast.Import) and name in once_modules():
        yield Use("removed_module", name, unit, statement, ())
    if row is None:
        return
    if not names.is_covered(item, covered):
        yield Use("removed_import", name, unit, statement, ())
    elif _is_package(item):
        kind = "removed_import" if row.how == "same" else "removed_module"
        yield Use(kind, name, unit, statement, ())


def _unknown(unit: Unit, names: _Names) -> Iterator[Use]:
    """The uses of what never existed, or is private, except for what the file itself assigns."""
    attributes = [node for node in unit.nodes if isinstance(node, ast.Attribute)]
    own: set[str | None] = set()
    for node in attributes:
        # jax.my_addition = …
        if not isinstance(node.ctx, ast.Load):
            own.add(names.full_name(node))
    covered: set[ast.AST] = set()
    for node in attributes:
        if node in covered:
            continue
        name = names.full_name(node)
        if name is None:
            continue
        found = unknown(name)
        if found is None or found.name in own:
            continue
        if is_guarded(unit, node):
            continue
        covered.update(ast.walk(node))
        # If the import is unknown itself, that is reported.
        below = map(imported_name, names.items_below(node))
        if not any(map(unknown, below)):
            yield Use(UNKNOWN, name, unit, node, ())
    for item in names.imports:
        name = imported_name(item)
        if unknown(name) is None or is_guarded(unit, item.statement):
            continue
        yield Use(UNKNOWN, name, unit, item.statement, ())


def _in_quotes(unit: Unit, names: _Names, covered: set[ast.AST]) -> Iterator[Use]:
    """The uses in annotations in quotes: one for all equal names in an annotation."""
    for quoted, nodes in names.quoted.items():
        found: dict[tuple[str, str], list[ast.expr]] = defaultdict(list)
        for node in nodes:
            if node in covered:
                continue
            row = names.row(node, quoted)
            if row is not None:
                covered.update(ast.walk(node))
                key = (row.name, ast.unparse(node))
                found[key].append(node)
        for (name, text), equal in found.items():
            said = tuple(equal)
            yield Use("removed", name, unit, quoted, (), quoted=text, said=said)


class _Names:
    """What the names of a file stand for."""

    def __init__(self, facts: Queries, unit: Unit) -> None:
        self.unit = unit
        self.imports = facts.imported(unit)
        self._scopes = facts.flow.reading.scopes
        self._bound: dict[str, list[Import]] = defaultdict(list)
        for item in self.imports:
            self._bound[item.name].append(item)
        self.quoted: dict[ast.expr, list[Named]] = {}
        """The names in each annotation in quotes."""
        for annotation in facts.flow.reading.annotations:
            node = annotation.node
            is_own = annotation.unit is unit and node in unit.parents
            if not is_own or node is annotation.expression:
                continue
            found: list[Named] = []
            # "Optional['jnp.DeviceArray']" has another one within.
            for one in facts.with_quoted(annotation):
                parts = ast.walk(one.expression)
                found += [part for part in parts if isinstance(part, Named)]
            self.quoted[node] = found

    @property
    def _reads(self) -> Iterator[ast.AST]:
        """The nodes of the file, and those in quotes."""
        return chain(self.unit.nodes, *self.quoted.values())

    def row(self, node: Named, where: ast.expr) -> Removed | None:
        """The row of what an expression names, unless its import alone is changed or reported.

        `where` is the place in the file: the expression itself, or the string that it is in.
        """
        name = self.full_name(node)
        row = None if name is None else row_of(name)
        if row is None or not isinstance(node.ctx, ast.Load):
            return None
        if is_guarded(self.unit, where):
            return None
        # tree_map(f, tree): of most imported names, it is enough to change the import
        if isinstance(node, ast.Name) and row.how not in IN_PLACE:
            return None
        return row if row.name == name else None

    def full_name(self, node: ast.expr) -> str | None:
        """The full name of what an expression names, if imports alone show it."""
        if isinstance(node, ast.Attribute):
            owner = self.full_name(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        named = {_bound_name(item) for item in self._items(node)}
        return named.pop() if len(named) == 1 else None

    def _items(self, node: ast.Name) -> list[Import]:
        """The imports that bind a name."""
        if node.id not in self._bound or node not in self._scopes:
            return []
        scope = self._scopes[node].binding(node.id)
        return [item for item in self._bound[node.id] if item.scope is scope]

    def items_below(self, node: ast.expr) -> list[Import]:
        """The imports that bind the first word of an expression."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._items(node) if isinstance(node, ast.Name) else []

    def is_covered(self, item: Import, covered: set[ast.AST]) -> bool:
        """Whether an import is in use, and only by what is already reported."""
        found: list[ast.AST] = []
        for node in self._reads:
            # `jax.ops`, after `import jax.ops`
            if _is_package(item):
                is_read = (
                    isinstance(node, ast.Attribute)
                    and self.full_name(node) == item.alias.name
                )
            else:
                is_read = isinstance(node, ast.Name) and item in self._items(node)
            if is_read:
                found.append(node)
        return bool(found) and covered.issuperset(found)


def imported_name(item: Import) -> str:
    """The full name that an import statement has.

    It does not bind that if it binds a package above it.
    """
    # import jax.ops
    if isinstance(item.statement, ast.Import):
        return item.alias.name
    return item.target


def _is_package(item: Import) -> bool:
    """Whether an import binds the package, as `import a.b.c` does."""
    return isinstance(item.statement, ast.Import) and not item.alias.asname


def _bound_name(item: Import) -> str:
    """The full name of what an import binds: `a` for `import a.b.c`."""
    return item.name if _is_package(item) else item.target


def is_guarded(unit: Unit, node: ast.AST) -> bool:
    """Whether the code handles that a name does not exist, by `try`."""
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    inner = node
    for outer in unit.ancestors(node):
        handlers: list[ast.ExceptHandler] = []
        if isinstance(outer, ast.Try) and inner in outer.body:
            handlers = outer.handlers
        if any(_handles(handler, is_import) for handler in handlers):
            return True
        inner = outer
    return False


def _handles(handler: ast.ExceptHandler, is_import: bool) -> bool:
    """Whether a handler is for an import that fails, or for an attribute that does not exist."""
    expected = WITHOUT_IMPORT if is_import else WITHOUT_NAME
    match handler.type:
        # except:
        case None:
            return is_import
        # except (ImportError, AttributeError):
        case ast.Tuple(elts=kinds):
            pass
        case kind:
            kinds = [kind]
    named = (kind.id for kind in kinds if isinstance(kind, ast.Name))
    return any(name in expected for name in named)


def _index(
    unit: Unit, function: ast.expr, row: Removed, names: _Names
) -> Iterator[ast.AST]:
    """The `jax.ops.index` of `function(x, jax.ops.index[…], y)`, which is removed with it."""
    call = unit.parents.get(function)
    if ".at[" not in row.to:
        return
    if not isinstance(call, ast.Call) or call.func is not function:
        return
    match updated(call):
        case IndexedUpdate(index=ast.Subscript(value=value)):
            if names.full_name(value) == INDEX:
                yield from ast.walk(value)


def _is_popped_pair(node: ast.Assign) -> bool:
    """Whether this is `state, params = variables.pop("params")`."""
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=[_, _])],
            value=ast.Call(
                func=ast.Attribute(attr="pop"),
                args=[ast.Constant(value=str(name))],
                keywords=[],
            ),
        ):
            return name in POPPED
    return False
