"""The patience of tests with what they wait for: processes, threads and servers."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which a test gives up: many times what a busy machine needs."""


def wait_until(comes_true: Callable[[], object]) -> None:
    """Ask again and again until the answer is true.

    Raises:
        AssertionError: it does not come true.
    """
    deadline = time.monotonic() + PATIENCE
    while not comes_true():
        assert time.monotonic() < deadline, f"it does not come true within {PATIENCE:.0f} s"
        time.sleep(0.02)
