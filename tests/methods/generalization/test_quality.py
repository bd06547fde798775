"""Quality models against brute force: every score, and every bound, on both engines."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.errors import ProtectionError
from sqlanon.methods.generalization.lattice.optimal import optimal
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.methods.generalization.lattice.quality.qualities import quality_of
from sqlanon.methods.generalization.policy import WEIGHTED, Optimal, Quality
from tests.lattice_support import build_problem
from tests.oracle.lattice import Case, Hierarchy, Node, cases
from tests.oracle.quality import SCORES
from tests.random_cases import many
from tests.run_support import Database, duckdb_url, open_database

pytestmark = pytest.mark.either_engine

EXAMPLES = {"duckdb": 3, "postgres": 3}


@contextlib.contextmanager
def problem_of(database: Database, case: Case, algorithm: dict[str, Any]) -> Iterator[Problem | None]:
    """The problem of a case; None where the whole table can't satisfy the models."""
    table = database.create(case.columns, case.rows)
    policy = database.policy(table, case.attributes, algorithm=algorithm, **case.policy)
    try:
        with build_problem(policy) as problem:
            yield problem
    except ProtectionError:
        yield None
    finally:
        database.sql(f"DROP TABLE {table}")


def satisfying(case: Case) -> dict[Node, int]:
    """The generalizations within the budget, and the rows that they suppress."""
    counts = {node: len(case.suppressed_rows(node)) for node in case.nodes}
    return {node: count for node, count in counts.items() if count <= case.budget}


weights = st.lists(st.sampled_from([0.5, 1, 2]), min_size=3, max_size=3)


def under(problem: Problem, quality: Quality, used: Sequence[float]) -> Problem:
    """The same problem with another quality model: a table is coded once for all of them."""
    given_weights = dict(zip(problem.lattice.names, used, strict=False)) if quality in WEIGHTED else {}
    algorithm = Optimal(name="optimal", quality=quality, weights=given_weights)
    return dataclasses.replace(problem, quality=quality_of(algorithm, problem.sets, problem.lattice))


def some(database: Database) -> settings:
    return settings(
        max_examples=many(EXAMPLES[database.engine]), deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_scores_are_those_of_brute_force_and_bounds_are_below_them(database: Database) -> None:
    compared = []

    def check(case: Case, drawn: list[float]) -> None:
        with problem_of(database, case, {"name": "bottom-up"}) as problem:
            if problem is None:
                assert not case.satisfying()
                return
            for quality in SCORES:
                used = [drawn[place] if quality in WEIGHTED else 1 for place in range(len(case.names))]
                compare(under(problem, quality, used), case, quality, used)
            compared.append(case)

    some(database)(given(cases(), weights)(check))()
    assert compared


def compare(problem: Problem, case: Case, quality: Quality, used: list[float]) -> None:
    counts = satisfying(case)
    expected = {node: SCORES[quality](case, node, used) for node in counts}
    model = problem.quality
    nodes = np.array(case.nodes, np.int64)
    require_sound(problem, nodes, expected, counts)
    for node, count in counts.items():
        assert model.score(node, count) == pytest.approx(expected[node], rel=1e-9, abs=1e-9), (quality, node)
        require_sound(problem, nodes, expected, counts)  # also with what the model learned from the score


def require_sound(problem: Problem, nodes: Any, expected: dict[Node, float], counts: dict[Node, int]) -> None:
    """Bounds never exceed a score, nor fall as more rows are suppressed."""
    before = np.full(len(nodes), -np.inf)
    for suppressed in range(problem.sets.task.budget + 1):
        bounds = problem.quality.bounds(nodes, np.full(len(nodes), float(suppressed)))
        assert (bounds >= before).all()
        before = bounds
        for node, bound in zip(map(tuple, nodes.tolist()), bounds, strict=True):
            if node in expected and counts[node] >= suppressed:
                assert bound <= expected[node] + 1e-12 * max(1, abs(expected[node])), (node, suppressed)


def test_the_optimal_search_finds_the_best(database: Database) -> None:
    """Under every quality model, in any order: what one search left in memory must not mislead the next."""

    def check(case: Case, order: list[Quality]) -> None:
        with problem_of(database, case, {"name": "optimal"}) as problem:
            if problem is None:
                assert not case.satisfying()
                return
            for quality in order:
                algorithm = Optimal(name="optimal", quality=quality)
                require_best(case, quality, optimal(under(problem, quality, [1] * 3), algorithm).chosen)

    some(database)(given(cases(), st.permutations(list(SCORES)))(check))()


def require_best(case: Case, quality: Quality, chosen: Node | None) -> None:
    """The generalization is the best one by brute force; of several, the least by height, then levels."""
    scores = {node: SCORES[quality](case, node, [1] * len(node)) for node in satisfying(case)}
    best = min(scores.values(), default=None)
    assert (chosen is None) == (best is None), quality
    if best is not None:
        tied = [node for node, score in scores.items() if score == pytest.approx(best, rel=1e-11, abs=1e-11)]
        assert chosen == min(tied, key=lambda node: (sum(node), node)), quality


def test_scores_are_the_same_numbers_on_both_engines(tmp_path: Path, postgres_url: str) -> None:
    numbers = random.Random(7)
    trees = (
        Hierarchy({value: (f"g{value in 'ab'}", "*") for value in "abcdef"}),
        Hierarchy(dict.fromkeys("abc", ("*",))),
    )
    rows = [(numbers.choice("abcdef"), numbers.choice(["a", "b", None]), numbers.randint(1, 4)) for _ in range(97)]
    case = Case(trees, tuple(rows), ({"model": "k-anonymity", "k": 5},), suppression=0.3)
    found: dict[str, list[float]] = {}
    for url in (duckdb_url(tmp_path / "t.duckdb"), postgres_url):
        with open_database(url) as database:
            scores = found.setdefault(database.engine, [])
            for quality in SCORES:
                with problem_of(database, case, {"name": "bottom-up", "quality": quality}) as problem:
                    assert problem is not None
                    scores += [problem.quality.score(node, count) for node, count in satisfying(case).items()]
    assert found["duckdb"] == found["postgres"]
