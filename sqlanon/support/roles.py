"""Roles of PostgreSQL: the names of the one that runs policies and the one that reads releases."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """The role that runs policies and jobs and owns their catalog, and the role that reads releases."""

    runner: str = "sqlanon_runner"
    reader: str = "sqlanon_reader"
