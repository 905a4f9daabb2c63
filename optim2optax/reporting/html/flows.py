"""The way of an optimizer through a project, as a picture whose boxes are linked to the lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup

from codemods.model import Location, Site
from optim2optax.reporting.html.page_links import Link, PageLinks

ROLES = {
    "created": ("FO102", "FO201", "FO302", "FO702", "FO103"),
    "steps": ("FO204", "FO208", "FO209", "FO108", "FO501", "FO502"),
    "checkpoints": ("FO601", "FO603", "FO604", "FO605", "FO606"),
    "devices": ("FO602",),
    "learning rates": ("FO402", "FO403", "FO404"),
    "parameters": ("FO202", "FO205"),
    "state": ("FO203", "FO210", "FO211", "FO213", "FO703"),
    "types": ("FO206", "FO207"),
}
"""What a use is for, by the rule that decided on it."""

SIGNS = (
    ("created", re.compile(r"\.create\(|^(optim|flax)\.[A-Z.\w]*\(")),
    ("steps", re.compile(r"\.(apply_gradient|optimize|compute_gradient)\b")),
    ("checkpoints", re.compile(r"checkpoint|_bytes\(|state_dict")),
    ("devices", re.compile(r"replicate\(")),
    ("parameters", re.compile(r"\.target\b")),
    ("state", re.compile(r"\.state\b")),
)
"""The same by its text, where it is left."""

OTHER = "other uses"
MOST_LINES, MOST_BOXES, MOST_COLUMNS = 5, 7, 4
WIDTH, GAP, MARGIN = 198, 40, 8
TITLE, LINE, SPACE = 24, 17, 12
LONGEST = 26


@dataclass(frozen=True)
class Step:
    """A use of an optimizer, where it is, and the source line it is on."""

    where: Location
    site: Site


@dataclass
class _Box:
    """A box of the picture: its title, which may be a link, and its lines."""

    column: int
    title: Link
    lines: list[Link] = field(default_factory=list)
    top: int = 0

    @property
    def height(self) -> int:
        return TITLE + LINE * len(self.lines) + 6

    @property
    def left(self) -> int:
        return MARGIN + self.column * (WIDTH + GAP)


def role(site: Site) -> str:
    """What a use is for."""
    for name, codes in ROLES.items():
        if site.code in codes:
            return name
    # a use that is left has the code of its reason, which is one of FO9
    for name, sign in SIGNS:
        if sign.search(site.before):
            return name
    return OTHER


def flow(
    uses: Sequence[Step], places: PageLinks, sources: dict[str, list[str]]
) -> Markup:
    """The picture: where an optimizer is created, the calls that it goes through, and its uses."""
    picture = _Picture(places, sources)
    for use in uses:
        picture.add(use)
    return picture.drawn()


class _Picture:
    def __init__(self, places: PageLinks, sources: dict[str, list[str]]) -> None:
        self.places = places
        self.sources = sources
        self.passed: dict[Location, int] = {}
        self.uses: dict[str, list[Location]] = {}
        self.edges: dict[tuple[Location | str, Location | str], None] = {}

    def add(self, use: Step) -> None:
        """Take in a use, with the way of its optimizer to it."""
        what = role(use.site)
        if what == "created":
            # where it is created, every way begins
            self.passed.setdefault(use.where, 0)
            return
        found = self.uses.setdefault(what, [])
        if use.where not in found:
            found.append(use.where)
        way = use.site.way
        for depth, place in enumerate(way):
            # a place on several ways stands as far to the right as the longest has it
            known = self.passed.get(place, 0)
            self.passed[place] = max(known, min(depth, MOST_COLUMNS - 1))
        stops: list[Location | str] = [*way, what]
        self.edges.update(dict.fromkeys(pairwise(stops)))

    def drawn(self) -> Markup:
        boxes = self._boxes()
        height = _stack(boxes.values())
        columns = 1 + max((box.column for box in boxes.values()), default=0)
        width = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP
        parts: list[Markup] = []
        for start, end in self.edges:
            # a place beyond MOST_BOXES has no box
            if start not in boxes or end not in boxes:
                continue
            # arrows lead to the right only
            if boxes[start].column < boxes[end].column:
                parts.append(_edge(boxes[start], boxes[end]))
        parts += map(_drawn, boxes.values())
        head = Markup('<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}">')
        head = head.format(w=width, h=height)
        return head + Markup().join(parts) + Markup("</svg>")

    def _boxes(self) -> dict[Location | str, _Box]:
        boxes: dict[Location | str, _Box] = {}
        by_column: dict[int, list[Location]] = {}
        for place, column in sorted(self.passed.items()):
            by_column.setdefault(column, []).append(place)
        for column, found in sorted(by_column.items()):
            for place in found[:MOST_BOXES]:
                title = self._link(place)
                source = Link(self._source(place), "")
                boxes[place] = _Box(column, title, [source])
            if len(found) > MOST_BOXES:
                more = Link(f"and {len(found) - MOST_BOXES} more", "")
                boxes[f"more{column}"] = _Box(column, more)
        # the uses stand to the right of all places
        last = 1 + max(by_column, default=-1)
        for what in (*ROLES, OTHER):
            if what in self.uses:
                boxes[what] = self._use(what, last)
        return boxes

    def _use(self, what: str, column: int) -> _Box:
        found = self.uses[what]
        lines = [self._link(place) for place in found[:MOST_LINES]]
        if len(found) > MOST_LINES:
            lines.append(Link(f"and {len(found) - MOST_LINES} more", ""))
        return _Box(column, Link(what, ""), lines)

    def _link(self, place: Location) -> Link:
        link = self.places.line(place)
        return Link(_tail(link.text), link.target)

    def _source(self, place: Location) -> str:
        lines = self.sources.get(place.path, [])
        if place.line > len(lines):
            return ""
        text = lines[place.line - 1].strip()
        if len(text) <= LONGEST:
            return text
        return f"{text[: LONGEST - 1]}…"


def _tail(text: str) -> str:
    """The end of a path, which tells more than its beginning."""
    if len(text) <= LONGEST:
        return text
    return f"…{text[-LONGEST + 1 :]}"


def _stack(boxes: Iterable[_Box]) -> int:
    """Put the boxes of each column below one another, in the middle; gives the height."""
    columns: dict[int, list[_Box]] = {}
    for box in boxes:
        columns.setdefault(box.column, []).append(box)
    heights: dict[int, int] = {}
    for column, found in columns.items():
        of_boxes = sum(box.height for box in found)
        heights[column] = of_boxes + SPACE * (len(found) - 1)
    tallest = max(heights.values(), default=0)
    for column, found in columns.items():
        top = MARGIN + (tallest - heights[column]) // 2
        for box in found:
            box.top = top
            top += box.height + SPACE
    return tallest + 2 * MARGIN


def _edge(start: _Box, end: _Box) -> Markup:
    # from the middle of the right side to that of the left one, less the arrowhead
    x, y = start.left + WIDTH, start.top + start.height // 2
    to_x, to_y = end.left - 6, end.top + end.height // 2
    bend = (to_x - x) // 2
    return Markup(
        '<path class="edge" d="M{x} {y}C{cx} {y} {dx} {ty} {tx} {ty}"/>'
        '<path class="head" d="M{tx} {up}l6 4l-6 4z"/>'
    ).format(x=x, y=y, cx=x + bend, dx=to_x - bend, tx=to_x, ty=to_y, up=to_y - 4)


def _drawn(box: _Box) -> Markup:
    frame = Markup('<rect x="{}" y="{}" width="{}" height="{}" rx="5"/>')
    left = box.left + 10
    parts = [
        frame.format(box.left, box.top, WIDTH, box.height),
        _text(box.title, left, box.top + 18, "title"),
    ]
    # y is that of the base line of a text
    base = box.top + TITLE + 13
    for line in box.lines:
        parts.append(_text(line, left, base, "line"))
        base += LINE
    return Markup().join(parts)


def _text(link: Link, x: int, y: int, kind: str) -> Markup:
    text = Markup('<text x="{}" y="{}" class="{}">{}</text>')
    text = text.format(x, y, kind, link.text)
    # the page does not show every place
    if not link.target:
        return text
    return Markup('<a href="#{}">{}</a>').format(link.target, text)
