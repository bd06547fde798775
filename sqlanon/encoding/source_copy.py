"""Copies of a source, for what is to be read more than once in one state, or in part."""

from __future__ import annotations

from dataclasses import replace

from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan
from sqlanon.sql import Expression, Identifier
from sqlanon.work.workspace import Workspace

SNAPSHOT = "snapshot"  # what the name of a copy ends in that stands for the source


def unchanging(engine: Engine, plan: Plan, workspace: Workspace) -> Plan:
    """Plan for a source that stays as it is inside of the transaction: a copy, where the engine has no snapshots."""
    return plan if engine.traits.has_snapshots else copied(engine, plan, workspace, SNAPSHOT)


def copied(
    engine: Engine, plan: Plan, workspace: Workspace, meaning: str = "source", row_filter: Expression | None = None
) -> Plan:
    """Plan for a copy of the source's columns that a release shows, or models look at; whoever makes it drops it.

    meaning: of the copy, for its name. row_filter: a condition on rows `s` of the source; others are left out.
    """
    copy = workspace.table(meaning)
    columns = [Identifier(attribute.name) for attribute in plan.coded]
    engine.run("encoding/copy_source", copy=copy, source=plan.source, columns=columns, row_filter=row_filter)
    engine.analyze(copy)
    return replace(plan, source=copy)
