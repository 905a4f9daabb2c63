"""One file that declares dependencies, with what becomes of it."""

from textwrap import dedent

from codemods import FileResult, Options, Source
from optim2optax.dependencies.updating import dependencies

CHANGING = Options(modernize=True)


def text(program: str) -> str:
    """A text that is indented in the test."""
    return dedent(program).lstrip("\n")


def result_of(
    path: str, content: str | bytes, options: Options = CHANGING
) -> FileResult:
    """What becomes of a file, which a second run leaves as it is."""
    before = content if isinstance(content, bytes) else content.encode()
    [result] = dependencies([Source(path, before)], options)
    [again] = dependencies([Source(path, result.after)], options)
    assert again.after == result.after
    assert {site.status for site in again.sites} <= {"unresolved", "suppressed"}
    return result


def after(path: str, content: str) -> str:
    return result_of(path, content).after.decode()


def told(path: str, content: str | bytes) -> list[tuple[str, int, str]]:
    """The codes, lines and messages of what is left."""
    sites = result_of(path, content).sites
    left = [site for site in sites if site.status == "unresolved"]
    return [(site.code, site.line, site.message) for site in left]
