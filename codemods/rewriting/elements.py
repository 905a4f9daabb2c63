"""Elements of tuples and subscripts, with several in the place of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from codemods.cst.spacing import SEPARATOR

Element = cst.BaseElement | cst.SubscriptElement


def spread(
    original: Sequence[Element],
    updated: Sequence[Element],
    values_for: Callable[
        [cst.BaseExpression, cst.BaseExpression], list[cst.BaseExpression]
    ],
) -> list[Element] | None:
    """Elements with several in the place of some; None if none is spread.

    `values_for` gives those for an element, as it was and as it is now: none if it stays.
    """
    found: list[Element] = []
    for old, new in zip(original, updated, strict=True):
        before, it = _value_of(old), _value_of(new)
        values: list[cst.BaseExpression] = []
        if before is not None and it is not None:
            values = values_for(before, it)
        if not values:
            found.append(new)
            continue
        # (optimizer, rng) becomes (params, opt_state, rng)
        *ahead, last = [_element(new, value) for value in values]
        found += [*ahead, last.with_changes(comma=new.comma)]
    return found if len(found) != len(updated) else None


def _value_of(element: Element) -> cst.BaseExpression | None:
    if not isinstance(element, cst.SubscriptElement):
        return element.value
    # Tuple[optim.Optimizer, jnp.ndarray], but not x[1:]
    return element.slice.value if isinstance(element.slice, cst.Index) else None


def _element(like: Element, value: cst.BaseExpression) -> Element:
    if isinstance(like, cst.SubscriptElement):
        return cst.SubscriptElement(cst.Index(value), SEPARATOR)
    return cst.Element(value, SEPARATOR)
