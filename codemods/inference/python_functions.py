"""Functions of Python's library: containers, iterators, threads, names that are computed."""

from __future__ import annotations

import ast
from collections.abc import Generator
from dataclasses import replace as replaced
from itertools import chain as chained
from typing import TYPE_CHECKING

from codemods.inference.behaviours import (
    DEEPEST_WRAPPING,
    Answer,
    Behaviour,
    apply,
    boxed,
    first,
    wrapping,
)
from codemods.inference.containers import FUTURE
from codemods.inference.dynamic import names_like
from codemods.inference.objects import (
    Arguments,
    Class,
    Container,
    External,
    Getter,
    InFrame,
    Instance,
    Key,
    LegacyObject,
    Made,
    Module,
    Object,
    Partial,
    Place,
    Record,
    Stored,
    plain,
)
from codemods.inference.reading import key_of
from codemods.vocabulary import PICKLE, UNPICKLE

if TYPE_CHECKING:
    from codemods.inference.engine import Inference


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
    each: list[Place] = [("each of", place) for place in arguments.positional]
    parts: list[tuple[Key, Place]] = [*enumerate(each)]
    # zip(names, *rows): the elements of an argument are in the result
    if arguments.starred is not None:
        parts = [(None, ("each of", place)) for place in each]
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
        parts += yield from engine.elements.merged(place)
        parts += yield from engine.elements.pairs(place)
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
    return found or (yield from engine.elements.elements_of(Instance(cls)))


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
    keys = tuple(map(key_of, node.args))
    names = [key for key in keys if isinstance(key, str)]
    # itemgetter("params", 0)
    if word == "itemgetter":
        return Getter(node, keys=keys)
    # methodcaller("apply_gradient", grads)
    if word == "methodcaller":
        return Getter(node, paths=(tuple(names[:1]),), calls=True) if names else None
    # attrgetter("optimizer.target", "step")
    if len(names) == len(keys):
        return Getter(node, paths=tuple(tuple(name.split(".")) for name in names))
    return None


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
    """`state = pickle.load(file)`: what the same file pickles by that name, or its one display."""
    dumps = yield from _calls_near(engine, arguments, ("dump", "dumps"), PICKLE)
    loads = yield from _calls_near(engine, arguments, ("load", "loads"), UNPICKLE)
    pickled = [call.args[0] for call in dumps]
    name = ""
    match arguments.unit.parents.get(arguments.node):
        case ast.Assign(targets=[target]):
            name = ast.unparse(target)
    # images, labels = pickle.load(file): a tuple is told from others by no key
    kinds = ast.Dict | ast.Tuple if len(loads) == 1 else ast.Dict
    displays = [one for one in pickled if isinstance(one, kinds)]
    named = [one for one in pickled if ast.unparse(one) == name]
    found: list[Object] = []
    for one in named or displays * (len(displays) == 1):
        found += yield ("expression", one, None)
    return found


def _calls_near(
    engine: Inference,
    arguments: Arguments,
    words: tuple[str, ...],
    names: frozenset[str],
) -> Generator[Place, tuple[Object, ...], list[ast.Call]]:
    """The calls of some functions in the same file."""
    found: list[ast.Call] = []
    for call in chained(*(engine.index.called.get(word, ()) for word in words)):
        if engine.scopes[call].unit is arguments.unit and call.args:
            callees = yield ("expression", call.func, None)
            if any(getattr(one, "name", "") in names for one in callees):
                found.append(call)
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


def gather(_: Inference, arguments: Arguments) -> Answer:
    """`asyncio.gather(a, *others)`: a list of what coroutines give."""
    known = arguments.positional[: arguments.starred]
    others = arguments.positional[len(known) :]
    parts: list[tuple[Key, Place]] = [*enumerate(known)]
    parts += ((None, ("each of", place)) for place in others)
    yield from ()
    return [boxed(arguments, "gather", *parts)]


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
