"""Identities of processes: whether that which made something still lives.

Process ids are reused, so a process is told by its host, its id, and when it started, counted from when the host did:
unlike the time of day that is not moved when somebody sets the clock.
"""

from __future__ import annotations

import functools
import os
import re
import socket
from dataclasses import dataclass

_IDENTITY = re.compile(r".+/(\d+|-)/\d+/(\d+(\.\d+)?|-)")
SAME_START = 2.0  # seconds that two readings of one start may differ by: some systems keep whole seconds


def host() -> str:
    """The name of this machine."""
    return socket.gethostname()


@functools.cache
def this_process() -> str:
    """The identity of this process: `host/boot/pid/start`, the start in seconds after the boot."""
    import psutil

    boot = psutil.boot_time()
    return f"{host()}/{boot:.0f}/{os.getpid()}/{psutil.Process().create_time() - boot:.2f}"


def this_process_unasked() -> str:
    """The identity of this process without its start: asking the system for it costs 20 ms."""
    return f"{host()}/-/{os.getpid()}/-"


def is_identity(text: str) -> bool:
    """Tell whether a text is the identity of a process, as this program writes it."""
    return _IDENTITY.fullmatch(text) is not None


def is_alive(identity: str, seen: float | None = None) -> bool:
    """Tell whether the process lives.

    seen: when it lived, in seconds since 1970, which a later process of the same id did not.

    One of another host counts as alive, since nothing can be known of it, and so does any process of the same id where
    too little is known of both, as of one that an older version wrote down.
    """
    machine, boot, pid, start = identity.rsplit("/", 3)
    if machine != host():
        return True
    if not is_running(int(pid)):
        return False
    started = _start_of(int(pid))
    if started is None:
        return True
    if boot.isdecimal():
        return abs(started.after_boot - float(start)) <= SAME_START
    return seen is None or started.since_epoch <= seen + SAME_START


def is_running(pid: int) -> bool:
    """Tell whether a process of this id exists on this host now, and is no zombie."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except (psutil.NoSuchProcess, ValueError, OverflowError):  # the others: no process has such a number
        return False
    except psutil.AccessDenied:
        return True


def lived_at(pid: int, seen: float) -> bool:
    """Tell whether a process of this id exists that was there at a time, in seconds since 1970."""
    if not is_running(pid):
        return False
    started = _start_of(pid)
    return started is None or started.since_epoch <= seen + SAME_START


@dataclass(frozen=True)
class _Start:
    """The start of a process, in seconds since 1970, and since its host started."""

    since_epoch: float
    after_boot: float


def _start_of(pid: int) -> _Start | None:
    """Return the start of a process; None where this process may not ask, or the other has just ended."""
    import psutil

    boot = psutil.boot_time()
    try:
        since_epoch = psutil.Process(pid).create_time()
    except psutil.Error:
        return None
    return _Start(since_epoch, since_epoch - boot)
