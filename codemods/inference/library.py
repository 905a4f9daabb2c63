"""How functions outside the project hand objects through: data, and the few behaviours it names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace as replaced
from itertools import chain as chained
from typing import TYPE_CHECKING, TypeAlias

from codemods import vocabulary
from codemods.inference.containers import FUTURE
from codemods.inference.dynamic import names_like
from codemods.inference.objects import (
    Arguments,
    Class,
    Container,
    Derivative,
    External,
    Getter,
    InFrame,
    Instance,
    Key,
    Layout,
    LegacyObject,
    Made,
    Module,
    Object,
    Partial,
    Place,
    Record,
    Result,
    Stored,
    plain,
)
from codemods.inference.out_of_view import Effect
from codemods.vocabulary import full_names

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]
Behaviour: TypeAlias = "Callable[[Inference, Arguments], Answer]"

LEAVES = "leaves"
"""The role of a list of a tree's leaves."""

DEEPEST_WRAPPING = 3
"""`f = partial(f, …)` in a loop must not wrap without end."""

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


def apply(function: Place, arguments: Arguments, *positional: Place) -> Place:
    """What `function` gives for some arguments, in the course of another call."""
    inner = Arguments(arguments.unit, arguments.node, positional, frame=arguments.frame)
    return ("invoked", function, inner)


def boxed(arguments: Arguments, role: str, *parts: tuple[Key, Place]) -> Object:
    """A container that a call makes."""
    return Layout(Container(arguments.node, role), parts)


def hands_through(index: int, name: str) -> Behaviour:
    """The result is, or is like, one of the arguments."""

    def behaviour(_: Inference, arguments: Arguments) -> Answer:
        place = arguments.argument(index, name)
        return [] if place is None else [*(yield place)]

    return behaviour


first = hands_through(0, "")


def partial_application(_: Inference, arguments: Arguments) -> Answer:
    """`functools.partial(function, …)`."""
    found: list[Object] = []
    if not arguments.positional or not isinstance(arguments.node, ast.Call):
        return found
    for item in (yield arguments.positional[0]):
        # step = functools.partial(step, rate), in a loop
        if wrapping(item) < DEEPEST_WRAPPING:
            made = Partial(arguments.node, item)
            frame = arguments.frame
            found.append(made if frame is None else InFrame(made, frame))
    return found


def wrapping(item: object) -> int:
    """How often a callable is wrapped in partial applications and derivatives."""
    if isinstance(item, InFrame):
        return wrapping(item.item)
    if not isinstance(item, Partial | Derivative):
        return 0
    return 1 + wrapping(item.function)


def derivative(value: bool) -> Behaviour:
    """`jax.grad`, `jax.value_and_grad` and their kin."""

    def behaviour(_: Inference, arguments: Arguments) -> Answer:
        layout: tuple[str, ...] = ()
        if value:
            layout = ("value", "gradient")
        elif arguments.constant("has_aux"):
            layout = ("gradient", "auxiliary")
        place = arguments.argument(0, "fun")
        items = () if place is None else (yield place)
        plain_enough = (item for item in items if wrapping(item) < DEEPEST_WRAPPING)
        found: list[Object] = [Derivative(item, layout) for item in plain_enough]
        return found

    return behaviour


# The control flow of JAX


def scan(_: Inference, arguments: Arguments) -> Answer:
    """`jax.lax.scan(f, init, xs)`: `f(carry, x)` gives `(carry, y)`."""
    step = ("part", _scan_step, arguments)
    yield step
    carry = ("part", _scan_carry, arguments)
    return [boxed(arguments, "scan", (0, carry), (1, ("item of", step, 1)))]


def _scan_step(_: Inference, arguments: Arguments) -> Answer:
    function = arguments.argument(0, "f")
    inputs = arguments.argument(2, "xs")
    if function is None:
        return []
    # a slice of a pytree is like the pytree, an element of a list is one of its elements
    element = ("either", () if inputs is None else (inputs, ("each of", inputs)))
    carry = ("part", _scan_carry, arguments)
    return [*(yield apply(function, arguments, carry, element))]


def _scan_carry(_: Inference, arguments: Arguments) -> Answer:
    """The carry of one step is that of the next."""
    initial = arguments.argument(1, "init")
    found = [] if initial is None else [*(yield initial)]
    found += yield ("item of", ("part", _scan_step, arguments), 0)
    return found


def loop(
    *functions: tuple[int, str], initial: tuple[int, str], ahead: tuple[Place, ...] = ()
) -> Behaviour:
    """A loop: what the last of some functions gives is their argument for the next step."""

    def behaviour(_: Inference, arguments: Arguments) -> Answer:
        start = arguments.argument(*initial)
        found = [] if start is None else [*(yield start)]
        given: tuple[Object, ...] = ()
        for index, name in functions:
            function = arguments.argument(index, name)
            if function is not None:
                carry = ("part", behaviour, arguments)
                given = yield apply(function, arguments, *ahead, carry)
        return [*found, *given]

    return behaviour


def cond(_: Inference, arguments: Arguments) -> Answer:
    """`jax.lax.cond(pred, true_fun, false_fun, *operands)`, and an older form of it."""
    found: list[Object] = []
    if len(arguments.positional) == 5:
        # jax.lax.cond(pred, true_operand, true_fun, false_operand, false_fun)
        _predicate, true_operand, true_function, false_operand, false_function = (
            arguments.positional
        )
        found += yield apply(true_function, arguments, true_operand)
        found += yield apply(false_function, arguments, false_operand)
    operands = arguments.positional[3:]
    operand = arguments.keyword("operand")
    # jax.lax.cond(is_last, finish, go_on, operand=optimizer)
    if not operands and operand is not None:
        operands = (operand,)
    for index, name in ((1, "true_fun"), (2, "false_fun")):
        branch = arguments.argument(index, name)
        if branch is not None:
            found += yield apply(branch, arguments, *operands)
    return found


def switch(_: Inference, arguments: Arguments) -> Answer:
    """`jax.lax.switch(index, branches, *operands)`."""
    if len(arguments.positional) < 2:
        return []
    _index, branches, *operands = arguments.positional
    return [*(yield apply(("each of", branches), arguments, *operands))]


def map_slices(_: Inference, arguments: Arguments) -> Answer:
    """`jax.lax.map(f, xs)`: what the function gives for the slices of a tree, stacked."""
    function = arguments.argument(0, "f")
    inputs = arguments.argument(1, "xs")
    if function is None or inputs is None:
        return []
    return [*(yield apply(function, arguments, inputs))]


def vjp(_: Inference, arguments: Arguments) -> Answer:
    """`jax.vjp(fun, *primals)`, `jax.jvp(fun, primals, tangents)`, `jax.linearize`.

    They give a tuple: what the function gives, then something of no interest, then an auxiliary
    output.
    """
    function = arguments.argument(0, "fun")
    if function is None:
        return []
    primals = arguments.positional[1:]
    match arguments.node:
        # jax.jvp(loss, (params,), (tangents,))
        case ast.Call(args=[_, ast.Tuple(elts=elements), *_]):
            primals = tuple(("expression", one, arguments.frame) for one in elements)
    value = apply(function, arguments, *primals)
    parts: list[tuple[Key, Place]] = [(0, value)]
    # loss, pullback, metrics = jax.vjp(loss_fn, params, has_aux=True)
    if arguments.constant("has_aux"):
        parts = [(0, ("item of", value, 0)), (2, ("item of", value, 1))]
    yield value
    return [boxed(arguments, "vjp", *parts)]


def evaluate(_: Inference, arguments: Arguments) -> Answer:
    """`jax.eval_shape(fun, *args)`: like what the function gives."""
    function = arguments.argument(0, "fun")
    if function is None:
        return []
    inner = replaced(arguments, positional=arguments.positional[1:], starred=None)
    return [*(yield ("invoked", function, inner))]


def run_thread(_: Inference, arguments: Arguments) -> Answer:
    """`threading.Thread(target=function, args=(…), kwargs={…})`."""
    function = arguments.keyword("target")
    given = arguments.keyword("args")
    named = arguments.keyword("kwargs")
    if function is not None:
        inner = replaced(
            arguments,
            positional=() if given is None else (given,),
            keywords=(),
            starred=None if given is None else 0,
            unpacked=() if named is None else (named,),
        )
        yield ("invoked", function, inner)
    return []


# Trees


def flatten(_: Inference, arguments: Arguments) -> Answer:
    """`jax.tree_util.tree_flatten(tree)`: the leaves, and the structure.

    The structure stands for the tree, as the tree can be made of it again.
    """
    parts: list[tuple[Key, Place]] = [(0, ("part", list_leaves, arguments))]
    tree = arguments.argument(0, "tree")
    if tree is not None:
        parts.append((1, tree))
    yield from ()
    return [boxed(arguments, "flattened", *parts)]


def list_leaves(_: Inference, arguments: Arguments) -> Answer:
    """`jax.tree_util.tree_leaves(tree)`: arrays, or whatever `is_leaf` takes for leaves."""
    parts: list[tuple[Key, Place]] = [(None, ("itself", Result(vocabulary.ARRAY)))]
    tree = arguments.argument(0, "tree")
    if tree is not None and arguments.argument(1, "is_leaf") is not None:
        # an element, or the whole tree, may be a leaf
        parts += ((None, ("each of", tree)), (None, tree))
    yield from ()
    return [boxed(arguments, LEAVES, *parts)]


def map_tree(engine: Inference, arguments: Arguments) -> Answer:
    """`jax.tree_util.tree_map(f, tree, …)`: like the tree.

    With `is_leaf`, the function may be given any part of it.
    """
    found: list[Object] = []
    # jax.tree_util.tree_map(stack, *states)
    for tree in arguments.given(1, "tree"):
        found += yield tree
    # jax.tree_util.tree_map(step, states, is_leaf=is_state)
    if arguments.keyword("is_leaf") is not None:
        found += yield from mixing(engine, arguments)
    return found


def mixing(_: Inference, arguments: Arguments) -> Answer:
    """Any argument may be given to one that is a function, and what that gives be given back."""
    found: list[Object] = []
    others = ("either", arguments.positional)
    given = [("either", (others, ("each of", others)))] * len(arguments.positional)
    for place in arguments.all:
        items = yield place
        found += items
        for item in items:
            if isinstance(plain(item), Container):
                found += yield ("item in", item, None)
        found += yield apply(place, arguments, *given)
    return found


# Python


def apply_to_elements(_: Inference, arguments: Arguments) -> Answer:
    """`map(function, xs, …)`: a container of what the function gives for each element."""
    if len(arguments.positional) < 2:
        return []
    function, *containers = arguments.positional
    given = apply(function, arguments, *(("each of", place) for place in containers))
    yield given
    return [boxed(arguments, "map", (None, given))]


def pair_up(_: Inference, arguments: Arguments) -> Answer:
    """`zip(a, b, …)`: tuples with an element of each."""
    # first, second = zip(*pairs)
    if arguments.starred == 0 and len(arguments.positional) == 1:
        return (yield from _transposed(arguments, arguments.positional[0]))
    parts: list[tuple[Key, Place]] = []
    for index, place in enumerate(arguments.positional):
        if arguments.starred is None:
            parts.append((index, ("each of", place)))
        else:
            # zip(names, *rows): the elements of an argument are in the result
            parts.append((None, ("each of", ("each of", place))))
    pair = boxed(arguments, "tuple", *parts)
    return [boxed(arguments, "zip", (None, ("itself", pair)))]


def _transposed(arguments: Arguments, rows: Place) -> Answer:
    """`zip(*rows)`: for each index of a row, a tuple of what is there in all of them."""
    keys: dict[Key, None] = {}
    for row in (yield ("each of", rows)):
        if not isinstance(plain(row), Container):
            keys[None] = None
            continue
        entries = yield ("entries of", row, None)
        keys |= {one.key: None for one in entries if isinstance(one, Stored)}
    columns: list[tuple[Key, Place]] = []
    for key in keys:
        column = boxed(arguments, "tuple", (None, ("item of", ("each of", rows), key)))
        columns.append((key, ("itself", column)))
    return [boxed(arguments, "zip", *columns)]


def enumerate_elements(_: Inference, arguments: Arguments) -> Answer:
    """`enumerate(xs)`: pairs of a number and an element."""
    parts = [(1, ("each of", place)) for place in arguments.positional[:1]]
    pair = boxed(arguments, "tuple", *parts)
    yield from ()
    return [boxed(arguments, "enumerate", (None, ("itself", pair)))]


def take_element(_: Inference, arguments: Arguments) -> Answer:
    """`next(iterator, default)`."""
    found: list[Object] = []
    for place in arguments.positional[:1]:
        found += yield ("each of", place)
    for place in arguments.positional[1:]:
        found += yield place
    return found


def repeat(_: Inference, arguments: Arguments) -> Answer:
    """`itertools.repeat(x)`."""
    yield from ()
    elements = ((None, place) for place in arguments.positional[:1])
    return [boxed(arguments, "repeat", *elements)]


def make_list(_: Inference, arguments: Arguments) -> Answer:
    """`list(iterable)`, of which the elements are those of the argument; or an empty one."""
    if not arguments.positional:
        return [Container(arguments.node, "list")]
    return [*(yield arguments.positional[0])]


def make_dict(engine: Inference, arguments: Arguments) -> Answer:
    """`dict(other, key=value)`."""
    parts: list[tuple[Key, Place]] = []
    # dict(others), dict(pairs), dict(**others)
    for place in (*arguments.positional, *arguments.unpacked):
        parts += yield from engine.heap.merged(place)
        parts += yield from engine.heap.pairs(place)
    parts += arguments.keywords
    return [boxed(arguments, "dict", *dict.fromkeys(parts))]


def replace(engine: Inference, arguments: Arguments) -> Answer:
    """`dataclasses.replace(instance, **changes)`."""
    found: list[Object] = []
    for place in arguments.positional[:1]:
        for item in (yield place):
            if isinstance(item, LegacyObject):
                behaviour = engine.library.method(item, "replace")
                if behaviour is not None:
                    found += yield from behaviour(engine, arguments)
            elif isinstance(item, Instance | Made):
                found.append(engine.calls.replaced(item, arguments))
    return found


def parent_class(engine: Inference, arguments: Arguments) -> Answer:
    """`super()`: an instance of each base stands for it."""
    outer = arguments.unit.ancestors(arguments.node)
    node = next((one for one in outer if isinstance(one, ast.ClassDef)), None)
    if node is None:
        return []
    cls = engine.class_of(node)
    bases = [*(yield ("bases", cls))]
    # class Clipped(Mixin, Agent): what is behind the mixin
    for heir in (yield ("heirs", cls)):
        order = yield ("ancestry", heir)
        bases += order[order.index(cls) + 1 :]
    found: list[Object] = [Instance(base) for base in bases if isinstance(base, Class)]
    # class Cache(collections.OrderedDict)
    return found or (yield from engine.heap.elements_of(Instance(cls)))


def choose(_: Inference, arguments: Arguments) -> Answer:
    """`max(xs, key=…)`, `max(a, b)`, `random.choice(xs)`: one of the elements or arguments."""
    found: list[Object] = []
    for place in arguments.positional:
        found += yield ("each of", place)
        # max(a, b): the arguments themselves
        if len(arguments.positional) > 1:
            found += yield place
    key = arguments.keyword("key")
    if key is not None:
        chosen = ("either", tuple(("each of", one) for one in arguments.positional))
        yield apply(key, arguments, chosen)
    return found


def chain(_: Inference, arguments: Arguments) -> Answer:
    """`itertools.chain(xs, ys)`: a container of all elements.

    So is `itertools.chain.from_iterable(xss)`, where the elements of elements count.
    """
    parts: list[tuple[Key, Place]] = []
    for place in arguments.positional:
        parts.append((None, ("each of", place)))
        elements = yield ("each of", place)
        # itertools.chain.from_iterable(batches)
        if any(isinstance(plain(item), Container) for item in elements):
            parts.append((None, ("each of", ("each of", place))))
    return [boxed(arguments, "chain", *dict.fromkeys(parts))]


def sort(_: Inference, arguments: Arguments) -> Answer:
    """`sorted(xs, key=…)`, of a dict its keys."""
    key = arguments.keyword("key")
    turns: list[Place] = [("turn of", place) for place in arguments.positional[:1]]
    if key is not None:
        for place in turns:
            yield apply(key, arguments, place)
    return [boxed(arguments, "chain", *((None, place) for place in turns))]


def select(engine: Inference, arguments: Arguments) -> Answer:
    """`filter(function, xs)`, `itertools.takewhile(function, xs)`, …: some of the elements."""
    if len(arguments.positional) != 2:
        return []
    function, elements = arguments.positional
    yield apply(function, arguments, ("each of", elements))
    return (yield from chain(engine, replaced(arguments, positional=(elements,))))


def make_default_dict(_: Inference, arguments: Arguments) -> Answer:
    """`collections.defaultdict(factory)`: the factory makes an element for each missing key."""
    made = [(None, apply(one, arguments)) for one in arguments.positional[:1]]
    for _key, place in made:
        yield place
    return [boxed(arguments, "defaultdict", *made)]


def record(_: Inference, arguments: Arguments) -> Answer:
    """`namedtuple(name, "first second")`, `typing.NamedTuple(name, [("first", type)])`."""
    yield from ()
    match arguments.node:
        # namedtuple("State", "params, step")
        case ast.Call(args=[_, ast.Constant(value=str(text)), *_]):
            return [Record(tuple(text.replace(",", " ").split()))]
        # NamedTuple("State", [("params", Params), ("step", int)])
        case ast.Call(args=[_, ast.Tuple(elts=elements) | ast.List(elts=elements), *_]):
            first = (
                one.elts[0] if isinstance(one, ast.Tuple) else one for one in elements
            )
            names = (one.value for one in first if isinstance(one, ast.Constant))
            return [Record(tuple(map(str, names)))]
    return []


def namespace(engine: Inference, arguments: Arguments) -> Answer:
    """`vars(object)`, and `globals()` of the module that it is in."""
    if not arguments.positional:
        return (yield from engine.heap.namespace(Module(arguments.unit)))
    found: list[Object] = []
    for item in (yield arguments.positional[0]):
        found += yield from engine.heap.namespace(item)
    return found


def local_variables(engine: Inference, arguments: Arguments) -> Answer:
    """`locals()`: a dict of the variables of a function."""
    yield from ()
    scope = engine.scopes[arguments.node]
    names = sorted(scope.names)
    places = ((name, engine.variable(scope, name, arguments.frame)) for name in names)
    return [boxed(arguments, "locals", *places)]


def kind_of(_: Inference, arguments: Arguments) -> Answer:
    """`type(object)`."""
    if len(arguments.positional) != 1:
        return []
    items = yield arguments.positional[0]
    return [item.cls for item in items if isinstance(item, Instance | Made)]


def dataclass_field(_: Inference, arguments: Arguments) -> Answer:
    """`dataclasses.field(default=…, default_factory=…)`."""
    found: list[Object] = []
    default = arguments.keyword("default")
    if default is not None:
        found += yield default
    factory = arguments.keyword("default_factory")
    if factory is not None:
        found += yield apply(factory, arguments)
    return found


def iterator(engine: Inference, arguments: Arguments) -> Answer:
    """`iter(xs)`, and `iter(function, end)`, which calls the function for each element."""
    if len(arguments.positional) < 2:
        return (yield from first(engine, arguments))
    # iter(queue.get, None)
    given = apply(arguments.positional[0], arguments)
    yield given
    return [boxed(arguments, "iterator", (None, given))]


def getter(word: str) -> Behaviour:
    """`operator.attrgetter`, `operator.itemgetter`, `operator.methodcaller` with literal names."""

    def behaviour(_: Inference, arguments: Arguments) -> Answer:
        node = arguments.node
        made = _getter(word, node) if isinstance(node, ast.Call) else None
        if made is None:
            return []
        frame = arguments.frame
        yield from ()
        return [made if frame is None else InFrame(made, frame)]

    return behaviour


def _getter(word: str, node: ast.Call) -> Getter | None:
    values = [_literal(argument) for argument in node.args]
    names = [value for value in values if isinstance(value, str)]
    # itemgetter("params", 0)
    if word == "itemgetter":
        return Getter(node, keys=tuple(map(_key, values)))
    # methodcaller("apply_gradient", grads)
    if word == "methodcaller":
        return Getter(node, paths=(tuple(names[:1]),), calls=True) if names else None
    # attrgetter("optimizer.target", "step")
    if len(names) == len(values):
        return Getter(node, paths=tuple(tuple(name.split(".")) for name in names))
    return None


def _key(value: object) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _literal(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def import_by_name(engine: Inference, arguments: Arguments) -> Answer:
    """`importlib.import_module("package.module")`, and what else gives a module for a name."""
    yield from ()
    if not isinstance(arguments.node, ast.Call):
        return []
    return engine.names.import_module(arguments.node, arguments.unit)


def run_by_name(engine: Inference, arguments: Arguments) -> Answer:
    """`runpy.run_module("package.module")`: a dict of the module's variables."""
    found: list[Object] = []
    for module in (yield from import_by_name(engine, arguments)):
        found += yield from engine.heap.namespace(module)
    return found


def named_attribute(engine: Inference, arguments: Arguments) -> Answer:
    """`getattr(owner, name, default)`."""
    if len(arguments.positional) < 2:
        return []
    owner, name, *defaults = arguments.positional
    found: list[Object] = []
    match name:
        # getattr(state, "optimizer")
        case ("expression", ast.Constant(value=str(word)), _):
            found += yield ("attribute of", owner, word)
        # getattr(state, name)
        case _:
            for item in (yield owner):
                for box in (yield from engine.heap.namespace(item)):
                    if isinstance(plain(box), Container):
                        found += yield ("item in", box, None)
            found += yield from _methods_like(name, owner)
    # getattr(state, "optimizer", None)
    for place in defaults:
        found += yield place
    return found


def _methods_like(name: Place, owner: Place) -> Answer:
    """`getattr(callback, f"on_{event}")`: the methods of such names."""
    pattern = None
    match name:
        case ("expression", ast.expr() as node, _):
            pattern = names_like(node)
    if pattern is None:
        return []
    words: dict[str, None] = {}
    for item in (yield owner):
        ancestry = (
            ()
            if not isinstance(item, Instance | Made)
            else (yield ("ancestry", item.cls))
        )
        for cls in ancestry:
            if isinstance(cls, Class):
                words |= dict.fromkeys(filter(pattern.fullmatch, cls.scope.names))
    found: list[Object] = []
    for word in sorted(words):
        found += yield ("attribute of", owner, word)
    return found


def row(_: Inference, arguments: Arguments) -> Answer:
    """`pytest.param(first, second, id="a")`: a row of a table, or what it has alone."""
    if len(arguments.positional) == 1:
        return [*(yield arguments.positional[0])]
    return [boxed(arguments, "tuple", *enumerate(arguments.positional))]


def unpickle(engine: Inference, arguments: Arguments) -> Answer:
    """`state = pickle.load(file)`: what the same file pickles by that name."""
    found: list[Object] = []
    match arguments.unit.parents.get(arguments.node):
        case ast.Assign(targets=[target]):
            name = ast.unparse(target)
            pickled = (engine.index.called.get(word, ()) for word in ("dump", "dumps"))
            for call in chained(*pickled):
                is_near = engine.scopes[call].unit is arguments.unit
                if is_near and call.args and ast.unparse(call.args[0]) == name:
                    found += yield ("expression", call.args[0], None)
    return found


def submit(engine: Inference, arguments: Arguments) -> Answer:
    """`executor.submit(function, …)`, `pool.apply_async(function, (…))`: a future."""
    if not arguments.positional:
        return []
    function, *others = arguments.positional
    inner = replaced(arguments, positional=tuple(others), starred=None)
    match arguments.node:
        case ast.Call(func=ast.Attribute(attr="apply" | "apply_async")):
            given = tuple(others[:1])
            inner = replaced(inner, positional=given, keywords=(), starred=0)
    made = ("invoked", function, inner)
    yield made
    return [boxed(arguments, FUTURE, (None, made))]


def fold(_: Inference, arguments: Arguments) -> Answer:
    """`functools.reduce(function, iterable, initial)`."""
    if len(arguments.positional) < 2:
        return []
    function, elements, *initial = arguments.positional
    found: list[Object] = []
    # the first argument is the initial value, or else the first element
    for place in initial or [("each of", elements)]:
        found += yield place
    # what the function gives for one element is its argument for the next
    folded = ("part", fold, arguments)
    found += yield apply(function, arguments, folded, ("each of", elements))
    return found


def give_nothing(_: Inference, __: Arguments) -> Answer:
    """`setattr(owner, name, value)`, which is read as the assignment that it is."""
    yield from ()
    return []


def decorate(_: Inference, __: Arguments) -> Answer:
    """`functools.wraps(function)`: a decorator that hands its argument through."""
    yield from ()
    return [External("functools.wraps()")]


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
