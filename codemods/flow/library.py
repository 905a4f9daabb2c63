"""How functions outside the project hand objects through: data, and the few behaviours it names."""

from __future__ import annotations

import ast
import dataclasses

from codemods import vocabulary
from codemods.flow.calls import DEEPEST_WRAPPING, Behaviour, Calls, wrapping
from codemods.flow.containers import BY_CLASS, BY_NAME, arguments
from codemods.flow.objects import (
    LEAVES,
    Class,
    Container,
    Derivative,
    External,
    Getter,
    Instance,
    LegacyObject,
    Module,
    Namespace,
    Object,
    Opaque,
    Partial,
    Place,
    Record,
    Result,
)
from codemods.flow.sites import CallSite

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


def hands_through(index: int, name: str) -> Behaviour:
    """The result is, or is like, one of the arguments."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        place = site.argument(index, name)
        if place is not None:
            flow.solver.connect(place, site.result)

    return behaviour


def partial_application(is_method: bool) -> Behaviour:
    """`functools.partial(function, …)` and `functools.partialmethod(function, …)`."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        def arrive(item: Object) -> None:
            # step = functools.partial(step, rate), in a loop
            if isinstance(site.node, ast.Call) and wrapping(item) < DEEPEST_WRAPPING:
                flow.solver.add(site.result, Partial(site.node, item, is_method))

        if site.positional:
            flow.solver.watch(site.positional[0], arrive)

    return behaviour


def derivative(value: bool) -> Behaviour:
    """`jax.grad`, `jax.value_and_grad` and their kin."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        layout: tuple[str, ...] = ()
        if value:
            layout = ("value", "gradient")
        elif site.constant("has_aux"):
            layout = ("gradient", "auxiliary")

        def arrive(item: Object) -> None:
            if wrapping(item) < DEEPEST_WRAPPING:
                flow.solver.add(site.result, Derivative(item, layout))

        place = site.argument(0, "fun")
        if place is not None:
            flow.solver.watch(place, arrive)

    return behaviour


def _apply(
    flow: Calls,
    site: CallSite,
    function: object,
    arguments: tuple[object, ...],
    result: object,
) -> None:
    """Let `function` be called with `arguments`, and give its result to `result`."""
    inner = CallSite(site.unit, site.node, arguments, {}, result, None, (), site.scope)
    flow.call(function, inner)


def scan(flow: Calls, site: CallSite) -> None:
    """`jax.lax.scan(f, init, xs)`: `f(carry, x)` gives `(carry, y)`."""
    function = site.argument(0, "f")
    initial = site.argument(1, "init")
    inputs = site.argument(2, "xs")
    if function is None or initial is None:
        return
    # The carry of one step is that of the next: what `f` gives for it comes back as an argument.
    carry = ("carry", site.node)
    step = ("step", site.node)
    element = ("input", site.node)
    output = ("output", site.node)
    flow.solver.connect(initial, carry)
    if inputs is not None:
        # A slice of a pytree is like the pytree, an element of a list is one of its elements.
        flow.solver.connect(inputs, element)
        flow.iterate(inputs, element)
    _apply(flow, site, function, (carry, element), step)
    flow.load(step, 0, carry)
    outcome = Container(site.node, "scan")
    flow.solver.add(site.result, outcome)
    flow.store_element(outcome, 0, carry)
    flow.load(step, 1, output)
    flow.store_element(outcome, 1, output)


def while_loop(flow: Calls, site: CallSite) -> None:
    """`jax.lax.while_loop(cond_fun, body_fun, init_val)`."""
    condition = site.argument(0, "cond_fun")
    body = site.argument(1, "body_fun")
    initial = site.argument(2, "init_val")
    if condition is None or body is None or initial is None:
        return
    # What the body gives is its argument for the next step.
    flow.solver.connect(initial, site.result)
    truth = ("condition", site.node)
    _apply(flow, site, condition, (site.result,), truth)
    _apply(flow, site, body, (site.result,), site.result)


def fori_loop(flow: Calls, site: CallSite) -> None:
    """`jax.lax.fori_loop(lower, upper, body_fun, init_val)`."""
    body = site.argument(2, "body_fun")
    initial = site.argument(3, "init_val")
    if body is None or initial is None:
        return
    index = ("index", site.node)
    flow.solver.connect(initial, site.result)
    _apply(flow, site, body, (index, site.result), site.result)


def cond(flow: Calls, site: CallSite) -> None:
    """`jax.lax.cond(pred, true_fun, false_fun, *operands)`, and an older form of it."""
    if len(site.positional) == 5:
        # jax.lax.cond(pred, true_operand, true_fun, false_operand, false_fun)
        _, true_operand, true_function, false_operand, false_function = site.positional
        _apply(flow, site, true_function, (true_operand,), site.result)
        _apply(flow, site, false_function, (false_operand,), site.result)
    operands = site.positional[3:]
    operand = site.keywords.get("operand")
    # jax.lax.cond(is_last, finish, go_on, operand=optimizer)
    if not operands and operand is not None:
        operands = (operand,)
    for index, name in ((1, "true_fun"), (2, "false_fun")):
        branch = site.argument(index, name)
        if branch is not None:
            _apply(flow, site, branch, operands, site.result)


def switch(flow: Calls, site: CallSite) -> None:
    """`jax.lax.switch(index, branches, *operands)`."""
    if len(site.positional) >= 2:
        _, branches, *operands = site.positional
        branch = ("branch", site.node)
        flow.iterate(branches, branch)
        _apply(flow, site, branch, tuple(operands), site.result)


def apply_to_elements(flow: Calls, site: CallSite) -> None:
    """`map(function, xs, …)`: a container of what the function gives for each element."""
    if len(site.positional) < 2:
        return
    function, *containers = site.positional
    elements = []
    for index, place in enumerate(containers):
        element = ("mapped", site.node, index)
        flow.iterate(place, element)
        elements.append(element)
    outcome = Container(site.node, "map")
    given = ("each", site.node)
    flow.solver.add(site.result, outcome)
    _apply(flow, site, function, tuple(elements), given)
    flow.store_element(outcome, None, given)


def map_slices(flow: Calls, site: CallSite) -> None:
    """`jax.lax.map(f, xs)`: what the function gives for the slices of a tree, stacked."""
    function = site.argument(0, "f")
    inputs = site.argument(1, "xs")
    if function is not None and inputs is not None:
        _apply(flow, site, function, (inputs,), site.result)


def pair_up(flow: Calls, site: CallSite) -> None:
    """`zip(a, b, …)`: tuples with an element of each."""
    pairs = Container(site.node, "zip")
    pair = Container(site.node, "tuple")
    each = ("tuple", site.node)
    flow.solver.add(site.result, pairs)
    flow.solver.add(each, pair)
    flow.store_element(pairs, None, each)
    for index, place in enumerate(site.positional):
        element = ("zipped", site.node, index)
        flow.iterate(place, element)
        if site.starred is None:
            flow.store_element(pair, index, element)
        else:
            # zip(*pairs): an argument is an element of `pairs`, and its elements are in the result.
            inner = ("transposed", site.node)
            flow.iterate(element, inner)
            flow.store_element(pair, None, inner)


def enumerate_elements(flow: Calls, site: CallSite) -> None:
    """`enumerate(xs)`: pairs of a number and an element."""
    if site.positional:
        pairs = Container(site.node, "enumerate")
        pair = Container(site.node, "tuple")
        each = ("tuple", site.node)
        element = ("numbered", site.node)
        flow.solver.add(site.result, pairs)
        flow.solver.add(each, pair)
        flow.store_element(pairs, None, each)
        flow.iterate(site.positional[0], element)
        flow.store_element(pair, 1, element)


def take_element(flow: Calls, site: CallSite) -> None:
    """`next(iterator, default)`."""
    if site.positional:
        flow.iterate(site.positional[0], site.result)
        # next(states, None)
        for place in site.positional[1:]:
            flow.solver.connect(place, site.result)


def make_list(flow: Calls, site: CallSite) -> None:
    """`list(iterable)`, of which the elements are those of the argument; or an empty one."""
    if site.positional:
        first(flow, site)
    else:
        flow.solver.add(site.result, Container(site.node, "list"))


def make_dict(flow: Calls, site: CallSite) -> None:
    """`dict(other, key=value)`."""
    outcome = Container(site.node, "dict")
    flow.solver.add(site.result, outcome)
    # dict(others), dict(pairs), dict(**others)
    for place in (*site.positional, *site.unpacked):
        flow.merge(place, outcome)
        flow.merge_pairs(place, outcome)
        flow.solver.watch(place, lambda item: _copy_fields(flow, item, outcome))
    for name, place in site.keywords.items():
        flow.store_element(outcome, name, place)


def _copy_fields(flow: Calls, item: Object, outcome: Container) -> None:
    """Let a dict have the fields of an object that acts as a dict, such as a configuration."""
    if isinstance(item, Instance | Opaque):
        owner = item.cls if isinstance(item, Instance) else item
        flow.store_element(outcome, None, flow.any_field(owner)[0])


def replace(flow: Calls, site: CallSite) -> None:
    """`dataclasses.replace(instance, **changes)`."""

    # dataclasses.replace(optimizer, target=params) is as optimizer.replace(target=params).
    def arrive(item: Object) -> None:
        if isinstance(item, LegacyObject):
            behaviour = flow.library.method(item, "replace")
            if behaviour is not None:
                behaviour(flow, site)
        flow.replace_fields(item, site)

    if site.positional:
        flow.solver.watch(site.positional[0], arrive)


def parent_class(flow: Calls, site: CallSite) -> None:
    """`super()`."""
    outer = site.unit.ancestors(site.node)
    classes = (one for one in outer if isinstance(one, ast.ClassDef))
    node = next(classes, None)
    if node is None:
        return
    cls = flow.class_of(node)

    # `super().method` is looked up in the bases and theirs: an instance of each stands for it.
    def find() -> None:
        for base in flow.bases(cls):
            if isinstance(base, Class):
                flow.solver.add(site.result, Instance(base))

    flow.by_ancestry(cls, find)


def vjp(flow: Calls, site: CallSite) -> None:
    """`jax.vjp(fun, *primals)`, `jax.jvp(fun, primals, tangents)`, `jax.linearize`.

    They give a tuple: what the function gives, then something of no interest, then an auxiliary
    output.
    """
    function = site.argument(0, "fun")
    if function is None:
        return
    value = ("value", site.node)
    outcome = Container(site.node, "vjp")
    arguments: tuple[Place, ...] = site.positional[1:]
    match site.node:
        # jax.jvp(loss, (params,), (tangents,))
        case ast.Call(args=[_, ast.Tuple(elts=primals), *_]):
            arguments = tuple(flow.places[item] for item in primals)
    _apply(flow, site, function, arguments, value)
    flow.solver.add(site.result, outcome)
    flow.store_element(outcome, 0, value)
    # loss, pullback, metrics = jax.vjp(loss_fn, params, has_aux=True)
    if site.constant("has_aux"):
        auxiliary = ("auxiliary", site.node)
        flow.load(value, 1, auxiliary)
        flow.store_element(outcome, 2, auxiliary)


def evaluate(flow: Calls, site: CallSite) -> None:
    """`jax.eval_shape(fun, *args)`: like what the function gives."""
    function = site.argument(0, "fun")
    if function is not None:
        # All other keywords are the function's own.
        keywords = dict(site.keywords)
        keywords.pop("fun", None)
        given = site.positional[1:]
        inner = CallSite(site.unit, site.node, given, keywords, site.result)
        flow.call(function, inner)


def flatten(flow: Calls, site: CallSite) -> None:
    """`jax.tree_util.tree_flatten(tree)`: the leaves, and the structure.

    The structure stands for the tree, as the tree can be made of it again.
    """
    outcome = Container(site.node, "flattened")
    leaves = ("leaves", site.node)
    flow.solver.add(site.result, outcome)
    _list_leaves(flow, site, leaves)
    flow.store_element(outcome, 0, leaves)
    tree = site.argument(0, "tree")
    if tree is not None:
        flow.store_element(outcome, 1, tree)


def list_leaves(flow: Calls, site: CallSite) -> None:
    """`jax.tree_util.tree_leaves(tree)`."""
    _list_leaves(flow, site, site.result)


def _list_leaves(flow: Calls, site: CallSite, result: Place) -> None:
    """Let a list of the leaves reach `result`: arrays, or whatever `is_leaf` takes for leaves."""
    leaf = ("leaf", site.node)
    leaves = Container(site.node, LEAVES)
    flow.solver.add(leaf, Result(vocabulary.ARRAY))
    flow.store_element(leaves, None, leaf)
    flow.solver.add(result, leaves)
    tree = site.argument(0, "tree")
    if tree is not None and site.argument(1, "is_leaf") is not None:
        # An element, or the whole tree, may be a leaf.
        flow.merge(tree, leaves)
        flow.store_element(leaves, None, tree)


def choose(flow: Calls, site: CallSite) -> None:
    """`max(xs, key=…)`, `max(a, b)`, `random.choice(xs)`: one of the elements or arguments."""
    for place in site.positional:
        flow.iterate(place, site.result)
        # max(a, b): the arguments themselves
        if len(site.positional) > 1:
            flow.solver.connect(place, site.result)
    key = site.keywords.get("key")
    if key is not None:
        _apply(flow, site, key, (site.result,), ("key", site.node))


def chain(flow: Calls, site: CallSite) -> None:
    """`itertools.chain(xs, ys)`, `itertools.cycle(xs)`: a container of all elements.

    So is `itertools.chain.from_iterable(xss)`, where the elements of elements count.
    """
    outcome = Container(site.node, "chain")
    element = ("chained", site.node)
    flow.solver.add(site.result, outcome)
    for place in site.positional:
        flow.merge(place, outcome)
        flow.iterate(place, element)
    # itertools.chain.from_iterable(batches)
    flow.merge(element, outcome)


def sort(flow: Calls, site: CallSite) -> None:
    """`sorted(xs, key=…)`."""
    chain(flow, replace_positional(site, site.positional[:1]))
    key = site.keywords.get("key")
    if key is not None and site.positional:
        element = ("sorted", site.node)
        flow.iterate(site.positional[0], element)
        _apply(flow, site, key, (element,), ("key", site.node))


def select(flow: Calls, site: CallSite) -> None:
    """`filter(function, xs)`, `itertools.takewhile(function, xs)`, …: some of the elements."""
    if len(site.positional) == 2:
        function, elements = site.positional
        chain(flow, replace_positional(site, (elements,)))
        element = ("tested", site.node)
        flow.iterate(elements, element)
        _apply(flow, site, function, (element,), ("test", site.node))


def replace_positional(site: CallSite, positional: tuple[Place, ...]) -> CallSite:
    """The call with these arguments alone."""
    return CallSite(
        site.unit, site.node, positional, {}, site.result, None, (), site.scope
    )


def repeat(flow: Calls, site: CallSite) -> None:
    """`itertools.repeat(x)`."""
    if site.positional:
        outcome = Container(site.node, "repeat")
        flow.solver.add(site.result, outcome)
        flow.store_element(outcome, None, site.positional[0])


def make_default_dict(flow: Calls, site: CallSite) -> None:
    """`collections.defaultdict(factory)`."""
    outcome = Container(site.node, "defaultdict")
    flow.solver.add(site.result, outcome)
    # The factory makes an element for each key that is missing.
    if site.positional:
        made = ("default", site.node)
        _apply(flow, site, site.positional[0], (), made)
        flow.store_element(outcome, None, made)


def record(flow: Calls, site: CallSite) -> None:
    """`namedtuple(name, "first second")`, `typing.NamedTuple(name, [("first", type)])`."""
    match site.node:
        # namedtuple("State", "params, step")
        case ast.Call(args=[_, ast.Constant(value=str(text)), *_]):
            words = text.replace(",", " ").split()
            flow.solver.add(site.result, Record(tuple(words)))
        # NamedTuple("State", [("params", Params), ("step", int)])
        case ast.Call(args=[_, ast.Tuple(elts=elements) | ast.List(elts=elements), *_]):
            names = map(_field_name, elements)
            known = tuple(name for name in names if name is not None)
            flow.solver.add(site.result, Record(known))


def _field_name(node: ast.expr) -> str | None:
    """The name of a field: `"first"`, or `("first", type)`."""
    match node:
        case ast.Constant(value=str(name)):
            return name
        case ast.Tuple(elts=[ast.Constant(value=str(name)), *_]):
            return name
    return None


def cast(flow: Calls, site: CallSite) -> None:
    """`typing.cast(type, value)`."""
    if len(site.positional) != 2 or site.scope is None:
        return
    _, value = site.positional
    # typing.cast(optim.Optimizer, optimizer)
    if isinstance(site.node, ast.Call):
        flow.solver.connect(value, site.result)
        flow.annotate(site.node.args[0], site.scope, site.result)


def namespace(flow: Calls, site: CallSite) -> None:
    """`vars(object)`; `vars()` is as `locals()`."""

    def arrive(item: Object) -> None:
        if isinstance(item, Instance | Opaque):
            owner = item.cls if isinstance(item, Instance) else item
            flow.solver.add(site.result, Namespace(owner))
        elif isinstance(item, Module | Container | External):
            flow.solver.add(site.result, item)

    if site.positional:
        flow.solver.watch(site.positional[0], arrive)
    else:
        local_variables(flow, site)


def global_variables(flow: Calls, site: CallSite) -> None:
    """`globals()`: the module, whose items are its variables."""
    flow.solver.add(site.result, Module(site.unit))


def local_variables(flow: Calls, site: CallSite) -> None:
    """`locals()`: a dict of the variables of a function."""
    scope = site.scope
    # outside of all functions
    if scope is None or scope.parent is None:
        global_variables(flow, site)
        return
    outcome = Container(site.node, "locals")
    flow.solver.add(site.result, outcome)
    # locals()["optimizer"]
    for name in sorted(scope.names):
        flow.store_element(outcome, name, ("variable", scope, name))


def kind_of(flow: Calls, site: CallSite) -> None:
    """`type(object)`."""

    def arrive(item: Object) -> None:
        if isinstance(item, Instance):
            flow.solver.add(site.result, item.cls)

    if len(site.positional) == 1:
        flow.solver.watch(site.positional[0], arrive)


def dataclass_field(flow: Calls, site: CallSite) -> None:
    """`dataclasses.field(default=…, default_factory=…)`."""
    default = site.keywords.get("default")
    if default is not None:
        flow.solver.connect(default, site.result)
    factory = site.keywords.get("default_factory")
    if factory is not None:
        _apply(flow, site, factory, (), site.result)


def iterator(flow: Calls, site: CallSite) -> None:
    """`iter(xs)`, and `iter(function, end)`, which calls the function for each element."""
    if len(site.positional) < 2:
        first(flow, site)
        return
    # iter(queue.get, None)
    outcome = Container(site.node, "iterator")
    element = ("given", site.node)
    flow.solver.add(site.result, outcome)
    _apply(flow, site, site.positional[0], (), element)
    flow.store_element(outcome, None, element)


def getter(word: str) -> Behaviour:
    """`operator.attrgetter`, `operator.itemgetter`, `operator.methodcaller` with literal names."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        node = site.node
        if not isinstance(node, ast.Call):
            return
        values = [_literal(argument) for argument in node.args]
        names = [value for value in values if isinstance(value, str)]
        # itemgetter("params", 0)
        if word == "itemgetter":
            keys = tuple(map(_key, values))
            flow.solver.add(site.result, Getter(node, keys=keys))
        # methodcaller("apply_gradient", grads)
        elif word == "methodcaller" and names:
            method = tuple(names[:1])
            flow.solver.add(site.result, Getter(node, attributes=method, calls=True))
        # attrgetter("optimizer.target")
        elif len(names) == len(values) == 1:
            attributes = tuple(names[0].split("."))
            flow.solver.add(site.result, Getter(node, attributes=attributes))

    return behaviour


def _key(value: object) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _literal(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def map_tree(flow: Calls, site: CallSite) -> None:
    """`jax.tree_util.tree_map(f, tree, …)`: like the tree.

    With `is_leaf`, the function may be given any part of it.
    """
    tree = site.argument(1, "tree")
    if tree is not None:
        flow.solver.connect(tree, site.result)
    # jax.tree_util.tree_map(step, states, is_leaf=is_state)
    if "is_leaf" in site.keywords:
        flow.mix(site, site.positional)


def mixing(flow: Calls, site: CallSite) -> None:
    """Any argument may be given back, put into another, or given to one that is a function."""
    flow.mix(site, arguments(site))


def import_by_name(flow: Calls, site: CallSite) -> None:
    """`importlib.import_module("package.module")`, and what else gives a module for a name."""
    if isinstance(site.node, ast.Call):
        flow.import_module(site.node, site)


def named_attribute(flow: Calls, site: CallSite) -> None:
    """`getattr(owner, name, default)` with a literal name."""
    node = site.node
    if len(site.positional) < 2 or not isinstance(node, ast.Call):
        return
    owner = site.positional[0]
    # the place of a literal is the literal
    match site.positional[1]:
        # getattr(state, "optimizer")
        case ast.Constant(value=str(name)):
            flow.load_attribute(owner, name, site.result)
            flow.solver.watch(owner, lambda item: _look_up(flow, item, name, site))
        # getattr(state, name)
        case _:
            flow.solver.watch(owner, lambda item: _load_any(flow, item, site.result))
    # getattr(state, "optimizer", None)
    for place in site.positional[2:]:
        flow.solver.connect(place, site.result)


def _look_up(flow: Calls, item: Object, name: str, site: CallSite) -> None:
    if isinstance(item, Module) and item.unit is not None:
        flow.looked_up[item.unit][name, site.result] = None


def _load_any(flow: Calls, item: Object, result: Place) -> None:
    """Let any attribute of an object reach `result`."""
    if isinstance(item, Instance | Opaque):
        owner = item.cls if isinstance(item, Instance) else item
        flow.solver.connect(flow.any_field(owner)[0], result)
    elif isinstance(item, Module):
        flow.load_from_module(item, None, result)
    elif isinstance(item, Container):
        flow.load_element(item, None, result)


def of_class(name: str) -> Behaviour:
    """`list.append(values, value)`: a method of a container by its class."""

    def behaviour(flow: Calls, site: CallSite) -> None:
        # list.append(*arguments): it is not known what the list is.
        if site.positional and site.starred != 0:
            owner, *rest = site.positional
            starred = None if site.starred is None else site.starred - 1
            method = ("by class", site.node)
            flow.load_attribute(owner, name, method)
            inner = dataclasses.replace(site, positional=tuple(rest), starred=starred)
            flow.call(method, inner)

    return behaviour


def set_named_attribute(flow: Calls, site: CallSite) -> None:
    """`setattr(owner, name, value)`."""
    node = site.node
    if len(site.positional) != 3 or not isinstance(node, ast.Call):
        return
    owner, _, value = site.positional
    match node.args[1]:
        # setattr(state, "optimizer", optimizer)
        case ast.Constant(value=name):
            flow.store_attribute(owner, str(name), value)
        # setattr(state, name, optimizer)
        case _:
            flow.solver.watch(owner, lambda item: _store_any(flow, item, value))


def _store_any(flow: Calls, item: Object, source: Place) -> None:
    """Let any attribute of an object be what is at `source`."""
    if isinstance(item, Instance | Opaque):
        owner = item.cls if isinstance(item, Instance) else item
        flow.solver.connect(source, flow.any_field(owner)[1])
    elif isinstance(item, Module):
        flow.store_in_module(item, None, source)
    elif isinstance(item, Container):
        flow.store_element(item, None, source)


def fold(flow: Calls, site: CallSite) -> None:
    """`functools.reduce(function, iterable, initial)`."""
    if len(site.positional) >= 2:
        function, elements, *initial = site.positional
        for place in initial:
            flow.solver.connect(place, site.result)
        # What the function gives for one element is its argument for the next.
        element = ("folded", site.node)
        flow.iterate(elements, element)
        _apply(flow, site, function, (site.result, element), site.result)


def decorate(flow: Calls, site: CallSite) -> None:
    """`functools.wraps(function)`: a decorator that hands its argument through."""
    flow.solver.add(site.result, External("functools.wraps()"))


first = hands_through(0, "")

BEHAVIOURS: dict[str, Behaviour] = {
    **dict.fromkeys(
        (
            *vocabulary.HAND_THROUGH,
            "contextlib.contextmanager",
            "functools.lru_cache",
            "functools.cache",
            "functools.cached_property",
            "types.MappingProxyType",
            "builtins.staticmethod",
            "builtins.classmethod",
            "builtins.property",
        ),
        first,
    ),
    **dict.fromkeys(("builtins.list", "builtins.tuple"), make_list),
    **dict.fromkeys(vocabulary.MAP_TREES | vocabulary.MAP_TREES_WITH_PATH, map_tree),
    **dict.fromkeys(
        (*vocabulary.CONVERT_CHECKPOINT, "typing.NewType"),
        hands_through(1, "target"),
    ),
    **dict.fromkeys(vocabulary.LINEARIZE, vjp),
    **dict.fromkeys(vocabulary.FLATTEN, flatten),
    **dict.fromkeys(vocabulary.LIST_LEAVES, list_leaves),
    **dict.fromkeys(
        ("builtins.max", "builtins.min", "random.choice", "random.sample"), choose
    ),
    **dict.fromkeys(
        (
            "itertools.chain",
            "itertools.chain.from_iterable",
            "itertools.cycle",
            "itertools.islice",
            "builtins.set",
            "builtins.frozenset",
            "builtins.reversed",
        ),
        chain,
    ),
    "builtins.sorted": sort,
    **dict.fromkeys(
        (
            "builtins.filter",
            "itertools.filterfalse",
            "itertools.takewhile",
            "itertools.dropwhile",
        ),
        select,
    ),
    **dict.fromkeys(vocabulary.CALL_BACK, mixing),
    **dict.fromkeys(
        (
            "builtins.dict",
            "collections.OrderedDict",
            "types.SimpleNamespace",
            "argparse.Namespace",
            "ml_collections.ConfigDict",
            "ml_collections.FrozenConfigDict",
            *vocabulary.FROZEN_DICTS,
        ),
        make_dict,
    ),
    **dict.fromkeys(("collections.namedtuple", "typing.NamedTuple"), record),
    "collections.defaultdict": make_default_dict,
    "itertools.repeat": repeat,
    **dict.fromkeys(vocabulary.SHAPES_OF, evaluate),
    "typing.cast": cast,
    "typing.TypeVar": hands_through(1, "bound"),
    "importlib.import_module": import_by_name,
    "builtins.__import__": import_by_name,
    **dict.fromkeys(vocabulary.PARTIAL, partial_application(is_method=False)),
    "functools.partialmethod": partial_application(is_method=True),
    "operator.attrgetter": getter("attrgetter"),
    "operator.itemgetter": getter("itemgetter"),
    "operator.methodcaller": getter("methodcaller"),
    "dataclasses.field": dataclass_field,
    "flax.struct.field": dataclass_field,
    "builtins.iter": iterator,
    "builtins.vars": namespace,
    "builtins.globals": global_variables,
    "builtins.locals": local_variables,
    "builtins.type": kind_of,
    **dict.fromkeys(BY_FILE, import_by_name),
    "importlib.util.module_from_spec": hands_through(0, "spec"),
    "functools.wraps": decorate,
    "functools.wraps()": first,
    **dict.fromkeys(vocabulary.GRADIENT, derivative(value=False)),
    **dict.fromkeys(vocabulary.VALUE_AND_GRADIENT, derivative(value=True)),
    **dict.fromkeys(vocabulary.SCAN, scan),
    **dict.fromkeys(vocabulary.WHILE, while_loop),
    **dict.fromkeys(vocabulary.FOR, fori_loop),
    **dict.fromkeys(vocabulary.BRANCH, cond),
    **dict.fromkeys(vocabulary.SWITCH, switch),
    **dict.fromkeys(vocabulary.MAP_SLICES, map_slices),
    "builtins.map": apply_to_elements,
    "builtins.zip": pair_up,
    "builtins.enumerate": enumerate_elements,
    "builtins.next": take_element,
    "dataclasses.replace": replace,
    "builtins.super": parent_class,
    "builtins.getattr": named_attribute,
    "builtins.setattr": set_named_attribute,
    "functools.reduce": fold,
    **{
        f"{kind.__module__}.{kind.__name__}.{name}": of_class(name)
        for kind in BY_CLASS
        for name in BY_NAME.intersection(dir(kind))
    },
}
