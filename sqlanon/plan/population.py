"""The population table that models look at: all who could be in the release."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.plan.distant_population import bring_population
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Population:
    """A population table, and its columns."""

    table: Relation
    columns: tuple[Column, ...]


def resolve_population(policy: Policy, engine: Engine) -> Relation | None:
    """Find the population table that models name; None where there is none, or none is named.

    One in another database is brought: see `bring_population`, which says what is raised.
    """
    if policy.population is None or not engine.traits.counts_population or policy.source.table is None:
        return None
    if policy.population_elsewhere is not None:
        return bring_population(policy, policy.population_elsewhere, engine).table
    return engine.resolve(Relation.parse(policy.population))


def find_population(policy: Policy, engine: Engine) -> Population | None:
    """Look at the columns of the population table that models name, where it is there."""
    table = resolve_population(policy, engine)
    return None if table is None else Population(table, tuple(engine.columns(table)))


def hold_population(policy: Policy, engine: Engine) -> None:
    """Keep the population from being replaced until the transaction ends, and refuse code of others in it.

    Raises PolicyError as `hold_trusted` does; a table that is missing is none of its problems.
    """
    table = resolve_population(policy, engine)
    if table is not None:
        hold_trusted(policy, engine, table)
