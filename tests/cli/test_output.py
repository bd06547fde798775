"""Releases that are published while what is said of them can't be written: a closed pipe, a full disk, ASCII."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.cli.call import Call
from sqlanon.engines.session_limits import EngineOptions
from tests.cli.support import PROGRAM, ROOT, call, execute, make_patients, query, write_policy
from tests.random_cases import many

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

ROWS = 20
CODE = 5  # of a release that is published and could not be told


def started(
    out: int, *arguments: object, err: int = subprocess.PIPE, closed: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The program at its end, with `out` for its stdout; closed: streams that a shell closes, such as `2>&-`."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, *(str(argument) for argument in arguments)],
        stdout=out,
        stderr=err,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=120,
        check=False,
    )


def unwritable(how: str) -> int:
    """A descriptor that nothing can be written to."""
    if how == "full":
        return os.open("/dev/full", os.O_WRONLY)
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize(
    ("engine_name", "command", "how"),
    [
        ("duckdb", "run", "closed"),
        ("postgres", "run --json", "full"),
        ("duckdb", "apply", "closed"),
        ("postgres", "job", "closed"),
        ("duckdb", "job", "closed"),
        ("postgres", "run", "full"),
        ("duckdb", "run --json", "full"),
    ][: many(4)],
    indirect=["engine_name"],
)
def test_a_release_that_is_published_is_never_taken_for_none(
    database_url: str, tmp_path: Path, command: str, how: str
) -> None:
    make_patients(database_url, ROWS)
    policy = write_policy(tmp_path, database_url)
    place = ("--policy", policy)
    arguments: tuple[object, ...] = (*command.split(), policy)
    if command in ("apply", "job"):
        run = json.loads(call("run", policy, "--json", "-q").stdout)["run"]
        assert call("freeze", run, "--name", "nightly", *place).exit_code == 0
        execute(database_url, "DROP TABLE patients_released")
        arguments = {
            "apply": ("apply", run, "--to", "patients", *place),
            "job": ("job", "run", "nightly", *place),
        }[command]
    out = unwritable(how)
    done = started(out, *arguments, "--quiet")
    os.close(out)
    assert done.returncode == CODE, done.stderr
    (error,) = done.stderr.splitlines()
    assert error.startswith("Error: The release is published, as run ")
    assert error.split("as run ")[1].split(",")[0] in call("runs", *place).stdout
    assert query(database_url, "SELECT count(*) FROM patients_released") == [(ROWS,)]


def test_what_cannot_be_encoded_is_escaped(database_url: str, tmp_path: Path) -> None:
    make_patients(database_url, ROWS)
    execute(database_url, 'ALTER TABLE patients RENAME COLUMN sex TO "geschlecht_ä"')
    policy = write_policy(tmp_path, database_url)
    policy.write_text(policy.read_text(encoding="utf-8").replace("sex:", "geschlecht_ä:"), encoding="utf-8")
    for option, shown in ((), "geschlecht_\\xe4"), (("--json",), "geschlecht_\\u00e4"):
        page = tmp_path / "out"
        with page.open("wb") as out:
            done = started(out.fileno(), "run", policy, "--replace", "-q", *option, PYTHONIOENCODING="ascii")
        assert (done.returncode, done.stderr) == (0, "")
        assert shown in page.read_text(encoding="ascii")
    assert json.loads(page.read_text(encoding="ascii"))["quasi_identifiers"][2]["name"] == "geschlecht_ä"


@pytest.fixture
def unheard(how: str) -> Iterator[dict[str, Any]]:
    """Arguments of `started` that leave the program no stderr to write to."""
    if how == "none":
        yield {"closed": "2>&-"}
        return
    err = unwritable(how)
    yield {"err": err}
    os.close(err)


@pytest.mark.parametrize(
    ("engine_name", "how"),
    [("duckdb", "closed"), ("postgres", "none"), ("duckdb", "full"), ("postgres", "closed")][: many(3)],
    indirect=["engine_name"],
)
def test_what_nobody_hears_changes_no_result(database_url: str, tmp_path: Path, unheard: dict[str, Any]) -> None:
    """Progress, notes and errors are lost; what is done, and the exit code, are the same."""
    make_patients(database_url, ROWS)
    policy = write_policy(tmp_path, database_url)
    for options in ((), ("--progress", "json")):
        done = started(subprocess.PIPE, "run", policy, "--replace", *options, **unheard)
        assert (done.returncode, "What some classes show" in done.stdout) == (0, True), done.stdout
    execute(database_url, "DROP TABLE patients_released")
    assert started(subprocess.PIPE, "verify", policy, **unheard).returncode == 2
    assert started(subprocess.PIPE, "show", "nonesuch", "--policy", policy, **unheard).returncode == 2
    pipe = unwritable("closed")
    assert started(pipe, "run", policy, **unheard).returncode == CODE
    os.close(pipe)
    assert query(database_url, "SELECT count(*) FROM patients_released") == [(ROWS,)]


@pytest.mark.parametrize("how", ["full", "none"])
def test_output_that_nothing_takes_is_said_in_a_sentence(database_url: str, tmp_path: Path, how: str) -> None:
    make_patients(database_url, ROWS)
    policy = write_policy(tmp_path, database_url)
    out = unwritable("full")
    for code, command in (
        (CODE, ("run", policy, "-q")),
        (CODE, ("run", policy, "-q", "--json", "--replace")),
        (1, ("runs", "--policy", policy)),
        (1, ("runs", "--policy", policy, "--json")),
        (1, ("show", "nonesuch", "--policy", policy, "--json")),
        (1, ("schema",)),
        (1, ("risk", policy)),
    ):
        done = started(out, *command, closed=">&-" if how == "none" else "")
        (error,) = done.stderr.splitlines()
        assert (done.returncode, "the output could not be written" in error.lower()) == (code, True), done.stderr
    os.close(out)
    assert len(json.loads(call("runs", "--policy", policy, "--json").stdout)["runs"]) == 2


def test_json_holds_no_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(number: str) -> None:
        raise AssertionError(number)

    Call(EngineOptions(), json=True, verbose=False).emit({"a": [math.inf, (-math.inf, 0.5)], "b": {"c": math.nan}})
    written = json.loads(capsys.readouterr().out, parse_constant=fail)
    assert written == {"a": ["inf", ["-inf", 0.5]], "b": {"c": "nan"}}
