"""The verdict on two runs, the figures behind it, and both in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

REPLAY_GATE = 1e-11
"""Error over movement below which two sides that got the same gradients are the same function."""

CLOSED_LOOP_GATE = 1e-7
"""The same where each side computes its own gradients.

There rounding feeds back, to about 4e-9 in 200 steps.
"""


class Verdict(str, Enum):
    """The result of a case; a comparison has one of these but COULD_NOT_RUN."""

    IDENTICAL = "identical"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    COULD_NOT_RUN = "could_not_run"
    NOTHING_PROVEN = "nothing_proven"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.replace("_", " ")


@dataclass(frozen=True)
class Difference:
    """The place where two trajectories first differ.

    `step` counts from 0, `leaf` is a path such as `Dense_0/kernel`. `ulp` is the distance in units
    of the last place of float64, None if one of the values is not finite. `link` names the part of
    the transformation that departs, such as `optax.scale_by_adam(…)`, if it was looked for and
    found, and `cause` says what is wrong, where it is a known mistake.
    """

    step: int
    leaf: str
    index: tuple[int, ...]
    before: float
    after: float
    ulp: int | None = None
    link: str | None = None
    cause: str | None = None

    def __str__(self) -> str:
        place = self.leaf
        if self.index:
            # Dense_0/kernel[3, 1]
            place += f"[{', '.join(map(str, self.index))}]"
        return (
            f"step {self.step}, {place}: {self.before!r} before, {self.after!r} after"
        )


@dataclass(frozen=True)
class LeafError:
    """The largest error over movement of one leaf, and whether the old side stayed finite."""

    leaf: str
    shape: tuple[int, ...]
    error: float
    finite: bool = True


@dataclass(frozen=True)
class Comparison:
    """The verdict, and the figures behind it.

    `error` is the largest float64 error over movement of any leaf and step. `drift` is the same
    figure in the parameters' own precision, as information, or None if it was not measured. If
    the verdict is "different", `first_difference` is set. `leaves` has the figures of each leaf,
    `error_by_step` and `drift_by_step` the largest one of any leaf for each step. `remarks` are
    sentences on what the run did not exercise; if the verdict is "nothing_proven", the first says
    why. `gate` is the error over movement from which on two sides are different.
    """

    verdict: Verdict
    error: float
    steps: int
    drift: float | None = None
    first_difference: Difference | None = None
    leaves: tuple[LeafError, ...] = ()
    error_by_step: tuple[float, ...] = ()
    drift_by_step: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()
    gate: float = REPLAY_GATE

    def __str__(self) -> str:
        # different after 120 steps, error over movement 2.1e-03; first at step 3, …
        line = f"{self.verdict.words} after {figures(self)}"
        if self.first_difference is not None:
            line += f"; {place(self.first_difference)}"
        return "\n".join((line, *self.remarks))


SEVERITY = (
    Verdict.IDENTICAL,
    Verdict.EQUIVALENT,
    Verdict.NOTHING_PROVEN,
    Verdict.COULD_NOT_RUN,
    Verdict.DIFFERENT,
)
"""The verdicts, first those that pass."""


def severity(comparison: Comparison) -> tuple[int, float]:
    """The order of comparisons: by their verdicts, then by their errors."""
    return SEVERITY.index(comparison.verdict), comparison.error


OPEN_LOOP = "This is the open loop: the old side's gradients, replayed."


def figures(comparison: Comparison) -> str:
    """Steps, error and drift in one line, and the gate where it is not that of a replay."""
    error = f"error over movement {comparison.error:.1e}{gate(comparison)}"
    text = f"{comparison.steps} steps, {error}"
    if comparison.drift is None:
        return text
    return f"{text}, float32 drift {comparison.drift:.1e}"


def in_words(comparison: Comparison) -> str:
    """The verdict with its figures, as a sentence."""
    steps = f"in {comparison.steps} steps"
    error = f"{comparison.error:.1e}{gate(comparison)}"
    largest = (
        f"{steps}, the largest difference is {error} of how far the parameters moved."
    )
    if comparison.drift is not None:
        largest += f" In float32 it is {comparison.drift:.1e}."
    return {
        Verdict.IDENTICAL: f"The same function: not one bit differs {steps}.",
        Verdict.EQUIVALENT: f"The same function: {largest}",
        Verdict.DIFFERENT: f"Another function: {largest}",
    }.get(comparison.verdict, f"Nothing is proven {steps}.")


def gate(comparison: Comparison) -> str:
    """The gate of a comparison in brackets, where it is not that of a replay."""
    if comparison.gate == REPLAY_GATE:
        return ""
    return f" (closed loop, gate {comparison.gate:.0e})"


def place(difference: Difference) -> str:
    """What is different, where, and by how much, in one line."""
    text = f"first at {difference}"
    if difference.ulp is not None:
        text += f", {difference.ulp:,} ulp apart"
    # a cause says more than the link of the chain
    if difference.cause is not None:
        return f"{difference.cause}; {text}"
    if difference.link is not None:
        text += f"; what departs: {difference.link}"
    return text


def with_open_loop(closed: Comparison, opened: Comparison | None) -> Comparison:
    """The comparison of a closed loop, with that of the open loop, if there is one, added to it."""
    if opened is None:
        return closed
    # What the closed loop takes for rounding, the old side's gradients may bring to light.
    is_hidden = closed.verdict is not Verdict.DIFFERENT
    if is_hidden and opened.verdict is Verdict.DIFFERENT:
        return replace(opened, remarks=(OPEN_LOOP,))
    measured = f"In open loop: {figures(opened)}."
    return replace(closed, remarks=(*closed.remarks, measured))


NOT_COMPARED = "The state of the optimizer was not compared."
ALIKE = "The parameters agree; what the optimizer keeps beside them does not."


def merged(comparison: Comparison, found: Comparison | None) -> Comparison:
    """The comparison of the parameters, with that of the states, if there is one, added to it."""
    if found is None or found.verdict is Verdict.NOTHING_PROVEN:
        remarks = found.remarks if found else (NOT_COMPARED,)
        return replace(comparison, remarks=(*comparison.remarks, *remarks))
    if found.verdict is Verdict.DIFFERENT:
        return replace(found, remarks=(ALIKE,))
    # Identical as a whole are only identical parameters with an identical state.
    same = comparison.verdict is found.verdict is Verdict.IDENTICAL
    return replace(
        comparison,
        verdict=Verdict.IDENTICAL if same else Verdict.EQUIVALENT,
        error=max(comparison.error, found.error),
        leaves=(*comparison.leaves, *found.leaves),
        error_by_step=tuple(map(max, comparison.error_by_step, found.error_by_step)),
    )
