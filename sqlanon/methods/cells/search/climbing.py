"""Cell generalization: cells climb their hierarchies, the lightest sets of steps first, until enough rows fit each row.

It is the search of local suppression where a cell has several steps in place of one, to `*`: a step hides one more
digit of the code of a value, and two rows fit where they agree in all digits that both show. Cells that stopped below
`*` fit fewer rows than stars do, so more rows may have to climb: the same policy is searched with stars alone too, and
the result that loses less is taken.
"""

from __future__ import annotations

from sqlanon.algorithms.base import SearchRequest
from sqlanon.encoding.climbs import Climb, climbs_of
from sqlanon.errors import PolicyError
from sqlanon.methods.cells.policy import SingleCells
from sqlanon.methods.cells.release import ClimbedTuples, lose
from sqlanon.methods.cells.search.goals import Weighed
from sqlanon.methods.cells.search.suppressing import CellTask

STAR = 10  # the weight of a star, in which that of a group is measured


def generalize(request: SearchRequest, algorithm: SingleCells) -> ClimbedTuples:
    """Choose the levels that cells climb to; never with a greater loss than that of stars alone.

    Raises PolicyError where hierarchies have too many levels together, and ProtectionError where no release can meet
    the models, or too few rows are equal in columns that stay whole.
    """
    climbs = climbs_of(request.coded.quasi_identifiers, by_level=True)
    if problems := list(algorithm.step_problems({climb.name: len(climb.steps) for climb in climbs})):
        raise PolicyError(problems)
    task = CellTask.of(request, algorithm)
    starred = task.star()
    if all(len(climb.steps) == 1 for climb in climbs):
        return starred
    weighed = tuple(_weigh(request, climb, algorithm.importance.get(climb.name, 1)) for climb in climbs)
    climbed = task.lessen(task.search(weighed, "climbed"), weighed)
    better, worse = starred, climbed
    if lose(request.engine, request.workspace, climbed) <= lose(request.engine, request.workspace, starred):
        better, worse = climbed, starred
    request.workspace.drop(worse.states)
    return better


def _weigh(request: SearchRequest, climb: Climb, importance: int) -> Weighed:
    """Weigh a group by the share of the leaves of the hierarchy that are under it, in the mean over all values."""
    hierarchy = climb.field.coding.hierarchy
    if hierarchy is None or len(climb.steps) == 1:
        return Weighed(climb, (STAR * importance,) * len(climb.steps))
    levels = [step.level for step in climb.steps]
    values, *leaves = request.engine.query_one(
        "methods/cells/measure_levels", hierarchy=hierarchy.covered(request.engine.render), levels=levels
    )
    whole = max(1, int(values) * hierarchy.domain)
    shares = [max(1, (STAR * importance * int(one) + whole // 2) // whole) for one in leaves[:-1]]
    return Weighed(climb, (*shares, STAR * importance))
