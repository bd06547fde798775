"""Belongings of a PostgreSQL table, which a new one of its name must have too: privileges, comments, owner."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Grant, Grants
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Relation, Text

_PRIVILEGES = {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"}


@dataclass(frozen=True)
class Belongings:
    """The owner, the privileges (the owner's own among them), and the comments by column (None: of the table)."""

    owner: str
    grants: Grants
    comments: tuple[tuple[str | None, str], ...]


def read_belongings(engine: Engine, oid: int, owner: str) -> Belongings:
    """Read what the table `oid` has."""
    comments = tuple((column, text) for column, text in engine.query("work/publish/list_comments", oid=oid))
    return Belongings(owner, read_grants(engine, oid), comments)


def restore_belongings(
    engine: Engine, table: Relation, oid: int, belongings: Belongings, *, is_view: bool = False
) -> None:
    """Give `table` exactly these; what is said of columns that it has not is left out."""
    columns = {name for name, *_ in engine.query("work/publish/list_row_type", oid=oid)}
    engine.run("work/publish/set_owner", table=table, owner=Identifier(belongings.owner))
    revoke(engine, table, read_grants(engine, oid))
    kept = tuple(grant for grant in belongings.grants.entries if grant.column is None or grant.column in columns)
    apply_grants(engine, table, Grants(kept))
    for column, text in belongings.comments:
        if column is None:
            engine.run("work/publish/comment_table", table=table, comment=Text(text), is_view=is_view)
        elif column in columns:
            engine.run("work/publish/comment_column", table=table, column=Identifier(column), comment=Text(text))


def read_grants(engine: Engine, oid: int) -> Grants:
    """The privileges on a table and on its columns, the owner's own included."""
    rows = engine.query("work/publish/list_grants", oid=oid)
    return Grants(tuple(Grant(grantee, privilege, grantable, column) for grantee, privilege, grantable, column in rows))


def revoke(engine: Engine, table: Relation, grants: Grants) -> None:
    """Take every privilege on `table` from all whom `grants` names."""
    for grantee in sorted({grant.grantee for grant in grants.entries}, key=lambda name: (name is not None, name or "")):
        engine.run("work/publish/revoke_all", table=table, grantee=_name(grantee))


def apply_grants(engine: Engine, table: Relation, grants: Grants) -> None:
    """Grant each privilege."""
    for grant in grants.entries:
        if grant.privilege not in _PRIVILEGES:
            raise EngineError(f"{table} has a privilege {grant.privilege} that can't be given again.")
        engine.run(
            "work/publish/grant_privilege",
            table=table,
            privilege=Markup(grant.privilege),
            grantee=_name(grant.grantee),
            column=_name(grant.column),
            grantable=grant.grantable,
        )


def _name(name: str | None) -> Identifier | None:
    return None if name is None else Identifier(name)
