"""A site's part in a release of several owners: where its recoding comes from, and how its release is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.methods.generalization.federation.agreement import require_agreement
from sqlanon.methods.generalization.federation.cells import public_hierarchies
from sqlanon.methods.generalization.federation.opened_counts import OpenedCounts
from sqlanon.methods.generalization.federation.opened_decisions import OpenedDecisions
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.revealing import Revealing, SharedDecision
from sqlanon.methods.generalization.federation.site_counts import LocalClass, count_classes, create_failing
from sqlanon.methods.generalization.lattice.search import lattice_problem
from sqlanon.policy import AlgorithmParameters
from sqlanon.releases.base import Release
from sqlanon.releases.generalized import Levels
from sqlanon.releases.recoding import create_pass, release_of
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.execution import ClassRun, Encoded, RunExecution
from sqlanon.runs.search_source import search_request
from sqlanon.runs.sink import AnySource, Publish
from sqlanon.staging.staging import Staged

_REVEALED: Mapping[str, type[Revealing]] = {"counts": OpenedCounts, "decision": OpenedDecisions}
"""The kinds of joint work, as `reveal` of a plan names them."""


class SharedSearch(ClassSource):
    """The search over the rows of all sites, of which each opens no counts of its own."""

    decision: SharedDecision

    def __init__(self, parameters: AlgorithmParameters, party: Party) -> None:
        self.algorithm = parameters.name
        self.party = party

    def require_plan(self, run: ClassRun) -> None:
        super().require_plan(run)
        require_agreement(self.party, run.plan)
        self.revealing = _REVEALED[self.party.plan.reveal](self.party, public_hierarchies(run.plan), run.policy)

    def warnings(self, run: ClassRun) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(filter(None, [self.revealing.warning]))

    def decide(self, run: ClassRun, encoded: Encoded) -> Release:
        request = search_request(run, encoded.coded, SearchOptions()).without_suppression_limit()
        with run.journal.during("search"):
            problem = lattice_problem(request)
            self.decision = self.revealing.search(run, problem)
            node = self.decision.cells.node
            self._require_same(self.decision)
        with run.journal.during("recode"):
            failing = self._failing(count_classes(problem.sets, node))
            table = create_failing(problem.sets, node, failing)
            first = create_pass(problem.sets, node, table)
            recoded = release_of(problem.sets, [first], sum(one.rows for one in failing))
            generalization = recoded.as_searched(problem.sets.checked, self.decision.facts, None)
            return Levels.create(run.engine, run.workspace, encoded.coded, generalization)

    def _require_same(self, decision: SharedDecision) -> None:
        """Hold the sites to one decision, to which each comes by itself: the levels, and the labels of all classes."""
        decisions = self.party.tell(decision.described, "while decisions were compared")
        if any(other != decision.described for other in decisions):
            raise VerificationError(
                "The sites came to different generalizations, or their labels differ; nothing was published. Please"
                " report."
            )

    def _failing(self, classes: Sequence[LocalClass]) -> list[LocalClass]:
        """The site's classes that have too few rows at all sites together."""
        kept = set(self.decision.kept)
        numbers = self.decision.cells.numbers([one.labels for one in classes])
        return [one for one, number in zip(classes, numbers, strict=True) if number not in kept]

    def keep_rules(self, run: ClassRun, release: Release) -> StoredRules | None:
        return release.keep_rules(run.engine, run.catalog, run.workspace, run.id)

    def verify_models(self, run: ClassRun, staged: Staged) -> None:
        """Check the classes of all sites' staged rows together."""
        shown = run.release.shown_columns
        run.outcome.verification = self.revealing.verify(run, staged, shown, self.decision)


class PublishTogether(Publish):
    """All sites' staged releases are verified as one, and take their places together or not at all."""

    is_part = True

    def __init__(self, replace: bool, party: Party) -> None:
        super().__init__(replace)
        self.party = party
        self._has_voted = False

    def publish(self, run: RunExecution[Any], source: AnySource, staged: Staged) -> None:
        """Publish in a transaction that is committed once every site is about to commit, and hear that all did."""
        self.party.tell("ready", "before releases were published")
        self.publish_with(run, source, staged, self._vote)
        self.party.tell("published", "after this site had published, and may still have the old release")

    def _vote(self, _session: Engine) -> None:
        """Wait until all sites have done all but commit; a second attempt to publish keeps the vote of the first."""
        if not self._has_voted:
            self._has_voted = True
            self.party.tell("commit", "while releases were published")
