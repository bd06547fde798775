"""The settings of a PostgreSQL session, from the options of a run."""

from __future__ import annotations

from sqlanon.engines.postgres.meanings import FIXED
from sqlanon.engines.session_limits import EngineOptions, kilobytes
from sqlanon.errors import PolicyError

USUAL_LOCK_TIMEOUT = "30s"  # for a lock of others, where no limit has been set for the role
USUAL_WORK_MEM = "64MB"  # what sorts and hashes of a session may take, where the server's own setting is less
_OPERATIONS_AT_ONCE = 8  # sorts and hashes that share the memory limit: a few a statement, in a few sessions
_LEAST_WORK_MEM, _MOST_WORK_MEM = 4096, 2**31 - 1  # kB


def session_settings(options: EngineOptions, read_only: bool) -> dict[str, str]:
    """The settings by name; the limits set for a role or database stay, unless an option gives another.

    Raises PolicyError for an option that PostgreSQL can't follow.
    """
    if options.temp_directory is not None:
        raise PolicyError("A temporary directory can't be given for PostgreSQL: its server decides (temp_tablespaces).")
    settings = dict(FIXED)
    if read_only:
        settings["default_transaction_read_only"] = "on"
    if options.statement_timeout is not None:
        settings["statement_timeout"] = str(_milliseconds(options.statement_timeout))
    if options.threads is not None:
        settings["max_parallel_workers_per_gather"] = str(max(0, options.threads - 1))
    if options.memory_limit is not None:
        memory = kilobytes(options.memory_limit) // _OPERATIONS_AT_ONCE
        settings["work_mem"] = f"{min(max(_LEAST_WORK_MEM, memory), _MOST_WORK_MEM)}kB"
    return settings


def _milliseconds(seconds: float) -> int:
    """0 is no limit to PostgreSQL, so that a limit below a millisecond becomes one."""
    return max(1, round(seconds * 1000))
