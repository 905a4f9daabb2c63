"""Legacy programs at random whose numbers depend on what values are when they run: rates, steps, classes, annotations.

Each text file is a family: a grammar, whose symbols stand behind `== `, with their alternatives between lines `--`. In an
alternative `<symbol>` is one of those of that symbol, and `<symbol!>` the same one wherever it stands; `<n>` is a new number. What
stands ahead of a line `---` belongs to the level of the module, and what stands ahead of a line `--- NAME` is a file of its own. A program is one of `main`, and the carriers of its `Flow` are the
alternatives in it, where a symbol has several. `let NAME TEXT` draws a symbol.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from textwrap import indent

from tests.generated.flows import CONSTANTS, LIBRARIES, SHARED, Flow

HERE = Path(__file__).parent
HOLE = re.compile(r"(?P<ahead>^ *)?<(?P<symbol>[a-z_]+)(?P<once>!?)>", re.MULTILINE)
ABOVE = re.compile(r"^---(?: (?P<path>\S+))?\n", re.MULTILINE)

LET = re.compile(r"^let (\w+) (.*)\n", re.MULTILINE)

NAMES_OPTIM = re.compile(r"import optim\b|as optim\b|flax\.optim")

Grammar = dict[str, list[str]]


def _grammar(path: Path) -> Grammar:
    _, *parts = re.split(r"^== (.+)\n", path.read_text(), flags=re.MULTILINE)
    return {
        symbol: [
            one.strip("\n") for one in re.split(r"^--\n", text, flags=re.MULTILINE)
        ]
        for symbol, text in zip(parts[::2], parts[1::2], strict=True)
    }


COMMON = _grammar(HERE / "common.txt")
FAMILIES = {
    path.stem: COMMON | _grammar(path)
    for path in sorted(HERE.glob("*.txt"))
    if path.stem != "common"
}


def values(random: Random, family: str = "") -> Flow:
    """A program of a family, or of one that is drawn."""
    family = family or random.choice([*FAMILIES])
    return _Writer(random, family).program()


class _Writer:
    def __init__(self, random: Random, family: str) -> None:
        self.random, self.family = random, family
        self.grammar = FAMILIES[family]
        self.module: list[str] = []
        self.files: dict[str, str] = {}
        self.drawn: dict[str, str] = {}
        self.carriers: list[str] = []
        self.number = 0

    def program(self) -> Flow:
        body = self.of("main")
        code = "\n\n".join((*self.module, ""))
        code += f"\ndef run(params, batches):\n    found, notes = [], []\n{indent(body, 4 * ' ')}\n    return found, notes\n"
        return Flow(
            {
                **{path: _whole(text) for path, text in self.files.items()},
                "train.py": _whole(code),
            },
            tuple(dict.fromkeys(self.carriers)),
        )

    def of(self, symbol: str) -> str:
        """One of the alternatives of a symbol, with all that it needs elsewhere put there."""
        if symbol == "n":
            self.number += 1
            return str(self.number)
        texts = self.grammar[symbol]
        text = self.random.choice(texts)
        if len(texts) > 1:
            first = next(iter(text.rpartition("---\n")[2].splitlines()), "")
            name = f"{self.family}: {symbol}: {texts.index(text)} {first}"
            self.carriers.append(name)
        for name, value in LET.findall(text):
            self.drawn[name] = value
        *above, body = ABOVE.split(LET.sub("", text))
        for part, path in zip(above[::2], above[1::2], strict=True):
            filled = HOLE.sub(self._filled, part).strip("\n")
            if path:
                self.files[path] = filled
            elif filled not in self.module:
                self.module.append(filled)
        return HOLE.sub(self._filled, body)

    def _filled(self, match: re.Match[str]) -> str:
        symbol = match["symbol"]
        if match["once"] and symbol not in self.drawn:
            self.drawn[symbol] = self.of(symbol)
        text = self.drawn[symbol] if match["once"] else self.of(symbol)
        ahead = match["ahead"]
        return text if ahead is None else indent(text, ahead)


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
