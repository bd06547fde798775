"""From the source to noisy counts: all that a differentially private release is drawn by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sqlanon.algorithms.private.accounting import Schedule
from sqlanon.algorithms.private.counting import Places
from sqlanon.algorithms.private.mechanisms import Mechanisms
from sqlanon.algorithms.private.specializing import Histograms, Rounds, Specialization, finest_cut
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.plan.private import PrivatePlan
from sqlanon.releases.counts import Cut, NoisyCounts
from sqlanon.results.private import Choice
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Drawn:
    """The counts of all cells as they were drawn, and the choices by which the cells came about."""

    counts: NoisyCounts
    choices: tuple[Choice, ...]


def draw_counts(
    engine: Engine,
    workspace: Workspace,
    plan: PrivatePlan,
    schedule: Schedule,
    mechanisms: Mechanisms,
    report: Callable[[Rounds], None],
) -> Drawn:
    """Choose the groups, count their cells in the same snapshot, and add noise to every count, of empty cells too.

    Run it in a transaction, after everything in the schedule was charged.
    """
    places = Places.of(engine, workspace, plan)
    cut, choices = _choose(places, plan, schedule, mechanisms, report)
    counted = places.count_cells(cut)
    shown: Cut = cut if plan.target is None else (*cut, plan.target[1].leaves())
    empty = NoisyCounts(plan, shown, ())
    exact = [0] * empty.cells
    for cell, rows in counted.items():
        exact[cell] = rows
    noisy = mechanisms.add_noise(exact, schedule.counts, schedule.contribution)
    return Drawn(NoisyCounts(plan, shown, tuple(noisy)), choices)


def _choose(
    places: Places,
    plan: PrivatePlan,
    schedule: Schedule,
    mechanisms: Mechanisms,
    report: Callable[[Rounds], None],
) -> tuple[Cut, tuple[Choice, ...]]:
    """Choose the groups that attributes are shown by."""
    if not plan.algorithm.chooses:
        return finest_cut(plan), ()
    if not schedule.choices:
        return tuple((domain.root,) for domain in plan.domains.values()), ()
    domains = list(plan.domains.values())
    histograms = Histograms.of(domains, plan.classes, places.count_places())
    search = Specialization(plan, schedule, histograms, mechanisms, report)
    return search.run()


def most_cells(plan: PrivatePlan, schedule: Schedule) -> int:
    """Count the cells that the release has at most: all combinations of places, or what a search is allowed to make."""
    cells = math.prod((domain.size for domain in plan.domains.values()), start=plan.classes)
    if not plan.algorithm.chooses:
        return cells
    return min(cells, plan.algorithm.cells) if schedule.choices else plan.classes


def require_cells(plan: PrivatePlan) -> None:
    """Refuse a table of all values that has too many cells; a search stops before that."""
    cells = math.prod((domain.size for domain in plan.domains.values()), start=plan.classes)
    if not plan.algorithm.chooses and cells > plan.algorithm.cells:
        raise PolicyError(
            f"algorithm.cells: all combinations of the declared values are {cells:,} cells, and at most"
            f" {plan.algorithm.cells:,} are allowed. Declare fewer values, leave columns out or use diffgen."
        )
