"""Destinations of a release: it is published; see `tradeoffs.sweeping` for releases that are only measured."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from pathlib import Path

from sqlanon.catalog import Status
from sqlanon.engines.publishing import Record, nothing
from sqlanon.errors import ProtectionError, VerificationError
from sqlanon.measures.distributions import rows_of_bars
from sqlanon.models import largest_k
from sqlanon.plan.plan import Plan, resolve
from sqlanon.releases.base import Release
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.runs.checkpoints import checkpoint_of
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.runs.gates import WayOut
from sqlanon.runs.recording import PublishedRecord, release_record
from sqlanon.runs.source import ReleaseSource
from sqlanon.sql import Relation
from sqlanon.staging.labels import EVERYTHING
from sqlanon.staging.staging import Staged
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.pseudonyms import check_pseudonyms
from sqlanon.verification.release import verify_rows
from sqlanon.work.workspace import release_lock


class Sink(ABC):
    """The destination of a release.

    ends_as: what the catalog says of a run that came to its end.
    publishes: whether readers will see the release, so that the source's state is recorded.
    """

    ends_as: Status
    publishes: bool

    @abstractmethod
    def plan(self, run: RunExecution, source: ReleaseSource) -> Plan:
        """Resolve the policy against the live table; raises all that is wrong with it."""

    def release_name(self, plan: Plan) -> str:
        """Name the release in the catalog."""
        return plan.release_name

    @abstractmethod
    def lock(self, run: RunExecution) -> contextlib.AbstractContextManager[None]:
        """Keep others from what the release would be in the way of."""

    @abstractmethod
    def take(self, run: RunExecution, source: ReleaseSource, encoded: Encoded, release: Release) -> None:
        """Do with the release what is to be done."""


class Publish(Sink):
    """The release is staged, verified, and takes its place; the catalog records it with its rules.

    is_part: whether others hold further rows of the same release.
    """

    ends_as = Status.PUBLISHED
    publishes = True
    is_part = False

    def __init__(self, replace: bool) -> None:
        self.replace = replace

    def plan(self, run: RunExecution, source: ReleaseSource) -> Plan:
        session = run.session
        elsewhere = None if session.is_one_database else session.target
        plan = resolve(
            run.policy,
            run.engine,
            replace=self.replace,
            release_engine=elsewhere,
            pinned=source.pinned,
            is_part=self.is_part,
        )
        run.way_out = WayOut(run.catalog, run.policy.republish, [(plan.source_place, plan.source_name)])
        run.way_out.check_earlier(source.rules_run, source.rules_digest)
        return plan

    def lock(self, run: RunExecution) -> contextlib.AbstractContextManager[None]:
        """Lock a table in its own database; a file in the source's, which other runs to it are likely to share."""
        file = run.policy.release.file
        if file is None:
            return release_lock(run.session.target, run.plan.release, keeper=run.keeper_of_locks)
        keeper = run.engine if run.engine.traits.has_locks else run.catalog.store
        return release_lock(run.engine, Relation("file"), Path(file).resolve(), keeper=keeper)

    def take(self, run: RunExecution, source: ReleaseSource, encoded: Encoded, release: Release) -> None:
        with contextlib.ExitStack() as stack:
            with run.files.must_stay(source=False):  # which is not read again
                rules = _keep_rules(run, source, encoded, release)
                staged = self._stage(run, release, stack)
                with run.journal.during("verify"):
                    self.verify(run, release, staged, encoded.unmatched_rows)
                    run.outcome.masking = release.measure_masking(run.engine, run.workspace)
            if run.policy.digest == "run":
                with run.journal.during("verify"):
                    run.outcome.digest = staged.digest()
            source.require_staged(run, staged)
            recoding = rules.digest if rules is not None else source.rules_digest or release.digest_recoding(run.engine)
            self.publish(run, source, staged, rules, recoding)

    def verify(self, run: RunExecution, release: Release, staged: Staged, unmatched_rows: int) -> None:
        """Check the staged release on its own; raises VerificationError, and then nothing is published."""
        check_claims(run, release, staged, unmatched_rows)
        verify_models(run, release, staged)
        require_verified(run)

    def publish(
        self, run: RunExecution, source: ReleaseSource, staged: Staged, rules: StoredRules | None, digest: str | None
    ) -> None:
        """Let the staged release take its place, and record it in the same transaction where there is one."""
        publish_staged(run, source, staged, rules, digest)

    def _stage(self, run: RunExecution, release: Release, stack: contextlib.ExitStack) -> Staged:
        """Build the release where nobody sees it yet; what is not published goes with `stack`."""
        with run.journal.during("recode"):
            least = rows_of_bars(largest_k(run.models), run.outcome.most_rows)
            run.outcome.distributions = release.measure_distributions(run.engine, run.workspace, least)
            staging = release.stage(run.session, run.plan, run.workspace, replace=self.replace)
            return stack.enter_context(staging)


def _keep_rules(run: RunExecution, source: ReleaseSource, encoded: Encoded, release: Release) -> StoredRules | None:
    """Write the rules down; from then on a stopped run can be taken up here."""
    with run.journal.during("recode"):
        rules = source.keep_rules(run, release)
        if rules is not None and encoded.basis is not None:
            left = checkpoint_of(encoded.basis, rules.record, rules.digest, run.outcome)
            run.catalog.record_checkpoint(run.outcome.run, left.as_json())
        return rules


def check_claims(run: RunExecution, release: Release, staged: Staged, unmatched_rows: int) -> None:
    """Check what a release claims of its staged rows."""
    run.outcome.checks = {
        **release.check_claims(run.engine, run.workspace, run.plan, staged),
        **check_pseudonyms(run.engine, run.workspace, run.plan, staged, release.omitted + unmatched_rows),
    }


def verify_models(run: RunExecution, release: Release, staged: Staged) -> None:
    """Check the classes of a staged release against the policy's models."""
    policy = run.policy
    with (
        release.judged(run.engine, run.workspace, run.plan, staged) as judged,
        checked_hierarchies(judged.engine, policy, run.models, judged.relation) as hierarchies,
    ):
        label = EVERYTHING if release.starred_rows else None
        verification = verify_rows(
            judged.engine, judged.relation, judged.columns, run.models, policy, hierarchies, label, judged.person
        )
        run.outcome.verification = judged.of_rows(verification)


def require_verified(run: RunExecution) -> None:
    """Raise VerificationError, or ProtectionError, where a check or a model failed."""
    outcome = run.outcome
    assert outcome.verification is not None
    failed = [name for name, check in outcome.checks.items() if check.violations]
    if not failed and outcome.verification.fails_by_stars_alone:
        raise ProtectionError(outcome.verification.stars_problem)
    failed += [result.model for result in outcome.verification.models if not result.satisfied]
    if failed:
        raise VerificationError(
            f"The staged release failed its check ({', '.join(failed)}); nothing was published. Please report this."
        )


def publish_staged(
    run: RunExecution,
    source: ReleaseSource,
    staged: Staged,
    rules: StoredRules | None,
    digest: str | None,
    before_commit: Record = nothing,
) -> None:
    """Let the staged release take its place through the gates; see `WayOut.publish`."""
    outcome, way_out = run.outcome, run.way_out
    assert way_out is not None
    released = release_record(outcome, digest, run.plan)
    record = PublishedRecord(run.catalog, outcome.run, run.plan.release, released, rules)
    with run.journal.during("publish"):
        try:
            outcome.notes = way_out.publish(
                staged, record, run.control, rules=source.rules_run, digest=digest, before_commit=before_commit
            )
        finally:
            outcome.published = way_out.published
