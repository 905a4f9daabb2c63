"""Traversals, which become predicates over paths."""

from __future__ import annotations

import ast

from codemods.analysis.uses import ATTRIBUTES, Use
from codemods.analysis.values import kept_as_value
from codemods.inference.binding import arguments_of
from codemods.model import Refusal
from codemods.optimizers.methods import TRAVERSAL
from codemods.rewriting.edits import Edit, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context


@rule(
    "FO302",
    "a traversal becomes its predicate",
    "definition:ModelParamTraversal",
    before="kernels = optim.ModelParamTraversal(lambda path, _: 'kernel' in path)\n",
    after="kernels = lambda path, _: 'kernel' in path\n",
)
def traversal(use: Use, context: Context) -> Edit | Refusal:
    """A `ModelParamTraversal` that chooses parameters for a MultiOptimizer or a `focus` becomes the
    predicate that it was made with. The predicate still gets paths such as `/Dense_0/kernel`. A
    traversal that no optimizer in view uses stays one, under the name that Flax still has:
    `flax.traverse_util.ModelParamTraversal`.
    """
    assert isinstance(use.node, ast.Call)
    # a traversal that is part of nothing lives on in flax.traverse_util
    is_linked = any(inner in use.objects for _, inner in context.facts.legacy.links)
    if not is_linked:
        return Replace(use.unit.span(use.node.func), "{ModelParamTraversal}")
    given = arguments_of(TRAVERSAL, use.node)
    if given is None:
        return reasons.arguments(
            "`ModelParamTraversal` takes one predicate.",
            "Pass one function of path and value.",
        )
    if not context.taken_by_classes.isdisjoint(use.objects):
        return reasons.traversal(
            "It becomes an attribute of a class, through a variable.",
            "Let a plain statement of the class make it.",
        )
    predicate = given["filter_fn"]
    # a function that is an attribute of a class would become a method
    kept_by = kept_as_value(use.node, use.unit, context.facts)
    template = f"{kept_by}({{predicate}})" if kept_by else "{predicate}"
    return Replace(use.span, template, (("predicate", use.unit.span(predicate)),))


@rule(
    "FO303",
    "a traversal's own methods",
    *(f"traversal.{name}" for name in sorted(ATTRIBUTES["traversal"])),
)
def methods(use: Use, context: Context) -> Refusal:
    """These calls stay, with a reason."""
    return reasons.traversal(
        f"The traversal's `{use.name}` is used.",
        "Import `ModelParamTraversal` from `flax.traverse_util` for it, beside the predicate.",
    )
