"""What must not change: code that only looks like it, and every byte outside of the edited statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods import Source, migrate
from tests.codemods.programs import program, result_of

ALIKE = {
    "torch.optim": """
        import torch
        from torch import optim

        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        optimizer.target = 3
        """,
    "the optimizers of JAX itself": """
        from jax.example_libraries import optimizers

        opt_init, opt_update, get_params = optimizers.adam(1e-3)
        """,
    "optax in use already": """
        import optax
        from flax.training import train_state

        state = train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(1e-3))
        state = state.apply_gradients(grads=grads)
        """,
    "a variable called optimizer": """
        import jax

        class Camera:
            def __init__(self):
                self.target = (0, 0)

        optimizer = Camera()
        print(optimizer.target)
        """,
    "a class with an apply_gradient of its own": """
        import jax

        class Model:
            def apply_gradient(self, loss_fn):
                return self, {}

        def update(model: Model):
            new_model, info = model.apply_gradient(None)
            return new_model
        """,
    "a parameter annotated with another type": """
        import jax
        from project.models import Model

        def update(actor: Model, loss_fn):
            return actor.apply_gradient(loss_fn)
        """,
    "targets of a batch": """
        import jax
        from project.input import prepare

        def loss(model, params, batch, config):
            prepared = prepare(params, batch)
            return model.apply(params, prepared.inputs) - prepared.target + config["target"] + batch.state.step
        """,
    "a class of an unknown package with a method apply_gradient": """
        import jax
        from elsewhere import Agent

        agent = Agent(3)
        agent.apply_gradient(grads)
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


def test_a_module_of_ones_own_called_optim() -> None:
    sources = [
        Source(
            "project/optim.py",
            b"class Adam:\n    def create(self, params):\n        return self\n",
        ),
        Source(
            "project/train.py",
            b"from project import optim\n\noptimizer = optim.Adam().create(None)\n",
        ),
        Source(
            "project/tune.py",
            b"from . import optim\n\noptimizer = optim.Adam().create(None)\n",
        ),
    ]
    assert all(result.sites == () and not result.changed for result in migrate(sources))


def test_a_local_variable_that_shadows_the_import() -> None:
    result = result_of("""
        from flax import optim

        def other(optim):
            return optim.Adam(1e-3)

        def ours():
            return optim.Adam(1e-3)
        """)
    assert b"def other(optim):\n    return optim.Adam(1e-3)" in result.after
    assert b"def ours():\n    return optax.adam(1e-3)" in result.after


STEP = "def step(optimizer, grads):\n    return optimizer.apply_gradient(grads)\n"
LAYOUTS = {
    "windows line ends": (STEP.replace("\n", "\r\n").encode(), b"\r\n"),
    "a byte order mark": (b"\xef\xbb\xbf" + STEP.encode(), b"\xef\xbb\xbf"),
    "tabs": (STEP.replace("    ", "\t").encode(), b"\t"),
    "no final newline": (STEP.rstrip("\n").encode(), b"grads)"),
    "a form feed": (b"import jax\n\x0c\n" + STEP.encode(), b"\x0c"),
    "latin-1 with a coding line": (
        b"# coding: latin-1\n# caf\xe9\n" + STEP.encode(),
        b"caf\xe9",
    ),
    "trailing blanks": (b"import jax   \n" + STEP.encode(), b"import jax   \n"),
}


@pytest.mark.parametrize(("content", "kept"), LAYOUTS.values(), ids=LAYOUTS)
def test_bytes_outside_of_the_edit(content: bytes, kept: bytes) -> None:
    content = content.replace(
        b"def step",
        b"import jax;x=1" + (b"\r\n" if b"\r\n" in content else b"\n") + b"def step",
    )
    [result] = migrate([Source("step.py", content)])

    assert result.error is None
    assert result.after == content.replace(
        b"apply_gradient(grads)", b"apply_gradients(grads=grads)"
    )
    assert kept in result.after


SPACED = """
    from flax import optim

    def read(path, optimizer: optim.Optimizer, grads):
        try :
            return open(path)
        except (OSError,
                KeyError) :
            return None
        except ValueError :
            return optimizer.apply_gradient(grads)
    """


def test_what_has_a_blank_that_libcst_loses_is_left() -> None:
    before = program(SPACED)
    [result] = migrate([Source("train.py", before.encode())])
    assert result.after.decode() == before
    assert {site.code for site in result.sites} == {"FO919"}


def test_what_cannot_be_kept_to_the_letter_is_left() -> None:
    content = (b"import jax\n" + STEP.encode()).replace(b"\n", b"\r")
    [result] = migrate([Source("old_mac.py", content)])

    assert result.after == content
    assert {site.code for site in result.sites} == {"FO919"}


def test_columns_behind_other_alphabets() -> None:
    before = program("""
        import jax

        def log(optimizer, grads):
            print("gewünscht: ✓", optimizer.apply_gradient(grads), f"größe {optimizer.target} – {optimizer.state.step:d}")
        """)
    after = before.replace(
        "apply_gradient(grads)", "apply_gradients(grads=grads)"
    ).replace("target", "params")
    [result] = migrate([Source("log.py", before.encode())])

    assert result.after.decode() == after.replace(
        "optimizer.state.step", "optimizer.step"
    )
    assert result.sites[0].column == before.split("\n")[3].index("optimizer") + 1


def test_comments_and_layout_of_a_call_stay() -> None:
    result = result_of("""
        from flax import optim

        definition = optim.Adam(
            learning_rate=config.rate,  # tuned on the validation set
            beta1 = 0.9,
            # the paper says 0.98
            beta2=config["beta2"],
        )
        """)
    assert result.after.decode() == program("""
        import optax

        definition = optax.adam(
            learning_rate=config.rate,  # tuned on the validation set
            b1 = 0.9,
            # the paper says 0.98
            b2=config["beta2"],
        )
        """)


def test_what_cannot_be_read_is_reported_and_the_rest_is_done() -> None:
    good = Source("good.py", b"from flax import optim\n\nd = optim.Adam(1e-3)\n")
    results = migrate(
        [
            Source("python2.py", b"from flax import optim\nprint optim\n"),
            Source("nul.py", b"from flax import optim\0"),
            Source("encoding.py", b"# coding: klingon\nfrom flax import optim\n"),
            Source("latin.py", b"x = '\xe9'\nfrom flax import optim\n"),
            Source("deep.py", b"x = " + b"-" * 5000 + b"1\nfrom flax import optim\n"),
            good,
        ]
    )
    assert [result.error is not None for result in results] == [
        True,
        True,
        True,
        True,
        True,
        False,
    ]
    assert all(not result.changed for result in results[:-1])
    assert results[-1].after == b"import optax\n\nd = optax.adam(1e-3)\n"
    assert "line 2" in str(results[0].error)


def test_the_code_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "was_run"
    result = result_of(f"""
        from flax import optim

        open({str(marker)!r}, "w").close()
        d = optim.Adam(1e-3)
        raise SystemExit("run")
        """)
    assert result.changed
    assert not marker.exists()


def test_no_comment_is_lost() -> None:
    before = """
        from flax import optim

        optimizer = (
            optim.Adam(0.1)  # small
            .create(params)
        )
        """
    result = result_of(before)
    assert not result.changed
    assert any("`# small` would be lost" in site.message for site in result.sites)
