"""A database with the roles that the script of `grant-script` makes, and no others."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sqlanon.policy import Policy
from sqlanon.policy.grants import grant_script
from sqlanon.policy.loading import build_policy
from sqlanon.support.roles import Roles
from tests.postgres_server import PostgresServer
from tests.run_support import Database, open_database, quoted

_numbers = itertools.count()
COLUMNS = {
    "ssn": "INTEGER UNIQUE",
    'the "age"': "INTEGER",
    "job": "VARCHAR(9)",
    "Disease": "VARCHAR(1)",
    "notes": "JSONB",
}
ATTRIBUTES: dict[str, Any] = {
    "ssn": {"role": "identifier"},
    'the "age"': {"role": "quasi-identifier"},
    "job": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "Disease": {"role": "sensitive"},
    "notes": {"role": "omit"},
}


@dataclass(frozen=True)
class Place:
    """A database with a source, the roles of its script, and how each of them connects."""

    owner: Database
    roles: Roles
    postgres_url: str

    def url(self, role: str) -> str:
        return self.postgres_url.replace("//postgres@", f"//{quote(role)}@")

    def policy(self, role: str, **more: Any) -> Policy:
        data: dict[str, Any] = {
            "source": {"url": self.url(role), "table": 'people."The patients"'},
            "release": {"table": "released.patients"},
            "attributes": ATTRIBUTES,
            "privacy": [
                {"model": "k-anonymity", "k": 3},
                {"model": "distinct-l-diversity", "attribute": "Disease", "l": 2},
            ],
        }
        return build_policy(data | more)

    def grant(self, by: str = "postgres", roles: Roles | None = None, **more: Any) -> None:
        """Run the script twice, as after a change of the policy."""
        with open_database(self.url(by)) as session:
            for _ in range(2):
                session.sql(grant_script(self.policy("postgres", **more), roles or self.roles))


@contextlib.contextmanager
def open_place(server: PostgresServer, url: str) -> Iterator[Place]:
    """The database at `url` with a source; nothing is granted yet, and all roles are gone at the end."""
    number = next(_numbers)
    roles = Roles(f"the runner {number}", f"reader_{number}")
    with open_database(url) as database:
        database.sql("CREATE SCHEMA people")
        rows = [(i, i * 7 % 40, "abc"[i % 3], "xyz"[i * 5 % 7 % 3], f"{i % 9}") for i in range(120)]
        database.create(COLUMNS, rows, name='people."The patients"')
        database.sql("CREATE TABLE people.others AS SELECT 1 AS secret")
        yield Place(database, roles, url)
        for role in (roles.runner, roles.reader):
            if database.sql("SELECT 1 FROM pg_roles WHERE rolname = ?", [role]):
                database.sql(f"DROP OWNED BY {quoted(role)} CASCADE")
    for role in (roles.runner, roles.reader):
        server.run(f"DROP ROLE IF EXISTS {quoted(role)}")
