"""Helpers come with the imports that they need, under other names where the file has these for something else."""

import pytest

from tests.codemods.programs import OPTAX_ALONE, result_of

PROGRAM = """\
{names}
from flax import optim


def train(params, grads):
    optimizer = optim.LAMB(1e-3, weight_decay=0.1).create(params)
    {within}
    return optimizer.apply_gradient(grads)
"""


def outcome(names: str, within: str = "print(1)") -> tuple[str, set[str]]:
    """The new code of a program in which some names are bound, and the codes of what is left."""
    text = PROGRAM.format(names=names, within=within)
    result = result_of(text)
    left = {site.code for site in result.sites if site.status == "unresolved"}
    return result.after.decode(), left


OTHERS = {
    "another package": "import numpy as jnp",
    "a function": "def jnp(x):\n    return x\n",
    "a variable": "import os\njnp = os.environ",
    "also a loop": "import jax.numpy as jnp\nfor jnp in range(3):\n    pass",
}


@pytest.mark.parametrize("names", OTHERS.values(), ids=OTHERS)
def test_a_name_that_is_something_else_gets_another_import(names: str) -> None:
    after, left = outcome(names)
    assert not left
    assert names in after
    assert after.count("jax_numpy.linalg.norm(param)") == 1
    assert after.count("from jax import numpy as jax_numpy\n") == 1


def test_another_import_of_the_file_is_used() -> None:
    names = "import numpy as jnp\nimport jax.numpy as numbers"
    after, left = outcome(names, "print(jnp.e, numbers.e)")
    assert not left
    assert after.count("numbers.linalg.norm(param)") == 1
    assert after.count("numbers\n") == 1


@pytest.mark.parametrize(
    ("names", "within"),
    [
        pytest.param("import os", "print(1)", id="no such name"),
        pytest.param("import jax.numpy as jnp", "print(jnp.e)", id="the same import"),
        pytest.param("from jax import numpy as jnp", "print(jnp.e)", id="the same, written otherwise"),
        pytest.param("import os", "jnp = 2", id="a variable of a function"),
    ],
)  # fmt: skip
def test_the_name_is_free_or_the_same(names: str, within: str) -> None:
    after, left = outcome(names, within)
    assert not left
    assert after.count("jnp.linalg.norm(param)") == 1
    assert after.count(" as jnp\n") == 1


STAYS = {
    "a name that is taken": (
        "def scale_by_norm_ratio():\n    return 1\n",
        "the name `scale_by_norm_ratio` is taken",
        "Give what is called `scale_by_norm_ratio` there another name.",
    ),
    "what LibCST does not know": (
        "def f():\n    (x): int\n    return 1\n",
        "LibCST cannot parse the code near line 6",
        "Write it otherwise.",
    ),
}


@pytest.mark.parametrize(("program", "problem", "remedy"), STAYS.values(), ids=STAYS)
def test_why_a_file_stays(program: str, problem: str, remedy: str) -> None:
    create = "def create(params):\n    return optim.LAMB(0.1).create(params)\n"
    result = result_of(
        f"from flax import optim\n\n\n{program}\n\n{create}", OPTAX_ALONE
    )
    assert not result.changed
    message = f"The rewritten file would not be valid: {problem}."
    assert {(site.message, site.remedy) for site in result.sites} == {(message, remedy)}
