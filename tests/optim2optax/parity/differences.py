"""Where two sides part."""

from optim2optax.parity.judging.comparison import Comparison, Difference, Verdict

SAME = (Verdict.IDENTICAL, Verdict.EQUIVALENT)


def first_difference(found: Comparison | None) -> Difference:
    """The first difference of two sides, which are different."""
    assert found is not None
    assert found.verdict is Verdict.DIFFERENT, found
    assert found.first_difference is not None
    return found.first_difference
