"""A thread for a session's statements, where the driver itself knows neither a timeout nor Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from sqlanon.errors import Cancelled, EngineError

_T = TypeVar("_T")


def open_in_thread(opening: Callable[[], _T], close: Callable[[_T], object]) -> _T:
    """Open what no signal interrupts while it is opened; Ctrl-C leaves it to a thread, which closes it in the end.

    Raises what `opening` raises, Cancelled on Ctrl-C.
    """
    opened: Future[_T] = Future()
    left = threading.Event()

    def work() -> None:
        try:
            opened.set_result(opening())
        except BaseException as error:
            opened.set_exception(error)
        if left.is_set() and opened.exception() is None:
            close(opened.result())

    try:  # Ctrl-C may come as soon as the thread is there
        threading.Thread(target=work, name="sqlanon-opening", daemon=True).start()
        return opened.result()
    except KeyboardInterrupt:
        left.set()
        raise Cancelled("Interrupted.") from None


class StatementWorker:
    """Carries out one statement after the other in a thread of its own, while the caller waits.

    timeout: seconds that a statement may take; None for any.
    interrupt: stops the statement that the session carries out, if there is one.
    """

    def __init__(self, name: str, timeout: float | None, interrupt: Callable[[], None]) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._timeout = timeout
        self._interrupt = interrupt
        self._closed = False
        self._starting = threading.Lock()
        self._running: Future[Any] | None = None

    def run(self, work: Callable[[], _T]) -> _T:
        """Carry out `work`, and give back its result or raise its error.

        Raises EngineError after the timeout or on a closed session, Cancelled on Ctrl-C; the statement has ended then.
        """
        if self._closed:
            raise EngineError("The connection is closed.")
        with self._starting:
            self._running = future = self._executor.submit(work)
        try:
            return future.result(self._timeout)
        except FutureTimeout:
            if self._timeout is None:  # an error of the work, which has the same class
                raise
            self._stop(future)
            raise EngineError(
                f"A statement took too long: it was stopped after the statement timeout of {self._timeout:g} s"
                " (--statement-timeout). Give a longer one, or leave it out."
            ) from None
        except KeyboardInterrupt:
            self._stop(future)
            raise Cancelled("Interrupted.") from None
        except BaseException:  # raised by a signal's handler, for one: the statement must not run on
            self._stop(future)
            raise
        finally:
            self._running = None  # it holds the result

    def cancel(self) -> None:
        """Stop the work that goes on, if there is one; for another thread, which waits for its end."""
        with self._starting:
            running = self._running
        if running is not None:
            self._stop(running)

    def _stop(self, future: Future[Any]) -> None:
        """Interrupt until the statement has ended: an interrupt before it got going would be lost."""
        while not future.done():
            self._interrupt()
            try:
                future.exception(timeout=0.05)
            except FutureTimeout:
                continue

    def close(self) -> bool:
        """End the thread after the statement that it carries out; False where it was ended before."""
        was_open, self._closed = not self._closed, True
        self._executor.shutdown(wait=True)
        return was_open
