"""A site's part in a release of several owners: where its recoding comes from, and how its release is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sqlanon.algorithms.lattice.options import SearchOptions, full_domain
from sqlanon.algorithms.lattice.problem import Problem
from sqlanon.algorithms.lattice.search import lattice_problem
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.federation.agreement import require_agreement
from sqlanon.federation.cells import PublicCells, public_hierarchies, require_few, roll_up
from sqlanon.federation.counting import LocalClass, count_classes, count_staged, counts_in, create_failing
from sqlanon.federation.party import Counts, Party
from sqlanon.federation.pooled import ChosenNode, search_pooled, verify_pooled
from sqlanon.models import largest_k
from sqlanon.plan.plan import Plan
from sqlanon.policy import AlgorithmParameters
from sqlanon.releases.base import Release
from sqlanon.releases.generalized import Levels
from sqlanon.releases.recoding import create_pass, release_of
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.runs.sink import Publish, check_claims, publish_staged, require_verified
from sqlanon.runs.source import ReleaseSource, search_request
from sqlanon.staging.staging import Staged
from sqlanon.verification.verdict import SharedClasses


@dataclass(frozen=True)
class SharedDecision:
    """The decision that all sites came to: a generalization, and the rows of all in each of its cells."""

    cells: PublicCells
    counts: Counts
    k: int

    @property
    def kept(self) -> list[int]:
        """The cells that are classes of the release, by number."""
        return np.flatnonzero(self.counts >= self.k).tolist()

    @property
    def omitted(self) -> int:
        """The rows of all sites that are left out."""
        return int(self.counts[self.counts < self.k].sum())


class SharedSearch(ReleaseSource):
    """The search over the rows of all sites, of which each opens no counts of its own."""

    decision: SharedDecision

    def __init__(self, parameters: AlgorithmParameters, party: Party) -> None:
        self.algorithm = parameters.name
        self.party = party

    def require_plan(self, run: RunExecution, plan: Plan) -> None:  # noqa: ARG002
        require_agreement(self.party, plan)
        self._hierarchies = public_hierarchies(plan)
        low = [full_domain(plan.policy).limits.get(one.name, (0, 0))[0] for one in self._hierarchies]
        beyond = [one.name for one, level in zip(self._hierarchies, low, strict=True) if level > one.height]
        if beyond:
            raise PolicyError(f"algorithm.limits: the hierarchy of '{beyond[0]}' has no such level.")
        self._base = PublicCells.at(self._hierarchies, tuple(low))
        require_few(self._base, [one.name for one in self._hierarchies], self.party.plan.most_cells)

    def decide(self, run: RunExecution, encoded: Encoded) -> Release:
        request = search_request(run, encoded.coded, SearchOptions()).without_suppression_limit()
        with run.journal.during("search"):
            problem = lattice_problem(request)
            chosen, opened = self._search(run, problem)
            cells = PublicCells.at(self._hierarchies, chosen.node)
            self.decision = SharedDecision(
                cells, roll_up(self._hierarchies, self._base, opened, cells), largest_k(run.models)
            )
            self._require_same(chosen.node)
        with run.journal.during("recode"):
            classes = count_classes(problem.sets, chosen.node)
            failing = self._failing(classes)
            table = create_failing(problem.sets, chosen.node, failing)
            first = create_pass(problem.sets, chosen.node, table)
            recoded = release_of(problem.sets, [first], sum(one.rows for one in failing))
            generalization = recoded.as_searched(problem.sets.checked, chosen.facts, None)
            return Levels.create(run.engine, run.workspace, encoded.coded, generalization)

    def _search(self, run: RunExecution, problem: Problem) -> tuple[ChosenNode, Counts]:
        names = [one.name for one in self._hierarchies]
        own = counts_in(self._base, count_classes(problem.sets, self._base.node), names)
        opened = self.party.add(own, "while rows were counted")
        return search_pooled(run.policy, self._hierarchies, self._base, opened), opened

    def _require_same(self, node: Node) -> None:
        """Hold the sites to one decision, to which each comes by itself."""
        if len({tuple(one) for one in self.party.tell(list(node), "while decisions were compared")}) > 1:
            raise VerificationError(
                "The sites came to different generalizations; nothing was published. Please report."
            )

    def _failing(self, classes: Sequence[LocalClass]) -> list[LocalClass]:
        """The site's classes that have too few rows at all sites together."""
        kept = set(self.decision.kept)
        numbers = self.decision.cells.numbers([one.labels for one in classes])
        return [one for one, number in zip(classes, numbers, strict=True) if number not in kept]

    def keep_rules(self, run: RunExecution, release: Release) -> StoredRules | None:
        return release.keep_rules(run.engine, run.catalog, run.workspace, run.outcome.run)


class PublishTogether(Publish):
    """All sites' staged releases are verified as one, and take their places together or not at all."""

    is_part = True

    def __init__(self, replace: bool, search: SharedSearch) -> None:
        super().__init__(replace)
        self.search, self.party = search, search.party
        self._has_voted = False

    def verify(self, run: RunExecution, release: Release, staged: Staged, unmatched_rows: int) -> None:
        """Check the claims of this site's release, and the classes of all sites' staged rows together."""
        check_claims(run, release, staged, unmatched_rows)
        self._verify_together(run, release, staged)
        require_verified(run)

    def _verify_together(self, run: RunExecution, release: Release, staged: Staged) -> None:
        decision = self.search.decision
        wanted = {number: place for place, number in enumerate(decision.kept)}
        own = count_staged(staged.engine, staged.final, release.shown_columns, decision.cells, wanted)
        counted = self.party.add(own, "while staged releases were verified")
        verification = verify_pooled(run.models, counted)
        if counted[-1] or (counted[:-1] != decision.counts[decision.kept]).any():
            raise VerificationError(
                "The staged releases of all sites together do not hold the rows that were decided on; nothing was"
                " published. Please report this."
            )
        run.outcome.verification = replace(verification, shared=SharedClasses(int(own.sum()), decision.omitted))

    def publish(
        self, run: RunExecution, source: ReleaseSource, staged: Staged, rules: StoredRules | None, digest: str | None
    ) -> None:
        """Publish in a transaction that is committed once every site is about to commit, and hear that all did."""
        self.party.tell("ready", "before releases were published")
        publish_staged(run, source, staged, rules, digest, self._vote)
        self.party.tell("published", "after this site had published, and may still have the old release")

    def _vote(self) -> None:
        """Wait until all sites have done all but commit; a second attempt to publish keeps the vote of the first."""
        if not self._has_voted:
            self._has_voted = True
            self.party.tell("commit", "while releases were published")
