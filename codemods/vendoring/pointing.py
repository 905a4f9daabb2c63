"""The imports of a file, pointed from one module at another: at a copy of it, or back."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.sources.places import said
from codemods.vendoring.module_names import Bindings, BoundModule, Statement
from codemods.vendoring.splicing import Splice, behind, extent, spliced, without


def importing(
    unit: Unit, modules: Collection[str], spared: Collection[int] = ()
) -> Iterator[ast.stmt | ast.expr]:
    """The statements and expressions of a file that import one of some modules."""
    for node in _importing(unit, Bindings(unit, modules)):
        if node.lineno not in spared:
            yield node


def _importing(unit: Unit, bindings: Bindings) -> Iterator[ast.stmt | ast.expr]:
    """The statements and expressions of a file that import a module."""
    # from flax.optim import Adam
    yield from bindings.froms
    # from flax import optim
    yield from (one.statement for one in bindings.modules_bound)
    # flax.optim.Adam
    yield from (node for node, _ in bindings.uses)
    # import flax.optim
    for one in bindings.packages_bound:
        statement = one.statement
        if not isinstance(statement, ast.Import):
            continue
        if any(bindings.within(alias.name) for alias in statement.names):
            yield statement


def import_of(module: str, name: str) -> str:
    """The statement that binds a name to a module."""
    package, _, last = module.rpartition(".")
    # from . import legacy_optim
    if not package and module.startswith("."):
        package = "."
    # from .. import legacy_optim: one of its dots has been taken for the separator
    elif package and not package.strip("."):
        package += "."
    renamed = "" if last == name else f" as {name}"
    imported = f"import {last}{renamed}"
    return f"from {package} {imported}" if package else imported


@dataclass
class _Change:
    """The changes of one import: the names to take out, and the new statements."""

    removed: list[ast.alias] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


class Pointing:
    """The imports and dotted names of a file, pointed from the old names of a module at a new one.

    With `in_line` the lines keep their numbers: a new statement stands behind a semicolon. What
    begins on one of the lines `spared` stays.
    """

    def __init__(
        self,
        unit: Unit,
        old: Collection[str],
        new: str,
        in_line: bool = False,
        spared: Collection[int] = (),
    ) -> None:
        self.unit, self.new, self.in_line, self.spared = unit, new, in_line, spared
        self.bindings = Bindings(unit, old)
        self.changes: dict[Statement, _Change] = defaultdict(_Change)
        self.splices: list[Splice] = []
        self.local = self._free_name()

    def code(self) -> str:
        """The new code."""
        for node in self.bindings.froms:
            if self._is_touched(node):
                self._exchange_module(node)
        for one in self.bindings.modules_bound:
            if self._is_touched(one.statement):
                module = self.new + one.rest
                self._exchange(one, import_of(module, one.name))
        self._point_dotted()
        for statement, change in self.changes.items():
            self._write(statement, change)
        return spliced(self.unit.code, self.splices)

    def _is_touched(self, node: ast.stmt | ast.expr) -> bool:
        return node.lineno not in self.spared

    def _free_name(self) -> str:
        """The name of the module where the file had a dotted name."""
        name = self.new.rpartition(".")[2]
        bound = Counter(self.unit.names_bound)
        bound.subtract(one.name for one in self.bindings.modules_bound)
        while bound[name] > 0:
            name += "_"
        return name

    def _exchange_module(self, node: ast.ImportFrom) -> None:
        """Replace the module in `from flax.optim import Adam`."""
        module = said(node)
        found = self.bindings.within(module)
        assert found is not None
        _, rest = found
        start, end = extent(self.unit, node)
        head = re.compile(rf"from(\s*){re.escape(module)}(?=\s)")
        match = head.match(self.unit.code, start, end)
        if match is not None:
            # from.legacy_optim import Adam
            space = match[1] or " "
            text = f"from{space}{self.new}{rest}"
            self.splices.append((start, match.end(), text))

    def _exchange(self, one: BoundModule, statement: str) -> None:
        change = self.changes[one.statement]
        if one.alias not in change.removed:
            change.removed.append(one.alias)
        change.new.append(statement)

    # Dotted names

    def _point_dotted(self) -> None:
        """Replace names such as `flax.optim`, and the imports that bind `flax`."""
        scopes: set[Scope | None] = set()
        for node, scope in self.bindings.uses:
            if self._is_touched(node):
                scopes.add(scope)
                start, end = extent(self.unit, node)
                self.splices.append((start, end, self.local))
        bound: dict[Scope | None, list[BoundModule]] = defaultdict(list)
        for one in self.bindings.packages_bound:
            bound[one.scope].append(one)
        for scope, found in bound.items():
            self._import_for(found, is_used=scope in scopes)

    def _import_for(self, bound: list[BoundModule], is_used: bool) -> None:
        """Import the module where a scope has a package around it.

        The import of the package is removed if nothing needs it any more.
        """
        naming = [one for one in bound if self._names_module(one)]
        dotted = [one for one in naming if self._is_touched(one.statement)]
        others = [one for one in bound if not self._names_module(one)]
        bound_by_others = {one.name for one in others}
        statement = import_of(self.new, self.local)
        is_needed = any(self._still_read(one) for one in bound)
        for one in dotted:
            # import flax.optim, where `flax` is still read, becomes `import flax` and a new import
            if is_needed and one.name not in bound_by_others:
                self._exchange(one, f"import {one.name}")
                is_needed = False
            self._exchange(one, statement)
        if dotted or not is_used:
            return
        # import flax, where only `flax.optim` was read, becomes a new import
        first = others[0]
        # from flax import deprecated
        is_from = isinstance(first.statement, ast.ImportFrom)
        is_plain = is_from or "." not in first.alias.name
        # other files may read what a package imports
        is_unread = not is_needed and not self.unit.is_package
        # `flax.nn` and `flax.deprecated.nn` are both missing in it
        is_alone = len({one.alias for one in others}) == 1
        if is_plain and is_unread and is_alone:
            self._exchange(first, statement)
        else:
            self.changes[first.statement].new.append(statement)

    def _names_module(self, one: BoundModule) -> bool:
        """Whether an import such as `import flax.optim` names the module, but binds a package."""
        alias = one.alias
        is_dotted = isinstance(one.statement, ast.Import) and not alias.asname
        return is_dotted and self.bindings.within(alias.name) is not None

    def _still_read(self, one: BoundModule) -> bool:
        """Whether a name is read otherwise than in the dotted name of the module."""
        # optimizer: "flax.core.FrozenDict"
        word = re.compile(rf"(?<![\w.]){one.name}(?!\w)")
        if any(map(word.search, _quoted_annotations(self.unit))):
            return True
        uses = (node for node, _ in self.bindings.uses if self._is_touched(node))
        pointed_uses = {id(_root(node)) for node in uses}
        reads = self.bindings.loads(one.name, one.scope)
        return any(id(node) not in pointed_uses for node in reads)

    def _write(self, statement: Statement, change: _Change) -> None:
        unit, in_line = self.unit, self.in_line
        new = list(dict.fromkeys(change.new))
        # from flax import optim, struct
        if len(change.removed) < len(statement.names):
            self.splices += without(unit, statement, change.removed, in_line)
        # from flax import optim
        elif new:
            start, end = extent(unit, statement)
            self.splices.append((start, end, new.pop(0)))
        if new:
            self.splices.append(behind(unit, statement, new, in_line))


def _quoted_annotations(unit: Unit) -> Iterator[str]:
    """The texts of the strings that are annotations, or parts of them."""
    for node in unit.nodes:
        # optimizer: "optim.Optimizer", def create() -> "optim.Optimizer"
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            for part in ast.walk(annotation) if annotation is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node
