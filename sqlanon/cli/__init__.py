"""The command line: parse, call, print. Each file holds a group of commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The program; it is loaded here, so that an interrupt while it loads ends it like any other."""
    try:
        from sqlanon.cli.program import main as program
    except KeyboardInterrupt:
        sys.exit(130)
    program()
