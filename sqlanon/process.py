"""Identities of processes: whether that which made something still lives.

Process ids are reused, so a process is told by host, boot, id and the moment it started.
"""

from __future__ import annotations

import functools
import os
import socket
import subprocess
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def this_process() -> str:
    """The identity of this process: `host/boot/pid/start`."""
    return _identity(os.getpid())


def is_alive(identity: str) -> bool:
    """Whether the process lives; one of another host counts as alive, since nothing can be known of it."""
    host, _, pid, _ = identity.rsplit("/", 3)
    if host != socket.gethostname():
        return True
    return is_running(int(pid)) and _identity(int(pid)) == identity


def is_running(pid: int) -> bool:
    """Whether a process of this id exists on this host now."""
    return bool(_started(pid))


def _identity(pid: int) -> str:
    boot = _BOOT.read_text().strip() if _BOOT.exists() else "-"
    return f"{socket.gethostname()}/{boot}/{pid}/{_started(pid)}"


def _started(pid: int) -> str:
    """When the process started, as its system writes it; empty for a process that is gone or a zombie."""
    if not Path("/proc/self/stat").exists():
        return _started_by_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def _started_by_ps(pid: int) -> str:
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip().replace("/", "-")
