"""Reports made by hand, for what the engine seldom says: odd characters, every status at once."""

from codemods import FileResult, Site
from codemods.model import Status
from optim2optax.reporting import Report


def site(
    code: str,
    status: Status,
    line: int = 3,
    message: str = "a message",
    remedy: str | None = None,
) -> Site:
    place = (line, 5, line, 9)
    after = "new" if status == "rewritten" else None
    return Site(code, *place, status, "proven", message, "old", after, remedy)


def report(*, preview: bool = False) -> Report:
    """Two rewritten, one suppressed and one unresolved site, an error and an unused suppression."""
    odd = ("50% of this:\r\nis odd, yes", "Do it: by hand.")
    sites = (
        site("FO202", "rewritten"),
        site("FO203", "rewritten", 4),
        site("FO202", "suppressed", 5),
        site("FO903", "unresolved", 6, *odd),
    )
    content = (b"old\n", b"new\n")
    first = FileResult("src/train, 100%:.py", *content, sites, unused_suppressions=(9,))
    empty = FileResult("empty.py", b"", b"")
    bad = FileResult("bad é.py", b"", b"", error="line 1: odd")
    return Report([first, empty, bad], preview=preview)
