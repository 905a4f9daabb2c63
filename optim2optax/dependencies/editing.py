"""Files that declare dependencies in, the same files with what the new code needs out."""

from __future__ import annotations

import importlib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol, cast

from codemods.model import FileResult, Options, Site, Source, Status
from codemods.suppression import COMMENT, Suppression
from codemods.text import LINE_END, UndecodableError
from optim2optax.dependencies import lock_files
from optim2optax.dependencies.adding import OPTAX, additions
from optim2optax.dependencies.declared import Edit, Finding, Reading, UnreadableError, not_read
from optim2optax.dependencies.judging import judged
from optim2optax.dependencies.names import format_of
from optim2optax.dependencies.needs import LOWEST
from optim2optax.dependencies.texts import Text, decode, mentions


class _Format(Protocol):
    def read(self, text: str, path: str) -> Reading: ...


def dependencies(sources: Sequence[Source], options: Options, needs: Mapping[str, str] = LOWEST) -> list[FileResult]:
    """Declare what the new code needs. A file that does not speak of Flax or JAX is left alone.

    Args:
      sources: the files of a project that declare dependencies; each in the form that its name tells.
      options: `modernize` says whether anything is changed; if not, what would be is given as hints. `select` and `ignore`
        hold for these codes, too.
      needs: the lowest version of each distribution, by normalized name, and of `python`.

    Returns:
      A result for each source, in the same order.
    """
    files = [_File(source) for source in sources]
    have = {file.source.path for file in files if file.has_optax}
    includes = {file.source.path: file.reading.includes for file in files}
    return [file.result(options, needs, _reaches(includes, file.source.path, have)) for file in files]


class _File:
    """A file that is read, as far as it can be."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = Text("", "utf-8", b"")
        self.reading = Reading()
        if not mentions(source.content):
            return
        try:
            self.text = decode(source.content, source.path)
            self.reading = self._read(self.text.text)
        except UndecodableError as error:
            self.text = Text(source.content.decode("latin-1"), "latin-1", b"")
            self.reading = Reading(problems=(not_read((0, 0), f"{error}."),))
        except UnreadableError as error:
            start = _starts(self.text.text)[error.line - 1 :][:1] or [0]
            self.reading = Reading(problems=(not_read((start[0], start[0]), f"{error}."),))

    def _read(self, text: str) -> Reading:
        path = self.source.path
        command = lock_files.command_of(posixpath.basename(path), text)
        if command is not None:
            return lock_files.read(text, command, LOWEST)
        module = importlib.import_module(f"optim2optax.dependencies.{format_of(path)}")
        return cast(_Format, module).read(text, path)

    @property
    def has_optax(self) -> bool:
        return any(declared.name == OPTAX for section in self.reading.sections for declared in section.declared)

    def result(self, options: Options, needs: Mapping[str, str], includes_optax: bool) -> FileResult:
        found = [finding for finding in self._findings(needs, includes_optax) if options.selects(finding.code)]
        content = self.source.content
        suppressed = [finding for finding in found if self._is_suppressed(finding)]
        applied = [finding for finding in found if finding.edits and finding not in suppressed]
        after = (
            self.text.encode(self._edited(edit for finding in applied for edit in finding.edits))
            if applied
            else content
        )
        sites = tuple(self._site(one, options.modernize, one in suppressed) for one in found)
        if not options.modernize:
            hints = tuple(site for site in sites if site.status == "hint")
            return FileResult(self.source.path, content, content, hints=hints)
        return FileResult(self.source.path, content, after, sites)

    def _findings(self, needs: Mapping[str, str], includes_optax: bool) -> list[Finding]:
        """What is to be said of the file, in its order."""
        sections = self.reading.sections
        of_each = (judged(one, self.text.text, needs) for section in sections for one in section.declared)
        added = additions(sections, needs, includes_optax) if OPTAX in needs else ()
        found = [*self.reading.problems, *chain.from_iterable(of_each), *added]
        return sorted(dict.fromkeys(found), key=lambda finding: (finding.span, finding.code))

    def _edited(self, edits: Iterator[Edit]) -> str:
        text = self.text.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + self.reading.written(new) + text[end:]
        return text

    def _is_suppressed(self, finding: Finding) -> bool:
        """Whether there is a comment for it on the line, as in code."""
        text = self.text.text
        line = re.compile(r"[^\r\n]*").match(text, finding.span[0])
        comment = COMMENT.search(line[0]) if line else None
        codes = tuple(word.strip().upper() for word in ((comment and comment[1]) or "").split(",") if word.strip())
        return comment is not None and Suppression(0, codes).covers(finding.code)

    def _site(self, finding: Finding, modernize: bool, is_suppressed: bool) -> Site:
        start, end = finding.span
        status: Status = "rewritten" if finding.edits else "unresolved"
        if not modernize or is_suppressed:
            status = "suppressed" if is_suppressed else "hint"
        return Site(
            finding.code,
            *_position(self.text.text, start),
            *_position(self.text.text, end),
            status,
            "declared",
            finding.message,
            self.text.text[start:end],
            finding.new if status == "rewritten" else None,
            finding.remedy,
            finding.note if status == "rewritten" else "",
        )


def _position(text: str, index: int) -> tuple[int, int]:
    starts = [start for start in _starts(text) if start <= index]
    return len(starts), index - starts[-1] + 1


def _starts(text: str) -> list[int]:
    """Where each line begins."""
    return [0, *(found.end() for found in LINE_END.finditer(text))]


def _reaches(includes: Mapping[str, Sequence[str]], path: str, wanted: set[str]) -> bool:
    """Whether a file includes one of some others, be it through others."""
    seen: set[str] = set()
    waiting = [*includes[path]]
    while waiting:
        included = waiting.pop()
        if included in wanted:
            return True
        if included not in seen:
            seen.add(included)
            waiting += includes.get(included, ())
    return False
