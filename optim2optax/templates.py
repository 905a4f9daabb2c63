"""Texts for people that are made by templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from optim2optax.wording import counted, printable

NONE: Mapping[str, Callable[..., Any]] = MappingProxyType({})


def rendered(
    template: Path, filters: Mapping[str, Callable[..., Any]] = NONE, **values: Any
) -> str:
    """The text of a template with some values; in HTML and XML, they are escaped."""
    import jinja2  # takes as long as all that a help text needs

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=template.name.endswith((".html.j2", ".xml.j2")),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    common = {"counted": counted, "printable": printable, "style": click.style}
    environment.filters |= {**common, **filters}
    return environment.get_template(template.name).render(values)
