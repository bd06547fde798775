"""Sizes of noise of uncertain values, and the rows that are expected to fit, by plain loops over sorted values."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from sqlanon.models.randomization.draws import Draws
from sqlanon.models.randomization.spreads import RULES


def neighbourhoods(values: Sequence[int], least: int) -> list[list[int]]:
    """Cut sorted values into neighbourhoods, one value after the other."""
    counts, parts, above = sorted(Counter(values).items()), list[list[int]](), 0
    last = None
    for value, n in counts:
        crossed = last is not None and above // (2 * least) > (above - last) // (2 * least)
        if last is None or crossed or n >= least or last >= least:
            parts.append([])
        parts[-1] += [value] * n
        above, last = above + n, n
    joined: list[list[int]] = []
    waiting: list[int] = []
    for part in parts:
        if len(part) >= least:
            joined.append([*waiting, *part])
            waiting = []
        elif joined:
            joined[-1] += part
        else:
            waiting += part
    return joined


def spreads_of(values: Sequence[int], k: int, error: str) -> dict[int, int]:
    """Choose the spread of each value by the rule's formula, in whole numbers."""
    rule = RULES[error]
    chosen: dict[int, int] = {}
    for part in neighbourhoods(values, rule.least_rows(k)):
        needed = 1
        for value in set(part):
            equal, distances = part.count(value), sum(abs(value - other) for other in part)
            below = 2 * (100_000 * (equal - k) + rule.intercept * (len(part) - equal))
            needed = max(needed, -(-rule.slope * distances // below))
        kept = 1 << max(0, needed.bit_length() - 4)
        chosen |= dict.fromkeys(part, math.ceil(Fraction(needed, kept)) * kept)
    return chosen


def expected_fits(values: Sequence[int], spreads: dict[int, int], error: str) -> dict[int, float]:
    """Add up, for each value, the probabilities by which the rows with its spread fit as well, by masses of draws."""
    counts, fits = Counter(values), dict[int, float]()
    for value in counts:
        others = [(other, n) for other, n in counts.items() if spreads[other] == spreads[value]]
        fits[value] = sum(n * _fit(error, spreads[value], abs(value - other)) for other, n in others)
    return fits


@functools.cache
def draws_of(error: str, spread: int) -> Draws:
    return RULES[error].draws(spread)


@functools.cache
def _masses_from(error: str, spread: int) -> tuple[list[int], list[int]]:
    """The first numbers of the segments of draws, and the masses from each on, 0 at last."""
    segments = draws_of(error, spread).segments
    masses = list(itertools.accumulate((one.mass for one in reversed(segments)), initial=0))
    return [one.first for one in segments], masses[::-1]


def _fit(error: str, spread: int, distance: int) -> float:
    """The probability by which noise leads half of a distance; of uniform noise, by which both values reach as far."""
    if distance == 0:
        return 1.0
    draws = draws_of(error, spread)
    least = distance - draws.greatest if error == "uniform" else -(-distance // 2)
    if least > draws.greatest:
        return 0.0
    firsts, masses = _masses_from(error, spread)
    place = bisect.bisect_right(firsts, least) - 1
    segment = draws.segments[place]
    inside = segment.mass * (segment.first + segment.width - least) / segment.width
    return (masses[place + 1] + inside) / masses[0]
