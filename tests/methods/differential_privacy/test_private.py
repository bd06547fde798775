"""Differentially private releases on both engines, against a plain-Python DiffGen with the same draws."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import draw_counts
from sqlanon.methods.differential_privacy.drawing.specializing import Histograms, Specialization
from sqlanon.policy.loading import build_policy
from tests.private_support import (
    Ample,
    Column,
    Known,
    cells,
    draw,
    frequent_rows,
    information_gain,
    planned,
    private_policy,
    specialize,
    specialize_published,
)
from tests.run_support import Database, PlainWorkspace

JOBS = {"clerk": ["office", "*"], "lawyer": ["office", "*"], "smith": ["shop", "*"], "baker": ["shop", "*"]}
COLUMNS = {"age": "INTEGER", "job": "VARCHAR", "pay": "VARCHAR"}
ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "domain": {"from": 20, "below": 60, "step": 10}},
    "job": {"role": "quasi-identifier", "hierarchy": {"mapping": JOBS, "unknown": "OTHER"}},
    "pay": {"role": "sensitive", "values": ["low", "high"]},
}
CLASSES = ("low", "high")
EPSILON = [{"model": "differential-privacy", "epsilon": 1}]


def place_of_age(age: int | None) -> int:
    return 4 if age is None else min(3, max(0, (age - 20) // 10))


def place_of_job(job: str | None) -> int:
    return 5 if job is None else list(JOBS).index(job) if job in JOBS else 4


ORACLE = [Column(place_of_age, 5), Column(place_of_job, 6, [[0, 1], [2, 3], 4, 5])]


def rows_of(count: int, seed: int) -> list[tuple[Any, ...]]:
    draw_from = random.Random(seed)
    return [
        (
            draw_from.choice([None, *range(10, 75)]),
            draw_from.choice([None, "tailor", *JOBS]),
            draw_from.choice(["low", "high", "high", None, "unknown"]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_same_draws_give_the_cells_of_the_oracle(database: Database, seed: int) -> None:
    rows, draws = rows_of(40 * seed, seed), random.Random(seed)
    picked: list[int] = []

    def pick(scores: Sequence[int]) -> int:
        picked.append(draws.randrange(len(scores)) if seed % 2 else scores.index(max(scores)))
        return picked[-1]

    table = database.create(COLUMNS, rows)
    known = Known(pick, lambda counts: [count - 2 + place % 5 for place, count in enumerate(counts)])
    result = draw(private_policy(database, table, ATTRIBUTES, target="pay", specializations=4), known)
    counted = [row for row in rows if row[-1] in CLASSES]
    again = iter(picked)
    asked = iter(known.asked)

    def replay(scores: Sequence[int]) -> int:
        assert next(asked)[0] == scores
        return next(again)

    cut = specialize(counted, ORACLE, 2, 4, 100_000, replay, Fraction(1))
    exact = cells(counted, ORACLE, CLASSES, cut)
    assert known.counted[0][0] == exact
    released = database.sql(f"SELECT * FROM {table}_r")
    assert [row[-1] for row in released] == [count - 2 + place % 5 for place, count in enumerate(exact)]
    assert [row[-2] for row in released] == list(CLASSES) * (len(exact) // 2)
    assert result.release.cells == len(exact)
    assert all(check.violations == 0 for check in result.checks.values())
    assert database.leftovers() == []


@pytest.mark.parametrize("score", ["max", "information-gain"])
@pytest.mark.parametrize("seed", range(3))
def test_the_published_variant_is_that_of_the_oracle(engines: tuple[Engine, Engine], seed: int, score: str) -> None:
    """The search alone, as its histograms are the same for both variants."""
    rows, draws = rows_of(30 * seed, seed), random.Random(seed)
    counted = [row for row in rows if row[-1] in CLASSES]
    known = Known(lambda scores: draws.randrange(len(scores)) if seed % 2 else scores.index(max(scores)))
    options = {"name": "diffgen", "target": "pay", "specializations": 4, "variant": "published", "score": score}
    with planned(engines[0], COLUMNS, [], ATTRIBUTES, **options) as plan:
        schedule, domains = schedule_of(plan), list(plan.domains.values())
        histograms = Histograms.of(
            domains,
            2,
            Counter(
                (number, column.place(row[number]), CLASSES.index(row[-1]))
                for number, column in enumerate(ORACLE)
                for row in counted
            ),
        )
        cut, choices = Specialization(plan, schedule, histograms, known, lambda _: None).run()
    assert len(choices) == 4
    assert len(known.asked) <= schedule.choices
    asked = iter(known.asked)

    def replay(scores: Sequence[float]) -> int:
        given = next(asked)[0]
        assert given == pytest.approx(scores, abs=1)
        return draws_again.randrange(len(given)) if seed % 2 else given.index(max(given))

    draws_again = random.Random(seed)
    formula = frequent_rows if score == "max" else information_gain
    expected = specialize_published(counted, ORACLE, 4, replay, formula)
    assert [[tuple(range(one.low, one.high)) for one in nodes] for nodes in cut] == expected
    assert next(asked, None) is None


def test_without_a_target_rows_are_counted_alone(engines: tuple[Engine, Engine]) -> None:
    rows = [(*row[:2], "one") for row in rows_of(40, 3)]
    columns, attributes = ({name: one[name] for name in ("age", "job")} for one in (COLUMNS, ATTRIBUTES))
    cut = specialize(rows, ORACLE, 1, 3, 100_000, lambda scores: len(scores) - 1, Fraction(1))
    for engine in engines:
        known = Known(lambda scores: len(scores) - 1)
        options = {"name": "diffgen", "specializations": 3}
        with planned(engine, columns, [row[:2] for row in rows], attributes, **options) as plan:
            assert any("Without a target" in warning for warning in plan.warnings)
            workspace = PlainWorkspace(engine)
            drawn = draw_counts(engine, workspace, plan, schedule_of(plan), known, lambda _: None)
            workspace.drop(workspace.table("places"))
        assert [count for _, count in drawn.counts.counts] == cells(rows, ORACLE, ["one"], cut)


def test_labels_say_which_values_a_cell_holds(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(30, 1))
    algorithm = {"name": "contingency", "target": "pay"}
    result = draw(database.policy(table, ATTRIBUTES, privacy=EPSILON, algorithm=algorithm))
    assert result.labels == {
        "age": ("[*-29]", "[30-39]", "[40-49]", "[50-*]", "NULL"),
        "job": ("clerk", "lawyer", "smith", "baker", "OTHER", "NULL"),
        "pay": CLASSES,
    }
    assert database.sql(f"SELECT count(*) FROM {table}_r") == [(60,)]


def test_shares_add_up_to_epsilon(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(30, 1))
    for variant, choices in (("joint", 4), ("published", 9)):
        account = Ample()
        policy = private_policy(database, table, ATTRIBUTES, 0.3, target="pay", specializations=4, variant=variant)
        draw(policy, account=account)
        ((*charged, noise),) = account.charged
        assert len(charged) == choices
        assert noise.epsilon == Fraction(3, 20)
        assert sum(one.epsilon for one in charged) + noise.epsilon == Fraction(3, 10)


@pytest.mark.parametrize(
    "unit", [{"column": "person", "rows": rows} for rows in (0, -1, 0.5, "two", None, True, 2**63)]
)
def test_a_unit_that_is_none_is_refused_in_one_sentence(unit: Any) -> None:
    with pytest.raises(PolicyError) as refused:
        build_policy(
            {
                "source": {"url": "duckdb:///x.duckdb", "table": "people"},
                "release": {"table": "released"},
                "attributes": {"person": {"role": "identifier"}, "job": ATTRIBUTES["job"]},
                "privacy": [{"model": "differential-privacy", "epsilon": 1, "unit": unit}],
                "algorithm": {"name": "contingency"},
            }
        )
    (problem,) = refused.value.problems
    assert problem.startswith("privacy[0].unit must be row, or {column: …, rows: …}")
    assert problem.endswith("a whole number of at least 1.")


@pytest.mark.parametrize(
    ("domain", "problem"),
    [
        ({"from": date(2020, 1, 1), "below": date(2026, 1, 1), "step": "month"}, "domain must have finite numbers"),
        ({"from": 0, "below": math.inf}, "domain must have finite numbers"),
        ({"from": 0, "below": "10"}, "domain must have finite numbers"),
        ({"from": 0, "below": 10, "step": True}, "domain must have finite numbers"),
        ({"from": 0, "below": 2**63}, "domain must have finite numbers"),
        ({"below": 10}, "domain: from is missing"),
        ({"from": 0, "below": 10, "stap": 2}, "unknown key 'stap'; did you mean 'step'?"),
        (10, "a mapping with keys such as from, below, step"),
    ],
)
def test_a_domain_that_is_none_is_refused_in_one_sentence(domain: Any, problem: str) -> None:
    attribute = {"role": "quasi-identifier", "domain": domain}
    with pytest.raises(PolicyError) as refused:
        build_policy(
            {
                "source": {"url": "duckdb:///x.duckdb", "table": "people"},
                "release": {"table": "released"},
                "attributes": {"day": attribute},
                "privacy": [{"model": "differential-privacy", "epsilon": 1}],
                "algorithm": {"name": "contingency"},
            }
        )
    (sentence,) = refused.value.problems
    assert problem in sentence
