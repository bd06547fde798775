"""A run in a process of its own, which tells the phases it comes to, and stops at one of them.

The processes are forked from one that has loaded all that a run needs: loading it takes longer than such a run.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import SqlanonError
from sqlanon.policy.loading import build_policy
from tests.patience import PATIENCE
from tests.run_support import run

multiprocessing.util.get_temp_dir()  # before a test has a temporary directory of its own, which ends with it
_PAUSE = 8 * PATIENCE  # longer than any test waits for a child
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload([__name__, "pytest", "sqlanon.engines.duckdb.engine", "sqlanon.engines.postgres.engine"])


class Child:
    """The process, seen from the test."""

    def __init__(self, policy: Mapping[str, Any], pause: str, errors: Path, **given: Any) -> None:
        """pause: the phase to stop at, if any; errors: the file that stderr goes to; given: how to run."""
        self._told, telling = FORKED.Pipe(duplex=False)
        self._errors = errors
        arguments = (policy, pause, telling, errors, dict(os.environ), given)
        self._process = FORKED.Process(target=_carry_out, args=arguments, daemon=True)
        self._process.start()
        telling.close()  # the child's end, so that reading ends with the child

    def until(self, phase: str) -> None:
        """Wait until the run comes to a phase."""
        while (told := self._next()) != phase:
            assert told, f"the run ended before {phase}: {self._errors.read_text()}"

    def signal(self, number: int) -> tuple[int | None, str, str]:
        """Send a signal, unless the run has ended by then, and wait for the end as `end` does."""
        assert self._process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)
        return self.end()

    def end(self) -> tuple[int | None, str, str]:
        """Wait for the end: the exit code, what the process still said, and what went to stderr."""
        said = []
        while told := self._next():
            said.append(told)
        self._process.join(PATIENCE)
        return self._process.exitcode, "\n".join(said), self._errors.read_text()

    def _next(self) -> str:
        return receive(self._told)


def receive(told: Connection) -> str:
    """Receive the next message of a child; an empty text when it has ended."""
    assert told.poll(PATIENCE), "the child says nothing"
    try:
        message: str = told.recv()
    except EOFError:
        return ""
    return message


class PhaseSender:
    """An observer that passes on the phases, and pauses at one."""

    def __init__(self, told: Connection, pause: str) -> None:
        self._told = told
        self._pause = pause

    def started(self, _run: str) -> None:
        pass

    def phase(self, name: str) -> None:
        self._told.send(name)
        if name == self._pause:
            time.sleep(_PAUSE)

    def progress(self, _progress: object) -> None:
        pass


def _carry_out(
    policy: Mapping[str, Any],
    pause: str,
    told: Connection,
    errors: Path,
    environment: Mapping[str, str],
    given: Mapping[str, Any],
) -> None:
    """Carry out the run in the child: stderr goes to a file, phases and errors to the pipe."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the test run does with it
    os.environ.update(environment)
    with errors.open("w") as file:
        os.dup2(file.fileno(), 2)
    try:
        options, observer = EngineOptions(threads=1), PhaseSender(told, pause)
        run(build_policy(policy), replace=True, options=options, observer=observer, **given)
    except SqlanonError as error:
        told.send(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_code)
