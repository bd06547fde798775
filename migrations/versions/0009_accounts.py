"""Accounts: the releases about the same people, and who was in the same classes in all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP, UUID

from sqlanon.errors import ConflictError

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def _name(table: str) -> str:
    return op.get_context().opts["prefix"] + table


def upgrade() -> None:
    moment = TIMESTAMP(timezone=True) if op.get_bind().dialect.name == "postgresql" else sa.DateTime()
    op.create_table(
        _name("accounts"),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("id", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("releases", sa.BigInteger, nullable=False),
        sa.Column("opened", moment, nullable=False),
    )
    op.create_table(
        _name("account_sources"),
        sa.Column("account", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("identity", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text),
    )
    counts = ("k", "persons", "groups", "smallest", "below_k", "came", "departed")
    op.create_table(
        _name("account_releases"),
        *(sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False) for name in ("account", "number")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("kind", "run", "source")),
        sa.Column("about", sa.Text),
        sa.Column("entered", moment, nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in counts),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("loss", sa.Double),
        sa.Column("counterfeits", sa.BigInteger),
    )
    op.create_table(
        _name("account_persons"),
        sa.Column("account", sa.BigInteger, nullable=False),
        sa.Column("person", UUID(), nullable=False),
        sa.Column("signature", sa.BigInteger, nullable=False),
        sa.Column("batch", sa.Integer, nullable=False),
        sa.Column("row_digest", sa.BigInteger),
    )


def downgrade() -> None:
    """Drop the tables, unless an account holds a release: later releases could not be held against it any more."""
    accounts = sa.table(_name("accounts"), sa.column("releases"))
    count = op.get_bind().execute(sa.select(sa.func.count()).where(accounts.c.releases > 0)).scalar_one()
    if count:
        raise ConflictError(
            f"The catalog was left as it is: it keeps {count} accounts of releases about the same people, which later"
            " releases are held against. `sqlanon account forget NAME` drops one, with its key."
        )
    for table in ("account_persons", "account_releases", "account_sources", "accounts"):
        op.drop_table(_name(table))
