"""Rows of all sites together as a table in memory: opened counts, one row for each row counted, and nothing else.

So the program's own search and its own check see the union as they see any table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.methods.generalization.explore.build_problem import build_problem_in
from sqlanon.methods.generalization.federation.cells import PublicCells, PublicHierarchy
from sqlanon.methods.generalization.federation.party import Counts
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.refusal import refusal
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.models import PrivacyModel
from sqlanon.policy import Policy, Role, Source
from sqlanon.results.search_facts import LatticeFacts
from sqlanon.sql import Identifier, Relation
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table

_ROWS = "pooled_rows"


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
