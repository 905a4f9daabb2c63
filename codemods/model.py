"""The records that the whole project exchanges: sources in, sites and edited sources out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Literal, NamedTuple

Form = Literal["alias", "chain"]
Style = Literal["train-state", "functional"]
Status = Literal["rewritten", "suppressed", "vendored", "unresolved", "hint"]
Evidence = Literal["proven", "declared", "deduced", "likely"]
Kind = Literal["edited", "new"]
Stage = Literal["Reading", "Analysing", "Rewriting", "Writing"]
Progress = Callable[[Stage, int, int], None]
"""Is called with the stage, the number of files that are done, and that of all: 0 if unknown."""


class Location(NamedTuple):
    """A line of a file, which counts from 1. For people it is `train.py:12`."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class File(NamedTuple):
    """A whole file, where a message is about that."""

    path: str

    def __str__(self) -> str:
        return self.path


Reference = Location | File
AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Message:
    """A text in which files and lines are records, until it is known how their paths are shown."""

    parts: tuple[str | Reference, ...]

    def text(self, shown: Mapping[str, str] = AS_THEY_ARE) -> str:
        """The text, with paths as `shown` has them; those that it lacks are as they are."""
        said: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                said.append(part)
            else:
                path = shown.get(part.path, part.path)
                said.append(str(part._replace(path=path)))
        return "".join(said)

    def as_clause(self) -> Message:
        """The sentence without its full stop."""
        *parts, last = self.parts
        if isinstance(last, str):
            last = last.removesuffix(".")
        return Message((*parts, last))


Prose = str | Message
"""What users read, with references to files or without."""


@dataclass(frozen=True)
class Source:
    """One file as bytes.

    `path` gives the module its name, from the root of the project on, with `/` as separator.
    `shown` is the path in messages, if that is another one. A file that is not `writable` is read
    as context: nothing changes in it, nor does an optimizer of which it has sites.
    """

    path: str
    content: bytes
    shown: str | None = None
    writable: bool = True


@dataclass(frozen=True)
class Options:
    """What the user asked of a run.

    `select` and `ignore` are codes or prefixes of codes (`FO4`); an empty `select` means every
    rule. `unproven` names optimizers that are not to be converted, by path, line and source text,
    because their parity was not proven. `modernize` is for what else has been removed since,
    `rename` for variables called `optimizer` that are a train state now. The `style` says whether
    an optimizer becomes a train state or, where that can be, variables for its parts. `trace` asks
    for the way of its optimizer to each site.
    """

    form: Form = "alias"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    partial: bool = False
    unsafe: bool = False
    modernize: bool = False
    rename: bool = False
    style: Style = "train-state"
    unproven: frozenset[tuple[str, int, str]] = frozenset()
    trace: bool = False

    def selects(self, code: str) -> bool:
        """Whether the rule with this code may act."""
        if self.ignore and code.startswith(self.ignore):
            return False
        return not self.select or code.startswith(self.select)


class Severity(Enum):
    """How a reporter presents a site."""

    NOTE = "note"
    WARNING = "warning"


@dataclass(frozen=True)
class Site:
    """One legacy construct in a file, and what became of it.

    `line` and `column` count from 1, columns in characters. `before` and `after` are source text;
    `after` is None unless the site was rewritten. `remedy` says in one sentence what to do by hand;
    it is None unless that is needed. A site that is vendored is left, for the reason that it says,
    and uses a copy of `flax.optim` within the project. A hint is what `modernize` would have
    rewritten or reported. `note` says why a rewritten site has the general form, which is always
    right, where a shorter one might be expected; it is empty otherwise.

    Sites that migrate together have one `group`: where its first optimizer is made, or its first
    site is. It is None for sites of no optimizer. `cause` is the site for the sake of which this
    one stays, if that is another: one of its group or, of an import, that of what needs it. `way`
    is where its optimizer comes from: the allocation site first, then the calls by which it gets
    here. It is empty unless the options ask for it. `related` are the files that are only context
    and for the sake of which this site stays.
    """

    code: str
    line: int
    column: int
    end_line: int
    end_column: int
    status: Status
    evidence: Evidence
    message: str
    before: str
    after: str | None = None
    remedy: str | None = None
    note: str = ""
    group: Location | None = None
    cause: Location | None = None
    way: tuple[Location, ...] = ()
    related: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.status == "unresolved" else Severity.NOTE


@dataclass(frozen=True)
class EmittedOptimizer:
    """An optimizer of one file that was converted.

    `before` and `after` are source text as it stands in the file. The two expressions stand on
    their own but for values such as `config.lr`: in the old one the package is called `optim`, and
    definitions made elsewhere are in the place of their names. `injected` says that the learning
    rate is set at each step, and `schedule` which part of the new expression is a schedule in the
    place of such rates; `supports` are the sources of helpers, imports included.
    """

    name: str
    line: int
    before: str
    after: str
    legacy_expression: str
    optax_expression: str
    injected: bool
    supports: tuple[str, ...]
    schedule: str = ""


class Need(NamedTuple):
    """A package, and its first version that has what was written in the place of a removed name."""

    package: str
    version: str
    removed: str


class FileResult(NamedTuple):
    """What became of one file.

    `error` is set, and nothing is changed, if the file could not be read as Python. A new file has
    no content before. `needs` are the versions that have what was written
    in the place of removed names. `analysed` is false for files that no optimizer can get to.
    `tracebacks` are those of the internal errors because of which something in the file stays.
    """

    path: str
    before: bytes
    after: bytes
    sites: tuple[Site, ...] = ()
    error: str | None = None
    unused_suppressions: tuple[int, ...] = ()
    optimizers: tuple[EmittedOptimizer, ...] = ()
    hints: tuple[Site, ...] = ()
    kind: Kind = "edited"
    needs: tuple[Need, ...] = ()
    analysed: bool = False
    tracebacks: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Refusal:
    """Why a site is left as it is: a code of the FO9 family (or of the rule), reason and remedy.

    Reason and remedy are one sentence each. An internal error has its `traceback`. `related` are
    the paths of the files that have to be writable, too, for it to migrate.
    """

    code: str
    reason: Prose
    remedy: Prose
    traceback: str = ""
    related: tuple[str, ...] = ()
