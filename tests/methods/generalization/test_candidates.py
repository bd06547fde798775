"""The candidate graphs in the database against a construction in plain Python, and the paper's own example."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog, RunStart
from sqlanon.encoding.frequency.lattice import Lattice
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.methods.generalization.lattice.incognito import CandidateGraph, CandidateNode, first_graph
from sqlanon.work.workspace import Workspace
from tests.random_cases import many

Key = tuple[tuple[int, int], ...]
"""A candidate, as pairs of an attribute's place and a level."""
Keys = set[Key]
START = RunStart("s", "r", "{}", "test", "none", 1)
EXAMPLES = {"duckdb": 25, "postgres": 10}


@pytest.fixture
def workspace(database_url: str) -> Iterator[Workspace]:
    with (
        connect(database_url) as engine,
        Catalog.open(engine) as catalog,
        Workspace(engine, catalog, catalog.start_run(START)) as space,
    ):
        yield space


def key_of(candidate: CandidateNode) -> Key:
    return tuple(zip(candidate.family, candidate.levels, strict=True))


def joined(survivors: Keys) -> Keys:
    """The join phase: survivors alike but for their last attribute."""
    pairs = itertools.product(survivors, repeat=2)
    return {(*one, other[-1]) for one, other in pairs if one[:-1] == other[:-1] and one[-1][0] < other[-1][0]}


def pruned(candidates: Keys, survivors: Keys) -> Keys:
    """The prune phase: those of which every smaller subset survived."""
    return {key for key in candidates if all(key[:i] + key[i + 1 :] in survivors for i in range(len(key)))}


def edges_of(keys: Keys) -> set[tuple[Key, Key]]:
    """Pairs of a family of which one generalizes the other and nothing lies between them."""

    def above(high: Key, low: Key) -> bool:
        levels = [(a[1], b[1]) for a, b in zip(high, low, strict=True)]
        return high != low and [a[0] for a in high] == [b[0] for b in low] and all(a >= b for a, b in levels)

    pairs = {(low, high) for low, high in itertools.product(keys, repeat=2) if above(high, low)}
    return {(low, high) for low, high in pairs if not any((low, x) in pairs and (x, high) in pairs for x in keys)}


def compare(graph: CandidateGraph, expected: Keys) -> dict[Key, int]:
    """Compare nodes and edges with what they should be; the numbers of the nodes."""
    nodes = {candidate.number: key_of(candidate) for candidate in graph.candidates()}
    assert list(nodes) == list(range(min(nodes, default=0), min(nodes, default=0) + len(nodes)))
    assert set(nodes.values()) == expected
    assert len(nodes) == len(expected)
    assert {(nodes[start], nodes[end]) for start, end in graph.list_edges()} == edges_of(expected)
    return {key: number for number, key in nodes.items()}


def grow(
    engine: Engine, workspace: Workspace, heights: tuple[int, ...], fails: Callable[[Key], bool]
) -> list[tuple[Keys, Keys]]:
    """Walk all iterations on both sides, with some nodes failing; the candidates and survivors of each."""
    lattice = Lattice(tuple(f"q{i}" for i in range(len(heights))), heights, tuple(0 for _ in heights), heights)
    expected = {((place, level),) for place, height in enumerate(heights) for level in range(height + 1)}
    graph, found = first_graph(engine, workspace, lattice), []
    for size in range(1, len(heights) + 1):
        numbers = compare(graph, expected)
        failed = {key for key in expected if fails(key)}
        graph.remove(sorted(numbers[key] for key in failed))
        survivors = expected - failed
        found.append((expected, survivors))
        expected = pruned(joined(survivors), survivors)
        if size < len(heights):
            graph = graph.grown()
    graph.drop()
    return found


def test_nodes_and_edges_are_those_of_a_construction_in_python(workspace: Workspace) -> None:
    engine = workspace._engine

    @settings(max_examples=many(EXAMPLES[engine.name]), deadline=None, suppress_health_check=list(HealthCheck))
    @given(heights=st.lists(st.integers(1, 3), min_size=1, max_size=4), minima=st.data())
    def check(heights: list[int], minima: st.DataObject) -> None:
        """Fails are closed downwards, as a search's are: what fails is below every one of some nodes."""
        tops = [st.integers(0, height) for height in heights]
        satisfying = minima.draw(st.lists(st.tuples(*tops), max_size=4))

        def fails(key: Key) -> bool:
            return not any(all(level >= node[place] for place, level in key) for node in satisfying)

        for candidates, survivors in grow(engine, workspace, tuple(heights), fails):
            assert survivors == {key for key in candidates if not fails(key)}

    check()


def test_the_paper_s_example_of_birthdate_sex_and_zipcode(workspace: Workspace) -> None:
    """SIGMOD 2005, figures 5 to 7, over the patients of figure 1 with k=2: places are birthdate, sex, zipcode."""
    failing: Keys = {
        ((0, 0), (1, 0)),
        ((1, 0), (2, 0)),
        ((1, 0), (2, 1)),
        ((0, 0), (2, 0)),
        ((0, 0), (2, 1)),
    }
    graphs = grow(workspace._engine, workspace, (1, 1, 2), lambda key: key in failing)
    (first, _), (second, survivors), (third, _) = graphs
    assert (len(first), len(second)) == (7, 4 + 6 + 6)
    sex_and_zipcode = {(key[0][1], key[1][1]) for key in survivors if key[0][0] == 1}
    assert sex_and_zipcode == {(1, 0), (1, 1), (1, 2), (0, 2)}
    levels = {tuple(level for _, level in key) for key in third}
    assert levels == {(0, 1, 2), (1, 0, 2), (1, 1, 0), (1, 1, 1), (1, 1, 2)}


def test_growing_a_graph_takes_a_statement_for_each_phase() -> None:
    names: list[str] = []
    with (
        connect("duckdb:///:memory:") as engine,
        Catalog.open(engine) as catalog,
        Workspace(engine, catalog, catalog.start_run(START)) as space,
    ):
        graph = first_graph(engine, space, Lattice(("a", "b"), (1, 2), (0, 0), (1, 2)))
        engine.listener = lambda statement, *_: names.append(statement.name)
        graph.grown()
    made = [name for name in names if name.startswith("methods/generalization/lattice/")]
    assert made == [
        "methods/generalization/lattice/join_candidates",
        "methods/generalization/lattice/prune_candidates",
        "methods/generalization/lattice/create_edges",
    ]
