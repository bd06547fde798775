"""The program as a process: exit codes, secrets, interrupts."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from sqlanon import __version__
from tests.cli.support import (
    PROGRAM,
    ROOT,
    call,
    call_main,
    execute,
    finish,
    make_patients,
    only_object,
    query,
    run_program,
    spawn,
    write_policy,
)
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def test_usage_errors_end_with_2(tmp_path: Path) -> None:
    for arguments in (["nonesuch"], []):
        code, _, err = run_program(*arguments)
        assert code == 2, arguments
        assert "Traceback" not in err
    code, out, err = run_program("run", "--nonesuch", "--json")
    assert code == 2
    assert only_object(out)["error"]["type"] == "UsageError"
    code, out, err = run_program("runs", "superfluous")
    assert (code, out) == (2, "")
    assert err.rstrip().splitlines()[-1].startswith("Error: ")
    assert "superfluous" in err
    assert len(err.splitlines()) < 6
    code, out, err = run_program("run", tmp_path / "none.yml")
    assert (code, out) == (2, "")
    assert "none.yml" in err


def test_help_and_version_end_with_0() -> None:
    assert run_program("--version") == (0, f"sqlanon {__version__}\n", "")
    code, out, _ = run_program("run", "--help")
    assert code == 0
    assert "--dry-run" in out


def test_no_connection_ends_with_4(tmp_path: Path) -> None:
    code, out, _ = run_program("runs", "--url", f"duckdb:///{tmp_path / 'none.duckdb'}", "--json")
    assert code == 4
    assert only_object(out)["error"]["exit_code"] == 4
    code, out, err = run_program("runs", "--url", f"postgresql://user:hidden-word@/db?host={tmp_path}")
    assert (code, out) == (4, "")
    assert "hidden-word" not in err


def test_a_wrong_password_is_not_shown(
    postgres_server: PostgresServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    postgres_server.run("DROP ROLE IF EXISTS locked")
    postgres_server.run("CREATE ROLE locked LOGIN PASSWORD 'right'")
    try:
        url = postgres_server.url("postgres", "locked", "swordfish-1")
        policy = write_policy(tmp_path, "${CLINIC}")
        calls = [
            ("run", policy),
            ("run", policy, "--json"),
            ("check", policy),
            ("runs", "--url", url),
            ("init", url, "t"),
        ]
        ended = [call_main(capfd, *arguments, environment={"CLINIC": url}) for arguments in calls]
        ended.append(run_program(*calls[0], environment={"CLINIC": url}))
        for code, out, err in ended:
            assert code == 4, out + err
            assert "swordfish" not in out + err
            assert "Traceback" not in err
    finally:
        postgres_server.run("DROP ROLE locked")


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "postgresql://user:swordfish@host/db"],
        ["run", "postgresql://user:swordfish@host/db"],
        ["run", "postgresql://user:sword fish@swordfish@host/db", "--json"],
        ["runs", "postgresql://host/db?user=a&password=swordfish", "--json"],
        ["init", "user:swordfish@host/db"],
        ["verify", "postgres//user:swordfish@host"],
        ["hierarchy", "show", "duckdb://x:swordfish@y", "a"],
        ["runs", "--url", "host=nowhere password=swordfish"],
        ["runs", "--url", "postgrs://user:swordfish@host/db"],
    ],
)
def test_a_password_at_the_wrong_place_is_not_shown(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = call_main(capfd, *arguments)
    assert code in (2, 4)
    assert out + err
    assert "fish" not in out + err


def test_no_privilege_ends_with_4(postgres_url: str, restricted_role: tuple[str, str], tmp_path: Path) -> None:
    make_patients(postgres_url)
    _, url = restricted_role
    policy = write_policy(tmp_path, url, source="table: public.patients}")
    for command in ("check", "run"):
        result = call(command, policy, "--json")
        assert result.exit_code == 4, result.output
        assert "Traceback" not in result.output


def test_progress_is_live_on_a_terminal(database_url: str, tmp_path: Path) -> None:
    make_patients(database_url, 20_000)
    policy = write_policy(tmp_path, database_url)
    master, slave = pty.openpty()
    process = spawn("run", policy, stderr=slave)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's end of file
        while block := os.read(master, 4096):
            shown += block
    code, out, _ = finish(process)
    os.close(master)
    assert code == 0
    assert "Published" in out
    assert b"\x1b[" in shown
    for phase in (b"planning", b"searching", b"publishing"):
        assert re.search(rb"done[^\r\n]*" + phase + rb" [0-9.]+ s", shown.replace(b"\x1b[0m", b""))
    assert b"rows active" in shown


def test_an_unexpected_error_is_one_line(duckdb_policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret cell value")

    monkeypatch.setattr("sqlanon.runs.linking.check_run", fail)
    result = call("check", duckdb_policy)
    assert result.exit_code == 1
    assert "RuntimeError" in result.stderr
    assert "secret cell value" not in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "secret cell value" in call("check", duckdb_policy, "-v").stderr
    assert only_object(call("check", duckdb_policy, "--json").stdout)["error"]["exit_code"] == 1


def test_an_interrupt_after_all_is_done_changes_nothing() -> None:
    late = "import atexit, os, signal; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); "
    program = [*PROGRAM[:-1], late + PROGRAM[-1], "--version"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_the_old_release(database_url: str, tmp_path: Path, signal_number: int) -> None:
    make_patients(database_url, 60_000)
    execute(database_url, "CREATE TABLE patients_released AS SELECT 'old' AS age")
    policy = write_policy(tmp_path, database_url)
    process = spawn("run", policy, "--replace")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("searching"):
            process.send_signal(signal_number)
            break
    code, out, err = finish(process)
    assert code == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert query(database_url, "SELECT age FROM patients_released") == [("old",)]
    left = query(
        database_url, "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'w\\_%' ESCAPE '\\'"
    )
    assert left == []
    (run,) = only_object(call("runs", "--url", database_url, "--json").stdout)["runs"]
    assert run["status"] == "cancelled"


@pytest.mark.parametrize(
    ("arguments", "names"),
    [(["show"], "RUN"), (["diff", "1"], "RUN_B"), (["verify", "--help"], "TABLE"), (["init", "--help"], "URL")],
)
def test_arguments_have_the_names_that_the_guides_give_them(
    arguments: list[str], names: str, capfd: pytest.CaptureFixture[str]
) -> None:
    _, out, err = call_main(capfd, *arguments)
    usage = next(line for line in (out + err).splitlines() if "Usage:" in line)
    assert re.search(rf"\b{names}\b", usage)
    assert not re.search(r"[{\[][a-z]", usage)
    if "--help" not in arguments:
        assert f"Missing argument '{names}'" in err
