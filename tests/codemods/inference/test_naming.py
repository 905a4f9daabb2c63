"""What names stand for: imports, modules, classes by name, statements that bind."""

from tests.codemods.inference.asking import assert_answers, each

MADE = """
from flax import optim

made = optim.Adam().create(params)  # makes: made
"""

IMPORTS = """
== a star
-- library.py
MADE
-- train.py
from library import *

made.target  # is: made
== a module by its name
-- library.py
MADE
-- train.py
import importlib

importlib.import_module("library").made.target  # is: made
"""

MAKE = """
made = optim.Adam().create(params)  # makes: made
"""

NAMES = """
== async functions
async def load():
    return made

async def train():
    optimizer = await load()
    optimizer.target  # is: made
"""

DEFINITIONS = """
== an optimizer of several parts
kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
both = optim.MultiOptimizer((kernels, optim.Adam()), (others, optim.Momentum()))
optimizer = both.create(params)  # makes: made
optimizer.target  # is: made
optimizer.state[0].step  # is: state made
"""

UNKNOWN = """
== a name that nobody binds
optimizer.target  # is: unknown
== an index that is computed, of something unknown
states[index].target  # is: unknown
== an attribute that an optimizer does not have
made.params.target  # is: unknown
"""


@each(IMPORTS)
def test_imports(text: str) -> None:
    assert_answers(text.replace("MADE\n", MADE))


@each(NAMES + UNKNOWN)
def test_names(text: str) -> None:
    assert_answers(MAKE + text)


@each(DEFINITIONS)
def test_definitions(text: str) -> None:
    assert_answers(text)
