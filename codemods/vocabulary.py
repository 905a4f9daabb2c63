"""The functions of JAX, Flax and NumPy by what they do, under every name that they have had."""

from __future__ import annotations

PACKAGE = "flax.optim"
"""What was removed, and is migrated."""

OF_TREES = ("jax.tree_util.tree_", "jax.tree.", "jax.tree_")
"""What the names of the functions of pytrees begin with.

They are `jax.tree_util.tree_map`, `jax.tree.map`, `jax.tree_map`.
"""


def _of_trees(*words: str) -> frozenset[str]:
    return frozenset(f"{module}{word}" for module in OF_TREES for word in words)


def _of_numbers(*words: str) -> frozenset[str]:
    """Functions of arrays and numbers."""
    modules = ("jax.numpy", "numpy", "math", "jax.lax")
    return frozenset(f"{module}.{word}" for module in modules for word in words)


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(text.split())


OUTSIDE = words(
    "flax jax jaxlib optax numpy functools copy builtins dataclasses typing contextlib collections "
    "types itertools random importlib imp runpy sys operator argparse queue threading "
    "ml_collections chex pickle pytest concurrent "
    "multiprocessing asyncio"
)
"""The packages of which it is known what they do.

An import of one means no file of the project, even if one has the same name.
"""

CUSTOMARY = {
    "flax": "flax",
    "jax": "jax",
    "jnp": "jax.numpy",
    "jax_utils": "flax.jax_utils",
}
"""What modules are called by, and which they are."""


def full_names(modules: str, names: str) -> frozenset[str]:
    """The full names of all `names` in each of some modules; both are words in a text."""
    return frozenset(
        f"{module}.{name}" for module in words(modules) for name in words(names)
    )


def listed(table: str) -> frozenset[str]:
    """The full names in a table, of which each line has a module, a colon and names in it."""
    found: set[str] = set()
    for line in table.strip().splitlines():
        module, _, names = line.partition(":")
        found |= full_names(module, names)
    return frozenset(found)


# Trees

MAP_TREES = _of_trees("map", "multimap")
MAP_TREES_WITH_PATH = _of_trees("map_with_path")
LIST_LEAVES = _of_trees("leaves")
FLATTEN = _of_trees("flatten")
TELL_PATHS = _of_trees("flatten_with_path", "leaves_with_path")
UNFLATTEN = _of_trees("unflatten")
STRUCTURE = _of_trees("structure")
REDUCE_TREES = _of_trees("reduce")
RAVEL_TREE = frozenset(("jax.flatten_util.ravel_pytree",))
FREEZE = frozenset(
    f"flax.core.{module}{word}"
    for module in ("", "frozen_dict.")
    for word in ("freeze", "unfreeze")
)
FROZEN_DICTS = frozenset(("flax.core.FrozenDict", "flax.core.frozen_dict.FrozenDict"))
COPY = full_names("copy", "copy deepcopy")

KEEP_VALUES = (
    full_names("jax", "device_get device_put block_until_ready") | COPY
) | _of_numbers(
    "array",
    "asarray",
    "broadcast_to",
    "copy",
    "expand_dims",
    "repeat",
    "reshape",
    "squeeze",
    "stack",
)
"""What gives an array with the numbers of its argument."""

ARRAY = "jax.numpy.ndarray"
INDEX = "jax.ops.index"
"""What made an index of slices: `jax.ops.index[1:]`."""

EITHER = (
    full_names("builtins", "max min")
    | full_names("operator", "and_ or_")
    | _of_numbers("max", "min", "maximum", "minimum")
    | _of_numbers("logical_and", "logical_or", "bitwise_and", "bitwise_or")
)
"""Functions of two arguments that give the same in any order, and if one is given twice."""

# Functions of functions

JIT = "jax.jit"
COMPILE = frozenset((JIT, "jax.experimental.pjit.pjit", "flax.linen.jit"))
PMAP = "jax.pmap"
MAP_OVER_AXES = full_names("jax", "pmap vmap soft_pmap") | {
    "jax.experimental.maps.xmap"
}
REMATERIALIZE = frozenset(("jax.checkpoint", "jax.remat", "flax.linen.remat"))
SHAPES_OF = frozenset(("jax.eval_shape",))
WRAP = (
    COMPILE
    | MAP_OVER_AXES
    | REMATERIALIZE
    | full_names("jax", "named_call xla_computation make_jaxpr")
)
"""What makes a function that takes the same arguments."""

CALL_WITH_OTHERS = frozenset((JIT, PMAP, "jax.vmap")) | SHAPES_OF
"""What calls its first argument with the others, or gives a function that does."""

CUSTOM_DERIVATIVES = full_names("jax", "custom_vjp custom_jvp")
GRADIENT = frozenset(("jax.grad",))
VALUE_AND_GRADIENT = frozenset(("jax.value_and_grad",))
LINEARIZE = full_names("jax", "vjp linearize jvp")
PARTIAL = frozenset(("functools.partial", "jax.tree_util.Partial"))

SCAN = full_names("jax.lax", "scan")
WHILE = full_names("jax.lax", "while_loop")
FOR = full_names("jax.lax", "fori_loop")
BRANCH = full_names("jax.lax", "cond")
SWITCH = full_names("jax.lax", "switch")
MAP_SLICES = full_names("jax.lax", "map")
CONTROL = SCAN | WHILE | FOR | BRANCH | SWITCH
"""Functions that call other arguments with the pytrees among their arguments."""

CALL_BACK = frozenset(
    ("jax.pure_callback", "jax.debug.callback", "jax.experimental.io_callback")
) | full_names("jax.experimental.host_callback", "call id_tap")
"""What calls a function of Python from within one of JAX."""

# Devices

REPLICATE = frozenset(("flax.jax_utils.replicate",))
UNREPLICATE = frozenset(("flax.jax_utils.unreplicate",))
SHARD = frozenset(
    ("flax.jax_utils.pad_shard_unpad", "flax.training.common_utils.shard")
)
PUT = full_names("jax", "device_put device_put_replicated device_put_sharded")
GET = frozenset(("jax.device_get",))
WAIT = frozenset(("jax.block_until_ready",))
BARRIER = frozenset(("jax.lax.optimization_barrier",))
PREFETCH = frozenset(("flax.jax_utils.prefetch_to_device",))
BROADCAST = frozenset(("jax.experimental.multihost_utils.broadcast_one_to_all",))
ADD_OVER_DEVICES = frozenset(("jax.lax.psum",))
REDUCE_OVER_DEVICES = ADD_OVER_DEVICES | {"jax.lax.pmean"}
GATHER = frozenset(("jax.lax.all_gather",))
STOP_GRADIENT = frozenset(("jax.lax.stop_gradient",))

# Checkpoints

CHECKPOINTS = full_names("clu.checkpoint", "Checkpoint MultihostCheckpoint")
SAVE = frozenset(
    (
        "flax.training.checkpoints.save_checkpoint",
        *(f"{name}.save" for name in CHECKPOINTS),
    )
)
RESTORE = frozenset(("flax.training.checkpoints.restore_checkpoint",))
FLATTEN_DICT = frozenset(("flax.traverse_util.flatten_dict",))
TO_STATE_DICT = frozenset(("flax.serialization.to_state_dict",))
FROM_STATE_DICT = frozenset(("flax.serialization.from_state_dict",))
TO_BYTES = frozenset(("flax.serialization.to_bytes",))
FROM_BYTES = frozenset(("flax.serialization.from_bytes",))
TO_MSGPACK = frozenset(("flax.serialization.msgpack_serialize",))
FROM_MSGPACK = frozenset(("flax.serialization.msgpack_restore",))
STORE = SAVE | TO_STATE_DICT | TO_BYTES
"""What takes the content of an object to keep it."""

FILL = (RESTORE | FROM_STATE_DICT | FROM_BYTES) | {
    f"{name}.{method}"
    for name in CHECKPOINTS
    for method in ("restore", "restore_or_initialize")
}
"""What gives an object like its target, with another content."""

READ_PLAIN = RESTORE | FROM_MSGPACK | {"clu.checkpoint.load_state_dict"}
"""What may give plain dicts and arrays."""

CONVERT_CHECKPOINT = frozenset(("flax.training.checkpoints.convert_pre_linen",))
AS_DICT = frozenset(("dataclasses.asdict",))
AS_TUPLE = frozenset(("dataclasses.astuple",))

HAND_THROUGH = (
    (
        WRAP
        | CUSTOM_DERIVATIVES
        | REPLICATE
        | UNREPLICATE
        | SHARD
        | PUT
        | GET
        | WAIT
        | BARRIER
        | PREFETCH
        | BROADCAST
    )
    | (
        REDUCE_OVER_DEVICES
        | GATHER
        | STOP_GRADIENT
        | FREEZE
        | COPY
        | STRUCTURE
        | UNFLATTEN
    )
    | (FROM_BYTES | FROM_STATE_DICT)
)
"""What gives its first argument, or something like it."""

PYTREES = (
    REPLICATE
    | UNREPLICATE
    | PUT
    | GET
    | WAIT
    | BARRIER
    | STOP_GRADIENT
    | REDUCE_OVER_DEVICES
) | (SAVE | RESTORE | TO_BYTES | FROM_BYTES | COPY | MAP_TREES)
"""What takes any pytree, and gives one like it if anything."""

PICKLE = full_names("pickle _pickle", "dump dumps Pickler().dump") | full_names(
    "joblib torch", "dump save"
)
"""What pickles its argument."""

UNPICKLE = full_names("pickle _pickle", "load loads Unpickler().load") | full_names(
    "joblib torch", "load"
)
"""What gives what was pickled."""

# Classes

STRUCT = frozenset(("flax.struct.dataclass",))
STRUCTS = STRUCT | {"flax.struct.PyTreeNode", "chex.dataclass"}
MODELS = frozenset(("flax.linen.Module", "flax.linen.module.Module"))
ARRAY_CLASS = "jax.Array"
ARRAYS = ("jax.numpy.", "jax.random.", "numpy.", "jax.nn.", ARRAY_CLASS, "chex.Array")
"""What the names of functions and classes that give arrays begin with."""

NUMPY_ARRAYS = full_names(
    "numpy", "arange array asarray empty eye full identity linspace ones zeros"
)
"""Functions that give an array of NumPy."""

MAKING_ARRAYS = ("jax.numpy.", "jax.random.")
"""What the names of functions that make arrays of JAX begin with."""

NO_ARRAYS = full_names(
    "jax.numpy",
    "can_cast dtype finfo frompyfunc iinfo isscalar issubdtype iterable ndim "
    "promote_types result_type shape size vectorize",
)
"""Functions of `jax.numpy` that give no array."""

UNSIGNED = full_names("jax.random", "fold_in") | full_names(
    "jax.numpy numpy", "uint8 uint16 uint32 uint64"
)
"""Functions that let an array below zero wrap around, and raise for such a number."""

NUMBERS = ("jax.numpy.", "jax.random.", "numpy.random.")
"""What the names of functions that neither keep nor give back their arguments begin with."""

OTHER_OPTIMIZERS = ("jax.example_libraries.", "jax.experimental.")
"""What the names of JAX's own optimizers begin with."""

# Numbers

ROOT = _of_numbers("sqrt")
SUM = _of_numbers("sum") | {"builtins.sum"}
SQUARE = _of_numbers("square")
DOT = _of_numbers("vdot")
NUMPY_FLOATS = "numpy.float"
"""What begins the names of functions that give a float of NumPy."""

MAKE_ARRAY = full_names("jax.numpy", "array asarray")
OPTIMIZERS = "jax.experimental.optimizers jax.example_libraries.optimizers"
CLIP_GRADIENTS = full_names(OPTIMIZERS, "clip_grads")
TREE_NORM = full_names(OPTIMIZERS, "l2_norm")
GLOBAL_NORM = (
    TREE_NORM
    | {"optax.global_norm", "optax.tree.norm"}
    | full_names("optax.tree_utils", "tree_l2_norm tree_norm")
)
