"""Imports by a name that is computed: which modules may be meant."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

ANY = re.compile(r".*")
BY_FILE = ("run_path", "spec_from_file_location", "load_source")


def named_module(call: ast.Call, package: str) -> str | re.Pattern[str]:
    """What `import_module(name, package)` imports: a dotted name, or the pattern of one that is not known whole.

    Args:
      call: the call; its first argument is the name.
      package: the dotted name of the package that the calling module is in.
    """
    files = [stem for argument in call.args[:2] for stem in _files(argument)]
    if files or ast.unparse(call.func).endswith(BY_FILE):
        return re.compile(re.escape(files[-1])) if files else ANY
    words = _words(call.args[0]) if call.args else None
    if words is None:
        return ANY
    if _is_old_form(call) and words[0] is not None:
        words = [words[0].partition(".")[0]]
    if words and words[0] is not None and words[0].startswith("."):
        words = [_package(call, package), *words]
    if None not in words:
        return "".join(word for word in words if word is not None)
    return re.compile("".join(r"[\w.]*" if word is None else re.escape(word) for word in words))


def _files(argument: ast.expr) -> list[str]:
    """The names, without ending, of the files with code that an expression says."""
    texts = [
        part.value
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    paths = [PurePosixPath(text) for text in texts if text.endswith(".py")]
    return [path.stem for path in paths if path.suffix]


def _is_old_form(call: ast.Call) -> bool:
    """Whether this is `__import__("package.module")`, which gives the package."""
    return (
        isinstance(call.func, ast.Name)
        and call.func.id == "__import__"
        and len(call.args) < 4
        and not call.keywords
    )


def _package(call: ast.Call, own: str) -> str | None:
    """The package to which a relative name relates."""
    given = next((word.value for word in call.keywords if word.arg == "package"), None)
    anchor = given or (call.args[1] if len(call.args) > 1 else None)
    match anchor:
        case ast.Constant(value=str(name)):
            return name
        case ast.Name(id="__package__" | "__name__"):
            return own
        case _:
            return None


def _words(node: ast.expr) -> list[str | None] | None:
    """The parts of a string, None for each that is not known; None if nothing of it is."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return [str(part.value) if isinstance(part, ast.Constant) else None for part in values]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*(_words(left) or [None]), *(_words(right) or [None])]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _holes(re.split(r"\{[^{}]*\}", text))
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _holes(re.split(r"%\w", text))
        case _:
            return None


def _holes(texts: list[str]) -> list[str | None]:
    found: list[str | None] = [texts[0]]
    for text in texts[1:]:
        found += [None, text]
    return found
