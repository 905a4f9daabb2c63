"""The same codemod under LibCST's own runner, file by file.

python -m libcst.tool codemod --no-format -x codemods.command.FlaxOptimToOptax src/
"""

from __future__ import annotations

import libcst as cst
from libcst.codemod import CodemodCommand

from codemods.engine import migrate
from codemods.model import Source


class FlaxOptimToOptax(CodemodCommand):
    """Migrates one file at a time.

    What depends on the rest of the project is left, with a warning.
    """

    DESCRIPTION = "Migrate flax.optim to optax and flax.training.train_state."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        path = self.context.filename or "module.py"
        [result] = migrate([Source(path, tree.bytes)])
        for site in result.sites:
            if site.status == "unresolved":
                place = f"{result.path}:{site.line}:{site.column}"
                what = f"{site.code} {site.message} {site.remedy}"
                self.warn(f"{place}: {what}")
        if not result.changed:
            return tree
        return cst.parse_module(result.after)
