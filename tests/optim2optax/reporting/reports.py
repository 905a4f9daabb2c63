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
    return Site(
        code,
        line,
        5,
        line,
        9,
        status,
        "proven",
        message,
        "old",
        "new" if status == "rewritten" else None,
        remedy,
    )


def report(*, preview: bool = False) -> Report:
    """Two rewritten, one suppressed and one unresolved site, an error and an unused suppression."""
    first = FileResult(
        "src/train, 100%:.py",
        b"old\n",
        b"new\n",
        (
            site("FO202", "rewritten"),
            site("FO203", "rewritten", 4),
            site("FO202", "suppressed", 5),
            site(
                "FO903",
                "unresolved",
                6,
                "50% of this:\r\nis odd, yes",
                "Do it: by hand.",
            ),
        ),
        unused_suppressions=(9,),
    )
    return Report(
        [
            first,
            FileResult("empty.py", b"", b""),
            FileResult("bad é.py", b"", b"", error="line 1: odd"),
        ],
        preview=preview,
    )
