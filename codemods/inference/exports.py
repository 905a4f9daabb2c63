"""The names that a star import brings: what a module binds and lists, itself or by stars."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

LIST = "__all__"


def open_stars(
    modules: Mapping[Unit, Scope],
    stars: Iterable[tuple[Unit, ast.ImportFrom]],
    found: Callable[[Unit, ast.ImportFrom], Iterable[Unit]],
    members: Callable[[str], Iterable[str]],
) -> None:
    """Let every module bind the names that its star imports bring, to the fixed point.

    Args:
      modules: the scope of each module, with the names that it binds itself.
      stars: the star imports.
      found: the modules of the project that a star import means; none if it is from outside.
      members: the names that a star import of a module outside is known to bring.
    """
    opened = [(modules[unit], node) for unit, node in stars]
    for scope, node in opened:
        is_outside = not list(found(scope.unit, node))
        if is_outside:
            scope.names.update(members(node.module or ""))
    # Modules may import stars from each other, in a circle.
    changed = True
    while changed:
        changed = False
        for scope, node in opened:
            sources = found(scope.unit, node)
            brought = [exported(modules[unit]) for unit in sources]
            new = set[str]().union(*brought) - scope.names
            if new:
                scope.names |= new
                changed = True


def exported(scope: Scope) -> set[str]:
    """The names that a star import of a module brings: all of them, if `__all__` is computed."""
    if LIST not in scope.names:
        return {name for name in scope.names if not name.startswith("_")}
    listed = _listed(scope.unit)
    if listed is None:
        return scope.names - {LIST}
    return listed


def stars_of(unit: Unit) -> list[ast.ImportFrom]:
    """The star imports of a module."""
    imports = (node for node in unit.nodes if isinstance(node, ast.ImportFrom))
    return [node for node in imports if node.names[0].name == "*"]


def _listed(unit: Unit) -> set[str] | None:
    """The names in `__all__`, or more than these; None if it is not written out."""
    names: set[str] = set()
    for node in unit.nodes:
        if isinstance(node, ast.Name) and node.id == LIST:
            added = _added(unit, node)
            if added is None:
                return None
            names |= added
    return names


def _added(unit: Unit, node: ast.Name) -> set[str] | None:
    """The names that one mention of `__all__` puts into it; None if they are computed."""
    match unit.parents[node]:
        # __all__ = ["Model"], __all__ += ["train"]
        case (
            ast.Assign(targets=[_], value=value)
            | ast.AugAssign(op=ast.Add(), value=value)
        ):
            return _words(value)
        # __all__: list[str] = ["Model"]
        case ast.AnnAssign(value=value):
            return set() if value is None else _words(value)
        # __all__.extend(["Model", "train"])
        case ast.Attribute(attr="append" | "extend") as method:
            call = unit.parents[method]
            if not isinstance(call, ast.Call) or len(call.args) != 1:
                return None
            if method.attr == "append":
                return _words(ast.List(call.args))
            return _words(call.args[0])
        case _:
            return None


def _words(node: ast.expr) -> set[str] | None:
    if not isinstance(node, ast.List | ast.Tuple | ast.Set):
        return None
    words: set[str] = set()
    for part in node.elts:
        match part:
            case ast.Constant(value=str(word)):
                words.add(word)
            # __all__ = [Model.__name__]
            case _:
                return None
    return words
