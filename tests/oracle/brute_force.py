"""The definitions in plain Python, slow and exact, to hold the generated SQL against.

Rows are tuples; a class or a table is given as the list of its sensitive values, one a row. None is a value, but for
l-diversity only with `counts_null`: without it, a None has whatever value makes its class the least diverse.
Counts and distances are fractions, so only logarithms are rounded.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]


def classes(rows: Sequence[Row], quasi_identifiers: Sequence[int]) -> dict[Row, list[Row]]:
    """The equivalence classes: rows by their values in the columns `quasi_identifiers`."""
    found: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[i] for i in quasi_identifiers)].append(row)
    return dict(found)


def distribution(values: Sequence[Hashable]) -> dict[Hashable, Fraction]:
    """Each value's share."""
    return {value: Fraction(n, len(values)) for value, n in Counter(values).items()}


def completed(values: Sequence[Hashable]) -> Sequence[Hashable]:
    """The values, each None being the most frequent of the others, if there are any."""
    known = Counter(value for value in values if value is not None)
    (most, _), *_ = known.most_common(1) or [(None, 0)]
    return [most if value is None else value for value in values]


def distinct(values: Sequence[Hashable], *, counts_null: bool = False) -> int:
    """The number of distinct values."""
    return len(set(values) - (set() if counts_null else {None}))


def entropy(values: Sequence[Hashable], *, counts_null: bool = False) -> float:
    """Shannon's entropy in nats."""
    shares = distribution(values if counts_null else completed(values))
    return math.fsum(-float(p) * math.log(p) for p in shares.values())


def recursive_ratio(values: Sequence[Hashable], l: int, *, counts_null: bool = False) -> Fraction | float:  # noqa: E741
    """x1 / (x_l + ... + x_m) with x the value counts in descending order; infinite where l > m."""
    counts = sorted(Counter(values if counts_null else completed(values)).values(), reverse=True)
    tail = sum(counts[l - 1 :])
    return Fraction(counts[0], tail) if tail else math.inf


def equal_distance(values: Sequence[Hashable], table: Sequence[Hashable]) -> Fraction:
    """The variational distance between a class and the table."""
    p, q = distribution(values), distribution(table)
    return sum((abs(p.get(s, Fraction(0)) - q[s]) for s in q), Fraction(0)) / 2


def ordered_distance(values: Sequence[Any], table: Sequence[Any], order: Sequence[Any]) -> Fraction:
    """The earth mover's distance with ground distance |i - j| / (m - 1), `order` being the whole domain."""
    p, q = distribution(values), distribution(table)
    moved, carried = Fraction(0), Fraction(0)
    for s in order:
        carried += p.get(s, Fraction(0)) - q[s]
        moved += abs(carried)
    return moved / max(len(order) - 1, 1)


def hierarchical_distance(
    values: Sequence[Any], table: Sequence[Any], ancestors: Mapping[Any, Sequence[Hashable]]
) -> Fraction:
    """The earth mover's distance with ground distance level(lowest common ancestor) / H.

    `ancestors` gives each value's groups from its parent to the root. Every edge of that tree is taken as 1/(2H)
    long, so two leaves are as far apart as the ground distance says, and what must cross an edge is the difference of
    the shares below it: another way to the same number than the sum over internal nodes that the SQL takes.
    """
    height = max((len(groups) for groups in ancestors.values()), default=0)
    p, q = distribution(values), distribution(table)
    below: dict[Hashable, Fraction] = defaultdict(Fraction)
    for s in q:
        difference = p.get(s, Fraction(0)) - q[s]
        below["leaf", s] += difference
        for level, group in enumerate(ancestors[s][:-1], start=1):
            below[level, group] += difference
    return sum((abs(difference) for difference in below.values()), Fraction(0)) / (2 * height)


def kl_divergence(values: Sequence[Hashable], table: Sequence[Hashable]) -> float:
    """The Kullback-Leibler divergence of a class from the table, in nats."""
    p, q = distribution(values), distribution(table)
    return math.fsum(float(share) * math.log(share / q[s]) for s, share in p.items())


def least_beta(values: Sequence[Hashable], table: Sequence[Hashable], *, form: str) -> float:
    """The least beta of the likeness of a class; infinite where a value gains more than enhanced likeness allows."""
    p, q = distribution(table), distribution(values)
    gains = {value: (share - p[value]) / p[value] for value, share in q.items() if share > p[value]}
    if form == "enhanced" and any(float(gain) > -math.log(p[value]) * (1 + 1e-9) for value, gain in gains.items()):
        return math.inf
    return float(max(gains.values(), default=Fraction(0)))


def disclosed_delta(values: Sequence[Hashable], table: Sequence[Hashable]) -> float:
    """The greatest |log2(q / p)| over the values of the table; infinite where the class lacks one."""
    p, q = distribution(table), distribution(values)
    if p.keys() != q.keys():
        return math.inf
    return max(abs(math.log2(q[value] / p[value])) for value in p)


def greatest_share(
    values: Sequence[Hashable], k: int, named: Sequence[Hashable] | None = None, *, counts_null: bool = False
) -> Fraction | float:
    """The greatest share that a value, or a named one, can have, whatever its Nones are; infinite below k rows."""
    if len(values) < k:
        return math.inf
    bounded = {value for value in values if value is not None or counts_null} if named is None else set(named)
    known = Counter(values)
    most = max((known[value] for value in bounded), default=0)
    return Fraction(most + (0 if counts_null else known[None]), len(values))


def variance(values: Sequence[float | None]) -> Fraction:
    """The population variance of the values that are known; 0 where none is."""
    known = [Fraction(value) for value in values if value is not None]
    if not known:
        return Fraction(0)
    mean = sum(known, Fraction(0)) / len(known)
    return sum(((value - mean) ** 2 for value in known), Fraction(0)) / len(known)


def threshold_splits(values: Sequence[Any], order: Callable[[Any], Any]) -> list[Callable[[Any], bool]]:
    """Every way to cut a leaf in two on an ordered attribute: for each but the greatest value, "at or below it"."""
    distinct_values = sorted({order(value) for value in values})
    return [lambda value, cut=cut: order(value) <= cut for cut in distinct_values[:-1]]


def allowable_splits(
    leaf: Sequence[Row],
    orders: Mapping[int, Callable[[Any], Any]],
    children: Mapping[int, Callable[[Sequence[Any]], list[Callable[[Any], bool]]]],
    allowed: Callable[[Sequence[Row]], bool],
) -> list[int]:
    """The attributes on which `leaf` could still be split into `allowed` parts; none in a minimal partition.

    `orders` names the attributes cut at a threshold, by the order of their values; `children` those cut by a
    hierarchy: from the leaf's values to a test for each child of their lowest common ancestor.
    """
    found = []
    for attribute, order in orders.items():
        values = [row[attribute] for row in leaf]
        for below in threshold_splits(values, order):
            parts = [row for row in leaf if below(row[attribute])], [row for row in leaf if not below(row[attribute])]
            if all(allowed(part) for part in parts):
                found.append(attribute)
                break
    for attribute, tests_of in children.items():
        tests = tests_of([row[attribute] for row in leaf])
        pieces = [[row for row in leaf if test(row[attribute])] for test in tests]
        filled = [piece for piece in pieces if piece]
        if len(filled) > 1 and all(allowed(piece) for piece in filled):
            found.append(attribute)
    return found


def ncp_interval(low: float, high: float, domain_low: float, domain_high: float) -> Fraction:
    """The normalized certainty penalty of a numeric region: its width as a part of the domain's."""
    width = Fraction(domain_high) - Fraction(domain_low)
    return (Fraction(high) - Fraction(low)) / width if width else Fraction(0)


def ncp_set(values: int, domain: int) -> Fraction:
    """The normalized certainty penalty of a region of `values` values out of `domain`; 0 for a single one."""
    return Fraction(values, domain) if values > 1 else Fraction(0)


def gcp(penalties: Sequence[Sequence[Fraction]]) -> Fraction:
    """The global certainty penalty: the mean penalty over all cells, one inner sequence a row."""
    cells = [penalty for row in penalties for penalty in row]
    return sum(cells, Fraction(0)) / len(cells) if cells else Fraction(0)


def transport_distance(
    part: Sequence[Any], table: Sequence[Any], costs: Mapping[tuple[Any, Any], Fraction]
) -> Fraction:
    """The earth mover's distance of a class from the table."""
    supply = {value: Fraction(n, len(part)) for value, n in Counter(part).items()}
    return transported(supply, {value: Fraction(n, len(table)) for value, n in Counter(table).items()}, costs)


def transported(
    supply: Mapping[Any, Fraction], demand: Mapping[Any, Fraction], costs: Mapping[tuple[Any, Any], Fraction]
) -> Fraction:
    """The least cost of a transport: shipments along shortest ways of what is left, each exactly (Bellman-Ford)."""
    left, lacking = dict(supply), dict(demand)
    shipped: dict[tuple[Any, Any], Fraction] = {}
    total = Fraction(0)
    while any(left.values()):
        reached: dict[tuple[str, Any], tuple[Fraction, list[tuple[Any, Any]]]] = {
            ("from", one): (Fraction(0), []) for one, share in left.items() if share
        }
        for _ in range(2 * (len(left) + len(lacking))):
            for one, other in itertools.product(left, lacking):
                if ("from", one) in reached:
                    cost, way = reached["from", one]
                    there = cost + costs[one, other]
                    if ("to", other) not in reached or there < reached["to", other][0]:
                        reached["to", other] = there, [*way, (one, other)]
                if ("to", other) in reached and shipped.get((one, other), 0):
                    cost, way = reached["to", other]
                    back = cost - costs[one, other]
                    if ("from", one) not in reached or back < reached["from", one][0]:
                        reached["from", one] = back, [*way, (one, other)]
        end = min((other for other in lacking if lacking[other]), key=lambda other: reached["to", other][0])
        cost, way = reached["to", end]
        share = min(left[way[0][0]], lacking[end], *(shipped[step] for step in way[1::2]))
        for number, step in enumerate(way):
            shipped[step] = shipped.get(step, Fraction(0)) + (share if number % 2 == 0 else -share)
        left[way[0][0]] -= share
        lacking[end] -= share
        total += share * cost
    return total
