"""Risk of each row, written into a table of the database beside the row's key; no row leaves the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.columns import Column
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.class_sizes import RISK
from sqlanon.inquiries.risk.coded_columns import CodedColumns
from sqlanon.inquiries.risk.measured_table import RiskSource
from sqlanon.inquiries.risk.suda import SudaScores
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.new_tables import find_new_table
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import comparable

COLUMNS = ("class_size", "individual_risk", "suda_score", "dis_suda_score")
_KEY, PERSON, _WEIGHT = (Identifier(name) for name in ("row_key", "row_person", "row_weight"))


@dataclass(frozen=True)
class RowRisks:
    """The table to write, and the column of the source that tells its rows apart; see `row_risks`.

    fraction: of the population that the source is a random sample of, where rows have no weights.
    """

    source: RiskSource
    target: Relation
    key: Column
    fraction: float = 1.0

    @property
    def carried(self) -> list[tuple[Expression, Identifier]]:
        """Columns that the coded rows of the source have to carry."""
        source = self.source
        parts = [(self._key, _KEY)]
        if source.person is not None:
            parts.append((source.person, PERSON))
        if not isinstance(weight := source.weight(), float):
            parts.append((weight, _WEIGHT))
        return parts

    def write(self) -> None:
        """Write class sizes and individual risks, by the values of the source."""
        source = self.source
        values = {"table": source.table, "keys": source.keys, "person": source.person}
        self._write(values, [(self._key, _KEY)], source.weight(1 / self.fraction), None)

    def write_scored_persons(self, coded: CodedColumns, scores: SudaScores) -> None:
        """Write the same and the SUDA scores of each row's person, who is one of the coded rows, under `PERSON`."""
        source, number = self.source, Identifier("number")
        values = {"table": source.table, "keys": source.keys, "person": source.person}
        assert source.person is not None
        of_persons = macro("risk.scores_of_persons", coded.rows, scores.table, PERSON)
        columns = [(self._key, _KEY), (source.person, number)]
        self._write(values, columns, source.weight(1 / self.fraction), scores, of_persons)

    def write_scored(self, coded: CodedColumns, scores: SudaScores) -> None:
        """Write the same and SUDA scores, by the coded rows, which carry what `carried` lists."""
        source, number = self.source, Identifier("number")
        values = {
            "table": coded.rows,
            "keys": coded.word_columns,
            "person": None if source.person is None else PERSON,
        }
        weight = 1 / self.fraction if source.weights is None else _WEIGHT
        self._write(values, [(_KEY, _KEY), (number, number)], weight, scores)

    @property
    def _key(self) -> Expression:
        return Markup(Identifier(self.key.name))

    def _write(
        self,
        values: dict[str, Any],
        columns: Sequence[tuple[Expression | Identifier, Identifier]],
        weight: Expression | Identifier | float,
        scores: SudaScores | None,
        numbered: Expression | None = None,
    ) -> None:
        """Write the table; `numbered` are the scores by the numbers of `columns`, where the coded rows have others."""
        engine = self.source.engine
        of_persons = [(values["person"], Identifier("person_of_row"))] if values["person"] is not None else []
        engine.run(
            "inquiries/risk/write_rows",
            target=self.target,
            key=Identifier(self.key.name),
            columns=[*columns, *of_persons],
            scores=None if scores is None else numbered or scores.table,
            dis=None if scores is None else scores.dis,
            weight=weight,
            risk=RISK,
            **values,
        )
        publisher_of(engine).guard(self.target)


def row_risks(source: RiskSource, table: str, key: str, fraction: float | None) -> RowRisks:
    """Find the place of the table, and the column of the key.

    Raises PolicyError where the table exists or can't be made, or the key is no column, has the name of a figure, or
    does not tell the rows apart.
    """
    engine = source.engine
    target = find_new_table(engine, table, "--rows-to")
    require_columns(engine, source.table, [key])
    if key.lower() in COLUMNS:
        raise PolicyError(f"The key '{key}' has the name of a column that --rows-to writes: rename it in the source.")
    (column,) = (one for one in engine.columns(source.table) if one.name == key)
    _require_telling_apart(source, column)
    return RowRisks(source, target, column, fraction or 1.0)


def _require_telling_apart(source: RiskSource, key: Column) -> None:
    """Refuse a key that is NULL in some row or has a value in two rows: nobody could say whose each risk is."""
    value = comparable(source.engine, Markup(Identifier(key.name)), key.kind)
    (rows,) = source.engine.query_one("count_rows", table=source.table)
    known, different, _ = map(int, source.engine.query_one("plan/count_repeats", table=source.table, value=value))
    if different < rows:
        raise PolicyError(
            f"The key '{key.name}' does not tell the rows apart: of {rows:,} rows {rows - known:,} have none (NULL),"
            f" and the other {known:,} have {different:,} different keys. Name a column that is different in each row,"
            " or number the rows in the source."
        )
