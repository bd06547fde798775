"""A database whose server can start the program, with the function of questions and the roles that own and call it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from sqlanon.inquiries.questions.ask_function import AskFunction, ask_function_script
from sqlanon.policy import Policy
from sqlanon.policy.grants import grant_script
from sqlanon.policy.loading import load_policy
from sqlanon.policy.writer import policy_text
from sqlanon.support.roles import Roles
from tests.postgres_server import PostgresServer, find_binaries
from tests.run_support import Database, open_database, quoted

ROOT = Path(__file__).parents[3]
NAME = 'questions."ask ""it"""'
TABLE = 'people."The pay"'
COLUMNS = {"age": "INTEGER", "job": "TEXT", "income": "INTEGER"}
ROLES = {"age": "quasi-identifier", "job": "quasi-identifier", "income": "sensitive"}
ROWS: list[tuple[Any, ...]] = [(30, "cook", 7), (31, "nurse", 11), (32, "nurse", 13), (33, "cook", 17)]
ROWS += [(34, None, 19), (35, "nurse", 23), (36, "cook", 29), (None, "cook", 31)]

_numbers = itertools.count()
_as_postgres: dict[str, Any] = {"user": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


@dataclass(frozen=True)
class AskPlace:
    """A database with a table, the role that may read it, the one that may ask of it, and the policy's file."""

    owner: Database
    runner: str
    analyst: str
    file: Path
    policy: Policy
    python: Path

    def url(self, role: str) -> str:
        return self.owner.url.replace("//postgres@", f"//{quote(role)}@")

    def script(self, name: str = NAME) -> str:
        return ask_function_script(self.policy, AskFunction(name, self.runner, self.analyst, self.file, self.python))

    def session(self, role: str | None = None, **settings: Any) -> psycopg.Connection[Any]:
        """A session of the analyst, or of another role."""
        return psycopg.connect(self.url(role or self.analyst), autocommit=True, **settings)

    def ask(self, session: psycopg.Connection[Any], text: str, *more: Any) -> dict[str, Any]:
        """Ask by the function."""
        marks = ", ".join(["%s"] * (1 + len(more)))
        row = session.execute(f"SELECT {NAME.replace('%', '%%')}({marks})", [text, *more]).fetchone()
        assert row is not None
        answer: dict[str, Any] = row[0]
        return answer


def require_python(directory: Path) -> Path:
    """A Python with the program that the server's user can run; skips where there is none."""
    binaries = find_binaries()
    if binaries is None or not (binaries.parent / "lib" / "plpython3.so").exists():
        reason = "no PL/Python: install postgresql-plpython3-NN"
        if os.environ.get("SQLANON_REQUIRE_POSTGRES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    for base in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return _made_python(base, directory / "python")
    pytest.skip("no Python that the server's user of the operating system can run with the program")


def _made_python(base: str, directory: Path) -> Path:
    """An environment of a Python that reads the packages of this one."""
    python = directory / "bin" / "python"
    _run(base, "-m", "venv", "--clear", "--without-pip", directory)
    (packages,) = directory.glob("lib/*/site-packages")
    (packages / "program.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    _run(python, "-I", "-c", "import sqlanon.cli.ask, numpy, psycopg")
    return python


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True, cwd="/", **_as_postgres)


@contextlib.contextmanager
def open_ask_place(
    server: PostgresServer,
    url: str,
    python: Path,
    policy: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] = COLUMNS,
    rows: Sequence[tuple[Any, ...]] = ROWS,
    *,
    as_granted: bool = False,
) -> Iterator[AskPlace]:
    """The database at `url` with a table that the runner may read, and the function; all roles are gone at the end.

    as_granted: whether the runner has what the script of grants gives it, and not the whole table.
    """
    number = next(_numbers)
    runner, analyst = f"the asker {number}", f'an "analyst" {number}'
    with open_database(url) as owner:
        owner.sql("CREATE SCHEMA people")
        owner.create(columns, rows, name=TABLE)
        place = _place(server, owner, (runner, analyst), python, policy or {})
        for statement in [grant_script(place.policy, Roles(runner, analyst))] if as_granted else _rights(owner, runner):
            owner.sql(statement)
        place.owner.sql(place.script())
        place.owner.sql(place.script())  # as after a change of the policy
        owner.sql(f"ALTER ROLE {quoted(analyst)} LOGIN")
        yield place
        for role in (runner, analyst):
            owner.sql(f"DROP OWNED BY {quoted(role)} CASCADE")
    for role in (runner, analyst):
        server.run(f"DROP ROLE {quoted(role)}")


def _rights(owner: Database, runner: str) -> list[str]:
    ((database,),) = owner.sql("SELECT current_database()")
    return [
        f"CREATE ROLE {quoted(runner)} LOGIN",
        f"GRANT CREATE ON DATABASE {quoted(database)} TO {quoted(runner)}",
        f"GRANT USAGE ON SCHEMA people TO {quoted(runner)}",
        f"GRANT SELECT ON {TABLE} TO {quoted(runner)}",
    ]


def _place(
    server: PostgresServer, owner: Database, roles: tuple[str, str], python: Path, more: Mapping[str, Any]
) -> AskPlace:
    url = owner.url.replace("//postgres@", f"//{quote(roles[0])}@")
    attributes = more.get("attributes", ROLES)
    others = {name: value for name, value in more.items() if name != "attributes"}
    policy = Database(url, None, "").policy(TABLE, attributes, release={"table": "people.released"}, **others)
    file = server.directory / f"policy '{next(_numbers)}' $$.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    file.chmod(0o644)
    return AskPlace(owner, *roles, file, load_policy(file), python)


def log_of(server: PostgresServer) -> str:
    return (server.directory / "log").read_text(encoding="utf-8", errors="replace")


def shown(error: psycopg.Error) -> str:
    """All that a caller sees of an error."""
    parts = error.diag
    return json.dumps([getattr(parts, name) for name in dir(parts) if not name.startswith("_")], default=str)
