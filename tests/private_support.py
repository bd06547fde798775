"""Differentially private runs with draws that are known, and a plain-Python DiffGen to hold them against."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.mechanisms.charges import Charge
from sqlanon.methods.differential_privacy.plan import PrivatePlan, resolve_private
from sqlanon.methods.differential_privacy.release import NoisyCounts, load_counts, load_labels
from sqlanon.methods.differential_privacy.result import BudgetState, PrivateResult
from sqlanon.methods.differential_privacy.source import PrivateDraw
from sqlanon.methods.differential_privacy.verify import check_counts, check_drawn
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.sink import Publish
from sqlanon.sql import RedactedValue, Relation, Statement
from sqlanon.work.journal import Observer
from sqlanon.work.session import Session, open_session
from tests.run_support import OPTIONS, Database, PlainWorkspace, quoted

Row = tuple[Any, ...]


def place_of(value: Any, first: str, step: str, steps: int) -> int:
    """The last step that begins at a value or before it; a double, at the double nearest to the begin of the step."""
    if value is None:
        return steps
    starts = [Fraction(first) + number * Fraction(step) for number in range(1, steps)]
    if isinstance(value, int):
        return bisect.bisect_right(starts, value)
    if float(value) != float(value):
        return steps - 1  # not a number is greater than all numbers
    return bisect.bisect_right([float(one) for one in starts], float(value))


DOMAINS = [
    ("INTEGER", -7, 30, 3),
    ("SMALLINT", 0, 5, 1),
    ("BIGINT", -(2**61), 2**61, 2**58),
    ("DECIMAL(12,3)", 0.1, 2.3, 0.1),
    ("DECIMAL(38,2)", -5, 5, 0.5),
    ("NUMERIC(9,0)", 0, 100, 2.5),
    ("DOUBLE PRECISION", 0, 1, 0.1),
    ("DOUBLE PRECISION", -1.1, 1.3, 0.3),
    ("REAL", 0, 1, 0.125),
    ("INTEGER", 0, 10, 2.5),
    ("DOUBLE PRECISION", 0, 5_000_000_000, 100_000_000),
    ("DECIMAL(18,2)", 0.5, 5_000_000_000.5, 100_000_000),
]


def steps_of(first: float, below: float, step: float) -> int:
    """The steps of a domain of numbers."""
    return -(-(Fraction(str(below)) - Fraction(str(first))) // Fraction(str(step)))


def values_near(type_: str, first: float, below: float, step: float) -> list[Any]:
    """Values of a type on the bounds of a domain's steps, beside them, and beyond the domain; and NULL."""
    bounds = [
        Fraction(str(first)) + number * Fraction(str(step)) for number in range(-2, steps_of(first, below, step) + 2)
    ]
    near = sorted({bound + part * Fraction(1, 1000) for bound in bounds for part in (-1000, -1, 0, 1, 1000)})
    if type_ in ("INTEGER", "SMALLINT", "BIGINT"):
        values: list[Any] = sorted({int(one // 1) for one in near})
    elif type_ in ("DOUBLE PRECISION", "REAL"):
        values = [float(one) for one in near] if type_ != "REAL" else [round(float(one) * 1024) / 1024 for one in near]
        values += [float("inf"), float("-inf"), float("nan"), -0.0, 1e300 if type_ != "REAL" else 1e30]
    else:
        quantum = Decimal(1).scaleb(-int(type_.partition(",")[2].rstrip(")")))
        values = [(Decimal(one.numerator) / one.denominator).quantize(quantum) for one in near]
    return [*values, None]


def greatest(scores: Sequence[int]) -> int:
    """Choose the first of the greatest scores."""
    return max(range(len(scores)), key=lambda place: (scores[place], -place))


def no_noise(counts: Sequence[int]) -> list[int]:
    return list(counts)


@dataclass
class Known:
    """Mechanisms whose draws the test decides, and what they were asked."""

    pick: Callable[[Sequence[int]], int] = greatest
    noise: Callable[[Sequence[int]], list[int]] = no_noise
    asked: list[tuple[list[int], Fraction, int, bool]] = field(default_factory=list)
    counted: list[tuple[list[int], Fraction, int]] = field(default_factory=list)
    library: str = "known 1.0"

    def draw_key(self) -> RedactedValue:
        return RedactedValue("known")

    def random_numbers(self) -> np.random.Generator:
        return np.random.default_rng(1)

    def add_noise(self, counts: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[int]:
        self.counted.append((list(counts), epsilon, sensitivity))
        return self.noise(counts)

    def add_noise_to_many(self, counts: Any, epsilon: Fraction, sensitivity: int) -> Any:
        return np.array(self.add_noise(counts.tolist(), epsilon, sensitivity), dtype=np.int64)

    def reach(self, threshold: int, cells: int, epsilon: Fraction, sensitivity: int) -> list[tuple[int, int]]:  # noqa: ARG002
        noisy = self.noise([0] * cells)
        return [(cell, count) for cell, count in enumerate(noisy) if count >= threshold]

    def choose(self, scores: Sequence[int], epsilon: Fraction, sensitivity: int, *, monotone: bool) -> int:
        self.asked.append((list(scores), epsilon, sensitivity, monotone))
        return self.pick(scores)


@dataclass
class Ample:
    """An account that allows everything, and remembers it."""

    charged: list[list[Charge]] = field(default_factory=list)

    def spend(self, session: Session, plan: PrivatePlan, run: str, charges: list[Charge]) -> BudgetState:  # noqa: ARG002
        self.charged.append(charges)
        return BudgetState("test", "100", "0", str(sum((one.epsilon for one in charges), Fraction(0))), "99")


def draw(policy: Policy, mechanisms: Known | None = None, account: Any = None, **more: Any) -> PrivateResult:
    """A run with known draws and an ample account."""
    given = {"options": OPTIONS, "replace": True, **more}
    return run_private(policy, mechanisms=mechanisms or Known(), account=account or Ample(), **given)


def run_private(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    account: Any = None,
    mechanisms: Any = None,
) -> PrivateResult:
    """A private run with draws of `mechanisms`, charged on `account`; by default those of any run."""
    source = PrivateDraw(policy, account, mechanisms)
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        return carry_out(session, policy, source, Publish(replace), observer)


def private_policy(
    database: Database,
    table: str,
    attributes: Mapping[str, Any],
    epsilon: float = 1.0,
    unit: Any = None,
    budget: Any = None,
    **algorithm: Any,
) -> Policy:
    """A policy that asks for differential privacy, by diffgen unless it names another algorithm."""
    privacy: dict[str, Any] = {"model": "differential-privacy", "epsilon": epsilon}
    if unit is not None:
        privacy["unit"] = unit
    algorithm = algorithm if "name" in algorithm else {"name": "diffgen", "specializations": 3} | algorithm
    whole = {"privacy": [privacy], "algorithm": algorithm}
    return database.policy(table, attributes, **whole, **({} if budget is None else {"budget": budget}))


@contextlib.contextmanager
def planned(
    engine: Engine, columns: Mapping[str, str], rows: Sequence[Row], attributes: Mapping[str, Any], **more: Any
) -> Iterator[PrivatePlan]:
    """The plan of a table that is gone afterwards; by `contingency`, unless `algorithm` says otherwise."""
    unit, epsilon = more.pop("unit", "row"), more.pop("epsilon", 1)
    policy = build_policy(
        {
            "source": {"url": "duckdb:///:memory:", "table": "private_t"},
            "release": {"table": "private_r"},
            "attributes": {name: {"role": a} if isinstance(a, str) else a for name, a in attributes.items()},
            "privacy": [{"model": "differential-privacy", "epsilon": epsilon, "unit": unit}],
            "algorithm": {"name": "contingency", **more},
        }
    )
    written = ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns.items())
    engine.execute(Statement("create", f"CREATE TABLE private_t ({written})"))
    try:
        engine.load(Relation("private_t"), list(columns), list(rows))
        yield resolve_private(policy, engine)
    finally:
        engine.execute(Statement("drop", "DROP TABLE private_t"))


def staged_rows(
    engine: Engine,
    released: NoisyCounts,
    drawn: Sequence[tuple[int, int]] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> tuple[list[Row], dict[str, int]]:
    """The rows of a staged release, and the violations that its checks count.

    drawn, labels: that it is held against; its own if not given.
    """

    class Beside(PlainWorkspace):
        def staging(self, release: Relation, session: Engine | None = None) -> Relation:  # noqa: ARG002
            return release.sibling("private_staged")

    workspace, claimed, counted = Beside(engine), Relation("w_claimed"), Relation("w_counted")
    plan, labels = released.plan, labels or released.labels
    with released.stage(engine, workspace, replace=False) as staged:
        load_labels(engine, claimed, list(labels.values()))
        checks = check_counts(engine, claimed, staged.final, plan, released.cells, labels, released.threshold)
        load_counts(engine, counted, released.counts if drawn is None else drawn)
        checks["counts_drawn"] = check_drawn(engine, claimed, staged.final, counted, plan, labels)
        rows = engine.fetch(Statement("read", f"SELECT * FROM {staged.final}"))
        workspace.drop(claimed, counted, staged.final)
    return rows, {name: check.violations for name, check in checks.items()}


@dataclass(frozen=True)
class Column:
    """A column for the oracle: the place of a value, how many places there are, and its groups.

    groups: for categories, nested lists of places; None for numbers, whose last place is NULL.
    """

    place: Callable[[Any], int]
    size: int
    groups: Any = None


Group = tuple[int, ...]  # the places that it holds


def specialize(
    rows: Sequence[Row],
    columns: Sequence[Column],
    classes: int,
    rounds: int,
    most_cells: int,
    pick: Callable[[Sequence[int]], int],
    epsilon: Fraction,
) -> list[list[Group]]:
    """The joint variant by `max`, straight from rows, which end with their class: the groups of each column."""
    cut: list[list[Group]] = [[tuple(range(column.size))] for column in columns]
    for _ in range(rounds):
        candidates: list[tuple[int, Group, list[Group]]] = []
        scores = []
        for number, column in enumerate(columns):
            for group in cut[number]:
                ways = _ways(column, group)
                cells = classes * math.prod(map(len, cut)) // len(cut[number])
                if not ways or cells * (len(cut[number]) - 1 + len(ways[0])) > most_cells:
                    continue
                for parts in ways:
                    candidates.append((number, group, parts))
                    share = epsilon / 2 / rounds
                    weight = 0 if column.groups is not None else math.log(len(ways)) * 1024 / share
                    frequent = sum(_most_frequent(rows, number, column, part) for part in parts)
                    scores.append(1024 * frequent - round(weight))
        if not candidates:
            break
        number, group, parts = candidates[pick(scores)]
        at = cut[number].index(group)
        cut[number][at : at + 1] = parts
    return cut


def specialize_published(
    rows: Sequence[Row],
    columns: Sequence[Column],
    rounds: int,
    pick: Callable[[Sequence[float]], int],
    score: Callable[[Sequence[Row], int, Column, Group, list[Group]], float],
) -> list[list[Group]]:
    """The published variant, straight from rows: a cut of every range as it comes about, then a group each round."""
    cut: list[list[Group]] = [[tuple(range(column.size))] for column in columns]
    chosen: dict[tuple[int, Group], list[Group]] = {}

    def cut_ranges(number: int, groups: Sequence[Group]) -> None:
        for group in groups:
            ways = [] if columns[number].groups is not None else _ways(columns[number], group)
            if ways:
                place = pick([score(rows, number, columns[number], group, parts) for parts in ways])
                chosen[number, group] = ways[place]

    for number, groups in enumerate(cut):
        cut_ranges(number, groups)
    for _ in range(rounds):
        candidates = [
            (number, group, parts)
            for number, column in enumerate(columns)
            for group in cut[number]
            for parts in ([chosen[number, group]] if (number, group) in chosen else _ways(column, group)[:1])
        ]
        if not candidates:
            break
        place = pick([score(rows, number, columns[number], group, parts) for number, group, parts in candidates])
        number, group, parts = candidates[place]
        at = cut[number].index(group)
        cut[number][at : at + 1] = parts
        cut_ranges(number, parts)
    return cut


def frequent_rows(rows: Sequence[Row], number: int, column: Column, group: Group, parts: list[Group]) -> float:  # noqa: ARG001
    """The score `max`, in grains."""
    return 1024 * sum(_most_frequent(rows, number, column, part) for part in parts)


def information_gain(rows: Sequence[Row], number: int, column: Column, group: Group, parts: list[Group]) -> float:
    """The score `information-gain`, in 20 bits behind the point."""

    def entropy(part: Group) -> tuple[int, float]:
        counts = Counter(row[-1] for row in rows if column.place(row[number]) in part)
        total = sum(counts.values())
        return total, -sum(n / total * math.log2(n / total) for n in counts.values())

    total, whole = entropy(group)
    return 2**20 * (whole - sum(n * bits for n, bits in map(entropy, parts)) / max(total, 1))


def _ways(column: Column, group: Group) -> list[list[Group]]:
    """The ways in which a group can be taken apart."""
    if column.groups is None:
        known = [place for place in group if place < column.size - 1]
        rest = [tuple(place for place in group if place == column.size - 1)] if column.size - 1 in group else []
        return [[tuple(known[:at]), tuple(known[at:]), *rest] for at in range(1, len(known))]
    found = _find(column.groups, group)
    return [[tuple(_flat(part)) for part in found]] if isinstance(found, list) else []


def _find(groups: Any, group: Group) -> Any:
    """The nested list that holds just these places, or the place itself."""
    if tuple(_flat(groups)) == group:
        return groups if isinstance(groups, list) else None
    for part in groups if isinstance(groups, list) else []:
        if set(group) <= set(_flat(part)):
            return _find(part, group)
    return None


def _flat(groups: Any) -> list[int]:
    return [place for part in groups for place in _flat(part)] if isinstance(groups, list) else [groups]


def _most_frequent(rows: Sequence[Row], number: int, column: Column, part: Group) -> int:
    counts: dict[Any, int] = {}
    for row in rows:
        if column.place(row[number]) in part:
            counts[row[-1]] = counts.get(row[-1], 0) + 1
    return max(counts.values(), default=0)


def cells(rows: Sequence[Row], columns: Sequence[Column], classes: Sequence[Any], cut: list[list[Group]]) -> list[int]:
    """The exact count of every cell, in the order of the groups, the class last."""
    return [
        sum(row[-1] == one and _is_in(row, columns, groups) for row in rows)
        for groups in itertools.product(*cut)
        for one in classes
    ]


def _is_in(row: Row, columns: Sequence[Column], groups: Sequence[Group]) -> bool:
    return all(column.place(row[n]) in groups[n] for n, column in enumerate(columns))
