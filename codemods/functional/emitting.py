"""What is written in the place of an optimizer: its parts, and functions of optax."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use, owner_of_state
from codemods.functional.draft import Draft
from codemods.functional.references import References
from codemods.functional.signatures import Signatures
from codemods.functional.statements import Statements
from codemods.idioms import Unproven
from codemods.rewriting.edits import Replace, ReplaceStatement
from codemods.vocabulary import GET, UNREPLICATE

PARTS = {"optimizer.target": "params", "state.step": "step"}
"""The part that a use reads."""


def write(draft: Draft) -> None:
    """Write all changes for a group; whatever has no counterpart in parts raises `Unproven`."""
    statements = Statements(draft)
    references = References(draft)
    signatures = Signatures(draft)
    group = draft.group
    # the transformation has to get to each step, and goes through other functions for that
    for use in group.uses:
        if use.kind == "optimizer.apply_gradient":
            draft.transformations.at(use.node, use.unit)
    for use in group.uses:
        _attribute(draft, use)
    for node, unit in group.expressions.items():
        if isinstance(node, ast.Call):
            statements.call(node, unit)
    # a call has dealt with the names that its statement was rewritten with
    for node, unit in group.expressions.items():
        if isinstance(node, ast.Name) and node not in draft.done:
            references.name(node, unit)
    for variable in group.variables:
        for store in draft.origins.stores(variable):
            if isinstance(store, ast.Name):
                references.store(store, variable)
    for call, name in draft.transformations.received.items():
        references.receive(call, name)
    for interface in draft.interfaces.found.values():
        signatures.change(interface)
    # params = optimizer.target
    for merged, unit in draft.names.merged.items():
        removal = ReplaceStatement(unit.span(merged), ())
        draft.edits.put(merged, unit, removal)
    for changed, (unit, edit) in draft.transformations.edits.items():
        draft.edits.put(changed, unit, edit)


def _attribute(draft: Draft, use: Use) -> None:
    """What becomes of `optimizer.target`, `optimizer.state.step` and `optimizer.state`."""
    # optimizer.state, within optimizer.state.step
    if use.kind == "optimizer.state":
        draft.outcomes[use.node] = None
    part = PARTS.get(use.kind)
    if part is None:
        return
    owner, around = use.owner, "%s"
    # optimizer.state.step
    if part == "step":
        owner = owner_of_state(use.owner) or use.owner
        around = draft.group.counted.read(use, owner, "%s")
    # optimizer.target
    if isinstance(owner, ast.Name) and owner in draft.by_variable:
        name = getattr(draft.by_variable[owner], part)
        draft.outcomes[use.node] = Replace(use.span, around % name)
        draft.done.add(owner)
        return
    without_name = Unproven("it has no name at {}", use.location)
    # jax_utils.unreplicate(optimizer).target
    if not isinstance(owner, ast.Call):
        raise without_name
    if not draft.group.is_of_pytrees(owner) or draft.inner(owner):
        raise without_name
    inner = owner.args[0] if len(owner.args) == 1 else None
    text = "{whole}"
    is_of_one = draft.group.is_of_pytrees(owner, UNREPLICATE | GET)
    # unreplicate(params) needs but that part; others give (params, opt_state, step)
    if is_of_one and isinstance(inner, ast.Name) and inner in draft.by_variable:
        name = getattr(draft.by_variable[inner], part)
        draft.edits.replace(inner, use.unit, name)
        draft.done.add(inner)
    else:
        index = 0 if part == "params" else 2
        text = f"{text}[{index}]"
    whole = (("whole", use.unit.span(owner)),)
    draft.outcomes[use.node] = Replace(use.span, around % text, whole)
    draft.done.add(owner)
