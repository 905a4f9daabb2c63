"""MultiOptimizer: different optimizers for different parameters.

Legacy: pairs of a traversal and an optimizer; each optimizer steps the leaves that its traversal selects, all others stay. A leaf
that two traversals select is an error.
optax: `partition` by labels, with `set_to_zero` for the rest. The labels come from the traversals' predicates, by a function in
the user's file.
"""

from __future__ import annotations

import ast

import libcst as cst

from codemods.model import Form, Refusal
from codemods.optimizers.base import UNPACKED, Converted, LegacyOptimizer, Support, parameters

PARTITION_BY_PATH = Support(
    name="partition_by_path",
    source='''def partition_by_path(*groups):
    """Apply to each parameter the transformation of the group that selects it.

    A group is a pair of a predicate over path (such as "/Dense_0/kernel") and value,
    and a gradient transformation. Parameters that no group selects stay as they are;
    one that several groups select is an error.
    """
    transforms = {str(index): transform for index, (_, transform) in enumerate(groups)}

    def label(key_path, value):
        path = "/" + "/".join(str(entry.key) for entry in key_path)
        selected = [i for i, (selects, _) in enumerate(groups) if selects(path, value)]
        if len(selected) > 1:
            raise ValueError(f"Multiple optimizers match the parameter {path}.")
        return str(selected[0]) if selected else "frozen"

    return optax.transforms.partition(
        {**transforms, "frozen": optax.set_to_zero()},
        lambda params: jax.tree_util.tree_map_with_path(label, params),
    )
''',
    imports=("import jax", "import optax"),
)


MASK_BY_PATH = Support(
    name="mask_by_path",
    source='''def mask_by_path(selects):
    """A mask for optax: where `selects` holds for a parameter's path and value.

    A path looks like "/Dense_0/kernel".
    """

    def label(key_path, value):
        path = "/" + "/".join(str(entry.key) for entry in key_path)
        return bool(selects(path, value))

    return lambda params: jax.tree_util.tree_map_with_path(label, params)
''',
    imports=("import jax",),
)


def refuse(call: ast.Call) -> Refusal | None:
    """Pairs by position are converted, unpacked ones too; legacy took nothing else."""
    if any(word.arg is None for word in call.keywords):
        return UNPACKED
    if call.keywords or not call.args:
        return Refusal(
            "FO905", "MultiOptimizer takes pairs of traversal and optimizer, by position.", "Correct the call."
        )
    return None


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    return Converted(call.with_changes(func=cst.Name(PARTITION_BY_PATH.name)), (PARTITION_BY_PATH,))


OPTIMIZER = LegacyOptimizer("MultiOptimizer", parameters(), {}, convert, refuses=refuse)
