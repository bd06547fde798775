"""Measuring the whole trade-off of a policy without a release: `sqlanon explore`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlanon.algorithms.search_options import SearchOptions, on_lattice
from sqlanon.encoding.frequency.lattice import Node, preference
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import Cancelled, PolicyError
from sqlanon.methods.generalization.explore.build_problem import OpenProblem, build_problem
from sqlanon.methods.generalization.explore.lattice_candidates import lattice_candidate, source_before
from sqlanon.methods.generalization.explore.level_words import level_words
from sqlanon.methods.generalization.lattice.frequency.measure_each import NodeMeasurer
from sqlanon.methods.generalization.lattice.nearest import nearest_nodes
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.methods.generalization.lattice.progress import LatticeProgress
from sqlanon.methods.generalization.lattice.quality.quality import is_better
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.plan.population_checks import refuse_covering
from sqlanon.policy import Policy, Role
from sqlanon.runs.tradeoffs.sweep_candidates import sweep_tradeoff
from sqlanon.runs.tradeoffs.sweeping import sweep
from sqlanon.runs.tradeoffs.tradeoff import LATTICE, Tradeoff, TradeoffCandidate, TradeoffColumn
from sqlanon.work.journal import Journal, Observer
from sqlanon.work.notebook import follower

MOST_CANDIDATES = 10_000
KS = (2, 5, 10, 20, 50)  # of a policy without hierarchies
_TOGETHER = 500  # generalizations that are measured between two looks at the clock
_SEARCHED = 10_000  # known generalizations up to which the minimal ones are looked for


def explore_tradeoff(
    policy: Policy,
    *,
    candidates: int = MOST_CANDIDATES,
    ks: Sequence[int] = (),
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    time_limit: float | None = None,
) -> Tradeoff:
    """Measure risk and loss of many releases that the policy's source could have, and publish nothing.

    Where every quasi-identifier has a hierarchy, these are the generalizations of its lattice, whatever the algorithm:
    all of them, or of a larger lattice so many `candidates`, nearest to what a search finds. Elsewhere, and where `ks`
    are given, they are what the policy's algorithm finds with each k in place of its own (2, 5, 10, 20, 50).

    time_limit: seconds after which the search of a large lattice stops with what it knows.

    Raises PolicyError (the policy doesn't fit the table, or the lattice is too large to be searched), AccessError,
    EngineError, Cancelled.
    """
    if candidates < 1:
        raise PolicyError("--candidates: at least one is needed to look at.")
    if ks or not _has_lattice(policy):
        if time_limit is not None or candidates != MOST_CANDIDATES:
            raise PolicyError(
                "--time-limit and --candidates are of a lattice; here the policy's algorithm runs with each k: leave"
                " them out."
            )
        return sweep_tradeoff(policy, sweep(policy, ks or KS, options=options, observer=observer))
    if policy.person is not None and policy.stars:
        raise PolicyError(
            "subject: the exploration of a lattice counts rows with stars, and not their persons; leave them out"
            " (suppressed: omit), or explore several k (--k)."
        )
    refuse_covering(policy, "the exploration of a lattice counts the rows of the source alone; see `sqlanon lattice`")
    policy, search_options = on_lattice(policy), SearchOptions(time_limit=time_limit)
    search_options.applied_to(policy)
    journal = Journal(follower(observer))
    try:
        with build_problem(policy, options, search_options, journal) as opened:
            return _LatticeTradeoff(opened, search_options, candidates).measure()
    except KeyboardInterrupt:  # between two statements; during one the engine says so
        raise Cancelled("Interrupted.") from None


def _has_lattice(policy: Policy) -> bool:
    quasi = [one for one in policy.attributes.values() if one.role is Role.QUASI_IDENTIFIER]
    return all(one.hierarchy is not None for one in quasi)


@dataclass(frozen=True)
class _LatticeTradeoff:
    """The measurement of a lattice: what was opened of it, and at most so many candidates to measure."""

    opened: OpenProblem
    search_options: SearchOptions
    most: int

    def measure(self) -> Tradeoff:
        """Measure the candidates, and the source as it is."""
        problem, plan = self.opened.problem, self.opened.plan
        measurer, task = NodeMeasurer(problem.sets, plan.policy.person), problem.sets.task
        candidates = tuple(self._measure(measurer))
        bottom = tuple(0 for _ in problem.lattice.names)
        return Tradeoff(
            source=plan.source_name,
            engine=problem.sets.engine.name,
            algorithm=plan.policy.algorithm.name,
            kind=LATTICE,
            quality=full_domain(plan.policy).quality,
            rows=task.rows,
            budget=task.budget,
            columns=tuple(self._columns()),
            candidates=candidates,
            before=source_before(measurer.measure_each([bottom])[0], task.rows, len(bottom)),
            nodes=problem.lattice.size,
            best=_best(candidates),
            warnings=(*plan.warnings, *_warnings(plan.policy)),
            seconds=time.perf_counter() - self.opened.started,
            unit="rows" if plan.policy.person is None else "persons",
        )

    def _nodes(self) -> list[Node]:
        """The generalizations to measure: all, or those nearest to what a search finds."""
        problem = self.opened.problem
        if problem.lattice.size <= self.most:
            return sorted(problem.lattice.nodes, key=preference)
        findings = solve(problem, self.opened.plan.policy, self.search_options)
        chosen = [] if findings.chosen is None else [findings.chosen]
        minimal = findings.minimal if len(findings.anonymous) <= _SEARCHED else []
        seeds = [*chosen, *sorted(minimal, key=preference)] or [problem.lattice.top]
        return nearest_nodes(problem.lattice, seeds, self.most)

    def _measure(self, measurer: NodeMeasurer) -> Iterator[TradeoffCandidate]:
        problem, nodes = self.opened.problem, self._nodes()
        stars, budget = self.opened.plan.policy.stars, problem.sets.task.budget
        for start in range(0, len(nodes), _TOGETHER):
            part = nodes[start : start + _TOGETHER]
            pairs = list(zip(part, measurer.measure_each(part), strict=True))
            problem.quality.foresee([node for node, one in pairs if one.suppressed_rows <= budget])
            yield from (lattice_candidate(problem, node, one, stars=stars) for node, one in pairs)
            problem.report(LatticeProgress(start + len(part), len(nodes) - start - len(part)))

    def _columns(self) -> Iterator[TradeoffColumn]:
        lattice, attributes = self.opened.problem.lattice, self.opened.plan.policy.attributes
        for dimension, low, high in zip(
            self.opened.problem.sets.keys.dimensions, lattice.bottom, lattice.top, strict=True
        ):
            hierarchy, coding = attributes[dimension.name].hierarchy, dimension.field.coding.hierarchy
            assert hierarchy is not None
            assert coding is not None
            words = level_words(dimension.name, hierarchy, coding.height, dimension.steps)
            yield TradeoffColumn(dimension.name, low, words[low : high + 1])


def _best(candidates: Sequence[TradeoffCandidate]) -> int | None:
    """The place of the candidate with the best score, as a search for the best would choose it."""
    best: int | None = None
    for place, one in enumerate(candidates):
        if one.score is None or one.levels is None:
            continue
        then = None if best is None else candidates[best]
        if then is None or is_better(one.score, one.levels, then.score or 0.0, then.levels or ()):
            best = place
    return best


def _warnings(policy: Policy) -> Iterator[str]:
    if policy.remainder == "recode":
        yield "remainder: recode: figures are of the first pass, before suppressed rows are recoded to higher levels."
