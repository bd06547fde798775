"""Profiles a table inside the database: types, NULLs, distinct values, and how identifying columns are.

How identifying a set of columns is: the share of rows that are alone with their combination of values. Up to a million
rows it is counted. Above, it is estimated from the combinations whose hash falls into one part of `modulus`: all rows
of a combination are then in or out together, so that, unlike on a sample of rows, nothing looks unique that is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from math import prod

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.plan.measuring import countable, in_part, portions
from sqlanon.plan.repeating import find_repeating
from sqlanon.policy import Role
from sqlanon.profile.dependences import find_dependences
from sqlanon.profile.facts import RARE, ColumnFacts, Combination, Profile
from sqlanon.profile.proposal import propose
from sqlanon.profile.vocabulary import PUNCTUATION, vocabularies
from sqlanon.sql import Identifier, Relation, Text

EXACT_ROWS = 1_000_000
FEW_ROWS = 1_000  # of fewer, hardly any number is rare
MOST_PAIRED = 10  # columns, so 45 pairs
MOST_SENSITIVE = 3  # attributes that each of these is held against
COLUMNS_A_STATEMENT = 20
LEAST_WORDS = 5  # values that a vocabulary knows, to be grouped by it
MOST_WORDS = 300  # values of a column that are looked up
KNOWN_SHARE = 0.8  # of the rows that are not NULL
SMALL_DOMAIN = 50_000  # combinations; so few are counted whatever the number of rows


def profile(engine: Engine, relation: Relation, exact_rows: int = EXACT_ROWS) -> Profile:
    """Measure a table and propose a role for each of its columns.

    One statement for each twenty columns, one for each column, identifier, quasi-identifier that is a number, pair (of
    quasi-identifiers, and of one with a sensitive attribute) and the whole combination, and up to two for each
    quasi-identifier of few texts. Rows are never fetched, nor values but of a vocabulary's words.
    """
    with engine.transaction():
        (rows,) = engine.query_one("count_rows", table=relation)
        measure = _Measure(engine, relation, rows, max(1, -(-rows // exact_rows)))
        facts = measure.facts()
        proposals = {f.name: propose(f) for f in facts}
        generalized = [name for name, proposal in proposals.items() if proposal.role is Role.QUASI_IDENTIFIER]
        facts = [measure.words(measure.ends(f)) if f.name in generalized else f for f in facts]
        quasi = [f for f in facts if proposals[f.name].role is Role.QUASI_IDENTIFIER]
        identifiers = [f.column for f in facts if proposals[f.name].role is Role.IDENTIFIER]
        telling = _most_telling(quasi)
        pairs = [measure.combination(pair) for pair in combinations(telling, 2)]
        sensitive = [f for f in facts if proposals[f.name].role is Role.SENSITIVE]
        towards = [measure.combination(pair) for pair in product(telling, sensitive[:MOST_SENSITIVE])]
        combination = measure.combination(quasi) if quasi else None
        everything = measure.combination([*quasi, *sensitive]) if quasi and sensitive else combination
        return Profile(
            relation=relation,
            rows=rows,
            columns=tuple(facts),
            proposals=proposals,
            pairs=tuple(sorted(pairs, key=lambda pair: -pair.unique_share)),
            combination=combination,
            tuples=everything.groups if everything is not None else 0,
            exact=measure.modulus == 1,
            repetition=find_repeating(engine, relation, identifiers),
            dependences=find_dependences(facts, pairs, towards),
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
        """All columns' facts, in the table's order."""
        columns = self._engine.columns(self._relation)
        batches = [self._batch(portion) for portion in portions(columns, COLUMNS_A_STATEMENT)]
        return [self._with_share(facts) for batch in batches for facts in batch]

    def _batch(self, columns: Sequence[Column]) -> list[ColumnFacts]:
        values = [countable(column) for column in columns]
        parts = [{"value": value, "sampled": in_part(self._engine, [value], self.modulus)} for value in values]
        figures = self._engine.query_one("profile/measure_columns", relation=self._relation, columns=parts)
        return [self._column(column, figures[5 * i : 5 * i + 5]) for i, column in enumerate(columns)]

    def _column(self, column: Column, counts: tuple[int, int, int | None, int | None, int]) -> ColumnFacts:
        present, distinct, shortest, longest, digits = counts
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

    def _with_share(self, facts: ColumnFacts) -> ColumnFacts:
        """The share of unique rows, and an exact number of distinct values where there are few."""
        values, share, exact = self._uniqueness([facts])
        if not exact:
            return replace(facts, unique_share=share)
        return replace(facts, unique_share=share, distinct=values - (facts.nulls > 0), exact=True)

    def ends(self, facts: ColumnFacts) -> ColumnFacts:
        """Measure the width of a numeric column's range, and whether the ends of the range are rare values."""
        column = facts.column
        if not column.kind.is_numeric:
            return facts
        value = Markup(Identifier(column.name))
        is_finite = self._engine.render.macro("is_finite_number", value, column.kind.value)
        values = {"relation": self._relation, "value": value, "is_finite": is_finite, "share": RARE}
        bottom, top, span = self._engine.query_one("profile/find_rare_ends", **values)
        span = None if span is None or not math.isfinite(span) else float(span)
        if facts.rows - facts.nulls < FEW_ROWS:
            return replace(facts, span=span)
        return replace(facts, rare_bottom=bool(bottom), rare_top=bool(top), span=span)

    def words(self, facts: ColumnFacts) -> ColumnFacts:
        """The values of a column of texts that a vocabulary knows, where most rows hold such."""
        if facts.column.kind is not Kind.TEXT or not LEAST_WORDS <= facts.distinct <= MOST_WORDS:
            return facts
        value = Markup(Identifier(facts.name))
        for vocabulary in vocabularies():
            counts = self._engine.query(
                "profile/find_words",
                relation=self._relation,
                value=value,
                plain=Text(PUNCTUATION),
                pattern=Text(vocabulary.pattern),
            )
            known = {text: groups for text, _ in counts if (groups := vocabulary.groups_of(text)) is not None}
            rows = sum(n for text, n in counts if text in known)
            if len(known) >= LEAST_WORDS and rows >= KNOWN_SHARE * (facts.rows - facts.nulls):
                return replace(facts, groups_of=known)
        return facts

    def combination(self, facts: Sequence[ColumnFacts]) -> Combination:
        """Measure how identifying columns are together."""
        groups, share, exact = self._uniqueness(facts)
        return Combination(tuple(f.name for f in facts), share, groups, exact)

    def _uniqueness(self, facts: Sequence[ColumnFacts]) -> tuple[int, float, bool]:
        """Combinations of values, the share of rows alone with theirs (of no rows: 0), and whether both are exact."""
        modulus = self.modulus if prod(f.distinct + 1 for f in facts) > SMALL_DOMAIN else 1
        values = [countable(f.column) for f in facts]
        sampled = in_part(self._engine, values, modulus)
        distinct, unique = self._engine.query_one(
            "profile/measure_uniqueness", relation=self._relation, values=values, sampled=sampled
        )
        share = min(1.0, unique * modulus / self._rows) if self._rows else 0.0
        return distinct * modulus, share, modulus == 1
