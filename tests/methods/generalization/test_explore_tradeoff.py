"""The trade-off of a policy: the measures of every generalization are those of brute force, and of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.errors import ProtectionError
from sqlanon.methods.generalization.explore.explore_tradeoff import explore_tradeoff
from sqlanon.methods.generalization.lattice.frequency.measure_each import size_bins
from sqlanon.policy import Policy
from sqlanon.runs.tradeoffs.tradeoff import Tradeoff, TradeoffCandidate
from tests.oracle.lattice import Case, Node, cascading_cases, cases, judged_cases
from tests.random_cases import many
from tests.run_support import OPTIONS, Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

HEIGHT = {"name": "optimal", "quality": "height"}
QUIET = settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _suppressed(case: Case, node: Node) -> list[Any]:
    """The rows that go: those of classes that violate a model, and, within the budget, those that go with them."""
    table = [row[-1] for row in case.rows]
    violating = [rows for rows in case.classes(node).values() if case.violates([row[-1] for row in rows], table)]
    first = [row for rows in violating for row in rows]
    return case.suppressed_rows(node) if 0 < len(first) <= case.budget else first


def _loss(case: Case, node: Node, number: int, out: list[Any]) -> float:
    """The NCP of a column: the leaves under a label as a share of all, 0 under one leaf, 1 of a suppressed row."""
    hierarchy, level = case.hierarchies[number], node[number]
    leaves, kept = len(hierarchy.paths), list(case.rows)
    for row in out:
        kept.remove(row)
    total = float(len(out))
    for row in kept:
        label = hierarchy.label(row[number], level)
        under = leaves if level == hierarchy.height else round(hierarchy.share(label, level, leaves) * leaves)
        total += 0.0 if under == 1 and level < hierarchy.height else under / leaves
    return total / len(case.rows)


def _require_true(case: Case, one: TradeoffCandidate) -> None:
    assert one.levels is not None
    out = _suppressed(case, one.levels)
    classes = case.classes(one.levels)
    gone = Counter(tuple(row[:-1]) for row in out)
    kept = [len(rows) for rows in classes.values() if tuple(rows[0][:-1]) not in gone]
    stars = [len(out)] if out and case.suppressed != "omit" else []
    shown = [*kept, *stars]
    assert one.suppressed == len(out)
    assert one.satisfies == (len(out) <= case.budget)
    assert (one.rows, one.classes, one.least) == (sum(shown), len(shown), min(shown, default=0))
    assert one.greatest == (1 / min(shown) if shown else 0.0)
    assert one.mean == pytest.approx(len(shown) / sum(shown) if shown else 0.0)
    if case.suppressed == "judged star":  # of equal classes either may join the starred rows
        return
    assert one.losses == pytest.approx([_loss(case, one.levels, n, out) for n in range(len(case.names))])
    every = _binned(len(rows) for rows in classes.values())
    assert {part.lower: part.kept + part.suppressed for part in one.sizes} == every
    assert sum(part.kept for part in one.sizes) == len(kept)
    assert {part.lower: part.kept for part in one.sizes if part.kept} == _binned(kept)


def _binned(sizes: Iterable[int]) -> Counter[int]:
    """Count sizes by the least one of their bins, which are of one size each up to 20."""
    counted = list(sizes)
    bins = size_bins(max(counted, default=1))
    return Counter(max(low for low in bins if low <= size) for size in counted)


def _explored(policy: Policy, case: Case) -> Tradeoff | None:
    """The trade-off; None where not even the whole table as one class would do, which is said before any work."""
    try:
        return explore_tradeoff(policy, options=OPTIONS)
    except ProtectionError:
        assert not case.budget
        assert not case.satisfying()
        return None


@QUIET
@given(case=st.one_of(cases(most_rows=20), judged_cases(), cascading_cases()))
def test_every_generalization_has_the_measures_of_brute_force(database: Database, case: Case) -> None:
    table = database.create(case.columns, case.rows)
    policy = database.policy(table, case.attributes, algorithm=HEIGHT, **case.policy)
    if (tradeoff := _explored(policy, case)) is None:
        return
    assert sorted(one.levels or () for one in tradeoff.candidates) == case.nodes
    for one in tradeoff.candidates:
        _require_true(case, one)
    best = case.best(sum)
    assert (None if tradeoff.best is None else tradeoff.candidates[tradeoff.best].levels) == best
    values = Counter(row[:-1] for row in case.rows).values()
    assert tradeoff.before is not None
    assert {part.lower: part.kept for part in tradeoff.before.sizes} == _binned(values)
    assert tradeoff.before.greatest == 1 / min(values)


def test_suppressed_rows_and_no_others_count_as_lost(database: Database) -> None:
    rows = [(n,) for n in [*range(20), *range(40, 43), 60]]
    table = database.create({"age": "INTEGER"}, rows)
    roles = {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}}}
    more = {"privacy": [{"model": "k-anonymity", "k": 4}], "suppression": 0.5}
    policy = database.policy(table, roles, algorithm={"name": "optimal"}, **more)
    (one,) = (one for one in explore_tradeoff(policy, options=OPTIONS).candidates if one.levels == (1,))
    assert (one.suppressed, one.least, one.greatest, one.mean) == (4, 5, 1 / 5, 4 / 20)
    made = anonymize(policy, levels={"age": 1})
    assert one.loss == pytest.approx(made.metrics.gcp)
    assert 4 / 24 < (one.loss or 0.0) < 1  # the rows that go count 1, those that stay a part


@pytest.mark.either_engine
@settings(max_examples=many(2), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(budgets=(0.1, 0.25, 0.5)))
def test_a_run_at_the_levels_of_a_candidate_has_its_measures(database: Database, case: Case) -> None:
    table = database.create(case.columns, case.rows)
    policy = database.policy(table, case.attributes, algorithm={"name": "optimal"}, **case.policy)
    if (tradeoff := _explored(policy, case)) is None:
        return
    satisfying = [one for one in tradeoff.candidates if one.satisfies and one.rows]
    for one in satisfying[:2] + satisfying[-1:]:
        assert one.levels is not None
        made = anonymize(policy, replace=True, levels=dict(zip(case.names, one.levels, strict=True)))
        release, facts = made.release, made.algorithm.facts
        assert (release.rows, release.suppressed, release.classes) == (one.rows, one.suppressed, one.classes)
        assert made.risk is not None
        assert made.risk.prosecutor_max == pytest.approx(one.greatest)
        assert made.risk.prosecutor_mean == pytest.approx(one.mean)
        assert made.metrics.gcp == pytest.approx(one.loss)
        assert made.quasi_identifiers is not None
        assert [column.loss for column in made.quasi_identifiers] == pytest.approx(list(one.losses))
        assert facts.score == pytest.approx(one.score)
