"""Changes of what a run reads: files that must stay as they were meanwhile, and a fingerprint for who checks later."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.hierarchies.digests import require_unchanged_costs, require_unchanged_hierarchies
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.sql import Identifier, Relation
from sqlanon.values.expressions import hashable


def fingerprint(engine: Engine, plan: Plan) -> str:
    """Digest the rows of all columns that a release shows, whatever their order; by this version of the database.

    Identifiers are not among them, whatever the release shows in their place.
    """
    (digest,) = digest_rows(engine, plan.source, shown_columns(plan))
    return fingerprint_of(plan, digest)


def fingerprint_of(plan: Plan, digest: str) -> str:
    """Make the fingerprint from the digest of the rows in `shown_columns`."""
    names = [(one.name, one.column.type) for one in plan.read]
    return hashlib.sha256(f"{names} {digest}".encode()).hexdigest()


def shown_columns(plan: Plan) -> list[Column]:
    """List the columns whose values a release shows."""
    return [one.column for one in plan.read]


def digest_rows(engine: Engine, source: Relation, *columns: Sequence[Column]) -> list[str]:
    """Digest the rows of a table by each of some lists of its columns, in one scan."""
    lists = [[hashable(engine, one, Markup(Identifier(one.name))) for one in listed] for listed in columns]
    return list(map(str, engine.query_one("runs/digest_source", source=source, lists=lists)))


@dataclass(frozen=True)
class FilesRead:
    """The files of a policy as they were when a run began to read them.

    engine: the session that reads the source.
    version: of the source's file, None where it is a table; hierarchies: their descriptions, with digests.
    costs: the digests of files of costs, by the places of the models that measure by them.
    """

    engine: Engine
    policy: Policy
    version: tuple[int, ...] | None
    hierarchies: Mapping[str, Mapping[str, Any]]
    costs: Mapping[int, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def must_stay(self, *, source: bool = True) -> Iterator[None]:
        """Raise ConflictError if a file of a hierarchy, or of the source, changes, whatever else comes of it."""
        try:
            yield
        except Cancelled:
            raise
        except (SqlanonError, OSError) as error:
            self._require_unchanged(source, error)
            raise
        self._require_unchanged(source, None)

    def _require_unchanged(self, source: bool, cause: Exception | None) -> None:
        if source:
            self.engine.require_unchanged(self.policy.source.file, self.version, cause)
        require_unchanged_hierarchies(self.policy, self.hierarchies, cause)
        require_unchanged_costs(self.policy, self.costs, cause)
