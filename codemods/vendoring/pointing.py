"""The imports of one file, pointed from one place of a module at another: at a copy of `flax.optim`, or back."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from codemods.dataflow.bindings import bound_anywhere
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vendoring.bindings import Bindings, Bound, Statement, said
from codemods.vendoring.splicing import Splice, behind, extent, spliced, without
from codemods.vendoring.strings import imported_by, names_in_strings, quoted_annotations


@dataclass(frozen=True)
class Way:
    """From which names of a module to which: as a file imports it, and in full, as strings name it.

    With `in_line` the lines keep their numbers: what needs a statement more stands behind a semicolon. What begins on one of the
    lines `spared` stays.
    """

    old: Collection[str]
    new: str
    old_full: str
    new_full: str
    in_line: bool = False
    spared: Collection[int] = ()


def imports_any(unit: Unit, modules: Collection[str], spared: Collection[int] = ()) -> bool:
    """Whether a file imports one of some modules, or something of it, by a statement or `import_module`."""
    bindings = Bindings(unit, modules)
    nodes = (
        *bindings.froms,
        *(one.statement for one in bindings.modules_bound),
        *(one.node for one in bindings.uses),
    )
    dotted = (
        one.statement for one in bindings.packages_bound if isinstance(one.statement, ast.Import)
    )
    named = (node for node in dotted if any(bindings.within(alias.name) for alias in node.names))
    by_name = (
        node
        for node in unit.nodes
        if isinstance(node, ast.Call) and bindings.within(imported_by(node))
    )
    return any(node.lineno not in spared for node in (*nodes, *named, *by_name))


def pointed(unit: Unit, way: Way) -> str:
    """The code of a file whose imports, dotted names, quoted annotations and names in strings are pointed at another module."""
    return _Pointing(unit, way).code()


def import_of(module: str, name: str) -> str:
    """The statement that binds a name to a module."""
    package, _, last = module.rpartition(".")
    if not package and module.startswith("."):
        package = "."
    elif package and not package.strip("."):
        package += "."
    renamed = "" if last == name else f" as {name}"
    return f"from {package} import {last}{renamed}" if package else f"import {last}{renamed}"


@dataclass
class _Change:
    """What becomes of one import: the names that go out of it, and the statements that come."""

    gone: list[ast.alias] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


class _Pointing:
    def __init__(self, unit: Unit, way: Way) -> None:
        self.unit, self.way = unit, way
        self.bindings = Bindings(unit, way.old)
        self.changes: dict[Statement, _Change] = defaultdict(_Change)
        self.splices: list[Splice] = []
        self.local = self._free_name()

    def code(self) -> str:
        """The new code."""
        for node in self._touched(self.bindings.froms):
            self._exchange_module(node)
        for one in self.bindings.modules_bound:
            if one.statement.lineno not in self.way.spared:
                self._exchange(one, import_of(self.way.new + one.rest, one.name))
        quoted = self._quoted_annotations()
        self._point_dotted(
            {one.scope for one in self.bindings.uses if one.node.lineno not in self.way.spared},
            quoted,
        )
        spliced_names = names_in_strings(self.unit, self.way.old_full, self.way.new_full)
        self.splices += [splice for line, splice in spliced_names if line not in self.way.spared]
        for statement, change in self.changes.items():
            self._write(statement, change)
        return spliced(self.unit.code, self.splices)

    def _touched(self, nodes: Sequence[ast.ImportFrom]) -> Iterator[ast.ImportFrom]:
        return (node for node in nodes if node.lineno not in self.way.spared)

    def _free_name(self) -> str:
        """What the module is called where the file had a dotted name."""
        name = self.way.new.rpartition(".")[2]
        bound = Counter(bound_anywhere(self.unit))
        bound.subtract(one.name for one in self.bindings.modules_bound)
        while bound[name] > 0:
            name += "_"
        return name

    def _exchange_module(self, node: ast.ImportFrom) -> None:
        found = self.bindings.within(said(node))
        assert found is not None
        start, end = extent(self.unit, node)
        match = re.compile(rf"from(\s*){re.escape(said(node))}(?=\s)").match(
            self.unit.code, start, end
        )
        if match is not None:
            self.splices.append(
                (start, match.end(), f"from{match[1] or ' '}{self.way.new}{found[1]}")
            )

    def _exchange(self, one: Bound, statement: str) -> None:
        change = self.changes[one.statement]
        change.gone.append(one.alias)
        change.new.append(statement)

    # Dotted names

    def _point_dotted(self, scopes: set[Scope | None], quoted: Sequence[Splice]) -> None:
        for use in self.bindings.uses:
            if use.node.lineno not in self.way.spared:
                self.splices.append((*extent(self.unit, use.node), self.local))
        self.splices += quoted
        if quoted:
            scopes = {
                *scopes,
                *(
                    one.scope
                    for one in self.bindings.packages_bound
                    if one.scope and not one.scope.parent
                ),
            }
        bound: dict[Scope | None, list[Bound]] = defaultdict(list)
        for one in self.bindings.packages_bound:
            bound[one.scope].append(one)
        for scope, found in bound.items():
            self._import_for(found, is_used=scope in scopes)

    def _import_for(self, bound: list[Bound], is_used: bool) -> None:
        """Import the module where a scope has a package around it, and drop what nothing needs any more."""
        dotted = [
            one
            for one in bound
            if self._names_module(one) and one.statement.lineno not in self.way.spared
        ]
        others = [one for one in bound if not self._names_module(one)]
        statement = import_of(self.way.new, self.local)
        is_needed = any(self._still_read(one) for one in bound)
        for one in dotted:
            if is_needed and not any(other.name == one.name for other in others):
                self._exchange(one, f"import {one.name}")
                is_needed = False
            self._exchange(one, statement)
        if dotted or not is_used:
            return
        first = others[0]
        is_plain = isinstance(first.statement, ast.Import) and "." not in first.alias.name
        if is_plain and not is_needed and not self.unit.is_package and len(others) == 1:
            self._exchange(first, statement)
        else:
            self.changes[first.statement].new.append(statement)

    def _names_module(self, one: Bound) -> bool:
        """Whether an import such as `import flax.optim` names the module by which it binds a package."""
        is_dotted = isinstance(one.statement, ast.Import) and not one.alias.asname
        return is_dotted and self.bindings.within(one.alias.name) is not None

    def _still_read(self, one: Bound) -> bool:
        """Whether a name is read otherwise than on the way to the module."""
        pointed_uses = {
            id(_root(use.node))
            for use in self.bindings.uses
            if use.node.lineno not in self.way.spared
        }
        other = re.compile(
            rf"(?<![\w.]){one.name}(?!\w)(?!\.{re.escape('.'.join(one.missing))}(?!\w))"
        )
        quoted = any(other.search(self.unit.source(node)) for node in quoted_annotations(self.unit))
        return quoted or any(
            id(node) not in pointed_uses for node in self.bindings.loads(one.name, one.scope)
        )

    def _quoted_annotations(self) -> list[Splice]:
        """What becomes of the quoted annotations that say the module by a dotted name."""
        ways = {
            (one.name, *one.missing)
            for one in self.bindings.packages_bound
            if one.scope and not one.scope.parent
        }
        names = "|".join(re.escape(".".join(way)) for way in sorted(ways))
        word = re.compile(rf"(?<![\w.])(?:{names})(?!\w)")
        nodes = (
            node
            for node in quoted_annotations(self.unit)
            if ways and node.lineno not in self.way.spared
        )
        found = (
            match
            for node in nodes
            for match in word.finditer(self.unit.code, *extent(self.unit, node))
        )
        return [(*match.span(), self.local) for match in found]

    def _write(self, statement: Statement, change: _Change) -> None:
        new = list(dict.fromkeys(change.new))
        if len(change.gone) < len(statement.names):
            self.splices += without(self.unit, statement, change.gone, self.way.in_line)
        elif new:
            self.splices.append((*extent(self.unit, statement), new.pop(0)))
        if new:
            self.splices.append(behind(self.unit, statement, new, self.way.in_line))


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node
