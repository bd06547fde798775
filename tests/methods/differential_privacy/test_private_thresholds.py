"""Releases of the cells above a threshold alone: exact draws, the same distribution as of all cells, checks, bounds."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.mechanisms import exact_draws
from sqlanon.mechanisms.exact_draws import Chance, Geometric, Interval, Noise, reaching
from sqlanon.mechanisms.mechanisms import OpenDP
from sqlanon.methods.differential_privacy.drawing import drawing
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule, schedule_of
from sqlanon.methods.differential_privacy.drawing.counting import CountedCells
from sqlanon.methods.differential_privacy.release import NoisyCounts
from tests.private_support import Known, planned, staged_rows
from tests.run_support import PlainWorkspace

COLUMNS = {"age": "INTEGER NOT NULL", "job": "VARCHAR NOT NULL"}
ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "domain": {"from": 0, "below": 40}},
    "job": {"role": "quasi-identifier", "values": ["clerk", "smith"]},
}
ONE = Schedule(0, Fraction(0), Fraction(1), 1)


def fits(counts: Mapping[Any, int], expected: Mapping[Any, float], samples: int) -> bool:
    """Chi-square: whether counts are as probabilities say, but for chances of one in a million; rare ones together."""
    often = {value: chance for value, chance in expected.items() if chance * samples >= 10}
    seen = [counts.get(value, 0) for value in often]
    seen.append(samples - sum(seen))
    chances = [*often.values(), 1 - sum(often.values())]
    statistic = sum((n - samples * p) ** 2 / (samples * p) for n, p in zip(seen, chances, strict=True) if p > 1e-9)
    return statistic < len(often) + 6 * math.sqrt(2 * len(often)) + 10


def noise_of(value: int, scale: float = 1) -> float:
    decay = math.exp(-1 / scale)
    return (1 - decay) / (1 + decay) * decay ** abs(value)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(7), Fraction(10**12, 7)])
def test_bounds_of_probabilities_hold_them(x: Fraction) -> None:
    coarse, fine = (Interval.exponential(x, digits) for digits in (20, 60))
    for one, other in ((coarse, fine), (coarse.square, fine.square), (coarse.complement, fine.complement)):
        assert one.low <= other.low <= other.high <= one.high
        low, high = other.scaled(64)
        assert 0 <= low <= high <= 2**64
        assert high - low <= 1
    assert float(fine.low) == pytest.approx(math.exp(-x))


def test_bounds_are_rounded_outward() -> None:
    """Of few digits, so that each is rounded; held against exact fractions."""
    for number in range(60):
        coarse, fine = (Interval.exponential(Fraction(number, 7), digits) for digits in (4, 30))
        assert coarse.low <= fine.low <= fine.high <= coarse.high
    numbers = [
        Interval(Decimal(low), Decimal(high), 3) for low, high in itertools.pairwise(("0.117", "0.233", "0.941"))
    ]
    for one, other in itertools.product(numbers, repeat=2):
        low, high, least, most = map(Fraction, (one.low, one.high, other.low, other.high))
        for made, exact in (
            (one.square, (low**2, high**2)),
            (one.complement.square, ((1 - high) ** 2, (1 - low) ** 2)),
            (Interval(one.low, one.high, 2).complement, (1 - high, 1 - low)),
            (one.plus_one, (1 + low, 1 + high)),
            (one / other, (low / most, high / least)),
        ):
            assert exact[0] * Fraction(97, 100) <= made.low <= exact[0] < exact[1] <= made.high
            assert made.high <= exact[1] * Fraction(103, 100)
        below, above = one.scaled(5)
        assert below <= low * 32 < below + 1
        assert above - 1 < high * 32 <= above


def test_bits_that_do_not_decide_are_followed_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Chance(functools.partial(Interval.exponential, Fraction(1)), 0, is_digit=False)
    monkeypatch.setattr(chance, "_bounds", (0, 2**64))  # nothing is decided by the first word
    happened = chance.draw(1000)
    assert fits(Counter(happened.tolist()), {True: math.exp(-1), False: 1 - math.exp(-1)}, 1000)


def test_a_word_between_the_bounds_is_decided_by_what_the_probability_has_behind_it() -> None:
    chance = Chance(functools.partial(Interval.exponential, Fraction(1)), 0, is_digit=False)
    word, above = chance._bounds
    assert above == word + 1
    rest = float(Fraction(Interval.exponential(Fraction(1), 60).low) * 2**64 - word)
    happened = Counter(chance._decide(word, 64) for _ in range(1000))
    assert 0.1 < rest < 0.9
    assert fits(happened, {True: rest, False: 1 - rest}, 1000)


@pytest.mark.parametrize(("scale", "threshold"), [(Fraction(1), 1), (Fraction(5, 2), 4), (Fraction(1, 9), 1)])
def test_noise_above_a_threshold_is_that_of_its_distribution(
    monkeypatch: pytest.MonkeyPatch, scale: Fraction, threshold: int
) -> None:
    monkeypatch.setattr(exact_draws, "_BATCH", 7_000)
    cells = 60_000
    drawn = dict(reaching(Noise(scale), threshold, cells))
    assert list(drawn) == sorted(drawn)
    assert all(0 <= cell < cells for cell in drawn)
    expected = {value: noise_of(value, float(scale)) for value in range(threshold, threshold + 60)}
    assert fits(Counter(drawn.values()), expected, cells)
    halves = Counter(cell * 8 // cells for cell in drawn)
    assert fits(halves, dict.fromkeys(range(8), 1 / 8), len(drawn))


@pytest.mark.parametrize("low", [0, 1])
def test_what_is_above_the_digits_is_drawn_too(low: int) -> None:
    """In a release there are so many digits that hardly a number is."""
    drawn, decay = Geometric(Noise(Fraction(3)).decay, low).draw(10_000), math.exp(-1 / 3)
    assert fits(Counter(drawn.tolist()), {value: (1 - decay) * decay**value for value in range(60)}, 10_000)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 2), Fraction(1, 9)])
def test_noise_of_many_counts_is_discrete_laplace(monkeypatch: pytest.MonkeyPatch, scale: Fraction) -> None:
    monkeypatch.setattr(exact_draws, "_BATCH", 7_000)
    samples = 60_000
    counts = OpenDP().add_noise_to_many(np.arange(samples), 1 / scale, 1) - np.arange(samples)
    expected = {value: noise_of(value, float(scale)) for value in range(-90, 91)}
    assert fits(Counter(counts.tolist()), expected, samples)
    neighbours = Counter(zip(counts[::2].tolist(), counts[1::2].tolist(), strict=True))
    pairs = {(one, other): p * q for one, p in expected.items() for other, q in expected.items()}
    assert fits(neighbours, pairs, samples // 2)


def cells_of(counted: Mapping[int, int]) -> CountedCells:
    return CountedCells.of([list(counted.items())])


BLOCK = {1: 2, 3: 1}  # the rows of cells of a block of five


def require_distribution() -> None:
    """Hold what is released of many blocks of five cells against noise of all cells that is left out below 2."""
    blocks, threshold = 6_000, 2
    counted = {5 * block + cell: rows for block in range(blocks) for cell, rows in BLOCK.items()}
    released = dict(drawing._cells_above(cells_of(counted), 5 * blocks, threshold, ONE, OpenDP()))
    assert list(released) == sorted(released)
    shown = Counter(tuple(min(released.get(5 * block + cell, 1), 4) for cell in range(5)) for block in range(blocks))
    chances = [
        {
            1: sum(noise_of(value - BLOCK.get(cell, 0)) for value in range(-60, 2)),
            **{value: noise_of(value - BLOCK.get(cell, 0)) for value in (2, 3)},
            4: sum(noise_of(value - BLOCK.get(cell, 0)) for value in range(4, 60)),
        }
        for cell in range(5)
    ]
    expected = {
        values: math.prod(chances[cell][value] for cell, value in enumerate(values))
        for values in itertools.product(range(1, 5), repeat=5)
    }
    assert sum(expected.values()) == pytest.approx(1)
    assert fits(shown, expected, blocks)


def test_cells_above_a_threshold_are_distributed_as_if_all_were_drawn() -> None:
    require_distribution()


@pytest.mark.parametrize("mutant", ["no empty cells", "the count itself decides", "no conditional noise"])
def test_wrong_distributions_are_found(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    if mutant == "no empty cells":
        monkeypatch.setattr(OpenDP, "reach", lambda *_: [])
    elif mutant == "no conditional noise":
        monkeypatch.setattr(
            OpenDP,
            "reach",
            lambda _, t, cells, *_more: [(cell, t) for cell, _ in reaching(Noise(Fraction(1)), t, cells)],
        )
    else:
        whole = drawing._cells_above

        def decide(counted: CountedCells, *more: Any) -> list[tuple[int, int]]:
            rows = dict(zip(counted.cells.tolist(), counted.rows.tolist(), strict=True))
            return [one for one in whole(counted, *more) if rows.get(one[0], 9) >= 2]

        monkeypatch.setattr(drawing, "_cells_above", decide)
    with pytest.raises(AssertionError):
        require_distribution()


@pytest.mark.parametrize("seed", range(20))
def test_empty_cells_have_their_numbers_among_all(seed: int) -> None:
    draw = random.Random(seed)
    cells = draw.randrange(1, 12)
    counted = {cell: draw.randrange(1, 5) for cell in draw.sample(range(cells), draw.randrange(cells + 1))}
    noise = [draw.randrange(-3, 4) for _ in range(cells)]
    known = Known(noise=lambda counts: [n + z for n, z in zip(counts, noise, strict=False)])
    released = drawing._cells_above(cells_of(counted), cells, 2, ONE, known)
    occupied, empty = iter(noise), iter(noise)
    expected = [(cell, counted[cell] + next(occupied) if cell in counted else next(empty)) for cell in range(cells)]
    assert released == [(cell, count) for cell, count in expected if count >= 2]


def test_released_cells_reach_the_threshold(engines: tuple[Engine, Engine]) -> None:
    """Of the few cells of a billion that are not empty; and checks find what does not belong into the release."""
    rows = [(number % 3, "clerk" if number % 2 else "smith", number % 2) for number in range(60)]
    columns = {**COLUMNS, "wide": "INTEGER NOT NULL", "far": "INTEGER NOT NULL"}
    far = {name: {"role": "quasi-identifier", "domain": {"from": 0, "below": 3300}} for name in ("wide", "far")}
    options = {"name": "contingency", "threshold": "auto"}
    for engine, form in zip(engines, ("counts", "rows"), strict=True):
        placed = [(*row, 7) for row in rows]
        with planned(engine, columns, placed, {**ATTRIBUTES, **far}, **options, **{"as": form}) as plan:
            schedule, workspace = schedule_of(plan), PlainWorkspace(engine)
            drawing.require_cells(plan)
            drawn = drawing.draw_counts(engine, workspace, plan, schedule, OpenDP(), lambda _: None).counts
            workspace.drop(workspace.table("places"))
            assert drawn.cells == 40 * 3 * 3300 * 3300
            assert drawn.threshold == schedule.threshold(plan, drawn.cells) == 21
            kept = NoisyCounts(plan, drawn.cut, [(3, 21), (drawn.cells - 1, 22)], 21)
            shown, violations = staged_rows(engine, kept)
            assert len(shown) == kept.rows == (2 if form == "counts" else 43)
            assert not any(violations.values())
            _, violations = staged_rows(engine, NoisyCounts(plan, drawn.cut, [(3, 20), (9, 21)], 21))
            assert violations["cells_above_threshold"] == 1
            for others in ([(3, 21)], [*kept.counts, (9, 30)]):
                _, violations = staged_rows(engine, kept, others)
                assert violations["counts_drawn"] == 1
            _, violations = staged_rows(engine, kept, labels={**kept.labels, "job": ("judge", "priest", "NULL")})
            assert violations["cells_public"] >= 1


def test_more_cells_than_a_threshold_allows_are_refused(engines: tuple[Engine, Engine]) -> None:
    wide = {"role": "quasi-identifier", "domain": {"from": 0, "below": 100_000}}
    columns = dict.fromkeys("abc", "INTEGER NOT NULL")
    for size, algorithm, message in (
        (2, {}, "10,000,000,000 cells, and at most 100,000 are allowed.*threshold: auto"),
        (2, {"threshold": 2}, "at most .* are allowed with this threshold"),
        (3, {"threshold": "auto"}, "at most 1,000,000,000,000 are allowed with this threshold"),
    ):
        chosen = dict(itertools.islice(columns.items(), size))
        with (
            planned(engines[0], chosen, [], dict.fromkeys(chosen, wide), name="contingency", **algorithm) as plan,
            pytest.raises(PolicyError, match=message),
        ):
            drawing.require_cells(plan)
    with planned(engines[0], {"a": columns["a"]}, [], {"a": wide}, name="diffgen", threshold=30) as plan:
        schedule = schedule_of(plan)
        most = schedule.most_cells(plan)
        noise = Noise(schedule.contribution / schedule.counts)
        assert float(noise.reach(30, 30).high) * most == pytest.approx(plan.algorithm.cells, rel=1e-6)


def test_few_cells_are_released_by_noise_alone() -> None:
    drawn = [len(list(reaching(Noise(Fraction(2)), 40, 10**9))) for _ in range(50)]  # 1.3 on average
    assert 20 < sum(drawn) < 120
