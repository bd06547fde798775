"""The targets of the synthetic table, by hand, and that a table can be made again."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from adult import DATA, create_workload_table
from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement, parquet_statement, targets

BY_HAND = [
    # salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan
    ((50_000, 20_000, 39, 0, 1, 1, 100_000, 30, 100_000), {"c2": 1, "c7": 1, "r7": 6_900.0, "c10": 1, "r10": 56_900.0}),
    ((74_999, 10_000, 40, 4, 1, 1, 500_000, 20, 500_000), {"c2": 0, "c7": 0, "r7": -63_050.67, "r10": 26_949.33}),
    ((125_000, 0, 59, 2, 1, 9, 900_000, 29, 0), {"c2": 1, "c7": 1, "r7": 63_750.0, "r10": 225_750.0, "r7_fifth": 5}),
    ((75_001, 0, 60, 4, 1, 9, 900_000, 3, 0), {"c2": 0, "c7": 1, "r7": 30_250.67, "r10": 20_250.67, "r7_fifth": 5}),
    ((25_000, 10_000, 80, 4, 1, 9, 900_000, 3, 17_250), {"c2": 1, "c7": 0, "r7": 0.0, "c10": 0, "r10": -6_550.0}),
    ((100_001, 0, 20, 0, 1, 1, 50_000, 1, 255_000), {"c2": 0, "r7": -3_999.33, "r7_fifth": 3, "c10": 1}),
]


@pytest.mark.parametrize(("row", "expected"), BY_HAND)
def test_targets_are_those_of_the_paper(row: tuple[int, ...], expected: dict[str, float]) -> None:
    values = ", ".join(f"{value} AS {name}" for name, value in zip(QUASI_IDENTIFIERS, row, strict=True))
    shown = ", ".join(f"{value} AS {name}" for name, value in targets().items())
    with duckdb.connect() as session:
        (found,) = session.execute(f"SELECT {shown} FROM (SELECT {values})").fetchall()
    held = dict(zip(targets(), found, strict=True))
    assert {name: held[name] for name in expected} == expected


def test_a_table_can_be_made_again_and_noise_replaces_a_share_of_the_classes(tmp_path: Path) -> None:
    file = tmp_path / "noisy.parquet"
    with duckdb.connect() as session:
        session.execute(create_statement("duckdb", "clean", Wanted(20_000, targets=True)))
        session.execute(create_statement("duckdb", "again", Wanted(30_000, targets=True)))
        session.execute(create_statement("duckdb", "other", Wanted(20_000, targets=True, seed=1)))
        session.execute(parquet_statement(file, Wanted(20_000, targets=True, noise=0.1)))
        first = "SELECT * FROM again WHERE person < 20000"
        assert session.execute(f"({first} EXCEPT FROM clean) UNION ALL (FROM clean EXCEPT {first})").fetchall() == []
        assert session.execute("SELECT count(*) FROM clean JOIN other USING (salary, age, loan)").fetchone() == (0,)
        joined = f"FROM clean AS c JOIN '{file}' AS n USING (person, salary, r7, r10)"
        changed = ", ".join(f"avg(CAST(c.{name} <> n.{name} AS INT))" for name in ("c2", "c7", "c10", "r7_fifth"))
        assert session.execute(f"SELECT {changed} {joined}").fetchone() == pytest.approx([0.1] * 4, abs=0.01)
        flipped = session.execute(f"SELECT count(DISTINCT (c.r7_fifth, n.r7_fifth)) {joined}").fetchone()
        assert flipped == (25,)
        shares = session.execute("SELECT count(*) / 20000 FROM clean GROUP BY r7_fifth").fetchall()
        assert [share for (share,) in shares] == pytest.approx([0.2] * 5, abs=0.02)


def test_adult_has_an_income_to_predict() -> None:
    if not (DATA / "adult14.csv").exists():
        pytest.skip("the folder with the Adult table is absent")
    with duckdb.connect() as session:
        session.execute(create_workload_table("adult"))
        incomes = session.execute('SELECT "salary-class", count(*) FROM adult GROUP BY 1 ORDER BY 1').fetchall()
        assert incomes == [("<=50K", 22_654), (">50K", 7_508)]
        assert session.execute("SELECT min(age), count(DISTINCT workclass) FROM adult").fetchone() == (17, 7)
