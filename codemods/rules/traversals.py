"""Traversals, which become predicates over paths."""

from __future__ import annotations

import ast

from codemods.edits import Edit, Replace
from codemods.model import Refusal
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.uses import ATTRIBUTES, Use


@rule(
    "FO302",
    "a traversal becomes its predicate",
    "definition:ModelParamTraversal",
    before="kernels = optim.ModelParamTraversal(lambda path, _: 'kernel' in path)\n",
    after="kernels = lambda path, _: 'kernel' in path\n",
)
def traversal(use: Use, context: Context) -> Edit | Refusal:
    """A `ModelParamTraversal` that chooses parameters for a MultiOptimizer or a `focus` becomes the predicate that it was made
    with. The predicate still gets paths such as `/Dense_0/kernel`. One that no optimizer in view uses stays a traversal, under
    the name that it has kept: `flax.traverse_util.ModelParamTraversal`.
    """
    assert isinstance(use.node, ast.Call)
    if not any(inner in use.things for _, inner in context.facts.legacy.links):
        return Replace(use.unit.span(use.node.func), "{ModelParamTraversal}")
    if len(use.node.args) + len(use.node.keywords) != 1 or any(isinstance(item, ast.Starred) for item in use.node.args):
        return reasons.arguments("`ModelParamTraversal` takes one predicate.", "Pass one function of path and value.")
    predicate = use.node.args[0] if use.node.args else use.node.keywords[0].value
    return Replace(use.unit.span(use.node), "{predicate}", (("predicate", use.unit.span(predicate)),))


@rule("FO303", "a traversal's own methods", *(f"traversal.{name}" for name in sorted(ATTRIBUTES["traversal"])))
def methods(use: Use, context: Context) -> Refusal:
    """Left, with a reason."""
    return reasons.traversal(
        f"The traversal's `{use.name}` is used.",
        "Import `ModelParamTraversal` from `flax.traverse_util` for it, beside the predicate.",
    )
