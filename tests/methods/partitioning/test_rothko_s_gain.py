"""Rothko-S with splits by gain: chosen on a sample, right on all rows; alike on both engines."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import PolicyError
from sqlanon.runs.dry_run import run_dry
from tests.methods.partitioning.mondrian_oracle import satisfies
from tests.methods.partitioning.test_mondrian import FEW, Case, cases, check_release
from tests.methods.partitioning.test_rothko_s import released_alike
from tests.random_cases import many
from tests.run_support import Database, Row, anonymize
from tests.test_dry_run import PERIPHERAL

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"x": "INTEGER", "y": "INTEGER", "zip": "VARCHAR(5)", "job": "VARCHAR(3)", "wage": "INTEGER", "id": "INTEGER"}
ROLES: dict[str, Any] = {
    "x": "quasi-identifier",
    "y": "quasi-identifier",
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "job": "sensitive",
    "wage": "sensitive",
    "id": "insensitive",
}
INFORMATION = {"split": "information-gain", "target": "job"}
REGRESSION = {"split": "regression", "target": "wage"}


def sampled(**algorithm: Any) -> dict[str, Any]:
    return {"name": "rothko-s", "exact_below": 0, **algorithm}


def people(number: int, *, noise: float = 0.0) -> list[Row]:
    """Rows whose job changes at x = 30 and, above that, with the zone; their wage rises with y."""
    source, rows = random.Random(11), []
    for n in range(number):
        x, y, zone = source.randrange(100), source.randrange(100), source.choice(["10115", "10117", "20095", "80331"])
        job = "a" if x < 30 else "b" if zone.startswith("1") else "c"
        job = source.choice("abc") if source.random() < noise else job
        rows.append((x, y, zone, job, 10 * (y // 20) + source.randrange(3), n))
    return rows


@settings(FEW, max_examples=many(2))
@given(
    case=cases(),
    split=st.sampled_from(["information-gain", "regression"]),
    sample=st.integers(2, 14),
    alpha=st.sampled_from([0.01, 0.2, 0.45]),
    least=st.sampled_from([0, 0.05, 0.5]),
)
def test_releases_of_random_tables(
    databases: tuple[Database, Database], case: Case, split: str, sample: int, alpha: float, least: float
) -> None:
    """They satisfy the models, and no median split is left, as with rothko-t."""
    split = split if case.sensitive == "INTEGER" else "information-gain"
    algorithm = sampled(split=split, target="s", sample=sample, alpha=alpha, least_gain=least)
    released = released_alike(databases, case, algorithm)
    if released is None:
        assert not satisfies(case.models, list(case.rows), list(case.rows))
    else:
        check_release(case, released)


K = {"model": "k-anonymity", "k": 20}
DIVERSE = [K, {"model": "recursive-l-diversity", "attribute": "wage", "c": 3, "l": 2}]
SPREAD = [K, {"model": "variance-diversity", "attribute": "wage", "v": 20}]


@pytest.mark.parametrize(
    ("split", "models", "size", "seed"),
    [(INFORMATION, DIVERSE, 40, 1), (INFORMATION, SPREAD, 40, 1), (REGRESSION, [K], 40, 1)],
)
def test_a_lying_sample_can_only_cost_detail(
    databases: tuple[Database, Database], split: dict[str, Any], models: list[dict[str, Any]], size: int, seed: int
) -> None:
    """Samples of some rows of many hundreds, at the lowest confidence: what is pruned is counted on all rows."""
    algorithm, found = sampled(sample=size, alpha=0.49, seed=seed, **split), []
    for database in databases:
        table = database.create(COLUMNS, people(600, noise=0.2), name="people")
        outcome = anonymize(database.policy(table, ROLES, privacy=models, algorithm=algorithm)).as_json()
        assert outcome["verified"]
        assert outcome["release"]["min_class_size"] >= 20
        assert outcome["algorithm"]["pruned"] > 0
        found.append(database.sql("SELECT * FROM people_r"))
    assert found[0] == found[1], "the engines differ"


def released_classes(
    database: Database, rows: list[Row], models: list[dict[str, Any]], **algorithm: Any
) -> list[list[Row]]:
    """The classes of a release, of source rows."""
    table, of = database.create(COLUMNS, rows), {row[-1]: row for row in rows}
    classes: dict[Row, list[Row]] = defaultdict(list)
    for row in database.release(table, ROLES, privacy=models, algorithm=algorithm):
        classes[row[:3]].append(of[row[-1]])
    return list(classes.values())


def test_splits_by_gain_on_a_sample_tell_of_the_target(database: Database) -> None:
    """The sample is off by a few values of x, but the last cuts are found on all rows."""
    rows, k = people(3000), [{"model": "k-anonymity", "k": 40}]
    by_gain = released_classes(database, rows, k, **sampled(sample=500, **INFORMATION))
    at_medians = released_classes(database, rows, k, **sampled(sample=500))
    mixed = [sum(len(c) for c in classes if len({row[3] for row in c}) > 1) for classes in (by_gain, at_medians)]
    assert mixed[0] == 0
    assert mixed[1] > 500


def test_numbers_vary_least_in_the_classes(database: Database) -> None:
    rows, k = people(2000), [{"model": "k-anonymity", "k": 40}]
    by_gain = released_classes(database, rows, k, **sampled(sample=500, **REGRESSION))
    assert sum(len({row[1] // 20 for row in c}) == 1 for c in by_gain) > 0.8 * len(by_gain)


@pytest.mark.parametrize("nothing", [{**INFORMATION, "least_gain": 2}, {**REGRESSION, "least_gain": 1.5}])
def test_a_sample_that_tells_nothing_of_the_target_is_cut_at_medians(
    database: Database, nothing: dict[str, Any]
) -> None:
    """For good: what is left for all rows is not split by gain either."""
    table, models = database.create(COLUMNS, people(500)), [K]
    runs = [sampled(sample=200), sampled(sample=200, **nothing)]
    at_medians, for_median = (database.release(table, ROLES, privacy=models, algorithm=run) for run in runs)
    assert for_median == at_medians


@pytest.mark.parametrize("split", [{}, INFORMATION])
def test_a_part_of_few_rows_is_cut_on_all_of_them(database: Database, split: dict[str, Any]) -> None:
    table, models = database.create(COLUMNS, people(300)), [K]
    runs = [{"name": "rothko-t", **split}, sampled(sample=100, **split) | {"exact_below": 301}]
    exact, below = (database.release(table, ROLES, privacy=models, algorithm=run) for run in runs)
    assert Counter(exact) == Counter(below)


def test_a_run_says_how_it_split(database: Database) -> None:
    table = database.create(COLUMNS, people(600))
    told = [
        anonymize(
            database.policy(table, ROLES, privacy=[K], algorithm=sampled(sample=size, **INFORMATION)), replace=True
        )
        for size in (200, 600)
    ]
    for outcome in told:
        found = outcome.as_json()["algorithm"]
        assert found["split"] == "information-gain"
        assert found["target"] == "job"
        assert found["groups"] == ["AV", "AVC"]
    assert [outcome.as_json()["algorithm"]["samplings"] for outcome in told] == [1, 0]


def test_a_dry_run_shows_the_statements_of_a_run(database: Database) -> None:
    table = database.create(COLUMNS, people(900, noise=0.2))
    algorithm = sampled(sample=60, alpha=0.49, **INFORMATION)
    policy = database.policy(table, ROLES, privacy=DIVERSE, algorithm=algorithm)
    shown = {(step.phase, step.name) for step in run_dry(policy).steps}
    run = anonymize(policy).run
    steps = "SELECT DISTINCT phase, name FROM sqlanon.steps WHERE run = ? AND phase = 'search'"
    done = {(phase, name) for phase, name in database.sql(steps, [run]) if not name.startswith(PERIPHERAL)}
    assert done <= shown


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"split": "regression"}, "must have a target with split: information-gain or regression"),
        ({"target": "job"}, "must have a target with split: information-gain or regression, and only with those"),
        ({"bins": 9}, "has bins, which split: median does not use"),
        ({"split": "information-gain", "target": "x"}, "must be sensitive or insensitive, not quasi-identifier"),
        ({"split": "regression", "target": "job"}, "needs numbers"),
        ({"exact_below": -1}, "exact_below must be"),
    ],
)
def test_wrong_algorithms_are_refused(database: Database, algorithm: dict[str, Any], message: str) -> None:
    table = database.create(COLUMNS, people(3))
    with pytest.raises(PolicyError, match=message):
        anonymize(database.policy(table, ROLES, algorithm={"name": "rothko-s", **algorithm}))
