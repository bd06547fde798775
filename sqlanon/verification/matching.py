"""The independent check of a table in which a wildcard fits any value: models are held to the rows that fit each row.

Two rows fit where no column shows two different values, or, of columns with hierarchies, two groups of which none holds
the other. Unlike membership of a class this is no equivalence: rows that
fit a third need not fit each other. A row is a group of its own, of all rows that fit it, itself among them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.policy import Hierarchy
from sqlanon.results.measures import ModelResult
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.staging.labels import EVERYTHING
from sqlanon.verification.cell_levels import compared_columns, unfold
from sqlanon.verification.table_check import TableCheck
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import live_columns, verify_groups

WORD_BITS = 62  # of a signed BIGINT


def verify_matching(
    engine: Engine,
    table: Relation,
    quasi_identifiers: Sequence[str],
    models: Sequence[PrivacyModel],
    subsets: Mapping[int, int],
    hierarchies: Mapping[str, Hierarchy],
) -> Verification:
    """Check a table whose quasi-identifiers are compared as texts, of which `*` fits any.

    A file whose column shows no `*` may have been read as numbers.

    subsets: numbers of columns, each with the rows that must fit every row in any combination of so many.
    hierarchies: of quasi-identifiers that may show groups, which fit what they hold.

    Raises PolicyError where a group can't be told by its label; and what `verify_table` does.
    """
    relation, columns = live_columns(engine, table)
    columns |= {name: replace(columns[name], kind=Kind.TEXT) for name in quasi_identifiers if name in columns}
    read: Relation | Expression = relation
    levels: Mapping[str, tuple[str, ...]] = {}
    if hierarchies:
        read, columns, levels = unfold(engine, relation, columns, hierarchies)
    compared = compared_columns(quasi_identifiers, levels)
    (rows,) = engine.query_one("count_rows", table=relation)
    check = MatchingCheck(engine, read, columns, _joined(compared), None, row_count=int(rows))
    verification = verify_groups(check, models, {}, ())
    combined = tuple(check.verify_combinations(compared, size, rows) for size, rows in sorted(subsets.items()))
    return replace(verification, models=(*verification.models, *combined))


def _joined(columns: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(itertools.chain.from_iterable(columns))


@dataclass(frozen=True)
class MatchingStatistics(ClassStatistics):
    """The rows that fit each row: `sizes` has each number of these, with the number of rows that so many fit."""

    fits: ClassVar[bool] = True

    @property
    def mean_class_size(self) -> float:
        return sum(size * rows for size, rows in self.sizes) / self.rows if self.rows else 0.0

    @property
    def prosecutor_mean(self) -> float:
        return sum(rows / size for size, rows in self.sizes) / self.rows if self.rows else 0.0

    @property
    def marketer(self) -> float:
        return self.prosecutor_mean

    def discernibility(self, omitted: int = 0) -> int:
        return sum(size * rows for size, rows in self.sizes) + omitted * (self.rows + omitted)


@dataclass(frozen=True)
class MatchingCheck(TableCheck):
    """The statements over one table, which has so many rows."""

    row_count: int = field(kw_only=True)

    def verify_combinations(self, compared: Sequence[tuple[str, ...]], size: int, rows: int) -> ModelResult:
        """Check every combination of so many quasi-identifiers alone; the result is of the worst, and counts over all.

        compared: the columns in which rows are compared, by quasi-identifier.
        """
        model, results = KAnonymity(rows), []
        for chosen in itertools.combinations(compared, size):
            _, ((result, _),) = replace(self, quasi_identifiers=_joined(chosen)).run(None, [model], None)
            results.append(result)
        worst = [one.worst for one in results if one.worst is not None]
        return ModelResult(
            model.name,
            {"k": rows, "columns": size},
            satisfied=all(one.satisfied for one in results),
            worst=min(worst, default=None),
            violations=sum(one.violations for one in results),
            violating_rows=sum(one.violating_rows for one in results),
        )

    def statistics_of(self, rows: int, suppressed: int, sizes: tuple[tuple[int, int], ...]) -> ClassStatistics:
        return MatchingStatistics(rows, suppressed, sizes)

    def template_of(self, attribute: str | None) -> str:
        return "verification/measure_matching" if attribute is None else "verification/measure_matching_values"

    def values_of(self, attribute: str | None, hierarchy: HierarchyTable | None, texts: bool) -> dict[str, Any]:
        values = super().values_of(attribute, hierarchy, texts)
        places = range(len(self.quasi_identifiers))
        bits = [(n + 1).bit_length() for n in self._count_different(values["columns"])]  # of a value's number, from 1
        words = _packed(bits)
        shifts = {place: sum(bits[word[0] : place]) for word in words for place in word}
        return values | {
            "weighs": True,
            "stars": macro("verification.starred_bits", [(place, 1 << place) for place in places], Text(EVERYTHING)),
            "words": [
                {
                    "name": Identifier(f"w{number}"),
                    "mask": Identifier(f"m{number}"),
                    "ranks": [(place, 1 << shifts[place]) for place in word],
                }
                for number, word in enumerate(words)
            ],
            "masks": [
                {
                    "name": Identifier(f"m{number}"),
                    "bits": [(1 << place, ((1 << bits[place]) - 1) << shifts[place]) for place in word],
                }
                for number, word in enumerate(words)
            ],
        }

    def _count_different(self, columns: Sequence[Expression]) -> list[int]:
        """Count the different values of each column; or take the rows for them, where these fit into one word."""
        if (self.row_count + 1).bit_length() * len(columns) <= WORD_BITS:
            return [self.row_count] * len(columns)
        counted = self.engine.query_one("verification/count_different", table=self.table, columns=columns)
        return [int(n) for n in counted]


def _packed(bits: Sequence[int]) -> list[range]:
    """Divide columns into words, by the bits of each: neighbours that fit into one are together."""
    words, begin = [], 0
    for place in range(len(bits)):
        if sum(bits[begin : place + 1]) > WORD_BITS:
            words.append(range(begin, place))
            begin = place
    return [*words, range(begin, len(bits))] if bits else []
