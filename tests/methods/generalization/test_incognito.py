"""Incognito in all variants, bottom-up, Samarati and Datafly against brute force over the whole lattice."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlanon.errors import ProtectionError
from sqlanon.methods.generalization.lattice.frequency.batches import RollUp, count_each
from sqlanon.methods.generalization.lattice.frequency.materialize import CacheCandidate, Cube, FrequencySetCache, Sizes
from sqlanon.methods.generalization.lattice.incognito import IncognitoSearch
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from tests.lattice_support import build_problem, table_of
from tests.oracle.lattice import Case, cases, minimal
from tests.random_cases import for_random, many
from tests.run_support import Database

pytestmark = pytest.mark.either_engine

EXAMPLES = {"duckdb": 3, "postgres": 3}
VARIANTS = ("basic", "super-roots", "cube")
COMPLETE: tuple[dict[str, Any], ...] = (
    *({"name": "incognito", "variant": variant} for variant in VARIANTS),
    {"name": "bottom-up", "rollup": True},
    {"name": "bottom-up", "rollup": False},
)


@st.composite
def limited_cases(draw: st.DrawFn) -> Case:
    """A random case, some attributes of which may not be at every level."""
    case = draw(cases())
    limits = {}
    for name, hierarchy in zip(case.names, case.hierarchies, strict=True):
        if draw(st.integers(0, 3)) == 0:
            low = draw(st.integers(0, hierarchy.height))
            limits[name] = (low, draw(st.integers(low, hierarchy.height)))
    return replace(case, limits=limits)


def found(database: Database, table: str, case: Case, algorithm: dict[str, Any]) -> Findings | None:
    """Solve a case by an algorithm; None where the whole table as one class violates a model."""
    limits = {name: list(limit) for name, limit in case.limits.items()}
    asked = {**algorithm, "quality": "height", "limits": limits}
    policy = database.policy(table, case.attributes, algorithm=asked, **case.policy)
    try:
        with build_problem(policy) as problem:
            return solve(problem, policy, SearchOptions())
    except ProtectionError:
        return None


@for_random(limited_cases(), EXAMPLES)
def test_every_complete_algorithm_finds_what_brute_force_finds(database: Database, case: Case) -> None:
    expected = case.satisfying()
    with table_of(database, case) as table:
        for algorithm in COMPLETE:
            findings = found(database, table, case, algorithm)
            if findings is None:
                assert not expected
                continue
            assert findings.complete, algorithm
            assert findings.anonymous == expected, algorithm
            assert set(findings.minimal) == minimal(expected), algorithm
            assert findings.chosen == min(expected, key=lambda node: (sum(node), node), default=None)
            if findings.chosen is not None:
                assert findings.suppressed == len(case.suppressed_rows(findings.chosen))


@for_random(limited_cases(), EXAMPLES)
def test_incognito_as_published_finds_the_same_with_more_checks(database: Database, case: Case) -> None:
    with table_of(database, case) as table:
        limits = {name: list(limit) for name, limit in case.limits.items()}
        algorithm = {"name": "incognito", "quality": "height", "limits": limits}
        policy = database.policy(table, case.attributes, algorithm=algorithm, **case.policy)
        try:
            for variant in VARIANTS:
                with build_problem(policy) as problem:
                    findings = IncognitoSearch(problem, variant, infers=False).go()
                    assert findings.anonymous == case.satisfying()
        except ProtectionError:
            assert not case.satisfying()


@for_random(limited_cases(), EXAMPLES)
def test_samarati_finds_the_best_of_the_least_height(database: Database, case: Case) -> None:
    expected = case.satisfying()
    with table_of(database, case) as table:
        findings = found(database, table, case, {"name": "samarati"})
    best = min(expected, key=lambda node: (sum(node), node), default=None)
    if findings is None:
        assert not expected
        return
    assert findings.chosen == best
    assert findings.anonymous <= expected
    if best is not None:
        assert {node for node in expected if sum(node) == sum(best)} <= findings.anonymous
        assert findings.proven


@for_random(limited_cases(), EXAMPLES)
def test_datafly_climbs_the_attribute_with_the_most_values_until_it_satisfies(database: Database, case: Case) -> None:
    with table_of(database, case) as table:
        findings = found(database, table, case, {"name": "datafly"})
    if findings is None:
        assert not case.satisfying()
        return
    bottom, top = case.nodes[0], case.nodes[-1]
    node = list(bottom)
    while len(case.suppressed_rows(tuple(node))) > case.budget and tuple(node) != top:
        node[_most_diverse(case, node, top)] += 1
    satisfied = len(case.suppressed_rows(tuple(node))) <= case.budget
    assert findings.chosen == (tuple(node) if satisfied else None)
    assert not findings.proven


def _most_diverse(case: Case, node: list[int], top: tuple[int, ...]) -> int:
    open_ = [place for place, level in enumerate(node) if level < top[place]]

    def values(place: int) -> int:
        return len({case.hierarchies[place].label(row[place], node[place]) for row in case.rows})

    return max(open_, key=lambda place: (values(place), -place))


def test_no_work_tables_but_the_base_are_left_by_a_search(database: Database) -> None:
    rows = [(letter, number % 3, number) for number, letter in enumerate("aabbccddeeff" * 3)]
    letters = {letter: ["low" if letter < "d" else "high", "*"] for letter in "abcdef"}
    attributes = {
        "a": {"role": "quasi-identifier", "hierarchy": {"mapping": letters}},
        "b": {"role": "quasi-identifier", "hierarchy": "suppress"},
        "c": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}},
    }
    table = database.create({"a": "VARCHAR(9)", "b": "INTEGER", "c": "INTEGER"}, rows)
    for algorithm in COMPLETE:
        policy = database.policy(table, attributes, algorithm={**algorithm, "quality": "height"})
        with build_problem(policy) as problem:
            assert problem.sets.marginals  # these stay as long as the base
            before = _work_tables(problem)
            assert solve(problem, policy, SearchOptions()).anonymous
            assert _work_tables(problem) == before


def _work_tables(problem: Problem) -> set[str]:
    return {relation.name for relation in problem.sets.engine.relations()}


PATIENTS = (
    ("1976-01-21", "Male", "53715"),
    ("1986-04-13", "Female", "53715"),
    ("1976-02-28", "Male", "53703"),
    ("1976-01-21", "Male", "53703"),
    ("1986-04-13", "Female", "53706"),
    ("1976-02-28", "Female", "53706"),
)
"""The patients of SIGMOD 2005, figure 1."""


def test_the_paper_s_patients_have_three_minimal_generalizations(database: Database) -> None:
    zipcodes = {zipcode: [zipcode[:4] + "*", "537**"] for zipcode in ("53715", "53703", "53706")}
    attributes = {
        "birthdate": {"role": "quasi-identifier", "hierarchy": "suppress"},
        "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
        "zipcode": {"role": "quasi-identifier", "hierarchy": {"mapping": zipcodes}},
    }
    table = database.create(dict.fromkeys(attributes, "VARCHAR(10)"), PATIENTS)
    for algorithm in COMPLETE:
        policy = database.policy(table, attributes, algorithm={**algorithm, "quality": "height"})
        with build_problem(policy) as problem:
            findings = solve(problem, policy, SearchOptions())
        assert findings.minimal == [(0, 1, 2), (1, 0, 2), (1, 1, 0)]
        assert findings.anonymous == {(0, 1, 2), (1, 0, 2), (1, 1, 0), (1, 1, 1), (1, 1, 2)}


def test_keys_of_more_than_one_word_are_counted_by_all_of_them(database: Database) -> None:
    """Ten attributes of a hundred values: 70 bits. Rows come in pairs but for the last two attributes."""
    names = [f"c{number}" for number in range(10)]
    pairs = [[(pair * factor + factor) % 100 for factor in (1, 3, 7, 9, 11, 13, 17, 19)] for pair in range(150)]
    rows = [(*pairs[row // 2], row % 100, row * 3 % 100) for row in range(300)]
    attributes = {name: {"role": "quasi-identifier", "hierarchy": "suppress"} for name in names}
    table = database.create(dict.fromkeys(names, "INTEGER"), rows)
    expected = {(*rest, 1, 1) for rest in itertools.product((0, 1), repeat=8)}
    anonymous = {node for node in itertools.product((0, 1), repeat=10) if _is_2_anonymous(rows, node)}
    assert expected <= anonymous
    for algorithm in COMPLETE[: many(2)]:
        policy = database.policy(table, attributes, algorithm={**algorithm, "quality": "height"})
        with build_problem(policy) as problem:
            assert problem.sets.keys.words > 1
            findings = solve(problem, policy, SearchOptions())
        assert findings.anonymous == anonymous


def _is_2_anonymous(rows: list[tuple[int, ...]], node: tuple[int, ...]) -> bool:
    shown = Counter(tuple(v for v, level in zip(row, node, strict=True) if not level) for row in rows)
    return min(shown.values()) >= 2


K6 = [{"model": "k-anonymity", "k": 6}]


def test_what_is_kept_stays_within_the_budget_and_changes_nothing(database: Database) -> None:
    rows = [(number % 12, number % 7, number % 5) for number in range(400)]
    attributes = {name: {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}} for name in "abc"}
    table = database.create(dict.fromkeys("abc", "INTEGER"), rows)
    policy = database.policy(table, attributes, algorithm={"name": "bottom-up", "quality": "height"}, privacy=K6)
    found = []
    for budget in (0, 200, 100_000):
        with build_problem(policy) as problem:
            cache, sizes = FrequencySetCache(problem.sets, budget), Sizes(problem.sets)
            made = cache.keep(
                CacheCandidate(RollUp(node, problem.sets.base), 100, sizes.estimate(node))
                for node in problem.lattice.successors(problem.lattice.bottom)
            )
            assert sum(one.tuples for one in made.values()) <= budget
            assert bool(made) == (budget == 100_000)
            cube = Cube(problem.sets, problem.lattice.heights, budget)
            for family in itertools.combinations(range(3), 2):
                source = cube.source(family)
                node = tuple(1 if place in family else problem.lattice.heights[place] for place in range(3))
                (count,) = count_each(problem.sets, [RollUp(node, source)])
                assert count.verdict == problem.sets.check(node)
            found.append(solve(problem, policy, SearchOptions()).anonymous)
    assert found[0] == found[1] == found[2]
