"""The optimal search against brute force over the whole lattice, for every model and budget, on both engines."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sqlanon.encoding.frequency.lattice import is_above
from sqlanon.errors import ProtectionError
from sqlanon.methods.generalization.lattice import node_checks
from sqlanon.methods.generalization.lattice.optimal import optimal
from sqlanon.methods.generalization.lattice.problem import Findings, LatticeProgress, Problem
from sqlanon.methods.generalization.lattice.quality.loss import LossQuality
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.methods.generalization.policy import Optimal
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from tests.adult import ADULT, ATTRIBUTES, needs_adult, quasi_identifiers
from tests.lattice_support import build_problem, check_node
from tests.oracle.lattice import Case, Node, cases
from tests.random_cases import many
from tests.run_support import Database, anonymize

SIZES: list[Any] = [{"model": "k-anonymity", "k": k} for k in (2, 3)]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # shrinking a search takes minutes
EXAMPLES = {"duckdb": 5, "postgres": 3}


def suppresses(case: Case) -> bool:
    """Tell whether the best generalization suppresses rows."""
    best = case.best(lambda node: case.loss(node, [1.0] * len(case.names)))
    return best is not None and bool(case.suppressed_rows(best))


@dataclasses.dataclass(frozen=True)
class Blind(LossQuality):
    """Loss, of which nothing is known before a node is checked."""

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:  # noqa: ARG002
        return np.full(len(nodes), -np.inf)


@st.composite
def algorithms(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    """An optimal search with some quality, weights and limits."""
    wanted: dict[str, Any] = {"name": "optimal", "quality": draw(st.sampled_from(["loss", "loss", "height"]))}
    if wanted["quality"] == "loss":
        wanted["aggregate"] = draw(st.sampled_from(["geometric", "arithmetic", "max"]))
    first, last = case.names[0], case.names[-1]
    if draw(st.booleans()):
        wanted["weights"] = {first: draw(st.sampled_from([0.5, 2, 3]))}
    if draw(st.booleans()):
        height = case.hierarchies[-1].height
        low = draw(st.integers(0, height))
        wanted["limits"] = {last: [low, draw(st.integers(low, height))]}
    return wanted


def expected(case: Case, algorithm: dict[str, Any]) -> Node | None:
    """The best generalization by brute force."""
    weights = [algorithm.get("weights", {}).get(name, 1) for name in case.names]
    case = dataclasses.replace(case, limits=algorithm.get("limits", {}))
    if algorithm["quality"] == "height":
        return case.best(lambda node: sum(w * level for w, level in zip(weights, node, strict=True)))
    return case.best(lambda node: case.loss(node, weights, algorithm["aggregate"]))


def attempt(
    database: Database, case: Case, algorithm: dict[str, Any], change: Any = lambda problem: problem
) -> Findings:
    """The findings of a search; none where the whole table as one class can't satisfy the models."""
    table = database.create(case.columns, case.rows)
    try:
        policy = database.policy(table, case.attributes, algorithm=algorithm, **case.policy)
        with build_problem(policy) as problem:
            return solve(change(problem), policy, SearchOptions())
    except ProtectionError:
        assert case.suppressed_rows(case.nodes[-1])
        return Findings()
    finally:
        database.sql(f"DROP TABLE {table}")


def for_random_cases(database: Database, test: Any) -> None:
    quick = settings(
        max_examples=many(EXAMPLES[database.engine]),
        deadline=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    quick(given(st.data())(test))()


@pytest.mark.either_engine
def test_optimal_finds_what_brute_force_finds(database: Database) -> None:
    def test(data: st.DataObject) -> None:
        case = data.draw(cases())
        algorithm = data.draw(algorithms(case))
        findings = attempt(database, case, algorithm)
        assert findings.chosen == expected(case, algorithm)
        if findings.chosen is not None:
            assert findings.suppressed == len(case.suppressed_rows(findings.chosen))

    for_random_cases(database, test)


@pytest.mark.either_engine
def test_the_best_is_released_without_the_classes_that_fail(database: Database) -> None:
    def test(data: st.DataObject) -> None:
        case = data.draw(cases(SIZES, budgets=[0.1, 0.25, 0.5]).filter(suppresses))
        case = dataclasses.replace(case, suppressed="omit")
        table = database.create(case.columns, case.rows)
        anonymize(database.policy(table, case.attributes, algorithm={"name": "optimal"}, **case.policy))
        best = case.best(lambda node: case.loss(node, [1.0] * len(case.names)))
        assert best is not None
        left = Counter(case.suppressed_rows(best))
        shown = Counter(
            (*("NULL" if part is None else part for part in label), row[-1])
            for label, rows in case.classes(best).items()
            for row in (Counter(rows) - left).elements()
        )
        assert shown == Counter(database.sql(f"SELECT {', '.join([*case.names, 's'])} FROM {table}_r"))

    for_random_cases(database, test)


@pytest.mark.either_engine
def test_loss_scores_what_the_definition_says(database: Database) -> None:
    def test(data: st.DataObject) -> None:
        case = data.draw(cases())
        algorithm = data.draw(algorithms(case)) | {"quality": "loss", "limits": {}}
        aggregate = algorithm.setdefault("aggregate", "geometric")
        weights = [algorithm.get("weights", {}).get(name, 1) for name in case.names]
        nodes = case.nodes

        def check(problem: Problem) -> Problem:
            for node in nodes:
                out = len(case.suppressed_rows(node))
                score = case.loss(node, weights, aggregate)
                row = np.array([node])
                bounds = [problem.quality.bounds(row, np.array([float(s)]))[0] for s in range(out + 1)]
                assert bounds == sorted(bounds)
                assert bounds[-1] <= score + 1e-12
                if out <= case.budget:
                    assert problem.quality.score(node, out) == pytest.approx(score, abs=1e-12)
            return problem

        attempt(database, case, algorithm, check)

    for_random_cases(database, test)


@pytest.mark.either_engine
def test_a_quality_without_bounds_gets_its_true_optimum(database: Database) -> None:
    def test(data: st.DataObject) -> None:
        case = data.draw(cases())
        algorithm = data.draw(algorithms(case)) | {"quality": "loss", "aggregate": "geometric"}

        def blind(problem: Problem) -> Problem:
            quality = problem.quality
            assert isinstance(quality, LossQuality)
            fields = {one.name: getattr(quality, one.name) for one in dataclasses.fields(quality)}
            return dataclasses.replace(problem, quality=Blind(**fields))

        assert attempt(database, case, algorithm, blind).chosen == expected(case, algorithm)

    for_random_cases(database, test)


@pytest.mark.either_engine
def test_hash_buckets_change_no_result(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_checks, "BUCKET_TUPLES", 1)

    def test(data: st.DataObject) -> None:
        case = data.draw(cases(most_rows=60))
        algorithm = data.draw(algorithms(case))
        nodes = case.nodes

        def check(problem: Problem) -> Problem:
            for node in nodes:
                verdict, out = check_node(problem.sets, node), len(case.suppressed_rows(node))
                assert (verdict.suppressed > case.budget) == (out > case.budget)
                assert verdict.suppressed <= out
                if out <= case.budget:
                    assert verdict.suppressed == out
                for other in nodes:
                    below = len(case.suppressed_rows(other))
                    if is_above(node, other) and below <= case.budget:
                        assert verdict.floor <= below
            return problem

        assert attempt(database, case, algorithm, check).chosen == expected(case, algorithm)

    for_random_cases(database, test)


def adult(release: Path, **more: Any) -> Policy:
    """Adult, all nine attributes as quasi-identifiers, 5-anonymous."""
    data: dict[str, Any] = {
        "source": {"file": str(ADULT / "adult.csv")},
        "release": {"file": str(release)},
        "catalog": {"url": f"duckdb:///{release}.catalog.duckdb"},  # by itself it is beside the source
        "attributes": quasi_identifiers(),
        "privacy": [{"model": "k-anonymity", "k": 5}],
        "algorithm": {"name": "optimal", "quality": "loss"},
    }
    return build_policy(data | more)


LEVELS = {
    0.0: ((0, 4, 1, 1, 3, 2, 2, 1, 0), 0.5731509656),
    0.01: ((0, 3, 1, 1, 2, 2, 1, 1, 0), 0.3624067231),
    0.05: ((0, 3, 0, 0, 2, 1, 1, 2, 0), 0.2419323651),
}


@needs_adult
@pytest.mark.parametrize("suppression", LEVELS)
def test_adult_has_the_published_optimum(suppression: float, tmp_path: Path) -> None:
    with build_problem(adult(tmp_path / "r.csv", suppression=suppression)) as problem:
        statements: list[str] = []
        problem.sets.engine.listener = lambda statement, _seconds, _rows: statements.append(statement.name)
        findings = optimal(problem, Optimal(name="optimal"))
        problem.sets.engine.listener = None
    levels, score = LEVELS[suppression]
    assert findings.chosen == levels
    assert findings.score == pytest.approx(score, abs=1e-10)
    assert findings.proven
    assert problem.sets.checked < 700
    scores = statements.count("methods/generalization/lattice/sum_covered")
    checks = statements.count("methods/generalization/lattice/count_small_each") + statements.count(
        "encoding/frequency/count_small"
    )
    assert checks <= problem.sets.checked / 10
    assert len(statements) <= checks + scores + 2 * len(ATTRIBUTES)  # and two for each marginal
    assert scores < 25


@needs_adult
def test_a_search_out_of_time_tells_how_far_from_the_optimum_it_may_be(tmp_path: Path) -> None:
    with build_problem(adult(tmp_path / "r.csv", suppression=0.05)) as problem:
        seen: list[LatticeProgress] = []
        clock = iter(range(1000))
        late = Clocked(problem.sets, problem.lattice, problem.quality, seen.append, clock=clock)
        findings = optimal(late, Optimal(name="optimal"))
    assert not findings.proven
    assert findings.chosen is not None
    assert findings.score is not None
    assert findings.bound is not None
    assert findings.bound <= LEVELS[0.05][1] <= findings.score
    assert problem.sets.satisfies(findings.verdicts[findings.chosen])
    assert [one.checked for one in seen] == [1 + node_checks.TOGETHER * looks for looks in range(11)]
    bounds = [one.bound for one in seen if one.bound is not None]
    assert bounds == sorted(bounds)
    assert all(one.bound <= one.best for one in seen if one.bound is not None and one.best is not None)


@dataclasses.dataclass(frozen=True)
class Clocked(Problem):
    """A problem whose time is up after ten looks at the clock."""

    clock: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    @property
    def is_late(self) -> bool:
        return next(self.clock) >= 10


def test_no_time_at_all_still_gives_a_release(database: Database) -> None:
    rows = [(letter, 1) for letter in "aabbccdd"]
    table = database.create({"q": "VARCHAR(9)", "s": "INTEGER"}, rows)
    attributes = {"q": {"role": "quasi-identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    policy = database.policy(table, attributes, algorithm={"name": "optimal", "quality": "loss"})
    outcome = anonymize(policy, time_limit=0.0).as_json()
    assert outcome["algorithm"]["proven"] is False
    assert outcome["algorithm"]["score"] == 1.0
    assert outcome["algorithm"]["bound"] == 0.0
