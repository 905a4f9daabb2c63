"""The copies of a removed package that a project has, or gets.

Files are migrated as if there were none, and pointed at the copies after that.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from codemods.model import FileResult, Source
from codemods.removed.table import row_of
from codemods.rewriting.checking import undefined_names
from codemods.rules.removed import refused
from codemods.sources.modules import Unit
from codemods.sources.notebook import Notebook, read
from codemods.sources.parsing import parse
from codemods.sources.places import Places
from codemods.sources.suppression import suppressions
from codemods.sources.text import Text, UndecodableError
from codemods.vendoring.account import Account, left_site, unpointed
from codemods.vendoring.packages import MODELS, NN, OPTIM, RemovedPackage
from codemods.vendoring.pointing import Pointing, importing


@dataclass(frozen=True)
class Copies:
    """The files of a project, without those of copies of a removed package; some may import one.

    `existing` is where copies are, `places` from where files can import what. `users` are the files
    that import a copy, with its name there, and `back` these when they are pointed back at the
    package; all lines keep their numbers.
    """

    package: RemovedPackage
    sources: Sequence[Source]
    existing: Collection[str]
    places: Places
    users: Mapping[str, str]
    back: Mapping[str, Source]

    @property
    def pointed_back(self) -> list[Source]:
        """The files as they are to be migrated."""
        return [self.back.get(source.path, source) for source in self.sources]

    def without_copy(self, results: Iterable[FileResult]) -> list[str]:
        """The files that import no copy, and still have something that needs the package."""
        found: list[str] = []
        writable = {source.path for source in self.sources if source.writable}
        for result in results:
            if result.path in self.users or result.error is not None:
                continue
            if result.path not in writable:
                continue
            # of models, an import is enough
            is_left = any(map(self.package.concerns, result.sites))
            if not is_left and self.package is not NN:
                continue
            unit = _unit(result.path, result.after)
            if unit is not None and self._importing(unit):
                found.append(unit.path)
        return found

    def places_for(self, paths: Sequence[str], name: str) -> dict[str, str]:
        """The place of the copy for each of some files, without those that have none.

        It is a copy that exists, or the best place. There is one copy for all, as objects of one
        are not known to another; without a place for that, one a program.
        """
        place = self._place_for(paths, name)
        if place is not None:
            return dict.fromkeys(paths, place)
        found: dict[str, str] = {}
        for program in self.places.programs(paths):
            place = self._place_for(program, name)
            if place is not None:
                found |= dict.fromkeys(program, place)
        return found

    def _place_for(self, paths: Sequence[str], name: str) -> str | None:
        if self.existing:
            copies = sorted(self.existing)
            serving = (copy for copy in copies if self.places.serves(copy, paths))
            return next(serving, None)
        return self.places.find(paths, name)

    def pointed_at(
        self,
        results: Sequence[FileResult],
        new: Collection[str],
        places: Mapping[str, str],
    ) -> list[FileResult]:
        """The results with the files pointed at the copies, and an account of what is left.

        The files that are `new` need a copy and import none; `places` has that of some of them.
        """
        names = self._names(new, places)
        if self.package is NN:
            needing = {*new, *self.users}
            results = [self._told(one, one.path in needing) for one in results]
        units: list[Unit] = []
        failed = {path for path in new if path not in places}
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
                found = self._pointed(result.path, result.after, names[result.path])
                if found is None:
                    failed.add(result.path)
                else:
                    after, unit = found
                    units.append(unit)
            finished.append(result._replace(before=source.content, after=after))
        served = {unit.path for unit in units}
        left = unpointed(units, self.package)
        account = Account(self.package, self.places, served, failed, left)
        accounted = []
        for result in finished:
            is_without_place = result.path in new and result.path not in places
            accounted.append(account.of(result, is_without_place))
        return accounted

    def _names(self, new: Collection[str], places: Mapping[str, str]) -> dict[str, str]:
        """The name of its copy in each file that needs one."""
        names = dict(self.users)
        for path in new:
            name = self.places.name(path, places[path]) if path in places else None
            if name is not None:
                names[path] = name.said
        return names

    def _pointed(
        self, path: str, content: bytes, name: str
    ) -> tuple[bytes, Unit] | None:
        """A file with its imports pointed at a copy; None if the result is not valid."""
        unit = _unit(path, content)
        text = _read(path, content)
        assert unit is not None
        assert text is not None
        stays = spared(unit, self.package)
        code = Pointing(unit, self.package.names, name, spared=stays).code()
        try:
            new = Unit(path, code, parse(code), unit.places)
            after = text.encode(code)
        except (SyntaxError, UndecodableError):
            return None
        # a name that an import bound is still read somewhere
        if undefined_names(new) - undefined_names(unit):
            return None
        return after, new

    def _importing(self, unit: Unit) -> list[ast.stmt | ast.expr]:
        """What imports the package in a file, unless a comment keeps that."""
        stays = spared(unit, self.package)
        return [*importing(unit, self.package.names, stays)]

    def _told(self, result: FileResult, is_needed: bool) -> FileResult:
        """A result that says once that there are models, if its file needs the package for them."""
        unit = _unit(result.path, result.before) if is_needed else None
        nodes = self._importing(unit) if unit is not None else []
        if unit is None or not nodes:
            return result
        node = min(nodes, key=unit.span)
        row = row_of(self.package.name)
        assert row is not None
        site = left_site(unit, unit.span(node), unit.source(node), refused(row))
        site = replace(site, remedy=None)
        sites = (one for one in result.sites if one.code != MODELS)
        hints = tuple(one for one in result.hints if one.code != MODELS)
        return result._replace(sites=(*sites, site), hints=hints)


def read_copies(
    sources: Sequence[Source],
    existing: Collection[str],
    others: Iterable[str] = (),
    package: RemovedPackage = OPTIM,
) -> Copies:
    """The files of a project that has copies of a package in some folders, and `others` beside."""
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
    packages = (f"{copy}/{module}" for copy in existing for module in package.modules)
    codes = {path: unit.code for path, unit in units.items()}
    written = [source.path for source in sources if source.writable]
    places = Places(codes, (*others, *packages), written=written)
    users: dict[str, str] = {}
    back: dict[str, Source] = {}
    for source in own:
        unit = units.get(source.path)
        if unit is None:
            continue
        for copy in existing:
            # most files do not have the name of the copy anywhere
            if PurePosixPath(copy).name not in unit.code:
                continue
            found = _pointed_back(unit, copy, places, package)
            if found is None:
                continue
            name, code = found
            text = _read(source.path, source.content)
            assert text is not None
            users[source.path] = name
            back[source.path] = replace(source, content=text.encode(code))
    return Copies(package, own, existing, places, users, back)


def spared(unit: Unit, package: RemovedPackage) -> set[int]:
    """The lines of a file with a comment by which imports of a package stay."""
    comments = suppressions(unit.code)
    return {comment.line for comment in comments if comment.covers(package.code)}


def _pointed_back(
    unit: Unit, copy: str, places: Places, package: RemovedPackage
) -> tuple[str, str] | None:
    """The name of a copy in a file, and the code when it is pointed back.

    None if the file does not refer to the copy.
    """
    # `.legacy_optim` or `models.legacy_optim`
    said = places.names_said(unit.path, copy)
    stays = spared(unit, package)
    code = Pointing(unit, said, package.name, in_line=True, spared=stays).code()
    return None if code == unit.code else (min(said), code)


def _read(path: str, content: bytes) -> Text | Notebook | None:
    try:
        return read(path, content)
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
    return Unit(path, text.code, tree, text.places)
