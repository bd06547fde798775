"""Checks of generalizations and their releases against brute force, for every model, on both engines."""

from __future__ import annotations

from collections import Counter

import pytest

from sqlanon.encoding.frequency.lattice import is_above
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from tests.lattice_support import build_problem, table_of
from tests.oracle.lattice import Case, Node, Row, cases, minimal
from tests.random_cases import for_random
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.either_engine

EXAMPLES = {"duckdb": 3, "postgres": 3}
ALGORITHM = {"name": "bottom-up", "quality": "height"}


@for_random(cases(), EXAMPLES)
def test_every_check_counts_what_brute_force_counts(database: Database, case: Case) -> None:
    with table_of(database, case) as table:
        policy = database.policy(table, case.attributes, algorithm=ALGORITHM, **case.policy)
        try:
            with build_problem(policy) as problem:
                verdicts = {node: problem.sets.check(node) for node in problem.lattice.nodes}
        except ProtectionError:
            assert case.suppressed_rows(case.nodes[-1])
            return
    assert list(verdicts) == case.nodes
    for node, verdict in verdicts.items():
        expected = len(case.suppressed_rows(node))
        if expected <= case.budget:
            assert verdict.suppressed == expected
        else:
            assert case.budget < verdict.suppressed <= expected
        for other, below in verdicts.items():
            if is_above(node, other):
                least = len(case.suppressed_rows(other))
                assert least > case.budget or verdict.floor <= least, (node, other, below)


@for_random(cases(), EXAMPLES)
def test_bottom_up_finds_all_and_the_minimal_generalizations(database: Database, case: Case) -> None:
    with table_of(database, case) as table:
        policy = database.policy(table, case.attributes, algorithm=ALGORITHM, **case.policy)
        try:
            with build_problem(policy) as problem:
                findings = solve(problem, policy, SearchOptions())
        except ProtectionError:
            assert case.suppressed_rows(case.nodes[-1])
            return
    expected = case.satisfying()
    assert findings.anonymous == expected
    assert set(findings.minimal) == minimal(expected)
    assert findings.chosen == min(expected, key=lambda node: (sum(node), node), default=None)


@for_random(cases(), EXAMPLES)
def test_the_release_shows_the_chosen_levels(database: Database, case: Case) -> None:
    with table_of(database, case) as table:
        policy = database.policy(table, case.attributes, algorithm=ALGORITHM, **case.policy)
        expected = case.satisfying()
        if not expected:
            with pytest.raises(ProtectionError):
                anonymize(policy)
            return
        outcome = anonymize(policy).as_json()
        released = database.sql(f"SELECT * FROM {table}_r")
    node = tuple(outcome["algorithm"]["levels"].values())
    assert node == min(expected, key=lambda node: (sum(node), node))
    assert Counter(released) == Counter(_shown(case, node))
    assert outcome["release"]["suppressed"] == len(case.suppressed_rows(node))
    assert outcome["metrics"]["gcp"] == pytest.approx(_gcp(case, node))
    assert outcome["verified"]


def _gcp(case: Case, node: Node) -> float:
    """The mean penalty over all cells: the share of the hierarchy's leaves that a label covers, 1 where suppressed.

    A group of one leaf costs nothing, as the value does not.
    """
    out, penalty = Counter(case.suppressed_rows(node)), 0.0
    for row in case.rows:
        if out[row]:
            out[row] -= 1
            penalty += len(node)
            continue
        for value, level, hierarchy in zip(row, node, case.hierarchies, strict=False):
            label, leaves = hierarchy.label(value, level), len(hierarchy.paths)
            share = hierarchy.share(label, level, leaves)
            if level and label is not None and (level == hierarchy.height or share > 1 / leaves):
                penalty += share
    return penalty / len(case.rows) / len(node)


@pytest.mark.parametrize(("algorithm", "expected"), [("bottom-up", 0.5), ("mondrian", 0.3)])
def test_a_group_costs_all_its_leaves_whether_the_data_hold_them_or_not(
    database: Database, algorithm: str, expected: float
) -> None:
    mapping = {value: ["low" if value in "abc" else "high", "*"] for value in "abcde"}
    attributes = {"q": {"role": "quasi-identifier", "hierarchy": {"mapping": mapping}}}
    table = database.create({"q": "VARCHAR(9)"}, [("a",), ("b",), ("d",), ("d",)])
    outcome = anonymize(database.policy(table, attributes, algorithm={"name": algorithm}))
    assert outcome.metrics.gcp == pytest.approx(expected)  # low is 3 of 5 leaves; high 2, or the value d


@pytest.mark.parametrize("show", ["bounds", "mean", "midpoint"])
def test_suppressed_rows_show_no_number(database: Database, show: str) -> None:
    ages = {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}, "show": show}
    attributes = {"age": ages, "sex": {"role": "quasi-identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    rows = [(age, sex, 1) for age in (10, 11, 12) for sex in ("f", "m")] + [(77, "f", 2)]
    table = database.create({"age": "INTEGER", "sex": "VARCHAR(9)", "s": "INTEGER"}, rows)
    stars = {"star": "unprotected"}
    policy = database.policy(table, attributes, algorithm=ALGORITHM, suppression=0.2, suppressed=stars)
    outcome = anonymize(policy).as_json()
    released = database.sql(f"SELECT * FROM {table}_r")
    assert outcome["release"]["suppressed"] == 1
    (starred,) = [row for row in released if row[-1] == 2]
    assert starred[-2] == "*"
    assert set(starred[:-2]) == {None}


def test_stars_need_a_column_that_can_show_them(database: Database) -> None:
    age = {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}, "show": "bounds"}
    table = database.create({"age": "INTEGER"}, [(1,), (2,)])
    policy = database.policy(table, {"age": age}, algorithm=ALGORITHM, suppressed="star")
    with pytest.raises(PolicyError, match="suppressed: star needs a quasi-identifier"):
        anonymize(policy)


def _shown(case: Case, node: Node) -> list[Row]:
    """The rows of the release, by the definition."""
    out = Counter(case.suppressed_rows(node))
    shown: list[Row] = []
    for row in case.rows:
        labels = [h.label(row[i], node[i]) for i, h in enumerate(case.hierarchies)]
        if out[row]:
            out[row] -= 1
            if case.suppressed == "star":
                shown.append((*("*" for _ in labels), row[-1]))
        else:
            shown.append((*("NULL" if label is None else label for label in labels), row[-1]))
    return shown
