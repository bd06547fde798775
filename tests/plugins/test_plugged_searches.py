"""An algorithm and a quality model of an installed package, against brute force."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.generalization.lattice.optimal import optimal
from sqlanon.methods.generalization.lattice.quality.qualities import QUALITIES
from sqlanon.methods.generalization.lattice.quality.quality import Quality
from sqlanon.methods.generalization.policy import WEIGHTED, Optimal
from sqlanon.report.queries import run_report
from sqlanon.results.search_facts import LatticeFacts
from sqlanon.runs.dry_run import run_dry
from tests.lattice_support import build_problem
from tests.oracle.lattice import Case, Node, cases
from tests.plugins.support import COLUMNS, K2, ROLES, ROWS, SORTED_RUNS, WIDEST, policy_with
from tests.random_cases import for_random, random_cases
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

PLAIN: dict[str, Any] = {"age": "quasi-identifier", "job": "quasi-identifier", "s": "sensitive"}
SORTED_CASES = st.tuples(
    st.lists(
        st.tuples(st.none() | st.integers(0, 30), st.sampled_from([*"ab", None]), st.sampled_from([*"xyz", None])),
        min_size=5,
    ),
    st.integers(1, 5),
    st.integers(1, 3),
)


@pytest.mark.usefixtures("example")
def test_an_algorithm_of_a_package_is_searched_verified_and_reported(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, PLAIN, privacy=[{"model": "k-anonymity", "k": 7}], algorithm=SORTED_RUNS)
    run = anonymize(policy).run
    rows = database.sql(f"SELECT * FROM {table}_r")
    sizes = Counter((age, job) for age, job, _ in rows).values()
    assert (len(rows), min(sizes), len(sizes)) == (60, 7, 8)
    assert "The table was sorted, and rows that were neighbours became a class." in run_report(run, policy=policy)
    with pytest.raises(PolicyError, match="left no rules for other rows: its algorithm, sorted-runs, makes none"):
        apply(database, run, table, f"{table}_again")


@pytest.mark.usefixtures("example")
def test_a_dry_run_shows_the_statements_of_a_package(database: Database) -> None:
    """By the heads of its templates: nothing of the program knows their names."""
    policy = database.policy(database.create(COLUMNS, ROWS), PLAIN, privacy=[K2], algorithm=SORTED_RUNS)
    names = [step.name for step in run_dry(policy, OPTIONS).steps if step.phase == "search"]
    assert "sqlanon_example:sorted_runs/cut_sorted_rows" in names
    assert database.leftovers() == []


@pytest.mark.usefixtures("example")
@for_random(SORTED_CASES, {"duckdb": 6, "postgres": 4})
def test_its_classes_satisfy_the_models_and_hold_their_rows(
    database: Database, case: tuple[list[Row], int, int]
) -> None:
    rows, k, l = case  # noqa: E741
    privacy = [{"model": "k-anonymity", "k": k}, {"model": "distinct-l-diversity", "attribute": "s", "l": l}]
    released = database.release_once(COLUMNS, rows, PLAIN, privacy=privacy, algorithm=SORTED_RUNS)
    assert (released is None) == (len({value for *_, value in rows} - {None}) < l)
    if released is not None:
        classes = defaultdict(list)
        for *shown, value in released:
            classes[tuple(shown)].append(value)
        assert min(len(values) for values in classes.values()) >= k
        assert min(len(set(values) - {None}) for values in classes.values()) >= l
        assert Counter(value for *_, value in released) == Counter(value for *_, value in rows)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"growth": 1}, "algorithm.growth must be a whole number of at least 2"),
        ({"size": 4}, "algorithm: unknown key 'size'; choose from 'name', 'growth'|algorithm.size: unknown key 'size'"),
    ],
)
def test_wrong_parameters_of_an_algorithm_are_named(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        policy_with(K2, algorithm={**SORTED_RUNS, **parameters})


def test_without_the_package_its_algorithm_is_unknown() -> None:
    with pytest.raises(PolicyError, match="'sorted-runs' is unknown; choose from 'mondrian'"):
        policy_with(K2, algorithm=SORTED_RUNS)


def widest(case: Case, node: Node, weights: list[float]) -> float:
    """The greatest share of its labels that a column lost, by brute force; suppressed rows lost all of them."""
    counts = [
        [len({hierarchy.label(row[place], level) for row in case.rows}) for level in range(hierarchy.height + 1)]
        for place, hierarchy in enumerate(case.hierarchies)
    ]
    kept = max(
        weight * (count[0] - count[level]) / max(count[0] - 1, 1)
        for count, level, weight in zip(counts, node, weights, strict=False)
    )
    return kept + len(case.suppressed_rows(node)) / len(case.rows) * (max(weights) - kept)


def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the example's quality model know nothing of what it did not score."""
    from sqlanon_example.widest import Widest  # type: ignore[import-not-found]

    measure = Widest.bounds
    monkeypatch.setattr(
        Widest,
        "score",
        lambda self, node, suppressed: float(measure(self, np.array([node]), np.array([float(suppressed)]))[0]),
    )
    monkeypatch.setattr(Widest, "bounds", Quality.bounds)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("knows_bounds", [True, False])
@pytest.mark.parametrize("held", [10**9, 1])
def test_the_best_by_a_quality_model_of_a_package_is_found(
    database: Database, monkeypatch: pytest.MonkeyPatch, knows_bounds: bool, held: int
) -> None:
    monkeypatch.setattr("sqlanon.methods.generalization.lattice.optimal.LARGEST_HELD", held)
    if not knows_bounds:
        unbounded(monkeypatch)

    several = cases([{"model": "k-anonymity", "k": 2}], budgets=[0, 0.25]).filter(
        lambda case: len(case.satisfying()) > 2
    )

    @random_cases({"duckdb": 5, "postgres": 3}[database.engine], several, st.booleans())
    def check(case: Case, weighted: bool) -> None:
        weights = [2.0 if weighted and not place else 1.0 for place in range(len(case.names))]
        algorithm = {**WIDEST, "weights": {case.names[0]: 2}} if weighted else WIDEST
        table = database.create(case.columns, case.rows)
        try:
            with build_problem(database.policy(table, case.attributes, algorithm=algorithm, **case.policy)) as problem:
                chosen = optimal(problem, Optimal(**algorithm)).chosen
        except ProtectionError:
            chosen = None
        finally:
            database.sql(f"DROP TABLE {table}")
        assert chosen == case.best(lambda node: widest(case, node, weights))

    check()


@pytest.mark.usefixtures("example")
def test_a_quality_model_of_a_package_chooses_the_release(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, privacy=[{"model": "k-anonymity", "k": 3}], algorithm=WIDEST)
    facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, LatticeFacts)
    assert (facts.quality, facts.proven) == ("widest", True)
    assert facts.levels == {"age": 2, "job": 0}


def test_own_quality_models_say_whether_they_use_weights() -> None:
    assert {name for name, kind in QUALITIES.items() if kind.uses_weights} == set(WEIGHTED)


@pytest.mark.parametrize("quality", ["widest", "los", 3])
def test_without_the_package_its_quality_model_is_unknown(quality: Any) -> None:
    with pytest.raises(PolicyError, match=r"algorithm.quality(: '.*' is unknown; | must be one of ).*'loss'"):
        policy_with(K2, algorithm={**WIDEST, "quality": quality})
