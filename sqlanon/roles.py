"""Who does what in PostgreSQL: the names of three roles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """Who owns the catalog, who runs policies and jobs, and who reads releases."""

    owner: str = "sqlanon_owner"
    runner: str = "sqlanon_runner"
    reader: str = "sqlanon_reader"
