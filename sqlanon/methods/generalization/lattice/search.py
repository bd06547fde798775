"""Full-domain generalization, from a coded table to a partition: the lattice, the policy's algorithm, the release."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlanon.algorithms.base import SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.encoding.frequency.frequency_sets import (
    FrequencySet,
    FrequencySets,
    count_tuples,
    count_type,
    sensitive_column,
)
from sqlanon.encoding.frequency.keys import Keys, lay_out, steps_of
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.generalization.lattice.incognito import incognito
from sqlanon.methods.generalization.lattice.node_status import record
from sqlanon.methods.generalization.lattice.optimal import optimal
from sqlanon.methods.generalization.lattice.options import full_domain, lattice_within, node_of, require_affordable
from sqlanon.methods.generalization.lattice.problem import Findings, Problem, lattice_facts
from sqlanon.methods.generalization.lattice.quality.qualities import quality_of
from sqlanon.methods.generalization.lattice.refusal import refusal, refusal_of
from sqlanon.methods.generalization.lattice.remainder import recode_remainder
from sqlanon.methods.generalization.lattice.simple_searches import bottom_up, datafly, samarati
from sqlanon.methods.generalization.policy import FullDomain
from sqlanon.policy import Policy
from sqlanon.releases.recoding import Generalization, recode_node
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.work.workspace import Workspace


def create_base(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    task: LatticeTask,
    suppresses: bool = False,
) -> FrequencySets:
    """Lay out the keys of the ungeneralized table: of its distinct tuples, or else of all rows.

    tuples: of the quasi-identifiers and of what the models look at; they are dropped.
    suppresses: whether attributes are shown as they are or as `*`, with nothing between.
    """
    keys = lay_out(coded.quasi_identifiers, suppresses)
    sensitive: list[dict[str, Any]] = [
        {"name": sensitive_column(i), "value": macro("bits.masked", one.word, one.mask)}
        for i, one in enumerate(task.sensitive)
    ]
    base = workspace.table("base")
    written = engine.run(
        "methods/generalization/lattice/create_base",
        base=base,
        rows=coded.rows if tuples is None else tuples.table,
        values=[*keys.packed(), *sensitive],
        count=1 if tuples is None else Identifier("w"),
        count_type=count_type(task.rows),
    )
    if tuples is not None:
        workspace.drop(tuples.table)
    engine.analyze(base)
    bottom = tuple(0 for _ in keys.dimensions)
    whole = FrequencySet(base, bottom, count_tuples(engine, base, written))
    return FrequencySets(engine, workspace, coded, task, keys, whole, _count_population(engine, workspace, coded, keys))


def _count_population(engine: Engine, workspace: Workspace, coded: CodedTable, keys: Keys) -> Relation | None:
    """Lay out the keys of the population's distinct tuples, where models look at one."""
    if coded.population is None:
        return None
    tuples, population = workspace.table("population_tuples"), workspace.table("population_base")
    words = [{"name": column, "value": column} for column in coded.word_columns]
    engine.run("encoding/create_frequency_set", table=tuples, rows=coded.population, words=words)
    engine.run(
        "methods/generalization/lattice/create_base",
        base=population,
        rows=tuples,
        values=keys.packed(),
        count=Identifier("w"),
        count_type=macro("values.whole_type", False),
    )
    workspace.drop(tuples)
    engine.analyze(population)
    return population


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
        recoded = recode_remainder(
            problem, full_domain(policy), findings.chosen, facts, judges_stars=policy.judges_stars
        )
        return replace(recoded, chart=chart)
    partition = recode_node(problem.sets, findings.chosen)
    if partition.suppressed != findings.suppressed:
        raise VerificationError("The release does not suppress the rows that the search counted. Please report this.")
    return replace(partition, facts=facts, chart=chart)
