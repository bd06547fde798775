"""A database of an audit's own, in memory: a generated table, a catalog and a ledger, which go with its session."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from sqlanon.catalog.tables import TABLE_NAMES
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.charging import LedgerAccount
from sqlanon.methods.differential_privacy.mechanism_audit.generating import GeneratedTable, Row
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.result import PrivateResult
from sqlanon.methods.differential_privacy.source import PrivateDraw
from sqlanon.policy import Policy
from sqlanon.policy.differential_privacy import PrivacyBudget
from sqlanon.policy.locations import CatalogSection
from sqlanon.runs.flow import carry_out
from sqlanon.runs.sink import Publish
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.work.journal import Progress, Silent
from sqlanon.work.session import Session, open_session

LEDGER = "audit"
_SOURCE, _RELEASE = Relation("audited"), Relation("audited_release")
_CHANGING = {
    "RUN": r"\d{6}-\d{6}-[0-9a-f]{8}",
    "TIME": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|[+-]\d\d(:?\d\d)?)?",
    "OBJECT": r"object [\d/]+|\b(1[6-9]|[2-9]\d)\d{3}\b",
    "_NAME": r"_[0-9a-f]{8}(?![0-9a-f])",
    "KEY": r"-?\d{15,20}",
}


def nameless(text: str) -> str:
    """Replace what differs from run to run (names, times, numbers of objects, keys) by fixed words."""
    for name, pattern in _CHANGING.items():
        text = re.sub(pattern, name, text)
    return text


@dataclass
class Traces(Silent):
    """The lines that a run leaves in each place (statements, progress, log, JSON, catalog), made nameless."""

    lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, where: str, lines: Iterable[str]) -> None:
        """Add lines to those of a place."""
        self.lines.setdefault(where, []).extend(map(nameless, lines))

    def of(self, where: str) -> list[str]:
        """List the lines of a place; statements sorted, as several threads send the last ones of a session."""
        lines = self.lines.get(where, [])
        return sorted(lines) if where == "statements" else lines

    def listen(self, statement: Statement, _seconds: float, _rows: int) -> None:
        self.add("statements", [statement.record])

    def phase(self, name: str) -> None:
        self.add("progress", [name])

    def progress(self, progress: Progress) -> None:
        self.add("progress", [progress.text])

    @contextlib.contextmanager
    def logging(self) -> Iterator[None]:
        """Keep what any library logs within the context."""
        logger, handler = logging.getLogger(), logging.Handler()
        handler.emit = lambda record: self.add("log", [f"{record.name} {record.getMessage()}"])  # type: ignore[method-assign]
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            logger.setLevel(level)
            logger.removeHandler(handler)


@dataclass(frozen=True)
class OwnDatabase:
    """The open session of an audit, and the audited policy with tables, catalog and ledger moved into its database."""

    session: Session
    policy: Policy

    def run(self, mechanisms: Mechanisms, traces: Traces | None = None) -> PrivateResult:
        """Release the generated table, charged on the database's own ledger."""
        kept = traces or Traces()
        self.session.engine.listener = kept.listen
        try:
            with kept.logging():
                source = PrivateDraw(self.policy, LedgerAccount(), mechanisms)
                return carry_out(self.session, self.policy, source, Publish(replace=True), kept)
        finally:
            self.session.engine.listener = None

    def entries(self) -> list[Fraction]:
        """List what was charged, in the order of the entries."""
        return [one.epsilon for one in self.session.catalog.budget_entries(LEDGER)]

    def rows_of(self, table: Relation) -> list[tuple[Any, ...]]:
        """List the rows of a table."""
        return self.session.engine.query("methods/differential_privacy/list_rows", table=table)

    def list_leftovers(self, traces: Traces) -> None:
        """Add to traces the rows of the release in their order, and those of the catalog."""
        traces.add("release", map(str, self.rows_of(_RELEASE)))
        location = self.session.catalog.location
        for name in TABLE_NAMES:
            rows = self.rows_of(location.relation(name))
            traces.add("catalog", [name, *sorted(nameless(" | ".join(map(str, row))) for row in rows)])


@contextlib.contextmanager
def own_database(
    plan: PrivatePlan, table: GeneratedTable, rows: Sequence[Row], granted: Fraction, options: EngineOptions
) -> Iterator[OwnDatabase]:
    """Open a database in memory with the rows of a generated table, and a ledger to which `granted` was granted."""
    policy = plan.policy
    moved = policy.model_copy(
        update={
            "source": policy.source.model_copy(update={"url": MEMORY_URL, "table": str(_SOURCE)}),
            "release": policy.release.model_copy(update={"url": None, "table": str(_RELEASE)}),
            "catalog": CatalogSection(),
            "budget": PrivacyBudget(ledger=LEDGER),
            "republish": None,
        }
    )
    with open_session(moved, options) as session:
        engine = session.engine
        columns = [
            {"name": Identifier(one.name), "type": Markup(one.type), "nullable": one.nullable} for one in table.columns
        ]
        engine.run("methods/differential_privacy/create_audited", table=_SOURCE, columns=columns)
        engine.load(_SOURCE, [one.name for one in table.columns], rows)
        source = engine.resolve(_SOURCE)
        catalog = session.catalog
        catalog.grant_budget(LEDGER, granted, "an audit", catalog.identities(str(source), source), plan.persons)
        yield OwnDatabase(session, moved)
