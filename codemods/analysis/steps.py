"""The step that an optimizer counts.

In legacy it is an array, and in a `TrainState` that took no step under `jit` a plain number. That
does where a program computes with the step. Where it asks at once for what only an array has or
does, an array is made of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling, names_of, tree_function
from codemods.analysis.origins import Origins, Variable
from codemods.analysis.uses import Use
from codemods.inference.binding import parameters_of
from codemods.inference.objects import External, Function, LegacyObject, Object, Partial
from codemods.sources.modules import Unit
from codemods.vocabulary import UNREPLICATE

PACKAGES = ("jax.", "numpy.", "flax.", "optax.", "math.")
"""The packages whose functions take a number wherever they take an array."""

BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
DIVIDING = (ast.Div, ast.FloorDiv, ast.Mod)
TELLING = frozenset(("builtins.isinstance", "builtins.type"))
COMPUTING = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.IfExp,
    ast.BoolOp,
    ast.Tuple,
    ast.List,
    ast.Starred,
    ast.keyword,
)
ZERO = "{jnp}.zeros((), {jnp}.int32)"


class Steps:
    """Finds where a step is used as only an array can be."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.origins = facts.of(Origins)
        self.handling = facts.of(Handling)
        self.compiled = facts.of(Compiled)

    def zero(self, optimizers: Iterable[LegacyObject]) -> str:
        """The step of optimizers that are created."""
        return ZERO if any(map(self.is_array, optimizers)) else "0"

    def read(self, use: Use, owner: ast.expr, text: str) -> str:
        """The template that reads the step of an owner.

        It is `text`, or an array of that where a number is not enough.
        """
        if not isinstance(use.node, ast.Attribute):
            return text
        owners = self.facts.legacy_objects(owner, "optimizer")
        if all(obj.evidence == "proven" and self.is_array(obj) for obj in owners):
            return text
        if not self.needs_array(use.node, use.unit):
            return text
        return f"{{jnp}}.asarray({text}, {{jnp}}.int32)"

    # Among the leaves

    def is_array(self, optimizer: LegacyObject) -> bool:
        """Whether an optimizer has to be created with an array as its step."""
        if optimizer in self._array_steps:
            return True
        links = self.facts.legacy.links
        others = (outer for outer, inner in links if inner is optimizer)
        return not self._array_steps.isdisjoint(others)

    @cached_property
    def _array_steps(self) -> frozenset[LegacyObject]:
        """The optimizers with a step that is used as only an array can be, as one of the leaves."""
        found: set[LegacyObject] = set()
        for _, call in self.flow.reading.calls:
            name = tree_function(self.facts, call)
            asks = name in ("flatten", "leaves")
            # jax.tree_map(lambda leaf: leaf[0], optimizer)
            if name in ("map", "multimap"):
                asks = not all(map(self._takes_numbers, self._functions(call)))
            if asks:
                found.update(self.handling.optimizers_in(call))
        return frozenset(found)

    def _functions(self, call: ast.Call) -> Iterable[Object | None]:
        """The functions that a `tree_map` may be of."""
        for node in call.args[:1]:
            # jnp.zeros_like, of a package that nobody follows
            name = self.facts.full_name(node)
            return list(self.facts.objects(node)) or [External(name)]
        return [None]

    def _takes_numbers(self, item: Object | None) -> bool:
        match item:
            case External(name=name):
                return name.startswith(PACKAGES)
            case Partial(function=function):
                return self._takes_numbers(function)
            case Function(node=node, scope=scope):
                several = node.args.vararg
                names = [one.arg for one in parameters_of(node.args)]
                names += [several.arg] if several is not None else []
                loads = (
                    load
                    for name in names
                    for load in self.origins.loads(Variable(scope, name))
                )
                return all(self._is_number(load, item.unit) for load in loads)
        return False

    def _is_number(self, node: ast.AST, unit: Unit) -> bool:
        """Whether a leaf is used as a number can be."""
        parent = unit.parents.get(node)
        match parent:
            # lambda leaf: leaf
            case ast.Lambda() | ast.Return():
                return True
            # leaf[0], of a replicated optimizer
            case ast.Subscript(value=value, slice=index) if value is node:
                return is_of_stacked(index)
            # jnp.square(leaf)
            case ast.Call(func=called) if called is not node:
                called_names = names_of(self.facts, called)
                return any(name.startswith(PACKAGES) for name in called_names)
        return isinstance(parent, COMPUTING) and self._is_number(parent, unit)

    # Where it is read

    def needs_array(self, read: ast.Attribute | ast.Subscript, unit: Unit) -> bool:
        """Whether the step that is read here is used as only an array can be."""
        if self.compiled.is_traced(read) or self._is_replicated(read, unit):
            return False
        node: ast.AST = read
        is_truth = is_positive = False
        while True:
            parent = unit.parents.get(node)
            match parent:
                # optimizer.state.step.item()
                case ast.Attribute():
                    return True
                # ~(step > 0): ~True is -2
                case ast.UnaryOp(op=ast.Invert()):
                    return True
                # "step %d" % step
                case ast.BinOp(left=ast.Constant(value=str())):
                    return False
                # (step > 0) + (step > 1), which is one of True in JAX
                case ast.BinOp(op=operator) if is_truth and not isinstance(
                    operator, BITS
                ):
                    return not isinstance(operator, ast.Mult)
                # 1 / step, step ** -0.5: an array divides by zero
                case ast.BinOp(op=operator, left=left, right=right) if not is_positive:
                    if isinstance(operator, DIVIDING) and right is node:
                        return True
                    if isinstance(operator, ast.Pow) and left is node:
                        return not isinstance(right, ast.Constant)
                    # step + 1
                    is_positive = isinstance(operator, ast.Add) and any(
                        isinstance(one, ast.Constant) for one in (left, right)
                    )
                case ast.Call(func=function) if function is not node:
                    return self._asks(parent, unit)
                case ast.Compare() | ast.BoolOp():
                    is_truth = True
                case ast.BinOp() | ast.UnaryOp():
                    pass
                case _:
                    return False
            node = parent

    def _asks(self, call: ast.Call, unit: Unit) -> bool:
        """Whether a call may ask its argument for what only an array has or does."""
        # writer.scalar("loss", loss, step), "step {}".format(step)
        if isinstance(unit.parents.get(call), ast.Expr):
            return False
        match call.func:
            case ast.Attribute(value=ast.Constant()):
                return False
        # isinstance(optimizer.state.step, jnp.ndarray), schedule(optimizer.state.step)
        names = {*names_of(self.facts, call.func)}
        if not names or names & TELLING:
            return True
        return not all(name.startswith((*PACKAGES, "builtins.")) for name in names)

    def _is_replicated(self, read: ast.expr, unit: Unit) -> bool:
        """Whether a step is one of several devices, or was: replicating makes an array of it."""
        match unit.parents.get(read):
            # optimizer.state.step[0]
            case ast.Subscript(value=value, slice=index) if value is read:
                return is_of_stacked(index)
            # jax_utils.unreplicate(optimizer.state.step)
            case ast.Call() as call if self._is_unreplicated(call):
                return True
        match read:
            # jax_utils.unreplicate(optimizer).state.step
            case ast.Attribute(value=ast.Attribute(value=ast.Call() as call)):
                return self._is_unreplicated(call)
        return False

    def _is_unreplicated(self, call: ast.Call) -> bool:
        return not UNREPLICATE.isdisjoint(self.facts.externals(call.func))


def is_of_stacked(index: ast.expr) -> bool:
    """Whether an index has a slice or a number: only an array with a dimension takes that.

    No number has ever been such, so the step is one of a replicated optimizer.
    """
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        match part:
            # step[0], step[:1]
            case ast.Slice() | ast.Constant(value=int()):
                return True
    return False
