"""A release together for which the counts of all sites in cells are opened: each site searches on these by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sqlanon.errors import AccessError, VerificationError
from sqlanon.methods.generalization.federation.cells import roll_up
from sqlanon.methods.generalization.federation.party import Counts
from sqlanon.methods.generalization.federation.pooled import search_pooled, verify_pooled
from sqlanon.methods.generalization.federation.revealing import Revealing, SharedDecision, count_kept
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.models import largest_k
from sqlanon.runs.execution import ClassRun
from sqlanon.staging.staging import Staged
from sqlanon.verification.verdict import SharedClasses, Verification

_MOST_ROWS = 2**40  # of all sites; sums of shares that don't belong together are larger


class OpenedCounts(Revealing):
    """Opens how many rows all sites together have in each cell; `counts` are those of the classes of the release."""

    counts: Counts

    def search(self, run: ClassRun, problem: Problem) -> SharedDecision:
        own = self.count(problem.sets, self.base)
        opened = self.party.add(own, "while rows were counted")
        _require_counts(own, opened)
        chosen = search_pooled(run.policy, self.hierarchies, self.base, opened)
        cells = self.cells(chosen.node)
        counts = roll_up(self.hierarchies, self.base, opened, cells)
        kept = counts >= largest_k(run.models)
        self.counts = counts[kept]
        return SharedDecision(cells, tuple(np.flatnonzero(kept).tolist()), int(counts[~kept].sum()), chosen.facts)

    def verify(self, run: ClassRun, staged: Staged, columns: Sequence[str], decision: SharedDecision) -> Verification:
        own = count_kept(staged, columns, decision)
        counted = self.party.add(own, "while staged releases were verified")
        if counted[-1] or (counted[:-1] != self.counts).any():
            raise VerificationError(
                "The staged releases of all sites together do not hold the rows that were decided on; nothing was"
                " published. Please report this."
            )
        verification = verify_pooled(run.models, counted)
        return replace(verification, shared=SharedClasses(int(own.sum()), decision.omitted))


def _require_counts(own: Counts, opened: Counts) -> None:
    """Raise AccessError where opened sums can't be counts of rows that this site's are among."""
    if (opened < own).any() or (opened > _MOST_ROWS).any() or int(opened.sum()) > _MOST_ROWS:
        raise AccessError(
            "The sums that were opened are no counts of rows: a site is out of step, or does not run the program as it"
            " is; nothing was published."
        )
