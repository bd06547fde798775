"""Records of releases, of the rules that rows were recoded by, and of hierarchies."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Sequence

from sqlanon.catalog import locks
from sqlanon.catalog.ledger import Ledger
from sqlanon.catalog.location import is_same_database
from sqlanon.catalog.records import (
    HierarchyRecord,
    Released,
    ReleaseKind,
    ReleaseRecord,
    RulesKind,
    RulesRecord,
)
from sqlanon.catalog.sources import SourceIdentity, identify_joined, identify_recorded, identify_source
from sqlanon.catalog.transaction import Transaction
from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Text

_RELEASING = 60.0  # seconds: putting a release in place takes a few, and waits for its readers


class Releases(Ledger):
    """The releases of a catalog; the tables of their rules leave the ledger when they are recorded."""

    def record_release(self, run: str, release: ReleaseRecord) -> None:
        """Record a release that is published already: a file, or a table outside the catalog's database."""
        self._insert("record the release", self._tables.releases, {"run": run, **vars(release)})

    def record_release_within(self, session: Engine, run: str, relation: Relation, release: ReleaseRecord) -> bool:
        """Record a release in the transaction that publishes it as `relation`, so that both happen or neither.

        False, and nothing done, where one transaction can't do both: the catalog is in another database. Call
        `record_release` after the transaction then.
        """
        attached = session.traits.is_embedded and relation.catalog != self.location.catalog
        if attached or not is_same_database(session, self._store):
            return False
        values = {"run": run} | dataclasses.asdict(release) | {"kind": release.kind.value}
        session.load(self.location.relation("releases"), list(values), [list(values.values())])
        return True

    def releases(self, run: str) -> list[ReleaseRecord]:
        """The releases that a run published."""
        rows = self._rows("select_releases", {"run": run})
        return [ReleaseRecord(**{**row, "kind": ReleaseKind(row["kind"])}) for row in rows]

    def recoding_digest(self, run: str) -> str | None:
        """The digest of the recoding function of what a run released; see `same_recoding`."""
        return next((release.digest for release in self.releases(run)), None)

    def rules_run(self, run: str) -> str:
        """The run that found the rules of a release: that run, or the one whose rules it applied."""
        return next((_searched_in(run, release.recoding) for release in self.releases(run)), run)

    def released(self, source: str) -> list[Released]:
        """All that was released of a source, a table of the engine's database or a file, the newest first."""
        wanted = identify_source(source, self._database)
        return [
            Released(
                row["id"],
                _searched_in(row["id"], row["recoding"]),
                row["digest"],
                json.loads(row["policy"]).get("republish"),
                row["kind"] == ReleaseKind.COUNTS,
            )
            for row in self._rows("select_released", _identity(wanted), of_file=wanted.is_file)
            if identify_recorded(row["source"], row["database"], row["recoding"]) == wanted
            or wanted in identify_joined(row["database"], row["recoding"])
        ]

    @contextlib.contextmanager
    def releasing(self, source: str) -> Iterator[None]:
        """Let nobody else release this source meanwhile, whatever the release is called; who does is waited for.

        Raises:
            ConflictError: somebody has been at it for a minute.
        """
        conflict = f"Another run is releasing {source}: run again when it has ended."
        place = identify_source(source, self._database)
        with locks.held(self._store, f"source {place.name} of {place.database}", conflict, wait=_RELEASING):
            yield

    def record_rules_within(self, session: Engine, run: str, rules: RulesRecord, tables: Sequence[Relation]) -> None:
        """As `record_release_within`, once that has returned True: record the rules, whose tables are there to stay."""
        values = {"run": run} | dataclasses.asdict(rules) | {"kind": rules.kind.value}
        session.load(self.location.relation("rule_sets"), list(values), [list(values.values())])
        ledger = self.location.relation("work_tables")
        for table in tables:
            session.run("catalog/keep_table", ledger=ledger, run=Text(run), relation=Text(str(table)))

    def record_rules(self, run: str, rules: RulesRecord, tables: Sequence[Relation]) -> None:
        """Record the rules of a release that is published already."""
        values = {"run": run} | dataclasses.asdict(rules) | {"kind": rules.kind.value}
        self._insert("record the rules", self._tables.rule_sets, values)
        wanted = {str(table) for table in tables}
        self.ledger_remove(*(entry for entry in self.ledger(run) if str(entry.relation) in wanted))

    def rules(self, run: str) -> RulesRecord | None:
        """The recoding function of a run, if it was recorded."""
        rows = self._rows("select_rules", {"run": run})
        return next((RulesRecord(**{**row, "kind": RulesKind(row["kind"])}) for row in rows), None)

    def record_hierarchy(self, hierarchy: HierarchyRecord) -> None:
        """Record a hierarchy; one of the same name and digest is replaced."""

        def write(transaction: Transaction) -> None:
            transaction.rows("delete_hierarchy", {"name": hierarchy.name, "digest": hierarchy.digest})
            transaction.insert(transaction.tables.hierarchies, [vars(hierarchy)])

        self._connection.do("record the hierarchy", write)

    def hierarchies(self) -> list[HierarchyRecord]:
        """All recorded hierarchies."""
        return [HierarchyRecord(**row) for row in self._rows("select_hierarchies")]


def _identity(source: SourceIdentity) -> dict[str, str | None]:
    return {} if source.is_file else {"name": source.name, "database": source.database}


def _searched_in(run: str, recoding: str) -> str:
    """The run whose search made a recoding that this run recorded."""
    return str(json.loads(recoding).get("applied", run))
