"""Who does what in PostgreSQL: the names of two roles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """Who runs policies and jobs and owns their catalog, and who reads releases."""

    runner: str = "sqlanon_runner"
    reader: str = "sqlanon_reader"
