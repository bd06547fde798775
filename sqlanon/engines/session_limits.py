"""Limits of a session with a database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sqlanon.errors import PolicyError

_LONGEST = 2_000_000  # seconds, 23 days: PostgreSQL counts a timeout's milliseconds with 31 bits
_MOST_THREADS = 1024  # which PostgreSQL takes for a statement
_MOST_MEMORY = 10**12  # kB
_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]?)(i?)B?\s*", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class EngineOptions:
    """Limits of a session; None leaves the engine's own default. Raises PolicyError for one that no engine follows."""

    memory_limit: str | None = None  # such as 2GB
    threads: int | None = None
    temp_directory: str | None = None
    statement_timeout: float | None = None  # seconds
    places: tuple[str, ...] | None = ()
    """Files and directories beside a DuckDB file that statements reach; None for all that the process reaches."""

    def __post_init__(self) -> None:
        if self.statement_timeout is not None and not 0 < self.statement_timeout <= _LONGEST:
            raise PolicyError(f"A statement timeout is a number of seconds between 0.001 and {_LONGEST:,}.")
        if self.threads is not None and not 0 < self.threads <= _MOST_THREADS:
            raise PolicyError(f"A session has between 1 and {_MOST_THREADS:,} threads.")
        if self.memory_limit is not None and not 0 < kilobytes(self.memory_limit) <= _MOST_MEMORY:
            raise PolicyError("A memory limit is a size between 1KB and 1000TB, such as 2GB.")


def kilobytes(size: str) -> int:
    """A size such as `2GB`, `512MiB` or `1.5 G` in kilobytes of 1024 bytes."""
    match = _SIZE.fullmatch(size)
    if match is None:
        raise PolicyError(f"'{size[:40]}' is not a size; write a number and a unit, such as 2GB.")
    unit = 1024 if match[3] else 1000
    return int(Decimal(match[1]) * unit ** _POWERS[match[2].upper()] / 1024)
