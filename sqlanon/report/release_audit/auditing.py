"""The audit of a policy's release: its models, and every check of a run that the source at hand allows."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlanon.encoding.coded_table import WITNESS_ROWS
from sqlanon.encoding.pseudonymized import without_pseudonyms
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import is_embedded
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.files import STANDARD_INPUT
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError, SqlanonError
from sqlanon.plan.connecting import open_release
from sqlanon.plan.plan import Plan, resolve_source
from sqlanon.plan.trust import reading
from sqlanon.policy import Policy
from sqlanon.policy.privacy import costs_of
from sqlanon.report.release_audit.holding import LINKED, Held, hold_against_source
from sqlanon.report.release_audit.published import (
    bring_published,
    expected_columns,
    expected_names,
    open_published,
    rescaled_columns,
    wrong_columns,
)
from sqlanon.report.release_audit.recorded import Past, find_past_run
from sqlanon.results.measures import Check
from sqlanon.sql import Relation
from sqlanon.support.methods import method_of
from sqlanon.verification.published_clusters import check_counts
from sqlanon.verification.release import verify_release, why_unjudged
from sqlanon.verification.verdict import Verification
from sqlanon.work.workspace import TemporaryWorkspace

if TYPE_CHECKING:
    from sqlanon.report.release_audit.recorded import RecordedAudit


def audit_release(
    policy: Policy,
    table: str | None = None,
    options: EngineOptions | None = None,
    *,
    with_source: bool = True,
    whole: bool = False,
) -> Audit | RecordedAudit:
    """Check the policy's release, or another table (or file) in its place, against its models, its source, its record.

    with_source, whole: see `audit_classes`; a release without classes is held against its record, and neither has a
    meaning for it.

    Raises PolicyError for an unknown table, for one without a record that is needed, or for an option that has no
    meaning; AccessError where the release can't be read.
    """
    method = method_of(policy.algorithm.name)
    if method is None or method.audit is None:
        from sqlanon.report.release_audit.auditing import audit_classes

        return audit_classes(policy, table, options, with_source=with_source, whole=whole)
    kind = "differential privacy" if policy.is_private else policy.algorithm.name
    if not with_source:
        raise PolicyError(f"--no-source has no meaning for {kind}: the source is not read.")
    if whole:
        raise PolicyError(f"--all has no meaning for {kind}: no sample is drawn.")
    audit: RecordedAudit = method.load(method.audit)(policy, table, options)
    return audit


_CLUSTERS = "clusters do not say which rows they are of; the run checked it before it published"
_KEYED = "only who has the key can tell; the run checked it before it published"
_UNREAD = "identifiers are not read; the run checked it before it published"
_OF_SOURCE = ("rows_add_up", "values_equal", *LINKED)


@dataclass(frozen=True)
class Audit:
    """The findings of an audit.

    verification: how the models stand; None where the release lacks columns that they are about, or `unjudged`.
    unjudged: the reason why models are not judged, where the release does not show their classes.
    costs: files of costs that have changed since `run` measured by them: the models are judged by them as they are now.
    checks: each check that was made, by its name. unchecked: those that were not, and why.
    columns: the columns that are missing, too many, in another place or of another type.
    run: the run that the catalog knows to have made the release.
    same_source: whether the source is known to be what it was then.
    omitted: rows of the source that are not in the release; None where the source was not read.
    """

    verification: Verification | None
    checks: Mapping[str, Check] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    run: str | None = None
    same_source: bool = False
    omitted: int | None = None
    unjudged: str | None = None
    costs: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks with violations."""
        return tuple(name for name, check in self.checks.items() if check.violations)

    @property
    def satisfied(self) -> bool:
        """Tell whether every model that is judged is satisfied, and no check that was made found a violation."""
        if self.failed:
            return False
        return self.unjudged is not None if self.verification is None else self.verification.satisfied

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon verify --json` prints it."""
        return {
            **({"note": self.unjudged} if self.verification is None else self.verification.as_json()),
            "checks": {name: vars(check) for name, check in self.checks.items()},
            "columns": list(self.columns),
            "unchecked": dict(self.unchecked),
            "run": self.run,
            "same_source": self.same_source,
            "left_out": self.omitted,
            "changed_costs": list(self.costs),
            "satisfied": self.satisfied,
        }


def audit_classes(
    policy: Policy,
    table: str | None = None,
    options: EngineOptions | None = None,
    *,
    with_source: bool = True,
    whole: bool = False,
) -> Audit:
    """Check the policy's release, or another table (or file) in its place, against its models and its source.

    with_source: whether the source is read; without it, names of columns and models alone are checked.
    whole: whether every row is held against its raw values, however many there are. Of more than a million rows it is
        a random sample else, as in a run; models, rows and kept values are checked on all rows nevertheless.

    Raises PolicyError for an unknown table, AccessError where the release can't be read.
    """
    audit = _Audit(policy, table, options, whole=whole)
    unjudged = why_unjudged(policy)
    audit.check_names()
    if unjudged is None:
        audit.check_models()
    if policy.algorithm.releases_clusters:
        audit.check_counts()
        audit.leave_out(_CLUSTERS)
    elif with_source:
        audit.check_source()
    else:
        audit.leave_out("the source was not to be read (--no-source)")
    held = audit.held
    return Audit(
        audit.verification,
        held.checks,
        held.unchecked,
        tuple(audit.columns),
        audit.run,
        audit.sure,
        held.omitted,
        unjudged,
        audit.changed_costs(),
    )


class _Audit:
    """An audit on its way."""

    def __init__(self, policy: Policy, table: str | None, options: EngineOptions | None, *, whole: bool) -> None:
        self.policy = policy
        self.whole = whole
        self.table = table
        self.options = options
        self.held = Held()
        self.columns: list[str] = []
        self.run: str | None = None
        self.sure = False
        self.verification: Verification | None = None

    @functools.cached_property
    def past(self) -> Past:
        """The run that made the release, as far as the catalog knows it."""
        return find_past_run(self.policy, self.table, self.options)

    def check_names(self) -> None:
        """Hold the names of the release's columns against the roles in the policy."""
        with open_release(self.policy, self.table, (), self.options) as (engine, relation):
            names = {column.name for column in engine.columns(relation)}
            (rows,) = engine.query_one("count_rows", table=relation)
        self.columns = sorted(names ^ set(expected_names(self.policy)))
        self.held.checks["columns_equal"] = Check(len(self.columns), rows)

    def check_models(self) -> None:
        """Verify the models, if the release has the columns that they are about."""
        try:
            self.verification = verify_release(self.policy, self.table, self.options)
        except PolicyError:
            if not self.columns:
                raise

    def check_counts(self) -> None:
        """Hold the two tables of clusters against each other."""
        with open_release(self.policy, self.table, (), self.options) as (engine, relation):
            self.held.checks["counts_add_up"] = check_counts(engine, self.policy, relation)

    def changed_costs(self) -> tuple[str, ...]:
        """The files of costs that have changed since the run that made the release."""
        return self.past.changed_costs(self.policy) if costs_of(self.policy.privacy) else ()

    def leave_out(self, reason: str) -> None:
        """Say of all checks against the source that they were not made."""
        self.held.unchecked |= dict.fromkeys(_OF_SOURCE, reason)
        self.held.unchecked["types_equal"] = reason

    def check_source(self) -> None:
        """Make the checks that read the source."""
        if self.policy.source.file == STANDARD_INPUT:
            self.leave_out("the source was standard input")
            return
        past = self.past
        self.run = None if past.run is None else past.run.id
        try:
            with self._source() as (engine, plan):
                self._compare(engine, plan, past)
        except (AccessError, ConflictError, PolicyError) as error:
            self.leave_out(f"the source can't be read as the policy says: {_first_line(error)}")

    @contextlib.contextmanager
    def _source(self) -> Iterator[tuple[Engine, Plan]]:
        url = self.policy.source.url or MEMORY_URL
        read_only = is_embedded(url) and url != MEMORY_URL
        file = self.policy.release.file
        places = () if file is None else (str(Path(self.table or file).absolute()),)
        options = replace(self.options or EngineOptions(), places=places)
        with connect(url, options, read_only=read_only) as engine:
            plan = resolve_source(self.policy, engine)
            with reading(engine, plan.source, trusts_owner=self.policy.trust == "owner"):
                yield engine, plan

    def _compare(self, engine: Engine, plan: Plan, past: Past) -> None:
        if plan.rows > WITNESS_ROWS:
            engine.spill_early()
        expected = expected_columns(plan, engine.traits)
        with open_published(self.policy, engine, self.table, self.options) as (reader, published):
            typed = reader is engine and self.policy.release.file is None
            wrong = wrong_columns(expected, reader.columns(published), typed=typed)
            if not wrong:
                same = past.is_of(engine, plan)
                self.sure = bool(same)
                if same is False:
                    self.leave_out(past.changed)
                    return
                try:
                    release = bring_published(self.policy, engine, reader, published, self.table, expected)
                except EngineError as error:
                    wrong = [_first_line(error)]
            if wrong:
                self._refuse_columns(wrong)
                return
            rescaled = rescaled_columns(self.policy, reader.columns(published), expected)
            self._hold(engine, _rescaled(plan, rescaled), release, past)

    def _hold(self, engine: Engine, plan: Plan, release: Relation, past: Past) -> None:
        known = past.known if self.sure else replace(past.known, rows=None)
        with TemporaryWorkspace(engine) as workspace:
            held = hold_against_source(engine, workspace, without_pseudonyms(plan), release, known, whole=self.whole)
        if any(one.show.tells_apart for one in plan.pseudonyms):
            held.unchecked["pseudonyms_distinct"] = _KEYED
        if any(not one.show.tells_apart for one in plan.pseudonyms):
            held.unchecked["masks_true"] = _UNREAD
        self.held.omitted = held.omitted
        self.held.checks |= held.checks
        self.held.unchecked |= held.unchecked

    def _refuse_columns(self, wrong: list[str]) -> None:
        self.columns = wrong
        rows = self.held.checks["columns_equal"].rows
        self.held.checks["columns_equal"] = Check(len(wrong), rows)
        self.held.unchecked |= dict.fromkeys(_OF_SOURCE, "the release has not the columns that the policy gives it")


def _rescaled(plan: Plan, names: Collection[str]) -> Plan:
    """The plan for a release that has given scales to some of the kept decimals."""
    attributes = [
        replace(one, column=replace(one.column, is_rescaled=True)) if one.name in names else one
        for one in plan.attributes
    ]
    return replace(plan, attributes=tuple(attributes))


def _first_line(error: SqlanonError) -> str:
    return str(error).splitlines()[0]
