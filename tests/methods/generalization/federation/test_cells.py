"""Cells of all sites against counts by hand: numbers, and sums at more general levels; and shares against their sum."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

from sqlanon.methods.generalization.federation.cells import PublicCells, PublicHierarchy, roll_up
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party

AGES = PublicHierarchy("age", (*((str(age), f"{age // 5}x", "*") for age in range(20)), (None, None, "*")))
CITIES = PublicHierarchy("city", tuple((city, area, "*") for city, area in zip("abcde", "SSNNN", strict=True)))


def test_cells_roll_up_to_what_counting_would_give() -> None:
    """At every generalization, from every one below it."""
    draw = random.Random(1)
    rows = [(draw.choice(AGES.paths), draw.choice(CITIES.paths)) for _ in range(300)]
    nodes = [(age, city) for age in range(3) for city in range(3)]
    for low in nodes:
        base = PublicCells.at((AGES, CITIES), low)
        counts = counted(rows, base)
        for high in (node for node in nodes if node[0] >= low[0] and node[1] >= low[1]):
            cells = PublicCells.at((AGES, CITIES), high)
            assert roll_up((AGES, CITIES), base, counts, cells).tolist() == counted(rows, cells).tolist()


def counted(rows: list[Any], cells: PublicCells) -> Any:
    tally = Counter((age[cells.node[0]], city[cells.node[1]]) for age, city in rows)
    combinations = [(age, city) for age in cells.labels[0] for city in cells.labels[1]]
    assert cells.numbers(combinations) == list(range(cells.size))
    return np.array([tally[one] for one in combinations], np.uint64)


class Parties:
    """Three parties of one plan, connected with nobody."""

    def __init__(self, counts: list[Any]) -> None:
        plan = FederationPlan.model_validate(
            {"sites": {n: {"address": f"h:{7000 + i}", "certificate": n} for i, n in enumerate("abc")}}
        )
        self.parties = [Party.__new__(Party) for _ in counts]
        for place, party in enumerate(self.parties):
            party.plan, party.place = plan, place


def test_what_a_site_sends_is_at_random_and_adds_up() -> None:
    """No share is the counts, two runs share differently, and the sums of all shares are the sum of the counts."""
    counts = [np.array([5, 0, 7], np.uint64), np.array([1, 1, 1], np.uint64), np.array([0, 2, 9], np.uint64)]
    three = Parties(counts)
    shares = [sent_by(party, own) for party, own in zip(three.parties, counts, strict=True)]
    again = sent_by(three.parties[0], counts[0])
    for own, sent in zip(counts, shares, strict=True):
        assert all(not np.array_equal(own, np.frombuffer(share, "<u8")) for share in sent)
        assert np.array_equal(sum_of(sent), own)
    assert set(again).isdisjoint(shares[0])
    partial = [sum_of([sent[place] for sent in shares]).tobytes() for place in range(3)]
    assert sum_of(partial).tolist() == [6, 3, 17]


def sent_by(party: Party, counts: Any) -> list[bytes]:
    """The shares that a party sends first."""
    kept: list[list[bytes]] = []

    def exchange(messages: list[bytes], most: int, doing: str) -> list[bytes]:  # noqa: ARG001
        kept.append(list(messages))
        return [bytes(8 * len(counts))] * 3

    party._exchange = exchange  # type: ignore[method-assign]
    party.add(counts, "")
    return kept[0]


def sum_of(parts: list[bytes]) -> Any:
    return np.sum([np.frombuffer(part, "<u8") for part in parts], axis=0, dtype=np.uint64)
