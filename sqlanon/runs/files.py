"""Files that a run reads, and that must stay as they were while it reads them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.hierarchies.digests import require_unchanged_costs, require_unchanged_hierarchies
from sqlanon.policy import Policy


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
