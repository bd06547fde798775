"""Profiles a table inside the database: types, NULLs, distinct values, and how identifying columns are.

How identifying a set of columns is: the share of rows that are alone with their combination of values. Up to a million
rows it is counted. Above, it is estimated from the combinations whose hash falls into one part of `modulus`: all
rows of a combination are then in or out together, so that, unlike on a sample of rows, nothing looks unique that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.policy import Role
from sqlanon.profile_facts import ColumnFacts, Combination, Profile
from sqlanon.proposal import propose
from sqlanon.sql import Identifier, Relation, expression

EXACT_ROWS = 1_000_000
MOST_PAIRED = 10  # columns, so 45 pairs
COLUMNS_A_STATEMENT = 20
SMALL_DOMAIN = 50_000  # combinations; so few are counted whatever the number of rows


def profile(engine: Engine, relation: Relation, exact_rows: int = EXACT_ROWS) -> Profile:
    """Measure a table and propose a role for each of its columns.

    One statement for each twenty columns, one for each column, pair and the whole combination; rows are never fetched.
    """
    with engine.transaction():
        (rows,) = engine.query_one("count_rows", table=relation)
        measure = _Measure(engine, relation, rows, max(1, -(-rows // exact_rows)))
        facts = [replace(f, unique_share=measure.unique_share([f])) for f in measure.facts()]
        proposals = {f.name: propose(f) for f in facts}
        quasi = [f for f in facts if proposals[f.name].role is Role.QUASI_IDENTIFIER]
        pairs = [measure.combination(pair) for pair in combinations(_most_telling(quasi), 2)]
        return Profile(
            relation=relation,
            rows=rows,
            columns=tuple(facts),
            proposals=proposals,
            pairs=tuple(sorted(pairs, key=lambda pair: -pair.unique_share)),
            combination=measure.combination(quasi) if quasi else None,
            exact=measure.modulus == 1,
        )


def _most_telling(quasi: list[ColumnFacts]) -> list[ColumnFacts]:
    chosen = {f.name for f in sorted(quasi, key=lambda f: -f.distinct)[:MOST_PAIRED]}
    return [f for f in quasi if f.name in chosen]


class _Measure:
    """The statements, on one table, looking at one of `modulus` parts of the values."""

    def __init__(self, engine: Engine, relation: Relation, rows: int, modulus: int) -> None:
        self._engine = engine
        self._relation = relation
        self._rows = rows
        self.modulus = modulus

    def facts(self) -> list[ColumnFacts]:
        """All columns' facts, the share of unique rows not yet among them."""
        columns = self._engine.columns(self._relation)
        starts = range(0, len(columns), COLUMNS_A_STATEMENT)
        return [facts for start in starts for facts in self._batch(columns[start : start + COLUMNS_A_STATEMENT])]

    def _batch(self, columns: Sequence[Column]) -> list[ColumnFacts]:
        values = [_comparable(column) for column in columns]
        parts = [{"value": value, "sampled": self._sampled([value], self.modulus)} for value in values]
        found = self._engine.query_one("measure_columns", relation=self._relation, columns=parts)
        return [self._column(column, found[5 * i : 5 * i + 5]) for i, column in enumerate(columns)]

    def _column(self, column: Column, found: tuple[int, int, int | None, int | None, int]) -> ColumnFacts:
        present, distinct, shortest, longest, digits = found
        return ColumnFacts(
            column=column,
            rows=self._rows,
            nulls=self._rows - present,
            distinct=min(distinct * self.modulus, present),
            exact=self.modulus == 1,
            unique_share=0.0,
            shortest=shortest,
            longest=longest,
            digits=digits,
        )

    def combination(self, facts: Sequence[ColumnFacts]) -> Combination:
        return Combination(tuple(f.name for f in facts), self.unique_share(facts))

    def unique_share(self, facts: Sequence[ColumnFacts]) -> float:
        """The share of rows alone with their values of these columns; 0 for an empty table."""
        modulus = self.modulus if self._is_large(facts) else 1
        values = [_comparable(f.column) for f in facts]
        sampled = self._sampled(values, modulus)
        (unique,) = self._engine.query_one(
            "measure_uniqueness", relation=self._relation, values=values, sampled=sampled
        )
        return min(1.0, unique * modulus / self._rows) if self._rows else 0.0

    def _is_large(self, facts: Sequence[ColumnFacts]) -> bool:
        domain = 1
        for f in facts:
            domain *= f.distinct + 1
        return domain > SMALL_DOMAIN

    def _sampled(self, values: Sequence[Markup], modulus: int) -> Markup:
        return self._engine.render.macro("hashes_to_zero", values, modulus) if modulus > 1 else Markup("TRUE")


def _comparable(column: Column) -> Markup:
    """The column's value, or its text where the engine may not know equality (JSON, geometry)."""
    text = "CAST({name} AS TEXT)" if column.kind is Kind.OTHER else "{name}"
    return expression(text, name=Identifier(column.name))
