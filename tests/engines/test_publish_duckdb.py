"""Publishing on DuckDB: attached files, readers that look on, and space that is freed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, SqlanonError
from sqlanon.sql import Relation, Text
from sqlanon.work.publish import Publication, PublishMethod, publish, target_problems
from tests.engines.publish_support import rows, run, stage

OLD = "SELECT i AS a, 'old' AS b FROM range(1000) AS r(i)"
NEW = "SELECT i AS a, 'new' AS b FROM range(1700) AS r(i)"
RELEASE = Relation("Release", "main")


@pytest.fixture
def duckdb(tmp_path: Path) -> Iterator[Engine]:
    options = EngineOptions(places=(str(tmp_path),))
    with connect(f"duckdb:///{tmp_path / 'work.duckdb'}", options, create=True) as engine:
        yield engine


def put(engine: Engine, release: Relation, query: str) -> Publication:
    staging, grants = stage(engine, release, query)
    return publish(engine, staging, release, replace=True, grants=grants)


@pytest.mark.parametrize("release", [Relation("Release", "main", "Other x"), Relation("Release", "Other x")])
def test_another_catalog(duckdb: Engine, tmp_path: Path, release: Relation) -> None:
    run(duckdb, f'ATTACH {Text(str(tmp_path / "other.duckdb"))} AS "Other x"', f"CREATE TABLE t AS {OLD}")
    assert target_problems(duckdb, release, False) == []
    assert put(duckdb, release, OLD).how is PublishMethod.NEW
    run(duckdb, f"COMMENT ON TABLE {release} IS 'kept'")
    assert put(duckdb, release, NEW).how is PublishMethod.SWAP
    assert rows(duckdb, f"SELECT count(*), min(b) FROM {release}") == [(1700, "new")]
    assert rows(duckdb, "SELECT comment FROM duckdb_tables() WHERE table_name = 'Release'") == [("kept",)]


def test_a_read_only_catalog_is_told_so(duckdb: Engine, tmp_path: Path) -> None:
    path = Text(str(tmp_path / "other.duckdb"))
    run(duckdb, f"ATTACH {path} AS o", "DETACH o", f"ATTACH {path} AS o (READ_ONLY)")
    (problem,) = target_problems(duckdb, Relation("release", "main", "o"), False)
    assert "reading only" in str(problem)


def test_the_spelling_of_an_existing_name_is_found(duckdb: Engine) -> None:
    put(duckdb, RELEASE, OLD)
    (problem,) = target_problems(duckdb, Relation("rELEASE", "MAIN"), False)
    assert "--replace" in str(problem)
    assert put(duckdb, Relation("rELEASE", "main"), NEW).how is PublishMethod.SWAP
    assert rows(duckdb, "SELECT count(*) FROM release") == [(1700,)]


def test_readers_see_whole_releases_only(duckdb: Engine) -> None:
    put(duckdb, RELEASE, OLD)
    seen: set[tuple[object, ...]] = set()
    stop = threading.Event()

    def read() -> None:
        with duckdb.fork() as reader:
            while not stop.is_set():
                with reader.transaction():
                    first = rows(reader, f"SELECT count(*), min(b) FROM {RELEASE}")
                    assert rows(reader, f"SELECT count(*), min(b) FROM {RELEASE}") == first
                seen.update(first)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(20):
        put(duckdb, RELEASE, NEW if turn % 2 == 0 else OLD)
    stop.set()
    reader.join(10)
    assert seen == {(1000, "old"), (1700, "new")}


def test_an_open_transaction_keeps_its_old_rows(duckdb: Engine) -> None:
    put(duckdb, RELEASE, OLD)
    with duckdb.fork() as reader:
        reader.begin()
        assert rows(reader, f"SELECT count(*) FROM {RELEASE}") == [(1000,)]
        assert put(duckdb, RELEASE, NEW).how is PublishMethod.SWAP
        assert rows(reader, f"SELECT count(*) FROM {RELEASE}") == [(1000,)]
        reader.commit()
        assert rows(reader, f"SELECT count(*) FROM {RELEASE}") == [(1700,)]


def test_a_writer_at_the_same_time_is_a_conflict(duckdb: Engine) -> None:
    put(duckdb, RELEASE, OLD)
    run(duckdb, f"CREATE INDEX by_a ON {RELEASE} (a)")
    with duckdb.fork() as writer:
        writer.begin()
        run(writer, f"DELETE FROM {RELEASE} WHERE a = 3")
        with pytest.raises(ConflictError):
            put(duckdb, RELEASE, NEW)
        writer.rollback()
    assert rows(duckdb, f"SELECT count(*), min(b) FROM {RELEASE}") == [(1000, "old")]


def test_a_failed_replacement_leaves_the_old_release(duckdb: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    put(duckdb, RELEASE, OLD)

    def fail(*_: object, **__: object) -> None:
        raise SqlanonError("broken")

    monkeypatch.setattr("sqlanon.engines.duckdb.publishing.DuckDBPublisher._restore_comments", fail)
    with pytest.raises(SqlanonError, match="broken"):
        put(duckdb, RELEASE, NEW)
    assert rows(duckdb, f"SELECT count(*), min(b) FROM {RELEASE}") == [(1000, "old")]
    assert duckdb.resolve(RELEASE.sibling("staged")) is not None


def test_dropped_blocks_are_free_at_once(duckdb: Engine) -> None:
    wide = "SELECT i, md5(CAST(i AS VARCHAR)) AS h FROM range(200000) AS r(i)"
    put(duckdb, RELEASE, wide)
    for _ in range(4):
        put(duckdb, RELEASE, wide)
    used, wal = rows(duckdb, "SELECT used_blocks, wal_size FROM pragma_database_size()")[0]
    assert wal in ("0 bytes", "0 B")
    assert used < 2 * rows(duckdb, "SELECT count(DISTINCT block_id) + 4 FROM pragma_storage_info('Release')")[0][0]
