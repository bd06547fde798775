"""Searches held against the oracles, on a case and in a database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sqlanon.encoding.frequency.lattice import is_above
from sqlanon.methods.generalization.explore.explore_lattice import classify
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.policy import Policy
from tests.lattice_support import build_problem, check_node, table_of
from tests.oracle import thresholds
from tests.oracle.lattice import (
    Case,
)
from tests.oracle.quality import SCORES
from tests.run_support import Database


@contextlib.contextmanager
def problem_of(database: Database, case: Case, algorithm: dict[str, Any]) -> Iterator[tuple[Problem, Policy]]:
    """Pose the problem of a case."""
    with table_of(database, case) as table:
        policy = database.policy(table, case.attributes, algorithm={"quality": "height", **algorithm}, **case.policy)
        with build_problem(policy) as problem:
            yield problem, policy


def check_all(database: Database, case: Case) -> None:
    """Hold the bottom-up search and Incognito against all generalizations that satisfy the models."""
    for algorithm in ({"name": "bottom-up"}, {"name": "incognito"}):
        with problem_of(database, case, algorithm) as (problem, policy):
            findings = solve(problem, policy, SearchOptions())
            assert findings.anonymous == case.satisfying()
            if findings.chosen is not None:
                assert findings.suppressed == len(case.suppressed_rows(findings.chosen))


def check_chart(database: Database, case: Case) -> None:
    """Hold the exploration of the whole lattice against the same."""
    with problem_of(database, case, {"name": "optimal"}) as (problem, _):
        assert classify(problem)[0].anonymous == case.satisfying()


def check_samarati(database: Database, case: Case) -> None:
    """Hold Samarati's search against the best generalization of the least height."""
    with problem_of(database, case, {"name": "samarati"}) as (problem, policy):
        assert solve(problem, policy, SearchOptions()).chosen == case.best(sum)


def check_optimal(database: Database, case: Case) -> None:
    """Hold branch and bound against the best of all generalizations, by height and by loss."""
    weights = [1.0] * len(case.names)
    for quality, score in (("height", sum), ("loss", lambda node: case.loss(node, weights))):
        with problem_of(database, case, {"name": "optimal", "quality": quality}) as (problem, policy):
            findings = solve(problem, policy, SearchOptions())
            assert findings.chosen == case.best(score)
            for node in findings.anonymous:
                assert findings.verdicts[node].suppressed == len(case.suppressed_rows(node))


def check_best_first(database: Database, case: Case) -> None:
    """Hold the search over boxes against the best of all generalizations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlanon.methods.generalization.lattice.optimal.LARGEST_HELD", 0)
        check_optimal(database, case)


def check_floors(database: Database, case: Case) -> None:
    """Hold the floor of each verdict against the rows that every more specific generalization suppresses."""
    suppressed = {node: len(case.suppressed_rows(node)) for node in case.nodes}
    with problem_of(database, case, {"name": "optimal"}) as (problem, _):
        for node in case.nodes:
            floor = check_node(problem.sets, node).floor
            below = (rows for other, rows in suppressed.items() if is_above(node, other))
            assert all(floor <= rows for rows in below if rows <= case.budget)


def check_bounds(database: Database, case: Case) -> None:
    """Hold what each quality model says before and after a check against its scores, by brute force."""
    suppressed = {node: len(case.suppressed_rows(node)) for node in case.nodes}
    for quality, score in SCORES.items():
        with problem_of(database, case, {"name": "optimal", "quality": quality}) as (problem, policy):
            for node in reversed(case.nodes):
                exact = score(case, node, [1.0] * len(case.names))
                bounds = [
                    problem.quality.bounds(np.array([node]), np.array([float(rows)]))[0]
                    for rows in range(suppressed[node] + 1)
                ]
                assert bounds == sorted(bounds)
                assert bounds[-1] <= exact + 1e-9
                if suppressed[node] <= case.budget:
                    assert problem.quality.score(node, suppressed[node]) == pytest.approx(exact, abs=1e-9)
            assert solve(problem, policy, SearchOptions()).chosen == case.best(
                lambda node, scored=score: scored(case, node, [1.0] * len(case.names))
            )


def check_tree(database: Database, case: thresholds.Case) -> None:
    """Hold the classes of a partition tree against the models, and against every further threshold."""
    released = database.release_once(case.columns, list(case.rows), case.roles, privacy=list(case.models))
    if released is None:
        assert not case.surely_satisfied_by(case.rows)
        return
    thresholds.check_leaves(case, released)
