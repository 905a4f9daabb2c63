"""Legacy programs at random: whole, small, and able to run.

Each has a function `run(params, batches)`, which gives the parameters after every step. What varies is what varies in real code:
how `flax.optim` is imported, which optimizers there are and how they are made, through what they pass, how a step is taken, what
is read of them beside it, and how all this is written: indentation, line ends, comments, blank lines, parentheses, encoding.
"""

import codecs
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from tests.generated.writing import Writer, grammar

GRAMMAR = grammar(Path(__file__).parent / "whole.txt")
MODULES = (
    "import functools",
    "from typing import Any",
    "import jax",
    "import jax.numpy as jnp",
)


def programs() -> st.SearchStrategy[bytes]:
    """Programs, as the bytes of their files."""
    return st.randoms(use_true_random=False).map(_program)


def _program(random: Random) -> bytes:
    writer = Writer(random, GRAMMAR)
    imports = [*MODULES, writer.of("imports")]
    random.shuffle(imports)
    writer.drawn |= {"imports": "\n".join(imports), "given": writer.of("given")}
    head, body = writer.of("head"), writer.of("body")
    unit = random.choice(("  ", "    ", "\t"))
    lines = [*head.split("\n"), "", "", *_varied(writer, body.split("\n"))]
    return _encoded(random, [_indented(line, unit) for line in lines])


def _varied(writer: Writer, lines: list[str]) -> list[str]:
    """Some lines of code with a comment, a blank line before them or spaces behind them."""
    found = []
    for line in lines:
        chance = writer.random.randrange(31) if line.strip() else 0
        if chance in (1, 2):
            spaces = line[: len(line) - len(line.lstrip())]
            found.append(f"{spaces}# A comment of its own." if chance == 2 else "")
        ends = {3: writer.of("comment"), 4: "  "}
        found.append(line + ends.get(chance, ""))
    return found


def _indented(line: str, unit: str) -> str:
    """A line whose depth is told by two spaces, with other indentation."""
    code = line.lstrip(" ")
    return unit * ((len(line) - len(code)) // 2) + code


def _encoded(random: Random, lines: list[str]) -> bytes:
    newline = random.choice(("\n", "\n", "\n", "\r\n"))
    text = newline.join(lines) + random.choice((newline, newline, "", newline * 3))
    match random.randrange(10):
        case 0:
            return codecs.BOM_UTF8 + text.encode()
        case 1:
            title = f"# -*- coding: latin-1 -*-{newline}# Größe{newline}"
            return (title + text).encode("latin-1")
        case 2:
            return f"# Größe, 大小{newline}{text}".encode()
    return text.encode()
