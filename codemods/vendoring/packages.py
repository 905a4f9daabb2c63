"""The packages that Flax removed, and of which a project may have a copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codemods.model import Site
from codemods.sources.prefilter import mentions_legacy, mentions_models
from codemods.vocabulary import PACKAGE, words


@dataclass(frozen=True)
class RemovedPackage:
    """A package that Flax had, with its full names in imports; messages have the first.

    A comment that suppresses its code keeps an import. `is_of` tells whether a code is of a site
    that needs the package, `mentions` whether a file may use it.
    """

    names: tuple[str, ...]
    modules: tuple[str, ...]
    code: str
    is_of: Callable[[str], bool]
    mentions: Callable[[bytes], bool]

    @property
    def name(self) -> str:
        return self.names[0]

    def concerns(self, site: Site) -> bool:
        """Whether a site is left that needs the package, and does not wait for other files."""
        is_left = site.status == "unresolved" and not site.related
        return is_left and self.is_of(site.code)


MODELS = "FO897"
"""The code of models that are written for `flax.nn`."""


OPTIM = RemovedPackage(
    (PACKAGE,),
    words(
        "__init__.py adabelief.py adadelta.py adafactor.py adagrad.py adam.py base.py "
        "dynamic_scale.py lamb.py lars.py momentum.py rmsprop.py sgd.py "
        "weight_norm.py"
    ),
    code="FO101",
    # codes that begin with FO8 have nothing to do with optimizers
    is_of=lambda code: not code.startswith("FO8"),
    mentions=mentions_legacy,
)
NN = RemovedPackage(
    ("flax.nn", "flax.deprecated.nn"),
    words(
        "__init__.py activation.py attention.py base.py initializers.py linear.py "
        "normalization.py pooling.py recurrent.py stochastic.py utils.py"
    ),
    code=MODELS,
    is_of=lambda code: code == MODELS,
    mentions=mentions_models,
)
