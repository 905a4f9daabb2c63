"""Statements that move up within their block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

import libcst as cst

from codemods.rewriting.edits import MoveStatement
from codemods.rewriting.lines import closed_up, gap_and_comments
from codemods.sources.modules import Span

Block = TypeVar("Block", cst.IndentedBlock, cst.Module)
Nodes = tuple[cst.CSTNode, ...]


class Moves:
    """The moves of one file, carried out block by block once all other edits within are done."""

    def __init__(self, edits: Iterable[MoveStatement]) -> None:
        self.targets: dict[Span, Span] = {}
        for edit in sorted(edits, key=lambda edit: edit.span):
            self.targets[edit.span] = edit.target
        self._wanted = {*self.targets, *self.targets.values()}
        self._nodes: dict[Span, Nodes] = {}

    def note(self, span: Span, updated: object) -> None:
        """Note what the statement at a span has become."""
        if span not in self._wanted:
            return
        # several statements may have taken its place, or none
        nodes = updated if isinstance(updated, cst.FlattenSentinel) else (updated,)
        self._nodes[span] = tuple(
            node for node in nodes if isinstance(node, cst.CSTNode)
        )

    def carry_out(self, block: Block) -> tuple[Block, dict[Span, Nodes]]:
        """The block after its moves, and what was moved."""
        body: list[cst.CSTNode] = list(block.body)
        done: dict[Span, Nodes] = {}
        for target in dict.fromkeys(self.targets.values()):
            moving: dict[Span, Nodes] = self._moving_to(target)
            at_target = self._nodes.get(target, ())
            together = (*moving.values(), at_target)
            # another block has them, or one was removed
            if not all(_begins_in(body, nodes) for nodes in together):
                continue
            body = _moved(body, moving.values(), at_target[0])
            done |= moving
        if not done:
            return block, done
        return block.with_changes(body=body), done

    def _moving_to(self, target: Span) -> dict[Span, Nodes]:
        """What the statements that move to another have become, by where they were."""
        found: dict[Span, Nodes] = {}
        for span, goal in self.targets.items():
            if goal == target:
                found[span] = self._nodes.get(span, ())
        return found


def _begins_in(body: Sequence[cst.CSTNode], nodes: Sequence[cst.CSTNode]) -> bool:
    """Whether the first of some nodes, if there is one, is a statement of a block."""
    if not nodes:
        return False
    return any(node is nodes[0] for node in body)


def _moved(
    body: list[cst.CSTNode],
    moving: Iterable[Nodes],
    target: cst.CSTNode,
) -> list[cst.CSTNode]:
    """A block with some statements in front of another one; paragraphs stay where they were."""
    first, *others = chain.from_iterable(moving)
    going = {id(node) for node in (first, *others)}
    blank, own = gap_and_comments(target)
    _, comments = gap_and_comments(first)
    first = first.with_changes(leading_lines=[*blank, *comments])
    # its blank lines are now above the first of the moved statements
    below = target if own else target.with_changes(leading_lines=[])
    place = next(index for index, node in enumerate(body) if node is target)
    behind = closed_up(body[place + 1 :], lambda node: id(node) in going)
    return [*body[:place], first, *others, below, *behind]
