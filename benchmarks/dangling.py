"""Which names of JAX, Flax, optax and NumPy a tree uses that are not there, before and after `rewrite --modernize`.

python -m benchmarks.dangling TREE... [--names]

Each dotted name that an import binds is looked up in the installed packages themselves, apart from the table that the rewriter
has. A name counts once for each file; one that an `except` stands ready for does not. What is left of `flax.optim`, which
optimizers that stay still need, is counted apart. Told is what the report names, as a site that is left or as a hint, or what
stands on a line of such a site. With `--names`, each name that is left is shown, with the number of its files, and of those whose
report says nothing of it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from benchmarks.scan import code_of
from codemods.model import FileResult, Options
from optim2optax.project import Patterns, find_files
from optim2optax.rewriting import rewrite_files

PACKAGES = ("flax", "jax", "jaxlib", "numpy", "optax")


@cache
def exists(name: str) -> bool:
    """Whether a full name means something in the installed packages. What is private counts as there."""
    *above, last = name.split(".")
    if not above:
        return importlib.util.find_spec(name) is not None
    if last.startswith("_"):
        return True
    owner = _object(".".join(above))
    return (
        owner is None
        or _has(owner, last)
        or _object(name) is not None
        or _is_module(name)
    )


def _is_module(name: str) -> bool:
    """Whether there is such a module, though it may need a package that is not installed."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@cache
def _object(name: str) -> object:
    """What a name means: a module, or what is in one; None if nothing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        above, _, last = name.rpartition(".")
        owner = _object(above) if above else None
        return (
            getattr(owner, last, None)
            if owner is not None and _has(owner, last)
            else None
        )


def _has(owner: object, name: str) -> bool:
    try:
        return hasattr(owner, name)
    except Exception:  # noqa: BLE001 - what a package raises for what it has removed
        return False


def dangling(code: str) -> dict[str, set[int]]:
    """The names in a file that are not there, with their lines; of a name whose package is not there, that package."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return {}
    bound: dict[str, set[str]] = {}
    asked: dict[str, set[int]] = defaultdict(set)
    for name, target, said, line in _imports(tree):
        bound.setdefault(name, set()).add(target)
        asked[said].add(line)
    others = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    others |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    guarded = _guarded(tree, ("AttributeError",))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in guarded:
            root: ast.expr = node
            steps: list[str] = []
            while isinstance(root, ast.Attribute):
                steps.insert(0, root.attr)
                root = root.value
            if (
                isinstance(root, ast.Name)
                and root.id not in others
                and len(bound.get(root.id, ())) == 1
            ):
                asked[".".join((*bound[root.id], *steps))].add(node.lineno)
    missing: dict[str, set[int]] = defaultdict(set)
    for name, lines in asked.items():
        if found := _first_missing(name):
            missing[found] |= lines
    return missing


def _guarded(tree: ast.Module, handled: Collection[str] = ()) -> set[int]:
    """The nodes for whose failure a handler is ready: of some exceptions, or if none are given, of any."""
    return {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.Try)
        if not handled
        or any(_names(handler) & {*handled} for handler in outer.handlers)
        for one in outer.body
        for node in ast.walk(one)
    }


def _names(handler: ast.ExceptHandler) -> set[str]:
    """The names of the exceptions that a handler handles."""
    return (
        {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
        if handler.type
        else set()
    )


def _first_missing(name: str) -> str:
    """The shortest part of a name that is not there, up to the first that is no module; empty if all is there."""
    steps = name.split(".")
    for count in range(2, len(steps) + 1):
        part = ".".join(steps[:count])
        if not exists(part):
            return part
        if not isinstance(_object(part), type(ast)):
            return ""
    return ""


def _imports(tree: ast.Module) -> Iterator[tuple[str, str, str, int]]:
    """What the imports of a file bind, to what, what they name and on which line, where nothing is ready for their failure."""
    guarded = _guarded(tree)
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in PACKAGES:
                    whole = alias.asname or "." not in alias.name
                    root = alias.name.partition(".")[0]
                    yield (
                        alias.asname or root,
                        alias.name if whole else root,
                        alias.name,
                        node.lineno,
                    )
        elif (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and (node.module or "").partition(".")[0] in PACKAGES
        ):
            for alias in node.names:
                name = (
                    node.module if alias.name == "*" else f"{node.module}.{alias.name}"
                )
                yield (alias.asname or alias.name, str(name), str(name), node.lineno)


def counted(contents: Iterable[tuple[str, bytes]]) -> Counter[str]:
    """In how many files each name dangles."""
    return Counter(
        name for path, content in contents for name in dangling(code_of(path, content))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--names", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'tree':40} {'files':>6} {'before':>7} {'after':>7} {'told':>7} {'flax.optim':>11}"
    )
    totals: Counter[str] = Counter()
    left: Counter[str] = Counter()
    untold: Counter[str] = Counter()
    for tree in options.trees:
        results = rewrite_files(
            find_files([str(tree)], Patterns(str(tree), ())),
            Options(modernize=True),
            write=False,
        )
        before = counted((result.path, result.before) for result in results)
        after = {
            result.path: dangling(code_of(result.path, result.after))
            for result in results
        }
        names = Counter(name for found in after.values() for name in found)
        silent = Counter(
            name
            for result in results
            for name in after[result.path]
            if not _is_told(result, name)
        )
        legacy = sum(
            count for name, count in names.items() if name.startswith("flax.optim")
        )
        row = {
            "files": len(results),
            "before": before.total(),
            "after": names.total() - legacy,
            "told": names.total()
            - legacy
            - sum(n for name, n in silent.items() if not name.startswith("flax.optim")),
            "flax.optim": legacy,
        }
        totals.update(row)
        left.update(names)
        untold.update(silent)
        _print(tree.name, row)
    _print("all", totals)
    if options.names:
        for name, count in sorted(left.items(), key=lambda item: (-item[1], item[0])):
            print(
                f"{count:5} {name}{'' if not untold[name] else f'   not told in {untold[name]}'}"
            )


def _is_told(result: FileResult, name: str) -> bool:
    """Whether the report speaks of a name, of one below or above it, or of what stands on one of its lines."""
    sites = [
        *(site for site in result.sites if site.status == "unresolved"),
        *result.hints,
    ]
    told = {part for site in sites for part in site.message.split("`")[1::2]}
    if any(
        f"{name}.".startswith(f"{one}.") or f"{one}.".startswith(f"{name}.")
        for one in told
    ):
        return True
    lines = dangling(code_of(result.path, result.before)).get(name, set())
    return any(site.line <= line <= site.end_line for site in sites for line in lines)


def _print(name: str, row: Counter[str] | dict[str, int]) -> None:
    print(
        f"{name:40} {row['files']:6} {row['before']:7} {row['after']:7} {row['told']:7} {row['flax.optim']:11}",
        flush=True,
    )


if __name__ == "__main__":
    main()
