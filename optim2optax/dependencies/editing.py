"""Files that declare dependencies in, the same files with the needs of the new code out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from codemods.model import FileResult, Options, Site, Source, Status
from codemods.sources.suppression import COMMENT, Suppression
from optim2optax.dependencies.adding import OPTAX, additions, has_requirement
from optim2optax.dependencies.declared import (
    Finding,
    FormatError,
    Span,
    TextEdit,
    not_read,
)
from optim2optax.dependencies.formats import line_starts, parse, read_source
from optim2optax.dependencies.judging import judged
from optim2optax.dependencies.needs import Needs


def dependencies(
    sources: Sequence[Source], options: Options, needs: Needs | None = None
) -> list[FileResult]:
    """Declare what the new code needs. A file that does not speak of Flax or JAX is left alone.

    Args:
      sources: the files of a project that declare dependencies; the name of each tells its format.
      options: `modernize` says whether anything is changed; if not, the changes are given as hints.
        `select` and `ignore` apply to these codes, too.
      needs: the lowest versions that the code needs. The default is what all new code needs.

    Returns:
      A result for each source, in the same order.
    """
    files = [_File(source) for source in sources]
    with_optax = {file.source.path for file in files if file.has_optax}
    includes = {file.source.path: file.reading.includes for file in files}
    results: list[FileResult] = []
    for file in files:
        includes_optax = _reaches(includes, file.source.path, with_optax)
        results.append(file.result(options, needs or Needs(), includes_optax))
    return results


class _File:
    """A file, with the findings on it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text, self.reading = read_source(source)

    @property
    def has_optax(self) -> bool:
        return any(has_requirement(section, OPTAX) for section in self.reading.sections)

    def result(
        self, options: Options, needs: Needs, includes_optax: bool
    ) -> FileResult:
        path = self.source.path
        content = self.source.content
        findings = self._findings(needs, includes_optax)
        found = [finding for finding in findings if options.selects(finding.code)]
        suppressed = [finding for finding in found if self._is_suppressed(finding)]
        edits: list[TextEdit] = []
        for finding in found:
            if finding not in suppressed:
                edits += finding.edits
        after = self._edited(edits)
        # a safeguard: every edit of a requirement gives a readable file
        if edits and not _is_readable(after, path):
            why = "The edited file could not be read any more, so it is left."
            found = [not_read(found[0].span, why)]
            edits = []
        sites = tuple(
            self._site(one, options.modernize, one in suppressed) for one in found
        )
        if options.modernize:
            new = self.text.encode(after) if edits else content
            return FileResult(path, content, new, sites)
        hints = tuple(site for site in sites if site.status == "hint")
        return FileResult(path, content, content, hints=hints)

    def _findings(self, needs: Needs, includes_optax: bool) -> list[Finding]:
        """The findings on the file, in the order of their places."""
        found = [*self.reading.problems, *self.reading.too_old(needs.lowest)]
        for section in self.reading.sections:
            for declared in section.declared:
                found += judged(declared, self.text.text, needs)
        if OPTAX in needs.lowest:
            # a requirement of optax that cannot be read is one all the same
            problems = self.reading.problems
            is_unread = any(OPTAX in problem.message for problem in problems)
            is_elsewhere = includes_optax or is_unread
            found += additions(self.reading.sections, needs.lowest, is_elsewhere)

        def order(finding: Finding) -> tuple[Span, str]:
            return finding.span, finding.code

        return sorted(dict.fromkeys(found), key=order)

    def _edited(self, edits: Iterable[TextEdit]) -> str:
        text = self.text.text
        # from the last to the first, so that the places of the others stay right
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + self.reading.written(new) + text[end:]
        return text

    def _is_suppressed(self, finding: Finding) -> bool:
        """Whether there is a comment for it on the line, as in code."""
        text = self.text.text
        line = re.compile(r"[^\r\n]*").match(text, finding.span[0])
        comment = COMMENT.search(line[0]) if line else None
        if comment is None:
            return False
        words = (comment[1] or "").split(",")
        codes = tuple(word.strip().upper() for word in words if word.strip())
        return Suppression(0, codes).covers(finding.code)

    def _site(self, finding: Finding, modernize: bool, is_suppressed: bool) -> Site:
        start, end = finding.span
        status: Status
        if is_suppressed:
            status = "suppressed"
        elif not modernize:
            status = "hint"
        else:
            status = "rewritten" if finding.edits else "unresolved"
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
    """The line and the column of an index, from 1."""
    starts = [start for start in line_starts(text) if start <= index]
    return len(starts), index - starts[-1] + 1


def _is_readable(text: str, path: str) -> bool:
    try:
        parse(text, path)
    except FormatError:
        return False
    return True


def _reaches(
    includes: Mapping[str, Sequence[str]], path: str, wanted: set[str]
) -> bool:
    """Whether a file includes one of the wanted ones, directly or through others."""
    seen: set[str] = set()
    waiting = [*includes[path]]
    while waiting:
        included = waiting.pop()
        if included in wanted:
            return True
        # files may include one another
        if included not in seen:
            seen.add(included)
            waiting += includes.get(included, ())
    return False
