"""Exploring a lattice without a release: `sqlanon lattice`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sqlanon.algorithms.search_options import SearchOptions, on_lattice
from sqlanon.encoding.frequency.lattice import Node, preference
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import Cancelled, PolicyError
from sqlanon.methods.generalization.explore.build_problem import OpenProblem, build_problem
from sqlanon.methods.generalization.explore.exploration import Exploration, ExploredNode
from sqlanon.methods.generalization.lattice.classify import classify
from sqlanon.methods.generalization.lattice.node_status import NodeStatusMap
from sqlanon.methods.generalization.lattice.options import LARGEST, full_domain, require_size
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.record import map_statuses
from sqlanon.methods.generalization.lattice.refusal import refusal
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.policy import Policy
from sqlanon.work.journal import Journal, Observer
from sqlanon.work.notebook import follower

SCORED = 100  # minimal generalizations that are scored to be shown


def explore(
    policy: Policy,
    *,
    everything: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    time_limit: float | None = None,
    any_size: bool = False,
) -> Exploration:
    """Find out which generalizations of the policy's source satisfy its models, and publish nothing.

    everything: find all of them, and the best of all; otherwise what the policy's algorithm finds out on its way.
        A policy whose algorithm is not full-domain is explored by `optimal`.
    time_limit: seconds after which the search stops with what it knows.
    any_size: search exhaustively however large the lattice is.

    Raises PolicyError (the policy doesn't fit the table, or the lattice is too large), ProtectionError (no
    generalization satisfies the models; it says how far the nearest is), AccessError, EngineError, Cancelled.
    """
    written, policy = policy.algorithm.name, on_lattice(policy)
    try:
        search_options = SearchOptions(time_limit=time_limit, any_size=any_size)
        if not everything:
            search_options.applied_to(policy)
        journal = Journal(follower(observer))
        # of `--all`, `_search` says the size
        unlimited = replace(search_options, any_size=True) if everything else search_options
        with build_problem(policy, options, unlimited, journal) as opened:
            return _ExplorationRun(opened, everything, search_options, journal).carry_out()
    except PolicyError as error:
        if policy.algorithm.name != written:
            error.add_note(
                f"A lattice is made of hierarchies. The policy's algorithm, {written}, does not search it, "
                f"so {policy.algorithm.name} does here."
            )
        raise
    except KeyboardInterrupt:  # between two statements; during one the engine says so
        raise Cancelled("Interrupted.") from None


class _ExplorationRun:
    """The state that the parts of one exploration share."""

    def __init__(self, opened: OpenProblem, everything: bool, search_options: SearchOptions, journal: Journal) -> None:
        self.opened = opened
        self.policy = opened.plan.policy
        self.everything = everything
        self.search_options = search_options
        self.journal = journal

    def carry_out(self) -> Exploration:
        """Search, and tell what was found."""
        findings, chart = self._search(self.opened.problem)
        return self._exploration(self.opened.problem, findings, chart)

    def _search(self, problem: Problem) -> tuple[Findings, NodeStatusMap | None]:
        if self.everything:
            require_size(problem.lattice, "--all", self.search_options.any_size)
            findings, chart = classify(problem)
            return findings, chart
        findings = solve(problem, self.policy, self.search_options)
        if problem.lattice.size > LARGEST and not self.search_options.any_size:
            return findings, None
        return findings, map_statuses(problem, findings)

    def _exploration(self, problem: Problem, findings: Findings, chart: NodeStatusMap | None) -> Exploration:
        if findings.chosen is None:
            raise refusal(problem, findings)
        algorithm = full_domain(self.policy)
        minimal = findings.minimal if chart is None else chart.minimal
        return Exploration(
            source=self.opened.plan.source_name,
            engine=problem.sets.engine.name,
            algorithm=algorithm.name,
            quality=algorithm.quality,
            everything=self.everything,
            rows=problem.sets.task.rows,
            budget=problem.sets.task.budget,
            lattice=problem.lattice,
            checked=problem.sets.checked,
            anonymous=sorted(findings.anonymous) if chart is None else chart.anonymous,
            minimal=minimal,
            frontier=_frontier(problem, findings, minimal),
            complete=findings.complete or (chart is not None and not chart.open),
            optimum=ExploredNode(findings.chosen, findings.suppressed, findings.score),
            proven=findings.proven,
            bound=findings.bound,
            statements=self.journal.count("search"),
            seconds=time.perf_counter() - self.opened.started,
            warnings=self.opened.plan.warnings,
            chart=chart,
        )


def _frontier(problem: Problem, findings: Findings, minimal: Sequence[Node]) -> list[ExploredNode]:
    """The minimal generalizations, the best first, then those without a score.

    Nothing is checked for the sake of showing it, and of many only those are scored that may be the best.
    """
    known = [(node, findings.verdicts[node].suppressed) for node in minimal if node in findings.verdicts]
    levels = np.array([node for node, _ in known], dtype=np.int64).reshape(len(known), len(problem.lattice.names))
    bounds = problem.quality.bounds(levels, np.array([float(suppressed) for _, suppressed in known]))
    first = [known[place] for place in np.argsort(bounds, kind="stable")]
    scored = [ExploredNode(node, rows, problem.quality.score(node, rows)) for node, rows in first[:SCORED]]
    others = [ExploredNode(node, rows) for node, rows in first[SCORED:]]
    unchecked = [ExploredNode(node) for node in minimal if node not in findings.verdicts]
    return [*sorted(scored, key=lambda one: (one.score, *preference(one.levels))), *others, *unchecked]
