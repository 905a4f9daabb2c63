"""Where a file uses names that JAX, Flax or NumPy have removed."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain

from codemods.analysis.changed import KIND as CHANGED
from codemods.analysis.changed import METHODS, changed_uses
from codemods.analysis.frozen_tests import Naming
from codemods.analysis.queries import Queries
from codemods.analysis.uses import Use
from codemods.inference.objects import Instance
from codemods.inference.recorded import Import
from codemods.removed.indexing import IndexedUpdate, updated
from codemods.removed.present import unknown
from codemods.removed.table import Removed, changed, once_modules, packages, row_of
from codemods.sources.modules import Unit
from codemods.vocabulary import INDEX

Named = ast.Attribute | ast.Name
DOTTED = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.\w+)+")
UNKNOWN = "unknown"
"""The kind of use of a name that does not exist and never did, or is private."""

MODERNIZED = ("removed", "removed_import", "removed_module", CHANGED)
"""The kinds of use that are only rewritten on demand: they have to do with no optimizer."""

IN_PLACE = ("call", "drop", "helper", "value")
"""How rows are replaced where their names are used, imported names included."""

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
    bound: dict[str, set[str]] = defaultdict(set)
    imported: list[str] = []
    for node in unit.nodes:
        match node:
            # import jax.ops, import jax.ops as ops
            case ast.Import(names=aliases):
                for alias in aliases:
                    root, _, _ = alias.name.partition(".")
                    target = alias.name if alias.asname else root
                    bound[alias.asname or root].add(target)
                    imported.append(alias.name)
            # from jax import ops, from jax.ops import *, but not `from . import ops`
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                for alias in aliases:
                    name = module if alias.name == "*" else f"{module}.{alias.name}"
                    bound[alias.asname or alias.name].add(name)
                    imported.append(name)
    if any(name in once_modules() or _is_gone(name) for name in imported):
        return True

    def named(dotted: str) -> set[str]:
        root, _, rest = dotted.partition(".")
        return {f"{target}.{rest}".rstrip(".") for target in bound[root]}

    if _says_instances(unit) or any(
        changed_uses(unit, lambda one: named(_dotted(one)))
    ):
        return True
    read: list[str] = []
    for node in unit.nodes:
        match node:
            # jax.tree_map, or `j.tree_map` after `import jax as j`
            case ast.Attribute():
                read.append(_dotted(node))
            # "jnp.DeviceArray", as an annotation in quotes
            case ast.Constant(value=str(text)):
                read += DOTTED.findall(text)
    return any(_is_gone(name) for dotted in read for name in named(dotted))


def _says_instances(unit: Unit) -> bool:
    """Whether a file may call an instance of a class whose call takes something otherwise."""
    return any(word in unit.code for word in _instances())


@cache
def _instances() -> frozenset[str]:
    """The last words of the classes whose instances take something otherwise."""
    rows = (row for row in changed().values() if row.function.endswith("()"))
    return frozenset(row.function[:-2].rpartition(".")[2] for row in rows)


def _is_gone(name: str) -> bool:
    return row_of(name) is not None or unknown(name) is not None


def _dotted(node: ast.expr) -> str:
    """The text of a dotted name; it begins with a dot if the expression begins with no name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    words.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(words))


def removed_uses(facts: Queries, unit: Unit) -> Iterator[Use]:
    """The uses of removed names in a file.

    Their kind is `removed` for an expression, `removed_import` for an imported name, and
    `removed_module` for the import of a module, `import a.b.c`, that only such expressions use, or
    that is an attribute today. It is `unknown` for an expression or import of what never existed,
    or is private, and `changed` for what is there and is taken otherwise.
    """
    if not uses_removed(unit.code):
        return
    names = _Names(facts, unit)
    covered: set[ast.AST] = set()
    for use in _changed(unit, names):
        # nn.GRUCell.initialize_carry(key, (8,), 16), type(x) == jnp.DeviceArray
        said = use.node.func if isinstance(use.node, ast.Call) else use.node
        # an import that is read there moves
        if isinstance(said, ast.Attribute):
            covered.add(said)
        yield use
    for node in unit.nodes:
        if isinstance(node, Named) and node not in covered:
            row = names.row(node, node)
            if row is not None:
                covered.update(ast.walk(node))
                covered.update(_index(unit, node, row, names))
                yield Use("removed", row.name, unit, node, ())
    yield from _in_quotes(unit, names, covered)
    for item in names.imports:
        yield from _of_import(unit, item, names, covered)
    yield from _unknown(unit, names)


def _changed(unit: Unit, names: _Names) -> Iterator[Use]:
    """The uses of what is there and is taken otherwise."""
    for name, node in changed_uses(unit, names.naming()):
        method = node.func if isinstance(node, ast.Call) else node
        is_another = name.startswith(METHODS) and names.is_another(method)
        if not (is_another or is_guarded(unit, node)):
            yield Use(CHANGED, name, unit, node, ())


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
    # jax.my_addition = …
    stored = (node for node in attributes if not isinstance(node.ctx, ast.Load))
    own = {*map(names.full_name, stored)}
    covered: set[ast.AST] = set()
    for node in attributes:
        name = names.full_name(node) if node not in covered else None
        found = unknown(name) if name is not None else None
        if name is None or found is None or found.name in own or is_guarded(unit, node):
            continue
        covered.update(ast.walk(node))
        # If the import is unknown itself, that is reported.
        below = map(imported_name, names.items_below(node))
        if not any(map(unknown, below)):
            yield Use(UNKNOWN, name, unit, node, ())
    for item in names.imports:
        name = imported_name(item)
        if unknown(name) is not None and not is_guarded(unit, item.statement):
            yield Use(UNKNOWN, name, unit, item.statement, ())


def _in_quotes(unit: Unit, names: _Names, covered: set[ast.AST]) -> Iterator[Use]:
    """The uses in annotations in quotes: one for all equal names in an annotation."""
    for quoted, nodes in names.quoted.items():
        found: dict[tuple[str, str], list[ast.expr]] = defaultdict(list)
        for node in nodes:
            row = names.row(node, quoted) if node not in covered else None
            if row is not None:
                covered.update(ast.walk(node))
                found[row.name, ast.unparse(node)].append(node)
        for (name, text), said in found.items():
            yield Use("removed", name, unit, quoted, (), quoted=text, said=tuple(said))


class _Names:
    """What the names of a file stand for."""

    def __init__(self, facts: Queries, unit: Unit) -> None:
        self.unit = unit
        self._facts = facts
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

    def row(self, node: Named, where: ast.expr) -> Removed | None:
        """The row of what an expression names, unless its import alone is changed or reported.

        `where` is the place in the file: the expression itself, or the string that it is in.
        """
        name = self.full_name(node)
        row = None if name is None else row_of(name)
        if row is None or row.name != name or not isinstance(node.ctx, ast.Load):
            return None
        # tree_map(f, tree): of most imported names, it is enough to change the import
        is_by_import = isinstance(node, ast.Name) and row.how not in IN_PLACE
        return None if is_by_import or is_guarded(self.unit, where) else row

    def full_name(self, node: ast.expr) -> str | None:
        """The full name of what an expression names, if imports alone show it."""
        if isinstance(node, ast.Attribute):
            owner = self.full_name(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        # `a` for `import a.b.c`
        named = {
            item.name if _is_package(item) else item.target
            for item in self._items(node)
        }
        return named.pop() if len(named) == 1 else None

    def naming(self) -> Naming:
        """The full names of expressions, and those of the instances of classes by their calls."""
        may_be_instance = _says_instances(self.unit)

        def naming(node: ast.expr) -> set[str]:
            name = self.full_name(node)
            if name is not None:
                return {name}
            # nn.MultiHeadDotProductAttention(8)(x, y, mask)
            if isinstance(node, ast.Call):
                return {f"{one}()" for one in naming(node.func)}
            found = self._facts.flow.origin_names(node) if may_be_instance else set()
            return found if len(found) == 1 else set()

        return naming

    def is_another(self, method: ast.expr) -> bool:
        """Whether a method is that of a class in view, or a function of a module."""
        assert isinstance(method, ast.Attribute)
        owners = self._facts.objects(method.value)
        is_own = any(isinstance(owner, Instance) for owner in owners)
        return is_own or self.full_name(method) is not None

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
        reads = chain(self.unit.nodes, *self.quoted.values())
        found: list[ast.AST] = []
        for node in reads:
            if isinstance(node, ast.Name):
                is_read = not _is_package(item) and item in self._items(node)
            else:
                # `jax.ops`, after `import jax.ops`
                is_read = (
                    _is_package(item)
                    and isinstance(node, ast.Attribute)
                    and self.full_name(node) == item.alias.name
                )
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


def is_guarded(unit: Unit, node: ast.AST) -> bool:
    """Whether the code handles that a name does not exist, by `try`."""
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    inner = node
    for outer in unit.ancestors(node):
        if (
            isinstance(outer, ast.Try)
            and inner in outer.body
            and any(_handles(handler, is_import) for handler in outer.handlers)
        ):
            return True
        inner = outer
    return False


def _handles(handler: ast.ExceptHandler, is_import: bool) -> bool:
    """Whether a handler is for an import that fails, or for an attribute that does not exist."""
    expected = WITHOUT_IMPORT if is_import else WITHOUT_NAME
    kind = handler.type
    # except (ImportError, AttributeError):
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    named = (one.id for one in kinds if isinstance(one, ast.Name))
    # except:
    is_for_all = is_import and kind is None
    return is_for_all or any(name in expected for name in named)


def _index(
    unit: Unit, function: ast.expr, row: Removed, names: _Names
) -> Iterator[ast.AST]:
    """The `jax.ops.index` of `function(x, jax.ops.index[…], y)`, which is removed with it."""
    call = unit.call_of(function)
    if call is None or ".at[" not in row.to:
        return
    match updated(call):
        case IndexedUpdate(index=ast.Subscript(value=value)):
            if names.full_name(value) == INDEX:
                yield from ast.walk(value)
