"""The command line: parse, call, print. Each file holds a group of commands."""

from __future__ import annotations

import gc
import os
import sys
import time

__all__ = ["BEGAN", "main"]

BEGAN = time.perf_counter()  # when the command began: whatever it loads is loaded after this


def main() -> None:
    """The program; it is loaded here, so that an interrupt while it loads ends it like any other."""
    # pydantic looks through all that is installed for plugins that nobody here asks for, in a tenth of a second.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.set_threshold(500_000)  # what modules make is no garbage: looking for some was a tenth of a `check`
    try:
        from sqlanon.cli.program import main as program
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        program()
    finally:
        gc.disable()  # the process ends
