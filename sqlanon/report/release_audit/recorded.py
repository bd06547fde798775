"""The run that made a release, as the catalog knows it, and checks of releases without classes by its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlanon.catalog import Catalog, Run, Status
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.dialects import dialect_named
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.files import whole_path
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, Cancelled, PolicyError, SqlanonError
from sqlanon.hierarchies.digests import changed_costs
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.report.release_audit.holding import Known
from sqlanon.report.run_record.record import place_of_release
from sqlanon.results.measures import Check
from sqlanon.results.method_result import MethodResult
from sqlanon.runs.choices import choices_of
from sqlanon.runs.fingerprint import fingerprint
from sqlanon.sql import Relation
from sqlanon.support.environment import named, resolved
from sqlanon.support.quantities import quantity
from sqlanon.values.digest import tables_digest
from sqlanon.work.session import open_existing_catalog

_Result = TypeVar("_Result", bound=MethodResult)


@dataclass(frozen=True)
class Past:
    """The run that made a release, and what is known of it; `run` is None where nothing is."""

    known: Known
    run: Run | None = None

    def changed_costs(self, policy: Policy) -> tuple[str, ...]:
        """The files of costs of the policy that are not what they were when the run measured by them."""
        used = () if self.run is None or self.run.result is None else self.run.result.costs or ()
        return tuple(map(named, changed_costs(policy, {one.place: one.file_digest for one in used}).values()))

    def is_of(self, engine: Engine, plan: Plan) -> bool | None:
        """Tell whether the source is the same as when the run read it; None where that is not known."""
        if self.run is None:
            return None
        recorded = None if self.run.result is None else self.run.result.source.digest
        if self.run.source_rows not in (None, plan.rows):
            return False
        if recorded is None or self.run.engine_version != engine.version:
            return None
        return bool(recorded == fingerprint(engine, plan))

    @property
    def changed(self) -> str:
        """The reason why a release is not held against a source that has changed."""
        assert self.run is not None
        history = None if self.run.result is None else self.run.result.history
        if history is not None and history.added_to is not None:
            others = quantity(history.added_to, "row")
            return f"run {self.run.id} added a batch to {others} of others, which it did not read"
        when = "" if self.run.finished is None else f" on {self.run.finished:%Y-%m-%d}"
        return f"the source has changed since run {self.run.id} made the release{when}"


def find_past_run(policy: Policy, table: str | None, options: EngineOptions | None) -> Past:
    """Ask the catalog for the newest run that published this release of this source, if there is a catalog to ask.

    It is read in a session of its own: a catalog is not read through one that may only read.
    """
    unknown = Past(Known(None, policy.suppression))
    try:
        with (
            connect(policy.source.url or MEMORY_URL, options) as engine,
            open_existing_catalog(policy, engine, options) as catalog,
        ):
            run = None if catalog is None else newest_run(catalog, policy, table or place_of_release(policy))
            return unknown if catalog is None or run is None else Past(_known(catalog, run, policy), run)
    except Cancelled:
        raise
    except SqlanonError as error:
        if isinstance(error, AccessError) and policy.catalog.is_named:
            raise
        return unknown


def require_past_run(
    policy: Policy, kind: type[_Result], how: str, options: EngineOptions | None
) -> tuple[Run, _Result]:
    """Find the newest run that published the policy's release, with the result that it recorded.

    kind: of the result. how: the release was drawn, such as `with noise`, for the message.

    Raises PolicyError where no run with such a result is recorded.
    """
    run = find_past_run(policy, None, options).run
    result = None if run is None else run.method_result
    if run is None or not isinstance(result, kind):
        place = policy.release.table or policy.release.file
        raise PolicyError(
            f"No run is recorded that published {place} {how}: there is nothing to hold the table against. Name"
            " the catalog in the policy (catalog), if it is elsewhere."
        )
    return run, result


def newest_run(catalog: Catalog, policy: Policy, release: str) -> Run | None:
    """The newest run that published the release, if it was of this source."""
    file = policy.release.file is not None
    for run in catalog.runs(None):
        if run.status is Status.PUBLISHED and _is_named(run, run.release, release, file=file):
            source = policy.source.file or policy.source.table or ""
            return run if _is_named(run, run.source, source, file=policy.source.file is not None) else None
    return None


def _is_named(run: Run, recorded: str, named: str, *, file: bool) -> bool:
    """Tell whether a whole name in the catalog is the name that people wrote, of which parts may be left out."""
    if file:
        return whole_path(resolved(recorded)) == whole_path(named)
    wanted = Relation.parse(named)
    there = Relation.parse(recorded).parts[-len(wanted.parts) :]
    return there in (wanted.parts, dialect_named(run.engine).stored(wanted).parts)


def _known(catalog: Catalog, run: Run, policy: Policy) -> Known:
    choices = choices_of(catalog, run)
    budget = policy.suppression
    if choices is not None and choices.on_violation == "suppress":
        budget = 1.0 if choices.budget is None else choices.budget
    rows = None if run.result is None else run.result.release.rows
    sets = None if run.result is None or run.result.history is None else run.result.history.sets
    return Known(choices is not None, budget, rows, 0 if sets is None else sets.counterfeits)


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
    policy: Policy, recorded: RecordedRelease | None, columns: Sequence[Column], added: Sequence[str] = ()
) -> Check:
    """Hold the columns of a release against the roles of the policy, and their types against the record.

    recorded: None where types are not what the record says, as of a file. added: the columns that are of no source.
    """
    shown = {one.name: one.type for one in columns}
    wanted = {name for name, attribute in policy.attributes.items() if not attribute.is_omitted}
    differing = len(wanted.union(added) ^ shown.keys())
    if recorded is not None and recorded.released is not None and not differing:
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
