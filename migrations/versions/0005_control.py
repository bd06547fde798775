"""State of a run for others while the run goes on, and checkpoints by which a stopped run is resumed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def upgrade() -> None:
    moment = TIMESTAMP(timezone=True) if op.get_bind().dialect.name == "postgresql" else sa.DateTime()
    op.create_table(
        _name("live"),
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("seen", moment, nullable=False),
        sa.Column("cancel", sa.Boolean, nullable=False),
    )
    op.create_table(
        _name("checkpoints"),
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table(_name("checkpoints"))
    op.drop_table(_name("live"))
