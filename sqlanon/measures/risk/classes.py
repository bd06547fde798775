"""Class sizes of a table: of its rows, or of the persons whose rows they are."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.errors import PolicyError
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.measures.risk.source import RiskSource


@dataclass(frozen=True)
class Members:
    """The classes of a table by the number of their members, the rows, and the persons where there is a subject."""

    statistics: ClassStatistics
    rows: int
    persons: int | None = None

    @property
    def several_classes(self) -> int:
        """The classes beyond the first of each person: 0 where all rows of each person are of one class."""
        return 0 if self.persons is None else self.statistics.rows - self.persons

    @property
    def is_unique(self) -> bool:
        """Tell whether no person has two rows."""
        return self.persons is not None and self.persons == self.rows


def count_members(source: RiskSource) -> Members:
    """Count the classes of each size: one GROUP BY over the table; with a subject two, and one of its values.

    Raises PolicyError where the subject is NULL in some row.
    """
    engine, table, person = source.engine, source.table, source.person
    rows, persons = None, None
    if person is not None:
        rows, persons = _count_persons(source)
    with engine.grouping_by_hash():
        counted = engine.query("risk/count_classes", table=table, keys=source.keys, person=person)
    sizes = tuple((int(size), int(classes)) for size, classes in counted)
    members = sum(size * classes for size, classes in sizes)
    return Members(ClassStatistics(members, 0, sizes), members if rows is None else rows, persons)


def _count_persons(source: RiskSource) -> tuple[int, int]:
    """Count the rows and the persons of a table with a subject."""
    assert source.subject is not None
    (rows,) = source.engine.query_one("count_rows", table=source.table)
    known, persons, _ = source.engine.query_one("plan/count_repeats", table=source.table, value=source.person)
    if known < rows:
        raise PolicyError(
            f"The subject '{source.subject.name}' is NULL in {rows - known:,} of {rows:,} rows, so nobody knows whose"
            " these are: leave them out in a view, or give each a person of its own there."
        )
    return int(rows), int(persons)
