"""Sizes of noise of uncertain values, as tables of the distinct values of each column."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.methods.randomization.columns.numbers import in_units
from sqlanon.methods.randomization.plan import RandomizedPlan
from sqlanon.models.randomization.spreads import WHOLE
from sqlanon.sql import Identifier, Relation
from sqlanon.work.workspace import Workspace


def create_spreads(engine: Engine, workspace: Workspace, plan: RandomizedPlan) -> dict[str, Relation]:
    """Choose the spread of each value of each uncertain column, as (value, neighbourhood, spread), in whole units.

    Call it in the transaction that reads the source.
    """
    return {name: _create(engine, workspace, plan, number) for number, name in enumerate(plan.uncertain)}


def _create(engine: Engine, workspace: Workspace, plan: RandomizedPlan, number: int) -> Relation:
    one = list(plan.uncertain.values())[number]
    neighbourhoods, spreads = workspace.table("neighbourhoods", number), workspace.table("spreads", number)
    rule, k = one.change.rule, one.change.k
    engine.run(
        "methods/randomization/create_neighbourhoods",
        neighbourhoods=neighbourhoods,
        source=plan.source,
        column=in_units(one.column, one.change.unit),
        value=Markup(Identifier(one.column.name)),
        least=rule.least_rows(k),
    )
    engine.run(
        "methods/randomization/create_spreads",
        spreads=spreads,
        neighbourhoods=neighbourhoods,
        k=k,
        intercept=rule.intercept,
        slope=rule.slope,
        whole=WHOLE,
    )
    workspace.drop(neighbourhoods)
    engine.analyze(spreads)
    return spreads


def spreads_of(engine: Engine, spreads: Relation) -> list[int]:
    """List the different spreads of a column, in units."""
    return sorted(int(spread) for (spread,) in engine.query("methods/randomization/list_spreads", spreads=spreads))
