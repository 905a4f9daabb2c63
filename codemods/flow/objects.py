"""What an expression may hold: the abstract objects of the analysis."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import TypeVar
from weakref import WeakValueDictionary

from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit

T = TypeVar("T")
Place = Hashable
"""Where objects are: an expression (its `ast` node), or a tuple: `("variable", scope, name)`."""


def interned(cls: type[T]) -> type[T]:
    """Let a class give one object for the same fields.

    Sets of such objects are then fast: they are compared and hashed by identity.
    """
    declared = fields(cls)  # type: ignore[arg-type]
    names = [one.name for one in declared]
    defaults = {one.name: one.default for one in declared if one.default is not MISSING}
    known: WeakValueDictionary[tuple[object, ...], T] = WeakValueDictionary()

    def new(own: type[T], *args: object, **kwargs: object) -> T:
        if len(args) < len(names):
            missing = names[len(args) :]
            args = (*args, *[kwargs.get(name, defaults.get(name)) for name in missing])
        found = known.get(args)
        if found is None:
            known[args] = found = object.__new__(own)
        return found

    cls.__new__ = new  # type: ignore[assignment, method-assign]
    return cls


@interned
@dataclass(frozen=True, eq=False)
class External:
    """Something outside the project, by its full name: `flax.optim.Adam`, `jax.jit`."""

    name: str


@interned
@dataclass(frozen=True, eq=False)
class Result:
    """What a call of an external function or class gave."""

    name: str

    @property
    def is_instance(self) -> bool:
        """Whether that is a class, as its name is written."""
        return self.name.rpartition(".")[2][:1].isupper()


@interned
@dataclass(frozen=True, eq=False)
class Module:
    """A module or package of the project; `directory` is empty for a plain module."""

    unit: Unit | None
    directory: str = ""


@dataclass(frozen=True, eq=False)
class Function:
    """A function or lambda of the project."""

    unit: Unit
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the project."""

    unit: Unit
    node: ast.ClassDef
    scope: Scope


@interned
@dataclass(frozen=True, eq=False)
class Instance:
    """Any instance of a class: two instances of one class are one abstract object."""

    cls: Class


@interned
@dataclass(frozen=True, eq=False)
class Opaque:
    """A value of unknown origin into a field of which an optimizer is put."""

    place: Place


@interned
@dataclass(frozen=True, eq=False)
class Namespace:
    """The `__dict__` of an instance: a dict of its fields."""

    owner: Class | Opaque


@interned
@dataclass(frozen=True, eq=False)
class Method:
    """A method bound to its owner.

    It is a function of the project bound to an instance, or a named method of any other object.
    """

    owner: Object
    name: str
    function: Function | None = None


@interned
@dataclass(frozen=True, eq=False)
class Partial:
    """A callable with some arguments filled in, by the call that filled them.

    One that is a method (`functools.partialmethod`) gets its owner first.
    """

    call: ast.Call
    function: Object
    is_method: bool = False


@interned
@dataclass(frozen=True, eq=False)
class Derivative:
    """What `jax.value_and_grad` and its kin make of a function.

    A call of it gives a tuple laid out as `layout` says: `value` stands for what the function
    returns, `auxiliary` for the second half of that; all other words for the unknown.
    """

    function: Object
    layout: tuple[str, ...]


@interned
@dataclass(frozen=True, eq=False)
class Container:
    """A tuple, list, set, dict or generator, by the node that makes it."""

    node: ast.AST
    role: str = ""


LEAVES = "leaves"
"""The role of a list of a tree's leaves."""


@interned
@dataclass(frozen=True, eq=False)
class Record:
    """The class that `namedtuple("Record", "first second")` makes."""

    fields: tuple[str, ...]


@interned
@dataclass(frozen=True, eq=False)
class Getter:
    """A callable that takes a part of its argument.

    It is made by `operator.attrgetter`, `itemgetter` or `methodcaller`.
    """

    call: ast.Call
    attributes: tuple[str, ...] = ()
    keys: tuple[int | str | None, ...] = ()
    calls: bool = False


@dataclass(frozen=True, eq=False)
class Declared:
    """A callable of which only the annotation is known."""

    annotation: ast.expr


@interned
@dataclass(frozen=True, eq=False)
class LegacyObject:
    """An abstract object that the library makes, such as an optimizer, by its allocation site.

    `kind` is the library's word for it, `made_by` the class that made it, by its name: a member of
    an enumeration of the library's if it has none there, None if no class is known.
    """

    kind: str
    unit: Unit
    node: ast.AST
    made_by: str | Enum | None = None
    evidence: str = "proven"


@interned
@dataclass(frozen=True, eq=False)
class Derived:
    """What an unknown function made of an object that was passed to it.

    It may be the object again, a part of it, or something else.
    """

    source: LegacyObject


@dataclass(frozen=True, eq=False)
class AnyDerived:
    """Stands at a place for many `Derived`, which the solver lists."""


ANY_DERIVED = AnyDerived()

Object = (
    External
    | Result
    | Module
    | Function
    | Class
    | Instance
    | Opaque
    | Namespace
    | Method
    | Partial
    | Derivative
    | Container
    | Record
    | Getter
    | Declared
    | LegacyObject
    | Derived
    | AnyDerived
)
