"""Judgements of growing classes (`measure_prefixes`) against measures of the same classes, on both engines."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.models import (
    DistinctLDiversity,
    EntropyLDiversity,
    Groups,
    KAnonymity,
    PrivacyModel,
    RecursiveLDiversity,
    VarianceDiversity,
)
from sqlanon.models.base import Runs
from sqlanon.models.closeness import DISTANCES
from sqlanon.sql import Statement
from tests.models_support import codes_of, insert, load, measure
from tests.random_cases import many

pytestmark = pytest.mark.either_engine

Steps = list[list[int | None]]  # the values that join at each step of a run

MODELS: list[PrivacyModel] = [
    *(DistinctLDiversity("s", 4, counts_null=counts) for counts in (False, True)),
    *(EntropyLDiversity("s", 2.9, counts_null=counts) for counts in (False, True)),
    *(
        RecursiveLDiversity("s", c, least, counts_null=counts)
        for c, least in ((0.43, 1), (0.97, 2), (1.53, 3), (3.1, 5))
        for counts in (False, True)
    ),
    VarianceDiversity("s", 8.7),
    *(DISTANCES[distance]("s", t) for distance, t in (("equal", 0.31), ("hierarchical", 0.21), ("kl", 0.3))),
]
NEARLY_ALL = 0.9  # these parameters leave few ties


def drawn(seed: int) -> dict[int, Steps]:
    """Some runs: of few or many values, nearly even or one-sided, of one row a step or of several."""
    numbers = random.Random(seed)
    runs = {}
    for run in range(4):
        pool: list[int | None] = [None, *range(-3, numbers.choice([1, 4, 12]))]
        weights = [numbers.choice([1, 1, 5]) for _ in pool]
        most = numbers.choice([1, 4])
        steps = numbers.randint(1, 60)
        runs[run] = [numbers.choices(pool, weights, k=numbers.randint(1, most)) for _ in range(steps)]
    return runs


def classes_of(runs: dict[int, Steps]) -> dict[tuple[int, int], list[int | None]]:
    """The class of every run at every size that it has."""
    found = {}
    for run, steps in runs.items():
        rows: list[int | None] = []
        for step in steps:
            rows = rows + step
            found[run, len(rows)] = rows
    return found


def load_runs(engine: Engine, runs: dict[int, Steps]) -> tuple[Runs, Groups]:
    """The runs, and all their classes, numbered run * 1000 + size, in tables of the engine."""
    groups = load(engine, {run: [value for step in steps for value in step] for run, steps in runs.items()})
    values = {value for steps in runs.values() for step in steps for value in step}
    codes = codes_of(values)
    for table in ("test_avs", "test_classes", "test_runs"):
        engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
    engine.execute(
        Statement("test", "CREATE TABLE test_runs (run BIGINT, size BIGINT, s BIGINT, n BIGINT, upto BIGINT)")
    )
    engine.execute(Statement("test", "CREATE TABLE test_classes (class BIGINT, n BIGINT)"))
    engine.execute(Statement("test", "CREATE TABLE test_avs (class BIGINT, s BIGINT, n BIGINT)"))
    joined: list[tuple[Any, ...]] = []
    for run, steps in runs.items():
        total: Counter[int | None] = Counter()
        for step in steps:
            total.update(step)
            joined += [(run, total.total(), codes[v], n, total[v]) for v, n in Counter(step).items()]
    classes = {run * 1000 + size: rows for (run, size), rows in classes_of(runs).items()}
    insert(engine, "test_runs", ["run", "size", "s", "n", "upto"], joined)
    insert(engine, "test_classes", ["class", "n"], [(c, len(rows)) for c, rows in classes.items()])
    avs = [(c, codes[v], n) for c, rows in classes.items() for v, n in Counter(rows).items()]
    insert(engine, "test_avs", ["class", "s", "n"], avs)
    assert groups.domain is not None
    return Runs(Markup("test_runs"), groups.domain, groups.rows, groups.height), groups


def follow(engine: Engine, model: PrivacyModel, runs: Runs) -> dict[int, bool | None]:
    """Decide by running sums whether each class violates the model; None where sums do not tell."""
    statement = model.measure_prefixes(engine.render, runs)
    rows = engine.fetch(Statement("test", f"SELECT run * 1000 + size, violates FROM ({statement}) AS m"))
    return dict(rows)


@settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_running_sums_say_what_the_measures_say(engine: Engine, seed: int) -> None:
    runs, groups = load_runs(engine, drawn(seed))
    for model in MODELS:
        followed, measured = follow(engine, model, runs), measure(engine, model, groups)
        assert measured.keys() <= followed.keys()
        decided = {c: violates for c, violates in followed.items() if violates is not None and c in measured}
        assert decided == {c: measured[c][1] for c in decided}, model
        assert len(decided) >= NEARLY_ALL * len(measured), model


def test_a_model_without_running_sums_decides_nothing(engine: Engine) -> None:
    runs, _ = load_runs(engine, drawn(7))
    for model in (KAnonymity(2), DISTANCES["ordered"]("s", 0.1)):
        assert set(follow(engine, model, runs).values()) == {None}


@settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), t=st.sampled_from([0.02, 0.1, 0.2]))
def test_what_a_class_shows_of_its_neighbours_is_so(engine: Engine, seed: int, t: float) -> None:
    _, groups = load_runs(engine, drawn(seed))
    model = DISTANCES["ordered"]("s", t)
    condition = model.implies_violation()
    assert condition is not None
    measured = model.measure(engine.render, groups)
    engine.execute(Statement("test", "DROP TABLE IF EXISTS test_measured"))
    engine.execute(Statement("test", f"CREATE TABLE test_measured AS {measured}"))
    side = "(SELECT m.*, m.class % 1000 AS n FROM test_measured AS m)"
    shown_too = engine.traits.renderer().written(condition)
    query = (
        "SELECT count(*), count(CASE WHEN open_sides.violates THEN 1 END)"
        f" FROM {side} AS refuting JOIN {side} AS open_sides"
        " ON refuting.class - refuting.n = open_sides.class - open_sides.n"
        f" WHERE refuting.violates AND {shown_too}"
    )
    shown, so = engine.fetch_one(Statement("test", query))
    assert shown == so
