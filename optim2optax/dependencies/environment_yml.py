"""`environment.yml`: the list of conda, and that of pip within it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from optim2optax.dependencies.conda import read_match
from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    FormatError,
    Section,
    TextEdit,
)
from optim2optax.dependencies.placing import (
    element_behind,
    line_behind,
    quoted_like,
    start_of_line,
)
from optim2optax.dependencies.requirement import read_requirement
from optim2optax.dependencies.requirements_txt import INCLUDED, beside

DASH = re.compile(r"[ \t]*-[ \t]+")
Reader = Callable[[str, ScalarNode], DeclaredRequirement | Finding | None]


def read(text: str, path: str) -> Declarations:
    """What an environment declares. Raises UnreadableError."""
    listed = _value(_composed(text), "dependencies")
    if listed is None:
        return Declarations()
    lists: list[tuple[SequenceNode, Reader]] = [(listed, _conda)]
    for item in listed.value:
        # - pip: [flax==0.3.4]
        pip = _value(item, "pip")
        if pip:
            lists.append((pip, _pip))
    sections: list[Section] = []
    problems: list[Finding] = []
    includes: list[str] = []
    for node, reader in lists:
        items = [item for item in node.value if isinstance(item, ScalarNode)]
        read = [reader(text, item) for item in items]
        problems += [one for one in read if isinstance(one, Finding)]
        declared = tuple(one for one in read if isinstance(one, DeclaredRequirement))
        sections.append(Section(declared, _insert(text, node, items), base=True))
        for item in items:
            # - pip: ["-r requirements.txt"]
            included = INCLUDED.match(item.value)
            if included:
                includes.append(beside(path, included["path"]))
    return Declarations(tuple(sections), tuple(problems), tuple(includes))


def _composed(text: str) -> Node | None:
    """The nodes of YAML, with their places in the text."""
    try:
        root: Node | None = YAML(typ="rt", pure=True).compose(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise FormatError(f"cannot be parsed as YAML: {error.problem}", line) from error
    except YAMLError as error:
        raise FormatError(f"cannot be parsed as YAML: {error}", 1) from error
    return root


def _value(node: Node | None, key: str) -> SequenceNode | None:
    """The list that a mapping has below a key."""
    if not isinstance(node, MappingNode):
        return None
    for found, value in node.value:
        if found.value == key and isinstance(value, SequenceNode):
            return value
    return None


def _conda(text: str, item: ScalarNode) -> DeclaredRequirement | Finding | None:
    start, end = _span(item)
    quotes = _quotes(item)
    return read_match(text[start + quotes : end - quotes], start + quotes, (start, end))


def _pip(text: str, item: ScalarNode) -> DeclaredRequirement | Finding | None:
    start, end = _span(item)
    quotes = _quotes(item)
    return read_requirement(text[start + quotes : end - quotes], start + quotes, quotes)


def _quotes(item: ScalarNode) -> int:
    return 1 if item.style in ("'", '"') else 0


def _span(item: ScalarNode) -> tuple[int, int]:
    return item.start_mark.index, item.end_mark.index


def _insert(
    text: str, node: SequenceNode, items: Sequence[ScalarNode]
) -> Callable[[DeclaredRequirement, str, str], TextEdit | None]:
    def insert(anchor: DeclaredRequirement, name: str, version: str) -> TextEdit | None:
        element = quoted_like(text, anchor.span, f"{name}{version}")
        if node.flow_style:
            # dependencies: [flax, jax]
            return element_behind(
                text, [_span(item) for item in items], anchor.span, element
            )
        dash = DASH.match(text, start_of_line(text, anchor.span[0]))
        if dash is None or dash.end() != anchor.span[0]:  # no line of its own
            return None
        return line_behind(text, anchor.span[1], f"{dash[0]}{element}")

    return insert
