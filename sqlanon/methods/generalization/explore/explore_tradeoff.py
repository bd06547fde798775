"""Measuring the whole trade-off of a policy without a release: `sqlanon explore`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise

from sqlanon.algorithms.search_options import SearchOptions, on_lattice
from sqlanon.encoding.frequency.lattice import Lattice, Node, preference
from sqlanon.encoding.frequency.marginals import Marginal
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import Cancelled, PolicyError
from sqlanon.hierarchies.intervals import Grid, plain
from sqlanon.hierarchies.taxonomy import Line, read_taxonomy
from sqlanon.methods.generalization.explore.build_problem import OpenProblem, build_problem
from sqlanon.methods.generalization.lattice.frequency.measure_each import (
    NodeMeasurer,
    NodeMeasures,
    SizeBin,
    SuppressedCover,
    size_bins,
)
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.methods.generalization.lattice.problem import LatticeProgress, Problem
from sqlanon.methods.generalization.lattice.quality.quality import is_better
from sqlanon.methods.generalization.lattice.search import solve
from sqlanon.plan.population_checks import refuse_covering
from sqlanon.policy import Policy, Role
from sqlanon.policy.attributes import Hierarchy
from sqlanon.runs.tradeoffs.comparing import sweep_tradeoff
from sqlanon.runs.tradeoffs.sweeping import sweep
from sqlanon.runs.tradeoffs.tradeoff import LATTICE, CandidateSizes, Tradeoff, TradeoffCandidate, TradeoffColumn
from sqlanon.support.quantities import quantity
from sqlanon.work.journal import Journal, Observer
from sqlanon.work.notebook import follower

VALUES, ALL = "the values themselves", "*, nothing is shown"
_PERIODS = {
    "day": "2000-01-01",
    "week": "2000-W01",
    "month": "2000-01",
    "quarter": "2000-Q1",
    "year": "2000",
    "decade": "2000s",
}
_LEFT = "abc"  # of a text that is masked
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


def nearest_nodes(lattice: Lattice, seeds: Iterable[Node], most: int) -> list[Node]:
    """At most so many nodes: the seeds in their order, then ring after ring those one level further from any of them.

    The nodes of a ring are in the order of preference, so that the same nodes are taken each time.
    """
    ring = list(dict.fromkeys(seeds))
    chosen = dict.fromkeys(ring[:most])
    while ring and len(chosen) < most:
        around = {near for node in ring for near in (*lattice.successors(node), *lattice.predecessors(node))}
        ring = sorted(around.difference(chosen), key=preference)
        chosen |= dict.fromkeys(ring[: most - len(chosen)])
    return list(chosen)


def level_words(name: str, hierarchy: Hierarchy, height: int, steps: Sequence[int]) -> tuple[str, ...]:
    """Say what each level shows.

    height: of the hierarchy on the table; steps: the level of the hierarchy that each level of the lattice stands for.

    Raises PolicyError for a csv file that can't be read any more.
    """
    has_lines = hierarchy.csv is not None or hierarchy.mapping is not None
    lines = read_taxonomy(hierarchy, None, partial(_error, name)) if has_lines else []
    return tuple(_words(hierarchy, height, step, lines) for step in steps)


def _error(name: str, what: str) -> PolicyError:
    return PolicyError(f"attributes.{name}: {what}")


def _words(hierarchy: Hierarchy, height: int, level: int, lines: Sequence[Line]) -> str:
    if level == 0:
        return VALUES
    if level == height:
        return ALL
    if lines:
        return _labels(lines, level)
    if hierarchy.intervals is not None and level <= len(hierarchy.intervals):
        return f"intervals of width {hierarchy.intervals[level - 1]:g}" + _interval(hierarchy, level)
    if hierarchy.date is not None and level <= len(hierarchy.date):
        period = hierarchy.date[level - 1]
        return f"{period}s, such as {_PERIODS[period]}"
    if hierarchy.mask is not None:
        masked = "*" * level
        side, example = ("first", masked + _LEFT) if hierarchy.mask == "left" else ("last", _LEFT + masked)
        return f"without the {side} {f'{level} characters' if level > 1 else 'character'}, such as {example}"
    return f"groups of level {level}"


def _labels(lines: Sequence[Line], level: int) -> str:
    """The label of a level that stands for most values, and how many labels there are.

    A label of one value is no example: in many files it is the value.
    """
    values = {line.value: line.labels[level - 1] for line in lines}
    (label, most), *others = Counter(values.values()).most_common()
    count = quantity(1 + len(others), "label")
    return f"such as {label} ({count})" if most > 1 else f"{count}, each of one value"


def _interval(hierarchy: Hierarchy, level: int) -> str:
    """The interval that begins at the origin; none where the width is no multiple of the finer ones."""
    grid = Grid.of(hierarchy.intervals or (), hierarchy.origin, 0)
    if grid is None or not grid.is_exact(level):
        return ""
    low, high = (
        plain(Decimal(position).scaleb(-grid.scale)) for position in (grid.origin, grid.origin + grid.widths[level - 1])
    )
    return f", such as [{low}-{high})"


def lattice_candidate(problem: Problem, node: Node, measured: NodeMeasures, *, stars: bool) -> TradeoffCandidate:
    """Make the candidate of a generalization; stars: whether suppressed rows are shown."""
    task, suppressed = problem.sets.task, measured.suppressed_rows
    columns = list(zip(problem.sets.marginals, node, measured.covers, strict=True))
    losses = tuple(round(_column_loss(*column, suppressed, task.rows), 9) for column in columns)
    satisfies = suppressed <= task.budget
    covered = [_covered(*column, suppressed) for column in columns]
    score = problem.quality.score_counted(node, suppressed, covered) if satisfies else None
    return _candidate(measured, task.rows, node, satisfies, suppressed if stars else 0, losses, score)


def source_before(measured: NodeMeasures, rows: int, columns: int) -> TradeoffCandidate:
    """The source as it is, from the measures of its values: nothing is suppressed, and nothing lost."""
    bins: dict[int, SizeBin] = {}
    for one in (*measured.kept, *measured.suppressed):
        same = bins.get(one.low, SizeBin(one.low, 0, 0, one.least, 0))
        bins[one.low] = SizeBin(
            one.low,
            same.classes + one.classes,
            same.rows + one.rows,
            min(same.least, one.least),
            same.members + one.members,
        )
    whole = NodeMeasures(tuple(bins[low] for low in sorted(bins)), (), ())
    return _candidate(whole, rows, tuple([0] * columns), False, 0, tuple([0.0] * columns), None)


def _candidate(
    measured: NodeMeasures,
    rows: int,
    node: Node,
    satisfies: bool,
    starred: int,
    losses: tuple[float, ...],
    score: float | None,
) -> TradeoffCandidate:
    classes = sum(one.classes for one in measured.kept) + (starred > 0)
    shown = sum(one.rows for one in measured.kept) + starred
    members = sum(one.members for one in measured.kept) + starred
    least = min([*(one.least for one in measured.kept), *([starred] if starred else [])], default=0)
    return TradeoffCandidate(
        levels=node,
        satisfies=satisfies,
        suppressed=measured.suppressed_rows,
        rows=shown,
        classes=classes,
        least=least,
        greatest=1 / least if least else 0.0,
        mean=classes / members if members else 0.0,
        loss=round(sum(losses) / len(losses), 9),
        losses=losses,
        score=score,
        sizes=_sizes(measured, size_bins(rows)),
    )


def _column_loss(marginal: Marginal, level: int, cover: SuppressedCover, suppressed: int, rows: int) -> float:
    """The mean share of a column's leaves that its labels cover, 0 for one leaf; suppressed rows count 1 (NCP)."""
    if marginal.domain == 1 or level == 0:
        return suppressed / rows
    if level == marginal.dimension.height:
        return 1.0
    counted = marginal.levels[level]
    leaves = int(counted.leaves[counted.leaves > 1] @ counted.rows[counted.leaves > 1])
    hierarchy = marginal.dimension.field.coding.hierarchy
    assert hierarchy is not None
    return ((leaves - cover.leaves) / hierarchy.domain + suppressed) / rows


def _covered(marginal: Marginal, level: int, cover: SuppressedCover, suppressed: int) -> int:
    """The sum, over the suppressed rows, of the leaves that their group covers."""
    if level == marginal.dimension.height:
        return suppressed * marginal.domain
    return suppressed - cover.rows + cover.leaves


def _sizes(measured: NodeMeasures, bins: Sequence[int]) -> tuple[CandidateSizes, ...]:
    kept, suppressed = ({one.low: one.classes for one in part} for part in (measured.kept, measured.suppressed))
    bounds = [*pairwise(bins), (bins[-1], 2 * max(1, bins[-1] - 1) + 1)]
    return tuple(
        CandidateSizes(low, after - 1, kept.get(low, 0), suppressed.get(low, 0))
        for low, after in bounds
        if low in kept or low in suppressed
    )
