"""Subsets of columns and minimal sample uniques that single rows out, over columns that are coded once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlanon.engines.dialects import find_dialect
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.coded_columns import code_columns
from sqlanon.inquiries.risk.measured_table import RiskSource
from sqlanon.inquiries.risk.row_risks import PERSON, RowRisks
from sqlanon.inquiries.risk.subsets import ENOUGH, measure_subsets, require_few
from sqlanon.inquiries.risk.suda import FRACTION, measure_suda
from sqlanon.results.risk import TableRisk
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.work.workspace import TemporaryWorkspace, Workspace


@dataclass(frozen=True)
class Singling:
    """Measures to take: subsets of up to so many columns, minimal sample uniques of up to so many; None for neither.

    enough: the distinction from which on the supersets of a subset are left out.
    fraction: rows of the table over those of the population that it samples.
    """

    subsets: int | None = None
    suda: int | None = None
    enough: float = ENOUGH
    fraction: float = FRACTION

    @property
    def is_wanted(self) -> bool:
        """Tell whether anything is to be measured, for which the session must make temporary tables."""
        return self.subsets is not None or self.suda is not None

    def require_engine(self, url: str | None) -> None:
        """Raise PolicyError, before anybody connects, where the database of a URL does not measure it."""
        dialect = None if url is None else find_dialect(url)
        if self.is_wanted and dialect is not None:
            dialect.codes_columns.require()

    def require(self, columns: int) -> None:
        """Raise PolicyError where something can't be measured of so many columns."""
        for name, most in (("subsets", self.subsets), ("suda", self.suda)):
            if most is not None and most < 1:
                raise PolicyError(f"{name}: a subset has 1 column at least.")
            if most is not None:
                require_few(columns, most)


def measure_singling(
    source: RiskSource, risk: TableRisk, singling: Singling, of_rows: RowRisks | None = None
) -> TableRisk:
    """Add to the risk of a table what singles its rows out; with a subject its persons, each of whom is one row then.

    The session makes temporary tables, which end with it.

    of_rows: the table of risks to write, with the scores where minimal uniques are measured.

    Raises PolicyError where there are too many subsets, the engine does not measure them, or rows of a person differ.
    """
    if of_rows is not None and singling.suda is None:
        with source.engine.transaction():
            of_rows.write()
    if not singling.is_wanted:
        return risk
    engine = source.engine
    singling.require(len(source.quasi_identifiers))
    engine.traits.codes_columns.require()
    workspace = TemporaryWorkspace(engine)
    with engine.transaction():
        carried, table = () if of_rows is None else of_rows.carried, source.table
        if source.person is not None:
            table = _create_persons(source, risk, workspace)
            carried = [(source.person, PERSON)]
        coded = code_columns(engine, workspace, table, source.quasi_identifiers, carried)
        if singling.subsets is not None:
            risk = replace(risk, subsets=measure_subsets(engine, workspace, coded, singling.subsets, singling.enough))
        if singling.suda is not None:
            suda, scores = measure_suda(engine, workspace, coded, singling.suda, singling.fraction)
            if of_rows is not None:
                write = of_rows.write_scored if source.subject is None else of_rows.write_scored_persons
                write(coded, scores)
            workspace.drop(scores.table)
            risk = replace(risk, suda=suda)
        workspace.drop(coded.rows, coded.tuples, *([] if table == source.table else [table]))
    return risk


def _create_persons(source: RiskSource, risk: TableRisk, workspace: Workspace) -> Relation:
    """Write one row of each person, with the subject and the columns that are measured, into a work table.

    Raises PolicyError where the rows of a person differ there: such a person is not alone by any one of these rows.
    """
    if risk.persons is not None and risk.members > risk.persons:
        raise PolicyError(
            f"--subsets and --suda look at one row a person, and rows of one '{risk.subject}' differ in these columns"
            f" ({risk.members - risk.persons:,} times). Measure a view with one row a person; or without a subject, as"
            " rows are counted then."
        )
    assert source.subject is not None
    names = [Identifier(column.name) for column in (*source.quasi_identifiers, source.subject)]
    persons = workspace.table("persons")
    members = macro("verification.members", source.table, source.person, names, source.keys)
    source.engine.run("inquiries/risk/create_persons", persons=persons, members=members, columns=names)
    return persons
