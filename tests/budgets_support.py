"""Grants and spendings of budgets, as tests write them."""

from __future__ import annotations

from fractions import Fraction

from sqlanon.catalog import Catalog
from sqlanon.catalog.budget_records import Budget, MechanismUse, Spending
from sqlanon.engines.base import Engine
from sqlanon.sql import Statement

SOURCE = ("table people of here",)


def spending(
    *amounts: str, limit: str = "3", budget: str = "people", unit: str | None = None, run: str = "r_1"
) -> Spending:
    uses = [MechanismUse("laplace", Fraction(one), Fraction(1), 1 / Fraction(one)) for one in amounts]
    return Spending(budget, Fraction(limit), unit, run, '"main"."people_dp"', tuple(uses))


def granted(catalog: Catalog, epsilon: str = "3", name: str = "people", unit: str | None = None) -> Budget:
    return catalog.grant_budget(name, Fraction(epsilon), "the ethics board's decision 7", SOURCE, unit)


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))
