"""What the report says at a use beside what becomes of it: why that is so, and what it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import islice

from codemods.analysis.frozen_params import are_frozen, are_plain, frozen
from codemods.analysis.stepping import STEPS, Stepping
from codemods.analysis.uses import Use
from codemods.idioms.base import Results
from codemods.idioms.near_misses import NearMisses
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.optimizers.base import learning_rate
from codemods.rules.older_checkpoints import OlderCheckpoints, note

DROPPED = (
    "The result is dropped. An optimizer never changed in place, so this did nothing before, and "
    "does nothing now."
)
FROZEN = (
    "These parameters stay as they are, with a learning rate of 0: `optax.set_to_zero()` does the "
    "same without moments."
)

UNFREEZE = (
    "If a model made the parameters that these replace, they are a plain dict today, and so is the "
    "state, which frozen parameters do not fit: then write `flax.core.unfreeze` for `freeze`."
)


def _is_dropped(use: Use) -> bool:
    """Whether the new optimizer that a use makes goes nowhere: `optimizer.apply_gradient(grad)`."""
    if use.kind not in (*STEPS, "optimizer.replace") or use.call is None:
        return False
    return isinstance(use.unit.parents.get(use.call), ast.Expr)


class Notes:
    """The notes on the uses of a program."""

    def __init__(self, stepping: Stepping, idioms: Results) -> None:
        self.facts = stepping.facts
        self.stepping = stepping
        self.idioms = idioms
        self.older = OlderCheckpoints(stepping.facts)
        self.near_misses = NearMisses(stepping.origins)

    def of(self, use: Use) -> list[Prose]:
        """Why a use has a general form, and what it needs, as sentences; there may be none."""
        if use.kind in ("definition", "definition.create"):
            kept = self._why_interface(use)
            if kept is not None:
                return [
                    message("Its definition keeps the interface that it had: {}", kept)
                ]
        of_idioms = (idiom.note(use) for idiom in self.idioms)
        sentences: list[Prose] = [sentence for sentence in of_idioms if sentence]
        if _is_dropped(use):
            sentences.append(DROPPED)
        if self._is_frozen_group(use):
            sentences.append(FROZEN)
        if self._may_not_fit(use):
            sentences.append(UNFREEZE)
        if use.kind == "definition.create":
            sentences += self._older_checkpoints(use)
            sentences += self._of_unknown_params(use)
        elif use.kind in STEPS:
            sentences += self.near_misses.reasons(use)
        return sentences

    def _may_not_fit(self, use: Use) -> bool:
        """Whether an optimizer gets frozen parameters, and may have been created with others."""
        if use.kind != "optimizer.replace" or use.call is None:
            return False
        given = (word.value for word in use.call.keywords if word.arg == "target")
        if not any(frozen(params, self.facts) is not None for params in given):
            return False
        optimizers = use.objects
        return not (
            are_plain(optimizers, self.facts) or are_frozen(optimizers, self.facts)
        )

    def _is_frozen_group(self, use: Use) -> bool:
        """Whether a definition is a group of parameters whose learning rate is 0."""
        if not isinstance(use.node, ast.Call) or use.kind != "definition":
            return False
        rate = learning_rate(use.node)
        is_zero = isinstance(rate, ast.Constant) and rate.value == 0
        return is_zero and any(
            whole.kind == "definition" and part in use.objects
            for whole, part in self.facts.legacy.links
        )

    def _why_interface(self, use: Use) -> Message | None:
        """Why a definition keeps its interface; None if it does not."""
        reasons = map(self.stepping.with_interface.get, use.objects)
        return next(filter(None, reasons), None)

    def _older_checkpoints(self, created: Use) -> Iterator[Prose]:
        """What reads a checkpoint from before the migration, if the program restores one."""
        ours = self._groups(created.objects)
        restored = (
            use for use in self.older.restored if ours & self._groups(use.objects)
        )
        yield from islice(map(note, restored), 1)

    def _groups(self, objects: Iterable[LegacyObject]) -> set[LegacyObject]:
        """The groups, each of which migrates as a whole, to which some objects belong."""
        groups = self.facts.groups
        return {groups[obj] for obj in objects if obj in groups}

    def _of_unknown_params(self, created: Use) -> Iterator[Prose]:
        """That the plain train state was taken, though nothing shows what the params are."""
        stepping, made = self.stepping, self._made(created)
        parameters = stepping.parameters
        near = (*made, *stepping.companions(made))
        is_shown = any(parameters.need_any(one) is not None for one in near)
        if made and not is_shown and not all(map(parameters.come_from_outside, made)):
            yield (
                "Nothing shows what its parameters are. If they are no mapping, the train state "
                "raises TypeError where it is made or takes a step."
            )

    def _made(self, created: Use) -> list[LegacyObject]:
        """The optimizers of a call; `jax.jit(definition.create)(params)` has none of its own."""
        if created.call is None:
            return []
        return self.facts.legacy_objects(created.call, "optimizer")
