"""Full-domain generalization, from a coded table to a partition: the lattice, the policy's algorithm, the release."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlanon.algorithms.base import SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.keys import steps_of
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.generalization.lattice.bottom_up import bottom_up
from sqlanon.methods.generalization.lattice.datafly import datafly
from sqlanon.methods.generalization.lattice.frequency.base import create_base
from sqlanon.methods.generalization.lattice.incognito import incognito
from sqlanon.methods.generalization.lattice.optimal import optimal
from sqlanon.methods.generalization.lattice.options import full_domain, lattice_within, node_of, require_affordable
from sqlanon.methods.generalization.lattice.problem import Findings, Problem, lattice_facts
from sqlanon.methods.generalization.lattice.quality.qualities import quality_of
from sqlanon.methods.generalization.lattice.record import record
from sqlanon.methods.generalization.lattice.refusal import refusal, refusal_of
from sqlanon.methods.generalization.lattice.remainder import recode_remainder
from sqlanon.methods.generalization.lattice.samarati import samarati
from sqlanon.methods.generalization.policy import FullDomain
from sqlanon.policy import Policy
from sqlanon.releases.recoding import Generalization, recode_node

_ALGORITHMS: Mapping[str, Callable[[Problem, Any], Findings]] = {
    "incognito": incognito,
    "samarati": samarati,
    "bottom-up": bottom_up,
    "optimal": optimal,
    "datafly": datafly,
}


def search(problem: Problem, policy: Policy, search_options: SearchOptions) -> Generalization:
    """Find and recode the release.

    Raises ProtectionError when no generalization satisfies the models, or the given one doesn't.
    """
    return release(problem, policy, solve(problem, policy, search_options))


def lattice_problem(request: SearchRequest) -> Problem:
    """Count the table, by its distinct tuples where the request has them, and lay out its lattice."""
    engine, coded, policy, options = request.engine, request.coded, request.policy, request.options
    algorithm = full_domain(policy)
    sensitive = create_domains(engine, request.workspace, coded, request.models)
    budget = policy.suppressible(coded.source_rows)
    judges_stars = policy.judges_stars and policy.remainder == "suppress"  # a remainder's are judged in the end
    task = LatticeTask(
        request.models, sensitive, coded.source_rows, budget, omits=not policy.stars, judges_stars=judges_stars
    )
    if not budget:
        require_attainable(engine, coded.source_rows, request.models, sensitive)
    lattice = lattice_of(coded, algorithm)
    require_affordable(lattice, policy, options)
    sets = create_base(engine, request.workspace, coded, request.tuples, task, algorithm.suppresses_attributes)
    _require_members(sets, policy)
    deadline = None if options.time_limit is None else time.monotonic() + options.time_limit
    return Problem(sets, lattice, quality_of(algorithm, sets, lattice), request.report, deadline)


def _require_members(sets: FrequencySets, policy: Policy) -> None:
    """Raise PolicyError where the population that models look at lacks rows of the source."""
    if sets.population is None:
        return
    values = {"table": sets.base.table, "keys": sets.keys.of_node(sets.base.node), "population": sets.population}
    (lacking,) = sets.engine.query_one("methods/generalization/lattice/count_lacking", **values)
    if lacking:
        raise PolicyError(
            f"privacy: the population {policy.population} lacks {int(lacking):,} of {sets.task.rows:,} rows of the"
            " source: all who could be in the release must be in it, with the same values of the quasi-identifiers."
        )


def lattice_of(coded: CodedTable, algorithm: FullDomain) -> Lattice:
    """The lattice within the policy's limits; raises PolicyError for those beyond a hierarchy."""
    fields = coded.quasi_identifiers
    heights = {field.attribute.name: len(steps_of(field, algorithm.suppresses_attributes)) - 1 for field in fields}
    return lattice_within(algorithm, heights)


def solve(problem: Problem, policy: Policy, search_options: SearchOptions) -> Findings:
    """Search as the policy says, or check the generalization that the options name."""
    if search_options.levels is not None:
        return _check_requested(problem, node_of(problem.lattice, search_options.levels))
    return _ALGORITHMS[policy.algorithm.name](problem, policy.algorithm)


def _check_requested(problem: Problem, node: Node) -> Findings:
    verdict = problem.sets.check(node)
    findings = Findings({node: verdict}, proven=False)  # others were not looked at
    if problem.sets.satisfies(verdict):
        findings.anonymous.add(node)
        findings.chosen, findings.score = node, problem.quality.score(node, verdict.suppressed)
        return findings
    raise refusal_of(problem, node)


def release(problem: Problem, policy: Policy, findings: Findings) -> Generalization:
    """Recode the table to the chosen generalization."""
    if findings.chosen is None:
        raise refusal(problem, findings)
    facts = lattice_facts(problem, findings, full_domain(policy).quality)
    chart = record(problem, findings)
    if policy.remainder == "recode":
        recoded = recode_remainder(problem, full_domain(policy), findings.chosen, judges_stars=policy.judges_stars)
        facts = replace(facts, passes=recoded.passes, checked=recoded.checked)
        return replace(recoded.generalization, facts=facts, chart=chart)
    partition = recode_node(problem.sets, findings.chosen)
    if partition.suppressed != findings.suppressed:
        raise VerificationError("The release does not suppress the rows that the search counted. Please report this.")
    return replace(partition, facts=facts, chart=chart)
