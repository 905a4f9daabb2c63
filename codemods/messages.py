"""Messages, made of templates and of the values in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codemods.model import AS_THEY_ARE, Message, Prose, Reference

HOLE = "{}"


def message(template: str, *values: Prose | Reference) -> Message:
    """The message of a template, with a value in the place of each `{}`.

    Without values, a template is a text in which braces mean nothing.
    """
    texts = template.split(HOLE) if values else [template]
    parts: list[str | Reference] = [texts[0]]
    for value, text in zip(values, texts[1:], strict=True):
        for part in (*_parts(value), text):
            _append(parts, part)
    return Message(tuple(parts))


def _append(parts: list[str | Reference], part: str | Reference) -> None:
    last = parts[-1]
    # texts beside each other are one part, so that the last one has the full stop
    if isinstance(part, str) and isinstance(last, str):
        parts[-1] = last + part
    else:
        parts.append(part)


def joined(separator: str, values: Iterable[Prose | Reference]) -> Message:
    """One message of several."""
    values = tuple(values)
    template = separator.join(HOLE for _ in values)
    return message(template, *values)


def text_of(prose: Prose, shown: Mapping[str, str] = AS_THEY_ARE) -> str:
    """The text of what users read, with paths as `shown` has them."""
    if isinstance(prose, str):
        return prose
    return prose.text(shown)


def _parts(value: Prose | Reference) -> tuple[str | Reference, ...]:
    if isinstance(value, Message):
        return value.parts
    return (value,)


def paragraphs(text: str | None) -> str:
    """A docstring with each paragraph on one line."""
    parts = (text or "").strip().split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)
