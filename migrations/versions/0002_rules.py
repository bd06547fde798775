"""The recoding functions of releases: what each consists of, and where its tables are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = ("nodes", "leaves", "segments", "domain")


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def upgrade() -> None:
    op.create_table(
        _name("rule_sets"),
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("leaves", sa.BigInteger, nullable=False),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("table_prefix", sa.Text),
    )


def downgrade() -> None:
    rule_sets = sa.table(_name("rule_sets"), sa.column("table_prefix"))
    prefixes = op.get_bind().execute(sa.select(rule_sets.c.table_prefix)).scalars().all()
    for prefix in filter(None, prefixes):
        for table in TABLES:
            op.drop_table(prefix + table, if_exists=True)
    op.drop_table(_name("rule_sets"))
