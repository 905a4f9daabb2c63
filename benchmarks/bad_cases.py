"""Programs that are hard on an analysis: each of a size, so that it can be seen how time and memory grow with it.

`python -m benchmarks.bad_cases closures 600 FOLDER` writes one, to see where the time goes; `--bad-cases` of `benchmarks.scale`
measures all. In each a value goes through what is hard. The same program has a legacy optimizer, which is that value or has
nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

PLANTED = Path(__file__).parents[1] / "fixtures" / "mnist_momentum" / "before.py"
APART = "import planted\n\nTRAIN = planted.train\nVALUE = object()\n"
WITHIN = 'import planted\n\nTRAIN = planted.train\nVALUE = planted.create_optimizer({"w": 1.0}, 0.1, 0.9)\n'

BASE = """
class {name}:
    def __init__(self, value):
        self.value = value

    def step(self, value):
        return value
"""
REGISTER = """
REGISTRY = {}


def register(name):
    def put(made):
        REGISTRY[name] = made
        return made

    return put
"""
META = """
class Meta(type):
    made = {}

    def __new__(cls, name, bases, members):
        made = super().__new__(cls, name, bases, members)
        cls.made[name] = made
        return made

    def __call__(cls, *args, **kwargs):
        one = super().__call__(*args, **kwargs)
        one.finish()
        return one
"""

Texts = dict[str, str]
"""The texts of files by path."""


def joined(parts: Iterable[str]) -> str:
    """A text of parts, each with an empty line behind it."""
    return "\n".join(parts)


def dispatch(size: int) -> Texts:
    """A table of functions that are called by computed keys."""
    functions = joined(
        f"def handle_{n}(state, step):\n    return state if step < {n} else (state)\n"
        for n in range(size)
    )
    entries = "".join(f'    "key_{n}": handle_{n},\n' for n in range(size))
    run = (
        f"def run(state):\n"
        f"    for step in range(9):\n"
        f'        state = TABLE[f"key_{{step % {size}}}"](state, step)\n'
        f"    return state\n"
    )
    return {
        "table.py": f"{functions}\nTABLE = {{\n{entries}}}\n",
        "main.py": f"from table import TABLE\nfrom value import VALUE\n\n{run}\nRESULT = run(VALUE)\n",
    }


def cycles(size: int) -> Texts:
    """Classes that hold each other, round and round."""
    classes = joined(
        f"class Node{n}:\n"
        f"    def __init__(self, before=None):\n"
        f"        self.before = before\n"
        f"        self.behind = None\n"
        f"        self.held = None\n\n"
        f"    def grow(self, depth):\n"
        f"        self.behind = Node{(n + 1) % size}(self)\n"
        f"        return self.behind.grow(depth - 1) if depth else self\n\n"
        f"    def hold(self, value):\n"
        f"        self.held = value\n"
        f"        return self.behind.hold(value) if self.behind else self.before.held\n"
        for n in range(size)
    )
    main = "from nodes import Node0\nfrom value import VALUE\n\nROOT = Node0()\nROOT.grow(9)\nRESULT = ROOT.hold(VALUE)\n"
    return {"nodes.py": classes, "main.py": main}


def inheritance(size: int) -> Texts:
    """Classes, each of which inherits from the one before it, and calls its methods."""
    base = BASE.format(name="Level0")
    others = joined(
        f"class Level{n}(Level{n - 1}):\n"
        f"    def __init__(self, value):\n"
        f"        super().__init__(value)\n"
        f"        self.value_{n} = value\n\n"
        f"    def step(self, value):\n"
        f"        return super().step(self.value_{n} or value)\n"
        for n in range(1, size)
    )
    last = f"Level{size - 1}"
    main = f"from levels import {last}\nfrom value import VALUE\n\nRESULT = {last}(VALUE).step(VALUE)\n"
    return {"levels.py": f"{base}\n{others}", "main.py": main}


def diamond(size: int) -> Texts:
    """A class of many bases, which all have one base, and hand on what they are given."""
    base = BASE.format(name="Base")
    sides = joined(
        f"class Side{n}(Base):\n    def step(self, value):\n        self.value = super().step(value)\n        return self.value\n"
        for n in range(size)
    )
    bottom = f"class Bottom({', '.join(f'Side{n}' for n in range(size))}):\n    pass\n"
    main = "from diamond import Bottom\nfrom value import VALUE\n\nRESULT = Bottom(VALUE).step(VALUE)\n"
    return {"diamond.py": f"{base}\n{sides}\n{bottom}", "main.py": main}


def calls(size: int) -> Texts:
    """A value that is handed from function to function."""
    functions = joined(
        f"def pass_{n}(value):\n    kept = value\n    return pass_{n + 1}(kept)\n"
        for n in range(size)
    )
    last = f"def pass_{size}(value):\n    return value\n"
    main = "from passing import pass_0\nfrom value import VALUE\n\nRESULT = pass_0(VALUE)\nOTHER = pass_0(1)\n"
    return {"passing.py": f"{functions}\n{last}", "main.py": main}


def recursion(size: int) -> Texts:
    """Functions that call each other, each two of the others."""
    functions = joined(
        f"def turn_{n}(value, depth):\n"
        f"    if depth > 9:\n"
        f"        return turn_{(n + 1) % size}(value, depth - 1)\n"
        f"    return turn_{(n * 7 + 3) % size}(value, depth - 1) if depth else value\n"
        for n in range(size)
    )
    main = "from turns import turn_0\nfrom value import VALUE\n\nRESULT = turn_0(VALUE, 20)\n"
    return {"turns.py": functions, "main.py": main}


def literals(size: int) -> Texts:
    """A dictionary and a list that are written out, and read by computed keys."""
    entries = "".join(f'    "key_{n}": {n / 8},\n' for n in range(size))
    rows = "".join(f"    {n},\n" for n in range(size))
    run = 'def read(number):\n    return NAMED[f"key_{number}"], ROWS[number]\n'
    data = f"from value import VALUE\n\nNAMED = {{\n{entries}}}\nROWS = [\n{rows}]\n"
    return {
        "data.py": f'{data}NAMED["last"] = VALUE\nROWS.append(VALUE)\n',
        "main.py": f"from data import NAMED, ROWS\n\n{run}\nRESULT = [read(number) for number in range(9)]\n",
    }


def stars(size: int) -> Texts:
    """Packages in packages, each of two, that have all names of what is in them by stars."""
    found = {}

    def package(folder: str, first: int, count: int) -> None:
        if count == 1:
            found[f"{folder}/__init__.py"] = "from .functions import *\n"
            found[f"{folder}/functions.py"] = joined(
                f"def do_{first}_{n}(value):\n    return value\n" for n in range(9)
            )
            return
        found[f"{folder}/__init__.py"] = "from .left import *\nfrom .right import *\n"
        package(f"{folder}/left", first, count // 2)
        package(f"{folder}/right", first + count // 2, count - count // 2)

    package("names", 0, size)
    uses = "".join(f"VALUE = do_{n}_0(VALUE)\n" for n in range(size))
    return {
        **found,
        "main.py": f"from names import *\nfrom value import VALUE\n\n{uses}",
    }


def registry(size: int) -> Texts:
    """Functions and classes that decorators put into a registry, and that are taken from there."""
    functions = joined(
        f'@register("function_{n}")\ndef function_{n}(value):\n    return value\n\n\n'
        f'@register("class_{n}")\nclass Class{n}:\n    def __init__(self, value):\n        self.value = value\n'
        for n in range(size)
    )
    run = "def run(name, value):\n    return REGISTRY[name](value)\n"
    imports = "import entries\nfrom registry import REGISTRY\nfrom value import VALUE\n"
    main = f"{imports}\n{run}\nRESULT = [run(name, VALUE) for name in REGISTRY]\n"
    return {
        "registry.py": REGISTER,
        "entries.py": f"from registry import register\n\n{functions}",
        "main.py": main,
    }


def metaclasses(size: int) -> Texts:
    """Classes that a metaclass makes, keeps and calls."""
    classes = joined(
        f"class Made{n}(metaclass=Meta):\n"
        f"    def __init__(self, value):\n"
        f"        self.value = value\n\n"
        f"    def finish(self):\n"
        f"        self.finished = self.value\n"
        for n in range(size)
    )
    main = "from made import Meta\nfrom value import VALUE\n\nRESULT = [made(VALUE) for made in Meta.made.values()]\n"
    return {"made.py": f"{META}\n{classes}", "main.py": main}


def fluent(size: int) -> Texts:
    """Methods that return self, in one long chain."""
    methods = joined(
        f"    def set_{n}(self, value):\n        self.value_{n} = value\n        return self\n"
        for n in range(size)
    )
    chain = "".join(f".set_{n}(VALUE)" for n in range(size))
    main = f"from builder import Builder\nfrom value import VALUE\n\nRESULT = Builder(){chain}\n"
    return {"builder.py": f"class Builder:\n{methods}", "main.py": main}


def closures(size: int) -> Texts:
    """Closures and lambdas in lists, which are called one behind the other."""
    makers = joined(
        f"def make_{n}(inner):\n    def closure(value):\n        return inner(value)\n\n    return closure\n"
        for n in range(size)
    )
    made = "".join(f"CLOSURES.append(make_{n}(LAMBDAS[{n}]))\n" for n in range(size))
    lambdas = "".join(f"    lambda value, number={n}: value,\n" for n in range(size))
    run = "def run(value):\n    for closure in CLOSURES:\n        value = closure(value)\n    return value\n"
    return {
        "hooks.py": f"{makers}\nLAMBDAS = [\n{lambdas}]\nCLOSURES = []\n{made}",
        "main.py": f"from hooks import CLOSURES\nfrom value import VALUE\n\n{run}\nRESULT = run(VALUE)\n",
    }


CASES: dict[str, tuple[Callable[[int], Texts], int]] = {
    "dispatch": (dispatch, 1000),
    "cycles": (cycles, 300),
    "inheritance": (inheritance, 200),
    "diamond": (diamond, 200),
    "calls": (calls, 500),
    "recursion": (recursion, 500),
    "literals": (literals, 50_000),
    "stars": (stars, 64),
    "registry": (registry, 500),
    "metaclasses": (metaclasses, 300),
    "fluent": (fluent, 300),
    "closures": (closures, 300),
}
"""What writes each case, and the size that it is measured with first."""


def write(name: str, size: int, folder: Path, *, apart: bool = False) -> None:
    """Write a case into a folder, with an optimizer as the value that goes through it, or with one apart from that."""
    texts = CASES[name][0](size)
    for path, text in {
        **texts,
        "value.py": APART if apart else WITHIN,
        "planted.py": PLANTED.read_text(),
    }.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


@click.command()
@click.argument("name", type=click.Choice(sorted(CASES)))
@click.argument("size", type=int)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--apart", is_flag=True, help="Let the optimizer have nothing to do with it."
)
def main(name: str, size: int, folder: Path, apart: bool) -> None:
    """Write a case of a size into a folder."""
    write(name, size, folder, apart=apart)


if __name__ == "__main__":
    main()
