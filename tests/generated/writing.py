"""Legacy programs at random, written by grammars in text files.

The symbols of a grammar stand behind `== `, with their alternatives between lines `--`. In an alternative `<symbol>` is one of those
of that symbol, and `<symbol!>` the same one wherever it stands; `<n>` is a new number. What stands ahead of a line `---` belongs to
the level of the module, and what stands ahead of a line `--- NAME` is a file of its own. `let NAME TEXT` draws a symbol.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from textwrap import indent

from tests.codemods.programs import sections

HOLE = re.compile(r"(?P<ahead>^ *)?<(?P<symbol>[a-z_]+)(?P<once>!?)>", re.MULTILINE)
ABOVE = re.compile(r"^---(?: (?P<path>\S+))?\n", re.MULTILINE)
LET = re.compile(r"^let (\w+) ?(.*)(?:\n|\Z)", re.MULTILINE)
NAMES_OPTIM = re.compile(r"import optim\b|as optim\b|flax\.optim")
LIBRARIES = {
    "jax.": "import jax\n",
    "jnp.": "import jax.numpy as jnp\n",
    "np.": "import numpy as np\n",
}
"""What is imported where it is used."""

CONSTANTS = """
RATE, BETA = 0.05, 0.7
"""
SHARED = {
    "slope": """

def slope(params, batch):
    return {'w': params['w'] * batch + 0.1, 'b': params['b'] - batch}
""",
    "loss_fn": """

def loss_fn(params, batch):
    return jnp.sum(params['w'] ** 2) * batch + jnp.sum(jnp.sin(params['b']))
""",
    "rate_at": """

def rate_at(step):
    return 0.1 / (1.0 + step)
""",
}
"""Functions, each where it is used."""

Grammar = dict[str, list[str]]


def grammar(path: Path) -> Grammar:
    """The alternatives of each symbol in a file."""
    return {
        symbol: [
            one.strip("\n") for one in re.split(r"^--\n", text, flags=re.MULTILINE)
        ]
        for symbol, text in sections(path.read_text()).items()
    }


@dataclass(frozen=True)
class Flow:
    """A program, and the alternatives in it by which results are counted."""

    files: dict[str, str]
    carriers: tuple[str, ...]


class Writer:
    """Writes one program.

    Attributes:
        drawn: what symbols are wherever they stand.
        chosen: the alternatives, of symbols that have several.
        files: those beside the one that is written.
    """

    def __init__(self, random: Random, symbols: Grammar) -> None:
        self.random, self.grammar = random, symbols
        self.drawn: dict[str, str] = {}
        self.chosen: list[str] = []
        self.files: dict[str, str] = {}
        self._module: list[str] = []
        self._number = 0

    def of(self, symbol: str, **drawn: str) -> str:
        """One of the alternatives of a symbol, with all that it needs elsewhere put there."""
        if symbol == "n":
            self._number += 1
            return str(self._number)
        self.drawn |= drawn
        texts = self.grammar[symbol]
        text = self.random.choice(texts)
        if len(texts) > 1:
            first = next(iter(text.rpartition("---\n")[2].splitlines()), "")
            self.chosen.append(f"{symbol}: {texts.index(text)} {first}")
        self.drawn |= dict(LET.findall(text))
        *above, body = ABOVE.split(LET.sub("", text))
        for part, path in zip(above[::2], above[1::2], strict=True):
            filled = HOLE.sub(self._filled, part).strip("\n")
            if path:
                name = HOLE.sub(self._filled, path)
                self.files[name] = _whole(f"{filled}\n")
            elif filled not in self._module:
                self._module.append(filled)
        return HOLE.sub(self._filled, body)

    def _filled(self, match: re.Match[str]) -> str:
        symbol = match["symbol"]
        if match["once"] and symbol not in self.drawn:
            self.drawn[symbol] = self.of(symbol)
        text = self.drawn[symbol] if match["once"] else self.of(symbol)
        ahead = match["ahead"]
        return text if ahead is None else indent(text, ahead)

    def file(self, code: str) -> str:
        """A file of some code, with what belongs to the level of its module."""
        return _whole("\n\n".join((*self._module, "")) + f"\n{code}")

    def program(self, symbol: str) -> dict[str, str]:
        """The files of a program whose function `run` has one of the alternatives of a symbol."""
        body = indent(self.of(symbol), "    ")
        run = f"def run(params, batches):\n    found, notes = [], []\n{body}\n    return found, notes\n"
        return {**self.files, "train.py": self.file(run)}


def _whole(code: str) -> str:
    """A file with the imports and functions that it needs, where it does not have them."""
    if "optim" in re.findall(r"\w+", code) and not NAMES_OPTIM.search(code):
        code = f"from flax import optim\n{code}"
    imports = re.findall(r"^(?:import|from) .*\n", code, re.MULTILINE)
    for line in imports:
        code = re.sub(f"^{re.escape(line)}", "", code, flags=re.MULTILINE)
    shared = "".join(text for name, text in SHARED.items() if f"{name}(" in code)
    used = {*re.findall(r"(?<![\w.])\w+\.", shared + code)}
    imports += [line for word, line in LIBRARIES.items() if word in used]
    # from __future__ import annotations
    ahead = sorted(dict.fromkeys(imports), key=lambda line: "__future__" not in line)
    return "".join((*ahead, CONSTANTS, shared, "\n\n", code))
