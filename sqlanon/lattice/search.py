"""Full-domain generalization, from a coded table to a partition: the lattice, the policy's algorithm, the release."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sqlanon.encoding import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.lattice.bottom_up import bottom_up
from sqlanon.lattice.datafly import datafly
from sqlanon.lattice.frequency import FrequencySets, Task, create_base
from sqlanon.lattice.incognito import incognito
from sqlanon.lattice.lattice import Lattice, Node
from sqlanon.lattice.optimal import optimal
from sqlanon.lattice.problem import Findings, Problem
from sqlanon.lattice.progress import LatticeProgress
from sqlanon.lattice.qualities import quality_of
from sqlanon.lattice.recoding import recode_node
from sqlanon.lattice.samarati import samarati
from sqlanon.models.base import PrivacyModel
from sqlanon.partition.domains import create_domains, require_attainable
from sqlanon.partition.result import Partition
from sqlanon.policy import FullDomain, Optimal, Policy
from sqlanon.suggest import did_you_mean
from sqlanon.workspace import Workspace

Report = Callable[[LatticeProgress], None]

_ALGORITHMS: Mapping[str, Callable[[Problem, Any], Findings]] = {
    "incognito": incognito,
    "samarati": samarati,
    "bottom-up": bottom_up,
    "optimal": optimal,
    "datafly": datafly,
}


@dataclass(frozen=True)
class Wishes:
    """What a run may ask of a search beside the policy.

    levels: the generalization to release, by attribute, in place of a search.
    time_limit: seconds after which a search that can stop early does.
    """

    levels: Mapping[str, int] | None = None
    time_limit: float | None = None

    def applied_to(self, policy: Policy) -> Policy:
        """The policy with full-domain generalization as its algorithm, if levels are wished for."""
        if self.levels is None or isinstance(policy.algorithm, FullDomain):
            return policy
        return policy.model_copy(update={"algorithm": Optimal(name="optimal")})


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: tuple[PrivacyModel, ...],
    policy: Policy,
    report: Report,
    wishes: Wishes,
) -> Partition:
    """Find and recode the release.

    Raises ProtectionError when no generalization satisfies the models, or the wished one doesn't.
    """
    problem = pose(engine, workspace, coded, models, policy, report, wishes)
    findings = solve(problem, policy, wishes)
    return release(problem, policy, findings)


def pose(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: tuple[PrivacyModel, ...],
    policy: Policy,
    report: Report,
    wishes: Wishes,
) -> Problem:
    """Count the table and lay out its lattice."""
    algorithm = policy.algorithm
    assert isinstance(algorithm, FullDomain)
    sensitive = create_domains(engine, workspace, coded, models)
    budget = int(Decimal(str(policy.suppression)) * coded.source_rows)
    task = Task(models, sensitive, coded.source_rows, budget, omits=policy.suppressed == "omit")
    if not budget:
        require_attainable(engine, coded.source_rows, models, sensitive)
    lattice = lattice_of(coded, algorithm)
    sets = create_base(engine, workspace, coded, task)
    deadline = None if wishes.time_limit is None else time.monotonic() + wishes.time_limit
    return Problem(sets, lattice, quality_of(algorithm, sets, lattice), report, deadline)


def lattice_of(coded: CodedTable, algorithm: FullDomain) -> Lattice:
    """The lattice within the policy's limits; an attribute with a single value stays at its lowest level."""
    fields = coded.quasi_identifiers
    names = tuple(field.attribute.name for field in fields)
    heights = tuple(_height(field) for field in fields)
    bottom, top = [], []
    for name, height in zip(names, heights, strict=True):
        low, high = algorithm.limits.get(name, (0, height))
        if low > height:
            raise PolicyError(
                f"algorithm.limits.{name}: its hierarchy has levels 0 to {height}, none of them from {low} on."
            )
        bottom.append(low)
        top.append(min(high, height))
    return Lattice(names, heights, tuple(bottom), tuple(top))


def _height(field: Any) -> int:
    return int(field.coding.hierarchy.height)


def solve(problem: Problem, policy: Policy, wishes: Wishes) -> Findings:
    """Search as the policy says, or check the generalization that was wished for."""
    if wishes.levels is not None:
        return _check_wished(problem, node_of(problem.lattice, wishes.levels))
    return _ALGORITHMS[policy.algorithm.name](problem, policy.algorithm)


def node_of(lattice: Lattice, levels: Mapping[str, int]) -> Node:
    """The generalization with these levels; raises PolicyError unless every attribute has one that it may have."""
    for name in levels:
        if name not in lattice.names:
            raise PolicyError(f"--levels: '{name}' is not a quasi-identifier; {did_you_mean(name, lattice.names)}")
    node = []
    for name, low, high in zip(lattice.names, lattice.bottom, lattice.top, strict=True):
        if name not in levels:
            raise PolicyError(f"--levels: '{name}' is missing; give a level from {low} to {high}.")
        if not low <= levels[name] <= high:
            raise PolicyError(f"--levels: {name} can be at levels {low} to {high}, not {levels[name]}.")
        node.append(levels[name])
    return tuple(node)


def _check_wished(problem: Problem, node: Node) -> Findings:
    verdict = problem.sets.check(node)
    findings = Findings({node: verdict})
    if problem.sets.satisfies(verdict):
        findings.anonymous.add(node)
        findings.chosen, findings.score = node, problem.quality.score(node, verdict.suppressed)
    return findings


def release(problem: Problem, policy: Policy, findings: Findings) -> Partition:
    """Recode the table to the chosen generalization."""
    if findings.chosen is None:
        raise ProtectionError(_why_not(problem.sets, findings))
    partition = recode_node(problem.sets, findings.chosen)
    if partition.suppressed != findings.suppressed:
        raise VerificationError("The release does not suppress the rows that the search counted. Please report this.")
    return replace(partition, found=_told(problem, policy, findings))


def _told(problem: Problem, policy: Policy, findings: Findings) -> dict[str, Any]:
    """What the outcome says of the search."""
    assert findings.chosen is not None
    algorithm = policy.algorithm
    assert isinstance(algorithm, FullDomain)
    return {
        "levels": dict(zip(problem.lattice.names, findings.chosen, strict=True)),
        "quality": algorithm.quality,
        "score": findings.score,
        "proven": findings.proven,
        "bound": findings.bound,
        "nodes": problem.lattice.size,
        "checked": problem.sets.checked,
    }


def _why_not(sets: FrequencySets, findings: Findings) -> str:
    fewest = min((verdict.suppressed for verdict in findings.verdicts.values()), default=sets.task.rows)
    return (
        "No generalization satisfies the models within the suppression budget. "
        f"The nearest one checked would have to suppress {fewest / sets.task.rows:.4%} of the rows."
    )
