"""The command line: click commands, thin. Each is imported when it is called."""

from __future__ import annotations

import errno
import importlib
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import click

from optim2optax import __version__
from optim2optax.cli.colour import forced_colour
from optim2optax.exit_codes import INTERRUPTED

COMMANDS = ("doctor", "rewrite", "parity", "checkpoint", "explain", "rules")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
EXAMPLES = """\b
Examples:
  optim2optax rewrite --diff src/     what would change
  optim2optax rewrite src/            change it
  optim2optax parity src/             prove that the new optimizers equal the old ones
  optim2optax checkpoint inspect runs/   what is in old checkpoints
  optim2optax explain FO202           what a rule does, and why
  optim2optax explain Adam            an optimizer, old and new
"""


class Application(click.Group):
    """A group whose commands are modules of this package, each with a `command`."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"optim2optax.cli.{name}")
        return cast(click.Command, module.command)

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. For one that does not exist, the nearest are offered."""
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            from optim2optax.nearest import did_you_mean

            context.fail(f"No such command '{name}'{did_you_mean(name, COMMANDS, 0.6)}")
        return super().resolve_command(context, arguments)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments, and show help or the version if they ask for it."""
        # click itself looks only at whether a stream is a terminal
        with _output():
            return super().make_context(*args, color=forced_colour(), **extra)

    def invoke(self, context: click.Context) -> Any:
        """Run a command. An unexpected error exits with 2, as 1 means that something is left to do.

        SIGTERM and the loss of the terminal are like Ctrl-C: temporary files are removed.
        """
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
            # `nohup optim2optax …` ignores SIGHUP
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        try:
            with _output():
                return super().invoke(context)
        except (
            click.ClickException,
            click.exceptions.Exit,
            click.Abort,
            # optim2optax rewrite --diff . | head
            BrokenPipeError,
        ):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            context.exit(INTERRUPTED)
        except Exception as error:
            raise InternalError from error


@contextmanager
def _output() -> Iterator[None]:
    """Turn the error of a full disk into a message."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in NO_ROOM:  # of another file
            raise
        raise StoppedError(f"the output cannot be written: {error.strerror}") from error


class StoppedError(click.ClickException):
    """The run came to an end ahead of its time, by no fault of the user's."""

    exit_code = 2


class InternalError(click.ClickException):
    """A defect of this program."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__(
            "internal error, nothing more was written; please report it with the lines above"
        )

    def show(self, file: Any = None) -> None:
        traceback.print_exception(self.__cause__)
        super().show(file)


@click.group(
    name="optim2optax",
    cls=Application,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def application() -> None:
    """Move code from the removed flax.optim to optax.

    \b
    Exit codes:
      0  nothing is left to do
      1  sites remain, a file could not be read, --check or --diff would change something, \
or old and new differ
      2  wrong usage or configuration, an internal error, or parity could not run
    """
