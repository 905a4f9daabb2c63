"""What packages outside the project do with their arguments, as far as their purpose tells."""

from __future__ import annotations

import sys
from typing import Literal

from codemods.vocabulary import NUMBERS, full_names, words

Effect = Literal["none", "result", "contents", "unknown"]
"""What code out of view does with its arguments.

It neither keeps nor returns them (`none`); it makes its result of them (`result`); it keeps and
gives back the very objects (`contents`); or nothing is known.
"""

FORGETFUL = frozenset(
    words(
        "absl logging math os re sys time warnings traceback pprint textwrap "
        "string datetime timeit json statistics pathlib shutil unittest pytest"
    )
)
"""Packages that look at their arguments, and neither keep them nor give them back."""

KEEPING = ("unittest.mock.",)
"""What the names of functions of these packages begin with that do keep them."""

DESCRIBING = full_names(
    "inspect",
    "signature getfullargspec getsource getsourcelines getsourcefile "
    "getfile getdoc getcomments getmodule isfunction ismethod isclass "
    "ismodule isbuiltin isroutine isgenerator isgeneratorfunction "
    "iscoroutinefunction isabstract isawaitable",
) | full_names("dataclasses", "is_dataclass fields")
"""Functions that only look at their arguments, of packages that have others."""

COMPUTING = frozenset(
    ("jax", "jaxlib", "flax", "optax", "chex", "orbax", "haiku", "distrax", "clu")
)
"""Packages that compute with their arguments.

They know of no optimizer of the project but by these.
"""

OBJECT_ARRAYS = frozenset(
    words(
        "array asarray asanyarray vectorize frompyfunc fromiter full nditer "
        "ndenumerate append insert concatenate stack roll reshape ravel take "
        "where copy atleast_1d"
    )
)
"""Functions of NumPy that give back their arguments in arrays of objects.

The others compute numbers.
"""

HOLDING = frozenset(
    words("tqdm more_itertools toolz cytoolz joblib cloudpickle dill tree")
)
"""Packages of containers and iterators, which give back their arguments."""

FRAMEWORKS = frozenset(
    words(
        "tensorflow tensorflow_datasets tensorflow_probability tensorboard "
        "tensorboardX torch torchvision keras ml_collections gin hydra "
        "omegaconf wandb gym gymnasium dm_env scipy pandas argparse "
        "configparser random sklearn matplotlib PIL cv2 yaml click fire "
        "transformers datasets seqio"
    )
)
"""Packages of other frameworks and tools, which know no optimizer of Flax."""

PLAIN = tuple(
    f"builtins.{kind}" for kind in ("str", "int", "float", "bool", "bytes", "complex")
)
"""Builtin classes whose instances hold nothing, and whose methods give such again."""

LOOKING = frozenset(
    words(
        "print len isinstance issubclass id hash repr str bool int float abs "
        "callable hasattr format ascii dir help input round any all range bytes "
        "delattr"
    )
)
"""Builtins that look at their arguments."""

RUNNING_TEXT = frozenset(("eval", "exec"))
"""Builtins that run code which is not in view."""


def effect_of(name: str) -> Effect:
    """What a function does with its arguments, by its full name."""
    package, _, rest = name.partition(".")
    if not name or (package == "builtins" and rest in RUNNING_TEXT):
        return "unknown"
    if package == "builtins":
        return "none" if rest in LOOKING else "contents"
    if package == "numpy":
        function = rest.partition("(")[0]
        # numpy.array([optimizer]), or a method of an array
        may_hold = function in OBJECT_ARRAYS or "()" in rest
        return "contents" if may_hold else "none"
    if name.startswith(KEEPING):
        return "contents"
    if package in FORGETFUL or name in DESCRIBING or name.startswith(NUMBERS):
        return "none"
    if package in COMPUTING:
        return "result"
    if package in HOLDING or package in sys.stdlib_module_names:
        return "contents"
    return "unknown"


def is_number(name: str) -> bool:
    """Whether something is a number, an array or a text, which has nothing of an optimizer."""
    return name.startswith((*PLAIN, *NUMBERS))


def is_well_known(name: str) -> bool:
    """Whether something comes from a package that makes no legacy optimizers of its own.

    What a package computes is made of what it was given, of which nothing may be known.
    """
    package = name.partition(".")[0]
    if name.startswith(PLAIN):
        return True
    if name.startswith("flax.optim"):
        return False
    is_computed = package in COMPUTING and "()" in name and effect_of(name) == "result"
    return not is_computed and package in FORGETFUL | COMPUTING | FRAMEWORKS
