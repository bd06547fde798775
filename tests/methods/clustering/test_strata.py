"""Condensation by the values of a target: no group mixes two, whatever blocks, refinement and merging do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.results.search_facts import CondensedFacts
from tests.methods.clustering.test_condensation import anonymity, covariance
from tests.run_support import Database, Row, anonymize

QUASI = "quasi-identifier"
COLUMNS = {"a": "INTEGER", "b": "DOUBLE PRECISION", "t": "VARCHAR", "s": "VARCHAR"}
ROLES = {"a": QUASI, "b": QUASI, "t": "insensitive", "s": "sensitive"}
TARGETS = ("up", "down", None)


def rows_of(count: int) -> list[Row]:
    """Make rows whose numbers rise together where the target is `up`, and not elsewhere."""
    draw = random.Random(3)
    rows: list[Row] = []
    for number in range(count):
        value, target = draw.gauss(0, 1), TARGETS[number % 3]
        rows.append((round(1000 * value), value if target == "up" else -value, target, "pq"[number % 2]))
    return rows


@pytest.mark.either_engine
@pytest.mark.parametrize(
    "more", [{}, {"groups": "nearest"}, {"blocks": 10}, {"groups": "nearest", "blocks": 10, "refine": True}]
)
def test_groups_have_one_value_of_the_target(database: Database, more: dict[str, Any]) -> None:
    rows = rows_of(63)
    table = database.create(COLUMNS, rows)
    algorithm = {"name": "condensation", "target": "t", **more}
    privacy = [*anonymity(5), {"model": "distinct-l-diversity", "l": 2, "attribute": "s"}]
    result = anonymize(database.policy(table, ROLES, algorithm=algorithm, privacy=privacy))
    assert result.checks["targets_apart"].rows == 63
    facts = result.algorithm.facts
    assert isinstance(facts, CondensedFacts)
    assert facts.smallest >= 5
    released = database.sql(f"SELECT * FROM {table}_r")
    assert sorted(row[2:] for row in rows if row[2]) == sorted(row[2:] for row in released if row[2])
    for target in TARGETS:
        drawn = [row for row in released if row[2] == target]
        assert len(drawn) == 21
        together = covariance(drawn, 0, 1) / (covariance(drawn, 0, 0) * covariance(drawn, 1, 1)) ** 0.5
        assert together == pytest.approx(1 if target == "up" else -1, abs=0.01)
    assert database.leftovers() == []


@pytest.mark.either_engine
@pytest.mark.parametrize("groups", ["mdav", "nearest"])
def test_values_with_rows_for_one_group_are_one_group(database: Database, groups: str) -> None:
    """Each block is a whole value's rows, fewer than two groups of them."""
    table = database.create(COLUMNS, rows_of(27))
    policy = database.policy(
        table, ROLES, algorithm={"name": "condensation", "target": "t", "groups": groups}, privacy=anonymity(9)
    )
    facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, CondensedFacts)
    assert (facts.groups, facts.smallest, facts.largest) == (3, 9, 9)


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("target", "more", "problem"),
    [
        ("t", anonymity(4), "1 of the 3 values of 't' have fewer than the 4 rows of a group"),
        ("s", [*anonymity(2), {"model": "distinct-l-diversity", "l": 2, "attribute": "s"}], "asks for several"),
        ("a", anonymity(2), "must be sensitive or insensitive"),
        ("u", anonymity(2), "no such column"),
    ],
)
def test_targets_that_no_group_can_keep_apart_are_refused(
    database: Database, target: str, more: list[dict[str, Any]], problem: str
) -> None:
    table = database.create(COLUMNS, rows_of(11))
    with pytest.raises(PolicyError, match=problem) as refused:
        anonymize(database.policy(table, ROLES, algorithm={"name": "condensation", "target": target}, privacy=more))
    assert "down" not in str(refused.value)


@pytest.mark.either_engine
def test_a_value_whose_rows_violate_a_model_together_is_refused(database: Database) -> None:
    rows = [
        (number, float(number), "xy"[number % 2], "p" if number % 2 else "pq"[number % 4 // 2]) for number in range(12)
    ]
    table = database.create(COLUMNS, rows)
    privacy = [*anonymity(3), {"model": "distinct-l-diversity", "l": 2, "attribute": "s"}]
    policy = database.policy(table, ROLES, algorithm={"name": "condensation", "target": "t"}, privacy=privacy)
    with pytest.raises(ProtectionError, match="violate a model even together"):
        anonymize(policy)
