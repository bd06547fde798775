"""A staged release of two tables: the rows, and a second table beside them."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation
from sqlanon.staging.staging import StagedTable
from sqlanon.values.digest import tables_digest
from sqlanon.work.publish import Grants, Record, publish
from sqlanon.work.publish.companion import Companion, publish_companion


class StagedPair(StagedTable):
    """Two tables beside their places.

    second: the second table, as staged; kind: what it is.
    """

    def __init__(
        self,
        engine: Engine,
        final: Relation,
        second: Relation,
        kind: Companion,
        release: Relation,
        grants: Grants,
        replace: bool,
    ) -> None:
        super().__init__(final, engine, final, release, grants, replace)
        self.second = second
        self._kind = kind

    def digest(self) -> str:
        return tables_digest(self.engine, (self.final, self.second))

    def publish(self, record: Record) -> tuple[str, ...]:
        def together(session: Engine) -> None:
            publish_companion(session, self.second, self._release, self._kind)
            record(session)

        publication = publish(
            self.engine, self.final, self._release, replace=self._replace, grants=self._grants, record=together
        )
        return publication.notes
