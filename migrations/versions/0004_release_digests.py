"""Digests of what was released: later changes of it are noticed.

After a downgrade the procedures of jobs that were frozen since fail, and leave the old release: freeze them again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _releases() -> str:
    return op.get_context().opts["prefix"] + "releases"


def upgrade() -> None:
    op.add_column(_releases(), sa.Column("content_digest", sa.Text))


def downgrade() -> None:
    op.drop_column(_releases(), "content_digest")
