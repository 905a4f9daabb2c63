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


def _listed(unit: Unit) -> set[str] | None:
    """The names in `__all__`, or more than these; None if it is not written out."""
    names: set[str] = set()
    for node in unit.nodes:
        if not isinstance(node, ast.Name) or node.id != LIST:
            continue
        match unit.parents[node]:
            # __all__ = ["Model"], __all__ += ["train"]
            case (
                ast.Assign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))
                | ast.AnnAssign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))
                | ast.AugAssign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))
            ):
                words = [one.value for one in parts if isinstance(one, ast.Constant)]
                # __all__ = [Model.__name__]
                if len(words) < len(parts):
                    return None
                names.update(map(str, words))
            case _:
                return None
    return names
