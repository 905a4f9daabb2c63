"""How functions outside the project hand objects through: data, and the few behaviours it names."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from codemods import vocabulary
from codemods.inference.behaviours import (
    Answer,
    Behaviour,
    first,
    hands_through,
)
from codemods.inference.jax_functions import (
    cond,
    derivative,
    evaluate,
    flatten,
    list_leaves,
    loop,
    map_slices,
    map_tree,
    mixing,
    scan,
    switch,
    vjp,
)
from codemods.inference.objects import (
    LegacyObject,
    Object,
)
from codemods.inference.out_of_view import Effect
from codemods.inference.python_functions import (
    apply_to_elements,
    chain,
    choose,
    dataclass_field,
    decorate,
    enumerate_elements,
    fold,
    gather,
    getter,
    give_nothing,
    import_by_name,
    iterator,
    kind_of,
    local_variables,
    make_default_dict,
    make_dict,
    make_list,
    named_attribute,
    namespace,
    pair_up,
    parent_class,
    partial_application,
    record,
    repeat,
    replace,
    row,
    run_by_name,
    run_thread,
    select,
    sort,
    submit,
    take_element,
    unpickle,
)
from codemods.vocabulary import full_names

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

BY_FILE = (
    "runpy.run_path",
    "runpy.run_module",
    "importlib.util.spec_from_file_location",
    "imp.load_source",
)
"""What gives a module, or its namespace, for a file or a name."""

PRYING = frozenset(("builtins.setattr", "builtins.vars", *BY_FILE))
"""What may read or set fields where no attribute says so.

What goes through these functions is followed all the same.
"""


class Library:
    """What is known of code outside the project. Inference knows nothing else about any package."""

    modules: tuple[str, ...] = ()
    """The modules of interest, which an import may mean by a name that is computed."""

    def owns(self, module: str) -> bool:
        """Whether this module is never a file of the project, even if one has the same name."""
        raise NotImplementedError

    def follows(self, name: str) -> bool:
        """Whether it matters that a value is this external object, or came from a call of it."""
        raise NotImplementedError

    def members(self, module: str) -> tuple[str, ...]:
        """The names that a star import of this module is known to bind."""
        raise NotImplementedError

    def function(self, name: str) -> Behaviour | None:
        """What a call of an external function gives."""
        raise NotImplementedError

    def effect(self, name: str) -> Effect:
        """What is known of an external function that has no behaviour."""
        raise NotImplementedError

    def method(self, owner: Object, name: str) -> Behaviour | None:
        """What a call of a method of an object, or of an external function's result, gives."""
        raise NotImplementedError

    def tells_apart(self, kind: ast.expr) -> bool:
        """Whether a test for a type or an attribute may tell what an object is."""
        raise NotImplementedError

    def passes(
        self, item: Object, kinds: Iterable[Object], attribute: object
    ) -> bool | None:
        """Whether something is of one of some types, or has an attribute; None if not known."""
        raise NotImplementedError

    def attribute(self, engine: Inference, obj: LegacyObject, name: str) -> Answer:
        """The value of an object's attribute."""
        raise NotImplementedError


POOLS = full_names(
    "concurrent.futures", "ThreadPoolExecutor ProcessPoolExecutor"
) | full_names("multiprocessing.pool", "ThreadPool")
WORKING: dict[str, Behaviour] = {
    **dict.fromkeys(("map", "imap", "imap_unordered"), apply_to_elements),
    **dict.fromkeys(("submit", "apply_async"), submit),
}
"""The methods of pools of threads, which call functions that they are given."""

APPLYING = (
    vocabulary.CONTROL
    | vocabulary.MAP_SLICES
    | vocabulary.LINEARIZE
    | vocabulary.SHAPES_OF
    | vocabulary.CALL_BACK
    | full_names("builtins", "map filter max min sorted iter")
    | full_names("dataclasses", "field replace")
    | full_names("itertools", "filterfalse takewhile dropwhile")
    | full_names("threading", "Thread")
    | full_names("operator", "methodcaller")
    | {"collections.defaultdict", "flax.struct.field", "functools.reduce"}
)
"""What calls functions that it is given, or sets something."""

BEHAVIOURS: dict[str, Behaviour] = {
    **dict.fromkeys(
        vocabulary.HAND_THROUGH
        | full_names("functools", "lru_cache cache cached_property")
        | full_names("functools", "wraps()")
        | full_names("builtins", "staticmethod classmethod property")
        | {"contextlib.contextmanager", "types.MappingProxyType"}
        | {"concurrent.futures.as_completed"}
        | full_names("asyncio", "create_task ensure_future run shield wait_for")
        | {"importlib.util.module_from_spec"},
        first,
    ),
    **dict.fromkeys(
        vocabulary.CONVERT_CHECKPOINT | full_names("typing", "cast NewType"),
        hands_through(1, "target"),
    ),
    "typing.TypeVar": hands_through(1, "bound"),
    **dict.fromkeys(
        full_names("builtins", "list tuple")
        | full_names("queue", "Queue LifoQueue")
        | {"collections.deque"},
        make_list,
    ),
    **dict.fromkeys(
        full_names("builtins", "set frozenset reversed")
        | full_names("itertools", "chain chain.from_iterable cycle islice"),
        chain,
    ),
    **dict.fromkeys(
        full_names("itertools", "filterfalse takewhile dropwhile")
        | {"builtins.filter"},
        select,
    ),
    **dict.fromkeys(
        full_names("builtins", "max min")
        | full_names("random", "choice sample")
        # the one has the attributes of the other
        | {"functools.update_wrapper"},
        choose,
    ),
    **dict.fromkeys(
        full_names("ml_collections", "ConfigDict FrozenConfigDict")
        | {"builtins.dict", "collections.OrderedDict"}
        | {"types.SimpleNamespace", "argparse.Namespace"}
        | vocabulary.FROZEN_DICTS,
        make_dict,
    ),
    **dict.fromkeys(("collections.namedtuple", "typing.NamedTuple"), record),
    **dict.fromkeys(("dataclasses.field", "flax.struct.field"), dataclass_field),
    **dict.fromkeys(full_names("runpy", "run_path run_module"), run_by_name),
    **dict.fromkeys(
        full_names("importlib", "import_module util.spec_from_file_location")
        | {"builtins.__import__", "imp.load_source"},
        import_by_name,
    ),
    **dict.fromkeys(full_names("builtins", "vars globals"), namespace),
    "builtins.locals": local_variables,
    **dict.fromkeys(vocabulary.MAP_TREES | vocabulary.MAP_TREES_WITH_PATH, map_tree),
    **dict.fromkeys(vocabulary.UNPICKLE, unpickle),
    **dict.fromkeys(vocabulary.LINEARIZE, vjp),
    **dict.fromkeys(vocabulary.FLATTEN, flatten),
    **dict.fromkeys(vocabulary.LIST_LEAVES, list_leaves),
    **dict.fromkeys(vocabulary.CALL_BACK, mixing),
    **dict.fromkeys(vocabulary.SHAPES_OF, evaluate),
    **dict.fromkeys(vocabulary.PARTIAL, partial_application),
    **dict.fromkeys(vocabulary.GRADIENT, derivative(value=False)),
    **dict.fromkeys(vocabulary.VALUE_AND_GRADIENT, derivative(value=True)),
    **dict.fromkeys(vocabulary.SCAN, scan),
    **dict.fromkeys(
        vocabulary.WHILE,
        loop((0, "cond_fun"), (1, "body_fun"), initial=(2, "init_val")),
    ),
    **dict.fromkeys(
        vocabulary.FOR,
        loop((2, "body_fun"), initial=(3, "init_val"), ahead=(("nothing",),)),
    ),
    **dict.fromkeys(vocabulary.BRANCH, cond),
    **dict.fromkeys(vocabulary.SWITCH, switch),
    **dict.fromkeys(vocabulary.MAP_SLICES, map_slices),
    "collections.defaultdict": make_default_dict,
    "builtins.type": kind_of,
    "functools.wraps": decorate,
    "asyncio.gather": gather,
    "pytest.param": row,
    "threading.Thread": run_thread,
    "builtins.map": apply_to_elements,
    "builtins.zip": pair_up,
    "builtins.enumerate": enumerate_elements,
    "builtins.next": take_element,
    "itertools.repeat": repeat,
    "builtins.iter": iterator,
    "builtins.sorted": sort,
    "operator.attrgetter": getter("attrgetter"),
    "operator.itemgetter": getter("itemgetter"),
    "operator.methodcaller": getter("methodcaller"),
    "functools.reduce": fold,
    "dataclasses.replace": replace,
    "builtins.super": parent_class,
    "builtins.getattr": named_attribute,
    "builtins.setattr": give_nothing,
}
