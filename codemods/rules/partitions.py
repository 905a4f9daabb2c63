"""Optimizers of the user's own that derive from MultiOptimizer."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.optimizers.base import helper
from codemods.optimizers.multi_optimizer import PARTITION_BY_PATH
from codemods.rewriting.edits import Edit, Replace
from codemods.rules import rule
from codemods.rules.context import Context
from codemods.rules.custom import has_no_base
from codemods.vocabulary import words

INHERITED = ("__init__", "init_state")
"""The methods that such a class may call of its base."""

OVERRIDDEN = frozenset(
    words(
        "apply_gradient apply_param_gradient create init_param_state restore_state state_dict "
        "update_hyper_params"
    )
)
"""The methods that such a class must not have."""

INNER = OVERRIDDEN | {"hyper_params", "sub_optimizers"}
"""The attributes that the new base does not have."""

PARTITIONED_RULE = helper('''class PartitionedRule:
    """The base of an optimizer of several groups.

    A group is a pair of a predicate over path and value, and a gradient transformation.
    """

    def __init__(self, *groups):
        self.traversals = [selects for selects, _ in groups]
        self.partition = partition_by_path(*groups)

    def init_state(self, params):
        return self.partition.init(params)

    def init(self, params):
        return self.init_state(params)

    def update(self, updates, state, params=None):
        return self.partition.update(updates, state, params)
''')


@rule(
    "FO704",
    "a custom MultiOptimizer keeps its methods",
    "base:MultiOptimizer",
    before="class LoggingOptimizer(optim.MultiOptimizer): ...\n",
    after="class LoggingOptimizer(PartitionedRule): ...\n",
)
def partition(use: Use, context: Context) -> Edit | Refusal:
    """A class that derives from `MultiOptimizer` and adds something to it, such as a log of the
    groups, keeps its methods. Its base becomes a small class that is added to the project, with the
    groups in the attribute `traversals`, as before. A class that takes steps in its own way, or
    uses the inner optimizers, stays, with a reason.
    """
    owner = use.parent
    assert isinstance(owner, ast.ClassDef)
    methods = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    takes_own_steps = bool(methods & OVERRIDDEN) or any(
        map(_reaches_inside, ast.walk(owner))
    )
    if len(owner.bases) != 1 or takes_own_steps:
        return has_no_base(
            "derives from `MultiOptimizer` and works on the whole tree of parameters"
        )
    template = f"{{support:{PARTITIONED_RULE.name}}}"
    return Replace(use.span, template, supports=(PARTITION_BY_PATH, PARTITIONED_RULE))


def _reaches_inside(node: ast.AST) -> bool:
    """Whether a node of such a class reads what the new base does not have."""
    match node:
        # self.sub_optimizers
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name in INNER
        # super().apply_gradient(hyper_params, params, state, grads)
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
            return name not in INHERITED
    return False


@rule(
    "FO705",
    "a traversal's predicate is the traversal",
    "filter",
    before="if traversal._filter_fn(path, value): ...\n",
    after="if traversal(path, value): ...\n",
)
def predicate(use: Use, context: Context) -> Edit:
    """In a class that derives from `MultiOptimizer`, the traversals are predicates now (FO302)."""
    return Replace(use.span, "{owner}", (use.owner_hole,))
