"""The best-first search of lattices too large to hold, against brute force over small ones, on both engines."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sqlanon.encoding.frequency.lattice import is_above
from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.lattice import optimal as optimal_search
from sqlanon.methods.generalization.lattice import search as lattice_search
from sqlanon.methods.generalization.lattice.problem import LatticeProgress, Problem
from tests.lattice_support import build_problem
from tests.methods.generalization.test_optimal import attempt
from tests.oracle.lattice import Case, Node, cases, overruled_cases, pick_models
from tests.oracle.quality import SCORES
from tests.random_cases import many
from tests.run_support import OPTIONS, Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

QUALITIES = ["height", "loss", *SCORES]
EXAMPLES = {"duckdb": 6, "postgres": 4}


@pytest.fixture
def nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lattice counts as too large to hold."""
    monkeypatch.setattr(optimal_search, "LARGEST_HELD", 0)


def for_random_cases(database: Database, test: Any) -> None:
    quick = settings(
        max_examples=many(EXAMPLES[database.engine]),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    quick(given(st.data())(test))()


def scored(case: Case, quality: str, node: Node) -> float:
    weights = [1.0] * len(case.names)
    match quality:
        case "height":
            return float(sum(node))
        case "loss":
            return case.loss(node, weights)
    return SCORES[quality](case, node, weights)


def expected(case: Case, quality: str) -> Node | None:
    return case.best(lambda node: scored(case, quality, node))


@pytest.mark.usefixtures("nothing_is_held")
def test_it_finds_what_brute_force_finds(database: Database) -> None:
    def test(data: st.DataObject) -> None:
        case = data.draw(st.one_of(cases(), overruled_cases(pick_models("entropy-l-diversity", "equal"))))
        quality = data.draw(st.sampled_from(QUALITIES))
        findings = attempt(database, case, {"name": "optimal", "quality": quality})
        assert findings.proven
        assert findings.chosen == expected(case, quality)
        assert findings.anonymous <= case.satisfying()
        if findings.chosen is not None:
            assert findings.suppressed == len(case.suppressed_rows(findings.chosen))

    for_random_cases(database, test)


def test_bounds_never_fall_from_a_generalization_to_one_above(database: Database) -> None:
    """Bounds that never fall let the lowest generalization of a box stand for all in the box."""

    def test(data: st.DataObject) -> None:
        case = data.draw(cases())
        quality = data.draw(st.sampled_from(QUALITIES))
        rows = data.draw(st.integers(0, case.budget))

        def check(problem: Problem) -> Problem:
            bounds = problem.quality.bounds(np.array(case.nodes), np.full(len(case.nodes), float(rows)))
            of = dict(zip(case.nodes, bounds, strict=True))
            for low in case.nodes:
                for high in case.nodes:
                    assert not is_above(high, low) or of[low] <= of[high] + 1e-9 * max(1.0, abs(of[high]))
            return problem

        attempt(database, case, {"name": "optimal", "quality": quality}, check)

    for_random_cases(database, test)


@pytest.mark.usefixtures("nothing_is_held")
def test_a_search_that_is_stopped_says_what_is_still_possible(database: Database) -> None:
    def test(data: st.DataObject) -> None:
        case = data.draw(cases())
        steps = data.draw(st.integers(1, 6))

        def stopped(problem: Problem) -> Problem:
            """End the search after so many reports."""
            reports: list[LatticeProgress] = []
            return _Stopping(**vars(problem) | {"report": reports.append}, reports=reports, steps=steps)

        findings = attempt(database, case, {"name": "optimal", "quality": "loss"}, stopped)
        best = expected(case, "loss")
        if best is None:
            assert findings.chosen is None
            return
        score = scored(case, "loss", best)
        if findings.chosen is None:
            assert not findings.proven
            return
        assert findings.chosen in case.satisfying()
        if findings.proven:
            assert findings.chosen == best
        else:
            assert findings.bound is not None
            assert findings.bound <= score + 1e-9

    for_random_cases(database, test)


@dataclasses.dataclass(frozen=True)
class _Stopping(Problem):
    """A problem whose time is up after so many reports."""

    reports: list[LatticeProgress] = dataclasses.field(default_factory=list)
    steps: int = 0

    @property
    def is_late(self) -> bool:
        return len(self.reports) >= self.steps


COLUMNS = 15
ATTRIBUTES = {
    f"q{n}": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}} for n in range(COLUMNS)
}  # 4 ** 15 generalizations: a thousand million


def wide_policy(database: Database) -> Any:
    """A table with more generalizations than can be held."""
    rows = [tuple((row * (7 + n) + row // (n + 2)) % 8 for n in range(COLUMNS)) for row in range(300)]
    table = database.create(dict.fromkeys(ATTRIBUTES, "INTEGER"), rows)
    privacy = [{"model": "k-anonymity", "k": 3}]
    return database.policy(table, ATTRIBUTES, privacy=privacy, algorithm={"name": "optimal"}, suppression=0.1)


def test_a_lattice_too_large_to_hold_needs_a_limit_of_time(database: Database) -> None:
    with pytest.raises(PolicyError, match=r"1,073,741,824 generalizations, and .* --time-limit SECONDS"):
        anonymize(wide_policy(database))


def test_such_a_lattice_is_searched_as_long_as_the_limit_allows(database: Database) -> None:
    policy = wide_policy(database)
    began = time.monotonic()
    outcome = anonymize(policy, time_limit=3)
    assert time.monotonic() - began < 60
    result = outcome.as_json()
    found = result["algorithm"]
    assert result["verified"]
    assert result["release"]["min_class_size"] >= 3
    assert found["nodes"] == 4**COLUMNS
    assert not found["proven"]
    assert 0 <= found["bound"] < found["score"] < 1  # better than * everywhere


@pytest.mark.usefixtures("nothing_is_held")
def test_it_needs_no_room_for_the_lattice(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is as large as the lattice is made."""
    monkeypatch.setattr(optimal_search.LevelGrid, "numbers", property(lambda _: pytest.fail("numbers of all")))
    monkeypatch.setattr(optimal_search.LevelGrid, "preference", property(lambda _: pytest.fail("preference of all")))
    with build_problem(wide_policy(database), OPTIONS, lattice_search.SearchOptions(time_limit=1)) as problem:
        assert optimal_search.optimal(problem, None).chosen is not None  # type: ignore[arg-type]
