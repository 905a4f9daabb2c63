"""What the methods of legacy objects take."""

from __future__ import annotations

import ast

from codemods.inference.binding import taking

CREATE = taking("target", focus=None)
"""`definition.create`."""

STEP = taking("grads", "**overrides")
"""`optimizer.apply_gradient`."""

LOSS_STEP = taking("loss_fn", "**overrides")
"""`optimizer.optimize`, and `optimizer.compute_gradient`, which had no overrides."""

REPLICATE = taking(devices=None, axis_name=ast.Constant("batch"))
"""`optimizer.replicate`, which named the axis over which later steps average."""

RESTORE_STATE = taking("state")
STATE_DICT = taking("target", "state")
RESTORE_STATE_DICT = taking("opt_target", "opt_state", "state_dict")
"""`definition.state_dict` and `definition.restore_state`."""

TRAVERSAL = taking("filter_fn")
"""`ModelParamTraversal`."""

RATE_FIRST = taking("*others", "**words", learning_rate=None)
"""What all constructors but the composite ones take."""
