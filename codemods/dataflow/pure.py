"""Functions outside the project that change nothing, by full name. Whatever is not here acts."""

from __future__ import annotations

import builtins
from functools import cache

from codemods import vocabulary
from codemods.vocabulary import full_names, listed, words

EXCEPTIONS = frozenset(
    f"builtins.{name}"
    for name, made in vars(builtins).items()
    if isinstance(made, type) and issubclass(made, BaseException)
)

PURE = (
    listed("""
        builtins: abs ascii bin bool bytes callable chr complex dict divmod enumerate float format
        builtins: frozenset getattr hasattr hash hex id int isinstance issubclass len list max min
        builtins: object oct ord pow range repr reversed round set slice sorted str sum super tuple
        builtins: type zip any all property staticmethod classmethod
        functools: partial wraps lru_cache cache cached_property
        dataclasses: replace field dataclass asdict astuple fields
        typing: cast NamedTuple NewType TypeVar
        typing abc: overload final runtime_checkable no_type_check abstractmethod
        collections: namedtuple OrderedDict Counter deque defaultdict
        types: SimpleNamespace MappingProxyType
        itertools: product combinations permutations
        os.path: join basename dirname splitext
        re: compile match search fullmatch findall sub split escape
        jax: jit pmap vmap grad value_and_grad checkpoint remat named_call custom_vjp custom_jvp
        jax: device_count local_device_count device_put device_get device_put_replicated
        jax: device_put_sharded block_until_ready process_index process_count host_id host_count
        jax: devices local_devices default_backend disable_jit named_scope jacfwd jacrev hessian
        jax.dtypes: canonicalize_dtype result_type
        flax.jax_utils: replicate unreplicate partial_eval_by_shape pad_shard_unpad
        flax.core flax.core.frozen_dict: freeze unfreeze FrozenDict copy pop pretty_repr
        flax.training.common_utils: shard shard_prng_key onehot stack_forest get_metrics
        flax.traverse_util: flatten_dict unflatten_dict path_aware_map ModelParamTraversal
        flax.traverse_util: TraverseTree t_identity
        flax.serialization: to_state_dict from_state_dict to_bytes from_bytes
        flax.struct: field dataclass
        flax.linen: compact nowrap jit remat
        flax.training.train_state.TrainState: create
        flax.training.dynamic_scale flax.optim flax.optim.dynamic_scale: DynamicScale
    """)
    | (EXCEPTIONS | vocabulary.RAVEL_TREE | vocabulary.TREE_NORM)
    | (vocabulary.CLIP_GRADIENTS | vocabulary.COPY | vocabulary.LIST_LEAVES)
    | (vocabulary.FLATTEN | vocabulary.TELL_PATHS | vocabulary.UNFLATTEN)
    | vocabulary.STRUCTURE
)
"""Functions and classes that change nothing and give the same for the same."""

PURE_MODULES = words(
    "jax.numpy. jax.scipy. jax.nn. jax.lax. jax.random. jax.core. jax.tree_util. math. cmath. "
    "operator. statistics. optax. flax.training.lr_schedule. flax.optim. flax.linen.initializers. "
    "jax.experimental.optimizers. jax.example_libraries.optimizers. string. types."
)
"""Modules whose functions change nothing and give the same for the same."""

ITERATING = full_names(
    "builtins",
    "all any dict enumerate frozenset list map max min set sorted sum tuple zip bytes filter",
) | {"functools.reduce"}
"""Functions that take the elements of their arguments one by one, and so use an iterator up."""

LOOKING_IN = (
    ITERATING | vocabulary.COPY | full_names("dataclasses", "replace asdict astuple")
)
"""Functions whose result is made of all that is in their arguments."""

IMPURE = listed("""
    operator: setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow
    operator: irshift isub itruediv ixor call methodcaller attrgetter itemgetter
    jax.lax: infeed outfeed
""")
"""Functions of these modules that may change something."""

NUMPY_ACTING = full_names(
    "numpy",
    "copyto put place putmask fill_diagonal put_along_axis save savez savez_compressed savetxt "
    "load loadtxt fromfile memmap seterr seterrcall set_printoptions nditer fromiter vectorize "
    "frompyfunc apply_along_axis apply_over_axes fromfunction",
)
NUMPY_STATEFUL = ("numpy.random.", "numpy.testing.", "numpy.lib.", "numpy.f2py.")

CALLING = (
    (vocabulary.MAP_TREES | vocabulary.MAP_TREES_WITH_PATH | vocabulary.REDUCE_TREES)
    | (vocabulary.CONTROL | vocabulary.MAP_SLICES | vocabulary.SHAPES_OF)
    | vocabulary.LINEARIZE
    | listed("""
        builtins functools: map filter reduce
        jax.lax: associative_scan custom_root
        jax: make_jaxpr pure_callback
        flax.traverse_util: path_aware_map
    """)
)
"""Functions that call functions among their arguments at once, and do nothing else."""

LOGGING = ("logging.", "absl.logging.", "warnings.warn", "builtins.print")
"""Functions that leave nothing but lines in the log, which count for nothing."""

OUTSIDE = words(
    "time. datetime. os. shutil. json. csv. glob. tempfile. random. numpy.random. numpy.save "
    "flax.training.checkpoints. flax.jax_utils. flax.training.common_utils. flax.metrics. "
    "jax.profiler."
)
"""Functions that read and write the outside world and their arguments, and nothing else."""

CONSTANTS = words("jax.numpy. numpy. math. cmath. string. sys.maxsize os.sep")
"""Modules of which no attribute is ever set."""

CONTAINER_READING = words(
    "get items keys values copy index count __getitem__ __contains__ union issubset"
)
"""Methods of tuples, lists, sets and dictionaries that change nothing."""

TEXT_METHODS = frozenset(name for name in dir(str) if not name.startswith("_"))
OF_TEXTS_ALONE = frozenset(
    words(
        "endswith lower lstrip partition rpartition rsplit rstrip split splitlines startswith "
        "strip title upper"
    )
)
"""The methods that nothing in programs with JAX has but texts; each gives texts, or a bool."""

NUMBER_METHODS = frozenset(
    ("is_integer", "bit_length", "conjugate", "as_integer_ratio", "hex")
)
ARRAY_METHODS = words(
    "all any argmax argmin argsort astype at clip conj copy cumprod cumsum diagonal dot flatten "
    "item max mean min nonzero prod ravel repeat reshape round squeeze std sum swapaxes take "
    "tolist trace transpose var block_until_ready set add multiply get divide power apply mul"
)
"""Methods of JAX's arrays, and of what their `at` gives: none changes the array."""

ARRAY_MODULES = ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.")
SCHEDULES = ("optax.", "flax.training.lr_schedule.", "jax.experimental.optimizers.")
"""Modules of which every function makes a pure one."""


@cache
def is_pure(name: str) -> bool:
    """Whether a call of an external function changes nothing and gives the same for the same."""
    if name in IMPURE or name in NUMPY_ACTING or name.startswith(NUMPY_STATEFUL):
        return False
    return name in PURE or name.startswith((*PURE_MODULES, "numpy."))


@cache
def is_constant(name: str) -> bool:
    """Whether something external, by its full name, is never set to something else."""
    if name.startswith(CONSTANTS) or name in CALLING or is_pure(name):
        return True
    # `jax.nn` of `jax.nn.relu`: a module of functions that are known.
    module = f"{name}."
    known = (*PURE_MODULES, *CONSTANTS, *PURE, *CALLING)
    return any(one.startswith(module) for one in known)
