"""Noisy marginals: what is counted, agreement of marginals, and synthetic rows that have their counts."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.differential_privacy.drawing import drawing
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.synthesizing import (
    NoisyMarginal,
    _non_negative,
    consistent,
    fit,
    synthesize,
)
from sqlanon.methods.differential_privacy.join_trees import is_tree
from tests.methods.differential_privacy.test_private import (
    ATTRIBUTES,
    CLASSES,
    COLUMNS,
    place_of_age,
    place_of_job,
    rows_of,
)
from tests.private_support import Known, planned, staged_rows
from tests.run_support import PlainWorkspace

SIZES = (5, 6, 2)
TREE = [["job", "pay"], ["age", "job"]]


def places_of(rows: Sequence[Any]) -> list[tuple[int, int, int]]:
    return [(place_of_age(age), place_of_job(job), CLASSES.index(pay)) for age, job, pay in rows if pay in CLASSES]


@pytest.mark.parametrize("seed", range(3))
def test_marginals_are_counted_and_synthetic_rows_have_them(engines: tuple[Engine, Engine], seed: int) -> None:
    rows = rows_of(60 * seed, seed)
    known = places_of(rows)
    options = {"name": "marginals", "target": "pay", "marginals": TREE, "shares": [1, 3]}
    for engine, form in zip(engines, ("rows", "counts"), strict=True):
        with planned(engine, COLUMNS, rows, ATTRIBUTES, **options, **{"as": form}) as plan:
            workspace, mechanisms, schedule = PlainWorkspace(engine), Known(), schedule_of(plan)
            drawn = drawing.draw_counts(engine, workspace, plan, schedule, mechanisms, lambda _: None).counts
            workspace.drop(workspace.table("places"))
            released, violations = staged_rows(engine, drawn)
        assert [share for _, share, _ in mechanisms.counted] == [Fraction(1, 4), Fraction(3, 4)]
        assert [one.epsilon for one in schedule.charges] == [Fraction(1, 4), Fraction(3, 4)]
        for columns, (counted, *_) in zip([(1, 2), (0, 1)], mechanisms.counted, strict=True):
            expected = Counter(tuple(place[column] for column in columns) for place in known)
            shape = itertools.product(*(range(SIZES[column]) for column in columns))
            assert counted == [expected[where] for where in shape]
        synthetic = {np.unravel_index(cell, SIZES): n for cell, n in drawn.counts}  # without noise they are exact
        for columns in ((1, 2), (0, 1)):
            sums: Counter[tuple[int, ...]] = Counter()
            for where, n in synthetic.items():
                sums[tuple(int(where[column]) for column in columns)] += n
            assert sums == Counter(tuple(place[column] for column in columns) for place in known)
        assert not any(violations.values())
        assert len(released) == (len(known) if form == "rows" else len(synthetic))


def test_marginals_need_no_target(engines: tuple[Engine, Engine]) -> None:
    rows = [row[:2] for row in rows_of(50, 4)]
    columns, attributes = ({name: one[name] for name in ("age", "job")} for one in (COLUMNS, ATTRIBUTES))
    for engine in engines:
        with planned(engine, columns, rows, attributes, name="marginals", marginals=[["age", "job"]]) as plan:
            workspace = PlainWorkspace(engine)
            drawn = drawing.draw_counts(engine, workspace, plan, schedule_of(plan), Known(), lambda _: None).counts
            workspace.drop(workspace.table("places"))
        expected = Counter(place_of_age(age) * 6 + place_of_job(job) for age, job in rows)
        assert drawn.counts == sorted(expected.items())


def test_one_row_changes_each_marginal_by_one(engines: tuple[Engine, Engine]) -> None:
    rows, seen = rows_of(30, 8), []
    for part in (rows, rows[1:]):
        with planned(engines[0], COLUMNS, part, ATTRIBUTES, name="marginals", target="pay", marginals=TREE) as plan:
            workspace, known = PlainWorkspace(engines[0]), Known()
            drawing.draw_counts(engines[0], workspace, plan, schedule_of(plan), known, lambda _: None)
            workspace.drop(workspace.table("places"))
            seen.append(known.counted)
    for (counts, epsilon, sensitivity), (fewer, *_) in zip(*seen, strict=True):
        assert epsilon == Fraction(1, 2)
        assert sum(abs(here - there) for here, there in zip(counts, fewer, strict=True)) <= sensitivity == 1


def test_noise_of_marginals_hides_all_rows_of_a_person(engines: tuple[Engine, Engine]) -> None:
    rows = [(number % 5, *row) for number, row in enumerate(rows_of(20, 2))]
    columns, attributes = {"person": "INTEGER", **COLUMNS}, {"person": "identifier", **ATTRIBUTES}
    options = {"name": "marginals", "target": "pay", "marginals": TREE, "unit": {"column": "person", "rows": 3}}
    with planned(engines[0], columns, rows, attributes, **options) as plan:
        workspace, known, schedule = PlainWorkspace(engines[0]), Known(), schedule_of(plan)
        drawing.draw_counts(engines[0], workspace, plan, schedule, known, lambda _: None)
        workspace.drop(workspace.table("places"))
    assert [(share, sensitivity) for _, share, sensitivity in known.counted] == [(Fraction(1, 2), 3)] * 2
    assert [(one.sensitivity, one.scale) for one in schedule.charges] == [(3, 6)] * 2


@pytest.mark.parametrize("seed", range(8))
def test_noisy_marginals_agree_and_are_non_negative(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sizes = [3, 4, 2, 3, 5]
    columns = [(0, 1), (1, 2, 3), (3,), (4,), (0, 4)]
    noisy = [
        NoisyMarginal(
            one, draw.normal(150 if seed % 2 else 0, 200, [sizes[column] for column in one]), draw.uniform(1, 9)
        )
        for one in columns
    ]
    agreed = consistent(noisy)
    for one in agreed:
        assert one.counts.min() >= 0
    for one, other in itertools.combinations(agreed, 2):
        shared = frozenset(one.columns) & frozenset(other.columns)
        assert one.project(shared).ravel() == pytest.approx(other.project(shared).ravel(), abs=1e-6)
    rows = synthesize(agreed, len(sizes), np.random.default_rng(1))
    assert len(rows) == round(agreed[0].counts.sum())
    for one in agreed:
        counted = Counter(map(tuple, rows[:, list(one.columns)].tolist()))
        finest = max((other for other in agreed if {*one.columns} <= {*other.columns}), key=lambda it: it.counts.size)
        for where, count in np.ndenumerate(one.counts):  # rows are made by the finest: fractions of them add up
            assert abs(counted[where] - count) <= 1 + finest.counts.size / 3


def test_agreement_is_the_average_of_least_variance() -> None:
    """Of two marginals of the same column, one of it alone: as many sums of noise as there are cells."""
    one, other = NoisyMarginal((0,), np.array([30.0, 50.0]), 1.0), NoisyMarginal((0, 1), np.full((2, 3), 10.0), 1.0)
    agreed = consistent([one, other])
    assert agreed[0].counts.tolist() == pytest.approx([30, 45])
    assert agreed[1].counts[1].tolist() == pytest.approx([15, 15, 15])


def test_pairs_are_fitted_to_the_counts_of_their_columns() -> None:
    draw = np.random.default_rng(4)
    for _ in range(20):
        one, other = np.array([5.0, 0.0, 15.0]), draw.permutation([12.0, 0.0, 3.0, 5.0])
        fitted = fit(NoisyMarginal((0, 1), draw.normal(0, 9, (3, 4)), 1.0), [one, other]).counts
        assert fitted.min() >= 0
        assert fitted.sum(axis=1) == pytest.approx(one, abs=1e-6)
        assert fitted.sum(axis=0) == pytest.approx(other, abs=0.05)
    exact = np.array([[3.0, 0.0], [2.0, 7.0]])
    fitted = fit(NoisyMarginal((0, 1), exact, 1.0), [exact.sum(axis=1), exact.sum(axis=0)]).counts
    assert fitted == pytest.approx(exact, abs=0.02)


def test_agreement_weighs_what_agreed_before() -> None:
    """Three of the same column and variance: each has a third."""
    pair = NoisyMarginal((0, 1), np.full((2, 3), 10.0), 1 / 3)
    alone = [NoisyMarginal((0,), np.array(counts), np.array([1.0, 1.0])) for counts in ([60.0, 12.0], [30.0, 0.0])]
    agreed = consistent([pair, *alone])
    for one in agreed:
        assert one.project(frozenset([0])).ravel().tolist() == pytest.approx([40, 14])


def test_the_nearest_non_negative_counts_have_the_sum() -> None:
    draw = random.Random(3)
    for _ in range(50):
        counts = np.array([[draw.gauss(0, 5) for _ in range(4)]])
        total = draw.choice([0.0, 2.0, 9.0])
        found = _non_negative(counts, np.array([total]))
        assert found.min() >= 0
        assert found.sum() == pytest.approx(total)
        moved = (counts - found)[0][found[0] > 0]
        assert moved == pytest.approx(moved[:1].repeat(len(moved)))  # as the conditions of optimality say
        assert all(counts[0][found[0] == 0] <= (moved[0] if len(moved) else math.inf) + 1e-9)


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (["ab", "bc", "cd"], True),
        (["ab", "cd"], True),
        (["ab", "bc", "ac"], False),
        (["abc", "ab", "bc", "ac"], True),
        (["ab", "bc", "cd", "da"], False),
        (["a", "ab", "abc", "cx", "x"], True),
    ],
)
def test_trees_of_marginals(sets: list[str], expected: bool) -> None:
    """In any order of the sets."""
    for order in itertools.permutations(sets):
        assert is_tree(order) is expected


@pytest.mark.parametrize(
    ("marginals", "more", "message"),
    [
        ([["age", "job"], ["job", "pay"], ["age", "pay"]], {}, "a tree"),
        ([["age", "job"]], {}, "'pay' is in none; add"),
        ([["age", "jbo"], ["job", "pay"]], {}, "'jbo' is neither a quasi-identifier nor the target; did you mean"),
        ([["age", "job"], ["job", "age"], ["pay"]], {}, "twice"),
        (TREE, {"shares": [1]}, "as many shares"),
        (TREE, {"cells": 20}, "the marginals have 42 cells, and at most 20 .* .age, job. has"),
        (TREE, {"threshold": 3}, "threshold"),
    ],
)
def test_marginals_that_do_not_fit_are_refused(
    engines: tuple[Engine, Engine], marginals: list[list[str]], more: dict[str, Any], message: str
) -> None:
    options = {"name": "marginals", "target": "pay", "marginals": marginals, **more}

    def plan_and_check() -> None:
        with planned(engines[0], COLUMNS, [], ATTRIBUTES, **options) as plan:
            drawing.require_cells(plan)

    with pytest.raises(PolicyError, match=f"(?i){message}"):
        plan_and_check()
