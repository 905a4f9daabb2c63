"""Names that are computed: which modules or attributes may be meant."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

ANY = re.compile(r".*")
BY_FILE = ("run_path", "spec_from_file_location", "load_source")


def named_module(call: ast.Call, own: str) -> str | re.Pattern[str]:
    """What `import_module(name, package)` imports: a dotted name, or a pattern of names.

    Args:
      call: the call; its first argument is the name.
      own: the dotted name of the calling module.
    """
    files = [file for argument in call.args[:2] for file in _files(argument)]
    # spec_from_file_location("model", directory + "/model.py")
    if files:
        return re.compile(re.escape(files[-1]))
    parts = _parts(call.args[0], own) if call.args else [None]
    if ast.unparse(call.func).endswith(BY_FILE) or not any(parts):
        return ANY
    first = parts[0]
    if first is not None:
        # __import__("package.module") gives the package
        is_old = ast.unparse(call.func) == "__import__"
        if is_old and len(call.args) < 4 and not call.keywords:
            return first.partition(".")[0]
        # import_module(".models", package="project")
        if first.startswith("."):
            parts = [_package(call, own.rpartition(".")[0]), *parts]
    if None not in parts:
        return "".join(map(str, parts))
    # import_module(f"configs.{name}")
    return re.compile(
        "".join(r"[\w.]*" if one is None else re.escape(one) for one in parts)
    )


def names_like(node: ast.expr) -> re.Pattern[str] | None:
    """The names that a text such as `f"on_{event}"` may be; None if no part of it is known."""
    parts = _parts(node, "")
    if not any(parts):
        return None
    return re.compile(
        "".join(r"\w*" if one is None else re.escape(one) for one in parts)
    )


def _files(argument: ast.expr) -> list[str]:
    """The names, without ending, of the Python files that an expression names."""
    texts = (one.value for one in ast.walk(argument) if isinstance(one, ast.Constant))
    paths = map(PurePosixPath, (text for text in texts if isinstance(text, str)))
    # ".py" alone is an ending that is added to a name
    return [path.stem for path in paths if path.suffix == ".py"]


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


def _parts(node: ast.expr, own: str) -> list[str | None]:
    """The parts of a string, None for each that is not known."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        # sys.modules[__name__]
        case ast.Name(id="__name__"):
            return [own]
        # f"configs.{name}"
        case ast.JoinedStr(values=values):
            return [part for value in values for part in _parts(value, own)]
        # "configs." + name
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_parts(left, own), *_parts(right, own)]
        # "configs.%s" % name, "configs.{}".format(name)
        case (
            ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod())
            | ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")
            )
        ):
            first, *others = re.split(r"\{[^{}]*\}|%\w", text)
            return [first, *(part for other in others for part in (None, other))]
    return [None]
