"""Working directories that are no text, terminals of ASCII, and interrupts while a database is opened."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest

from sqlanon.engines.worker import open_in_thread
from sqlanon.errors import Cancelled
from tests.cli.support import PROGRAM, call, make_patients, query, write_policy
from tests.patience import PATIENCE, wait_until
from tests.postgres_server import PostgresServer

PEOPLE = "age,größe,job\n" + "".join(f"{20 + n % 5},{n % 3},{'ab'[n % 2]}\n" for n in range(60))
POLICY = """\
source: {file: people.csv}
release: {file: released.csv}
attributes:
  age: {role: quasi-identifier}
  größe: {role: quasi-identifier}
  job: {role: sensitive}
privacy: [{model: k-anonymity, k: 2}]
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}


def execute(directory: bytes, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def unreadable(tmp_path: Path) -> bytes:
    """A directory whose name is no UTF-8, with a file, a database and a policy of each."""
    directory = os.fsencode(tmp_path) + b"/caf\xe9"
    make_patients(f"duckdb:///{tmp_path / 'clinic.duckdb'}", 20)
    write_policy(tmp_path, "duckdb:///clinic.duckdb").rename(tmp_path / "database.yml")
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    (tmp_path / "file.yml").write_text(POLICY, encoding="utf-8")
    os.mkdir(directory)
    for name in (b"clinic.duckdb", b"people.csv", b"file.yml", b"database.yml"):
        os.rename(os.fsencode(tmp_path) + b"/" + name, directory + b"/" + name)
    return directory


@pytest.mark.parametrize("policy", ["file.yml", "database.yml"])
@pytest.mark.parametrize("command", ["check", "run", "gc", "runs"])
def test_a_directory_that_is_no_text_is_refused_in_a_sentence(unreadable: bytes, policy: str, command: str) -> None:
    place = ["--policy", policy] if command in ("gc", "runs") else [policy]
    done = execute(unreadable, command, *place)
    assert done.returncode == 2, done.stderr
    assert b"is not text in UTF-8" in done.stderr
    assert b"nexpected" not in done.stderr


@pytest.mark.parametrize("arguments", [["init", "people.csv"], ["check", "file.yml"], ["run", "file.yml", "--replace"]])
def test_a_terminal_of_ascii_shows_what_it_can(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    (tmp_path / "file.yml").write_text(POLICY, encoding="utf-8")
    done = execute(os.fsencode(tmp_path), *arguments, **ASCII)
    assert done.returncode == 0, done.stderr
    if arguments[0] == "init":
        assert "größe:" in done.stdout.decode()  # a draft is read as it stands


def test_an_interrupt_does_not_wait_until_a_file_is_open() -> None:
    opening, may_end, closed = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        opening.set()
        assert may_end.wait(PATIENCE)
        return "opened"

    main = threading.main_thread().ident
    assert main is not None
    threading.Thread(target=lambda: opening.wait(PATIENCE) and signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(Cancelled):
        open_in_thread(slow, lambda _: closed.set())
    may_end.set()
    wait_until(closed.is_set)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_connection_that_is_being_made(number: signal.Signals) -> None:
    """The server takes the connection, and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        url = f"postgresql://somebody@127.0.0.1:{server.getsockname()[1]}/clinic"
        process = subprocess.Popen([*PROGRAM, "runs", "--url", url], stderr=subprocess.PIPE)
        server.settimeout(PATIENCE)
        taken, _ = server.accept()
        with taken:
            process.send_signal(number)
            _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, b"Interrupted" in errors) == (130, True)


def _create(server: PostgresServer, name: str, encoding: str) -> None:
    with psycopg.connect(server.url("postgres")) as connection:
        provider = "LOCALE_PROVIDER libc" if connection.info.server_version >= 150000 else ""
    server.run(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' {provider} TEMPLATE template0")


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_anonymized(
    postgres_server: PostgresServer, tmp_path: Path, encoding: str
) -> None:
    """Neither the program's own signs, such as dashes, nor letters of the table's names and values stop a command."""
    name = f"in_{encoding.lower()}"
    _create(postgres_server, name, encoding)
    try:
        url = postgres_server.url(name)
        with psycopg.connect(url, client_encoding="utf8") as connection:
            connection.execute(
                "CREATE TABLE people AS SELECT 20 + i % 5 AS age, i % 3 AS größe, DATE '2020-01-01' + i % 40 AS day,"
                " (ARRAY['Käse', 'Brot'])[1 + i % 2] AS job FROM generate_series(0, 59) AS i"
            )
        drafted = call("init", url, "people", "-o", tmp_path / "draft.yml")
        assert drafted.exit_code == 0, drafted.output
        assert call("risk", url, "people", "--qi", "age,größe,day").exit_code == 0
        (tmp_path / "policy.yml").write_text(
            POLICY.replace("file: people.csv", f"url: '{url}', table: people")
            .replace("file: released.csv", "table: released")
            .replace("  job:", "  day: {role: quasi-identifier}\n  job:"),
            encoding="utf-8",
        )
        for command in ("check", "run", "verify"):
            done = call(command, tmp_path / "policy.yml")
            assert done.exit_code == 0, done.output
        ranges = query(url, "SELECT count(*) FROM released WHERE job = 'Käse'")
        assert ranges == [(30,)]
    finally:
        postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_bytes_of_no_encoding_are_carried_in_values_and_refused_in_names(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    _create(postgres_server, "of_bytes", "SQL_ASCII")
    try:
        url = postgres_server.url("of_bytes")
        make_patients(url)
        cafe = "UPDATE patients SET disease = E'caf\\351' WHERE ssn % 4 = 0"
        with psycopg.connect(url, client_encoding="sql_ascii", autocommit=True) as connection:
            connection.execute(cafe.encode())
        policy = write_policy(tmp_path, url)
        commands = [("init", url, "patients"), ("risk", policy), ("run", policy)]
        for command in [*commands, ("verify", policy)]:
            done = call(*command)
            assert done.exit_code == 0, done.output
        released = "SELECT count(*) FROM patients_released WHERE disease LIKE 'caf_'"
        assert query(url, released) == [(50,)]
        with psycopg.connect(url, client_encoding="sql_ascii", autocommit=True) as connection:
            connection.execute(b'ALTER TABLE patients ADD COLUMN "na\xefve" INTEGER')
        for command in [*commands, ("verify", policy)]:
            done = call(*command)
            assert (done.exit_code, "is no valid UTF-8" in done.output) == (1, True), done.output
    finally:
        postgres_server.run("DROP DATABASE of_bytes WITH (FORCE)")
