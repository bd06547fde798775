"""Spilled data, catalogs and other files that are made are for their owner alone, and do not outlive kill -9."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines import private_files as private
from sqlanon.engines.private_files import UmaskGuard, make_private_directory, remove_dead_directories
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.work.session import local_catalog
from sqlanon.work.workspace import gc
from tests.run_support import OPTIONS, run

pytestmark = pytest.mark.slow

SPILLING = """
import sys, time
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.sql import Statement

engine = connect(sys.argv[1], EngineOptions(memory_limit="60MB", threads=1), create=True)
engine.execute(Statement("test", "CREATE TABLE kept AS SELECT 'secret' AS a"))
engine.execute(Statement(
    "test",
    "CREATE TEMP TABLE big AS SELECT repeat('secret', 9) || hash(range) AS s FROM range(1000000) ORDER BY s DESC"))
print("spilled", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["file", "memory"])
def spilling(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path, Path]]:
    """A process that has spilled; the directory where it did, and its database's file."""
    file = tmp_path / "x.duckdb"
    url = f"duckdb:///{file if request.param == 'file' else ':memory:'}"
    with subprocess.Popen([sys.executable, "-c", SPILLING, url], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "spilled\n"
        yield child, tmp_path if request.param == "file" else Path(tempfile.gettempdir()), file
        child.kill()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_spilled_data_is_private_and_does_not_outlive_a_kill(
    spilling: tuple[subprocess.Popen[str], Path, Path], tmp_path: Path
) -> None:
    child, place, file = spilling
    (directory,) = place.glob("sqlanon-spill-*")
    assert mode(directory) == 0o700
    assert any(one.name.startswith("duckdb_temp") for one in directory.iterdir())
    assert not Path(f"{file}.tmp").exists()
    beside = f"duckdb:///{tmp_path / 'other.duckdb'}"
    with connect(beside, create=True) as engine, Catalog.open(engine) as catalog:
        assert gc(engine, catalog) == []  # it lives
        child.kill()
        child.wait()
        assert gc(engine, catalog) == [f"removed directory {directory}"]
    assert not directory.exists()
    made = [tmp_path / name for name in ("x.duckdb", "x.duckdb.wal") if (tmp_path / name).exists()]
    assert {mode(path) for path in [*made, tmp_path / "other.duckdb"]} == {0o600}


def test_a_number_that_another_process_has_got_means_nothing(tmp_path: Path) -> None:
    ours, theirs = make_private_directory(tmp_path), make_private_directory(tmp_path)
    private._held.pop(theirs).close()
    os.utime(theirs / "owner", (0, 0))  # long before the process began that has the same id now
    assert list(remove_dead_directories(tmp_path)) == [theirs]
    assert ours.exists()


def test_a_process_that_only_its_lock_tells_of_lives(tmp_path: Path) -> None:
    """As in another container of this host, whose ids and clocks mean nothing here."""
    theirs = make_private_directory(tmp_path)
    os.utime(theirs / "owner", (0, 0))
    assert list(remove_dead_directories(tmp_path)) == []
    private.remove_directory(theirs)
    assert not theirs.exists()
    assert theirs not in private._held


def test_a_process_without_a_lock_lives(tmp_path: Path) -> None:
    """A process lives where files have no locks, and before its lock is taken."""
    ours = make_private_directory(tmp_path)
    private._held.pop(ours).close()
    assert list(remove_dead_directories(tmp_path)) == []


def test_what_an_older_version_spilled_is_named(tmp_path: Path) -> None:
    old = tmp_path / "x.duckdb.tmp"
    old.mkdir()
    (old / "duckdb_temp_storage-0.tmp").write_bytes(b"x")
    with connect(f"duckdb:///{tmp_path}/x.duckdb", create=True) as engine, Catalog.open(engine) as catalog:
        (line,) = gc(engine, catalog)
        assert str(old) in line
    assert old.exists()


def test_the_log_of_a_database_is_read_by_its_readers_alone(tmp_path: Path) -> None:
    file = tmp_path / "shared.duckdb"
    connect(f"duckdb:///{file}", create=True).close()
    file.chmod(0o640)
    before = os.umask(0o022)
    try:
        with connect(f"duckdb:///{file}") as engine:
            engine.driver_connection.execute("CREATE TABLE t AS SELECT 1 AS a")
            assert mode(Path(f"{file}.wal")) == 0o640
            with connect(f"duckdb:///{tmp_path}/new.duckdb", create=True):
                (tmp_path / "of the program").touch()
        assert (mode(tmp_path / "new.duckdb"), mode(tmp_path / "of the program")) == (0o600, 0o600)
        (tmp_path / "afterwards").touch()
        assert mode(tmp_path / "afterwards") == 0o644
    finally:
        os.umask(before)


def test_the_mask_is_given_back_whatever_the_order(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        guard = UmaskGuard()
        masks = [guard.enter(tmp_path / "a"), guard.enter(tmp_path / "b")]
        for mask in masks:
            assert guard.usual() == 0o022
            guard.leave(mask)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def file_policy(source: Path, release: Path) -> Policy:
    source.write_text("age,x\n30,a\n31,b\n30,c\n")
    return build_policy(
        {
            "source": {"file": str(source)},
            "release": {"file": str(release)},
            "attributes": {"age": {"role": "quasi-identifier"}, "x": {"role": "insensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 3}],
        }
    )


def test_the_catalog_is_not_where_the_release_is(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    outcome = run(file_policy(tmp_path / "in.csv", tmp_path / "out" / "r.csv"), options=OPTIONS)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["r.csv"]
    catalog = tmp_path / "sqlanon.duckdb"
    assert mode(catalog) == 0o600
    assert any(str(catalog) in note and "quasi-identifiers" in note for note in outcome.notes)
    assert outcome.as_json()["catalog"] == {"url": f"duckdb:///{catalog}", "schema": "sqlanon"}
    again = run(file_policy(tmp_path / "in.csv", tmp_path / "out" / "r.csv"), replace=True, options=OPTIONS)
    assert not any(str(catalog) in note for note in again.notes)


def test_beside_its_source_a_release_has_its_catalog_in_the_users_state(tmp_path: Path) -> None:
    run(file_policy(tmp_path / "in.csv", tmp_path / "r.csv"), options=OPTIONS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "r.csv"]
    catalog = local_catalog(str(tmp_path / "in.csv"), str(tmp_path / "r.csv"))
    assert str(catalog).startswith(os.environ["XDG_STATE_HOME"])
    assert (mode(catalog), mode(catalog.parent)) == (0o600, 0o700)
    assert local_catalog(str(tmp_path / "in.csv"), str(tmp_path / "other.csv")) == catalog


def test_a_catalog_of_an_older_version_stays_in_use(tmp_path: Path) -> None:
    older = tmp_path / "sqlanon.duckdb"
    connect(f"duckdb:///{older}", create=True).close()
    run(file_policy(tmp_path / "in.csv", tmp_path / "r.csv"), options=OPTIONS)
    with connect(f"duckdb:///{older}") as engine, Catalog.open(engine) as catalog:
        assert len(catalog.runs()) == 1
