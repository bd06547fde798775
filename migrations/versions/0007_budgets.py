"""Privacy budgets: what was granted, of which sources, and what each use of a mechanism consumed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

from sqlanon.errors import ConflictError

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def upgrade() -> None:
    moment = TIMESTAMP(timezone=True) if op.get_bind().dialect.name == "postgresql" else sa.DateTime()
    op.create_table(
        _name("budgets"),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("unit", sa.Text),
        sa.Column("entries", sa.BigInteger, nullable=False),
        sa.Column("opened", moment, nullable=False),
        sa.Column("closed", moment),
    )
    op.create_table(
        _name("budget_sources"),
        sa.Column("identity", sa.Text, primary_key=True),
        sa.Column("budget", sa.Text, nullable=False),
        sa.Column("added", moment, nullable=False),
    )
    op.create_table(
        _name("budget_grants"),
        sa.Column("budget", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("epsilon", sa.Text, nullable=False),
        sa.Column("granted_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("granted", moment, nullable=False),
    )
    texts = ("run", "release", "mechanism", "epsilon", "sensitivity", "scale")
    op.create_table(
        _name("budget_entries"),
        sa.Column("budget", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in texts),
        sa.Column("written", moment, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables, unless they hold a budget: what was consumed would be forgotten, and could be spent again."""
    budgets = sa.table(_name("budgets"), sa.column("name"))
    names = op.get_bind().execute(sa.select(budgets.c.name).order_by(budgets.c.name)).scalars().all()
    if names:
        raise ConflictError(
            f"The catalog was left as it is: it keeps the account of {', '.join(names)}, and what was consumed of a"
            " privacy budget must not be forgotten."
        )
    for table in ("budget_entries", "budget_grants", "budget_sources", "budgets"):
        op.drop_table(_name(table))
