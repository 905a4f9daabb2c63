"""Where something is used that is still there, and is taken otherwise today."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from codemods.analysis.frozen_tests import Naming, frozen_test
from codemods.analysis.uses import class_around
from codemods.inference.binding import is_unpacked, values_of
from codemods.removed.table import Removed, changed, changed_arguments, row_of
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    ARRAY_CLASS,
    MAKING_ARRAYS,
    MODELS,
    NO_ARRAYS,
    NUMPY_ARRAYS,
    PARTIAL,
    STRUCTS,
)

KIND = "changed"
"""The kind of such a use."""

COLLECTIONS = frozenset(("params", "batch_stats", "cache", "intermediates"))
"""The parts of the variables of a model."""

PAIRED = ("params", "batch_stats")
"""The parts of which a `pop` that is unpacked is one of the variables of a model."""

PARAMS = re.compile(r"params\b|variables\b|\.target$")
"""What says of an expression that the variables of a model are there."""

TYPE = re.compile(r"type\(|.*\.__class__$")
"""What says of a side of a comparison that it is the type of something."""

STOPPING = re.compile(r"flax\.training\b.*\bearly_stopping")
"""The import of what stops early."""

MASK = re.compile("mask", re.IGNORECASE)
"""What says of an argument that it is the mask of attention."""

SEQUENCE = re.compile(r"\b(?:Iterable|list|List|Sequence|tuple|Tuple)\b")
"""What says of a field that a list may be given for it."""

OF_FROZEN, OF_ARRAY = METHODS = ("flax.core.FrozenDict.", f"{ARRAY_CLASS}.")
"""The beginnings of the rows of methods."""

ARRAY_TYPE = "jax.Array: a type that is compared"
STOPPED = "flax.training.early_stopping.EarlyStopping.update: a pair"
LIST_OF_MODULE = "flax.linen.Module: a field + […]"
DEFAULT = "dataclasses.field: an array as default"

Changed = tuple[str, ast.expr]
"""What is taken otherwise, by the name of its row, and where it is written."""

DATACLASSES = MODELS | STRUCTS | {"dataclasses.dataclass"}
"""The bases and decorators of classes whose annotated names are fields."""


def changed_uses(unit: Unit, naming: Naming) -> Iterator[Changed]:
    """What a file uses that is taken otherwise today."""
    says_flax = "flax" in unit.code
    for node in unit.nodes:
        match node:
            case ast.Call():
                yield from _arguments(unit, node, naming)
                if not says_flax:
                    continue
                name = _flax_method(unit, node) or frozen_test(unit, node, naming)
                if name:
                    yield name, node
            # x.device_buffer, x.device()
            case ast.Attribute(attr=name):
                call = unit.call_of(node)
                called = "()" if call is not None and not values_of(call) else ""
                if f"{OF_ARRAY}{name}{called}" in changed():
                    yield f"{OF_ARRAY}{name}{called}", node
            # type(x) == jnp.DeviceArray
            case ast.Compare(left=left, comparators=others):
                sides = (left, *others)
                if any(TYPE.match(unit.source(side)) for side in sides):
                    for kind in _array_types(sides, naming):
                        yield ARRAY_TYPE, kind
            # self.features + [1]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                for field, other in ((left, right), (right, left)):
                    if isinstance(other, ast.List) and _is_field(unit, field, naming):
                        yield LIST_OF_MODULE, field
            # shift: Array = jnp.zeros(1)
            case ast.AnnAssign(value=ast.Call() as default):
                if _is_default(unit, node, naming) and _makes_array(default, naming):
                    yield DEFAULT, default


def _arguments(unit: Unit, call: ast.Call, naming: Naming) -> Iterator[Changed]:
    """What is taken otherwise of the arguments of a call, each place once."""
    found: dict[tuple[str, ast.expr], str] = {}
    names, in_partial = [*naming(call.func)], []
    # x.clip(a_min=0)
    if not call.args and isinstance(call.func, ast.Attribute):
        names.append(f"{OF_ARRAY}{call.func.attr}")
    # partial(jnp.clip, a_min=0)
    elif call.args and not PARTIAL.isdisjoint(names):
        in_partial = [*naming(call.args[0])]
    for name in (*names, *in_partial):
        for row in changed_arguments().get(name, ()):
            if name in in_partial and row.how not in ("keyword", "none"):
                continue
            for node in _places(unit, row, call):
                found.setdefault((row.how, node), row.name)
    for (_, node), name in found.items():
        yield name, node


def _places(unit: Unit, row: Removed, call: ast.Call) -> Iterator[ast.expr]:
    """The call or the arguments that a row is about."""
    arguments, keywords = call.args, {word.arg for word in call.keywords}
    match row.how:
        # jnp.clip(x, a_min=0), jnp.sort(x, kind="stable")
        case "keyword" | "none" if row.parameter in keywords:
            yield call
        # nn.GRUCell(), but not nn.GRUCell()(carry, x)
        case "argument" if not (arguments or row.to in keywords or is_unpacked(call)):
            if not _has_carry(unit.call_of(call)):
                yield call
        # nn.GRUCell()(carry, x)
        case "carry" if _has_carry(call) and isinstance(call.func, ast.Call):
            cell = call.func
            words = {word.arg for word in cell.keywords}
            if not (cell.args or "features" in words or is_unpacked(cell)):
                yield cell
        # nn.GRUCell.initialize_carry(key, (8,), 16)
        case "class_carry" if len(arguments) == 3 and not keywords:
            yield call
        # optax.huber_loss(x, y, 1.0)
        case "position" if len(arguments) > int(row.parameter):
            if not is_unpacked(call) and _is_as_before(row, arguments):
                yield call
        # jnp.broadcast_to([1.0], shape)
        case "array":
            for place in map(int, row.to.split()):
                given = arguments[place] if place < len(arguments) else None
                if isinstance(given, ast.List | ast.ListComp | ast.Tuple):
                    yield given
        # np.uint8(-1)
        case "unsigned":
            match arguments:
                case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))]:
                    yield arguments[0]


def _has_carry(call: ast.Call | None) -> bool:
    """Whether a call of a cell gives it a carry under a name, of which more can be read."""
    return call is not None and bool(call.args) and isinstance(call.args[0], ast.Name)


def _is_as_before(row: Removed, arguments: list[ast.expr]) -> bool:
    """Whether arguments by position are meant as before, where today's function takes some, too.

    Attention takes three: queries, keys and values.
    """
    if not row.to.startswith("mask"):
        return True
    return len(arguments) > 3 or bool(MASK.search(ast.unparse(arguments[2])))


def _array_types(sides: Sequence[ast.expr], naming: Naming) -> Iterator[ast.expr]:
    """What stands for the class of arrays, in the sides of a comparison."""
    for one in chain.from_iterable(getattr(side, "elts", [side]) for side in sides):
        for name in naming(one):
            row = row_of(name)
            if ARRAY_CLASS in (name, row and row.to):
                yield one


def _flax_method(unit: Unit, call: ast.Call) -> str | None:
    """The method of Flax that a call is of, if the call shows that by itself."""
    parent = unit.parents.get(call)
    match call:
        # state, params = variables.pop("params")
        case ast.Call(
            func=ast.Attribute(attr="pop", value=owner),
            args=[ast.Constant(value=str(name))],
            keywords=[],
        ) if _is_pair(call, parent):
            if name in PAIRED or _is_given(unit, owner):
                return f"{OF_FROZEN}pop"
        # improved, state = state.update(metric)
        case ast.Call(func=ast.Attribute(attr="update")) if _is_pair(call, parent):
            if len(values_of(call)) == 1 and STOPPING.search(unit.code):
                return STOPPED
        # params = params.unfreeze()
        case ast.Call(func=ast.Attribute(attr="unfreeze"), args=[], keywords=[]):
            if not (isinstance(parent, ast.Expr) or _defines(unit, "unfreeze")):
                return f"{OF_FROZEN}unfreeze"
        # params.copy({"head": head}), which copied and changed
        case ast.Call(
            func=ast.Attribute(attr="copy", value=owner), args=[given], keywords=[]
        ) if not isinstance(given, ast.Constant):
            keys = given.keys if isinstance(given, ast.Dict) else ()
            named = {key.value for key in keys if isinstance(key, ast.Constant)}
            is_of_model = bool(named & COLLECTIONS or PARAMS.search(unit.source(owner)))
            is_of_model = is_of_model or any(_is_given(unit, x) for x in (owner, given))
            if is_of_model and not _defines(unit, "copy"):
                return f"{OF_FROZEN}copy"
        case ast.Call(func=ast.Attribute(attr="copy"), args=[], keywords=[word]):
            if word.arg == "add_or_replace":
                return f"{OF_FROZEN}copy"
    return None


def _is_pair(call: ast.Call, parent: ast.AST | None) -> bool:
    """Whether what a call gives is taken for a pair."""
    match parent:
        case ast.Assign(targets=[ast.Tuple(elts=[_, _])]):
            return True
        case ast.Subscript(slice=ast.Constant(value=0 | 1)):
            return True
    return False


def _is_given(unit: Unit, owner: ast.expr) -> bool:
    """Whether an expression is what a model gave: by `init`, or `apply` with `mutable`."""
    text, values = unit.source(owner), [owner]
    for node in unit.nodes:
        match node:
            # y, updates = model.apply(variables, x, mutable=["batch_stats"])
            case ast.Assign(targets=[ast.Tuple(elts=[*_, target]) | target]):
                if unit.source(target) == text:
                    values.append(node.value)
    for value in values:
        match value:
            # model.init(key, x), but not optimizer.init(params)
            case ast.Call(func=ast.Attribute(attr="init"), args=[_, _, *_]):
                return True
            case ast.Call(func=ast.Attribute(attr="apply"), keywords=words):
                if any(word.arg == "mutable" for word in words):
                    return True
    return False


def _defines(unit: Unit, name: str) -> bool:
    """Whether a file has a function or method of a name."""
    functions = (node for node in unit.nodes if isinstance(node, ast.FunctionDef))
    return any(function.name == name for function in functions)


def _is_field(unit: Unit, node: ast.expr, naming: Naming) -> bool:
    """Whether an expression is a field of a module of Flax, within this, that may be a list."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            cls = class_around(unit, node)
        case _:
            return False
    if cls is None or _kinds(unit, cls, naming).isdisjoint(MODELS):
        return False
    for part in chain.from_iterable(one.body for one in _ancestry(unit, cls)):
        match part:
            # an array would be added to
            case ast.AnnAssign(target=ast.Name(id=field), annotation=kind):
                if field == name:
                    return bool(SEQUENCE.search(ast.unparse(kind)))
    return False


def _kinds(unit: Unit, cls: ast.ClassDef, naming: Naming) -> set[str]:
    """The full names of the bases and decorators of a class, and of its bases in the file."""
    found: set[str] = set()
    for one in _ancestry(unit, cls):
        for node in (*one.bases, *one.decorator_list):
            # @dataclasses.dataclass(frozen=True)
            found.update(naming(node.func if isinstance(node, ast.Call) else node))
    return found


def _ancestry(unit: Unit, cls: ast.ClassDef) -> list[ast.ClassDef]:
    """A class, and its bases in the file."""
    classes = {one.name: one for one in unit.nodes if isinstance(one, ast.ClassDef)}
    found = [cls]
    # the list grows while it is read
    for one in found:
        names = (base.id for base in one.bases if isinstance(base, ast.Name))
        bases = filter(None, map(classes.get, names))
        found += [base for base in bases if base not in found]
    return found


def _is_default(unit: Unit, node: ast.AnnAssign, naming: Naming) -> bool:
    """Whether a statement gives a field of a dataclass its default."""
    cls = unit.parents[node]
    if not isinstance(cls, ast.ClassDef):
        return False
    return not _kinds(unit, cls, naming).isdisjoint(DATACLASSES)


def _makes_array(call: ast.Call, naming: Naming) -> bool:
    """Whether a call makes an array."""
    names = {*naming(call.func)}
    if names & NUMPY_ARRAYS:
        return True
    return any(name.startswith(MAKING_ARRAYS) for name in names - NO_ARRAYS)
