"""Exploring a lattice without a release: `sqlanon lattice`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlanon.algorithms.search_options import SearchOptions, on_lattice
from sqlanon.encoding.frequency.lattice import Lattice, Node, preference
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import Cancelled, PolicyError
from sqlanon.methods.generalization.explore.build_problem import OpenProblem, build_problem
from sqlanon.methods.generalization.lattice.node_status import NodeStatus, NodeStatusMap, map_statuses
from sqlanon.methods.generalization.lattice.options import LARGEST, full_domain, require_size
from sqlanon.methods.generalization.lattice.problem import Findings, LatticeProgress, Problem, choose
from sqlanon.methods.generalization.lattice.refusal import refusal
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.methods.generalization.lattice.walk import check_nodes
from sqlanon.policy import Policy
from sqlanon.work.journal import Journal, Observer
from sqlanon.work.notebook import follower

TOGETHER = 100  # nodes that are checked between two looks at the clock
SCORED = 100  # minimal generalizations that are scored to be shown


@dataclass(frozen=True)
class ExploredNode:
    """A generalization that satisfies the models: the rows it suppresses, and its score (lower is better).

    Both are None where the search had no need to know them.
    """

    levels: Node
    suppressed: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class Exploration:
    """The state of knowledge about a lattice.

    lattice: attributes, the heights of their hierarchies, and the limits within which was searched.
    everything: whether every generalization was to be found that satisfies the models, by `--all`.
    rows, budget: the rows of the source, and how many of them may be suppressed.
    checked: generalizations that were checked; of the others, what is known was concluded.
    anonymous, minimal: those known to satisfy the models, and those of them that generalize no other.
    frontier: the minimal ones, the best first.
    complete: whether `anonymous` are all there are.
    optimum: what the algorithm would release; with `everything`, the best of all. None if the time was up before.
    proven, bound: whether no generalization that may be chosen has a better score, or the lowest that is possible.
    chart: the standing of every node; None for lattices too large for that.
    """

    source: str
    engine: str
    algorithm: str
    quality: str
    everything: bool
    rows: int
    budget: int
    lattice: Lattice
    checked: int
    anonymous: list[Node]
    minimal: list[Node]
    frontier: list[ExploredNode]
    complete: bool
    optimum: ExploredNode
    proven: bool
    bound: float | None
    statements: int
    seconds: float
    warnings: tuple[str, ...]
    chart: NodeStatusMap | None

    @property
    def satisfying(self) -> int:
        """Number of generalizations known to satisfy the models."""
        return len(self.anonymous)

    @property
    def minimal_ones(self) -> int:
        """Number of satisfying generalizations that generalize no other."""
        return len(self.minimal)

    @property
    def concluded(self) -> int | None:
        """The generalizations whose standing is known without a check; None where nobody counted."""
        return None if self.chart is None else self.lattice.size - self.chart.open - len(self.chart.verdicts)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values; names are those of the documentation."""
        return {
            "source": {"table": self.source, "rows": self.rows},
            "engine": self.engine,
            "algorithm": self.algorithm,
            "quality": self.quality,
            "all": self.everything,
            "budget": self.budget,
            "attributes": list(self.lattice.names),
            "heights": list(self.lattice.heights),
            "limits": [list(pair) for pair in zip(self.lattice.bottom, self.lattice.top, strict=True)],
            "nodes": self.lattice.size,
            "checked": self.checked,
            "concluded": self.concluded,
            "complete": self.complete,
            "anonymous": [list(node) for node in self.anonymous],
            "minimal": [list(node) for node in self.minimal],
            "frontier": [_candidate(one) for one in self.frontier],
            "optimum": _candidate(self.optimum),
            "proven": self.proven,
            "bound": self.bound,
            "statements": self.statements,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }


def _candidate(one: ExploredNode) -> dict[str, Any]:
    return {"levels": list(one.levels), "score": one.score, "suppressed": one.suppressed}


def classify(problem: Problem) -> tuple[Findings, NodeStatusMap]:
    """Find out of every generalization whether it satisfies the models, until the deadline; and the best that does.

    Where the task is predictive, each check is of the node that settles most whatever it says. Elsewhere nodes are
    checked from the most general down, which leaves out just those that a node above rules out.
    """
    chart = NodeStatusMap(problem.lattice, problem.sets)
    for nodes in _halving(chart) if problem.sets.task.predictive else _descending(chart):
        if problem.is_late:
            break
        for node, verdict in _verdicts(problem, nodes).items():
            chart.learn(node, verdict)
        problem.report(LatticeProgress(problem.sets.checked, chart.open))
    findings = Findings(chart.verdicts, set(chart.anonymous), complete=not chart.open)
    _choose(problem, findings, chart)
    return findings, chart


def _verdicts(problem: Problem, nodes: list[Node]) -> dict[Node, Verdict]:
    if len(nodes) == 1:
        return {nodes[0]: problem.sets.check(nodes[0])}
    checked = Findings()
    check_nodes(problem, checked, nodes)
    return checked.verdicts


def _halving(chart: NodeStatusMap) -> Iterator[list[Node]]:
    while chart.open:
        yield [chart.halving()]


def _descending(chart: NodeStatusMap) -> Iterator[list[Node]]:
    """The open nodes of one height say nothing of each other, so that many are checked at once."""
    lattice = chart.lattice
    for height in range(sum(lattice.top), sum(lattice.bottom) - 1, -1):
        nodes = (node for node in lattice.at_height(height) if chart.of(node) is NodeStatus.OPEN)
        while part := list(itertools.islice(nodes, TOGETHER)):
            yield part


def _choose(problem: Problem, findings: Findings, chart: NodeStatusMap) -> None:
    """The best of the anonymous, in the order of the lowest scores they may have; those that can't win are passed."""
    nodes = sorted(findings.anonymous)
    if not nodes:
        findings.proven = findings.complete
        return
    levels = np.array(nodes, dtype=np.int64)
    floors = chart.floors[tuple((levels - np.array(problem.lattice.bottom)).T)].astype(np.float64)
    bounds = problem.quality.bounds(levels, floors)
    for place in np.argsort(bounds, kind="stable"):
        bound, best = float(bounds[place]), findings.score
        if best is not None and bound > best and not np.isclose(bound, best, rtol=1e-9, atol=1e-12):
            break
        if problem.is_late and best is not None:
            findings.proven, findings.bound = False, bound
            break
        choose(problem, findings, [nodes[place]])
    if not findings.complete:
        findings.proven, findings.bound = False, None


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
            findings, chart = _search(opened, everything, search_options)
            return _tell(opened, everything, findings, chart, journal)
    except PolicyError as error:
        if policy.algorithm.name != written:
            error.add_note(
                f"A lattice is made of hierarchies. The policy's algorithm, {written}, does not search it, "
                f"so {policy.algorithm.name} does here."
            )
        raise
    except KeyboardInterrupt:  # between two statements; during one the engine says so
        raise Cancelled("Interrupted.") from None


def _search(
    opened: OpenProblem, everything: bool, search_options: SearchOptions
) -> tuple[Findings, NodeStatusMap | None]:
    problem = opened.problem
    if everything:
        require_size(problem.lattice, "--all", search_options.any_size)
        return classify(problem)
    findings = solve(problem, opened.plan.policy, search_options)
    if problem.lattice.size > LARGEST and not search_options.any_size:
        return findings, None
    return findings, map_statuses(problem, findings)


def _tell(
    opened: OpenProblem, everything: bool, findings: Findings, chart: NodeStatusMap | None, journal: Journal
) -> Exploration:
    problem = opened.problem
    if findings.chosen is None:
        raise refusal(problem, findings)
    algorithm = full_domain(opened.plan.policy)
    minimal = findings.minimal if chart is None else chart.minimal
    return Exploration(
        source=opened.plan.source_name,
        engine=problem.sets.engine.name,
        algorithm=algorithm.name,
        quality=algorithm.quality,
        everything=everything,
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
        statements=journal.count("search"),
        seconds=time.perf_counter() - opened.started,
        warnings=opened.plan.warnings,
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
