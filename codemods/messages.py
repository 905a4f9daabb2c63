"""Messages, made of templates and of the values in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codemods.model import AS_THEY_ARE, Message, Prose, Reference

HOLE = "{}"


def message(template: str, *values: Prose | Reference) -> Message:
    """The message of a template, with a value in the place of each `{}`.

    Without values, a template is a text in which braces mean nothing.
    """
    first, *others = template.split(HOLE) if values else [template]
    parts: list[str | Reference] = [first]
    for value, text in zip(values, others, strict=True):
        for part in (*_parts(value), text):
            # texts beside each other are one part, so that the last one has the full stop
            last = parts[-1]
            if isinstance(part, str) and isinstance(last, str):
                parts[-1] = last + part
            else:
                parts.append(part)
    return Message(tuple(parts))


def joined(separator: str, values: Iterable[Prose | Reference]) -> Message:
    """One message of several."""
    values = tuple(values)
    return message(separator.join(HOLE for _ in values), *values)


def text_of(prose: Prose, shown: Mapping[str, str] = AS_THEY_ARE) -> str:
    """The text of what users read, with paths as `shown` has them."""
    return prose if isinstance(prose, str) else prose.text(shown)


def _parts(value: Prose | Reference) -> tuple[str | Reference, ...]:
    return value.parts if isinstance(value, Message) else (value,)
