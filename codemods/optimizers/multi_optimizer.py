"""MultiOptimizer: different optimizers for different parameters.

Legacy: pairs of a traversal and an optimizer; each optimizer steps the leaves that its traversal
selects, all others stay. A leaf that two traversals select is an error.

optax: `partition` by labels, with `set_to_zero` for the rest. The labels come from the traversals'
predicates, by a function in the user's file.
"""

from __future__ import annotations

import ast

import libcst as cst

from codemods.model import Refusal
from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import (
    UNPACKED,
    Converted,
    LegacyOptimizer,
    helper,
    parameters,
)

PARTITION_BY_PATH = helper('''def partition_by_path(*groups):
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
''')


INTERFACE = '''class MultiOptimizer(OptimizerDef):
    """Optimizers for parts of the parameters: pairs of a traversal and an optimizer.

    Parameters that no traversal selects stay as they are, and have no state.
    """

    class Part(NamedTuple):
        """What an optimizer keeps for a parameter that its traversal selects."""

        state: optax.OptState

    def __init__(self, *groups):
        self.traversals, self.sub_optimizers = zip(*groups)
        super().__init__([optimizer.hyper_params for optimizer in self.sub_optimizers])

    def init_state(self, params):
        parts = params
        for traversal, optimizer in zip(self.traversals, self.sub_optimizers):

            def begin(param):
                if isinstance(param, self.Part):
                    raise ValueError("Multiple optimizers match the same parameter.")
                return self.Part(optimizer.init_param_state(param))

            parts = traversal.update(begin, parts)
        return OptimizerState(jnp.zeros([], jnp.int32), self._states(parts))

    def apply_gradient(self, hyper_params, params, state, grads):
        new_params, parts = params, params
        for traversal, optimizer, own in zip(
            self.traversals, self.sub_optimizers, hyper_params
        ):
            selected, kept, slopes = (
                tuple(traversal.iterate(tree))
                for tree in (params, state.param_states, grads)
            )
            old_state = OptimizerState(state.step, kept)
            new, new_state = optimizer.apply_gradient(own, selected, old_state, slopes)
            new_params = traversal.set(list(new), new_params)
            parts = traversal.set([*map(self.Part, new_state.param_states)], parts)
        return new_params, OptimizerState(state.step + 1, self._states(parts))

    def update_hyper_params(self, **overrides):
        hyper_params = overrides.pop("hyper_params", self.hyper_params)
        return (
            [own.replace(**overrides) for own in hyper_params]
            if overrides
            else hyper_params
        )

    def _states(self, parts):
        return jax.tree_util.tree_map(
            lambda part: part.state if isinstance(part, self.Part) else None,
            parts,
            is_leaf=lambda part: isinstance(part, self.Part),
        )
'''


def refuse(call: ast.Call) -> Refusal | None:
    """Pairs by position are converted, unpacked ones too; legacy took nothing else."""
    # MultiOptimizer(**groups)
    if any(word.arg is None for word in call.keywords):
        return UNPACKED
    if call.keywords or not call.args:
        return Refusal(
            "FO905",
            "MultiOptimizer takes pairs of traversal and optimizer, by position.",
            "Correct the call.",
        )
    return None


def convert(arguments: Arguments) -> Converted:
    function = cst.Name(PARTITION_BY_PATH.name)
    call = arguments.layout.call.with_changes(func=function)
    return Converted(call, (PARTITION_BY_PATH,))


OPTIMIZER = LegacyOptimizer(
    "MultiOptimizer",
    parameters(),
    {},
    convert,
    module="base",
    is_composite=True,
    refuses=refuse,
    interface=INTERFACE,
)
