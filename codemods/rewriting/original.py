"""A file before its edits: its trees, where the nodes are that change, and the text of the rest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cached_property
from io import StringIO
from typing import cast

import libcst as cst
from libcst.metadata import CodeRange, PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from codemods.cst.blanks import blanks_lost, with_blanks
from codemods.sources.modules import Unit

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


class IrreproducibleError(Exception):
    """LibCST does not reproduce a statement to the letter."""


class Original:
    """A file before its edits; only the statements of the module that change are written anew."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    @cached_property
    def module(self) -> cst.Module:
        """What LibCST makes of it.

        Raises:
          cst.ParserSyntaxError: if it cannot parse the code.
        """
        return cst.parse_module(self.unit.code)

    @cached_property
    def lines(self) -> Mapping[cst.CSTNode, range]:
        """The lines (from 0) of each statement of the module, with those above that are its own."""
        starts: list[int] = []
        index = 0
        for statement in self.module.body:
            first = self._first_line(self.unit.tree.body[index])
            starts.append(first - len(statement.leading_lines))
            # import jax; import optax
            if isinstance(statement, cst.SimpleStatementLine):
                index += len(statement.body)
            else:
                index += 1
        starts.append(len(self._split) - len(self.module.footer))
        ranges = map(range, starts, starts[1:])
        return dict(zip(self.module.body, ranges, strict=True))

    def _first_line(self, node: ast.stmt) -> int:
        """The line (from 0) on which a statement begins, or the first of its decorators."""
        decorators = getattr(node, "decorator_list", [])
        if not decorators:
            return node.lineno - 1
        line: int = decorators[0].lineno - 1
        # @(
        #     jax.jit
        # )
        while not self._split[line].startswith("@"):
            line -= 1
        return line

    @cached_property
    def _split(self) -> list[str]:
        """The lines of the code with their ends, which the last one may lack."""
        return [*StringIO(self.unit.code, newline="")]

    @cached_property
    def texts(self) -> dict[cst.CSTNode, str]:
        """The text of each statement of the module, with the lines above it."""
        texts = {
            statement: "".join(self._split[lines.start : lines.stop])
            for statement, lines in self.lines.items()
        }
        if texts and not (self.module.has_trailing_newline or self.module.footer):
            last = self.module.body[-1]
            texts[last] += self.module.default_newline
        return texts

    def text_of(self, statement: cst.CSTNode) -> str:
        """The text of a statement of the module, changed or not."""
        if statement not in self.texts:
            self.texts[statement] = self.module.code_for_node(statement)
        return self.texts[statement]

    def code_of(self, module: cst.Module) -> str:
        """The code of the module once it has changed."""
        parts = (*module.header, *module.body, *module.footer)
        code = "".join(map(self.text_of, parts))
        if module.has_trailing_newline:
            return code or module.default_newline
        return code.removesuffix(module.default_newline)


class Positions(PositionProvider):
    """Where nodes are, in those statements of a module that are looked into.

    A `MetadataWrapper` would go through the whole module, and visit it a second time for providers
    of other kinds.
    """

    def __init__(
        self, original: Original, is_changed: Callable[[int, int], bool]
    ) -> None:
        """`is_changed` says whether anything changes from one line (from 1) to another.

        Raises:
          IrreproducibleError: if LibCST does not reproduce what changes.
        """
        super().__init__()
        self._original = original
        self._codes: dict[cst.CSTNode, str] = {}
        self._lost: dict[int, str] = {}
        if original.code_of(original.module) != original.unit.code:
            raise IrreproducibleError
        for statement, lines in original.lines.items():
            if is_changed(lines.start + 1, lines.stop):
                self.look_into(statement)

    @property
    def known(self) -> Mapping[cst.CSTNode, CodeRange]:
        return cast("Mapping[cst.CSTNode, CodeRange]", self._computed)

    def look_into(self, statement: cst.CSTNode) -> None:
        """Find out where the nodes of a statement of the module are.

        Raises:
          IrreproducibleError: if LibCST does not reproduce it.
        """
        module = self._original.module
        lines = self._original.lines[statement]
        state = PositionProvidingCodegenState(
            module.default_indent,
            module.default_newline,
            provider=self,
            line=lines.start + 1,
        )
        statement._codegen(state)
        code = "".join(state.tokens)
        lost = blanks_lost(self._original.texts[statement], code)
        if lost is None:
            raise IrreproducibleError
        self._codes[statement] = code
        self._lost |= {lines.start + index: line for index, line in lost.items()}

    def with_blanks(self, after: str) -> str:
        """New code with the blanks of the old one that LibCST loses."""
        if not self._lost:
            return after
        module, text_of = self._original.module, self._original.text_of
        parts = (*module.header, *module.body)
        before = "".join(self._codes.get(part) or text_of(part) for part in parts)
        return with_blanks(after, before, self._lost)
