"""However the files of a program import from each other, an optimizer migrates in all of them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from codemods import Options, Source, migrate

LIBRARY = """
from flax import optim


def make(params, rate):
    return optim.Adam(rate).create(params)


def step(optimizer, grads):
    return optimizer.apply_gradient(grads)


class Agent:
    def __init__(self, params):
        self.optimizer = make(params, 0.1)

    def update(self, grads):
        self.optimizer = step(self.optimizer, grads)
        return self.optimizer.target


class Base:
    def __init__(self, optimizer, name):
        self.name = name
        self.optimizer = optimizer


MAKERS = {"adam": make}
DEFAULT = optim.Momentum(0.1)
"""
NAMES = "Agent, Base, DEFAULT, MAKERS, make, step"

PROGRAMS = {
    "functions": """
def main(params, batches):
    optimizer = {library}make(params, 0.1)
    for grads in batches:
        optimizer = {library}step(optimizer, grads)
    return optimizer.target
""",
    "a class": """
def main(params, batches):
    agent = {library}Agent(params)
    for grads in batches:
        agent.update(grads)
    return agent.optimizer.target, agent.optimizer.state.step
""",
    "a subclass": """
class Mine({library}Base):
    def __init__(self, params):
        super().__init__({library}make(params, 0.2), "mine")

    def update(self, grads):
        self.optimizer = self.optimizer.apply_gradient(grads)


def main(params, batches):
    mine = Mine(params)
    for grads in batches:
        mine.update(grads)
    return mine.optimizer.target
""",
    "a table": """
def main(params, batches):
    optimizer = {library}MAKERS["adam"](params, 0.1)
    for grads in batches:
        optimizer = optimizer.apply_gradient(grads)
    return optimizer.target
""",
    "a definition": """
def main(params, batches):
    optimizer = {library}DEFAULT.create(params)
    for grads in batches:
        optimizer = optimizer.apply_gradient(grads)
    return optimizer.target
""",
}

FORMS = ("*", NAMES)
"""What a package may take in of its module, so that it has the names itself."""

PACKAGES = (
    "",
    "from . import library",
    "from . import library as core",
    "from pkg import library",
    "import pkg.library",
    *(f"from .library import {names}" for names in FORMS),
)
"""The text of `pkg/__init__.py`."""

LEFT = re.compile(r"\.target\b|apply_gradient\(|\.state\.step\b|optim\.")


class Layout(NamedTuple):
    """Where the library and the program are, and how this imports that.

    `owner` stands before each name of the library in the program, with a dot or empty.
    """

    others: dict[str, str]
    library: str
    program: str
    statement: str
    owner: str


def _imports(module: str) -> Iterator[tuple[str, str]]:
    package, _, name = module.rpartition(".")
    yield f"import {module}", f"{module}."
    yield f"import {module} as other", "other."
    if package:
        yield f"from {package} import {name}", f"{name}."
    for names in FORMS:
        yield f"from {module} import {names}", ""


def _layouts() -> Iterator[Layout]:
    for statement, owner in _imports("library"):
        yield Layout({}, "library.py", "main.py", statement, owner)
        yield Layout({}, "lab/library.py", "lab/main.py", statement, owner)
        path = 'import sys\nsys.path.append("../common")\n'
        yield Layout({}, "common/library.py", "lab/main.py", path + statement, owner)
    for statement, owner in _imports("pkg.library"):
        yield Layout({}, "pkg/library.py", "main.py", statement, owner)
        for init in PACKAGES:
            inits = {"pkg/__init__.py": init}
            yield Layout(inits, "pkg/library.py", "main.py", statement, owner)
            inits = {"src/pkg/__init__.py": init}
            yield Layout(inits, "src/pkg/library.py", "lab/main.py", statement, owner)
    for init in PACKAGES:
        has_names = init.startswith("from .library")
        name = "core" if "core" in init else "library"
        ways = [("import pkg", "pkg." if has_names else f"pkg.{name}.")] if init else []
        if has_names:
            ways += ((f"from pkg import {names}", "") for names in FORMS)
        for statement, owner in ways:
            inits = {"pkg/__init__.py": init}
            yield Layout(inits, "pkg/library.py", "main.py", statement, owner)
        inits = {"pkg/__init__.py": init}
        ways = [("from . import library", "library."), ("from .library import *", "")]
        for statement, owner in ways:
            yield Layout(inits, "pkg/library.py", "pkg/main.py", statement, owner)
        inits = {"pkg/__init__.py": "from . import inner"}
        inits["pkg/inner/__init__.py"] = init.replace("pkg", "pkg.inner")
        forms = ("from ..inner import library", "from pkg.inner import library")
        ways = [(form, "library.") for form in forms]
        if init and not has_names:
            ways.append(("import pkg", f"pkg.inner.{name}."))
        places = ("pkg/inner/library.py", "pkg/app/main.py")
        for statement, owner in ways:
            yield Layout(inits, *places, statement, owner)


LAYOUTS = [*_layouts()]


def _check(layout: Layout, program: str) -> None:
    code = layout.statement + PROGRAMS[program].format(library=layout.owner)
    texts = {**layout.others, layout.library: LIBRARY, layout.program: code}
    sources = [Source(path, text.encode()) for path, text in texts.items()]
    for result in migrate(sources, Options()):
        left = LEFT.search(result.after.decode())
        assert left is None, (layout, program, result.path, left)


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_one_program_in_each_layout(number: int) -> None:
    _check(LAYOUTS[number], [*PROGRAMS][number % len(PROGRAMS)])


@pytest.mark.thorough
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_in_each_layout(program: str) -> None:
    for layout in LAYOUTS:
        _check(layout, program)
