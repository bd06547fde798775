"""The transport problem: how cheaply a distribution is moved onto another one.

The distributions are counts in places, of n and of N rows; with costs C in whole units the problem is to ship n * N
parcels at the least total, which is a whole number too. A linear program (HiGHS by scipy) proposes a plan and prices;
whole numbers complete and prove them: a plan of whole parcels and prices, a lower bound by duality, that come to the
same. So nothing depends on how the solver rounds, which for large tables is by more than a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlanon.errors import SqlanonError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Counts = Mapping[int, int]
_TOGETHER = 16  # problems in one linear program: more take longer than one after the other


@dataclass(frozen=True)
class TransportProblem:
    """Counts in a class, and counts in the table, by places."""

    supply: Counts
    demand: Counts

    @property
    def parcels(self) -> int:
        """The parcels that go from the class to the table."""
        return sum(self.supply.values()) * sum(self.demand.values())


def require_solver() -> None:
    """Raise SqlanonError if scipy is not there."""
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        raise SqlanonError("t-closeness with costs out of a file needs scipy: pip install 'sqlanon[costs]'.") from None


def least_costs(units: Sequence[Sequence[int]], problems: Sequence[TransportProblem]) -> list[int]:
    """Find the least total of each problem, in units of cost times rows of the class times rows of the table.

    Raises SqlanonError where the solver gives up.
    """
    totals: list[int] = []
    for first in range(0, len(problems), _TOGETHER):
        totals += _solve(units, problems[first : first + _TOGETHER])
    return totals


def _solve(units: Sequence[Sequence[int]], problems: Sequence[TransportProblem]) -> list[int]:
    """Solve some problems as one linear program of as many blocks."""
    costs = [[[units[one][other] for other in problem.demand] for one in problem.supply] for problem in problems]
    proposals = _propose(costs, problems)
    return [
        _completed(problem, cost, *proposed) for problem, cost, proposed in zip(problems, costs, proposals, strict=True)
    ]


def _propose(costs: Sequence[list[list[int]]], problems: Sequence[TransportProblem]) -> Iterator[tuple[Any, Any]]:
    """The plan of each problem, in shares, and the prices of its places, in units."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    rows, columns, right, corners = [], [], [], []
    row = column = 0
    for cost, problem in zip(costs, problems, strict=True):
        height, width = len(cost), len(cost[0])
        variables = column + np.arange(height * width)
        rows += [row + np.repeat(np.arange(height), width), row + height + np.tile(np.arange(width), height)]
        columns += [variables, variables]
        right += [*_shares(problem.supply), *_shares(problem.demand)]
        corners.append((row, column))
        row, column = row + height + width, column + height * width
    places = np.concatenate(rows), np.concatenate(columns)
    equal = csr_array((np.ones(2 * column), places), shape=(row, column))
    flat = [unit for cost in costs for row_of_costs in cost for unit in row_of_costs]
    scale = max(1, *flat)
    objective = np.array(flat, dtype=np.float64) / scale
    answer = linprog(objective, A_eq=equal, b_eq=right, method="highs-ds")
    if answer.status != 0:
        raise SqlanonError(f"The solver gave up on a transport problem of t-closeness: {answer.message}")
    for cost, (row, column) in zip(costs, corners, strict=True):
        height, width = len(cost), len(cost[0])
        plan = answer.x[column : column + height * width].reshape(height, width)
        yield plan, answer.eqlin.marginals[row : row + height + width] * scale


def _shares(counts: Counts) -> list[float]:
    whole = sum(counts.values())
    return [count / whole for count in counts.values()]


def _completed(problem: TransportProblem, cost: list[list[int]], plan: NDArray[Any], prices: NDArray[Any]) -> int:
    """The least total, by a plan of whole parcels and prices that prove each other, begun from what is proposed.

    Parcels go where the prices of both places add up to the cost, and nowhere do these add up to more: once all parcels
    are shipped so, both come to the same. While some are not, they go along augmenting paths, and where there is none
    prices change by the least that opens another way (the primal-dual method).
    """
    rows, whole = sum(problem.supply.values()), sum(problem.demand.values())
    supply = [count * whole for count in problem.supply.values()]
    demand = [count * rows for count in problem.demand.values()]
    received = [round(price) for price in prices.tolist()[len(supply) :]]
    sent = [min(unit - price for unit, price in zip(row, received, strict=True)) for row in cost]
    shipment = _Shipment(cost, sent, received, list(supply), list(demand))
    shipment.ship([[round(share * rows * whole) for share in row] for row in plan.tolist()])
    while any(shipment.left):
        shipment.improve()
    total: int = sum(a * b for a, b in zip([*sent, *received], [*supply, *demand], strict=True))
    return total


@dataclass
class _Shipment:
    """Parcels on their ways, and the prices of the sending and of the receiving places."""

    cost: list[list[int]]
    sent: list[int]
    received: list[int]
    left: list[int]
    lacking: list[int]

    def __post_init__(self) -> None:
        self.shipped = [[0] * len(self.lacking) for _ in self.left]

    def ship(self, proposed: list[list[int]]) -> None:
        """Ship as many parcels as are proposed, where the prices add up to the cost."""
        for one, row in enumerate(proposed):
            for other, most in enumerate(row):
                if not self._slack(one, other):
                    self._move(one, other, max(0, min(most, self.left[one], self.lacking[other])))

    def improve(self) -> None:
        """Ship parcels along an augmenting path, or open another way where there is none."""
        begin = [one for one, parcels in enumerate(self.left) if parcels]
        before: dict[int, tuple[int, int] | None] = dict.fromkeys(begin)  # the way by which a sending place is reached
        reached: set[int] = set()
        waiting = deque(begin)
        while waiting:
            one = waiting.popleft()
            for other in range(len(self.lacking)):
                if other in reached or self._slack(one, other):
                    continue
                reached.add(other)
                if self.lacking[other]:
                    self._augment(_path(before, one, other))
                    return
                for sender, row in enumerate(self.shipped):
                    if sender not in before and row[other]:
                        before[sender] = (one, other)
                        waiting.append(sender)
        closed = set(range(len(self.lacking))) - reached
        step = min(self._slack(one, other) for one in before for other in closed)
        for one in before:
            self.sent[one] += step
        for other in reached:
            self.received[other] -= step

    def _slack(self, one: int, other: int) -> int:
        return self.cost[one][other] - self.sent[one] - self.received[other]

    def _augment(self, path: list[tuple[int, int]]) -> None:
        """Ship what fits along a path: from each way to the next one, parcels are taken back from a receiving place."""
        taken = [(following[0], way[1]) for way, following in pairwise(path)]
        parcels = min(
            self.left[path[0][0]], self.lacking[path[-1][1]], *(self.shipped[one][other] for one, other in taken)
        )
        for one, other in path:
            self._move(one, other, parcels)
        for one, other in taken:
            self._move(one, other, -parcels)

    def _move(self, one: int, other: int, parcels: int) -> None:
        self.shipped[one][other] += parcels
        self.left[one] -= parcels
        self.lacking[other] -= parcels


def _path(before: Mapping[int, tuple[int, int] | None], one: int, other: int) -> list[tuple[int, int]]:
    """The ways (sending, receiving) that lead to a way."""
    path = [(one, other)]
    while (way := before[path[0][0]]) is not None:
        path.insert(0, way)
    return path
