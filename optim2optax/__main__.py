"""The program `optim2optax`, also as `python -m optim2optax`."""

from __future__ import annotations

import gc
import os
import signal
import sys

from optim2optax.exit_codes import INTERRUPTED


def main() -> None:
    """Run the command line."""
    # until a command is called, there is nothing to clean up
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    _open_closed_streams()
    from optim2optax.cli import application

    try:
        application(prog_name="optim2optax")
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            # all is cleaned up but the memory, which takes a second after a long run
            os._exit(INTERRUPTED)
        raise
    finally:
        gc.freeze()  # the process ends: garbage in cycles need not be found


def _leave(*_: object) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Open closed standard streams on nothing, so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # optim2optax rewrite . >&-
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process


if __name__ == "__main__":
    main()
