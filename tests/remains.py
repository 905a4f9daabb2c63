"""What is left of legacy optimizers in a file, told without flow, evidence, or anything of the rewriter that it judges."""

import ast
import re
import sys
from collections.abc import Collection, Iterator

METHODS = {"apply_gradient", "compute_gradient", "compute_gradients"}
METHODS |= {"optimizer_def", "param_states"}
"""Attributes that nothing but a legacy optimizer has."""

ELSEWHERE = sys.stdlib_module_names | {"jax", "numpy", "optax"}
"""Packages that have no legacy optimizer anywhere."""

OPTIMIZER = re.compile(
    r"opt(?:im|imizer)?(?:_|$|\d)|_opt$|_optimizer$|optimizer$", re.IGNORECASE
)


def own_members(code: str) -> set[str]:
    """Those of METHODS that a file's own classes define, and that a tree therefore has for other reasons. Raises SyntaxError."""
    own = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef) and not any(
            "Optim" in ast.unparse(base) for base in node.bases
        ):
            own |= set(filter(None, map(_defined, ast.walk(node))))
    return own & METHODS


def _defined(node: ast.AST) -> str | None:
    """The name of what a part of a class defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.AnnAssign(target=target):
            return ast.unparse(target)
    return None


def remains(code: str, own: Collection[str] = ()) -> dict[int, str]:
    """The lines of a file that name something of `flax.optim`, or what only its objects have, each with what it names.

    Attributes in `own` do not count. Raises SyntaxError.
    """
    tree = ast.parse(code)
    names = dict(_imported(tree))
    others = set(_of_others(tree))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.Name | ast.Attribute):
            named = [_resolved(node, names)]
        else:
            continue
        if legacy := [name for name in named if f"{name}.".startswith("flax.optim.")]:
            found[node.lineno] = legacy[0]
        elif (
            isinstance(node, ast.Attribute)
            and node.attr not in own
            and node not in others
            and _is_member(node, code, names)
        ):
            found[node.lineno] = f".{node.attr}"
    return found


def _of_others(tree: ast.Module) -> Iterator[ast.expr]:
    """Methods that are given what no legacy method takes: a function in the place of gradients, or another keyword."""
    functions = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="apply_gradient") as method,
                args=args,
                keywords=words,
            ):
                has_function = any(
                    isinstance(one, ast.Lambda)
                    or (isinstance(one, ast.Name) and one.id in functions)
                    for one in args
                )
                if has_function or {word.arg for word in words} & {"flax_mutables"}:
                    yield method


def _imported(tree: ast.Module) -> list[tuple[str, str]]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names.append((alias.asname, alias.name) if alias.asname else (top, top))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names.append((alias.asname or alias.name, whole))
    return names


def _resolved(node: ast.AST, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        return f"{_resolved(node.value, names)}.{node.attr}"
    return ""


def _is_member(node: ast.Attribute, code: str, names: dict[str, str]) -> bool:
    top = _resolved(node.value, names).partition(".")[0]
    if top in ELSEWHERE or ("jax" not in code and "flax" not in code):
        return False
    owner = node.value
    while isinstance(owner, ast.Subscript | ast.Call):
        owner = owner.value if isinstance(owner, ast.Subscript) else owner.func
    name = str(getattr(owner, "attr", None) or getattr(owner, "id", ""))
    if node.attr == "optimizer_def" and name == "self":
        return False  # a field of a class of the file's own
    return node.attr in METHODS or (
        node.attr == "target" and OPTIMIZER.search(name) is not None
    )
