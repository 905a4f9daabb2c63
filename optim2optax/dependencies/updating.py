"""Files that declare dependencies in, the same files with the needs of the new code out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from codemods.model import FileResult, Options, Site, Source, Status
from codemods.sources.suppression import suppression_of
from codemods.vendoring.splicing import spliced
from optim2optax.dependencies.declared import Finding, FormatError, not_read
from optim2optax.dependencies.declaring_file import DeclaringFile, parse, read_source
from optim2optax.dependencies.needs import Needs
from optim2optax.dependencies.requirement_findings import additions, judged, told


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
    needs = needs or Needs()
    files = {source.path: read_source(source) for source in sources}
    return [
        _result(file, _findings(file, files, needs), options) for file in files.values()
    ]


def _findings(
    file: DeclaringFile, files: Mapping[str, DeclaringFile], needs: Needs
) -> list[Finding]:
    """The findings on a file, in the order of their places."""
    reading = file.declares
    found = [*reading.problems]
    # one finding is enough for a lock file, which is made anew
    found += islice(told(reading, file.text, needs), 1 if reading.command else None)
    for section in reading.sections:
        for declared in section.declared:
            found += judged(declared, file.text, needs)
    for name in needs.imports:
        # a requirement of optax that cannot be read is one all the same
        is_unread = any(name in problem.message for problem in reading.problems)
        is_elsewhere = is_unread or _includes(name, file, files)
        lowest = needs.lowest[name]
        found += additions(reading.sections, name, lowest, is_elsewhere)
    return sorted(dict.fromkeys(found), key=lambda one: (one.span, one.code))


def _includes(
    name: str, file: DeclaringFile, files: Mapping[str, DeclaringFile]
) -> bool:
    """Whether a file includes one that declares a package, directly or through others."""
    paths = [*file.declares.includes]
    # the list grows while it is read
    for path in paths:
        further = files[path].declares.includes if path in files else ()
        paths += [one for one in further if one not in paths]
    included = [files[path].declares for path in paths if path in files]
    return any(section.has(name) for one in included for section in one.sections)


def _result(
    file: DeclaringFile, findings: Sequence[Finding], options: Options
) -> FileResult:
    path, content = file.source.path, file.source.content
    found = [finding for finding in findings if options.selects(finding.code)]
    suppressed = [finding for finding in found if _is_suppressed(finding, file.text)]
    wanted = [finding for finding in found if finding not in suppressed]
    edits = [edit for finding in wanted for edit in finding.edits]
    after = spliced(file.text, edits)
    # a safeguard: every edit of a requirement gives a readable file
    if edits and not _is_readable(after, path):
        why = "The edited file could not be read any more, so it is left."
        found, edits = [not_read(found[0].span, why)], []
    sites = tuple(
        _site(one, _status(one, options, one in suppressed), file) for one in found
    )
    if not options.modernize:
        hints = tuple(site for site in sites if site.status == "hint")
        return FileResult(path, content, content, hints=hints)
    new = file.form.encode(after) if edits else content
    return FileResult(path, content, new, sites)


def _is_readable(text: str, path: str) -> bool:
    try:
        parse(text, path)
    except FormatError:
        return False
    return True


def _is_suppressed(finding: Finding, text: str) -> bool:
    """Whether there is a comment for it on the line, as in code."""
    line = re.compile(r"[^\r\n]*").match(text, finding.span[0])
    suppression = suppression_of(line[0]) if line else None
    return suppression is not None and suppression.covers(finding.code)


def _status(finding: Finding, options: Options, is_suppressed: bool) -> Status:
    if is_suppressed:
        return "suppressed"
    if not options.modernize:
        return "hint"
    return "rewritten" if finding.edits else "unresolved"


def _site(finding: Finding, status: Status, file: DeclaringFile) -> Site:
    start, end = finding.span
    is_done = status == "rewritten"
    return Site(
        finding.code,
        *file.position(start),
        *file.position(end),
        status,
        "declared",
        finding.message,
        file.text[start:end],
        finding.new if is_done else None,
        finding.remedy,
        finding.note if is_done else "",
    )
