"""The copies of `flax.optim` that a project has, or gets.

Files are migrated as if there were none, and pointed at the copies after that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from codemods.analysis.legacy import SUBPACKAGE
from codemods.model import FileResult, Source
from codemods.rewriting.checking import undefined_names
from codemods.sources.modules import Unit
from codemods.sources.notebook import SUFFIX, Notebook, read_notebook
from codemods.sources.parsing import parse
from codemods.sources.places import ModuleName, Places
from codemods.sources.suppression import suppressions
from codemods.sources.text import Text, UndecodableError, decode
from codemods.vendoring.account import Account, concerns
from codemods.vendoring.pointing import Redirection, imports_any, pointed
from codemods.vendoring.unpointed import unpointed
from codemods.vocabulary import PACKAGE

IMPORTS = "FO101"
"""The rule that a comment suppresses so that an import stays."""


@dataclass(frozen=True)
class Copies:
    """The files of a project, of which some may import a copy of `flax.optim`.

    Attributes:
      sources: the files, without those of copies.
      existing: where copies are, by path.
      places: from where files can import what.
      users: the files that import a copy, or name it in a string: the copy, and its name there.
      back: these files when they are pointed back at `flax.optim`; all lines keep their numbers.
    """

    sources: Sequence[Source]
    existing: Collection[str]
    places: Places
    users: Mapping[str, tuple[str, ModuleName]]
    back: Mapping[str, Source]

    @property
    def pointed_back(self) -> list[Source]:
        """The files as they are to be migrated."""
        return [self.back.get(source.path, source) for source in self.sources]

    def without_copy(self, results: Iterable[FileResult]) -> list[str]:
        """The files that import no copy, and still have something that needs `flax.optim`."""
        found: list[str] = []
        writable = {source.path for source in self.sources if source.writable}
        for result in results:
            if result.path in self.users or result.error is not None:
                continue
            if result.path not in writable:
                continue
            if not any(map(concerns, result.sites)):
                continue
            unit = _unit(result.path, result.after)
            if unit is not None and imports_any(unit, [PACKAGE], spared(unit)):
                found.append(unit.path)
        return found

    def place_for(
        self, paths: Sequence[str], name: str, wanted: str | None
    ) -> str | None:
        """The place of a copy for some files; None if there is none.

        It is a copy that exists, the place that is wanted, or the best one. There is no second
        copy: objects of one are not known to the other.
        """
        if self.existing:
            copies = sorted(self.existing)
            serving = (copy for copy in copies if self.places.serves(copy, paths))
            return next(serving, None)
        if wanted is None:
            return self.places.find(paths, name)
        if self.places.is_free(wanted) and self.places.serves(wanted, paths):
            return wanted
        return None

    def pointed_at(
        self, results: Sequence[FileResult], new: Collection[str], place: str | None
    ) -> list[FileResult]:
        """The results with the files pointed at the copies, and an account of what is left.

        Args:
          results: of the files as they were pointed back.
          new: the files that need a copy and import none.
          place: where that is; None if there is no place for it.
        """
        names = self._names(results, new, place)
        units: list[Unit] = []
        failed = set(new if place is None else ())
        finished = []
        for source, result in zip(self.sources, results, strict=True):
            after = result.after
            back = self.back.get(result.path)
            # nothing was migrated in a file that imports a copy: it stays as it was
            if back is not None and after == back.content:
                after = source.content
                units += filter(None, [_unit(result.path, after)])
            elif result.path in names and result.error is None:
                # from flax.optim import Adam, which is still needed
                found = _pointed(result.path, result.after, names[result.path])
                if found is None:
                    failed.add(result.path)
                else:
                    after, unit = found
                    units.append(unit)
            finished.append(result._replace(before=source.content, after=after))
        account = Account(
            self.places, {unit.path for unit in units}, failed, unpointed(units)
        )
        accounted = []
        for result in finished:
            is_without_place = place is None and result.path in new
            accounted.append(account.of(result, is_without_place))
        return accounted

    def _names(
        self, results: Iterable[FileResult], new: Collection[str], place: str | None
    ) -> dict[str, ModuleName]:
        """The name of its copy in each file that needs one."""
        names = {path: name for path, (_, name) in self.users.items()}
        if place is None:
            return names
        for path in new:
            name = self.places.name(path, place)
            if name is not None:
                names[path] = name
        return names | self._only_named(results, new, names)

    def _only_named(
        self,
        results: Iterable[FileResult],
        new: Iterable[str],
        names: Mapping[str, ModuleName],
    ) -> dict[str, ModuleName]:
        """The files of the same programs that only have a name of `flax.optim` in a string."""
        program = {one for path in new for one in self.places.together(path)}
        importing = (name for path, name in names.items() if path in new)
        full = next(importing).full
        found: dict[str, ModuleName] = {}
        for source, one in zip(self.sources, results, strict=True):
            if one.path in names or one.path not in program:
                continue
            if not source.writable:
                continue
            # "flax.optim.Adam"
            if PACKAGE.encode() in one.after:
                found[one.path] = ModuleName(full, full)
        return found


def read_copies(
    sources: Sequence[Source], existing: Collection[str], others: Iterable[str] = ()
) -> Copies:
    """The files of a project that has some copies.

    Args:
      sources: all its files, those of copies included.
      existing: the paths of the copies' folders.
      others: the paths of other files that exist.
    """
    own: list[Source] = []
    units: dict[str, Unit] = {}
    for source in sources:
        folder = str(PurePosixPath(source.path).parent)
        if folder in existing:
            continue
        own.append(source)
        unit = _unit(source.path, source.content)
        if unit is not None:
            units[source.path] = unit
    modules = [f"{module}.py" for module in ("__init__", *SUBPACKAGE)]
    packages = (f"{copy}/{module}" for copy in existing for module in modules)
    codes = {path: unit.code for path, unit in units.items()}
    written = [source.path for source in sources if source.writable]
    places = Places(codes, (*others, *packages), written=written)
    users: dict[str, tuple[str, ModuleName]] = {}
    back: dict[str, Source] = {}
    for source in own:
        unit = units.get(source.path)
        if unit is None:
            continue
        for copy in existing:
            # most files do not have the name of the copy anywhere
            if PurePosixPath(copy).name not in unit.code:
                continue
            found = _pointed_back(unit, copy, places)
            if found is None:
                continue
            name, code = found
            text = _read(source.path, source.content)
            assert text is not None
            users[source.path] = (copy, name)
            back[source.path] = replace(source, content=text.encode(code))
    return Copies(own, existing, places, users, back)


def spared(unit: Unit) -> set[int]:
    """The lines of a file with a comment by which imports stay."""
    comments = suppressions(unit.code)
    return {comment.line for comment in comments if comment.covers(IMPORTS)}


def _pointed_back(
    unit: Unit, copy: str, places: Places
) -> tuple[ModuleName, str] | None:
    """The name of a copy in a file, and the code when it is pointed back.

    None if the file does not refer to the copy.
    """
    said = places.names_said(unit.path, copy)
    # `.legacy_optim` or `models.legacy_optim`
    name = places.name(unit.path, copy)
    full = name.full if name is not None else min(said, default="")
    if not full:
        return None
    stays = spared(unit)
    way = Redirection(said, PACKAGE, full, PACKAGE, in_line=True, spared=stays)
    code = pointed(unit, way)
    if code == unit.code:
        return None
    name_there = min(said, default=full)
    return ModuleName(name_there, full), code


def _pointed(path: str, content: bytes, name: ModuleName) -> tuple[bytes, Unit] | None:
    """A file with its imports pointed at a copy; None if the result is not valid."""
    unit = _unit(path, content)
    text = _read(path, content)
    assert unit is not None
    assert text is not None
    stays = spared(unit)
    way = Redirection([PACKAGE], name.said, PACKAGE, name.full, spared=stays)
    code = pointed(unit, way)
    try:
        new = Unit(path, code, parse(code), unit.places)
        after = text.encode(code)
    except (SyntaxError, UndecodableError):
        return None
    # a name that an import bound is still read somewhere
    if undefined_names(new) - undefined_names(unit):
        return None
    return after, new


def _read(path: str, content: bytes) -> Text | Notebook | None:
    try:
        return read_notebook(content) if path.endswith(SUFFIX) else decode(content)
    except UndecodableError:
        return None


def _unit(path: str, content: bytes) -> Unit | None:
    """A file that is parsed; None if it cannot be."""
    text = _read(path, content)
    if text is None:
        return None
    try:
        tree = parse(text.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    places = text.places if isinstance(text, Notebook) else ()
    return Unit(path, text.code, tree, places)
