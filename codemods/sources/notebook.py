"""Jupyter notebooks: the code of the cells as one module, and new code put back.

Nothing else of a notebook is touched.
"""

from __future__ import annotations

import codecs
import json
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from json.decoder import JSONDecoder, scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

from codemods.sources.parsing import parse
from codemods.sources.prefilter import mentions_legacy
from codemods.sources.text import Text, UndecodableError, decode

SUFFIX = ".ipynb"
RUNS_PYTHON = ("time", "timeit", "prun", "capture", "debug")
"""Cell magics below which there is code like in any cell."""

MARKER = re.compile(r"^__cell__ = (\d+)\n", re.MULTILINE)
PLACEHOLDER = re.compile(r"__magic_(\d+)__(?:; |  # %run .*)?")
MAGIC = re.compile(
    r"(?P<indent>\s*)(?P<assigned>[\w., \[\]'\"]+=\s*)?(?P<magic>[%!].*|\?.*|[\w.*]+\?{1,2}\s*)$"
)
# %timeit -n 10 -r3 train(optimizer), %lprun -f train train(optimizer)
TIMED = re.compile(
    r"(?P<magic>%(?:time|timeit|prun|memit|mprun|lprun) +"
    r"(?:-(?:[a-zA-Z] ?\d+|[fmlsTD] +\S+|[a-zA-Z]+) +)*)(?P<code>[^-\s].*)"
)
# !mkdir checkpoint_{optimizer.state.step}
EXPANDED = re.compile(r"\{[^{}]*\.(?:target|state)\b[^{}]*\}")
FORM = re.compile(r"(?:#\s*@.*\n)*")
"""The lines `# @title Training` at the head of a cell, which Colab shows as a form."""

ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
LINES = re.compile(r"[^\n]*\n|[^\n]+")


class Literal(str):
    """A string of JSON that knows where it stands in the file, with its quotes."""

    start: int
    end: int


Lines = Sequence[Literal]
"""The source of a cell: an array of lines, or one string."""


@dataclass(frozen=True)
class Cell:
    """A cell with code: its number among all cells, from 1, its source, and its parts.

    `lines` are the strings that it is written as in the file. `header` is the line of a cell magic,
    and those of a form. `body` is the code, with a placeholder for each of `magics`.
    """

    number: int
    lines: Lines
    header: str
    body: str
    magics: tuple[str, ...]

    @cached_property
    def source(self) -> str:
        return "".join(self.lines)


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
            first, last = cell.lines[0], cell.lines[-1]
            parts += [self.text[end : first.start], self._dumped(cell.lines, source)]
            end = last.end
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

    def _dumped(self, old: Lines, source: str) -> str:
        """A source as JSON, written as the cell's was."""
        first, *others = old
        # "\u00e9", where other tools write the letter itself
        escape = self.text.isascii() and ESCAPE.search(self.text) is not None
        before = self.text[: first.start].rstrip()
        if not before.endswith("["):
            return json.dumps(source, ensure_ascii=escape)
        # An array of lines: the white space between them, and old lines, stay as they are.
        between = f",{self.text[len(before) : first.start] or ' '}"
        if others:
            between = self.text[first.end : others[0].start]
        written = {str(line): self.text[line.start : line.end] for line in old}
        lines = LINES.findall(source)
        return between.join(
            written.get(line) or json.dumps(line, ensure_ascii=escape) for line in lines
        )


def read(path: str, content: bytes) -> Text | Notebook:
    """A file as text; its path says whether it is a notebook.

    Raises:
      UndecodableError: as `read_notebook` and `decode` do.
    """
    return read_notebook(content) if path.endswith(SUFFIX) else decode(content)


def read_notebook(content: bytes) -> Notebook:
    """Read a notebook.

    Raises:
      UndecodableError: if it is no notebook of format 4, or has a cell with optimizers that is not
        Python.
    """
    bom, text, whole, sources = _opened(content)
    if not isinstance(whole, dict) or "cells" not in whole:
        raise UndecodableError(
            "is no notebook of format 4: save it anew with a current Jupyter"
        )
    if _other_language(whole):
        sources = []
    found = [_cell(*source) for source in sources]
    return _notebook(bom, text, [cell for cell in found if cell is not None])


def read_cells(content: bytes) -> Notebook:
    """Read a notebook with all its code cells as they stand, whatever is in them.

    Raises:
      UndecodableError: if it is not JSON, or a cell holds something else than text.
    """
    bom, text, _, sources = _opened(content)
    joined = [(number, lines, "".join(lines)) for number, lines in sources]
    return _notebook(
        bom,
        text,
        [
            Cell(number, lines, "", source, ())
            for number, lines, source in joined
            if not MARKER.search(source) and not PLACEHOLDER.search(source)
        ],
    )


def _opened(content: bytes) -> tuple[bytes, str, Any, list[tuple[int, Lines]]]:
    """The byte order mark of a notebook, its text, its JSON, and its code cells."""
    bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        text = content[len(bom) :].decode()
        whole = decoded(text)
        return bom, text, whole, list(code_cells(whole))
    except UndecodableError:
        raise
    except (ValueError, RecursionError) as error:
        raise UndecodableError(f"cannot be read as a notebook: {error}") from error


def _notebook(bom: bytes, text: str, cells: Sequence[Cell]) -> Notebook:
    newlines = [newline.start() for newline in re.finditer("\n", text)]
    code: list[str] = []
    places: list[tuple[int, int]] = []
    for cell in cells:
        code.append(f"{opening(cell.number)}\n{cell.body}\n")
        numbers = [bisect_right(newlines, line.start) + 1 for line in cell.lines]
        last = len(numbers) - 1
        # the line with the marker of the cell
        places.append((cell.number, numbers[0]))
        # a source that is one string has all its lines in one of the file
        lines = (min(line, last) for line in _lines_of(cell))
        places += ((cell.number, numbers[line]) for line in lines)
    return Notebook(text, bom, tuple(cells), "".join(code), tuple(places))


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
        cells = [lines for _, lines in code_cells(decoded(text))]
    except (ValueError, RecursionError):
        return text
    kept: list[str] = []
    end = 0
    for lines in cells:
        first, last = lines[0].start, lines[-1].end
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


def _located(text: str, index: int, strict: bool = True) -> tuple[Literal, int]:
    value, end = scanstring(text, index, strict)
    literal = Literal(value)
    literal.start, literal.end = index - 1, end
    return literal, end


class _Locating(JSONDecoder):
    def __init__(self) -> None:
        super().__init__()
        self.parse_string = _located
        # that of C does not ask for `parse_string`
        self.scan_once = py_make_scanner(self)


def decoded(text: str) -> Any:
    """JSON as dictionaries and lists, of which all strings but keys are literals.

    Raises:
      ValueError: if it is none.
    """
    return _Locating().decode(text)


def code_cells(notebook: Any) -> Iterator[tuple[int, Lines]]:
    """The cells with code: the number, from 1, and the source.

    Raises:
      UndecodableError: if the source of a cell is no text.
    """
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    for number, cell in enumerate(cells if isinstance(cells, list) else (), 1):
        match cell:
            # "source": "import jax", or "source": ["import jax\n", "import flax"]
            case {"cell_type": "code", "source": source} if source:
                lines: Any = [source] if isinstance(source, str) else source
                if not _are_texts(lines):
                    raise UndecodableError(
                        f"cell {number} holds something else than text"
                    )
                yield number, lines


def _are_texts(lines: object) -> bool:
    if not isinstance(lines, list):
        return False
    return all(isinstance(line, str) for line in lines)


# What is Python


def _cell(number: int, lines: Lines) -> Cell | None:
    """A cell, or None if there is no Python in it.

    Raises:
      UndecodableError: if there should be some.
    """
    source = "".join(lines)
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
                    f"cell {number}: `{header}` holds code with optimizers, which is not read: "
                    "keep that in a file of its own"
                )
            return None
        # %%timeit params = optimizer.target
        timed = TIMED.match(header[1:])
        if timed and "opt" in timed["code"]:
            raise _unread(number, header, "in the lines below")
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
        if (timed and "opt" in timed["code"]) or EXPANDED.search(magic):
            raise _unread(number, magic, "in a line of its own")
    # print "loss", in Python 2
    if not _parses(body):
        if re.search(r"(?i)opt|\.target\b|apply_gradient", body):
            raise UndecodableError(f"cell {number} cannot be parsed as Python 3")
        return None
    return Cell(number, lines, header, body, magics)


def _unread(number: int, magic: str, where: str) -> UndecodableError:
    return UndecodableError(
        f"cell {number}: `{magic}` may use an optimizer, and is not read: put that code {where}"
    )


def _parses(code: str) -> bool:
    try:
        parse(code)
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
        is_simple = timed is not None and _parses(f"{name}; {timed['code']}")
        if timed is not None and not target and is_simple:
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
