"""Figures that handbooks and other programs print of small tables, on both engines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqlanon import table_risk
from sqlanon.results.codec import to_json
from tests.cli.support import query
from tests.run_support import Row, open_database

GUIDE = [
    ("Urban", "Female", "Secondary incomplete", "Employed", 180.0),
    ("Urban", "Female", "Secondary incomplete", "Employed", 180.0),
    ("Urban", "Female", "Primary incomplete", "Non-LF", 215.0),
    ("Urban", "Male", "Secondary complete", "Employed", 76.0),
    ("Rural", "Female", "Secondary complete", "Unemployed", 186.0),
    ("Urban", "Male", "Secondary complete", "Employed", 76.0),
    ("Urban", "Female", "Primary complete", "Non-LF", 180.0),
    ("Urban", "Male", "Post-secondary", "Unemployed", 215.0),
    ("Urban", "Female", "Secondary incomplete", "Non-LF", 186.0),
    ("Urban", "Female", "Secondary incomplete", "Non-LF", 76.0),
]
SDCMICRO = [
    ("2", "3", "1", 18.0),
    ("3", "3", "3", 45.5),
    ("2", "3", "1", 39.0),
    ("2", "3", "2", 17.0),
    ("3", "3", "1", 92.0),
    ("3", "3", "1", 8.0),
    ("1", "4", "1", 123.5),
    ("2", "3", "1", 51.0),
]


def create(url: str, rows: Sequence[Row], last: str) -> tuple[str, list[str]]:
    """A table of numbered rows whose last column has this type; its name, and those of the columns before it."""
    names = [f"q{place}" for place in range(len(rows[0]) - 1)]
    columns = {"number": "INTEGER", **dict.fromkeys(names, "VARCHAR(30)"), "last": last}
    with open_database(url) as database:
        return database.create(columns, [(number, *row) for number, row in enumerate(rows)]), names


@pytest.mark.parametrize(
    ("rows", "printed"),
    [
        # World Bank and IHSN, "Statistical disclosure control: a practice guide", listing 4.3 of table 4.1.
        (
            GUIDE,
            "0.005424520 0.005424520 0.025096439 0.012563425 0.028247279"
            " 0.012563425 0.029010932 0.025096439 0.007403834 0.007403834",
        ),
        # sdcMicro's own test of `indivRisk(method = "exact")`, with a class of three.
        (
            SDCMICRO,
            "0.01355297 0.08579129 0.01355297 0.17707583 0.01877883 0.01877883 0.03931625 0.01355297",
        ),
    ],
)
def test_individual_risks_are_the_printed_ones(database_url: str, rows: list[Row], printed: str) -> None:
    table, names = create(database_url, rows, "DOUBLE PRECISION")
    risk = table_risk(database_url, table, names, weights="last", rows_to=f"{table}_rows", key="number")
    found = [one for (one,) in query(database_url, f"SELECT individual_risk FROM {table}_rows ORDER BY number")]
    expected = [float(figure) for figure in printed.split()]
    assert found == pytest.approx(expected, abs=1e-8)
    assert risk.individual is not None
    assert risk.individual.sum == pytest.approx(sum(expected), abs=1e-7)
    assert risk.individual.max == pytest.approx(max(expected), abs=1e-8)


def test_distinction_and_separation_are_those_of_arx(database_url: str) -> None:
    """The example of ARX's tests, "calculated by hand"."""
    rows = [("20", "f", "CA"), ("30", "f", "CA"), ("40", "f", "TX"), ("20", "m", "NY"), ("40", "m", "CA")]
    table, names = create(database_url, rows, "VARCHAR(2)")
    subsets = table_risk(database_url, table, [*names, "last"], subsets=3).subsets
    assert subsets is not None
    assert {one.columns: (one.distinction, pytest.approx(one.separation)) for one in subsets} == {
        ("q1",): (0.4, 0.6),
        ("last",): (0.6, 0.7),
        ("q0",): (0.6, 0.8),
        ("q1", "last"): (0.8, 0.9),
        ("q0", "last"): (1.0, 1.0),
        ("q0", "q1"): (1.0, 1.0),
    }


@pytest.mark.either_engine
def test_what_was_not_measured_is_null(database_url: str) -> None:
    """Each name is there in every result, as not all can be measured of one table at once."""
    table, names = create(database_url, SDCMICRO, "DOUBLE PRECISION")
    plain = to_json(table_risk(database_url, table, names))
    for name in ("persons", "journalist", "population_uniqueness", "individual", "suda", "subsets"):
        assert plain[name] is None
    assert plain["identifiers"] == []
