"""What a migration makes of a whole program, judged by running it as it was and as it is.

A program is a few files, of which `train.py` has a function `run(params, batches)` that gives two lists: parameters, which are
numbers to compare, and plain values, which are equal or not. It may import `toolbelt`, which no migration is given.
"""

import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import io
import linecache
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal

from codemods import FileResult, Options, Source, migrate
from codemods.model import Site
from optim2optax.legacy import legacy_flax
from optim2optax.precision import double_everywhere, precise
from tests.generated.properties import GATE, assert_alike, parameters

Files = Mapping[str, str]
"""The text of each file by its path."""

Kind = Literal[
    "equal", "refused", "told", "half migrated", "different", "silent", "crashed"
]
KEPT: tuple[Kind, ...] = ("equal", "refused", "told")
"""What may become of a program. All else breaks a promise:

- half migrated: it ran before, and now neither with the old Flax nor without it. It is `told` if that ends in an error at a line
  that was reported, as one of something of unknown origin, or if it was reported where an optimizer goes out of view;
- different: it runs, and its numbers or values are others. It is `told` if these are the keys of a state dict, and it was reported
  where they are read;
- silent: it needs the old Flax as before, and nothing was said;
- crashed: the migration itself failed.
"""

ESCAPE = "FO932"
"""The code of a place at which an optimizer goes out of view, or the keys of its state dict are read."""

FLOAT = re.compile(r"\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+")
FLOAT32_GATE = 1e-7
"""What rounding may do to the movement where a program computes in float32 by its own words: `np.float32(0.1)`."""

BATCHES = (0.3, -0.2, 0.5)
ABSENT = Path(__file__).parent / "toolbelt.py"


@dataclass(frozen=True)
class Verdict:
    """What became of a program.

    Attributes:
        kind: in a word.
        why: of a refusal the codes, of a broken promise the error.
        said: whether any site was reported as left, or an optimizer as going out of view.
        after: the files as they are now.
    """

    kind: Kind
    why: str
    said: bool
    after: Files


class InvalidProgramError(Exception):
    """A program does not run as it is written."""


def verdict(files: Files, options: Options | None = None) -> Verdict:
    """What becomes of a program.

    Raises:
        InvalidProgramError: if it does not run with the old Flax.
    """
    try:
        with legacy_flax():
            before = outcome(files)
    except Exception as error:
        raise InvalidProgramError(f"{type(error).__name__}: {error}") from error
    sources = [Source(path, text.encode()) for path, text in files.items()]
    try:
        results = migrate(sources, options)
    except Exception as error:  # noqa: BLE001 - a finding like any other
        return Verdict("crashed", _told(error), said=False, after=files)
    for result in results:
        if result.error is not None and _parses(files[result.path]):
            return Verdict("crashed", result.error, said=False, after=files)
    return _judged(files, before, results)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _judged(files: Files, before: Any, results: Sequence[FileResult]) -> Verdict:
    after = {result.path: result.after.decode() for result in results}
    sites = [site for result in results for site in result.sites]
    left = sorted({site.code for site in sites if site.status == "unresolved"})
    said = is_said(results)
    whole, _ = _compared(before, after, legacy=False)
    if whole == "equal":
        return Verdict("equal", "", said, after)
    old, why_old = _compared(before, after, legacy=True)
    # nothing was migrated, or a part beside one that was refused
    if after == files or old == "equal":
        return Verdict("refused" if left else "silent", ", ".join(left), said, after)
    if old == "half migrated" and (_escapes(results) or _is_told(after, results)):
        return Verdict("told", why_old, said, after)
    # the keys of a state dict are others, and where they are read was reported
    told = [hint.message for hint in _escapes(results)]
    if old == "different" and any("state dict" in message for message in told):
        return Verdict("told", why_old, said, after)
    return Verdict(old, why_old, said, after)


def is_said(results: Sequence[FileResult]) -> bool:
    """Whether any site was reported as left, or an optimizer as going out of view."""
    sites = [site for result in results for site in result.sites]
    return bool(_escapes(results)) or any(site.status == "unresolved" for site in sites)


def _escapes(results: Sequence[FileResult]) -> list[Site]:
    hints = [hint for result in results for hint in result.hints]
    return [hint for hint in hints if hint.code == ESCAPE]


def _is_told(after: Files, results: Sequence[FileResult]) -> bool:
    """Whether a program ends in an error where something of unknown origin was reported."""
    # its last attribute: the names ahead of that may be new
    unknown = {
        (result.path, f".{site.before.rpartition('.')[2]}")
        for result in results
        for site in result.sites
        if site.status == "unresolved" and site.evidence in ("deduced", "likely")
    }
    try:
        with legacy_flax():
            outcome(after)
    except Exception as error:  # noqa: BLE001 - any may be
        numbers = {number for _, number in walk_tb(error.__traceback__)}
        return any(
            text in line
            for path, text in unknown
            for number, line in enumerate(after[path].split("\n"), 1)
            if number in numbers
        )
    return False


def _compared(before: Any, after: Files, legacy: bool) -> tuple[Kind, str]:
    try:
        with legacy_flax() if legacy else contextlib.nullcontext():
            now = outcome(after)
    except Exception as error:  # noqa: BLE001 - so is this
        return "half migrated", _told(error)
    try:
        is_narrow = any("float32" in text for text in after.values())
        assert_same(before, now, FLOAT32_GATE if is_narrow else GATE)
    except Exception as error:  # noqa: BLE001 - what is compared may be no parameters at all
        return "different", _told(error)
    return "equal", ""


def _told(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def outcome(files: Files) -> Any:
    """What a program's `run` gives."""
    quiet = contextlib.redirect_stdout(io.StringIO())
    with double_everywhere(), precise(), modules(files) as train, quiet:
        return train.run(parameters(), BATCHES)


def assert_same(before: Any, after: Any, gate: float = GATE) -> None:
    """Two outcomes have the same numbers and values."""
    (old_numbers, old_values), (new_numbers, new_values) = before, after
    told = f"{old_values} became {new_values}"
    assert [*map(_shown, old_values)] == [*map(_shown, new_values)], told
    assert_alike(old_numbers, new_numbers, gate)


def _shown(value: object) -> str:
    """How a value is written, with its numbers as exact as two ways of rounding leave them."""
    return FLOAT.sub(lambda found: f"{float(found[0]):.9e}", repr(value))


class _Files(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports modules from texts."""

    def __init__(self, files: Files) -> None:
        self._texts = {_module_name(path): text for path, text in files.items()}
        packages = (path for path in files if path.endswith("__init__.py"))
        self._packages = {*map(_module_name, packages)}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if not any(f"{other}.".startswith(f"{name}.") for other in self._texts):
            return None
        is_package = self.is_package(name)
        return importlib.util.spec_from_loader(name, self, is_package=is_package)

    def is_package(self, fullname: str) -> bool:
        return fullname in self._packages or fullname not in self._texts

    def get_source(self, fullname: str) -> str:
        return self._texts.get(fullname, "")


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@contextlib.contextmanager
def modules(files: Files) -> Iterator[Any]:
    """The module `train` of a program, and for a while all that it imports of it."""
    absent = _absent()
    there = {**sys.modules}
    names = {_module_name(path).partition(".")[0] for path in files}
    # another test may have imported a module of that name
    _forget(names)
    sys.modules.update({"toolbelt": absent, "toolbelt.functional": absent})
    finder = _Files(files)
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module("train")
    finally:
        sys.meta_path.remove(finder)
        _forget({*names, "toolbelt"})
        for name, module in there.items():
            sys.modules.setdefault(name, module)
        linecache.clearcache()


def _forget(names: Collection[str]) -> None:
    """Let modules and those within them be imported anew."""
    for name in [one for one in sys.modules if one.partition(".")[0] in names]:
        del sys.modules[name]


def _absent() -> Any:
    """A fresh `toolbelt`, whose submodule is itself."""
    spec = importlib.util.spec_from_file_location("toolbelt", ABSENT)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.functional = module
    return module
