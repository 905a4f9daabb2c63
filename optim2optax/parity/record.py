"""The recorder of a process: it writes each update as it arrives, and all ahead of the end.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization

from optim2optax.parity.recorder import averaged, is_legacy, params
from optim2optax.parity.sketch import Part, largest, sketch
from optim2optax.parity.stream import INPUTS, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Leaves = Callable[[Any], Mapping[str, Any]]
    Parts = Mapping[Part, Any]
    Kind = tuple[tuple[str, tuple[int, ...]], ...]

UNKNOWN = -1
"""The step of an update that is applied by hand."""

LARGEST_TREE = 1_000_000
"""The most elements of parameters whose gradients are written whole, to be replayed."""

BUDGET = 2**28
"""The bytes for that in each process; if they do not suffice, the first steps are written."""

SAMPLED = 4096
"""About so many elements of a larger leaf of an optimizer's state are written.

They are the same ones each time.
"""


class Recorder:
    """Writes each update as it arrives, and the parameters ahead of the first of each kind.

    `leaves` gives the leaves of a tree by their paths. With `inputs`, the inputs of steps are
    written as well. `met` has the optimizers, by the kinds of their parameters and the identities
    of their definitions, with shapes in the place of arrays.
    """

    def __init__(self, folder: Path, leaves: Leaves, inputs: bool = False) -> None:
        self.writer = Writer(folder)
        self.leaves = leaves
        self.met: dict[Kind, dict[int, Any]] = {}
        self.first_gradients: dict[Kind, Mapping[Part, NDArray[Any]]] = {}
        self._inputs = Writer(folder, INPUTS) if inputs else None
        self._written: set[bytes] = set()
        self._left = BUDGET
        self._kinds: set[tuple[Part, ...]] = set()
        self._met = False
        self._observations: dict[str, int] = {}

    def part(self, tree: Any) -> dict[Part, Any]:
        """The part of parameters that is written."""
        return sketch(self.leaves(tree))

    def start(self, tree: Any) -> dict[Part, Any]:
        """The part of parameters ahead of a step that is written."""
        return sketch(self.leaves(tree), whole_sketch=False)

    def beside(self, state: Any, gradients: Any, new: Any) -> dict[str, dict[Part, Any]]:
        """The other facts of a step that are written.

        They are the optimizer's state, the sizes of the gradients, and all inputs if they are
        small.
        """
        gradients = self.leaves(averaged(state, gradients))
        own = _whole_parts("state", dict(_state_leaves(new)))
        sizes = {Part(leaf, "size", ()): _size(values) for leaf, values in gradients.items()}
        groups = {"state": own, "sizes": sizes}
        before = self.leaves(params(state))
        if is_small(kind_of(before)):
            groups["given"] = _whole_parts("whole", before)
            groups["gradients"] = _whole_parts("whole", gradients)
        return groups

    def keep(
        self, step: Any, before: Parts, beside: Mapping[str, Parts], rate: Any, after: Parts
    ) -> None:
        """Write an update and its inputs."""
        groups = {group: _arrays(parts) for group, parts in beside.items()}
        if "given" in groups:
            inputs = {"given": groups.pop("given"), "gradients": groups.pop("gradients")}
            kind = kind_of({part.leaf: values for part, values in inputs["given"].items()})
            self.first_gradients.setdefault(kind, inputs["gradients"])
            self._write_inputs({"step": int(step), "rate": float(rate), "kind": kind}, inputs)
        self._write(int(step), before, after, groups)

    def _write_inputs(
        self, facts: Mapping[str, Any], arrays: Mapping[str, Mapping[Part, NDArray[Any]]]
    ) -> None:
        """Write the inputs of a step, unless another device has, or the budget is used up."""
        if self._inputs is None:
            return
        # Each device of a `pmap` calls back with the same averaged gradients.
        content = hashlib.blake2b(repr((facts["step"], facts["kind"])).encode())
        for values in [*arrays["given"].values(), *arrays["gradients"].values()]:
            content.update(values.tobytes())
            self._left -= values.nbytes
        if content.digest() not in self._written and self._left > 0:
            self._written.add(content.digest())
            self._inputs.write(facts, arrays)

    def update(self, before: Parts, after: Parts) -> None:
        """Write an update whose step is not known."""
        self._write(UNKNOWN, before, after)

    def meet(self, state: Any) -> None:
        """Keep an optimizer, with shapes in the place of its arrays.

        Write that there is a legacy optimizer, and the shapes in its state dict.
        """
        legacy = is_legacy(state)
        if legacy and not self._met:
            self._met = True
            self.writer.write({"legacy": True})
        if not hasattr(state, "target") and not hasattr(state, "tx"):
            return
        # The state is traced once for each compiled function, so it may come again.
        kind = kind_of(self.leaves(params(state)))
        is_first = kind not in self.met
        definition = state.optimizer_def if legacy else state.tx
        self.met.setdefault(kind, {})[id(definition)] = jax.tree_util.tree_map(_shape, state)
        if legacy and is_first:
            leaves = _flattened(serialization.to_state_dict(state))
            made_of = [(path, jnp.shape(leaf)) for path, leaf in leaves]
            if self._inputs is not None and is_small(kind):
                self._inputs.write({"kind": kind, "made_of": made_of})

    def functional(self, step: Any, before: Parts, after: Parts) -> None:
        """Write an update that a definition makes by itself."""
        self._write(int(step), before, after)

    def widen(self) -> None:
        """Nothing is written of this.

        A side that fails for it runs once more in its own precision, as one that fails in float64
        for another reason.
        """

    def lose(self) -> None:
        """Write that state or hyperparameters of a legacy optimizer do not follow from steps."""
        if self._inputs is not None:
            self._inputs.write({"lost": True})

    def observe(self, name: str, tree: Any) -> None:
        """Write values that the program hands over, as soon as they are computed."""
        jax.debug.callback(partial(self._observed, name), self.part({name: tree}))

    def _observed(self, name: str, parts: Parts) -> None:
        number = self._observations[name] = self._observations.get(name, -1) + 1
        facts = {"step": number, "idle": False, "observed": name}
        self.writer.write(facts, {"after": _arrays(parts)})

    def _write(
        self, step: int, before: Parts, after: Parts, beside: Mapping[str, Parts] | None = None
    ) -> None:
        old = _arrays(before)
        new = _arrays(after)
        # Of large leaves, there are fewer parts ahead of a step.
        common = [part for part in old if part in new]
        idle = all(old[part].tobytes() == new[part].tobytes() for part in common)
        arrays = {"after": new, **(beside or {})}
        kind = tuple(new)
        # Only the first update has the parameters ahead of it: the others start where one ended.
        if kind not in self._kinds:
            self._kinds.add(kind)
            arrays["before"] = old
        self.writer.write({"step": step, "idle": idle}, arrays)

    def finish_at_exit(self, last: Callable[[], None]) -> None:
        """Let all be written ahead of the end of this process; `last` writes the last records."""

        def finish() -> None:
            # Callbacks may still be under way.
            jax.effects_barrier()  # type: ignore[no-untyped-call]
            last()

        atexit.register(finish)
        # A program may end by `os._exit`, without the functions of `atexit`.
        os._exit = _ending(os._exit, finish, os.getpid())


def kind_of(leaves: Mapping[str, Any]) -> Kind:
    """What distinguishes the parameters of different optimizers: paths and shapes."""
    return tuple(sorted((leaf, tuple(jnp.shape(values))) for leaf, values in leaves.items()))


def kind_from(facts: Mapping[str, Any]) -> Kind:
    """The kind in a record."""
    return tuple((leaf, tuple(shape)) for leaf, shape in facts["kind"])


def is_small(kind: Kind) -> bool:
    """Whether parameters are so small that all of their gradients are written."""
    elements = sum(math.prod(shape) for _, shape in kind)
    return elements <= LARGEST_TREE


def _shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(jnp.shape(leaf), leaf_type(leaf))  # type: ignore[no-untyped-call]


def leaf_type(leaf: Any) -> Any:
    """The dtype of a leaf, which may be traced, or a number."""
    return getattr(leaf, "dtype", None) or jnp.result_type(leaf)


def _state_leaves(state: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of an optimizer's state dict beside its parameters, and its count."""
    for path, leaf in _flattened(serialization.to_state_dict(state)):
        if path[0] in ("state", "opt_state", "step") and leaf_type(leaf).kind in "biuf":
            stride = -(-math.prod(jnp.shape(leaf)) // SAMPLED)  # rounded up
            yield "/".join(path), leaf if stride <= 1 else leaf.ravel()[::stride]


def _whole_parts(name: str, leaves: Mapping[str, Any]) -> dict[Part, Any]:
    """The leaves by their parts, each of which is a whole leaf."""
    return {Part(leaf, name, jnp.shape(values)): values for leaf, values in leaves.items()}


def _flattened(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of a state dict by their paths."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _flattened(value, (*path, key))
    elif tree is not None:
        yield path, tree


def _size(values: Any) -> Any:
    """The largest absolute value that is finite."""
    if not jnp.issubdtype(leaf_type(values), jnp.inexact):
        return jnp.zeros(())
    return largest(values)


def _arrays(parts: Parts) -> dict[Part, NDArray[Any]]:
    return {part: np.asarray(values) for part, values in parts.items()}


def _ending(end: Callable[[int], Any], finish: Callable[[], None], process: int) -> Any:
    """`os._exit`, which waits until all is recorded."""

    def end_recorded(status: int) -> None:
        # A process that was forked off records nothing.
        if os.getpid() == process:
            finish()
        end(status)

    return end_recorded


def script(copies: Sequence[str]) -> Path | None:
    """The file of the user's that this process runs, if it runs one."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    return path if any(Path(copy) in path.parents for copy in copies) else None
