"""The tables of the catalog, as SQLAlchemy Core metadata.

The names carry no schema: a catalog's connection has its schema as the only one it looks in. String keys and no
foreign keys, because DuckDB has neither cascading keys nor updates of a row that others refer to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Double, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

FALLBACK_PREFIX = "sqlanon_"
VERSION_TABLE = "alembic_version"


class UtcTimestamp(TypeDecorator[datetime]):
    """A moment: `timestamptz` on PostgreSQL; on DuckDB a timestamp in UTC (reading its zoned type needs pytz)."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(TIMESTAMP(timezone=True) if dialect.name == "postgresql" else DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.astimezone(UTC) if dialect.name == "postgresql" else value.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Tables:
    """The tables of one catalog; their names begin with `prefix`."""

    metadata: MetaData
    runs: Table
    steps: Table
    releases: Table
    rule_sets: Table
    hierarchies: Table
    work_tables: Table
    jobs: Table
    live: Table
    checkpoints: Table

    @classmethod
    def named(cls, prefix: str = "") -> Tables:
        metadata = MetaData()
        return cls(
            metadata,
            _runs(metadata, prefix),
            _steps(metadata, prefix),
            _releases(metadata, prefix),
            _rule_sets(metadata, prefix),
            _hierarchies(metadata, prefix),
            _work_tables(metadata, prefix),
            _jobs(metadata, prefix),
            _live(metadata, prefix),
            _checkpoints(metadata, prefix),
        )


def _runs(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}runs",
        metadata,
        Column("id", Text, primary_key=True),
        Column("status", Text, nullable=False),
        Column("engine", Text, nullable=False),
        Column("engine_version", Text, nullable=False),
        Column("database", Text, nullable=False, doc="where the run's work tables are"),
        Column("process", Text, nullable=False, doc="host, boot, process id and its start: who is alive"),
        Column("source", Text, nullable=False),
        Column("release", Text, nullable=False),
        Column("source_rows", BigInteger),
        Column("started", UtcTimestamp, nullable=False),
        Column("finished", UtcTimestamp),
        Column("policy", Text, nullable=False, doc="canonical text, without secrets"),
        Column("policy_digest", Text, nullable=False),
        Column("sqlanon_version", Text, nullable=False),
        Column("algorithm", Text, nullable=False),
        Column("seed", BigInteger, doc="of the samples it draws; NULL where it draws none"),
        Column("result", Text, doc="JSON, as `run --json` prints it"),
        Column("error_class", Text),
        Column("error_message", Text),
        Column("job", Text, doc="the name of the job that it was a run of"),
    )


def _steps(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}steps",
        metadata,
        Column("run", Text, primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("phase", Text, nullable=False),
        Column("name", Text, nullable=False, doc="the template"),
        Column("statement", Text, nullable=False),
        Column("seconds", Double, nullable=False),
        Column("row_count", BigInteger, doc="NULL where the driver doesn't say"),
    )


def _releases(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}releases",
        metadata,
        Column("run", Text, primary_key=True),
        Column("relation", Text, primary_key=True, doc="as SQL writes it, or the file"),
        Column("kind", Text, nullable=False, doc="regions"),
        Column("row_count", BigInteger, nullable=False),
        Column("suppressed", BigInteger, nullable=False),
        Column("classes", BigInteger, nullable=False),
        Column("recoding", Text, nullable=False, doc="JSON, or where the rule table is"),
        Column("digest", Text, nullable=False, doc="of the recoding"),
        Column("content_digest", Text, doc="of the released rows, or of the file"),
    )


def _rule_sets(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}rule_sets",
        metadata,
        Column("run", Text, primary_key=True),
        Column("kind", Text, nullable=False, doc="tree, levels or cuts"),
        Column("content", Text, nullable=False, doc="JSON: the attributes, and what rules of levels consist of"),
        Column("leaves", BigInteger, nullable=False),
        Column("depth", Integer, nullable=False),
        Column("table_prefix", Text, doc="what the names of its tables begin with, in the catalog's schema"),
    )


def _hierarchies(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}hierarchies",
        metadata,
        Column("name", Text, primary_key=True),
        Column("digest", Text, primary_key=True),
        Column("specification", Text, nullable=False, doc="JSON"),
        Column("height", Integer, nullable=False),
        Column("leaves", BigInteger, nullable=False),
        Column("relation", Text, doc="the dimension table, where it is kept"),
    )


def _work_tables(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}work_tables",
        metadata,
        Column("run", Text, primary_key=True),
        Column("relation", Text, primary_key=True),
        Column("database", Text, primary_key=True, doc="as in runs; the release's may be another"),
        Column("is_prefix", Boolean, nullable=False, doc="every table whose name begins so"),
        Column("created", UtcTimestamp, nullable=False),
    )


def _jobs(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}jobs",
        metadata,
        Column("name", Text, primary_key=True),
        Column("version", Integer, primary_key=True, autoincrement=False),
        Column("run", Text, nullable=False, doc="whose rules are applied"),
        Column("source", Text, nullable=False),
        Column("release", Text, nullable=False),
        Column("on_violation", Text, nullable=False, doc="error or suppress"),
        Column("budget", Double, doc="the largest share of rows that may be suppressed"),
        Column("most_rows", BigInteger, doc="of the source, that its routine is made for"),
        Column(
            "routine", Text, doc="the procedure's name as SQL writes it; NULL where the program itself does the work"
        ),
        Column("inspection", Text, doc="the SELECT by which the procedure tells whether rules are about all rows"),
        Column("recoding", Text, doc="the SELECT of what all rows show; it holds values of the data"),
        Column(
            "assigning",
            Text,
            doc="the SELECT of each row's rule or address, and what the row keeps; it holds values of the data too",
        ),
        Column("showing", Text, doc="the SELECT of what each rule or class shows; it holds values of the data too"),
        Column("created", UtcTimestamp, nullable=False),
        Column("schedule", Text, doc="minute, hour, day of month, month, day of week, as cron has them"),
        Column("scheduler", Text, doc="what starts it: pg_cron, systemd or cron"),
    )


def _live(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}live",
        metadata,
        Column("run", Text, primary_key=True),
        Column("state", Text, nullable=False, doc="JSON: the phase, and the figures of the search"),
        Column("seconds", Double, nullable=False, doc="since the run began, by its own clock"),
        Column("seen", UtcTimestamp, nullable=False, doc="when it told that, by the database's clock"),
        Column("cancel", Boolean, nullable=False, doc="whether somebody has asked the run to end"),
    )


def _checkpoints(metadata: MetaData, prefix: str) -> Table:
    return Table(
        f"{prefix}checkpoints",
        metadata,
        Column("run", Text, primary_key=True),
        Column("content", Text, nullable=False, doc="JSON: the rules that a search came to, and what it went by"),
    )
