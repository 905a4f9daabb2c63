"""What the report says at a use beside what becomes of it: why that is so, and what it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import islice

from codemods.analysis.facts import Facts
from codemods.analysis.initial_params import are_frozen, are_plain, frozen
from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.param_types import LowPrecision
from codemods.analysis.stepping import STEPS, Stepping
from codemods.analysis.uses import Use
from codemods.idioms.base import Results
from codemods.idioms.overrides import Overrides
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.optimizers.base import LegacyOptimizer, learning_rate
from codemods.rules.older_checkpoints import note, restoring

DROPPED = (
    "The result is dropped. An optimizer never changed in place, so this did nothing before, and "
    "does nothing now."
)
FROZEN = (
    "These parameters stay as they are, with a learning rate of 0: `optax.set_to_zero()` does the "
    "same without moments."
)

AVERAGED = (
    "The gradients are averaged over the devices here, as `replicate()` had it: where this step is "
    "taken outside of `pmap`, it fails, and needs no average."
)
ASKED = (
    "Something else may come here, and nothing shows what: it is asked for `params` now, where it "
    "was for `target`."
)
COPIED = (
    "This repeats the number that the constructor of the optimizer is given elsewhere: change both "
    "together."
)
SHORT_PARAMS = (
    "Its parameters may have 16 bits ({}): with a float32 gradient or learning rate, "
    "`flax.optim` made them float32 at the first step; `optax.apply_updates` keeps their type."
)
SHORT_BETA = (
    "In bfloat16, `flax.optim` rounded beta2 = 0.999 to 1 and never moved them, or made them NaN; "
    "optax trains them."
)
SHORT_MOMENTS = (
    "Its parameters may have 16 bits ({}): `flax.optim` had its second moments in float32, optax "
    "has them in the parameters' type. The steps differ by rounding."
)
OTHER_FORM = (
    "If it is restored from a checkpoint of the optimizer at {}, note that the two states have "
    "other parts now: the checkpoint does not load, or the moments in it are lost. Make both of "
    "the same links (a weight decay may be 0), or restore only `params` and `step`."
)
NAMED = (
    "The table has the classes that the project names, and no others: a name from outside, such as "
    "an argument of the command line, may be none of these."
)
CREATING = ("definition.create", "definition.init_state")
UNFREEZE = (
    "If a model made the parameters that these replace, they are a plain dict today, and so is the "
    "state, which frozen parameters do not fit: then write `flax.core.unfreeze` for `freeze`."
)


def is_part(use: Use, facts: Facts) -> bool:
    """Whether a definition is a part of another, such as a MultiOptimizer."""
    return any(
        whole.kind == "definition" and part in use.objects
        for whole, part in facts.legacy.links
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

    def of(self, use: Use) -> list[Prose]:
        """Why a use has a general form, and what it needs, as sentences; there may be none."""
        of_params = [*self._low_precision(use)] if use.kind in CREATING else []
        if use.kind == "definition.create":
            of_params += self._older_checkpoints(use)
        if use.kind in ("definition", "definition.create"):
            kept = self._why_interface(use)
            # the definition says it
            if kept is not None and of_params and use.kind != "definition":
                return of_params
            if kept is not None:
                interface = "Its definition keeps the interface that it had: {}"
                return [message(interface, kept), *of_params]
        of_idioms = (idiom.note(use) for idiom in self.idioms)
        sentences: list[Prose] = [sentence for sentence in of_idioms if sentence]
        sentences += of_params
        overrides = self.idioms[Overrides]
        if _is_dropped(use):
            sentences.append(DROPPED)
        if use.kind in STEPS and self.stepping.axes(use.objects):
            sentences.append(AVERAGED)
        if self._is_frozen_group(use):
            sentences.append(FROZEN)
        if self._may_not_fit(use):
            sentences.append(UNFREEZE)
        if use.kind == "definition.create":
            sentences += self._other_form(use)
        elif use.kind == "module" and _is_looked_up(use):
            sentences.append(NAMED)
        elif use.kind == "reflection" and self._may_be_asked_otherwise(use):
            sentences.append(ASKED)
        elif use.kind == "definition.hyper_params":
            sentences += [COPIED] * overrides.is_copied(use)
        elif use.kind in STEPS and overrides.keeps_rate(use):
            sentences += [COPIED] * overrides.made_with.copies_rate(use)
        return sentences

    def _may_be_asked_otherwise(self, use: Use) -> bool:
        """Whether something unknown may have a `target`, and no error says so any more."""
        match use.node:
            # hasattr(x, "target"), getattr(x, "target", x)
            case ast.Call(func=function, args=[asked, _, *default]):
                called = self.facts.externals(function)
                is_silent = bool(default) or "builtins.hasattr" in called
                flow = self.facts.flow
                roots = flow.sources.roots(flow.places[asked])
                return is_silent and not all(map(flow.solver.at, roots))
        return False

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
        return is_zero and is_part(use, self.facts)

    def _why_interface(self, use: Use) -> Message | None:
        """Why a definition keeps its interface; None if it does not."""
        reasons = map(self.stepping.with_interface.get, use.objects)
        return next(filter(None, reasons), None)

    def _older_checkpoints(self, created: Use) -> Iterator[Prose]:
        """What reads a checkpoint from before the migration, if the program restores one."""
        ours = self._groups(created.objects)
        uses = self.facts.of(restoring)
        restored = (use for use in uses if ours & self._groups(use.objects))
        yield from islice(map(note, restored), 1)

    def _other_form(self, created: Use) -> Iterator[Prose]:
        """That a checkpoint may come from an optimizer whose state has other parts in optax."""
        for restored, stored in self.stepping.exchanging:
            is_other = self._form(restored) != self._form(stored)
            if restored.node is created.call and is_other:
                line = getattr(stored.node, "lineno", 1)
                yield message(OTHER_FORM, stored.unit.location(line))
                return

    def _form(self, optimizer: LegacyObject) -> set[object]:
        """The classes of an optimizer, and the arguments that add parts to its state."""
        found: set[object] = set()
        for definition in self.facts.legacy.definitions(optimizer):
            found.add(definition.made_by)
            call = definition.node
            for word in call.keywords if isinstance(call, ast.Call) else ():
                is_off = isinstance(word.value, ast.Constant) and not word.value.value
                if word.arg in ("weight_decay", "centered") and not is_off:
                    found.add(word.arg)
        return found

    def _groups(self, objects: Iterable[LegacyObject]) -> set[LegacyObject]:
        """The groups, each of which migrates as a whole, to which some objects belong."""
        groups = self.facts.groups
        return {groups[obj] for obj in objects if obj in groups}

    def _low_precision(self, created: Use) -> Iterator[Prose]:
        """That a legacy step may have made its parameters float32, if they have 16 bits."""
        call = created.call
        if call is None:
            groups = self._groups(created.objects)
            made = [obj for one in groups for obj in self.facts.members[one]]
        else:
            made = self.facts.legacy_objects(call)
        typed = self.facts.of(LowPrecision).made_of_them(made)
        if typed is None:
            return
        known = self._known(created.objects)
        keeps_types = bool(known) and all(one.keeps_types for one in known)
        if not keeps_types:
            yield message(SHORT_PARAMS, typed)
        # a definition that keeps its interface does as legacy did
        if self._why_interface(created) is not None:
            return
        if keeps_types:
            yield message(SHORT_MOMENTS, typed)
        if any(one.name == "beta2" for each in known for one in each.parameters):
            yield SHORT_BETA

    def _known(self, definitions: Iterable[LegacyObject]) -> list[LegacyOptimizer]:
        """The optimizers that some definitions are of, and their parts."""
        links = self.facts.legacy.links
        given = {*definitions}
        given |= {part for whole, part in links if whole in given}
        known = filter(None, map(legacy_optimizer, given))
        return [one for one in known if not one.is_composite]


def _is_looked_up(use: Use) -> bool:
    """Whether a class is found by a name that is not in the code: `getattr(optim, name)`."""
    match use.parent:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name]):
            return not isinstance(name, ast.Constant)
    return False
