"""Every form of import: the legacy name goes, what replaces it comes in its place, all else stays."""

import pytest

from tests.codemods.programs import migrated, program, project, result_of

BODY = """

def create(params):
    return {call}(1e-3).create(params)
"""
NEW_BODY = """

def create(params):
    return train_state.TrainState.create(
        apply_fn=None, params=params, tx=optax.adam(1e-3)
    )
"""
IN_ORDER = "import optax\nfrom flax.training import train_state"
FORMS = {
    "behind another on the same line": (
        "import jax; from flax import optim",
        "optim.Adam",
        "import jax\nimport optax\nfrom flax.training import train_state",
    ),
    "beside a star import of the module that has the new name": (
        "from flax import optim\nfrom flax.training import *",
        "optim.Adam",
        "import optax\nfrom flax.training import *\nfrom flax.training import train_state",
    ),
    "beside unsorted names of the module that has the new name": (
        "from flax import optim\nfrom flax.training import lr_schedule, checkpoints",
        "optim.Adam",
        "import optax\nfrom flax.training import lr_schedule, checkpoints, train_state",
    ),
    "from flax import optim": ("from flax import optim", "optim.Adam", IN_ORDER),
    "under another name": ("from flax import optim as opt", "opt.Adam", IN_ORDER),
    "the module itself": ("import flax.optim", "flax.optim.Adam", IN_ORDER),
    "the module by its name": ("import flax.optim as opt", "opt.Adam", IN_ORDER),
    "a name": ("from flax.optim import Adam", "Adam", IN_ORDER),
    "a name from a submodule": ("from flax.optim.adam import Adam", "Adam", IN_ORDER),
    "everything": ("from flax.optim import *", "Adam", IN_ORDER),
    "flax alone": ("import flax", "flax.optim.Adam", IN_ORDER),
}


@pytest.mark.parametrize(("before", "call", "after"), FORMS.values(), ids=FORMS)
def test_forms(before: str, call: str, after: str) -> None:
    result = result_of(before + "\n" + BODY.format(call=call))

    lines = f"{after}\n{NEW_BODY}".split("\n")
    assert sorted(result.after.decode().split("\n")) == sorted(lines)
    assert not any(site.status != "rewritten" for site in result.sites)


def test_header_and_future_imports_stay_first() -> None:
    result = result_of('''
        #!/usr/bin/env python
        # Copyright of its authors.
        """A script."""

        from __future__ import annotations

        # The optimizers.
        from flax import optim

        d = optim.Adam(1e-3)
        ''')
    assert result.after.decode() == program('''
        #!/usr/bin/env python
        # Copyright of its authors.
        """A script."""

        from __future__ import annotations

        # The optimizers.
        import optax

        d = optax.adam(1e-3)
        ''')


def test_helpers_come_behind_guarded_imports() -> None:
    after = migrated("""
        import jax
        from flax import optim
        try:
            import tensorflow as tf
        except ImportError:
            tf = None

        def train(params):
            return optim.Adagrad(0.1).create(params).target
        """)
    assert after.startswith(
        "from typing import NamedTuple\n\nimport jax\nimport jax.numpy as jnp\nimport optax\n"
        "from flax.training import train_state\ntry:\n    import tensorflow as tf\nexcept ImportError:\n"
        "    tf = None\n\n\nclass ScaleBySumOfSquaresState(NamedTuple):\n"
    )


def test_what_a_module_exports_by_name_stays() -> None:
    assert migrated("""
        import flax, jax

        __all__ = ["flax", "train"]

        def train(params):
            return flax.optim.Adam(0.1).create(params)
        """) == program("""
        import flax, jax
        import optax
        from flax.training import train_state

        __all__ = ["flax", "train"]

        def train(params):
            return train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.adam(0.1)
            )
        """)


EXPORTED = {
    "in __all__": ("from flax import optim\n\n__all__ = ['optim']\n", "train"),
    "in a package": ("from flax import optim\n", "pkg/__init__"),
    "on purpose": ("from flax import optim  # noqa: F401\n", "train"),
    "a class, on purpose": ("from flax.optim import Adam  # noqa: F401\nprint(1)\n", "train"),
    "a class, whatever the linter says": ("from flax.optim import Adam  # noqa\n", "train"),
    "a class, as itself": ("from flax.optim import Adam as Adam\n", "train"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "name"), EXPORTED.values(), ids=EXPORTED)
def test_exports_stay_and_are_reported(text: str, name: str) -> None:
    [result] = project({name: text}).values()

    assert not result.changed
    assert [(site.code, site.status) for site in result.sites] == [
        ("FO911", "unresolved")
    ]


def test_a_star_in_a_package_is_reported_as_the_names_it_brings() -> None:
    [result] = project({"pkg/__init__": "from flax.optim import *\n"}).values()
    assert [site.message for site in result.sites] == [
        "The names of `flax.optim` may be imported from this module by others."
    ]


def test_an_import_that_is_only_late_goes() -> None:
    result = result_of("""
        print(1)
        from flax.optim import Adam  # noqa: E402
        """)
    assert result.after == b"print(1)\n"


def test_a_class_that_is_read_by_its_name_takes_the_place_of_the_imported_one() -> None:
    for listed, left in (
        ("Adam, Momentum", ""),
        ("Momentum, ModelParamTraversal", "ModelParamTraversal"),
    ):
        results = project(
            {
                "names": f"from flax.optim import {listed}  # noqa: F401\n",
                "train": """
                import names

                def create(params):
                    return getattr(names, "Momentum")(1e-3).create(params).target
                """,
            }
        )
        after = results["names"].after.decode()
        assert "class Momentum(OptimizerDef):" in after
        assert ("class Adam(OptimizerDef):" in after) == ("Adam" in listed)
        imports = [line for line in after.split("\n") if "flax.optim" in line]
        assert imports == [f"from flax.optim import {left}  # noqa: F401"] * bool(left)
        assert b"TrainState.create(" in results["train"].after


def test_a_name_that_stays_keeps_the_comment_behind_it() -> None:
    before = """
        from flax.optim import (
            Adam,  # noqa: F401
            Momentum{end}
        optimizer_def = Momentum(0.1)
        """
    for end in (")", "\n        )", ",\n        )", ",  # used\n        )"):
        result = result_of(before.format(end=end))
        assert result.after.decode() == program("""
            import optax
            from flax.optim import (
                Adam,  # noqa: F401
            )
            optimizer_def = optax.sgd(0.1, momentum=0.9)
            """)
