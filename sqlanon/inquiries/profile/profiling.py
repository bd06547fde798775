"""Profiles a table inside the database: types, NULLs, distinct values, and how identifying columns are.

How identifying a set of columns is: the share of rows that are alone with their combination of values. Up to a million
rows it is counted. Above, it is estimated from the combinations whose hash falls into one part of `modulus`: all rows
of a combination are then in or out together, so that, unlike on a sample of rows, nothing looks unique that is not.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.inquiries.profile.column_facts import RARE, ColumnFacts, Combination, Dependence, Profile
from sqlanon.inquiries.profile.proposal import propose_roles
from sqlanon.inquiries.risk.identifiers import kind_by_values, measure_patterns
from sqlanon.plan.measurements import countable, in_part, portions
from sqlanon.plan.subject import find_repeating
from sqlanon.policy import Role
from sqlanon.sql import Identifier, Relation, Text
from sqlanon.values.expressions import double_of

EXACT_ROWS = 1_000_000


FEW_ROWS = 1_000  # of fewer, hardly any number is rare


MOST_PAIRED = 10  # columns, so 45 pairs


MOST_SENSITIVE = 3  # attributes that each of these is held against


COLUMNS_A_STATEMENT = 20


FEW_VALUES = 1_000  # distinct values of a column, of which twenty columns are counted by one statement


LEAST_WORDS = 5  # values that a vocabulary knows, to be grouped by it


MOST_WORDS = 300  # values of a column that are looked up


KNOWN_SHARE = 0.8  # of the rows that are not NULL


SMALL_DOMAIN = 50_000  # combinations; so few are counted whatever the number of rows


ROWS_A_VALUE = 10  # of a column with fewer, that each value goes with one value of another may be chance


FILLERS = ("other", "and", "of", "the", "in", "for")  # of occupations; they say nothing


FOREIGN = r"[^A-Za-z .,&()/_'-]"  # no letter or punctuation; a value without such, of known words, is no secret


def profile(engine: Engine, relation: Relation, exact_rows: int = EXACT_ROWS) -> Profile:
    """Measure a table and propose a role for each of its columns.

    One statement for each twenty columns, one for each 25 of texts or whole numbers, one for each twenty columns of
    few values, quasi-identifiers that are numbers and, up to two, of few texts; one question (see `Engine.query_each`)
    for each other column whose values are not all different, identifier, pair (of quasi-identifiers, and of one with a
    sensitive attribute) and the whole combination.
    Rows are never fetched, nor values but of a vocabulary's words.
    """
    with engine.transaction():
        (rows,) = engine.query_one("count_rows", table=relation)
        measure = _Measure(engine, relation, rows, max(1, -(-rows // exact_rows)))
        facts = measure.facts()
        proposals = propose_roles(facts)
        generalized = [name for name, proposal in proposals.items() if proposal.role is Role.QUASI_IDENTIFIER]
        finished = measure.words(measure.ends([f for f in facts if f.name in generalized]))
        facts = [finished.get(f.name, f) for f in facts]
        quasi = [f for f in facts if proposals[f.name].role is Role.QUASI_IDENTIFIER]
        identifiers = [f.column for f in facts if proposals[f.name].role is Role.IDENTIFIER and not _are_different(f)]
        telling = _most_telling(quasi)
        paired = list(combinations(telling, 2))
        sensitive = [f for f in facts if proposals[f.name].role is Role.SENSITIVE]
        judged = list(product(telling, sensitive[:MOST_SENSITIVE]))
        whole = [quasi, *([[*quasi, *sensitive]] if sensitive else [])] if quasi else []
        measured = measure.combinations([*paired, *judged, *whole])
        pairs, towards = measured[: len(paired)], measured[len(paired) : len(paired) + len(judged)]
        wholes = measured[len(paired) + len(judged) :]
        return Profile(
            relation=relation,
            rows=rows,
            columns=tuple(facts),
            proposals=proposals,
            pairs=tuple(sorted(pairs, key=lambda pair: -pair.unique_share)),
            combination=wholes[0] if wholes else None,
            tuples=wholes[-1].groups if wholes else 0,
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
        facts = [one for portion in portions(columns, COLUMNS_A_STATEMENT) for one in self._batch(portion)]
        counted = self._uniqueness_of_columns(facts)
        shares = measure_patterns(self._engine, self._relation, columns, self.modulus)
        return [
            replace(_with_share(one, *figures), identifies=kind_by_values(shares.get(one.name, {})))
            for one, figures in zip(facts, counted, strict=True)
        ]

    def _batch(self, columns: Sequence[Column]) -> list[ColumnFacts]:
        values = [countable(column) for column in columns]
        parts = [{"value": value, "sampled": in_part(self._engine, [value], self.modulus)} for value in values]
        figures = self._engine.query_one("inquiries/profile/measure_columns", relation=self._relation, columns=parts)
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

    def ends(self, facts: Sequence[ColumnFacts]) -> list[ColumnFacts]:
        """Measure the width of each numeric column's range, and whether the ends of the range are rare values."""
        numbers = [one for one in facts if one.column.kind.is_numeric]
        ends: dict[str, tuple[Any, ...]] = {}
        for columns, at_once in _by_values(numbers):
            questions = [self._question_of_ends(one) for one in columns]
            measured = self._engine.query_each("inquiries/profile/find_rare_ends", questions, at_once)
            ends |= {one.name: row for one, (row,) in zip(columns, measured, strict=True)}
        return [_with_ends(one, *ends[one.name]) if one.name in ends else one for one in facts]

    def _question_of_ends(self, facts: ColumnFacts) -> dict[str, Any]:
        render, column = self._engine.render, facts.column
        is_any_size = column.kind is Kind.DECIMAL and column.decimals is None  # doubles may not hold it
        value = double_of(render, Markup(Identifier(facts.name)), Kind.DECIMAL if is_any_size else Kind.FLOAT)
        is_finite = render.macro("is_finite_number", value, Kind.FLOAT.value)
        return {"relation": self._relation, "value": value, "is_finite": is_finite, "share": RARE}

    def words(self, facts: Sequence[ColumnFacts]) -> dict[str, ColumnFacts]:
        """The columns by name, those of texts with the values that a vocabulary knows, where most rows hold such."""
        columns = {one.name: one for one in facts}
        unknown = [one for one in facts if one.column.kind is Kind.TEXT and LEAST_WORDS <= one.distinct <= MOST_WORDS]
        for vocabulary in vocabularies():
            counts = self._engine.query_each(
                "inquiries/profile/find_words",
                [self._question_of_words(one, vocabulary) for one in unknown],
                COLUMNS_A_STATEMENT,
            )
            looked_up = {one.name: _known_words(one, vocabulary, n) for one, n in zip(unknown, counts, strict=True)}
            columns |= {name: replace(columns[name], groups_of=known) for name, known in looked_up.items() if known}
            unknown = [one for one in unknown if not looked_up[one.name]]
        return columns

    def _question_of_words(self, facts: ColumnFacts, vocabulary: Vocabulary) -> dict[str, Any]:
        return {
            "relation": self._relation,
            "value": Markup(Identifier(facts.name)),
            "foreign": Text(FOREIGN),
            "pattern": Text(vocabulary.pattern),
        }

    def combinations(self, groups: Sequence[Sequence[ColumnFacts]]) -> list[Combination]:
        """Measure how identifying the columns of each group are together."""
        counted = self._uniqueness(groups)
        return [
            Combination(tuple(one.name for one in facts), share, number, exact)
            for facts, (number, share, exact) in zip(groups, counted, strict=True)
        ]

    def _uniqueness_of_columns(self, facts: Sequence[ColumnFacts]) -> list[tuple[int, float, bool]]:
        """The same as `_uniqueness` of each column alone.

        Nothing is asked of columns whose values are all different, or one; those with few are asked together.
        """
        counted = {one.name: known for one in facts if (known := self._foretold(one)) is not None}
        rest = [one for one in facts if one.name not in counted]
        for columns, at_once in _by_values(rest):
            figures = self._uniqueness([[one] for one in columns], at_once)
            counted |= {one.name: figure for one, figure in zip(columns, figures, strict=True)}
        return [counted[one.name] for one in facts]

    def _foretold(self, facts: ColumnFacts) -> tuple[int, float, bool] | None:
        """Derive the figures from the numbers of values and of distinct ones; None where these do not tell."""
        present = self._rows - facts.nulls
        if self.modulus > 1 or not self._rows or (facts.distinct < present and facts.distinct > 1):
            return None
        unique = present if facts.distinct == present else 0
        return facts.distinct + (facts.nulls > 0), (unique + (facts.nulls == 1)) / self._rows, True

    def _uniqueness(self, groups: Sequence[Sequence[ColumnFacts]], at_once: int = 1) -> list[tuple[int, float, bool]]:
        """Combinations of values, the share of rows alone with theirs (of no rows: 0), and whether both are exact."""
        moduli = [self.modulus if prod(f.distinct + 1 for f in facts) > SMALL_DOMAIN else 1 for facts in groups]
        values = [[countable(one.column) for one in facts] for facts in groups]
        questions = [
            {"relation": self._relation, "values": of, "sampled": in_part(self._engine, of, modulus)}
            for of, modulus in zip(values, moduli, strict=True)
        ]
        counts = self._engine.query_each("inquiries/profile/measure_uniqueness", questions, at_once)
        return [
            (distinct * modulus, min(1.0, unique * modulus / self._rows) if self._rows else 0.0, modulus == 1)
            for ((distinct, unique),), modulus in zip(counts, moduli, strict=True)
        ]


def _are_different(facts: ColumnFacts) -> bool:
    """Tell whether all values of a column are known to be different."""
    return facts.exact and facts.distinct == facts.rows - facts.nulls


def _by_values(facts: Sequence[ColumnFacts]) -> list[tuple[list[ColumnFacts], int]]:
    """Divide columns by their numbers of values; with each part, how many of its columns are asked about together."""
    few = [one for one in facts if one.distinct <= FEW_VALUES]
    many = [one for one in facts if one.distinct > FEW_VALUES]
    return [(few, COLUMNS_A_STATEMENT), (many, 1)]


def _with_share(facts: ColumnFacts, values: int, share: float, exact: bool) -> ColumnFacts:
    """Note the share of unique rows, and an exact number of distinct values where there are few."""
    if not exact:
        return replace(facts, unique_share=share)
    return replace(facts, unique_share=share, distinct=values - (facts.nulls > 0), exact=True)


def _with_ends(facts: ColumnFacts, bottom: bool | None, top: bool | None, span: float | None) -> ColumnFacts:
    """Note the width of a range; of few rows nothing is said of its ends."""
    span = None if span is None or not math.isfinite(span) else float(span)
    if facts.rows - facts.nulls < FEW_ROWS:
        return replace(facts, span=span)
    return replace(facts, rare_bottom=bool(bottom), rare_top=bool(top), span=span)


def _known_words(
    facts: ColumnFacts, vocabulary: Vocabulary, counts: Sequence[tuple[Any, ...]]
) -> dict[str, tuple[str, ...]]:
    """The values that a vocabulary knows, with their groups; none where too few rows hold such.

    counts: values that are made of its words, each with the rows that hold it.
    """
    known = {text: groups for text, _ in counts if (groups := vocabulary.groups_of(text)) is not None}
    rows = sum(n for text, n in counts if text in known)
    return known if len(known) >= LEAST_WORDS and rows >= KNOWN_SHARE * (facts.rows - facts.nulls) else {}


def find_dependences(
    facts: Sequence[ColumnFacts], pairs: Sequence[Combination], towards: Sequence[Combination]
) -> tuple[Dependence, ...]:
    """List the functional dependences that pairs of columns show.

    A column determines another if there are as many pairs of their values as it has values. Numbers that are estimates
    tell nothing.

    pairs: in which either column may determine the other; towards: in which the first may determine the second.
    """
    known = {one.name: one for one in facts if one.exact}
    dependences = [*_among(known, pairs, both=True), *_among(known, towards, both=False)]
    return tuple(dependences)


def _among(known: dict[str, ColumnFacts], pairs: Sequence[Combination], *, both: bool) -> Iterator[Dependence]:
    for pair in pairs:
        if not pair.exact or not known.keys() >= set(pair.columns):
            continue
        first, second = (known[name] for name in pair.columns)
        forth, back = _determines(first, second, pair), _determines(second, first, pair)
        if forth:
            yield Dependence(first.name, second.name, mutual=back and both)
        elif back and both:
            yield Dependence(second.name, first.name, mutual=False)


def _determines(one: ColumnFacts, other: ColumnFacts, pair: Combination) -> bool:
    is_telling = one.groups * ROWS_A_VALUE <= one.rows and other.groups > 1
    return is_telling and pair.groups == one.groups


@dataclass(frozen=True)
class Vocabulary:
    """Words about one thing, each with its groups from fine to coarse.

    phrases: whether a value is one of them as a whole; else each of its words is, and the last one says the groups.
    """

    groups: Mapping[str, tuple[str, ...]]
    phrases: bool

    @property
    def pattern(self) -> str:
        """A regular expression of the values that are known, in lower case and with blanks for all but letters."""
        words = "|".join([*self.groups, *(() if self.phrases else FILLERS)])
        return f"^({words})$" if self.phrases else f"^({words})( ({words}))*$"

    def groups_of(self, value: str) -> tuple[str, ...] | None:
        """The groups of a value; None where it is not known."""
        plain = re.sub("[^a-z]+", " ", value.lower()).strip()
        known = [plain] if self.phrases else reversed(plain.split())
        return next((self.groups[word] for word in known if word in self.groups), None)


@functools.cache
def vocabularies() -> tuple[Vocabulary, ...]:
    """All that are known; of `words.csv`."""
    text = (Path(__file__).parent / "words.csv").read_text(encoding="utf-8")
    lines = [line.split(";") for line in text.splitlines() if line and not line.startswith("#")]
    about = {kind: {} for kind, *_ in lines}  # type: dict[str, dict[str, tuple[str, ...]]]
    for kind, words, *labels in lines:
        about[kind].update(dict.fromkeys(words.split("|"), tuple(labels)))
    return tuple(Vocabulary(groups, phrases=kind == "country") for kind, groups in about.items())
