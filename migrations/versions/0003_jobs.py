"""Jobs: recodings that are frozen to be run again and again, and which runs were theirs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

from sqlanon.errors import PolicyError

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def upgrade() -> None:
    moment = TIMESTAMP(timezone=True) if op.get_bind().dialect.name == "postgresql" else sa.DateTime()
    op.create_table(
        _name("jobs"),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("on_violation", sa.Text, nullable=False),
        sa.Column("budget", sa.Double),
        sa.Column("most_rows", sa.BigInteger),
        sa.Column("routine", sa.Text),
        sa.Column("inspection", sa.Text),
        sa.Column("recoding", sa.Text),
        sa.Column("created", moment, nullable=False),
        sa.Column("schedule", sa.Text),
        sa.Column("scheduler", sa.Text),
    )
    op.add_column(_name("runs"), sa.Column("job", sa.Text))


def downgrade() -> None:
    jobs = sa.table(_name("jobs"), sa.column("name"), sa.column("routine"), sa.column("scheduler"))
    _refuse_scheduled(jobs)
    if op.get_bind().dialect.name == "postgresql":
        for routine in op.get_bind().execute(sa.select(jobs.c.routine).distinct()).scalars().all():
            if routine is not None:
                op.execute(sa.DDL("DROP PROCEDURE IF EXISTS %(routine)s", context={"routine": routine}))
    op.drop_table(_name("jobs"))
    op.drop_column(_name("runs"), "job")


def _refuse_scheduled(jobs: sa.TableClause) -> None:
    """Refuse to drop jobs that are scheduled: the scheduler would go on calling them."""
    query = (
        sa.select(jobs.c.name, jobs.c.scheduler).where(jobs.c.scheduler.is_not(None)).distinct().order_by(jobs.c.name)
    )
    found = op.get_bind().execute(query).all()
    if found:
        raise PolicyError(
            [
                f"Job {name} is scheduled with {scheduler}: `sqlanon unschedule {name}` first."
                for name, scheduler in found
            ]
        )
