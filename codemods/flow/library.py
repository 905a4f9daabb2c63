"""How functions outside the project hand objects through: data, and the few behaviours it names."""

from __future__ import annotations

import ast

from codemods.flow.calls import DEEPEST_WRAPPING, Behaviour, Calls, CallSite, wrapping
from codemods.flow.objects import (
    Class,
    Container,
    Derivative,
    External,
    Instance,
    Object,
    Partial,
    Place,
    Record,
    Thing,
)


def hands_through(index: int, name: str) -> Behaviour:
    """The result is, or is like, one of the arguments."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        place = site.argument(index, name)
        if place is not None:
            flow.solver.connect(place, site.result)

    return behaviour


def partial(flow: Calls, site: CallSite) -> None:
    """`functools.partial(function, …)`."""

    def arrive(item: Object) -> None:
        if isinstance(site.node, ast.Call) and wrapping(item) < DEEPEST_WRAPPING:
            flow.solver.add(site.result, Partial(site.node, item))

    if site.positional:
        flow.solver.watch(site.positional[0], arrive)


def derivative(value: bool) -> Behaviour:
    """`jax.grad`, `jax.value_and_grad` and their kin."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        layout = ("value", "gradient") if value else ("gradient", "auxiliary") if site.constant("has_aux") else ()

        def arrive(item: Object) -> None:
            if wrapping(item) < DEEPEST_WRAPPING:
                flow.solver.add(site.result, Derivative(item, layout))

        place = site.argument(0, "fun")
        if place is not None:
            flow.solver.watch(place, arrive)

    return behaviour


def _apply(flow: Calls, site: CallSite, function: object, arguments: tuple[object, ...], result: object) -> None:
    flow.call(function, CallSite(site.unit, site.node, arguments, {}, result, None, (), site.scope))


def scan(flow: Calls, site: CallSite) -> None:
    """`jax.lax.scan(f, init, xs)`: `f(carry, x)` gives `(carry, y)`."""
    function, initial, inputs = site.argument(0, "f"), site.argument(1, "init"), site.argument(2, "xs")
    if function is None or initial is None:
        return
    carry, step, element = ("carry", site.node), ("step", site.node), ("input", site.node)
    flow.solver.connect(initial, carry)
    if inputs is not None:
        flow.solver.connect(inputs, element)
        flow.iterate(inputs, element)
    _apply(flow, site, function, (carry, element), step)
    flow.load(step, 0, carry)
    outcome = Container(site.node, "scan")
    flow.solver.add(site.result, outcome)
    flow.store_element(outcome, 0, carry)
    flow.load(step, 1, ("output", site.node))
    flow.store_element(outcome, 1, ("output", site.node))


def while_loop(flow: Calls, site: CallSite) -> None:
    """`jax.lax.while_loop(cond_fun, body_fun, init_val)`."""
    condition, body, initial = site.argument(0, "cond_fun"), site.argument(1, "body_fun"), site.argument(2, "init_val")
    if condition is None or body is None or initial is None:
        return
    flow.solver.connect(initial, site.result)
    _apply(flow, site, condition, (site.result,), ("condition", site.node))
    _apply(flow, site, body, (site.result,), site.result)


def fori_loop(flow: Calls, site: CallSite) -> None:
    """`jax.lax.fori_loop(lower, upper, body_fun, init_val)`."""
    body, initial = site.argument(2, "body_fun"), site.argument(3, "init_val")
    if body is None or initial is None:
        return
    flow.solver.connect(initial, site.result)
    _apply(flow, site, body, (("index", site.node), site.result), site.result)


def cond(flow: Calls, site: CallSite) -> None:
    """`jax.lax.cond(pred, true_fun, false_fun, *operands)`, and the older form with an operand for each branch."""
    if len(site.positional) == 5:
        _apply(flow, site, site.positional[2], (site.positional[1],), site.result)
        _apply(flow, site, site.positional[4], (site.positional[3],), site.result)
    for index, name in ((1, "true_fun"), (2, "false_fun")):
        branch = site.argument(index, name)
        if branch is not None:
            operand = site.keywords.get("operand")
            _apply(flow, site, branch, site.positional[3:] or ((operand,) if operand is not None else ()), site.result)


def switch(flow: Calls, site: CallSite) -> None:
    """`jax.lax.switch(index, branches, *operands)`."""
    if len(site.positional) >= 2:
        flow.iterate(site.positional[1], ("branch", site.node))
        _apply(flow, site, ("branch", site.node), site.positional[2:], site.result)


def apply_to_elements(flow: Calls, site: CallSite) -> None:
    """`map(function, xs, …)`: a container of what the function gives for each element."""
    if len(site.positional) < 2:
        return
    elements = []
    for index, place in enumerate(site.positional[1:]):
        element = ("mapped", site.node, index)
        flow.iterate(place, element)
        elements.append(element)
    outcome = Container(site.node, "map")
    flow.solver.add(site.result, outcome)
    _apply(flow, site, site.positional[0], tuple(elements), ("each", site.node))
    flow.store_element(outcome, None, ("each", site.node))


def map_slices(flow: Calls, site: CallSite) -> None:
    """`jax.lax.map(f, xs)`: what the function gives for the slices of a tree, stacked."""
    function, inputs = site.argument(0, "f"), site.argument(1, "xs")
    if function is not None and inputs is not None:
        _apply(flow, site, function, (inputs,), site.result)


def pair_up(flow: Calls, site: CallSite) -> None:
    """`zip(a, b, …)`: tuples with an element of each."""
    pairs, pair = Container(site.node, "zip"), Container(site.node, "tuple")
    flow.solver.add(site.result, pairs)
    flow.solver.add(("tuple", site.node), pair)
    flow.store_element(pairs, None, ("tuple", site.node))
    for index, place in enumerate(site.positional):
        element = ("zipped", site.node, index)
        flow.iterate(place, element)
        if site.starred is None:
            flow.store_element(pair, index, element)
        else:
            flow.iterate(element, ("transposed", site.node))
            flow.store_element(pair, None, ("transposed", site.node))


def enumerate_elements(flow: Calls, site: CallSite) -> None:
    """`enumerate(xs)`: pairs of a number and an element."""
    if site.positional:
        pairs, pair = Container(site.node, "enumerate"), Container(site.node, "tuple")
        flow.solver.add(site.result, pairs)
        flow.solver.add(("tuple", site.node), pair)
        flow.store_element(pairs, None, ("tuple", site.node))
        flow.iterate(site.positional[0], ("numbered", site.node))
        flow.store_element(pair, 1, ("numbered", site.node))


def take_element(flow: Calls, site: CallSite) -> None:
    """`next(iterator, default)`."""
    if site.positional:
        flow.iterate(site.positional[0], site.result)
        for place in site.positional[1:]:
            flow.solver.connect(place, site.result)


def make_dict(flow: Calls, site: CallSite) -> None:
    """`dict(other, key=value)`."""
    outcome = Container(site.node, "dict")
    flow.solver.add(site.result, outcome)
    for place in (*site.positional, *site.unpacked):
        flow.solver.connect(place, site.result)
    for name, place in site.keywords.items():
        flow.store_element(outcome, name, place)


def replace(flow: Calls, site: CallSite) -> None:
    """`dataclasses.replace(instance, **changes)`."""

    def arrive(item: Object) -> None:
        behaviour = flow.library.method(item, "replace") if isinstance(item, Thing) else None
        if behaviour is not None:
            behaviour(flow, site)
        flow.replace_fields(item, site)

    if site.positional:
        flow.solver.watch(site.positional[0], arrive)


def parent_class(flow: Calls, site: CallSite) -> None:
    """`super()`."""
    node = next((outer for outer in site.unit.ancestors(site.node) if isinstance(outer, ast.ClassDef)), None)
    if node is None:
        return
    cls = flow.class_of(node)

    def find() -> None:
        for base in flow.ancestry(cls)[1:]:
            if isinstance(base, Class):
                flow.solver.add(site.result, Instance(base))

    flow.by_ancestry(cls, find)


def vjp(flow: Calls, site: CallSite) -> None:
    """`jax.vjp(fun, *primals)` and its kin: what the function gives, then something of no interest, then an auxiliary output."""
    function = site.argument(0, "fun")
    if function is None:
        return
    value, outcome = ("value", site.node), Container(site.node, "vjp")
    arguments: tuple[Place, ...] = site.positional[1:]
    if isinstance(site.node, ast.Call) and len(site.node.args) > 1 and isinstance(site.node.args[1], ast.Tuple):
        arguments = tuple(flow.places[item] for item in site.node.args[1].elts)  # of `jvp`
    _apply(flow, site, function, arguments, value)
    flow.solver.add(site.result, outcome)
    flow.store_element(outcome, 0, value)
    if site.constant("has_aux"):
        flow.load(value, 1, ("auxiliary", site.node))
        flow.store_element(outcome, 2, ("auxiliary", site.node))


def evaluate(flow: Calls, site: CallSite) -> None:
    """`jax.eval_shape(fun, *args)`: like what the function gives."""
    function = site.argument(0, "fun")
    if function is not None:
        keywords = {name: place for name, place in site.keywords.items() if name != "fun"}
        flow.call(function, CallSite(site.unit, site.node, site.positional[1:], keywords, site.result))


def flatten(flow: Calls, site: CallSite) -> None:
    """`jax.tree_util.tree_flatten(tree)`: the structure stands for the tree from which it can be made again."""
    outcome = Container(site.node, "flattened")
    flow.solver.add(site.result, outcome)
    tree = site.argument(0, "tree")
    if tree is not None:
        flow.store_element(outcome, 1, tree)


def choose(flow: Calls, site: CallSite) -> None:
    """`max(xs, key=…)`, `max(a, b)`, `random.choice(xs)`: one of the elements or arguments."""
    for place in site.positional:
        flow.iterate(place, site.result)
        if len(site.positional) > 1:
            flow.solver.connect(place, site.result)


def chain(flow: Calls, site: CallSite) -> None:
    """`itertools.chain(xs, ys)`, `itertools.chain.from_iterable(xss)`, `itertools.cycle(xs)`: a container of all elements."""
    outcome = Container(site.node, "chain")
    flow.solver.add(site.result, outcome)
    for place in site.positional:
        flow.merge(place, outcome)
        flow.iterate(place, ("chained", site.node))
    flow.merge(("chained", site.node), outcome)


def repeat(flow: Calls, site: CallSite) -> None:
    """`itertools.repeat(x)`."""
    if site.positional:
        flow.solver.add(site.result, Container(site.node, "repeat"))
        flow.store_element(Container(site.node, "repeat"), None, site.positional[0])


def make_default_dict(flow: Calls, site: CallSite) -> None:
    """`collections.defaultdict(factory)`."""
    outcome = Container(site.node, "defaultdict")
    flow.solver.add(site.result, outcome)
    if site.positional:
        _apply(flow, site, site.positional[0], (), ("default", site.node))
        flow.store_element(outcome, None, ("default", site.node))


def record(flow: Calls, site: CallSite) -> None:
    """`collections.namedtuple(name, "first second")` and `typing.NamedTuple(name, [("first", type)])`."""
    node = site.node.args[1] if isinstance(site.node, ast.Call) and len(site.node.args) > 1 else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        flow.solver.add(site.result, Record(tuple(node.value.replace(",", " ").split())))
    elif isinstance(node, ast.Tuple | ast.List):
        firsts = [item.elts[0] if isinstance(item, ast.Tuple) and item.elts else item for item in node.elts]
        names = [item.value for item in firsts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        flow.solver.add(site.result, Record(tuple(names)))


def cast(flow: Calls, site: CallSite) -> None:
    """`typing.cast(type, value)`."""
    if len(site.positional) == 2 and isinstance(site.node, ast.Call) and site.scope is not None:
        flow.solver.connect(site.positional[1], site.result)
        flow.annotate(site.node.args[0], site.scope, site.result)


def import_by_name(flow: Calls, site: CallSite) -> None:
    """`importlib.import_module("package.module")`."""
    node = site.node
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        flow.import_module(str(node.args[0].value), site)


def named_attribute(flow: Calls, site: CallSite) -> None:
    """`getattr(owner, name, default)` with a literal name."""
    node = site.node
    if len(site.positional) < 2 or not isinstance(node, ast.Call):
        return
    if isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str):
        flow.load_attribute(site.positional[0], node.args[1].value, site.result)
    for place in site.positional[2:]:
        flow.solver.connect(place, site.result)


def set_named_attribute(flow: Calls, site: CallSite) -> None:
    """`setattr(owner, name, value)` with a literal name."""
    node = site.node
    if len(site.positional) == 3 and isinstance(node, ast.Call) and isinstance(node.args[1], ast.Constant):
        flow.store_attribute(site.positional[0], str(node.args[1].value), site.positional[2])


def fold(flow: Calls, site: CallSite) -> None:
    """`functools.reduce(function, iterable, initial)`."""
    if len(site.positional) >= 2:
        for place in site.positional[2:]:
            flow.solver.connect(place, site.result)
        element = ("folded", site.node)
        flow.iterate(site.positional[1], element)
        _apply(flow, site, site.positional[0], (site.result, element), site.result)


def decorate(flow: Calls, site: CallSite) -> None:
    """`functools.wraps(function)`: a decorator that hands its argument through."""
    flow.solver.add(site.result, External("functools.wraps()"))


first = hands_through(0, "")

BEHAVIOURS: dict[str, Behaviour] = {
    **dict.fromkeys(
        (
            "jax.jit",
            "jax.pmap",
            "jax.vmap",
            "jax.soft_pmap",
            "jax.checkpoint",
            "jax.remat",
            "jax.named_call",
            "jax.xla_computation",
            "jax.experimental.multihost_utils.broadcast_one_to_all",
            "jax.experimental.pjit.pjit",
            "jax.experimental.maps.xmap",
            "flax.linen.jit",
            "flax.linen.remat",
            "jax.device_put",
            "jax.device_get",
            "jax.device_put_replicated",
            "jax.device_put_sharded",
            "jax.block_until_ready",
            "jax.lax.stop_gradient",
            "jax.lax.pmean",
            "jax.lax.psum",
            "jax.lax.all_gather",
            "jax.lax.optimization_barrier",
            "flax.jax_utils.replicate",
            "flax.jax_utils.unreplicate",
            "flax.jax_utils.pad_shard_unpad",
            "flax.training.common_utils.shard",
            "flax.core.freeze",
            "flax.core.unfreeze",
            "flax.core.frozen_dict.freeze",
            "flax.core.frozen_dict.unfreeze",
            "flax.serialization.from_bytes",
            "flax.serialization.from_state_dict",
            "flax.serialization.to_state_dict",
            "copy.copy",
            "copy.deepcopy",
            "contextlib.contextmanager",
            "functools.lru_cache",
            "functools.cache",
            "functools.cached_property",
            "flax.jax_utils.prefetch_to_device",
            "jax.custom_vjp",
            "jax.custom_jvp",
            "jax.make_jaxpr",
            "jax.tree_structure",
            "jax.tree.structure",
            "jax.tree_util.tree_structure",
            "jax.tree_unflatten",
            "jax.tree.unflatten",
            "jax.tree_util.tree_unflatten",
            "types.MappingProxyType",
            "builtins.list",
            "builtins.tuple",
            "builtins.set",
            "builtins.iter",
            "builtins.reversed",
            "builtins.sorted",
            "builtins.staticmethod",
            "builtins.classmethod",
            "builtins.property",
        ),
        first,
    ),
    **dict.fromkeys(
        (
            "jax.tree_map",
            "jax.tree_multimap",
            "jax.tree.map",
            "jax.tree_util.tree_map",
            "jax.tree_util.tree_multimap",
            "jax.tree_util.tree_map_with_path",
        ),
        hands_through(1, "tree"),
    ),
    **dict.fromkeys(
        (
            "flax.training.checkpoints.convert_pre_linen",
            "builtins.filter",
            "itertools.takewhile",
            "itertools.dropwhile",
            "typing.NewType",
        ),
        hands_through(1, "target"),
    ),
    **dict.fromkeys(("jax.vjp", "jax.linearize", "jax.jvp"), vjp),
    **dict.fromkeys(("jax.tree_flatten", "jax.tree.flatten", "jax.tree_util.tree_flatten"), flatten),
    **dict.fromkeys(("builtins.max", "builtins.min", "random.choice", "random.sample"), choose),
    **dict.fromkeys(("itertools.chain", "itertools.chain.from_iterable", "itertools.cycle", "itertools.islice"), chain),
    **dict.fromkeys(
        (
            "builtins.dict",
            "collections.OrderedDict",
            "types.SimpleNamespace",
            "argparse.Namespace",
            "ml_collections.ConfigDict",
            "ml_collections.FrozenConfigDict",
            "flax.core.FrozenDict",
            "flax.core.frozen_dict.FrozenDict",
        ),
        make_dict,
    ),
    **dict.fromkeys(("collections.namedtuple", "typing.NamedTuple"), record),
    "collections.defaultdict": make_default_dict,
    "itertools.repeat": repeat,
    "jax.eval_shape": evaluate,
    "typing.cast": cast,
    "typing.TypeVar": hands_through(1, "bound"),
    "importlib.import_module": import_by_name,
    "builtins.__import__": import_by_name,
    "functools.partial": partial,
    "jax.tree_util.Partial": partial,
    "functools.wraps": decorate,
    "functools.wraps()": first,
    "jax.grad": derivative(value=False),
    "jax.value_and_grad": derivative(value=True),
    "jax.lax.scan": scan,
    "jax.lax.while_loop": while_loop,
    "jax.lax.fori_loop": fori_loop,
    "jax.lax.cond": cond,
    "jax.lax.switch": switch,
    "jax.lax.map": map_slices,
    "builtins.map": apply_to_elements,
    "builtins.zip": pair_up,
    "builtins.enumerate": enumerate_elements,
    "builtins.next": take_element,
    "dataclasses.replace": replace,
    "builtins.super": parent_class,
    "builtins.getattr": named_attribute,
    "builtins.setattr": set_named_attribute,
    "functools.reduce": fold,
}
