"""The recorder of a process: it writes each update as it arrives, and all ahead of the end."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization

from optim2optax.parity.recording.any_optimizer import (
    averaged,
    has_params,
    is_legacy,
    is_small,
    kind_of,
    leaf_type,
    leaves_of_state_dict,
    params,
    shape_of,
    state_leaves,
)
from optim2optax.parity.recording.methods import Keeper
from optim2optax.parity.recording.sketch import Part, largest, sketch
from optim2optax.parity.recording.stream import INPUTS, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from optim2optax.parity.recording.any_optimizer import Kind

    Leaves = Callable[[Any], Mapping[str, Any]]
    Parts = Mapping[Part, Any]


BUDGET = 2**28
"""The bytes of inputs in each process; if they do not suffice, the first steps are written."""


class Recorder(Keeper):
    """Writes each update as it arrives, and the parameters ahead of the first of each kind.

    `side` has the facts of the side, as `Side` writes them, and `leaves` gives the leaves of a tree
    by their paths. `met` has the optimizers, by the kinds of their parameters and the identities
    of their definitions, with shapes in the place of arrays.
    """

    def __init__(self, side: Mapping[str, Any], leaves: Leaves) -> None:
        super().__init__(side["rounding"], side["wide"])
        folder = Path(side["out"])
        self.writer = Writer(folder)
        self.leaves = leaves
        self.met: dict[Kind, dict[int, Any]] = {}
        self.first_gradients: dict[Kind, Mapping[Part, NDArray[Any]]] = {}
        self._inputs = Writer(folder, INPUTS) if side["inputs"] else None
        self._kinds: set[tuple[Part, ...]] = set()
        self._has_met_legacy = False
        self._observations: dict[str, int] = {}

    def part(self, tree: Any) -> dict[Part, Any]:
        """The part of parameters that is written."""
        return sketch(self.leaves(tree))

    def start(self, tree: Any) -> dict[Part, Any]:
        """The part of parameters ahead of a step that is written."""
        return sketch(self.leaves(tree), whole_sketch=False)

    def beside(
        self, state: Any, gradients: Any, new: Any
    ) -> dict[str, dict[Part, Any]]:
        """The other facts of a step that are written.

        They are the optimizer's state, the sizes of the gradients, and all inputs if they are
        small.
        """
        gradients = self.leaves(averaged(state, gradients))
        content = serialization.to_state_dict(new)
        kept = {"/".join(path): leaf for path, leaf in state_leaves(content)}
        own = _whole_parts("state", kept)
        sizes = {
            Part(leaf, "size", ()): _size(values) for leaf, values in gradients.items()
        }
        groups = {"state": own, "sizes": sizes}
        before = self.leaves(params(state))
        if is_small(kind_of(before)):
            groups["given"] = _whole_parts("whole", before)
            groups["gradients"] = _whole_parts("whole", gradients)
        return groups

    def keep(
        self,
        step: Any,
        before: Parts,
        after: Parts,
        beside: Mapping[str, Parts] | None,
        rate: Any,
    ) -> None:
        """Write an update, and its inputs as long as the budget lasts."""
        arrays = {group: _arrays(parts) for group, parts in (beside or {}).items()}
        if "given" in arrays:
            inputs = {name: arrays.pop(name) for name in ("given", "gradients")}
            kind = kind_of(
                {part.leaf: values for part, values in inputs["given"].items()}
            )
            self.first_gradients.setdefault(kind, inputs["gradients"])
            if self._inputs is not None and self._inputs.written < BUDGET:
                facts = {"step": int(step), "rate": float(rate), "kind": kind}
                self._inputs.write(facts, inputs)
        old = _arrays(before)
        new = _arrays(after)
        # Of large leaves, there are fewer parts ahead of a step.
        common = [part for part in old if part in new]
        idle = all(old[part].tobytes() == new[part].tobytes() for part in common)
        arrays["after"] = new
        parts = tuple(new)
        # Only the first update has the parameters ahead of it: the others start where one ended.
        if parts not in self._kinds:
            self._kinds.add(parts)
            arrays["before"] = old
        self.writer.write({"step": int(step), "idle": idle}, arrays)

    def meet(self, state: Any) -> None:
        """Keep an optimizer, with shapes in the place of its arrays.

        Write that there is a legacy optimizer, and the shapes in its state dict.
        """
        legacy = is_legacy(state)
        if legacy and not self._has_met_legacy:
            self._has_met_legacy = True
            self.writer.write({"legacy": True})
        if not has_params(state):
            return
        # The state is traced once for each compiled function, so it may come again.
        kind = kind_of(self.leaves(params(state)))
        is_first = kind not in self.met
        definition = state.optimizer_def if legacy else state.tx
        shapes = jax.tree_util.tree_map(shape_of, state)
        self.met.setdefault(kind, {})[id(definition)] = shapes
        if legacy and is_first and self._inputs is not None and is_small(kind):
            leaves = leaves_of_state_dict(serialization.to_state_dict(state))
            made_of = [(path, jnp.shape(leaf)) for path, leaf in leaves]
            self._inputs.write({"kind": kind, "made_of": made_of})

    def lose(self) -> None:
        """Write that state or hyperparameters of a legacy optimizer do not follow from steps."""
        if self._inputs is not None:
            self._inputs.write({"lost": True})

    def replayed(self, step: int, params: Any) -> None:
        """Write the parameters after a step with inputs that were recorded."""
        self.writer.write({"replayed": step}, {"after": _arrays(self.part(params))})

    def observe(self, name: str, tree: Any) -> None:
        """Write values that the program hands over, as soon as they are computed."""
        jax.debug.callback(partial(self._observed, name), self.part({name: tree}))

    def _observed(self, name: str, parts: Parts) -> None:
        number = self._observations.get(name, -1) + 1
        self._observations[name] = number
        facts = {"step": number, "idle": False, "observed": name}
        self.writer.write(facts, {"after": _arrays(parts)})


def _whole_parts(name: str, leaves: Mapping[str, Any]) -> dict[Part, Any]:
    """The leaves by their parts, each of which is a whole leaf."""
    return {
        Part(leaf, name, jnp.shape(values)): values for leaf, values in leaves.items()
    }


def _size(values: Any) -> Any:
    """The largest absolute value that is finite."""
    # The gradient of an integer parameter is of a type without numbers.
    if not jnp.issubdtype(leaf_type(values), jnp.inexact):
        return jnp.zeros(())
    return largest(values)


def _arrays(parts: Parts) -> dict[Part, NDArray[Any]]:
    return {part: np.asarray(values) for part, values in parts.items()}
