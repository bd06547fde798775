"""Relations carried from one database to another."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import EngineError, PolicyError
from sqlanon.sql import Relation
from sqlanon.work.publish import FileRelease, publish, transfer
from tests.engines.publish_support import rows, run

SOURCE = Relation('Odd "source" %s')
TARGET = Relation("Target 'x'")
POSTGRES_ROWS = r"""
    SELECT g AS i, g * 1000000007000::bigint AS "B.ig", (g % 100)::smallint AS s,
        CASE g WHEN 1 THEN NULL WHEN 2 THEN '' WHEN 3 THEN 'a,"b"' || chr(10) || chr(13) || 'c' WHEN 4 THEN '\N'
            WHEN 5 THEN ' ä ' WHEN 6 THEN '\.' WHEN 7 THEN '-' WHEN 8 THEN '1:a' ELSE 'x' END AS "t ""q",
        'ab'::char(5) AS c5, 'v'::varchar(9) AS v,
        (CASE g % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' ELSE '1e-300' END)::float8 AS f8,
        (1.0 / g)::float4 AS f4, exp(g::float8) AS e8,
        (g / 7.0)::numeric(12, 4) AS n, g + 0.125 AS free,
        CASE g WHEN 1 THEN 'infinity' ELSE '1901-12-31 23:59:59.999999' END::timestamp AS ts,
        '1850-06-01 12:00:00.5+03'::timestamptz AS tz, DATE '1969-12-31' - g AS d, TIME '23:59:59.25' AS tm,
        decode(CASE g WHEN 1 THEN NULL WHEN 2 THEN '' WHEN 3 THEN '00ff5c78275c' ELSE md5(g::text) END, 'hex') AS raw,
        g % 3 = 0 AS yes, md5(g::text)::uuid AS id, (CASE g % 2 WHEN 0 THEN 'sad' ELSE 'ok' END)::mood AS m
    FROM generate_series(1, 50) AS g
"""
DUCKDB_ROWS = r"""
    SELECT i, CAST(i AS HUGEINT) * 170141183460469231731687303715884 AS huge, CAST(i AS UTINYINT) AS u,
        CASE i WHEN 1 THEN NULL WHEN 2 THEN '' WHEN 3 THEN 'a,"b"' || chr(10) || chr(13) || 'c' WHEN 4 THEN '\N'
            WHEN 5 THEN ' ä ' WHEN 6 THEN '\.' ELSE 'x' END AS "t ""q",
        CAST(CASE i % 4 WHEN 0 THEN 'nan' WHEN 1 THEN '-inf' WHEN 2 THEN '-0' ELSE '1e-300' END AS DOUBLE) AS f8,
        CAST(1.0 / i AS FLOAT) AS f4, exp(i) AS e8, CAST(i / 7.0 AS DECIMAL(12, 4)) AS n,
        TIMESTAMP '1901-12-31 23:59:59.999999' AS ts, CAST('1850-06-01 12:00:00.5+03' AS TIMESTAMPTZ) AS tz,
        CASE i WHEN 1 THEN 'infinity' ELSE '1969-12-31' END::DATE AS d, TIME '23:59:59.25' AS tm, i % 3 = 0 AS yes,
        unhex(CASE i WHEN 1 THEN NULL WHEN 2 THEN '' WHEN 3 THEN '00ff5c78275c' ELSE md5('' || i) END) AS raw,
        CAST(md5(CAST(i AS VARCHAR)) AS UUID) AS id, CAST(CASE i % 2 WHEN 0 THEN 'sad' ELSE 'ok' END AS mood) AS m
    FROM range(1, 50) AS r(i)
"""


@pytest.fixture
def duckdb() -> Iterator[Engine]:
    with connect("duckdb:///:memory:") as engine:
        run(engine, "CREATE TYPE mood AS ENUM ('sad', 'ok')")
        yield engine


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Engine]:
    with connect(postgres_url) as engine:
        run(engine, "CREATE TYPE mood AS ENUM ('sad', 'ok')")
        yield engine


@pytest.mark.parametrize("width", ["all", "one"])
def test_from_postgres_and_back(duckdb: Engine, postgres: Engine, width: str) -> None:
    columns = "*" if width == "all" else '"t ""q"'
    run(postgres, f"CREATE TABLE {SOURCE} AS SELECT {columns} FROM ({POSTGRES_ROWS}) AS q")
    transfer(postgres, SOURCE, duckdb, TARGET)
    assert plain(duckdb, TARGET) == plain(postgres, SOURCE)
    transfer(duckdb, TARGET, postgres, TARGET)
    assert plain(postgres, TARGET) == plain(postgres, SOURCE)


def test_from_duckdb(duckdb: Engine, postgres: Engine) -> None:
    run(duckdb, f"CREATE TABLE {SOURCE} AS {DUCKDB_ROWS}")
    transfer(duckdb, SOURCE, postgres, TARGET)
    known = {c.name: c.type for c in postgres.columns(TARGET)}
    assert (known["u"], known["huge"], known["m"]) == ("smallint", "numeric(39,0)", "text")
    wanted = "* EXCLUDE (d, f8, f4)"
    assert rows(postgres, f"SELECT {', '.join(quoted(duckdb, wanted))} FROM {TARGET}") == rows(
        duckdb, f"SELECT {wanted} FROM {SOURCE}"
    )
    assert rows(postgres, f"SELECT count(*) FROM {TARGET} WHERE d = 'infinity' OR f8 = 'NaN'") == [(13,)]


def quoted(duckdb: Engine, columns: str) -> list[str]:
    found = rows(duckdb, f"SELECT column_name FROM (DESCRIBE SELECT {columns} FROM {SOURCE})")
    return ['"' + name.replace('"', '""') + '"' for (name,) in found]


def plain(engine: Engine, table: Relation) -> list[tuple[str, ...]]:
    """The rows in the order they lie in, less what the drivers give differently: infinite times, single floats."""
    names = [c.name for c in engine.columns(table) if c.name not in ("ts", "f4")]
    found = rows(engine, f"SELECT {', '.join(quote_name(n) for n in names)} FROM {table}")
    return [tuple(map(str, row)) for row in found]  # as NaN is not equal to itself


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_a_release_goes_to_another_database_and_to_a_file(postgres: Engine, duckdb: Engine, tmp_path: Path) -> None:
    run(postgres, f"CREATE TABLE {SOURCE} AS SELECT 100 - g AS a, 'x' AS b FROM generate_series(1, 50) AS g")
    grants = transfer(postgres, SOURCE, duckdb, TARGET)
    publish(duckdb, TARGET, Relation("release"), replace=False, grants=grants)
    with FileRelease(duckdb, tmp_path / "r.csv") as file:
        file.write(Relation("release"))
        file.commit()
    assert (tmp_path / "r.csv").read_text().splitlines()[:3] == ["a,b", "99,x", "98,x"]


def test_default_privileges_are_held_back(postgres: Engine, duckdb: Engine) -> None:
    run(postgres, "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    run(duckdb, f"CREATE TABLE {SOURCE} AS SELECT 1 AS a")
    grants = transfer(duckdb, SOURCE, postgres, TARGET)
    assert [(grant.grantee, grant.privilege) for grant in grants.entries] == [(None, "SELECT")]
    shown = "SELECT count(*) FROM pg_class, aclexplode(relacl) WHERE relname = '{}' AND grantee = 0"
    assert rows(postgres, shown.format("Target ''x''")) == [(0,)]
    publish(postgres, TARGET, Relation("release"), replace=False, grants=grants)
    assert rows(postgres, shown.format("release")) == [(1,)]


def test_types_without_a_counterpart_are_texts_or_named(postgres: Engine, duckdb: Engine) -> None:
    run(
        postgres,
        f"CREATE TABLE {SOURCE} AS SELECT '{{}}'::json AS j, 1e30 + 1e-30 AS wide, 'NaN'::numeric AS n,"
        " 1::numeric(60,2) AS n60, 1.5 AS fits",
    )
    with pytest.raises(PolicyError) as refused:
        transfer(postgres, SOURCE, duckdb, TARGET)
    assert len(refused.value.problems) == 2
    for name in ('"wide"', '"n"'):
        assert name in str(refused.value)
    transfer(postgres, SOURCE, duckdb, TARGET, as_text=["wide", "n"])
    assert rows(duckdb, f"SELECT j, wide, n, n60, fits FROM {TARGET}") == [
        ("{}", "1000000000000000000000000000000.000000000000000000000000000001", "NaN", 1, Decimal("1.5"))
    ]
    run(duckdb, f"CREATE TABLE {SOURCE} AS SELECT [1] AS l, TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS ns")
    transfer(duckdb, SOURCE, postgres, TARGET)
    assert rows(postgres, f"SELECT l, ns FROM {TARGET}") == [("[1]", "2020-01-01 00:00:00.123456789")]


def test_a_value_without_a_counterpart_leaves_nothing(postgres: Engine, duckdb: Engine, tmp_path: Path) -> None:
    run(duckdb, f"CREATE TABLE {SOURCE} AS SELECT 'sec' || chr(0) || 'ret' AS a")
    with pytest.raises(EngineError) as refused:
        transfer(duckdb, SOURCE, postgres, TARGET, directory=tmp_path)
    assert "sec" not in str(refused.value)
    assert postgres.resolve(TARGET) is None
    assert list(tmp_path.iterdir()) == []
    assert rows(postgres, "SELECT 1") == [(1,)]


def test_a_copy_that_differs_is_dropped(
    postgres: Engine, duckdb: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(postgres, f"CREATE TABLE {SOURCE} AS SELECT 1 AS a, NULL::text AS b")
    directory = tempfile.mkdtemp(dir=tmp_path)

    def spoil(_: Engine, __: Relation, ___: object, path: Path) -> None:
        path.write_text('"1",""\n')

    monkeypatch.setitem(transfer.__globals__, "_export", spoil)
    with pytest.raises(EngineError, match="differ"):
        transfer(postgres, SOURCE, duckdb, TARGET, directory=directory)
    assert duckdb.resolve(TARGET) is None
