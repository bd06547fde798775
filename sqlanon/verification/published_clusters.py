"""The two tables of published clusters, as rows that models judge."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import DataError, PolicyError, VerificationError
from sqlanon.policy import Policy, Role
from sqlanon.results.measures import Check
from sqlanon.sql import Relation, Text
from sqlanon.staging.gathered import NAMES, expand_clusters, expanded_column
from sqlanon.work.publish.companion import companion_of
from sqlanon.work.workspace import TemporaryWorkspace


def expand_published(engine: Engine, policy: Policy, clusters: Relation) -> tuple[Relation, list[str]]:
    """Write a temporary table of a row for each row that both tables tell of; also names the columns of its classes.

    Values get the types that they have in the source, of which nothing else is read.
    Raises PolicyError where the second table or the source is not there, and VerificationError where the second table
    holds a text that is no value of its column.
    """
    workspace, kept, values = TemporaryWorkspace(engine), _kept(engine, policy), _values(engine, clusters)
    for column in kept:
        _require_values(engine, values, column)
    return expand_clusters(engine, workspace, kept, clusters, values), [NAMES["cluster"].name]


def check_counts(engine: Engine, policy: Policy, clusters: Relation) -> Check:
    """Count clusters and columns of which the second table counts more or less values than the cluster has rows."""
    (uneven,) = engine.query_one(
        "verification/count_uneven",
        staged=clusters,
        values=_values(engine, clusters),
        titles=[Text(column.name) for column in _kept(engine, policy)],
        names=NAMES,
    )
    (rows,) = engine.query_one("count_rows", table=clusters)
    return Check(int(uneven), int(rows))


def _values(engine: Engine, clusters: Relation) -> Relation:
    values = companion_of(clusters)
    if engine.resolve(values) is None:
        raise PolicyError(f"There is no table {values}, which r-gather publishes beside its clusters.")
    return values


def _require_values(engine: Engine, values: Relation, column: Column) -> None:
    try:
        engine.query("verification/read_values", values=values, column=expanded_column(column), names=NAMES)
    except DataError:
        raise VerificationError(
            f"{values} holds a text of column '{column.name}' that is no {column.type}, as this column is in the"
            " source: the release was altered, or the source's column has another type since. Run again."
        ) from None


def _kept(engine: Engine, policy: Policy) -> list[Column]:
    source = engine.resolve(Relation.parse(policy.source.table or ""))
    if source is None:
        raise PolicyError(f"There is no source {policy.source.table}, whose columns say the types of released values.")
    roles = {name: one.role for name, one in policy.attributes.items()}
    kept = (Role.SENSITIVE, Role.INSENSITIVE)
    return [column for column in engine.columns(source) if roles.get(column.name) in kept]
