"""Choice of the nodes that a search checks next, against brute force over small lattices; no database."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon.encoding.frequency.lattice import is_above, preference
from sqlanon.methods.generalization.lattice import grid as grids
from sqlanon.methods.generalization.lattice.grid import Flags, LevelGrid, pick
from sqlanon.methods.generalization.lattice.quality.quality import Numbers

Half = tuple[LevelGrid, Flags]


@st.composite
def halves(draw: st.DrawFn) -> Half:
    """A small grid, and which of its nodes are open: at least one."""
    levels = draw(st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4))
    grid = LevelGrid(tuple(tuple(sorted(one)) for one in levels))
    flags = draw(st.lists(st.booleans(), min_size=grid.size, max_size=grid.size).filter(any))
    return grid, np.array(flags)


def below(grid: LevelGrid, opened: Flags, number: int) -> set[int]:
    """The open nodes that a node generalizes."""
    node = grid.node(number)
    return {int(other) for other in np.flatnonzero(opened) if is_above(node, grid.node(int(other)))}


def bounds_of(grid: LevelGrid) -> Numbers:
    """Bounds that differ, and rise with the levels."""
    return np.array(
        [math.fsum((place + 1.1) * level for place, level in enumerate(grid.node(n))) for n in grid.numbers]
    )


@given(halves())
def test_nodes_are_numbered_in_lexicographic_order(half: Half) -> None:
    grid, _ = half
    nodes = list(itertools.product(*grid.levels))
    assert [grid.node(number) for number in range(grid.size)] == nodes
    assert list(map(tuple, grid.nodes(grid.numbers).tolist())) == nodes
    assert sorted(nodes, key=preference) == [nodes[number] for number in np.argsort(grid.preference)]


@given(halves())
def test_counts_below_are_those_of_brute_force(half: Half) -> None:
    grid, opened = half
    numbers = np.flatnonzero(opened)
    counts = grid.count_below(opened).at(grid.places(numbers))
    assert counts.tolist() == [len(below(grid, opened, int(number))) for number in numbers]


@given(halves(), st.booleans(), st.integers(1, 5))
def test_the_first_pick_rules_out_the_most_whichever_way_it_turns_out(half: Half, bounded: bool, most: int) -> None:
    grid, opened = half
    bounds = bounds_of(grid)
    numbers = [int(number) for number in np.flatnonzero(opened)]

    def gain(number: int) -> int:
        above = sum(bounds[other] >= bounds[number] for other in numbers)
        return min(len(below(grid, opened, number)), above if bounded else len(numbers))

    picked = pick(grid, opened, bounds if bounded else None, most)
    assert picked[0] == max(numbers, key=gain)  # the first of equal ones
    assert 1 <= len(picked) <= most
    assert len(set(picked)) == len(picked)
    assert opened[picked].all()


@given(halves(), st.integers(2, 5))
def test_no_pick_is_below_another(half: Half, most: int) -> None:
    grid, opened = half
    picked = pick(grid, opened, bounds_of(grid), most)
    for place, number in enumerate(picked):
        assert not any(number in below(grid, opened, other) for other in picked[:place])


def test_of_very_many_open_nodes_an_even_part_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "COMPARED", 10)
    grid = LevelGrid((tuple(range(10)), tuple(range(10))))
    opened = np.ones(grid.size, np.bool_)
    picked = pick(grid, opened, bounds_of(grid), 8)
    assert opened[picked].all()
    assert len(picked) == len(set(picked)) <= 8
