"""What packages outside the project do with the objects that they are given, as far as their purpose tells."""

from __future__ import annotations

import sys

from codemods.flow.sites import Effect
from codemods.vocabulary import NUMBERS

FORGETFUL = frozenset(
    (
        *(
            "absl",
            "logging",
            "math",
            "os",
            "re",
            "sys",
            "time",
            "warnings",
            "traceback",
            "pprint",
            "textwrap",
        ),
        *(
            "string",
            "datetime",
            "timeit",
            "gc",
            "json",
            "statistics",
            "pathlib",
            "shutil",
            "unittest",
            "pytest",
        ),
    )
)
"""Packages that look at what they are given, and neither keep it nor give it back."""

KEEPING = ("unittest.mock.",)
"""How the names begin of what of these keeps it."""

DESCRIBING = frozenset(
    f"inspect.{name}"
    for name in (
        *(
            "signature",
            "getfullargspec",
            "getsource",
            "getsourcelines",
            "getsourcefile",
            "getfile",
            "getdoc",
        ),
        *(
            "getcomments",
            "getmodule",
            "isfunction",
            "ismethod",
            "isclass",
            "ismodule",
            "isbuiltin",
            "isroutine",
        ),
        *("isgenerator", "isgeneratorfunction", "iscoroutinefunction", "isabstract", "isawaitable"),
    )
)
"""Functions of which the same is true, of a package that has others."""

COMPUTING = frozenset(("jax", "jaxlib", "flax", "optax", "chex", "orbax", "haiku", "distrax"))
"""Packages that compute with what they are given. They know of no optimizer of the project but by their arguments."""

OBJECT_ARRAYS = frozenset(
    (
        *(
            "array",
            "asarray",
            "asanyarray",
            "vectorize",
            "frompyfunc",
            "fromiter",
            "full",
            "nditer",
            "ndenumerate",
        ),
        *(
            "append",
            "insert",
            "concatenate",
            "stack",
            "roll",
            "reshape",
            "ravel",
            "take",
            "where",
            "copy",
        ),
        "atleast_1d",
    )
)
"""Functions of NumPy that give back, in arrays of objects, what they were given. The others compute numbers."""

HOLDING = frozenset(
    ("tqdm", "more_itertools", "toolz", "cytoolz", "joblib", "cloudpickle", "dill", "tree")
)
"""Packages of containers and iterators, that give back what they were given."""

FRAMEWORKS = frozenset(
    (
        *(
            "tensorflow",
            "tensorflow_datasets",
            "tensorflow_probability",
            "tensorboard",
            "tensorboardX",
            "torch",
        ),
        *(
            "torchvision",
            "keras",
            "ml_collections",
            "gin",
            "hydra",
            "omegaconf",
            "wandb",
            "gym",
            "gymnasium",
        ),
        *(
            "dm_env",
            "scipy",
            "pandas",
            "argparse",
            "configparser",
            "random",
            "sklearn",
            "matplotlib",
            "PIL",
            "cv2",
        ),
        *("yaml", "click", "fire", "transformers", "datasets", "seqio"),
    )
)
"""Packages of other frameworks and tools, which know no optimizer of Flax."""

PLAIN = tuple(f"builtins.{kind}" for kind in ("str", "int", "float", "bool", "bytes", "complex"))
"""Builtin classes whose instances hold nothing, and whose methods give such again."""

LOOKING = frozenset(
    (
        *(
            "print",
            "len",
            "isinstance",
            "issubclass",
            "id",
            "hash",
            "repr",
            "str",
            "bool",
            "int",
            "float",
            "abs",
        ),
        *(
            "callable",
            "hasattr",
            "format",
            "ascii",
            "dir",
            "help",
            "input",
            "round",
            "any",
            "all",
            "range",
            "bytes",
        ),
        "delattr",
    )
)
"""Builtins that look at what they are given."""


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
        return "contents" if rest.partition("(")[0] in OBJECT_ARRAYS or "()" in rest else "none"
    if name.startswith(KEEPING):
        return "contents"
    if package in FORGETFUL or name in DESCRIBING or name.startswith(NUMBERS):
        return "none"
    if package in COMPUTING:
        return "result"
    return "contents" if package in HOLDING or package in sys.stdlib_module_names else "unknown"


def is_number(name: str) -> bool:
    """Whether something is a number, an array or a text, which nobody asks for what an optimizer has."""
    return name.startswith((*PLAIN, *NUMBERS))


def is_well_known(name: str) -> bool:
    """Whether something comes from a package that makes no legacy optimizers of its own.

    What a package computes is made of what it was given, of which nothing may be known.
    """
    package = name.partition(".")[0]
    if name.startswith(PLAIN):
        return True
    computed = package in COMPUTING and "()" in name and effect_of(name) == "result"
    return (
        not name.startswith("flax.optim")
        and not computed
        and package in FORGETFUL | COMPUTING | FRAMEWORKS
    )
