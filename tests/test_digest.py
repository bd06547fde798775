"""Digests of tables: the same on both engines and in any order of rows, another one after any change."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Statement
from sqlanon.values.digest import file_digest, table_digest
from tests.engines.publish_support import run
from tests.random_cases import many

MIXED = """
    SELECT CAST(i AS SMALLINT) AS i, CAST(i AS BIGINT) * 1000000007 AS "B.ig", 'it''s, "ä"' AS "t ""q",
        CAST(i / 8.0 AS DOUBLE PRECISION) AS f8, CAST(i / 8.0 AS REAL) AS f4, CAST(i / 8.0 AS DECIMAL(10, 4)) AS d,
        DATE '1969-12-31' AS day, TIMESTAMP '1901-12-31 23:59:59.999999' AS ts,
        CAST('1850-06-01 12:00:00.5+03' AS TIMESTAMP WITH TIME ZONE) AS tz, TIME '23:59:59.25' AS tm, i > 3 AS yes,
        CAST('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS UUID) AS id, CAST(NULL AS TEXT) AS missing,
        CAST('a,b' AS BYTEA) AS raw
    FROM (VALUES (1), (2), (2), (7)) AS v(i)
"""
TEXTS = st.sampled_from([None, "", "-", ",", "1:a", "a", "ä,", "1:-"])


def digest(engine: Engine, select: str) -> str:
    """The digest of what a query gives."""
    run(engine, "DROP TABLE IF EXISTS digested")
    run(engine, f"CREATE TABLE digested AS {select}")
    return table_digest(engine, Relation("digested"))


def test_engines_and_orders_of_rows_agree(engines: tuple[Engine, Engine]) -> None:
    found = [digest(one, f"{MIXED} ORDER BY i {order}") for one in engines for order in ("", "DESC")]
    assert len(set(found)) == 1


@settings(max_examples=many(10), deadline=None)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS, st.integers(-3, 3)), max_size=8))
def test_it_is_the_sum_of_the_rows_hashes(engines: tuple[Engine, Engine], rows: list[tuple[str | None, ...]]) -> None:
    low = high = 0
    for row in rows:
        texts = ["-" if v is None else str(v) if isinstance(v, int) else f"{len(v)}:{v}" for v in row]
        hashed = hashlib.md5(",".join(texts).encode()).hexdigest()
        low, high = low + int(hashed[:15], 16), high + int(hashed[15:30], 16)
    text = json.dumps(["a", "b", "n"]) + f"\n{len(rows)} {low} {high}"
    for engine in engines:
        run(engine, "DROP TABLE IF EXISTS digested")
        run(engine, "CREATE TABLE digested (a TEXT, b TEXT, n INTEGER)")
        engine.load(Relation("digested"), ["a", "b", "n"], rows)
        assert table_digest(engine, Relation("digested")) == "rows-1:" + hashlib.sha256(text.encode()).hexdigest()


def test_every_change_is_noticed(engines: tuple[Engine, Engine]) -> None:
    queries = [
        "SELECT 'a' AS x, 'b' AS y",
        "SELECT 'a' AS x, 'b' AS z",
        "SELECT 'b' AS x, 'a' AS y",
        "SELECT 'a' AS x, NULL AS y",
        "SELECT 'a' AS x, '' AS y",
        "SELECT 'a' AS x, '-' AS y",
        "SELECT 'a,1:b' AS x, '' AS y",
        "SELECT 'a' AS x, 'b' AS y UNION ALL SELECT 'a', 'b'",
        "SELECT 'a' AS x, 'b' AS y WHERE 1 = 0",
        "SELECT CAST('-0' AS DOUBLE PRECISION) AS x",
        "SELECT CAST('0' AS DOUBLE PRECISION) AS x",
        "SELECT CAST('0' AS DOUBLE PRECISION) AS x UNION ALL SELECT CAST('0' AS DOUBLE PRECISION)",
        "SELECT CAST('0' AS DOUBLE PRECISION) AS x UNION ALL SELECT CAST('-0' AS DOUBLE PRECISION)",
    ]
    for engine in engines:
        assert len({digest(engine, query) for query in queries}) == len(queries)


def test_what_one_engine_alone_has_is_digested_too(engines: tuple[Engine, Engine]) -> None:
    duckdb, postgres = engines
    lists = [digest(duckdb, f"SELECT {value} AS x") for value in ("[1, 2]", "[1]", "TIMESTAMP_NS '2020-01-01'")]
    finer = [digest(duckdb, f"SELECT TIMESTAMP_NS '2020-01-01 00:00:00.00000000{n}' AS x") for n in (1, 2)]
    assert len({*lists, *finer}) == 5
    values = ("int8range(1, 5)", "int8range(1, 6)", "'{}'::json")
    ranges = [digest(postgres, f"SELECT {value} AS x") for value in values]
    scales = [digest(postgres, f"SELECT {value}::numeric AS x") for value in ("1.5", "1.50")]
    assert len({*ranges, *scales}) == 5


def test_a_files_digest_is_that_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n")
    assert file_digest(tmp_path / "a.csv") == "sha256:" + hashlib.sha256(b"a,b\n").hexdigest()


def test_one_statement_reads_the_table(engines: tuple[Engine, Engine]) -> None:
    for engine in engines:
        digest(engine, "SELECT 1 AS a")
        seen: list[str] = []

        def note(statement: Statement, seconds: float, rows: int, seen: list[str] = seen) -> None:
            del seconds, rows
            seen.append(statement.name)

        engine.listener = note
        table_digest(engine, Relation("digested"))
        engine.listener = None
        assert seen.count("values/digest_rows") == 1
