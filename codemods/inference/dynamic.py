"""Imports by a name that is computed: which modules may be meant."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import PurePosixPath

ANY = re.compile(r".*")
BY_FILE = ("run_path", "spec_from_file_location", "load_source")


def named_module(call: ast.Call, package: str) -> str | re.Pattern[str]:
    """What `import_module(name, package)` imports: a dotted name, or a pattern of names.

    Args:
      call: the call; its first argument is the name.
      package: the dotted name of the package that the calling module is in.
    """
    named = map(_files, call.args[:2])
    files = [*chain.from_iterable(named)]
    # spec_from_file_location("model", directory + "/model.py")
    if files:
        file = re.escape(files[-1])
        return re.compile(file)
    if ast.unparse(call.func).endswith(BY_FILE):
        return ANY
    words = _words(call.args[0]) if call.args else None
    if words is None:
        return ANY
    if _is_old_form(call) and words[0] is not None:
        outermost, _, _ = words[0].partition(".")
        words = [outermost]
    first = words[0] if words else None
    # import_module(".models", package="project")
    if first is not None and first.startswith("."):
        words = [_package(call, package), *words]
    known = [word for word in words if word is not None]
    if len(known) == len(words):
        return "".join(known)
    # import_module(f"configs.{name}")
    pattern = "".join(map(_pattern, words))
    return re.compile(pattern)


def _pattern(word: str | None) -> str:
    """The pattern of a part of a dotted name, which may not be known."""
    return r"[\w.]*" if word is None else re.escape(word)


def _files(argument: ast.expr) -> list[str]:
    """The names, without ending, of the Python files that an expression names."""
    found: list[str] = []
    for part in ast.walk(argument):
        match part:
            case ast.Constant(value=str(text)) if text.endswith(".py"):
                path = PurePosixPath(text)
                # ".py" alone is an ending that is added to a name
                if path.suffix:
                    found.append(path.stem)
    return found


def _is_old_form(call: ast.Call) -> bool:
    """Whether this is `__import__("package.module")`, which gives the package."""
    is_import = isinstance(call.func, ast.Name) and call.func.id == "__import__"
    # With a fourth argument, a list of names, it gives the module.
    return is_import and len(call.args) < 4 and not call.keywords


def _package(call: ast.Call, own: str) -> str | None:
    """The package to which a relative name relates."""
    anchor = call.args[1] if len(call.args) > 1 else None
    for word in call.keywords:
        if word.arg == "package":
            anchor = word.value
            break
    match anchor:
        case ast.Constant(value=str(name)):
            return name
        case ast.Name(id="__package__" | "__name__"):
            return own
        case _:
            return None


def _words(node: ast.expr) -> list[str | None] | None:
    """The parts of a string, None for each that is not known; None if none of them is."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        # f"configs.{name}"
        case ast.JoinedStr(values=values):
            return [_literal(part) for part in values] or [""]
        # "configs." + name
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first = _words(left) or [None]
            second = _words(right) or [None]
            return [*first, *second]
        # "configs.{}".format(name)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")
        ):
            return _holes(re.split(r"\{[^{}]*\}", text))
        # "configs.%s" % name
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _holes(re.split(r"%\w", text))
        case _:
            return None


def _literal(part: ast.expr) -> str | None:
    """The text of a part of a formatted string, if it is no `{name}`."""
    return str(part.value) if isinstance(part, ast.Constant) else None


def _holes(texts: list[str]) -> list[str | None]:
    found: list[str | None] = [texts[0]]
    for text in texts[1:]:
        found += [None, text]
    return found
