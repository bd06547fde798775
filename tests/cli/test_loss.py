"""loss, on tables and on files."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from sqlanon import Masking, PolicyError, table_loss
from tests.cli.support import call, execute, only_object
from tests.run_support import quoted

pytestmark = pytest.mark.slow

ODD = 'Zip "code"'


@pytest.fixture
def masked_url(database_url: str) -> str:
    """A database with a table and what became of it: means of pairs of rows, categories of one of each pair."""
    name = quoted(ODD)
    columns = f"CAST(i AS BIGINT) AS id, i * i % 37 AS age, i / 7.0 AS {name}, 'job' || i % 3 AS job, i AS secret"
    series = "range(60) AS t(i)" if database_url.startswith("duckdb") else "generate_series(0, 59) AS t(i)"
    masked = f"avg(age) OVER w AS age, avg({name}) OVER w AS {name}, min(job) OVER w AS job, 1 AS note"
    pairs = "WHERE id < 58 WINDOW w AS (PARTITION BY (id - id % 2))"
    execute(
        database_url,
        f"CREATE TABLE people AS SELECT {columns} FROM {series}",
        f"CREATE TABLE masked AS SELECT id, {masked} FROM people {pairs}",
    )
    return database_url


@pytest.mark.either_engine
def test_a_release_is_compared_with_its_source(masked_url: str) -> None:
    result = call("loss", masked_url, "people", "masked", "--by", "id", "--json")
    assert result.exit_code == 0, result.output
    measured = only_object(result.stdout)
    assert [measured[key] for key in ("source_rows", "release_rows", "paired_rows")] == [60, 58, 58]
    assert (measured["only_in_source"], measured["only_in_release"]) == (["secret"], ["note"])
    assert [one["name"] for one in measured["numbers"]["columns"]] == ["age", ODD]
    assert 0 < measured["numbers"]["sse"] < 100
    assert 0 < measured["categories"]["distance"] < 1
    assert measured["risk"]["linkage"]["blind"] == pytest.approx(1 / 2)
    text = call("loss", masked_url, "people", "masked", "--by", "id").stdout
    assert "people (60 rows) and masked (58 rows), 58 paired by id:" in text
    for part in (ODD, "IL6", "SSE/SST", "CTBIL'", "find", "Score", "only the source has them: secret"):
        assert part in text
    assert "safe" not in text


def test_a_role_that_may_only_read_is_enough(masked_url: str) -> None:
    """As of a standby: no temporary table can be made there."""
    url, expected = masked_url, table_loss(masked_url, "people", "masked", by=["id"])
    if not masked_url.startswith("duckdb"):
        role = f"reader_{secrets.token_hex(4)}"
        execute(masked_url, f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON people, masked TO {role}")
        execute(masked_url, f"ALTER ROLE {role} SET default_transaction_read_only = on")
        url = masked_url.replace("//postgres@", f"//{role}@")
        assert role in url
    assert table_loss(url, "people", "masked", by=["id"]) == expected


@pytest.mark.either_engine
def test_without_a_key_tables_are_compared_as_wholes(masked_url: str) -> None:
    measured = only_object(call("loss", masked_url, "people", "masked", "--columns", "age,job", "--json").stdout)
    assert measured["paired_rows"] is None
    assert "risk" not in measured
    assert [measured["numbers"][key] is None for key in ("il1", "il2", "il3", "il6", "sse")] == [1, 0, 0, 1, 1]
    assert measured["categories"]["ctbil"] > 0
    text = call("loss", masked_url, "people", "masked", "--columns", "age,job").stdout
    assert "Tables have no order" in text


@pytest.mark.either_engine
def test_programs_get_the_same(masked_url: str) -> None:
    measured = table_loss(masked_url, "people", "masked", by=["id"], orders={"job": ["job0", "job1", "job2"]}, sample=9)
    assert isinstance(measured, Masking)
    assert measured.risk is not None
    assert measured.risk.intervals.rows == 9
    assert measured.categories is not None
    assert 0 < (measured.categories.distance or 0) < 0.5
    with pytest.raises(PolicyError, match="did you mean 'people'"):
        table_loss(masked_url, "poeple", "masked")


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["people"], "Write URL SOURCE RELEASE, or two files"),
        (["people", "masked", "--by", "job"], "rows of the source share it"),
        (["people", "masked", "--by", "jab"], "did you mean 'job'"),
        (["people", "masked", "--order", "job"], "--order names a column and its categories"),
        (["people", "masked", "--order", "age=1,2"], "An order is for categories, and 'age' is none"),
        (["people", "masked", "--by", "id", "--order", "job=job0,job1"], "lacks categories of the data"),
    ],
)
def test_what_can_not_be_compared(masked_url: str, options: list[str], message: str) -> None:
    result = call("loss", masked_url, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_files_are_compared_too(tmp_path: Path) -> None:
    """Numbers that are written in several ways are numbers; a file can stand beside a table of DuckDB."""
    source, release = tmp_path / "people.csv", tmp_path / "masked.csv"
    source.write_text("id,age,income\n01,30,1000.50\n02,31,1100\n03,45,2000\n04,46,2100\n")
    release.write_text("id,age,income\n04,45.5,2050\n03,45.5,2050\n02,30.5,1050.250\n01,30.5,1050.250\n")
    measured = only_object(call("loss", source, release, "--by", "id", "--json").stdout)
    assert [one["name"] for one in measured["numbers"]["columns"]] == ["age", "income"]
    assert measured["numbers"]["il2"] == 0
    assert measured["numbers"]["sse"] == pytest.approx(0.714, abs=0.001)
    url = f"duckdb:///{tmp_path / 'one.duckdb'}"
    execute(url, f"CREATE TABLE people AS SELECT * FROM read_csv('{source}', types = {{'id': 'VARCHAR'}})")
    beside = only_object(call("loss", url, "people", release, "--by", "id", "--json").stdout)
    assert beside["numbers"] == measured["numbers"]
    result = call("loss", source, tmp_path / "nothing.csv")
    assert result.exit_code == 2
    assert "There is no file" in result.stderr
