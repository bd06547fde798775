"""A population in another database gives the figures that it gives beside the sample, and only its classes travel."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlanon import PolicyError, table_risk
from sqlanon.engines import connect
from sqlanon.inquiries.risk.in_population import bring_population
from sqlanon.inquiries.risk.measured_table import risk_source
from sqlanon.plan.lookup import find_table
from tests.cli.support import call, only_object
from tests.inquiries.risk.brute_force import COLUMNS, QUASI_IDENTIFIERS, create, people
from tests.postgres_server import PostgresServer
from tests.run_support import duckdb_url, open_database

pytestmark = pytest.mark.slow

ODD = {
    "per son": "INTEGER",
    'a"ge': "BIGINT",
    "members": "VARCHAR(9)",
    "MEMBERS_2": "DOUBLE PRECISION",
    "Tag": "DATE",
    "seen": "TIMESTAMP",
    "höhe": "DECIMAL(6,2)",
    "is": "BOOLEAN",
}


@pytest.fixture(params=["duckdb", "postgres"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of another database than that of the sample."""
    if request.param == "duckdb":
        yield duckdb_url(tmp_path / "elsewhere.duckdb")
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        with server.temporary("elsewhere") as name:
            yield server.url(name)


def odd_rows(seed: int, rows: int) -> list[tuple[Any, ...]]:
    """Rows of every kind of values, with NULLs, blanks, both zeros and texts that differ in the case of letters."""
    source = random.Random(seed)
    return [
        (
            source.randrange(40),
            source.choice([None, 1, 2]),
            source.choice([None, "", "É", "a", "A", "a ", ';"\\N']),
            source.choice([None, 0.0, -0.0, 1e-300, float("nan")]),
            source.choice([None, date(1, 1, 1), date(2024, 2, 29)]),
            source.choice([None, datetime(2024, 2, 29, 1, 2, 3, 4)]),
            source.choice([None, Decimal("1.50"), Decimal("-2")]),
            source.choice([None, True, False]),
        )
        for _ in range(rows)
    ]


@pytest.mark.parametrize("subject", [None, "per son"])
def test_figures_are_those_of_a_population_in_the_same_database(
    database_url: str, elsewhere: str, subject: str | None
) -> None:
    everybody = odd_rows(1, 300)
    sample = random.Random(2).sample(everybody, 40) + odd_rows(3, 3)
    with open_database(database_url) as database:
        table, beside = database.create(ODD, sample), database.create(ODD, everybody)
    with open_database(elsewhere) as other:
        there = other.create(ODD, everybody)
    for names in (list(ODD)[1:], ["members", "MEMBERS_2"]):
        expected = table_risk(database_url, table, names, subject=subject, population=beside)
        found = table_risk(database_url, table, names, subject=subject, population=there, population_url=elsewhere)
        assert found == expected
        assert found.journalist is not None
        assert found.journalist.population is not None


@pytest.mark.either_engine
def test_only_classes_and_their_members_leave_the_database(database_url: str, elsewhere: str) -> None:
    everybody = people(4, rows=300)
    with open_database(elsewhere) as other:
        there = other.create(COLUMNS, everybody)
    table = create(database_url, people(4, rows=20))
    with connect(database_url) as engine, connect(elsewhere) as reader:
        source = risk_source(engine, find_table(engine, table), ["age", "sex"], subject="person")
        population = risk_source(reader, find_table(reader, there), ["age", "sex"], subject="person")
        brought = bring_population(population, source)
        assert [column.name for column in engine.columns(brought.table)] == ["age", "sex", "members"]
        (rows,) = engine.query_one("count_rows", table=brought.table)
    assert rows == len({(age, sex) for _, age, _, sex in everybody})


@pytest.mark.either_engine
def test_values_that_can_not_be_matched_are_refused_by_their_column(database_url: str, elsewhere: str) -> None:
    table = create(database_url, people(5))
    with open_database(elsewhere) as other:
        texts = other.create({**COLUMNS, "age": "VARCHAR(3)"}, [])
        nulls = other.create(COLUMNS, [(None, 1, "x", "f")])
        lists = other.create({**COLUMNS, "zip": "INTEGER[]"}, [])

    def measure(population: str, subject: str | None = None) -> object:
        return table_risk(
            database_url,
            table,
            QUASI_IDENTIFIERS,
            subject=subject,
            population=population,
            population_url=elsewhere,
        )

    with pytest.raises(PolicyError, match=r"Column 'age' is .* here, and .* in the population .*"):
        measure(texts)
    with pytest.raises(PolicyError, match=r"The subject 'person' of the population .* is NULL in 1 of 1 row,"):
        measure(nulls, "person")
    with pytest.raises(PolicyError, match=r"Column 'zip' is .* here"):
        measure(lists)
    with pytest.raises(PolicyError, match="There is no table"):
        measure("nobody")


@pytest.mark.either_engine
def test_decimals_of_other_digits_are_refused_by_the_table_that_has_them(database_url: str, elsewhere: str) -> None:
    row = [(1, Decimal("1.50"))]
    with open_database(database_url) as database, open_database(elsewhere) as other:
        table = database.create({"person": "INTEGER", "paid": "DECIMAL(10,2)"}, row)
        there = other.create({"person": "INTEGER", "paid": "DECIMAL(8,3)"}, row)
    with pytest.raises(
        PolicyError, match=rf"'paid' is .*10,2\) here, and .*8,3\) in the population .*{there}.* of another"
    ):
        table_risk(database_url, table, ["paid"], population=there, population_url=elsewhere)


def test_spark_is_refused_before_anybody_connects() -> None:
    for url, other in (("duckdb:///none.duckdb", "spark://nobody"), ("spark://nobody", "duckdb:///none.duckdb")):
        with pytest.raises(PolicyError, match="not carried over between Spark and another database"):
            table_risk(url, "sample", QUASI_IDENTIFIERS, population="everybody", population_url=other)


@pytest.mark.either_engine
def test_a_file_has_its_population_in_a_database(elsewhere: str, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("age,sex\n1,f\n2,f\n", encoding="utf-8")
    with open_database(elsewhere) as other:
        there = other.create({"sex": "VARCHAR(1)", "age": "BIGINT"}, [("f", 1), ("f", 2), ("f", 2)])
    result = call("risk", file, "--qi", "age,sex", "--population", elsewhere, there, "--json")
    assert result.exit_code == 0, result.output
    assert only_object(result.stdout)["journalist"]["mean"] == 0.75
    wrong = call("risk", file, "--qi", "age,sex", "--population", "elsewhere", there)
    assert wrong.exit_code == 2
    assert "--population is URL TABLE" in wrong.stderr
