"""Tables whose rows are of persons, and what several tests of them share."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from sqlanon.errors import PolicyError
from tests.run_support import Database, Row

COLUMNS = {"who": "VARCHAR(9)", "age": "INTEGER", "town": "VARCHAR(9)", "ill": "VARCHAR(9)", "paid": "INTEGER"}
DRAWN = {"role": "identifier", "show": "surrogate"}
QUASI = {"role": "quasi-identifier"}
KEPT = {"ill": {"role": "sensitive"}, "paid": {"role": "sensitive"}}
ROLES: dict[str, Any] = {"who": DRAWN, "age": QUASI, "town": QUASI, **KEPT}
Classes = dict[Row, set[Any]]


def groups(rows: list[Row]) -> tuple[Classes, dict[Row, dict[Any, set[Any]]]]:
    """The persons of each released class, and of each of its illnesses; NULL is another person in each row."""
    persons: Classes = defaultdict(set)
    ill: dict[Row, dict[Any, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for place, (who, age, town, value, _) in enumerate(rows):
        person = ("row", place) if who is None else who
        persons[age, town].add(person)
        ill[age, town][value].add(person)
    return persons, ill


@st.composite
def changing_tables(draw: st.DrawFn) -> list[Row]:
    """Rows of persons, whose quasi-identifiers may be others in each."""
    row = st.tuples(
        st.sampled_from([None, *(f"p{n}" for n in range(9))]),
        st.integers(20, 29),
        st.sampled_from("abc"),
        st.sampled_from(["flu", "rash", None]),
        st.integers(1, 3),
    )
    return draw(st.lists(row, min_size=8, max_size=40))


K = {"model": "k-anonymity", "k": 3}
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # each case is a run, and tables are small as they are
CASES = {"deadline": None, "phases": UNSHRUNK, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
ORACLE = settings(max_examples=8, **CASES)


def refused(database: Database, rows: list[Row], message: str, roles: Any = ROLES, **more: Any) -> None:
    table = database.create(COLUMNS, rows)
    with pytest.raises(PolicyError, match=message):
        database.release(table, roles, **{"subject": "who", **more})


ROWS = [(f"p{n % 4}", 20 + n % 4, "a", "flu", n) for n in range(12)]
LEVELS = {"hierarchy": {"intervals": [5, 10]}}
GROUPED = ROLES | {"who": DRAWN | {"nulls": "each"}, "age": QUASI | LEVELS, "town": QUASI | {"hierarchy": "suppress"}}
CLOSE = {"model": "t-closeness", "attribute": "ill", "t": 0.4}
MOVED = [*ROWS, *((f"p{n}", 30 + n % 4, "b", "rash", n) for n in (0, 1, 2, 3)), ("p4", 33, "b", "flu", 4)]


def persons_by(rows: list[Row], column: int) -> dict[Any, set[Any]]:
    """The persons who have each value of a column in the whole table."""
    having: dict[Any, set[Any]] = defaultdict(set)
    for place, row in enumerate(rows):
        having[row[column]].add(("row", place) if row[0] is None else row[0])
    return having
