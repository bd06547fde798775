"""Checks of releases without classes by the record of their run, and those that could not be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlanon.catalog import Run
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.policy import Policy
from sqlanon.results.measures import Check
from sqlanon.sql import Relation
from sqlanon.values.digest import tables_digest


@dataclass(frozen=True)
class RecordedAudit:
    """An audit of a release by the record of its run.

    table: the one that was checked. run: that made it. unchecked: checks that were not made, each with the reason.
    """

    table: str
    run: str
    checks: Mapping[str, Check]
    unchecked: Mapping[str, str]

    @property
    def promise(self) -> dict[str, Any]:
        """The promise of the record that no table can show, as plain values."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon verify --json` prints it."""
        return {
            "table": self.table,
            "run": self.run,
            "checks": {name: vars(check) for name, check in self.checks.items()},
            "unchecked": dict(self.unchecked),
            **self.promise,
            "satisfied": self.satisfied,
        }

    @property
    def satisfied(self) -> bool:
        """Tell whether no check found a violation."""
        return not any(check.violations for check in self.checks.values())


class RecordedRelease(Protocol):
    """The record of a release: digests and hashes of its rows, and the types of its columns, in their order.

    Each is None where the run kept none.
    """

    @property
    def digest(self) -> str | None: ...

    @property
    def row_hashes(self) -> str | None: ...

    @property
    def released(self) -> Mapping[str, str] | None: ...


def compare_columns(
    policy: Policy, recorded: RecordedRelease, columns: Sequence[Column], added: Sequence[str] = ()
) -> Check:
    """Hold the columns of a release against the roles of the policy, and their types against the record.

    added: the columns that are of no source.
    """
    shown = {one.name: one.type for one in columns}
    wanted = {name for name, attribute in policy.attributes.items() if not attribute.is_omitted}
    differing = len(wanted.union(added) ^ shown.keys())
    if recorded.released is not None and not differing:
        differing = int(list(shown.items()) != list(recorded.released.items()))
    return Check(differing, len(shown))


def compare_contents(
    engine: Engine, run: Run, recorded: RecordedRelease, tables: Sequence[Relation], rows: int, hashes: str | None
) -> Check | str:
    """Compare rows with the digest of the run, or with the sum of their hashes; gives the reason where neither can be.

    tables: of the release. rows, hashes: of the table that was hashed.
    """
    if recorded.digest is not None:
        return Check(int(tables_digest(engine, tables) != recorded.digest), rows)
    if recorded.row_hashes is None:
        return "the run kept neither a digest nor hashes"
    if run.engine_version != engine.version:
        return (
            "another version of the engine hashes rows in another way; a digest of the run (digest: run) is the same"
            " for all"
        )
    return Check(int(hashes != recorded.row_hashes), rows)
