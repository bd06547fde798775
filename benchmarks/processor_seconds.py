"""Seconds by the clock and of the processor, for benchmarks that compare work in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

Seconds = tuple[float, float]
"""By the clock, and of the processor."""


def timed(work: Callable[[], object]) -> Seconds:
    """The seconds that a call takes."""
    wall, processors = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processors


def median(times: list[Seconds]) -> Seconds:
    """The median of each."""
    wall, processors = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(processors)


def text(seconds: Seconds, base: Seconds) -> str:
    """Both in words, the processor's in brackets, and how many times the base they are."""
    ratios = f" = {seconds[0] / base[0]:.1f} x ({seconds[1] / base[1]:.1f} x)" if seconds is not base else ""
    return f"{seconds[0]:.2f} s ({seconds[1]:.2f} s){ratios}"
