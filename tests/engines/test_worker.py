"""The thread for a session's statements: what is cancelled ends, also where an interrupt comes too early for it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sqlanon.engines.worker import StatementWorker
from sqlanon.errors import Cancelled
from tests.patience import PATIENCE


class Session:
    """A session that loses interrupts while it plans a statement."""

    def __init__(self) -> None:
        self.plans = threading.Event()
        self.lost = 0
        self._runs = threading.Event()
        self._stopped = threading.Event()

    def work(self) -> None:
        self.plans.set()
        until = time.monotonic() + PATIENCE
        while not self.lost and time.monotonic() < until:
            time.sleep(0.01)
        self._runs.set()
        if self._stopped.wait(PATIENCE):
            raise Cancelled("Interrupted.")

    def interrupt(self) -> None:
        if self._runs.is_set():
            self._stopped.set()
        else:
            self.lost += 1


def test_one_cancel_ends_a_statement_that_has_not_got_going() -> None:
    session = Session()
    worker = StatementWorker("test", None, session.interrupt)
    worker.cancel()  # nothing runs: no harm
    with ThreadPoolExecutor(1) as other:
        running = other.submit(worker.run, session.work)
        assert session.plans.wait(PATIENCE)
        worker.cancel()
        with pytest.raises(Cancelled):
            running.result(PATIENCE)
    assert session.lost > 0, "an interrupt came too early"
    assert worker.run(lambda: 1) == 1
    worker.close()
    worker.cancel()
