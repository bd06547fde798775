"""Roles of PostgreSQL: the names of those that run policies, read releases and ask questions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """The role that runs policies and jobs and owns their catalog, one that reads releases, one that asks questions."""

    runner: str = "sqlanon_runner"
    reader: str = "sqlanon_reader"
    analyst: str = "sqlanon_analyst"
