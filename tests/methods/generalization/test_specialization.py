"""Top-down specialization and attribute suppression against plain simulations, on both engines."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from typing import Any

import pytest

from sqlanon.errors import PolicyError, ProtectionError
from tests.oracle.lattice import LETTERS, ROOT, Case, Hierarchy, Row, cases
from tests.random_cases import for_random
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.either_engine

EXAMPLES = {"duckdb": 3, "postgres": 3}
Cut = list[dict[str | None, int]]
"""For each attribute, the level that each of its values is shown at."""


def released(database: Database, case: Case, algorithm: dict[str, Any]) -> tuple[dict[str, Any], list[Row]] | None:
    """Release a case: the run's result and its rows; None where no release satisfies the models."""
    table = database.create(case.columns, case.rows)
    policy = database.policy(table, case.attributes, algorithm=algorithm, **case.policy)
    try:
        outcome = anonymize(policy).as_json()
        return outcome, database.sql(f"SELECT * FROM {table}_r")
    except ProtectionError:
        return None
    finally:
        database.sql(f"DROP TABLE {table}")
        database.sql(f"DROP TABLE IF EXISTS {table}_r")


# --- top-down specialization


@for_random(cases(budgets=(0.0,)), EXAMPLES)
def test_the_best_group_is_specialized_until_none_can_be(database: Database, case: Case) -> None:
    found = released(database, case, {"name": "top-down"})
    cut = [dict.fromkeys({row[i] for row in case.rows}, h.height) for i, h in enumerate(case.hierarchies)]
    if violates(case, cut):
        assert found is None
        return
    queue = [(i, h.height, ROOT) for i, h in enumerate(case.hierarchies)]
    done = tried = 0
    while queue:
        best = min(queue, key=lambda candidate: rank(case, candidate))
        queue.remove(best)
        tried += 1
        narrower = specialized(case, cut, best)
        if violates(case, narrower):
            continue
        cut, done = narrower, done + 1
        attribute, level, _ = best
        if level > 1:
            queue += [(attribute, level - 1, label) for label in children(case, best)]
    assert found is not None
    outcome, rows = found
    assert Counter(rows) == Counter(shown(case, cut))
    assert (outcome["algorithm"]["specializations"], outcome["algorithm"]["checked"]) == (done, tried)
    assert outcome["verified"]
    assert outcome["release"]["suppressed"] == 0


@for_random(cases(budgets=(0.0,)), EXAMPLES)
def test_information_gain_leaves_nothing_to_specialize(database: Database, case: Case) -> None:
    found = released(database, case, {"name": "top-down", "quality": "information-gain", "target": "s"})
    if found is None:
        assert violates(case, [dict.fromkeys({row[i] for row in case.rows}, h.height) for i, h in enumerated(case)])
        return
    _, rows = found
    cut = cut_of(case, rows)
    assert Counter(rows) == Counter(shown(case, cut))
    assert not violates(case, cut)
    for i, h in enumerated(case):
        for value, level in cut[i].items():
            if level:
                assert violates(case, specialized(case, cut, (i, level, h.label(value, level))))


def cut_of(case: Case, rows: list[Row]) -> Cut:
    """The lowest cut that shows what the release shows: each value's label is the same wherever it is."""
    labels = [{row[i] for row in rows} for i, _ in enumerated(case)]
    cut: Cut = []
    for i, h in enumerated(case):
        levels = {}
        for value in {row[i] for row in case.rows}:
            names = ["NULL" if h.label(value, n) is None else h.label(value, n) for n in range(h.height + 1)]
            levels[value] = next(n for n, name in enumerate(names) if name in labels[i])
        cut.append(levels)
    return cut


def enumerated(case: Case) -> list[tuple[int, Hierarchy]]:
    return list(enumerate(case.hierarchies))


def rank(case: Case, candidate: tuple[int, int, str | None]) -> tuple[Any, ...]:
    """The order of the candidates: gain, attribute, level, place in the hierarchy."""
    i, level, label = candidate
    h, values = case.hierarchies[i], [row[i] for row in case.rows]
    domain = len(h.paths) + (None in values)
    inside = [value for value in values if h.label(value, level) == label]
    before = len(inside) * h.share(label, level, domain) * domain
    after = sum(h.share(h.label(value, level - 1), level - 1, domain) * domain for value in inside)
    place = min((LETTERS.index(value) + 1 if value is not None else 0) for value in inside)
    return -round(before - after) / max(1, domain - 1), i, -level, place


def children(case: Case, candidate: tuple[int, int, str | None]) -> set[str | None]:
    i, level, label = candidate
    h = case.hierarchies[i]
    return {h.label(row[i], level - 1) for row in case.rows if h.label(row[i], level) == label}


def specialized(case: Case, cut: Cut, candidate: tuple[int, int, str | None]) -> Cut:
    i, level, label = candidate
    h = case.hierarchies[i]
    lower = {v: level - 1 if at == level and h.label(v, level) == label else at for v, at in cut[i].items()}
    return [*cut[:i], lower, *cut[i + 1 :]]


def violates(case: Case, cut: Cut) -> bool:
    classes: dict[Row, list[Row]] = defaultdict(list)
    for row in case.rows:
        classes[tuple(h.label(row[i], cut[i][row[i]]) for i, h in enumerated(case))].append(row)
    table = [row[-1] for row in case.rows]
    return any(case.violates([row[-1] for row in rows], table) for rows in classes.values())


def shown(case: Case, cut: Cut) -> list[Row]:
    rows = []
    for row in case.rows:
        labels = [h.label(row[i], cut[i][row[i]]) for i, h in enumerated(case)]
        rows.append((*("NULL" if label is None else label for label in labels), row[-1]))
    return rows


def test_levels_differ_between_branches(database: Database) -> None:
    rows = [("a1",), ("a1",), ("a2",), ("a2",), ("b1",), ("b2",)]
    mapping = {value: [value[0], "*"] for (value,) in rows}
    table = database.create({"a": "VARCHAR(9)"}, rows)
    attributes = {"a": {"role": "quasi-identifier", "hierarchy": {"mapping": mapping}}}
    found = database.release(table, attributes, algorithm={"name": "top-down"})
    assert Counter(found) == {("a1",): 2, ("a2",): 2, ("b",): 2}


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"name": "top-down", "quality": "information-gain"}, "must have a target with quality: information-gain"),
        ({"name": "top-down", "target": "s"}, "must have a target with quality: information-gain"),
        ({"name": "top-down", "quality": "information-gain", "target": "t"}, "has no such column; choose from 's'"),
        ({"name": "top-down", "quality": "information-gain", "target": "a"}, "must be sensitive or insensitive"),
        ({"name": "top-down", "quality": "precision"}, "quality"),
    ],
)
def test_wrong_targets_are_refused(database: Database, algorithm: dict[str, Any], message: str) -> None:
    table = database.create({"a": "VARCHAR(9)", "s": "INTEGER"}, [("x", 1), ("x", 2)])
    attributes = {"a": {"role": "quasi-identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    with pytest.raises(PolicyError, match=message):
        anonymize(database.policy(table, attributes, algorithm=algorithm))


# --- attribute suppression


@for_random(cases(), EXAMPLES)
def test_attribute_suppression_is_generalization_with_values_and_stars_alone(database: Database, case: Case) -> None:
    paths = [Hierarchy(dict.fromkeys(h.paths, (ROOT,))) for h in case.hierarchies]
    flat = dataclasses.replace(case, hierarchies=tuple(paths))
    algorithm = {"name": "bottom-up", "quality": "entropy"}
    found = released(database, case, {**algorithm, "recoding": "attribute-suppression"})
    expected = released(database, flat, algorithm)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert Counter(found[1]) == Counter(expected[1])
        for key in ("levels", "score", "nodes"):
            assert found[0]["algorithm"][key] == expected[0]["algorithm"][key]
        assert found[0]["metrics"] == expected[0]["metrics"]
        assert found[0]["verified"]
