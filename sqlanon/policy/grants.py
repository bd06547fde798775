"""The roles that a policy needs on PostgreSQL, as a script of grants: what each must have, and no more."""

from __future__ import annotations

from typing import Any

from sqlanon.engines.dialects import Dialect, dialect_of_url
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Role
from sqlanon.policy.differential_privacy import mechanism_of
from sqlanon.sql import Identifier, Relation, Text
from sqlanon.support.roles import Roles


def grant_script(policy: Policy, roles: Roles, *, pg_cron: bool = False) -> str:
    """The statements that make the roles and give them their privileges.

    pg_cron: whether the runner may schedule jobs.

    Raises:
        PolicyError: source, release and catalog are not all in one PostgreSQL database, or roles have the same name.
    """
    url, table, released = policy.source.url, policy.source.table, policy.release.table
    dialect = EMBEDDED if url is None else dialect_of_url(url)
    dialect.has_roles.require("source: ")
    assert url is not None
    assert table is not None
    if released is None or policy.release.url not in (None, url) or policy.catalog.url not in (None, url):
        raise PolicyError("The script is for one database, and release or catalog are elsewhere: grant there by hand.")
    if roles.runner == roles.reader:
        raise PolicyError("Runner and reader are two roles: give each a name of its own.")
    if any("$$" in name for name in (roles.runner, roles.reader, policy.catalog.schema_)):
        raise PolicyError("A name with $$ in it would end a block of the script early: choose another.")
    source, release = _relation(dialect, table), _relation(dialect, released)
    values: dict[str, Any] = {
        "database": Identifier(_database(dialect, url)),
        "roles": [
            _role(roles.runner, logs_in=True),
            _role(roles.reader),
        ],
        "runner": Identifier(roles.runner),
        "reader": Identifier(roles.reader),
        "runner_literal": Text(roles.runner),
        "catalog": Identifier(policy.catalog.schema_),
        "catalog_literal": Text(policy.catalog.schema_),
        "shared": Text(_shared(policy.catalog.schema_, roles.runner)),
        "source": source,
        "source_schema": Identifier(str(source.schema)),
        "release_schema": Identifier(str(release.schema)),
        "own_schema": release.schema not in (source.schema, "public"),
        "columns": [Identifier(name) for name in _read_columns(policy)],
        "pg_cron": pg_cron,
        **_population(policy, dialect),
    }
    return dialect.renderer()("policy/roles/grant_privileges", **values).text


def _population(policy: Policy, dialect: type[Dialect]) -> dict[str, Any]:
    """The population that models look at, with the columns of it that a run reads."""
    here = policy.population is not None and policy.population_elsewhere is None
    table = _relation(dialect, policy.population) if here and policy.population is not None else None
    quasi = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    return {
        "population": table,
        "population_schema": None if table is None else Identifier(str(table.schema)),
        "members": [Identifier(name) for name in quasi],
        "distant": policy.population_elsewhere is not None,
    }


def _read_columns(policy: Policy) -> list[str]:
    """Name the columns that a run reads: of those that are left out, only the one that tells persons apart."""
    asked = mechanism_of(policy.privacy)
    persons = policy.person if asked is None else asked.persons
    return [name for name, one in policy.attributes.items() if not one.is_omitted or name == persons]


def _relation(dialect: type[Dialect], text: str) -> Relation:
    """A table as SQL reads its name, in the schema `public` if none is named."""
    read = dialect.stored(Relation.parse(text))
    return Relation(read.name, read.schema or "public")


def _role(name: str, *, logs_in: bool = False) -> dict[str, Any]:
    return {"name": Identifier(name), "literal": Text(name), "logs_in": logs_in}


def _shared(schema: str, runner: str) -> str:
    catalog, role = Identifier(schema), Identifier(runner)
    return (
        f"Schema {catalog} or what is in it does not belong to {role}, and it must be one runner's alone. Name another"
        " schema in this runner's policy (catalog: {schema: ...}) and print the script again. To hand over the catalog"
        f" of another role, run REASSIGN OWNED BY that role TO {role}, if it owns nothing else, and then this script."
    )


def _database(dialect: type[Dialect], url: str) -> str:
    name = dialect.database_name(url)
    if not name:
        raise PolicyError("source.url: names no database, and grants need its name.")
    return name
