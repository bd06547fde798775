"""Releases that are files."""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, PolicyError, SqlanonError
from sqlanon.sql import Relation
from sqlanon.work.publish import FileRelease, check_file, leftover_parts, open_file, type_problems
from tests.engines.publish_support import rows, run

RELATION = Relation("t", "main")
ODD = r"""
    SELECT i AS "na""me, 'x'",
        CASE i WHEN 1 THEN NULL WHEN 2 THEN '' WHEN 3 THEN 'a,"b"' || chr(10) || 'c' WHEN 4 THEN '\N' WHEN 5 THEN ' ä '
            WHEN 6 THEN chr(13) || chr(10) WHEN 7 THEN 'NULL' WHEN 8 THEN repeat('é"', 600000) ELSE '#' END AS txt,
        CAST(i AS DECIMAL(9, 2)) / 4 AS dec, 1e300 / i AS dbl, DATE '1969-01-01' - CAST(i AS INTEGER) AS d,
        TIMESTAMP '2020-01-01 00:00:00.123456' AS ts, CAST('2020-01-01 00:00:00+05' AS TIMESTAMPTZ) AS tz,
        i % 2 = 0 AS yes, CAST('b' AS ENUM ('a', 'b', 'it''s')) AS en, uuid() AS id, TIME '23:59:59.5' AS tm
    FROM range(1, 12) AS r(i)
"""


@pytest.fixture
def duckdb(tmp_path: Path) -> Iterator[Engine]:
    with connect(
        f"duckdb:///{tmp_path / 'work.duckdb'}", EngineOptions(places=(str(tmp_path),)), create=True
    ) as engine:
        yield engine


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "odd 'x' [1]*?%s.CSV"])
def test_what_is_written_reads_back_the_same(duckdb: Engine, tmp_path: Path, name: str) -> None:
    run(duckdb, f"CREATE TABLE {RELATION} AS {ODD}")
    columns = duckdb.columns(RELATION)
    with FileRelease(duckdb, tmp_path / name) as file:
        file.write(RELATION)
        assert stat.S_IMODE(file.part.stat().st_mode) == 0o600
        view = open_file(duckdb, file.part, columns)
        assert rows(duckdb, f"SELECT * FROM {view}") == rows(duckdb, f"SELECT * FROM {RELATION}")
        assert [(c.name, c.type) for c in duckdb.columns(view)] == [(c.name, c.type) for c in columns]
        assert not (tmp_path / name).exists()
        file.commit()
    assert [
        path.name for path in tmp_path.iterdir() if "duckdb" not in path.name and "sqlanon-spill" not in path.name
    ] == [name]


def test_null_and_empty_text_differ(duckdb: Engine, tmp_path: Path) -> None:
    run(duckdb, f"CREATE TABLE {RELATION} AS SELECT * FROM (VALUES ('', 1), (NULL, 2), ('a', NULL)) AS v(a, b)")
    for name in ("o.csv", "o.csv.gz"):
        with FileRelease(duckdb, tmp_path / name) as file:
            file.write(RELATION)
            file.commit()
    assert (tmp_path / "o.csv").read_text() == 'a,b\n"",1\n,2\na,\n'
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()).decode() == 'a,b\n"",1\n,2\na,\n'


def test_row_order_is_kept(duckdb: Engine, tmp_path: Path) -> None:
    run(duckdb, f"CREATE TABLE {RELATION} AS SELECT 500000 - i AS i FROM range(400000) AS r(i)")
    for name in ("o.csv", "o.parquet"):
        with FileRelease(duckdb, tmp_path / name) as file:
            file.write(RELATION)
            view = open_file(duckdb, file.part, duckdb.columns(RELATION))
            found = [i for (i,) in rows(duckdb, f"SELECT i FROM {view}")]
        assert found == sorted(found, reverse=True)


def test_an_existing_file_is_replaced_only_when_allowed(duckdb: Engine, tmp_path: Path) -> None:
    run(duckdb, f"CREATE TABLE {RELATION} AS SELECT 1 AS a")
    target, link = tmp_path / "o.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    (problem,) = check_file(target, False)
    assert "--replace" in problem
    with pytest.raises(PolicyError, match="--replace"):
        FileRelease(duckdb, target)
    with FileRelease(duckdb, link, replace=True) as file:
        file.write(RELATION)
        assert target.read_text() == "old"
        file.commit()
    assert target.read_text() == "a\n1\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert link.is_symlink()


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        with connect(
            f"duckdb:///{tmp_path}/work.duckdb", EngineOptions(places=(str(tmp_path),)), create=True
        ) as duckdb:
            run(duckdb, f"CREATE TABLE {RELATION} AS SELECT 1 AS a")
            with FileRelease(duckdb, tmp_path / "o.csv") as file:
                file.write(RELATION)
                file.commit()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "o.csv").stat().st_mode) == 0o600


def test_a_failure_leaves_the_old_file_and_no_part(duckdb: Engine, tmp_path: Path) -> None:
    target = tmp_path / "o.parquet"
    target.write_text("old")
    run(duckdb, "CREATE VIEW broken AS SELECT CASE WHEN i = 9 THEN error('no') END AS a FROM range(10) AS r(i)")
    with FileRelease(duckdb, target, replace=True) as file, pytest.raises(SqlanonError):
        file.write(Relation("broken"))
    run(duckdb, "CREATE TABLE fine AS SELECT 1 AS a")
    with FileRelease(duckdb, target, replace=True) as file:
        file.write(Relation("fine"))
        assert leftover_parts(target) == [file.part]
    assert target.read_text() == "old"
    assert leftover_parts(target) == []


def test_a_file_that_appeared_meanwhile_is_not_overwritten(duckdb: Engine, tmp_path: Path) -> None:
    run(duckdb, f"CREATE TABLE {RELATION} AS SELECT 1 AS a")
    with FileRelease(duckdb, tmp_path / "o.csv") as file:
        file.write(RELATION)
        (tmp_path / "o.csv").write_text("theirs")
        with pytest.raises(ConflictError):
            file.commit()
    assert (tmp_path / "o.csv").read_text() == "theirs"
    assert leftover_parts(tmp_path / "o.csv") == []


def test_wrong_places_are_named(duckdb: Engine, tmp_path: Path) -> None:
    (tmp_path / "dir.csv").mkdir()
    run(duckdb, f"CREATE TABLE {RELATION} AS SELECT CAST(1 AS HUGEINT) AS h")
    assert "local .parquet, .csv or .csv.gz" in check_file(tmp_path / "o.xlsx", False)[0]
    assert "local .parquet, .csv or .csv.gz" in check_file("s3://bucket/o.csv", False)[0]
    assert "directory" in check_file(tmp_path / "none" / "o.csv", False)[0]
    assert "is not a file" in check_file(tmp_path / "dir.csv", True)[0]
    assert '"h"' in type_problems(tmp_path / "o.parquet", duckdb.columns(RELATION))[0]
    with pytest.raises(PolicyError, match="Parquet"), FileRelease(duckdb, tmp_path / "o.parquet") as file:
        file.write(RELATION)
