"""From the source to noisy counts: all that a differentially private release is drawn by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule, schedule_of
from sqlanon.methods.differential_privacy.drawing.counting import CountedCells, Places
from sqlanon.methods.differential_privacy.drawing.marginals import draw_marginals, require_marginals
from sqlanon.methods.differential_privacy.drawing.rounds import Rounds
from sqlanon.methods.differential_privacy.drawing.spanning_tree import draw_tree
from sqlanon.methods.differential_privacy.drawing.specializing import Histograms, Specialization, finest_cut
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.policy import MOST_EMPTY_CELLS, SyntheticRows
from sqlanon.methods.differential_privacy.release import Cut, NoisyCounts, cells_of
from sqlanon.methods.differential_privacy.result import ChosenSplit
from sqlanon.work.workspace import Workspace

_MOST_NOISE_ROWS = 100_000_000


@dataclass(frozen=True)
class DrawnCounts:
    """The counts of all cells as they were drawn, and the choices by which the cells came about.

    pairs: of columns, that were chosen to be counted together; None of an algorithm that chooses none.
    """

    counts: NoisyCounts
    choices: tuple[ChosenSplit, ...] = ()
    pairs: tuple[tuple[str, ...], ...] | None = None


def draw_counts(
    engine: Engine,
    workspace: Workspace,
    plan: PrivatePlan,
    schedule: Schedule,
    mechanisms: Mechanisms,
    report: Callable[[Rounds], None],
) -> DrawnCounts:
    """Choose the groups, count their cells in the same snapshot, and add noise to every count, of empty cells too.

    Of many cells only those whose noisy count reaches a public threshold are released, and drawn.

    Run it in a transaction, after everything in the schedule was charged.
    """
    places = Places.of(engine, workspace, plan, mechanisms.draw_key())
    if isinstance(plan.algorithm, SyntheticRows):
        pairs = None
        if schedule.columns:
            rows, chosen = draw_tree(places, plan, schedule, mechanisms, report)
            pairs = tuple(tuple(plan.shown[column] for column in pair) for pair in chosen)
        else:
            rows = draw_marginals(places, plan, schedule, mechanisms)
        return DrawnCounts(NoisyCounts(plan, _shown(plan, finest_cut(plan)), rows, 1), pairs=pairs)
    cut, choices = _choose(places, plan, schedule, mechanisms, report)
    counted = places.count_cells(cut)
    shown = _shown(plan, cut)
    cells = cells_of(shown)
    threshold = schedule.threshold(plan, cells)
    noisy = noisy_cells(counted, cells, threshold, schedule, mechanisms)
    return DrawnCounts(NoisyCounts(plan, shown, noisy, threshold), choices)


def _shown(plan: PrivatePlan, cut: Cut) -> Cut:
    return cut if plan.target is None else (*cut, plan.target[1].leaves())


def noisy_cells(
    counted: CountedCells, cells: int, threshold: int | None, schedule: Schedule, mechanisms: Mechanisms
) -> list[tuple[int, int]]:
    """Add noise to the counts of all cells, given those that are not 0; with a threshold, keep what reaches it."""
    if threshold is None:
        return _all_cells(counted, cells, schedule, mechanisms)
    return _cells_above(counted, cells, threshold, schedule, mechanisms)


def _all_cells(counted: CountedCells, cells: int, schedule: Schedule, mechanisms: Mechanisms) -> list[tuple[int, int]]:
    """Add noise to the counts of all cells."""
    exact = np.zeros(cells, dtype=np.int64)
    exact[counted.cells] = counted.rows
    return list(enumerate(mechanisms.add_noise_to_many(exact, schedule.counts, schedule.contribution).tolist()))


def _cells_above(
    counted: CountedCells, cells: int, threshold: int, schedule: Schedule, mechanisms: Mechanisms
) -> list[tuple[int, int]]:
    """Draw the cells whose noisy counts are at least a threshold, as if noise had been added to all."""
    occupied, exact = counted.cells, counted.rows
    noisy = mechanisms.add_noise_to_many(exact, schedule.counts, schedule.contribution)
    empty = list(mechanisms.reach(threshold, cells - len(occupied), schedule.counts, schedule.contribution))
    passed = occupied - np.arange(len(occupied))  # empty cells before each occupied one
    ranks, raised = np.array(empty, dtype=np.int64).reshape(-1, 2).transpose()
    places = np.concatenate([occupied[noisy >= threshold], ranks + np.searchsorted(passed, ranks, side="right")])
    counts = np.concatenate([noisy[noisy >= threshold], raised])
    order = np.argsort(places)
    return list(zip(places[order].tolist(), counts[order].tolist(), strict=True))


def _choose(
    places: Places,
    plan: PrivatePlan,
    schedule: Schedule,
    mechanisms: Mechanisms,
    report: Callable[[Rounds], None],
) -> tuple[Cut, tuple[ChosenSplit, ...]]:
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
    """Count the cells that there are at most: all combinations of places, or what a search is allowed to make."""
    cells = _combinations(plan)
    if not plan.algorithm.chooses:
        return cells
    return min(cells, schedule.most_cells(plan)) if schedule.choices else plan.classes


def require_cells(plan: PrivatePlan) -> None:
    """Refuse a table of all values that has too many cells, or too many rows by noise alone; a search stops before."""
    if isinstance(plan.algorithm, SyntheticRows):
        require_marginals(plan)
        return
    schedule = schedule_of(plan)
    _require_few_rows(plan, schedule)
    cells, most = _combinations(plan), schedule.most_cells(plan)
    if plan.algorithm.chooses or cells <= most:
        return
    remedies = ["Declare fewer values, leave columns out or use diffgen"]
    if most < MOST_EMPTY_CELLS:
        remedies += ["say threshold: auto, to release those with large counts alone"]
    raise PolicyError(
        f"algorithm.cells: all combinations of the declared values are {cells:,} cells, and at most {most:,} are"
        f" allowed{'' if plan.algorithm.least_released is None else ' with this threshold'}. {'; or '.join(remedies)}."
    )


def _require_few_rows(plan: PrivatePlan, schedule: Schedule) -> None:
    """Refuse rows of which noise makes too many: of half of the cells, as many as its scale on average."""
    if plan.algorithm.as_ != "rows" or plan.algorithm.least_released is not None:
        return
    cells = plan.classes if plan.algorithm.chooses else _combinations(plan)
    rows = int(cells * schedule.contribution / schedule.counts / 2)
    if rows > _MOST_NOISE_ROWS:
        raise PolicyError(
            f"algorithm.as: noise alone would make some {rows:,} rows, and {_MOST_NOISE_ROWS:,} are the most. Say"
            " as: counts, declare fewer values or ask for a larger epsilon."
        )


def _combinations(plan: PrivatePlan) -> int:
    return math.prod((domain.size for domain in plan.domains.values()), start=plan.classes)
