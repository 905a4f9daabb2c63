"""Imports of modules of the project, of which a file read nothing but legacy names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from codemods.analysis.facts import Facts
from codemods.inference.objects import External, Module
from codemods.inference.recorded import Import
from codemods.planning.exporting import Exports, loads
from codemods.sources.modules import Unit
from codemods.vocabulary import OUTSIDE

KNOWN = {*OUTSIDE} - {"builtins"}
"""The packages of which a decorator only gives another function or class."""


def replaced_modules(unit: Unit, exports: Exports) -> Iterator[Import]:
    """The imports of modules at the top of a file that the edits leave without a reader.

    Those that do more than bind a name are not among them.
    """
    facts = exports.facts
    scope = facts.flow.modules[unit]
    for statement in unit.tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        for alias in statement.names:
            name = alias.asname or alias.name
            item = Import(unit, statement, alias, scope, name, "")
            match [*facts.flow.solver.at(("variable", scope, name))]:
                # import optimizers, from package import optimizers
                case [Module(unit=Unit() as module)]:
                    if not loads(unit, item, facts) or exports.remaining(item):
                        continue
                    is_needed = _is_attribute(module, facts)
                    if not is_needed and not _has_effects(module, unit, facts):
                        yield item


def _is_attribute(module: Unit, facts: Facts) -> bool:
    """Whether a file reads a module from its package, which has it once some file imports it.

    Or perhaps by its name: `sys.modules["optimizers"]`.
    """
    path = PurePosixPath(module.path)
    word = path.parent.name if module.is_package else path.stem
    texts = [unit.code for unit in facts.project.read]
    quoted = re.compile(rf"""["'][\w.]*\b{re.escape(word)}["']""")
    if any(map(quoted.search, (*texts, *facts.others.values()))):
        return True
    for _, owner in facts.flow.engine.index.attributes_read.get(word, ()):
        for item in facts.objects(owner):
            # package.optimizers, if the package itself imports no such name
            if isinstance(item, Module) and not (
                item.unit is not None and item.unit.names_bound[word]
            ):
                return True
    # a file that is not read
    return any(f".{word}." in text for text in facts.others.values())


def _has_effects(module: Unit, importer: Unit, facts: Facts) -> bool:
    """Whether the import of a module does more than bind names, there or in what it imports."""
    units = {unit.path: unit for unit in facts.project.read}
    seen = {importer.path}
    pending = [module.path]
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        unit = units.get(path)
        if unit is None or any(_does_more(one, facts) for one in unit.tree.body):
            return True
        packages = _packages_around(path)
        pending += facts.graphs[0][path]
        pending += [one for one in packages if one in units or one in facts.others]
    return False


def _packages_around(path: str) -> list[str]:
    """The files, as far as they exist, that are imported ahead of a module in packages."""
    return [str(folder / "__init__.py") for folder in PurePosixPath(path).parents]


def _does_more(statement: ast.stmt, facts: Facts) -> bool:
    """Whether a statement of a module may do more than bind names."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            return False
        # a docstring
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.FunctionDef():
            decorators, bases = statement.decorator_list, []
        # class Own(Base), which may list the classes that derive from it
        case ast.ClassDef(keywords=[]):
            decorators, bases = statement.decorator_list, statement.bases
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
            return any(isinstance(part, ast.Call) for part in ast.walk(statement))
        case _:
            return True
    # @jax.jit, not @register
    is_known = all(KNOWN.issuperset(_packages(one, facts)) for one in decorators)
    return not is_known or any("" in _packages(base, facts) for base in bases)


def _packages(node: ast.expr, facts: Facts) -> set[str]:
    """The packages that a decorator or base may be of; `""` for the project and what is unknown."""
    function = node.func if isinstance(node, ast.Call) else node
    items = facts.objects(function)
    names = [item.name if isinstance(item, External) else "" for item in items]
    return {name.partition(".")[0] for name in names or [""]}
