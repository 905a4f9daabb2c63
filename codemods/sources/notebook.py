"""Jupyter notebooks: the code of the cells as one module, and new code put back.

Nothing else of a notebook is touched.
"""

from __future__ import annotations

import ast
import codecs
import json
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from json.decoder import JSONDecoder

from codemods.sources.prefilter import mentions_legacy
from codemods.sources.text import UndecodableError

SUFFIX = ".ipynb"
RUNS_PYTHON = ("time", "timeit", "prun", "capture")
"""Cell magics below which there is code like in any cell."""

MARKER = re.compile(r"^__cell__ = (\d+)\n", re.MULTILINE)
PLACEHOLDER = re.compile(r"__magic_(\d+)__(?:; |  # %run .*)?")
MAGIC = re.compile(
    r"(?P<indent>\s*)(?P<assigned>[\w., \[\]'\"]+=\s*)?(?P<magic>[%!].*|\?.*|[\w.*]+\?{1,2}\s*)$"
)
TIMED = re.compile(
    r"(?P<magic>%(?:time|timeit|prun|memit|mprun|lprun) +)(?P<code>\S.*)"
)
FORM = re.compile(r"(?:#\s*@.*\n)*")
"""The lines `# @title Training` at the head of a cell, which Colab shows as a form."""

SPACE = re.compile(r"[ \t\r\n]*")
ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
LINES = re.compile(r"[^\n]*\n|[^\n]+")

Extent = tuple[int, int]


@dataclass(frozen=True)
class Cell:
    """A cell with code: its number among all cells, from 1, its source, and its parts.

    `extent` is where the source stands in the file. `header` is the line of a cell magic, and those
    of a form. `body` is the code, with a placeholder for each of `magics`.
    """

    number: int
    source: str
    extent: Extent
    header: str
    body: str
    magics: tuple[str, ...]


@dataclass(frozen=True)
class Notebook:
    """A notebook as Python: `code` is that of all cells, in order, each behind a marker.

    `places` has for each line of the code the number of the cell and the line of the file.
    """

    text: str
    bom: bytes
    cells: tuple[Cell, ...]
    code: str
    places: tuple[tuple[int, int], ...]

    def encode(self, code: str) -> bytes:
        """The bytes of the notebook with new code in its cells."""
        new = self._divided(code)
        parts: list[str] = []
        end = 0
        for cell, source in zip(self.cells, new, strict=True):
            if source == cell.source:
                continue
            first, last = cell.extent
            parts += [self.text[end:first], self._dumped(cell, source)]
            end = last
        parts.append(self.text[end:])
        text = "".join(parts)
        return self.bom + text.encode()

    def _divided(self, code: str) -> list[str]:
        """The new source of each cell. Code before the first marker goes to the first cell."""
        before, *rest = MARKER.split(code)
        numbers = map(int, rest[::2])
        bodies = dict(zip(numbers, rest[1::2], strict=True))
        sources = []
        for cell in self.cells:
            body = bodies[cell.number].removesuffix("\n")
            # nothing is new: the source stays, whatever its magics are
            if body == cell.body and not before:
                sources.append(cell.source)
                continue
            body = before + _trimmed(body, cell.body)
            before = ""
            sources.append(cell.header + _with_magics(body, cell.magics))
        return sources

    def _dumped(self, cell: Cell, source: str) -> str:
        """A source as JSON, written as the cell's was."""
        start, end = cell.extent
        # "\u00e9", where other tools write the letter itself
        escape = self.text.isascii() and ESCAPE.search(self.text) is not None
        if self.text[start] != "[":
            return json.dumps(source, ensure_ascii=escape)
        # An array of lines: the white space between them, and old lines, stay as they are.
        spans = list(_elements(self.text, start))
        first, last = spans[0], spans[-1]
        opening = self.text[start + 1 : first[0]]
        between = f",{opening or ' '}"
        if len(spans) > 1:
            second = spans[1]
            between = self.text[first[1] : second[0]]
        closing = self.text[last[1] : end]
        written: dict[object, str] = {}
        for span in spans:
            literal = self.text[slice(*span)]
            written[json.loads(literal)] = literal
        lines = []
        for line in LINES.findall(source):
            literal = written.get(line) or json.dumps(line, ensure_ascii=escape)
            lines.append(literal)
        return f"[{opening}{between.join(lines)}{closing}"


def read_notebook(content: bytes) -> Notebook:
    """Read a notebook.

    Raises:
      UndecodableError: if it is no notebook of format 4, or has a cell with optimizers that is not
        Python.
    """
    has_bom = content.startswith(codecs.BOM_UTF8)
    bom = codecs.BOM_UTF8 if has_bom else b""
    try:
        text = content[len(bom) :].decode()
        whole = json.loads(text)
        sources = list(code_cells(text)) if isinstance(whole, dict) else []
    except UndecodableError:
        raise
    except (ValueError, RecursionError) as error:
        raise UndecodableError(f"cannot be read as a notebook: {error}") from error
    if not isinstance(whole, dict) or "cells" not in whole:
        raise UndecodableError(
            "is no notebook of format 4: save it anew with a current Jupyter"
        )
    if _other_language(whole):
        sources = []
    found = [_cell(*source) for source in sources]
    cells = [cell for cell in found if cell is not None]
    newlines = [newline.start() for newline in re.finditer("\n", text)]
    code: list[str] = []
    places: list[tuple[int, int]] = []
    for cell in cells:
        code.append(f"{opening(cell.number)}\n{cell.body}\n")
        starts = _starts_of_lines(text, cell.extent)
        numbers = [bisect_right(newlines, start) + 1 for start in starts]
        last = len(numbers) - 1
        # the line with the marker of the cell
        places.append((cell.number, numbers[0]))
        # a source that is one string has all its lines in one of the file
        lines = (min(line, last) for line in _lines_of(cell))
        places += ((cell.number, numbers[line]) for line in lines)
    whole_code = "".join(code)
    return Notebook(text, bom, tuple(cells), whole_code, tuple(places))


def _starts_of_lines(text: str, extent: Extent) -> list[int]:
    """Where the lines of a source begin in the file: one number, if it is one string there."""
    start, _ = extent
    if text[start] != "[":
        return [start]
    lines = [first for first, _ in _elements(text, start)]
    return lines or [start]


def _with_magics(body: str, magics: Sequence[str]) -> str:
    """A body with its magics in the place of their placeholders."""

    def magic_of(placeholder: re.Match[str]) -> str:
        number = int(placeholder[1])
        return magics[number]

    return PLACEHOLDER.sub(magic_of, body)


def python_of(content: bytes) -> str:
    """The code of a notebook's cells, to be run: shell lines and magics do nothing.

    Raises:
      UndecodableError: as `read_notebook` does.
    """
    return PLACEHOLDER.sub("None", read_notebook(content).code)


def opening(cell: int) -> str:
    """The line of code that opens a cell."""
    return f"__cell__ = {cell}"


def only_code(content: bytes) -> str:
    """The text of a notebook with nothing but the sources of its code cells, in their lines.

    It is the whole text, if that is no notebook.
    """
    text = content.decode("utf-8", "replace")
    try:
        cells = [extent for _, _, extent in code_cells(text)]
    except (ValueError, IndexError, TypeError, RecursionError):
        return text
    kept: list[str] = []
    end = 0
    for first, last in cells:
        # What is between cells becomes empty lines, so that lines keep their numbers.
        lines_between = text.count("\n", end, first)
        kept += ["\n" * lines_between, text[first:last]]
        end = last
    return "".join(kept) or text


def is_behind_magic(line: str) -> bool:
    """Whether a line of code is the argument of a magic, which ends with the line."""
    return re.match(r"\s*__magic_\d+__; ", line) is not None


def _lines_of(cell: Cell) -> Iterator[int]:
    """For each line of a cell's body the index of the line in its source.

    The last newline of the body opens a line, too. A magic may have several lines in the source.
    """
    line = cell.header.count("\n")
    for text in cell.body.split("\n"):
        yield line
        numbers = map(int, PLACEHOLDER.findall(text))
        magics = [cell.magics[number] for number in numbers]
        line += 1 + sum(magic.count("\n") for magic in magics)


def _trimmed(body: str, old: str) -> str:
    """A cell's new body without the blank lines at its ends that it did not have before."""
    start = len(old) - len(old.lstrip("\n"))
    end = len(old) - len(old.rstrip("\n"))
    return "\n" * start + body.strip("\n") + "\n" * end


def _other_language(notebook: dict[str, object]) -> bool:
    """Whether the cells of a notebook are not in Python: `"kernelspec": {"language": "R"}`."""
    match notebook:
        case {"metadata": {"kernelspec": {"language": name}}} if name:
            pass
        case {"metadata": {"language_info": {"name": name}}} if name:
            pass
        case _:
            return False
    return not str(name).lower().startswith(("python", "ipython"))


# Where in the file


def _value(text: str, index: int) -> tuple[object, Extent]:
    """The JSON value behind some white space, and its extent."""
    start = _skip(text, index)
    value, end = JSONDecoder().raw_decode(text, start)
    return value, (start, end)


def _skip(text: str, index: int) -> int:
    found = SPACE.match(text, index)
    return found.end() if found else index


def _elements(text: str, index: int) -> Iterator[Extent]:
    """The extents of the elements of the array that starts at `index`."""
    index = _skip(text, index + 1)
    while text[index] != "]":
        _, extent = _value(text, index)
        yield extent
        index = _behind_comma(text, extent)


def _behind_comma(text: str, extent: Extent) -> int:
    """Where the next element begins behind one, or the array or object ends."""
    _, end = extent
    index = _skip(text, end)
    if text[index] != ",":
        return index
    return _skip(text, index + 1)


def _members(text: str, index: int) -> Iterator[tuple[str, Extent]]:
    """The keys of the object that starts at `index`, and the extents of their values."""
    index = _skip(text, index + 1)
    while text[index] != "}":
        key, (_, end) = _value(text, index)
        colon = _skip(text, end)
        _, extent = _value(text, colon + 1)
        yield str(key), extent
        index = _behind_comma(text, extent)


def string_extents(text: str, extent: Extent) -> list[Extent]:
    """Where the letters of a source stand, which is a string or an array of strings."""
    start, _ = extent
    spans = [extent]
    if text[start] == "[":
        spans = list(_elements(text, start))
    # without the quotes
    return [(first + 1, last - 1) for first, last in spans]


def code_cells(text: str) -> Iterator[tuple[int, str, Extent]]:
    """The cells with code: the number, from 1, the source, and where that stands.

    Raises:
      UndecodableError: if the source of a cell is no text.
    """
    whole = _members(text, _skip(text, 0))
    extents = (extent for key, extent in whole if key == "cells")
    cells = next(extents, None)
    if cells is None:
        return
    first, _ = cells
    for number, (start, _) in enumerate(_elements(text, first), 1):
        members = dict(_members(text, start))
        if not {"source", "cell_type"} <= {*members}:
            continue
        cell_type = json.loads(text[slice(*members["cell_type"])])
        if cell_type != "code":
            continue
        source = json.loads(text[slice(*members["source"])])
        # "source": "import jax", or "source": ["import jax\n", "import flax"]
        lines = [source] if isinstance(source, str) else source
        if not _are_texts(lines):
            raise UndecodableError(f"cell {number} holds something else than text")
        if source:
            yield number, "".join(lines), members["source"]


def _are_texts(lines: object) -> bool:
    if not isinstance(lines, list):
        return False
    return all(isinstance(line, str) for line in lines)


# What is Python


def _cell(number: int, source: str, extent: Extent) -> Cell | None:
    """A cell, or None if there is no Python in it.

    Raises:
      UndecodableError: if there should be some.
    """
    header, body = "", source
    if MARKER.search(source) or PLACEHOLDER.search(source):
        raise UndecodableError(
            f"cell {number} uses a name that stands for a cell or a magic here"
        )
    if source.startswith("%%"):
        header, _, body = source.partition("\n")
        # %%bash
        if not header[2:].startswith(RUNS_PYTHON):
            if mentions_legacy(source.encode()):
                raise UndecodableError(
                    f"cell {number}: `{header}` holds code with optimizers, which is not read"
                )
            return None
        header += "\n"
    form = FORM.match(body)
    assert form is not None
    header, body = header + form[0], body[form.end() :]
    magics: tuple[str, ...] = ()
    if not _parses(body):
        body, magics = _without_magics(body)
    for magic in magics:
        # %time optimizer = optimizer.apply_gradient(grads), with code that cannot be parsed
        timed = TIMED.match(magic)
        if timed and "opt" in timed["code"]:
            why = f"`{magic}` may use an optimizer, and is not read: put it on a line of its own"
            raise UndecodableError(f"cell {number}: {why}")
    # print "loss", in Python 2
    if not _parses(body):
        if re.search(r"(?i)opt|\.target\b|apply_gradient", body):
            raise UndecodableError(f"cell {number} cannot be parsed as Python 3")
        return None
    return Cell(number, source, extent, header, body, magics)


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _without_magics(body: str) -> tuple[str, tuple[str, ...]]:
    """The body with a placeholder for each magic, shell command and call for help, and these."""
    done: list[str] = []
    magics: list[str] = []
    lines = body.split("\n")
    while lines:
        line = lines.pop(0)
        found = MAGIC.match(line)
        # A line within a string, or behind an open bracket, is no magic.
        if found is None or _is_open("\n".join(done)):
            done.append(line)
            continue
        magic = found["magic"]
        while magic.endswith("\\") and lines:
            magic += "\n" + lines.pop(0)
        # files = !ls
        target = found["assigned"] or ""
        name = f"__magic_{len(magics)}__"
        placeholder = f"{found['indent']}{target}{name}"
        timed = TIMED.fullmatch(magic)
        # %time train(): the code behind it is read.
        if timed is not None and not target and _parses(timed["code"]):
            done.append(f"{placeholder}; {timed['code']}")
            magics.append(timed["magic"])
            continue
        # %run train.py: which file runs is read in the comment.
        runs_file = magic.startswith("%run ") and "\n" not in magic
        remark = f"  # {magic}" if runs_file else ""
        done.append(f"{placeholder}{remark}")
        magics.append(magic)
    return "\n".join(done), tuple(magics)


def _is_open(code: str) -> bool:
    """Whether a bracket, a string or a continued line is still open at the end of some code."""
    if code.endswith("\\"):
        return True
    try:
        for _ in tokenize.generate_tokens(StringIO(code + "\n").readline):
            pass
    except tokenize.TokenError:
        return True
    # code that is wrong in another way ends somewhere
    except SyntaxError:
        pass
    return False
