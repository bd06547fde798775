"""gc, runs --watch and cancel beside files that are no progress of a run: these are named and left, the rest goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.private_files import make_private_directory
from sqlanon.support.process import this_process
from tests.cli.support import call, execute, make_patients, query, write_policy

RUN = "260101-000000-0123abcd"
GONE = "elsewhere/-/999999999/-"
PROGRESS: dict[str, Any] = {
    "version": 1,
    "run": RUN,
    "source": "patients",
    "release": "released",
    "process": GONE,
    "state": {"phase": "search", "nodes": 3},
    "seconds": 1.5,
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A DuckDB file with a catalog."""
    file = tmp_path / "clinic.duckdb"
    make_patients(f"duckdb:///{file}", 60)
    assert call("db", "upgrade", "--url", f"duckdb:///{file}").exit_code == 0
    return file


def dead() -> dict[str, Any]:
    """The progress of a run of this host whose process is gone."""
    host, boot, _, start = this_process().rsplit("/", 3)
    return PROGRESS | {"process": f"{host}/{boot}/999999999/{start}"}


def written(content: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(content)


def changed(**values: Any) -> Callable[[Path], object]:
    return written(json.dumps(PROGRESS | values).encode())


ODD: dict[str, Callable[[Path], object]] = {
    "empty": written(b""),
    "truncated": written(json.dumps(PROGRESS).encode()[:40]),
    "no JSON": written(b"\x00\xff\xfe"),
    "a list": written(b"[1, 2]"),
    "a number": written(b"7"),
    "null": written(b"null"),
    "nested": written(b"[" * 100_000),
    "a key twice": written(b'{"run": 1, "run": 2}'),
    "no keys": written(b"{}"),
    "a foreign run": changed(run="another"),
    "a number of a process": changed(process=5),
    "no process": changed(process="x"),
    "no number of a process": changed(process="h/b/p/s"),
    "a state of text": changed(state="search"),
    "figures of text": changed(state={"phase": "search", "nodes": "many"}),
    "a time of text": changed(seconds="long"),
    "no finite time": written(json.dumps(PROGRESS | {"seconds": float("nan")}).encode()),
    "huge": lambda file: file.write_bytes(b" " * (2**20 + 1)),
    "a directory": lambda file: file.mkdir(),
    "a pipe": os.mkfifo,
    "a link to nowhere": lambda file: file.symlink_to(file.with_name("nowhere")),
    "a link": lambda file: file.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", ODD)
def test_gc_names_what_it_can_not_read_and_goes_on(kind: str, database: Path) -> None:
    odd = database.with_name(f"{database.name}.run-{RUN}.json")
    ODD[kind](odd)
    other = database.with_name(f"{database.name}.run-270101-000000-0123abcd.json")
    other.write_text(json.dumps(dead() | {"run": "270101-000000-0123abcd"}))
    url = f"duckdb:///{database}"
    watched = call("runs", "--watch", "--url", url)
    assert watched.exit_code == 0, watched.output
    cancelled = call("cancel", RUN, "--url", url)
    assert (cancelled.exit_code, f"No run '{RUN}' goes on" in cancelled.stderr) == (2, True)
    done = call("gc", "--url", url, "--json")
    assert done.exit_code == 0, done.output
    skipped, removed = sorted(json.loads(done.stdout)["done"], reverse=True)
    assert skipped.startswith(f"skipped file {odd}: it ")
    assert removed == f"removed file {other}"
    assert os.path.lexists(odd)


def test_gc_removes_what_has_no_progress_file_any_more(database: Path) -> None:
    orphans = [database.with_name(f"{database.name}.run-{RUN}.{ending}") for ending in ("part", "cancel")]
    for orphan in orphans:
        orphan.write_text("{")
    foreign = [database.with_name(f"{database.name}.run-notes.part"), database.with_name("other.duckdb.run-1.part")]
    for path in foreign:
        path.touch()
    link = database.with_name(f"{database.name}.run-260101-000000-00000000.part")
    link.symlink_to(foreign[0])
    done = json.loads(call("gc", "--url", f"duckdb:///{database}", "--json").stdout)["done"]
    assert sorted(done) == sorted(f"removed file {orphan}" for orphan in orphans)
    assert [path.exists() for path in (*orphans, *foreign, link)] == [False, False, True, True, True]


def test_the_next_command_or_gc_removes_empty_directories_of_dead_commands(database: Path) -> None:
    """A command was killed before it wrote whose the directory is, or as it removed the directory."""
    living = make_private_directory(database.parent)

    def left() -> list[Path]:
        made = [
            database.with_name(name) for name in ("sqlanon-spill-999999999-abc", f"sqlanon-spill-{os.getpid()}-abc")
        ]
        for path in made:
            path.mkdir()
        os.utime(made[1], (0, 0))  # the process that has this number now began later
        return made

    foreign = database.with_name("sqlanon-spill-notes")
    foreign.mkdir()
    made = left()
    assert call("runs", "--url", f"duckdb:///{database}").exit_code == 0
    assert [path.exists() for path in (*made, living, foreign)] == [False, False, True, True]
    made = left()
    done = call("gc", "--url", f"duckdb:///{database}").stdout
    assert [f"removed directory {path}" in done for path in made] == [True, True]
    assert [path.exists() for path in (*made, living, foreign)] == [False, False, True, True]


def test_parts_of_a_release_file_go_and_files_of_others_stay(database: Path, tmp_path: Path) -> None:
    url, file = f"duckdb:///{database}", tmp_path / "released.csv"
    assert call("run", write_policy(tmp_path, url)).exit_code == 0
    execute(url, f"UPDATE sqlanon.runs SET status = 'running', release = '{file}', process = '{dead()['process']}'")
    execute(url, "DELETE FROM sqlanon.releases")
    part, notes, link = (file.with_name(f"released.csv.part-{end}") for end in ("0123abcd", "notes", "0123abce"))
    part.touch()
    notes.touch()
    link.symlink_to(notes)
    done = call("gc", "--url", url)
    assert (done.exit_code, f"removed file {part}" in done.stdout) == (0, True), done.output
    assert [path.exists() for path in (part, notes, link)] == [False, True, True]
    assert query(url, "SELECT status FROM sqlanon.runs") == [("failed",)]


def test_a_run_whose_record_is_damaged_does_not_keep_others(database: Path, tmp_path: Path) -> None:
    url, dead_process = f"duckdb:///{database}", dead()["process"]
    policy = write_policy(tmp_path, url)
    assert [call("run", policy, "--replace").exit_code for _ in range(2)] == [0, 0]
    execute(url, f"UPDATE sqlanon.runs SET status = 'running', process = '{dead_process}'")
    execute(url, "DELETE FROM sqlanon.releases")
    run = "(SELECT min(id) FROM sqlanon.runs)"
    execute(
        url,
        f"INSERT INTO sqlanon.work_tables SELECT {run}, '\"broken', database, FALSE, started FROM sqlanon.runs LIMIT 1",
    )
    done = call("gc", "--url", url)
    assert (done.exit_code, "skipped run " in done.stdout) == (0, True), done.output
    assert query(url, "SELECT status FROM sqlanon.runs ORDER BY id") == [("running",), ("failed",)]


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is kept from root")
def test_a_directory_that_can_not_be_removed_is_named(database: Path) -> None:
    left = database.with_name("sqlanon-spill-999999999-abc")
    (left / "inner").mkdir(parents=True)
    (left / "inner" / "file").touch()
    (left / "inner").chmod(0o500)
    try:
        done = call("gc", "--url", f"duckdb:///{database}")
        assert (done.exit_code, f"skipped directory {left}" in done.stdout) == (0, True)
    finally:
        (left / "inner").chmod(0o700)
