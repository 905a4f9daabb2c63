"""The item for a training command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optim2optax.parity.plugin.item import ParityItem
from optim2optax.parity.plugin.repetition import as_words

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case


class CommandItem(ParityItem):
    """A training command."""

    def __init__(self, *, command: list[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.command = command

    def repetition(self) -> str:
        """The command again, with its own options."""
        option = self.config.getoption
        given = {
            "--timeout": [option("--parity-timeout")],
            "--link": option("--parity-link"),
            "--compare": option("--parity-compare"),
            "--compare-lines": option("--parity-lines"),
        }
        return self.repeated(*as_words(given), "--", *self.command)

    def run(self) -> Case:
        """Run it on both trees."""
        from optim2optax.parity.cases import command_case
        from optim2optax.parity.command.outputs import Wanted

        option = self.config.getoption
        return command_case(
            self.name,
            self.command,
            before=option("--parity-before"),
            folder=Path(self.config.invocation_params.dir),
            timeout=option("--parity-timeout"),
            links=[Path(link) for link in option("--parity-link")],
            legacy_python=self.legacy_python,
            wanted=Wanted(option("--parity-compare"), option("--parity-lines")),
        )
