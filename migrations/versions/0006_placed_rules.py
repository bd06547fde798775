"""Recodings of jobs in two parts: the rule of every row, and what each rule shows.

After a downgrade the procedures of jobs that were frozen since fail, and leave the old release: freeze them again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def _jobs() -> str:
    return op.get_context().opts["prefix"] + "jobs"


def upgrade() -> None:
    for name in ("assigning", "showing"):
        op.add_column(_jobs(), sa.Column(name, sa.Text))


def downgrade() -> None:
    for name in ("showing", "assigning"):
        op.drop_column(_jobs(), name)
