"""A package that generated programs import, and that a migration is never given."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

_kept: dict[str, Any] = {}
_made: dict[str, Any] = {}
_heard: dict[str, list[Callable[..., Any]]] = {}
_used: list[Any] = []
CONFIG = SimpleNamespace()


def identity(value: Any) -> Any:
    return value


def keep(name: str, value: Any) -> None:
    _kept[name] = value


def kept(name: str) -> Any:
    return _kept[name]


def call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def listed(*args: Any, **kwargs: Any) -> list[Any]:
    return [*args, *kwargs.values()]


def first(values: Iterable[Any]) -> Any:
    return next(iter(values))


def logged(function: Any) -> Any:
    return function


def retry(times: int) -> Callable[[Any], Any]:
    assert times
    return logged


def mappable(cls: Any) -> Any:
    return cls


def register(name: str) -> Callable[[Any], Any]:
    def apply(made: Any) -> Any:
        _made[name] = made
        return made

    return apply


def build(name: str) -> Any:
    return _made[name]


def run(name: str, *args: Any) -> Any:
    return _made[name](*args)


def pipe(value: Any, *functions: Callable[[Any], Any]) -> Any:
    for function in functions:
        value = function(value)
    return value


def get_in(path: Iterable[Any], value: Any) -> Any:
    for key in path:
        value = value[key]
    return value


def chunked(values: list[Any], size: int) -> list[list[Any]]:
    return [values[at : at + size] for at in range(0, len(values), size)]


def on(event: str, function: Callable[..., Any]) -> None:
    _heard.setdefault(event, []).append(function)


def emit(event: str, *args: Any) -> None:
    for function in _heard[event]:
        function(*args)


def clone(value: Any) -> Any:
    return copy.copy(value)


def forever(value: Any) -> Iterator[Any]:
    while True:
        yield value


@contextlib.contextmanager
def using(value: Any) -> Iterator[Any]:
    _used.append(value)
    yield value


def used() -> Any:
    return _used[-1]


class AttrDict(dict[str, Any]):
    """A dict whose items are attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Store:
    """Keeps what it is given, in whichever way."""

    def __init__(self, value: Any = None) -> None:
        self._held = [value]
        self._items: dict[Any, Any] = {}

    def put(self, value: Any) -> None:
        self._held.append(value)

    def get(self) -> Any:
        return self._held[-1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[key] = value

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __enter__(self) -> Any:
        return self.get()

    def __exit__(self, *_: object) -> None:
        pass


class Wrapper:
    """Has what it wraps as an attribute."""

    def __init__(self, inner: Any, rate: float = 0.1) -> None:
        self.inner = inner
        self.rate = rate

    def unwrap(self) -> Any:
        return self.inner

    def __or__(self, other: Any) -> Wrapper:
        return Wrapper(other)


class Same:
    """Gives what it is subscripted with."""

    def __class_getitem__(cls, value: Any) -> Any:
        return value


class Trainer:
    """A base class, whose loop calls what is derived from it."""

    def __init__(self, opt: Any) -> None:
        self.opt = opt

    @property
    def current(self) -> Any:
        return self.opt

    def on_step(self, value: Any) -> None:
        pass

    def fit(self) -> None:
        self.on_step(self.opt)


class progress:  # noqa: N801 - as packages of this kind call theirs
    """An iterable that may say how far it is."""

    def __init__(self, values: Iterable[Any], **_: Any) -> None:
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def set_postfix(self, **_: Any) -> None:
        pass


class Camera:
    """Has the attributes of a legacy optimizer, and is none."""

    def __init__(self, target: float = 1.0, step: int = 7) -> None:
        self.target = target
        self.state = SimpleNamespace(step=step, param_states=[target])
        self.optimizer_def = "lens"

    def replace(self, **changes: Any) -> Camera:
        return Camera(**{"target": self.target, "step": self.state.step, **changes})

    def apply_gradient(self, gradient: float) -> Camera:
        return Camera(self.target - gradient, self.state.step + 1)

    @classmethod
    def create(cls, target: float) -> Camera:
        return cls(target)


def load_camera(target: float) -> Camera:
    """A Camera, from a function."""
    return Camera(target)


def fill(container: Any, key: Any, value: Any) -> None:
    """Put a value into a container of somebody else."""
    container[key] = value


def assign(owner: Any, name: str, value: Any) -> None:
    """Put a value into an object of somebody else."""
    setattr(owner, name, value)


def constant(value: Any) -> Callable[[Any], Callable[..., Any]]:
    """A decorator, in whose result nothing is left of what it decorates."""
    return lambda _: lambda *_args: value


def wire(function: Callable[..., Any], value: Any) -> Callable[[], Any]:
    """A function of no arguments, which calls one of somebody else's."""
    return lambda: function(value)
