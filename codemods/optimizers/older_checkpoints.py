"""What a migrated program needs to load a checkpoint that it stored with a legacy optimizer.

Such a checkpoint has `{target, state: {step, param_states}}` where one of today has
`{params, opt_state, step}`. The types of the states of optax tell which field was which, never the
names: a parameter may be called `count` or `trace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codemods.optimizers import optimizers
from codemods.optimizers.base import Support

IMPORTED = {
    "jax": "jax",
    "serialization": "flax.serialization",
    "traverse_util": "flax.traverse_util",
}
"""What its code imports, by name."""

LOADED = (
    "AdaBelief",
    "Adadelta",
    "Adagrad",
    "Adam",
    "GradientDescent",
    "LAMB",
    "Momentum",
    "RMSProp",
)
"""The optimizers that are loaded.

optax keeps the same for each parameter, in fields of one state, with the same sign.
"""

FROM_OLD = Support(
    name="from_old",
    source='''def from_old(optimizer, state):
    """The state dict of a train state that goes on from a legacy optimizer, with all it had."""
    old = traverse_util.flatten_dict(optimizer)
    parts = {"step": state.step, "params": state.params, "opt_state": state.opt_state}
    new = traverse_util.flatten_dict(serialization.to_state_dict(parts), keep_empty_nodes=True)
    used = set()
    for path, leaf in new.items():
        is_empty = leaf is None or leaf is traverse_util.empty_node
        place = () if is_empty else old_place(state, *path)
        if not place:
            continue
        value = old.get(place)
        if value is None or (place in used and place != ("state", "step")):
            raise ValueError(f"{'/'.join(place)} is not in the checkpoint, or twice in the state.")
        shape, wanted = (getattr(array, "shape", ()) for array in (value, leaf))
        if shape != wanted:
            raise ValueError(f"{'/'.join(place)} has the shape {shape}, and in the state {wanted}.")
        new[path] = value
        used.add(place)
    left = ["/".join(place) for place in old if place not in used and old[place] is not None]
    if left:
        raise ValueError(f"{left[0]} of the checkpoint has no place in the state.")
    return traverse_util.unflatten_dict(new)
''',
    imports=("from flax import serialization", "from flax import traverse_util"),
)

IS_OLD = Support(
    name="is_old",
    source='''def is_old(stored):
    """Whether this is what a checkpoint has of a legacy optimizer."""
    return isinstance(stored, dict) and set(stored) == {"target", "state"}
''',
    imports=(),
)

RENEWED = Support(
    name="renewed",
    source='''def renewed(stored, target):
    """A checkpoint with train states in the place of legacy optimizers; itself if it has none."""
    if not isinstance(stored, dict):
        return stored
    if isinstance(target, {TrainState}):
        if is_old(stored):
            return from_old(stored, target)
        beside = {key: part for key, part in stored.items() if not is_old(part)}
        old = [part for part in stored.values() if is_old(part)]
        if len(old) != 1:
            return stored
        new = from_old(old[0], target)
        if not jax.numpy.array_equal(beside.get("step", new["step"]), new["step"]):
            raise ValueError("The checkpoint has one step in the optimizer, and another beside it.")
        return {**beside, **new}
    inner, _ = jax.tree_util.tree_flatten_with_path(target, is_leaf=lambda node: node is not target)
    names = ("name", "key", "idx")
    targets = {
        str(next(getattr(keys[0], name) for name in names if hasattr(keys[0], name))): part
        for keys, part in inner
        if keys
    }
    parts = {key: renewed(part, targets.get(key)) for key, part in stored.items()}
    return parts if any(parts[key] is not stored[key] for key in parts) else stored
''',
    imports=("import jax",),
)

RESTORE_OLD_OR_NEW = Support(
    name="restore_old_or_new",
    source='''def restore_old_or_new(restore_checkpoint, ckpt_dir, target, *args, **kwargs):
    """Restore a checkpoint, which may have legacy optimizers in the place of train states."""
    try:
        return restore_checkpoint(ckpt_dir, target, *args, **kwargs)
    except ValueError:
        stored = restore_checkpoint(ckpt_dir, None, *args, **kwargs)
        new = renewed(stored, target)
        if new is stored:
            raise
    return serialization.from_state_dict(target, new)
''',
    imports=("from flax import serialization",),
)


def restoring(names: Iterable[str]) -> tuple[Support, ...]:
    """What restores checkpoints of these optimizers, old and new, behind its helpers."""
    return _old_place(names), FROM_OLD, IS_OLD, RENEWED, RESTORE_OLD_OR_NEW


def _old_place(names: Iterable[str]) -> Support:
    """The function that finds the place of a value in an old checkpoint, for some optimizers."""
    found = [optimizers()[name] for name in sorted(names)]
    kept = {
        state: optimizer.state for optimizer in found for state in optimizer.kept_in
    }
    rows = "".join(
        f'        "{state}": {_literal(fields)},\n' for state, fields in kept.items()
    )
    table = f"{{\n{rows}    }}" if rows else "{}"
    return Support("old_place", OLD_PLACE.replace("FIELDS", table), ())


def _literal(fields: Mapping[str, str]) -> str:
    """A dict of the new names of some fields, with their old ones."""
    entries = ", ".join(f'"{new}": "{old}"' for old, new in fields.items())
    return f"{{{entries}}}"


OLD_PLACE = '''def old_place(node, key, *below):
    """Where a legacy optimizer had what a train state has at a path; nothing for injected rates."""
    fields = FIELDS
    old_names = fields.get(type(node).__name__, {})
    if key in old_names:
        return ("state", "param_states", *below, old_names[key])
    if key == "params" and isinstance(node, {TrainState}):
        return ("target", *below)
    if key == "count" or (key == "step" and isinstance(node, {TrainState})):
        return ("state", "step")
    if key == "hyperparams":
        return ()
    if not below:
        raise ValueError(f"No legacy optimizer had the {key} of a {type(node).__name__}.")
    if isinstance(node, dict):
        return old_place(node[key], *below)
    return old_place(node[int(key)] if key.isdigit() else getattr(node, key), *below)
'''
"""Its source, with `FIELDS` in the place of the table."""
