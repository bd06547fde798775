"""The command line: parse, call, print. Each file holds a group of commands."""

from __future__ import annotations

import gc
import os
import sys
import time

__all__ = ["BEGAN", "main"]

BEGAN = time.perf_counter()  # when the command began: whatever it loads is loaded after this


def main() -> None:
    """Load the program and run it; an interrupt ends it alike before it heeds signals itself."""
    try:
        # pydantic looks through all that is installed for plugins that nobody here asks for, in a tenth of a second.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        gc.set_threshold(500_000)  # what modules make is no garbage: looking for some was a tenth of a `check`
        from sqlanon.cli.program import main as program

        program()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.disable()
        gc.freeze()  # the process ends: its last collection, which nothing disables, was an eighth of a `check`
