"""Tests of the problems of streams that condensation takes rows from."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.engines.columns import Column, Kind
from sqlanon.methods.clustering.stream_plan import stream_problems, table_problems
from sqlanon.policy.loading import build_policy
from tests.methods.clustering.test_condensation import anonymity

QUASI = "quasi-identifier"
AGE = {"age": {"role": QUASI}}
STREAM = {
    "source": {"url": "duckdb:///x.duckdb", "table": "people"},
    "release": {"table": "released"},
    "attributes": AGE,
    "privacy": anonymity(2),
    "algorithm": {"name": "condensation"},
}


@pytest.mark.parametrize(
    ("change", "job", "problem"),
    [
        ({}, "", "A job's name"),
        ({}, "Nightly", "A job's name"),
        ({"privacy": anonymity(1)}, "j", "the statistics of a group of one row are this row"),
        ({"suppression": 0.1}, "j", "none is suppressed"),
        ({"release": {"table": "released", "layout": "star"}}, "j", "no layout: star"),
        ({"attributes": {"ü" * 30: {"role": QUASI}}}, "j", "at most 58 bytes"),
        ({"suppressed": "star"}, "j", "none is suppressed"),
        ({"release": {"file": "released.csv"}}, "j", "released as a table"),
        (
            {"source": {"file": "people.csv"}, "release": {"url": "duckdb:///y.duckdb", "table": "r"}},
            "j",
            "tables of a database",
        ),
        ({"attributes": {"name": {"role": "identifier"}}}, "j", "no attribute has role quasi-identifier"),
        ({"attributes": AGE | {"ill": {"role": "sensitive"}}}, "j", "attributes.ill: a stream keeps statistics"),
        ({"attributes": AGE | {"ill": {"role": "insensitive"}}}, "j", "attributes.ill: a stream keeps statistics"),
        ({"attributes": {"age": {"role": QUASI, "order": ["1", "2"]}}}, "j", "attributes.age: a stream keeps"),
        ({"history": {"mode": "refresh"}, "people": "ours"}, "j", "write mode: watch"),
        ({"history": {"mode": "watch", "k": 3}, "people": "ours"}, "j", "persons of a stream are not counted"),
        ({"history": {"mode": "watch"}}, "j", "name the people whose account is kept"),
        ({"history": {"mode": "watch"}, "people": "ours"}, "j", None),
        ({}, "j", None),
        ({"privacy": anonymity(1), "algorithm": {"name": "condensation", "scale": 1.5}}, "j", None),
    ],
)
def test_what_a_stream_would_not_follow_is_refused(change: dict[str, Any], job: str, problem: str | None) -> None:
    problems = list(stream_problems(build_policy(STREAM | change), job))
    assert len(problems) == (problem is not None)
    assert (problem or "") in "".join(problems)


def test_a_model_that_asks_for_more_than_sizes_is_refused() -> None:
    diverse = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
    change = {"privacy": [*anonymity(2), diverse], "attributes": AGE | {"ill": {"role": "sensitive"}}}
    problem, _ = stream_problems(build_policy(STREAM | change), "j")
    assert "ask for k-anonymity alone" in problem


def test_more_numbers_than_a_row_of_statistics_holds_are_refused() -> None:
    names = [f"n{number}" for number in range(29)]
    policy = build_policy(STREAM | {"attributes": {name: {"role": QUASI} for name in names}})
    (problem,) = table_problems(policy, "new_rows", [Column(name, "INTEGER", Kind.INTEGER) for name in names])
    assert "at most 28 quasi-identifiers" in problem


def test_what_no_number_of_a_stream_has_is_refused() -> None:
    limited = {"role": QUASI, "top": 90}
    policy = build_policy(STREAM | {"attributes": {"age": limited, "town": {"role": QUASI}, "gone": {"role": QUASI}}})
    columns = [Column("age", "INTEGER", Kind.INTEGER), Column("town", "VARCHAR", Kind.TEXT)]
    columns += [Column("more", "INTEGER", Kind.INTEGER)]
    assert [problem.split(";")[0] for problem in table_problems(policy, "new_rows", columns)] == [
        "more: new_rows has this column, and the policy gives it no role.",
        "attributes.age: condensation has no top",
        "attributes.town: a stream keeps statistics of numbers, and it is VARCHAR.",
        "new_rows has no column 'gone'.",
    ]
