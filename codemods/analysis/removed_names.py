"""Where a file uses what was removed."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from codemods.analysis.queries import Queries
from codemods.analysis.uses import Use
from codemods.flow.annotations import quoted_types
from codemods.flow.reading import Import
from codemods.removed.indexing import Update, updated
from codemods.removed.present import unknown
from codemods.removed.table import Removed, once_modules, packages, row_of, table
from codemods.sources.modules import Unit
from codemods.vocabulary import INDEX

DOTTED = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.\w+)+")
UNKNOWN = "unknown"
"""The kind of use of a name that is not there, though nobody removed it, or is private."""

MODERNIZED = ("removed", "removed_import", "removed_module")
"""The kinds of use that are only rewritten on demand, as they have to do with no optimizer."""

POPPED = ("params",)
"""The collections that flax took out of variables with `variables.pop(…)`, which gave a pair."""

WITHOUT_NAME = ("AttributeError",)
WITHOUT_IMPORT = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
"""What is handled by code that does without an attribute, or an import. Who handles all exceptions thinks of no attribute."""


def says_package(content: bytes) -> bool:
    """Whether a file says the name of a package of which anything is gone."""
    return any(package.encode() in content for package in packages())


def uses_removed(code: str) -> bool:
    """Whether a file may use anything that is gone, or never was. False is certain."""
    return any(package in code for package in packages())


def names_removed(unit: Unit) -> bool:
    """Whether a file may use anything that is gone, or never was, by its imports and attributes alone. False is certain."""
    bound: dict[str, set[str]] = defaultdict(set)
    for bound_as, target, said in _imports(unit):
        bound[bound_as].add(target)
        if row_of(said) is not None or said in once_modules() or unknown(said) is not None:
            return True
    for node in unit.nodes:
        if isinstance(node, ast.Attribute):
            *steps, root = _steps(node)
            full = [".".join((name, *reversed(steps))) for name in bound.get(root, ())]
            if any(name in table() or unknown(name) is not None for name in full):
                return True
        elif isinstance(node, ast.Assign) and _is_popped_pair(node):
            return True
    return any(
        row_of(f"{target}.{rest}") is not None
        for _, text in _quoted(unit)
        for root, _, rest in (name.partition(".") for name in DOTTED.findall(text))
        for target in bound.get(root, ())
    )


def _quoted(unit: Unit) -> Iterator[tuple[ast.Constant, str]]:
    """The strings of a file that are annotations, or parts of these, and types that something is cast to; each with its text."""
    for annotation in _annotations(unit):
        yield from ((quoted, str(quoted.value)) for quoted in quoted_types(annotation))


def _annotations(unit: Unit) -> Iterator[ast.expr]:
    for node in unit.nodes:
        match node:
            case ast.Call(
                func=ast.Name(id="cast") | ast.Attribute(attr="cast"), args=[annotation, _]
            ):
                yield annotation
            case (
                ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation)
            ):
                yield annotation
            case (
                ast.FunctionDef(returns=ast.expr() as annotation)
                | ast.AsyncFunctionDef(returns=ast.expr() as annotation)
            ):
                yield annotation


def _imports(unit: Unit) -> Iterator[tuple[str, str, str]]:
    """For each import from a package with removed names: the name that it binds, what that is, and what it says."""
    for node in unit.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield alias.asname or root, alias.name if alias.asname else root, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module is not None:
            for alias in node.names:
                name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
                yield alias.asname or alias.name, name, name


def _steps(node: ast.expr) -> Iterator[str]:
    """The words of a dotted name, from the last on; an empty first one if it begins with anything but a name."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    yield node.id if isinstance(node, ast.Name) else ""


def removed_uses(facts: Queries, unit: Unit) -> Iterator[Use]:
    """The uses of what is gone in a file.

    Their kind is `removed` for an expression, `removed_import` for an imported name, and `removed_module` for the import of a
    module, `import a.b.c`, of which nothing is in use but such expressions, or which is an attribute now. It is `unknown` for
    what is not there, though nobody removed it, and for what is private, in an expression or an import.
    """
    if not uses_removed(unit.code):
        return
    names = _Names(facts, unit)
    covered: set[ast.AST] = set()
    for node in unit.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and node not in covered:
            row = names.row(node, node)
            if row is not None:
                covered.update(ast.walk(node))
                covered.update(_index(unit, node, row, names))
                yield Use("removed", row.name, unit, node, ())
        elif isinstance(node, ast.Assign) and _is_popped_pair(node) and "flax" in unit.code:
            yield Use("removed", "pop", unit, node.value, ())
    yield from _in_quotes(unit, names, covered)
    for item in names.imports:
        row = row_of(imported_name(item))
        if _is_guarded(unit, item.statement):
            continue
        if isinstance(item.statement, ast.Import) and item.alias.name in once_modules():
            yield Use("removed_module", item.alias.name, unit, item.statement, ())
        if row is None:
            continue
        if not names.is_covered(item, covered):
            yield Use("removed_import", imported_name(item), unit, item.statement, ())
        elif _is_package(item):
            kind = "removed_import" if row.how == "same" else "removed_module"
            yield Use(kind, imported_name(item), unit, item.statement, ())
    yield from _unknown(unit, names)


def _unknown(unit: Unit, names: _Names) -> Iterator[Use]:
    """The uses of what is not there, though nobody removed it, and of what is private, but for what the file itself sets."""
    attributes = [node for node in unit.nodes if isinstance(node, ast.Attribute)]
    own = {names.full_name(node) for node in attributes if not isinstance(node.ctx, ast.Load)}
    covered: set[ast.AST] = set()
    for node in attributes:
        name = names.full_name(node) if node not in covered else None
        found = unknown(name) if name is not None else None
        if found is None or found.name in own or _is_guarded(unit, node):
            continue
        covered.update(ast.walk(node))
        if not any(unknown(imported_name(item)) for item in names.items_below(node)):
            yield Use(UNKNOWN, str(name), unit, node, ())
    for item in names.imports:
        if unknown(imported_name(item)) is not None and not _is_guarded(unit, item.statement):
            yield Use(UNKNOWN, imported_name(item), unit, item.statement, ())


def _in_quotes(unit: Unit, names: _Names, covered: set[ast.AST]) -> Iterator[Use]:
    """The uses in annotations in quotes: one for all that say the same in one of them, be it an expression or not."""
    for quoted, nodes in names.quoted.items():
        found: dict[tuple[str, str], list[ast.expr]] = defaultdict(list)
        for node in nodes:
            row = names.row(node, quoted) if node not in covered else None
            if row is not None:
                covered.update(ast.walk(node))
                found[row.name, ast.unparse(node)].append(node)
        for (name, text), said in found.items():
            yield Use("removed", name, unit, quoted, (), quoted=text, said=tuple(said))
    for quoted, whole in _quoted(unit):
        for text in dict.fromkeys(DOTTED.findall(whole)) if quoted not in names.quoted else ():
            row = names.row_of_text(text)
            if row is not None:
                yield Use("removed", row.name, unit, quoted, (), quoted=text)


class _Names:
    """What the names of a file stand for."""

    def __init__(self, facts: Queries, unit: Unit) -> None:
        self.unit = unit
        self.imports = facts.imported(unit)
        self._scopes = facts.flow.reading.scopes
        self._bound: dict[str, list[Import]] = defaultdict(list)
        for item in self.imports:
            self._bound[item.name].append(item)
        annotations = [
            one
            for one in facts.flow.reading.annotations
            if one.unit is unit and one.node in unit.parents
        ]
        self.quoted = {
            one.node: [
                node
                for inner in facts.with_quoted(one)
                for node in ast.walk(inner.expression)
                if isinstance(node, ast.Attribute | ast.Name)
            ]
            for one in annotations
            if one.node is not one.expression
        }
        """What is said in each annotation in quotes."""

    @property
    def _reads(self) -> Iterator[ast.AST]:
        """The nodes of the file, and those in quotes."""
        return chain(self.unit.nodes, *self.quoted.values())

    def row(self, node: ast.Attribute | ast.Name, where: ast.expr) -> Removed | None:
        """The row of what an expression names, unless its import alone is to change, or is reported.

        `where` is what of the file that stands in: the expression itself, or a string.
        """
        name = self.full_name(node)
        row = None if name is None else row_of(name)
        if row is None or not isinstance(node.ctx, ast.Load) or _is_guarded(self.unit, where):
            return None
        if isinstance(node, ast.Name):
            return (
                row if row.name == name and row.how in ("call", "drop", "helper", "value") else None
            )
        return row if row.name == name else None

    def row_of_text(self, text: str) -> Removed | None:
        """The row of a dotted name in a text that is no expression, by what all imports of the file bind its first word to."""
        root, _, rest = text.partition(".")
        named = {item.name if _is_package(item) else item.target for item in self._bound[root]}
        return row_of(f"{named.pop()}.{rest}") if len(named) == 1 else None

    def full_name(self, node: ast.expr) -> str | None:
        """The full name of what an expression names, if imports alone decide on that."""
        if isinstance(node, ast.Attribute):
            owner = self.full_name(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        items = self._items(node) if isinstance(node, ast.Name) else []
        named = {item.name if _is_package(item) else item.target for item in items}
        return named.pop() if len(named) == 1 else None

    def _items(self, node: ast.Name) -> list[Import]:
        """The imports that bind a name."""
        if node.id not in self._bound or node not in self._scopes:
            return []
        scope = self._scopes[node].binding(node.id)
        return [item for item in self._bound[node.id] if item.scope is scope]

    def items_below(self, node: ast.expr) -> list[Import]:
        """The imports that bind the name which an expression begins with."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._items(node) if isinstance(node, ast.Name) else []

    def is_covered(self, item: Import, covered: set[ast.AST]) -> bool:
        """Whether an import is in use, and by nothing but what is told already."""
        reads: Iterable[ast.AST] = (
            node for node in self._reads if isinstance(node, ast.Name) and item in self._items(node)
        )
        if _is_package(item):
            chains = (node for node in self._reads if isinstance(node, ast.Attribute))
            reads = (node for node in chains if self.full_name(node) == item.alias.name)
        found = [*reads]
        return bool(found) and covered.issuperset(found)


def imported_name(item: Import) -> str:
    """The full name of what an import statement says, which is not what it binds if that is a package above it."""
    return item.alias.name if isinstance(item.statement, ast.Import) else item.target


def _is_package(item: Import) -> bool:
    """Whether an import binds the package, as `import a.b.c` does."""
    return isinstance(item.statement, ast.Import) and not item.alias.asname


def _is_guarded(unit: Unit, node: ast.AST) -> bool:
    """Whether something else is done where a name is not there."""
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    inner = node
    for outer in unit.ancestors(node):
        handlers = outer.handlers if isinstance(outer, ast.Try) and inner in outer.body else ()
        if any(_handles(handler, is_import) for handler in handlers):
            return True
        inner = outer
    return False


def _handles(handler: ast.ExceptHandler, is_import: bool) -> bool:
    """Whether a handler thinks of an import that fails, or of an attribute that is not there."""
    if handler.type is None:
        return is_import
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    thought_of = WITHOUT_IMPORT if is_import else WITHOUT_NAME
    return any(isinstance(kind, ast.Name) and kind.id in thought_of for kind in kinds)


def _index(unit: Unit, function: ast.expr, row: Removed, names: _Names) -> Iterator[ast.AST]:
    """The `jax.ops.index` of `function(x, jax.ops.index[…], y)`, which goes with it."""
    call = unit.parents.get(function)
    if ".at[" in row.to and isinstance(call, ast.Call) and call.func is function:
        match updated(call):
            case Update(index=ast.Subscript(value=value)) if names.full_name(value) == INDEX:
                yield from ast.walk(value)


def _is_popped_pair(node: ast.Assign) -> bool:
    """`state, params = variables.pop("params")`."""
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=[_, _])],
            value=ast.Call(
                func=ast.Attribute(attr="pop"), args=[ast.Constant(value=str(name))], keywords=[]
            ),
        ):
            return name in POPPED
    return False
