"""A release together for which decisions alone are opened: the rows in small classes of the generalizations asked.

The program's own search asks the sites in place of its database, one generalization after the other, and ends after as
many as the plan allows. At the one that is released the sites open which cells are classes of the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.frequency.frequency_sets import Bucket, FrequencySet, FrequencySets
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.methods.generalization.federation.cells import PublicHierarchy
from sqlanon.methods.generalization.federation.comparisons import Threshold
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.revealing import Revealing, SharedDecision, count_kept
from sqlanon.methods.generalization.federation.shares import PRIME, Sharing
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.methods.generalization.lattice.problem import Problem, lattice_facts
from sqlanon.methods.generalization.lattice.quality.qualities import quality_of
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.models import largest_k, models_of
from sqlanon.policy import Policy
from sqlanon.results.measures import ModelResult
from sqlanon.runs.execution import ClassRun
from sqlanon.staging.staging import Staged
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table

_SEARCHING, _VERIFYING = "while generalizations were compared", "while staged releases were verified"


@dataclass
class AskedSets(FrequencySets):
    """The frequency sets of all sites, of which only the rows in small classes can be asked."""

    counts_together = False

    hierarchies: Sequence[PublicHierarchy] = field(kw_only=True)
    ask: Callable[[Node], int] = field(kw_only=True)

    def count_small(
        self,
        node: Node,
        bucket: Bucket | None = None,  # noqa: ARG002
        source: FrequencySet | None = None,  # noqa: ARG002
    ) -> Verdict:
        """The rows of all sites in classes that have too few of them."""
        small = self.ask(node)
        return Verdict(small, small)

    def distinct_levels(self, low: Node, high: Node) -> tuple[tuple[int, ...], ...]:
        """The levels that merge labels of the one below, whether or not there are rows that have these."""
        return tuple(
            tuple(n for n in range(least, most + 1) if n == least or len(one.labels(n)) < len(one.labels(n - 1)))
            for one, least, most in zip(self.hierarchies, low, high, strict=True)
        )


class OpenedDecisions(Revealing):
    """Opens how many rows are in small classes of the generalizations that the search asks, and the classes released.

    rows: those of all sites.
    """

    warning = (
        "Sizes of classes, risk, disclosure and utility are of this site's rows alone, for those of all sites were not"
        " opened (reveal: decision); the privacy models hold for the rows of all sites together."
    )
    rows: int

    def __init__(self, party: Party, hierarchies: Sequence[PublicHierarchy], policy: Policy) -> None:
        super().__init__(party, hierarchies, policy)
        self._k = largest_k(models_of(policy))
        self._threshold = Threshold(Sharing(party), self._k)

    def search(self, run: ClassRun, problem: Problem) -> SharedDecision:
        self.rows = self._add(problem.sets.task.rows, "while rows were counted")
        if self._k > self.rows:
            raise PolicyError(f"privacy: k is {self._k}, but the tables of all sites hold {self.rows} rows together.")
        if self.rows >= PRIME:
            raise PolicyError(f"plan: with reveal: decision, all sites together may have {PRIME - 1:,} rows at most.")
        asked = self._asked(run, problem)
        findings = solve(asked, run.policy, SearchOptions())
        if findings.chosen is None:
            raise _refusal(asked)
        cells = self.cells(findings.chosen)
        kept = self._threshold.find_large(self.count(problem.sets, cells), _SEARCHING)
        assert findings.suppressed is not None
        return SharedDecision(
            cells, tuple(kept), findings.suppressed, lattice_facts(asked, findings, full_domain(run.policy).quality)
        )

    def _asked(self, run: ClassRun, own: Problem) -> Problem:
        """The problem of all sites' rows, given that of this site's own."""

        def ask(node: Node) -> int:
            if len({tuple(one) for one in self.party.tell(list(node), _SEARCHING)}) > 1:
                raise VerificationError(
                    "The sites asked for different generalizations; nothing was published. Please report this."
                )
            return self._threshold.sum_small(self.count(own.sets, self.cells(node)), _SEARCHING)

        sets = own.sets
        task = replace(sets.task, rows=self.rows, budget=run.policy.suppressible(self.rows))
        asked = AskedSets(
            sets.engine, sets.workspace, sets.coded, task, sets.keys, sets.base, hierarchies=self.hierarchies, ask=ask
        )
        quality = quality_of(full_domain(run.policy), asked, own.lattice)
        return Problem(asked, own.lattice, quality, own.report, most_checks=self.party.plan.most_nodes)

    def verify(self, run: ClassRun, staged: Staged, columns: Sequence[str], decision: SharedDecision) -> Verification:
        own = count_kept(staged, columns, decision)
        strays, rows = self._add(int(own[-1]), _VERIFYING), self._add(int(own[:-1].sum()), _VERIFYING)
        small = self._threshold.count_small(own[:-1], _VERIFYING)
        if strays or small or rows + decision.omitted != self.rows:
            raise VerificationError(
                "The staged releases of all sites together do not hold the rows that were decided on, or have classes"
                " that are too small; nothing was published. Please report this."
            )
        verification = verify_table(staged.engine, staged.final, columns, ())
        satisfied = [ModelResult(one.name, one.shown_parameters, True, None, 0, 0) for one in run.models]
        return replace(verification, models=tuple(satisfied))

    def _add(self, own: int, doing: str) -> int:
        return int(self.party.add(np.array([own], np.uint64), doing)[0])


def _refusal(problem: Problem) -> ProtectionError:
    """The error where no generalization that was asked satisfies the models."""
    task, asked = problem.sets.task, problem.sets.checked
    return ProtectionError(
        f"No generalization satisfies the models within the suppression budget ({task.budget:,} of {task.rows:,} rows):"
        f" the most general one is asked first ({asked:,} asked). Higher algorithm.limits or more suppression may do."
    )
