"""The lattice as a run's search left it, drawn for the report of the run."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.methods.generalization.explore.exploration import Exploration, ExploredNode
from sqlanon.methods.generalization.explore.frontier import draw_frontier
from sqlanon.methods.generalization.explore.hasse import draw_lattice
from sqlanon.methods.generalization.lattice.record import RecordedChart, lattice_from
from sqlanon.report.pictures import SearchPicture
from sqlanon.results.run_result import LatticeResult, RunResult
from sqlanon.results.search_facts import LatticeFacts

ROWS = 25  # of the minimal generalizations of a large lattice

CAPTION = "Every box is a combination of levels, one for each column; further up is more general."


def draw_search(result: RunResult) -> SearchPicture | None:
    """The lattice, or its minimal generalizations where it is large; None for searches of another kind."""
    recorded, facts = result.lattice, result.algorithm.facts
    if recorded is None or not isinstance(facts, LatticeFacts):
        return None
    standing = recorded.standing
    chart = None if standing is None else RecordedChart(lattice_from(recorded), standing)
    explored = _explored(result, recorded, facts, chart)
    drawn = draw_frontier(explored, "lattice-") if chart is None else draw_lattice(explored, chart, "lattice-")
    return SearchPicture(Markup(drawn), CAPTION)


@dataclass(frozen=True)
class _Recorded(Exploration):
    """A search of which the record counts more than it lists."""

    counts: LatticeResult

    @property
    def satisfying(self) -> int:
        return self.counts.satisfying or 0

    @property
    def minimal_ones(self) -> int:
        return self.counts.minimal or 0


def _explored(
    result: RunResult, recorded: LatticeResult, facts: LatticeFacts, chart: RecordedChart | None
) -> Exploration:
    """The search as drawings take it."""
    lattice = lattice_from(recorded)
    chosen = tuple(facts.levels[name] for name in lattice.names)
    optimum = ExploredNode(chosen, result.release.suppressed, facts.score)
    listed = [ExploredNode(one.levels, one.suppressed) for one in recorded.listed]
    others = sorted((one for one in listed if one.levels != chosen), key=lambda one: one.suppressed or 0)
    return _Recorded(
        source=result.source.table,
        engine=result.engine,
        algorithm=result.algorithm.name,
        quality=facts.quality,
        everything=False,
        rows=result.source.rows,
        budget=recorded.budget,
        lattice=lattice,
        checked=facts.checked,
        anonymous=[] if chart is None else chart.anonymous,
        minimal=[one.levels for one in listed],
        frontier=[optimum, *others][:ROWS],
        complete=recorded.complete,
        optimum=optimum,
        proven=facts.proven,
        bound=facts.bound,
        statements=result.algorithm.statements,
        seconds=result.seconds.search or 0.0,
        warnings=(),
        chart=None,
        counts=recorded,
    )
