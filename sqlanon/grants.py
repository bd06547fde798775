"""The roles that a policy needs on PostgreSQL, as a script of grants: what each must have, and no more."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sqlanon.engines.urls import redacted, require_escaped, scheme_of
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Role
from sqlanon.roles import Roles
from sqlanon.sql import Identifier, Relation, Text, renderer


def grant_script(policy: Policy, roles: Roles, *, pg_cron: bool = False) -> str:
    """The statements that make the roles and give them their privileges.

    pg_cron: whether the runner may schedule jobs.

    Raises:
        PolicyError: source, release and catalog are not all in one PostgreSQL database, or roles have the same name.
    """
    url, table, released = policy.source.url, policy.source.table, policy.release.table
    if url is None or table is None or scheme_of(url) not in ("postgresql", "postgres"):
        raise PolicyError("source: roles are PostgreSQL's; a DuckDB file is protected by its own permissions.")
    if released is None or policy.release.url not in (None, url) or policy.catalog.url not in (None, url):
        raise PolicyError("The script is for one database, and release or catalog are elsewhere: grant there by hand.")
    if len({roles.owner, roles.runner, roles.reader}) < 3:
        raise PolicyError("Owner, runner and reader are three roles: give each a name of its own.")
    source, release = _relation(table), _relation(released)
    values: dict[str, Any] = {
        "database": Identifier(_database(url)),
        "roles": [
            _role(roles.owner, owns=True),
            _role(roles.runner, owns=True, logs_in=True),
            _role(roles.reader),
        ],
        "owner": Identifier(roles.owner),
        "runner": Identifier(roles.runner),
        "reader": Identifier(roles.reader),
        "catalog": Identifier(policy.catalog.schema_),
        "source": source,
        "source_schema": Identifier(str(source.schema)),
        "release_schema": Identifier(str(release.schema)),
        "own_schema": release.schema not in (source.schema, "public"),
        "columns": [Identifier(n) for n, a in policy.attributes.items() if a.role is not Role.IDENTIFIER],
        "pg_cron": pg_cron,
    }
    return renderer("postgres")("roles/grant_privileges", **values).text


def _relation(text: str) -> Relation:
    """A table as SQL reads its name, in the schema `public` if none is named."""
    read = Relation.parse(text if '"' in text else text.lower())
    return Relation(read.name, read.schema or "public")


def _role(name: str, *, owns: bool = False, logs_in: bool = False) -> dict[str, Any]:
    return {"name": Identifier(name), "literal": Text(name), "owns": owns, "logs_in": logs_in}


def _database(url: str) -> str:
    require_escaped(url)
    try:
        name = conninfo_to_dict(url).get("dbname")
    except psycopg.ProgrammingError:  # its message may quote the password
        raise PolicyError(f"source.url: {redacted(url)} can't be read.") from None
    if not name:
        raise PolicyError("source.url: names no database, and grants need its name.")
    return str(name)
