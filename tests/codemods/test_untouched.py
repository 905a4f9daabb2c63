"""What must not change: code that only looks like it, and every byte outside of the edited statements."""

import pytest

from tests.codemods.programs import files, migrated, program, project, result_of

ALIKE = {
    "torch.optim": """
        import torch
        from torch import optim

        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        optimizer.target = 3
        """,
    "a variable called optimizer": """
        import jax

        class Camera:
            def __init__(self):
                self.target = (0, 0)

        optimizer = Camera()
        print(optimizer.target)
        """,
    "targets of a batch": """
        import jax
        from project.input import prepare

        def loss(model, params, batch, config):
            prepared = prepare(params, batch)
            return model.apply(params, prepared.inputs) - prepared.target + config["target"] + batch.state.step
        """,
    "a traversal outside of any optimizer": """
        from flax import traverse_util

        kernels = traverse_util.ModelParamTraversal(lambda path, _: "kernel" in path)
        halved = kernels.update(lambda x: x / 2, params)
        """,
    "text that mentions flax.optim": '''
        """Once used flax.optim.Adam."""
        HINT = "pip install 'flax<0.6'  # for flax.optim"
        ''',
    "a name of the module by which it is to be silent": """
        import logging
        import warnings

        warnings.filterwarnings("ignore", module="flax.optim")
        logging.getLogger("flax.optim").setLevel(logging.ERROR)
        """,
}


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_code_that_only_looks_like_it(text: str) -> None:
    result = result_of(text)

    assert not result.changed
    assert result.sites == ()


OWN = """
-- project/optim
class Adam:
    def create(self, params):
        return self
-- project/train
from project import optim
optimizer = optim.Adam().create(None)
-- project/tune
from . import optim
optimizer = optim.Adam().create(None)
"""


def test_a_module_of_ones_own_called_optim() -> None:
    results = project(files(OWN)).values()
    assert len(results) == 3
    assert all(result.sites == () and not result.changed for result in results)


def test_a_local_variable_that_shadows_the_import() -> None:
    result = result_of("""
        def other(optim):
            return optim.Adam(1e-3)

        def ours():
            return optim.Adam(1e-3)
        """)
    assert b"def other(optim):\n    return optim.Adam(1e-3)" in result.after
    assert b"def ours():\n    return optax.adam(1e-3)" in result.after


STEP = "def step(optimizer, grads):\n    return optimizer.apply_gradient(grads)\n"
SPACED = """
    def read(path, optimizer: optim.Optimizer, grads):
        try :
            return open(path)
        except (OSError,
                KeyError) :
            return None
        except ValueError :
            return optimizer.apply_gradient(grads)
    """


def test_blanks_that_libcst_loses_are_kept() -> None:
    new = program(SPACED).replace("apply_gradient(", "apply_gradients(grads=")
    assert migrated(SPACED).partition("try :")[2] == new.partition("try :")[2]


def test_what_stands_behind_such_a_blank_is_left() -> None:
    before = program(SPACED) + "    except TypeError : return optimizer.target\n"
    result = result_of(before)
    assert result.after.decode() == before
    assert {site.code for site in result.sites} == {"FO919"}


def test_no_comment_is_lost() -> None:
    result = result_of("""
        optimizer = (
            optim.Adam(0.1)  # small
            .create(params)
        )
        """)
    assert not result.changed
    assert any("`# small` would be lost" in site.message for site in result.sites)
