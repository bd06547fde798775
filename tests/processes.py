"""Programs that do the same thing at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def run_together(program: str, arguments: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Start a program once for each list of arguments; what each printed and what went to stderr.

    program: prints `ready`, waits for a line, and goes on.
    """
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, *own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in arguments
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    return [run.communicate(timeout=60) for run in runs]
