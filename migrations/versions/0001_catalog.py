"""The catalog: runs, steps, releases, hierarchies and the ledger of work tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sqlanon.catalog.migrating import UtcTimestamp

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def _required(name: str, kind: type[sa.types.TypeEngine] = sa.Text) -> sa.Column:
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    op.create_table(
        _name("runs"),
        sa.Column("id", sa.Text, primary_key=True),
        *(_required(name) for name in ("status", "engine", "engine_version", "database", "process")),
        *(_required(name) for name in ("source", "release")),
        sa.Column("source_rows", sa.BigInteger),
        sa.Column("started", UtcTimestamp, nullable=False),
        sa.Column("finished", UtcTimestamp),
        *(_required(name) for name in ("policy", "policy_digest", "sqlanon_version", "algorithm")),
        sa.Column("seed", sa.BigInteger),
        *(sa.Column(name, sa.Text) for name in ("result", "error_class", "error_message")),
    )
    op.create_table(
        _name("steps"),
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        *(_required(name) for name in ("phase", "name", "statement")),
        _required("seconds", sa.Double),
        sa.Column("row_count", sa.BigInteger),
    )
    op.create_table(
        _name("releases"),
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("run", "relation")),
        _required("kind"),
        *(_required(name, sa.BigInteger) for name in ("row_count", "suppressed", "classes")),
        *(_required(name) for name in ("recoding", "digest")),
    )
    op.create_table(
        _name("hierarchies"),
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("name", "digest")),
        _required("specification"),
        _required("height", sa.Integer),
        _required("leaves", sa.BigInteger),
        sa.Column("relation", sa.Text),
    )
    op.create_table(
        _name("work_tables"),
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("run", "relation", "database")),
        _required("is_prefix", sa.Boolean),
        sa.Column("created", UtcTimestamp, nullable=False),
    )


def downgrade() -> None:
    for table in ("work_tables", "hierarchies", "releases", "steps", "runs"):
        op.drop_table(_name(table))
