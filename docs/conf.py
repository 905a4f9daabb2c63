"""The documentation site. `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = re.compile(r"\]\(\.\./fixtures/(\w+)\)")
sys.path.insert(0, str(ROOT))

from docs.generated import write_pages
from optim2optax import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "optim2optax"
author = "The optim2optax authors"
version = release = __version__

extensions = ["myst_parser", "sphinx_click"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.header"
]  # reports begin where their readers are, at the second level

html_theme = "furo"
html_title = "optim2optax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sphinx = False

write_pages(ROOT / "docs")


def setup(app: Sphinx) -> None:
    """Let links to the fixtures, which are folders of the repository, lead to their pages."""

    def link(_app: Sphinx, _page: str, source: list[str]) -> None:
        source[0] = FIXTURE.sub(r"](examples/\1.md)", source[0])

    app.connect("source-read", link)
