"""A real PostgreSQL server for tests, in a directory of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.directories import make_directory

_numbers = itertools.count()
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "",  # a socket alone, in our own directory: no port to collide on
    "shared_buffers": "64MB",
    "max_connections": "50",
    "max_wal_size": "256MB",
    "max_locks_per_transaction": "128",
    "autovacuum": "off",
    "dynamic_shared_memory_type": "mmap",  # in our own directory, so that it goes with it
}


@dataclass(frozen=True)
class PostgresServer:
    """A running server and how to reach it."""

    directory: Path

    def url(self, database: str, user: str = "postgres", password: str | None = None) -> str:
        """A URL for the database; only the role `locked` must give its password, others have none."""
        secret = "" if password is None else f":{password}"
        return f"postgresql://{user}{secret}@/{database}?host={self.directory}&port=5432"

    def run(self, statement: str) -> None:
        """Run a statement of the administrator."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def create(self, database: str, template: str = "template1") -> None:
        """Make a database, by copying files where the server can: that takes half as long as writing them to a log."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            how = "STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}" {how}'.encode())

    @contextlib.contextmanager
    def temporary(self, beginning: str = "test") -> Iterator[str]:
        """A fresh database: its name, which begins so and was never given before. It is dropped in the end."""
        name = f"{beginning}_{next(_numbers)}"
        self.create(name)
        try:
            yield name
        finally:
            self.run(f'DROP DATABASE "{name}" WITH (FORCE)')


def crash(server: PostgresServer) -> None:
    """Kill the server as a power failure would, and start it again."""
    restart(server, "immediate")


def restart(server: PostgresServer, mode: str) -> None:
    """Stop the server, `fast` or `immediate`, and start it again."""
    binaries = find_binaries()
    assert binaries is not None
    data = server.directory / "data"
    _run(binaries / "pg_ctl", "-D", data, "-l", server.directory / "log", "-m", mode, "-w", "restart")


def find_binaries() -> Path | None:
    """The directory of initdb and postgres: as told by the environment, by pg_config, or the newest of Debian's."""
    candidates = [os.environ.get("SQLANON_TEST_POSTGRES_BIN"), _configured(), *_installed()]
    return next((Path(path) for path in candidates if path and (Path(path) / "initdb").exists()), None)


def _configured() -> str | None:
    if shutil.which("pg_config") is None:
        return None
    return subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True).stdout.strip()


def _installed() -> list[str]:
    found = Path("/usr/lib/postgresql").glob("*/bin")
    return [str(path) for path in sorted(found, key=lambda path: int(path.parent.name), reverse=True)]


@contextlib.contextmanager
def start(binaries: Path, settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server that lives as long as the context. Root can't run one, so it becomes the user `postgres`.

    settings: more of them; `{directory}` stands for the server's directory, where its socket is.
    """
    directory = make_directory("pg")
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres", "postgres")
    data = directory / "data"
    try:
        _run(
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            *_locale(binaries),
        )
        _configure(data, directory, settings or {})
        _run(binaries / "pg_ctl", "-D", data, "-l", directory / "log", "-w", "start")
        try:
            yield PostgresServer(directory)
        finally:
            _run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _configure(data: Path, directory: Path, more: Mapping[str, str]) -> None:
    given = {name: value.replace("{directory}", str(directory)) for name, value in more.items()}
    settings = {**_SETTINGS, "unix_socket_directories": str(directory), **given}
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    access = data / "pg_hba.conf"
    access.write_text("local all locked scram-sha-256\n" + access.read_text())


def _locale(binaries: Path) -> list[str]:
    """A language's collation where the server can have one, so that text order left to the server shows in tests."""
    version = subprocess.run([binaries / "initdb", "--version"], capture_output=True, text=True, check=True).stdout
    major = re.search(r"(\d+)", version)
    assert major is not None
    plain = ["--locale=C.UTF-8"]
    return [*plain, "--locale-provider=icu", "--icu-locale=en-US"] if int(major[1]) >= 15 else plain


def _run(*command: object) -> None:
    as_postgres: dict[str, Any] = {}
    if os.geteuid() == 0:
        as_postgres = {"user": "postgres", "group": "postgres", "extra_groups": []}
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        check=False,
        **as_postgres,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")
