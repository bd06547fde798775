"""Rothko-S: whatever a sample says, the release satisfies the models on all rows; alike on both engines."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.algorithms.tree import forest, task
from sqlanon.algorithms.tree.partitioning import build_task
from sqlanon.algorithms.tree.task import Branch
from sqlanon.cli.summary import sampling_text
from sqlanon.encoding.coded_table import encode
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.partitioning.policy import RothkoS
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence
from sqlanon.methods.partitioning.sampling.rothko_s import Sampling
from sqlanon.methods.partitioning.sampling.sampled import SampledGrowth
from sqlanon.models import KAnonymity
from sqlanon.plan.plan import resolve_source
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from tests.methods.partitioning.mondrian_oracle import satisfies
from tests.methods.partitioning.test_mondrian import FEW, Case, cases, check_release
from tests.random_cases import many
from tests.run_support import Database, PlainWorkspace, Row, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(5)", "income": "INTEGER", "job": "VARCHAR(3)", "wage": "INTEGER"}
ROLES: dict[str, Any] = {
    "age": "quasi-identifier",
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "income": "quasi-identifier",
    "job": "sensitive",
    "wage": "sensitive",
}
K = {"model": "k-anonymity", "k": 25}
MODELS: dict[str, list[dict[str, Any]]] = {
    "size": [K],
    "diversity": [
        K,
        {"model": "distinct-l-diversity", "attribute": "job", "l": 2},
        {"model": "recursive-l-diversity", "attribute": "job", "c": 4, "l": 2},
    ],
    "closeness": [
        K,
        {"model": "t-closeness", "attribute": "job", "distance": "kl", "t": 0.8},
        {"model": "t-closeness", "attribute": "wage", "distance": "ordered", "t": 0.4},
    ],
    "shares": [
        K,
        {"model": "confidence-bound", "attribute": "job", "confidence": 0.75},
        {"model": "alpha-k", "attribute": "job", "alpha": 0.7, "k": 30, "values": ["a"]},
    ],
    "spread": [
        K,
        {"model": "entropy-l-diversity", "attribute": "job", "l": 1.5},
        {"model": "variance-diversity", "attribute": "wage", "v": 150.0},
    ],
}


def released_alike(databases: tuple[Database, Database], case: Case, algorithm: dict[str, Any]) -> list[Row] | None:
    """The release that both engines make, whatever the order of the rows."""
    duck, postgres = databases
    policy = {"attributes": case.roles, "privacy": list(case.models), "algorithm": algorithm}
    released = duck.release_once(case.columns, list(case.rows), **policy)
    assert released == postgres.release_once(case.columns, list(case.rows), **policy), "the engines differ"
    assert released == duck.release_once(case.columns, [case.rows[i] for i in case.order], **policy), "the order shows"
    return released


@settings(FEW, max_examples=many(3))
@given(
    case=cases(),
    sample=st.integers(2, 12),
    alpha=st.sampled_from([0.01, 0.05, 0.4]),
    seed=st.integers(0, 1000),
)
def test_releases_of_random_tables(
    databases: tuple[Database, Database], case: Case, sample: int, alpha: float, seed: int
) -> None:
    algorithm = {"name": "rothko-s", "sample": sample, "alpha": alpha, "seed": seed, "exact_below": 0}
    released = released_alike(databases, case, algorithm)
    if released is None:
        assert not satisfies(case.models, list(case.rows), list(case.rows))
    else:
        check_release(case, released)


def _people(number: int) -> list[Row]:
    """Rows whose jobs and wages go with age, so that nodes are less diverse than the table."""
    source = random.Random(3)
    rows: list[Row] = []
    for _ in range(number):
        age, zone = source.randrange(80), source.choice(["10115", "10117", "20095", "80331"])
        job = "abcd"[min(3, age // 20)] if source.random() < 0.6 else source.choice("abcd")
        rows.append((age, zone, int(source.gammavariate(2, 900)), job, age + source.randrange(40)))
    return rows


@pytest.mark.parametrize("name", MODELS)
def test_a_lying_sample_can_only_cost_detail(databases: tuple[Database, Database], name: str) -> None:
    """Samples of some rows of a thousand, at the lowest confidence: what is pruned is counted on all rows."""
    rows = _people(1000)
    size, seed = (40, 5) if name == "spread" else (25, 2)  # with these, something is pruned
    algorithm = {"name": "rothko-s", "sample": size, "alpha": 0.49, "seed": seed, "exact_below": 0}
    found = []
    for database in databases:
        table = database.create(COLUMNS, rows, name="people")
        outcome = anonymize(database.policy(table, ROLES, privacy=MODELS[name], algorithm=algorithm)).as_json()
        assert outcome["verified"]
        assert outcome["release"]["min_class_size"] >= K["k"]
        assert outcome["algorithm"]["pruned"] > 0
        found.append(database.sql("SELECT * FROM people_r"))
    assert found[0] == found[1], "the engines differ"


@pytest.mark.parametrize(("algorithm", "seed"), [({"name": "rothko-s", "seed": 7}, 7), ({"name": "rothko-t"}, None)])
def test_a_run_that_samples_is_recorded_with_its_seed(
    database: Database, algorithm: dict[str, Any], seed: int | None
) -> None:
    table = database.create(COLUMNS, _people(60))
    roles = {**ROLES, "zip": "insensitive"}
    anonymize(database.policy(table, roles, privacy=[{**K, "k": 10}], algorithm=algorithm))
    assert database.sql("SELECT seed FROM sqlanon.runs") == [(seed,)]


def test_a_run_says_what_the_samples_came_to(database: Database) -> None:
    table = database.create(COLUMNS, _people(600))
    roles, privacy = {**ROLES, "zip": "insensitive"}, [{**K, "k": 10}]
    algorithm = {"name": "rothko-s", "sample": 200, "exact_below": 0}
    result = anonymize(database.policy(table, roles, privacy=privacy, algorithm=algorithm))
    found = result.as_json()["algorithm"]
    assert found["samplings"] >= 1
    assert found["sampled"] >= 200
    assert found["nodes"] > 10
    sampling = "methods/partitioning/sampling/%"
    steps = f"SELECT name, count(*) FROM sqlanon.steps WHERE run = ? AND name LIKE '{sampling}' GROUP BY name"
    often = dict(database.sql(steps, [result.run]))
    assert often["methods/partitioning/sampling/scan/send_rows"] == found["samplings"], (
        "all rows go through the tree in one statement"
    )
    assert often["methods/partitioning/sampling/decide/follow_nodes"] < 10 * found["samplings"], (
        "a statement a round, not a node"
    )
    text = sampling_text(result)
    assert f"{found['pruned']:,} pruned" in text


@pytest.mark.parametrize("algorithm", [{"name": "rothko-s", "sample": 300, "exact_below": 0}, {"name": "mondrian"}])
def test_sub_trees_in_sessions_of_their_own_make_no_difference(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, algorithm: dict[str, Any]
) -> None:
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 100)
    with open_database(postgres_url) as database:
        database.create(COLUMNS, _people(1500), name="people")
        policy = database.policy("people", ROLES, privacy=[{**K, "k": 3}], algorithm=algorithm)
        released = []
        for threads in (1, 3):
            outcome = anonymize(policy, replace=True, options=EngineOptions(threads=threads))
            assert outcome.verified
            released.append(database.sql("SELECT * FROM people_r"))
        assert released[0] == released[1]


@pytest.mark.parametrize(
    "algorithm",
    [
        {"sample": 300},
        {"sample": 300, "split": "information-gain", "target": "job"},
        {"sample": 25, "alpha": 0.49, "seed": 2},  # with these, something is pruned
    ],
)
def test_rows_that_are_clustered_and_attributes_tried_one_by_one_are_released_alike(
    database: Database, monkeypatch: pytest.MonkeyPatch, algorithm: dict[str, Any]
) -> None:
    database.create(COLUMNS, _people(1000), name="people")
    algorithm = {"name": "rothko-s", "exact_below": 0, **algorithm}
    policy = database.policy("people", ROLES, privacy=[K], algorithm=algorithm)
    clustering, released = [], []
    sent = "SELECT statement FROM sqlanon.steps WHERE run = ? AND name = 'methods/partitioning/sampling/scan/send_rows'"
    for fewest, cells in ((task.CLUSTERING_ROWS, SampledGrowth.cells_at_once), (1, 0)):
        monkeypatch.setattr(task, "CLUSTERING_ROWS", fewest)
        monkeypatch.setattr(SampledGrowth, "cells_at_once", cells)
        outcome = anonymize(policy, replace=True)
        assert outcome.algorithm.facts.pruned > 0 or algorithm["sample"] == 300
        clustering.append({"ORDER BY" in text for (text,) in database.sql(sent, [outcome.run])})
        released.append(sorted(database.sql("SELECT * FROM people_r"), key=repr))
    assert clustering[0] == {False}
    assert True in clustering[1]  # what no split was found for is not sorted
    assert released[0] == released[1]


def test_a_table_no_larger_than_a_sample_is_not_sampled(database: Database) -> None:
    table = database.create(COLUMNS, _people(300))
    policy = database.policy(table, ROLES, privacy=[{**K, "k": 10}], algorithm={"name": "rothko-s", "sample": 300})
    outcome = anonymize(policy, replace=True).as_json()
    sampled = database.sql(f"SELECT * FROM {table}_r")
    assert outcome["algorithm"]["samplings"] == 0
    assert sampled == database.release(table, ROLES, privacy=[{**K, "k": 10}])


def test_naive_checks_prune_more_than_tests(engine: Engine) -> None:
    """Figure 28 of the paper, in small: one sample of the same rows, judged both ways."""
    rows = ", ".join(f"({n * 7919 % 5003}, {n * 104729 % 4999})" for n in range(5000))
    engine.execute(Statement("create", "CREATE TABLE points (x INTEGER, y INTEGER)"))
    engine.execute(Statement("insert", f"INSERT INTO points VALUES {rows}"))
    pruned = [_pruned(engine, confidence) for confidence in (Confidence(0.05), Confidence(None))]
    assert pruned[1] > 5 * pruned[0]


def _pruned(engine: Engine, confidence: Confidence) -> int:
    policy = build_policy(
        {
            "source": {"url": "duckdb://", "table": "points"},
            "release": {"table": "released"},
            "attributes": {name: {"role": "quasi-identifier"} for name in "xy"},
            "privacy": [{"model": "k-anonymity", "k": 20}],
            "algorithm": {"name": "rothko-s", "sample": 500, "exact_below": 0},
        }
    )
    assert isinstance(policy.algorithm, RothkoS)
    workspace = PlainWorkspace(engine)
    plan = resolve_source(policy, engine)
    with engine.transaction():
        coded = encode(engine, plan, workspace)
    task = build_task(engine, workspace, coded, [KAnonymity(20)])
    sampling = Sampling(Branch(engine, workspace, task), policy.algorithm, confidence, lambda _progress: None)
    sampling.run(coded.rows, episodes=1)
    made = [row[0] for row in engine.fetch(Statement("tables", workspace.listing))]
    workspace.drop(*(Relation(name) for name in made))
    return sampling.counters.pruned
