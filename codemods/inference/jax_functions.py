"""Functions of JAX: derivatives, control flow, trees."""

from __future__ import annotations

import ast
from dataclasses import replace as replaced
from typing import TYPE_CHECKING

from codemods import vocabulary
from codemods.inference.behaviours import (
    DEEPEST_WRAPPING,
    Answer,
    Behaviour,
    apply,
    boxed,
    wrapping,
)
from codemods.inference.objects import (
    Arguments,
    Container,
    Derivative,
    Key,
    Object,
    Place,
    Result,
    plain,
)

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

LEAVES = "leaves"
"""The role of a list of a tree's leaves."""


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


# Control flow


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
