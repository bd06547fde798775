"""A release together for which the counts of all sites in cells are opened: each site searches on these by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.errors import AccessError, VerificationError
from sqlanon.methods.generalization.explore.build_problem import build_problem_in
from sqlanon.methods.generalization.federation.cells import PublicCells, PublicHierarchy, roll_up
from sqlanon.methods.generalization.federation.party import Counts
from sqlanon.methods.generalization.federation.revealing import Revealing, SharedDecision, count_kept
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.refusal import refusal
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.models import PrivacyModel, largest_k
from sqlanon.policy import Policy, Role, Source
from sqlanon.results.search_facts import LatticeFacts
from sqlanon.runs.execution import ClassRun
from sqlanon.sql import Identifier, Relation
from sqlanon.staging.staging import Staged
from sqlanon.verification.verdict import SharedClasses, Verification
from sqlanon.verification.verify import verify_table

_MOST_ROWS = 2**40  # of all sites; sums of shares that don't belong together are larger


_ROWS = "pooled_rows"


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


@dataclass(frozen=True)
class ChosenNode:
    """The generalization that a search chose, and what is known of it."""

    node: Node
    facts: LatticeFacts


def search_pooled(
    policy: Policy, hierarchies: Sequence[PublicHierarchy], cells: PublicCells, counts: Counts
) -> ChosenNode:
    """Search, as the policy says, over the rows of all sites as the cells hold them.

    A row has the first value of its label: all generalizations that are searched are above the labels.

    Raises ProtectionError where no generalization satisfies the models.
    """
    numbers = np.flatnonzero(counts)
    values = [one.values(level) for one, level in zip(hierarchies, cells.node, strict=True)]
    places = cells.digits(numbers)
    columns = [[known[place] for place in places[n]] for n, known in enumerate(values)]
    pooled = _pooled_policy(policy)
    with connect(MEMORY_URL) as engine:
        _create_rows(engine, [one.name for one in hierarchies], columns, counts[numbers])
        with build_problem_in(engine, pooled, SearchOptions(any_size=True)) as opened:
            problem = opened.problem
            findings = solve(problem, pooled, SearchOptions(any_size=True))
            if findings.chosen is None:
                raise refusal(problem, findings)
            return ChosenNode(findings.chosen, _facts(policy, problem, findings))


def _facts(policy: Policy, problem: Problem, findings: Findings) -> LatticeFacts:
    assert findings.chosen is not None
    assert findings.score is not None
    return LatticeFacts(
        levels=dict(zip(problem.lattice.names, findings.chosen, strict=True)),
        quality=full_domain(policy).quality,
        score=findings.score,
        proven=findings.proven,
        bound=findings.bound,
        nodes=problem.lattice.size,
        checked=problem.sets.checked,
    )


def verify_pooled(models: Sequence[PrivacyModel], counts: NDArray[np.uint64]) -> Verification:
    """Check the classes of all sites together, given the rows of each."""
    numbers = np.flatnonzero(counts)
    with connect(MEMORY_URL) as engine:
        _create_rows(engine, ["class"], [[str(number) for number in numbers]], counts[numbers])
        return verify_table(engine, Relation(_ROWS), ["class"], models)


def _create_rows(
    engine: Engine, names: Sequence[str], columns: Sequence[Sequence[str | None]], counts: NDArray[np.uint64]
) -> None:
    cells = engine.temporary("pooled_cells")
    identifiers = [Identifier(name) for name in names]
    engine.run("methods/generalization/federation/create_cells", cells=cells, columns=identifiers)
    engine.load(cells, [*names, "n"], zip(*columns, counts.tolist(), strict=True))
    engine.run("methods/generalization/federation/create_rows", rows=Relation(_ROWS), cells=cells, columns=identifiers)


def _pooled_policy(policy: Policy) -> Policy:
    """The policy for the table in memory, which has the quasi-identifiers alone."""
    attributes = {n: a for n, a in policy.attributes.items() if a.role is Role.QUASI_IDENTIFIER}
    source = Source(url=MEMORY_URL, table=_ROWS)
    return policy.model_copy(update={"source": source, "attributes": attributes, "subject": "none"})
