"""Comparison of a release with its source, for people: without identifiers or raw values of quasi-identifiers.

Of the source only types and numbers of values are shown; of the release, what classes of k rows or more show.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.models import largest_k, models_of
from sqlanon.plan.checks import released_names
from sqlanon.plan.connecting import open_release, open_source, release_columns
from sqlanon.policy import Policy, Role
from sqlanon.results.run_result import RunResult
from sqlanon.sql import Identifier, Relation

COUNTED_ROWS = 1_000_000  # of larger tables a wide range's values are not counted: it would take longer than the run
SAMPLED_CLASSES = 3


@dataclass(frozen=True)
class CellChange:
    """A quasi-identifier: its type and number of values before, the number of values that the release shows.

    before: None where nobody counted: of a wide range of numbers in more than `COUNTED_ROWS` rows.
    """

    name: str
    type: str
    before: int | None
    after: int


@dataclass(frozen=True)
class SampleComparison:
    """Every quasi-identifier; and of some classes what each of `columns` shows (None is NULL), and the rows."""

    changes: tuple[CellChange, ...]
    columns: tuple[str, ...]
    classes: tuple[tuple[tuple[str | None, ...], int], ...]


def compare(policy: Policy, result: RunResult, options: EngineOptions | None = None) -> SampleComparison:
    """Look at the source and at the published release; classes smaller than k, or than 2, are never shown."""
    known = {one.name: one for one in result.quasi_identifiers or ()}
    before = {name: one.values for name, one in known.items()}
    missing = [name for name, values in before.items() if values is None]
    if missing and result.source.rows <= COUNTED_ROWS:
        with open_source(policy, options) as (engine, source):
            before |= _count(engine, source, missing)
    columns = [column for name, attribute in policy.attributes.items() for column in released_names(name, attribute)]
    with open_release(policy, options=options, as_text=columns) as (engine, release):
        columns = release_columns(policy, {column.name for column in engine.columns(release)})
        classes = _sample(engine, release, columns, max(largest_k(models_of(policy)), 2))
    names = [name for name, attribute in policy.attributes.items() if attribute.role is Role.QUASI_IDENTIFIER]
    changes = (CellChange(name, known[name].type, before[name], known[name].labels) for name in names)
    return SampleComparison(tuple(changes), tuple(columns), classes)


def _count(engine: Engine, table: Relation, columns: list[str]) -> dict[str, int]:
    counts = engine.query_one("report/count_values", table=table, columns=[Identifier(name) for name in columns])
    return dict(zip(columns, counts, strict=True))


def _sample(
    engine: Engine, table: Relation, columns: list[str], least: int
) -> tuple[tuple[tuple[str | None, ...], int], ...]:
    named = [{"name": Identifier(name), "alias": Identifier(f"c{place}")} for place, name in enumerate(columns)]
    rows = engine.query("report/sample_classes", table=table, columns=named, least=least, limit=SAMPLED_CLASSES)
    return tuple((tuple(row[:-1]), int(row[-1])) for row in rows)
