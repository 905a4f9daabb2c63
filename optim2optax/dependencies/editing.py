"""Files that declare dependencies in, the same files with what the new code needs out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from codemods.model import FileResult, Options, Site, Source, Status
from codemods.sources.suppression import COMMENT, Suppression

from optim2optax.dependencies.adding import OPTAX, additions
from optim2optax.dependencies.declared import Edit, Finding, UnreadableError, not_read
from optim2optax.dependencies.judging import judged
from optim2optax.dependencies.needs import Needs
from optim2optax.dependencies.reading import line_starts, parse, read_source


def dependencies(
    sources: Sequence[Source], options: Options, needs: Needs | None = None
) -> list[FileResult]:
    """Declare what the new code needs. A file that does not speak of Flax or JAX is left alone.

    Args:
      sources: the files of a project that declare dependencies; each in the form that its name tells.
      options: `modernize` says whether anything is changed; if not, what would be is given as hints. `select` and `ignore`
        hold for these codes, too.
      needs: the lowest versions that the code needs; those that all new code does, if it is not given.

    Returns:
      A result for each source, in the same order.
    """
    files = [_File(source) for source in sources]
    have = {file.source.path for file in files if file.has_optax}
    includes = {file.source.path: file.reading.includes for file in files}
    return [
        file.result(options, needs or Needs(), _reaches(includes, file.source.path, have))
        for file in files
    ]


class _File:
    """A file, and what is to be said of it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text, self.reading = read_source(source)

    @property
    def has_optax(self) -> bool:
        return any(
            declared.name == OPTAX
            for section in self.reading.sections
            for declared in section.declared
        )

    def result(self, options: Options, needs: Needs, includes_optax: bool) -> FileResult:
        path, content = self.source.path, self.source.content
        found = [
            finding
            for finding in self._findings(needs, includes_optax)
            if options.selects(finding.code)
        ]
        suppressed = [finding for finding in found if self._is_suppressed(finding)]
        edits = [edit for finding in found if finding not in suppressed for edit in finding.edits]
        after = self._edited(edits)
        if edits and not _is_readable(after, path):
            found, edits = (
                [
                    not_read(
                        found[0].span, "The edited file could not be read any more, so it is left."
                    )
                ],
                [],
            )
        sites = tuple(self._site(one, options.modernize, one in suppressed) for one in found)
        if options.modernize:
            return FileResult(path, content, self.text.encode(after) if edits else content, sites)
        return FileResult(
            path, content, content, hints=tuple(site for site in sites if site.status == "hint")
        )

    def _findings(self, needs: Needs, includes_optax: bool) -> list[Finding]:
        """What is to be said of the file, in its order."""
        sections = self.reading.sections
        of_each = (
            judged(one, self.text.text, needs) for section in sections for one in section.declared
        )
        is_elsewhere = includes_optax or any(
            OPTAX in problem.message for problem in self.reading.problems
        )
        added = additions(sections, needs.lowest, is_elsewhere) if OPTAX in needs.lowest else ()
        found = [
            *self.reading.problems,
            *self.reading.too_old(needs.lowest),
            *chain.from_iterable(of_each),
            *added,
        ]
        return sorted(dict.fromkeys(found), key=lambda finding: (finding.span, finding.code))

    def _edited(self, edits: Iterable[Edit]) -> str:
        text = self.text.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + self.reading.written(new) + text[end:]
        return text

    def _is_suppressed(self, finding: Finding) -> bool:
        """Whether there is a comment for it on the line, as in code."""
        text = self.text.text
        line = re.compile(r"[^\r\n]*").match(text, finding.span[0])
        comment = COMMENT.search(line[0]) if line else None
        codes = tuple(
            word.strip().upper()
            for word in ((comment and comment[1]) or "").split(",")
            if word.strip()
        )
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
    """The line and the column, from 1."""
    starts = [start for start in line_starts(text) if start <= index]
    return len(starts), index - starts[-1] + 1


def _is_readable(text: str, path: str) -> bool:
    try:
        parse(text, path)
    except UnreadableError:
        return False
    return True


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
