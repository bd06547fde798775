"""Histories of questions: what was answered of each table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

from sqlanon.errors import ConflictError

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def upgrade() -> None:
    moment = TIMESTAMP(timezone=True) if op.get_bind().dialect.name == "postgresql" else sa.DateTime()
    op.create_table(
        _name("histories"),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("questions", sa.BigInteger, nullable=False),
        sa.Column("opened", moment, nullable=False),
    )
    op.create_table(
        _name("history_sources"),
        sa.Column("identity", sa.Text, primary_key=True),
        sa.Column("history", sa.Text, nullable=False),
        sa.Column("added", moment, nullable=False),
    )
    op.create_table(
        _name("questions"),
        sa.Column("history", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("question", "adds", "asked_by")),
        sa.Column("written", moment, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables, unless they hold a history: what was answered would be forgotten, and more be given away."""
    histories = sa.table(_name("histories"), sa.column("name"))
    count = op.get_bind().execute(sa.select(sa.func.count()).select_from(histories)).scalar_one()
    if count:
        raise ConflictError(
            f"The catalog was left as it is: it keeps {count} histories of answered questions, which must not be"
            " forgotten."
        )
    for table in ("questions", "history_sources", "histories"):
        op.drop_table(_name(table))
