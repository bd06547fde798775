"""Spanning trees of columns (MST): scores and counts straight from rows, what one row changes, synthetic rows."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.mechanisms.charges import CHOICE, NOISE
from sqlanon.methods.differential_privacy.drawing import accounting, drawing, marginals, spanning_tree
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import DrawnCounts
from sqlanon.methods.differential_privacy.drawing.scoring import DistanceFromExpected
from sqlanon.methods.differential_privacy.drawing.synthesizing import NoisyMarginal, fit
from sqlanon.methods.differential_privacy.text import result_text
from sqlanon.results.records import read_record, write_record
from tests.methods.differential_privacy.test_private_report import page
from tests.private_support import Ample, Known, draw, greatest, planned, private_policy, staged_rows
from tests.run_support import Database, PlainWorkspace

COLUMNS = {"age": "INTEGER", "job": "VARCHAR", "sex": "VARCHAR", "pay": "VARCHAR"}
JOBS, SEXES, PAYS = ["clerk", "smith", "baker", "judge"], ["f", "m"], ["low", "high"]
ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "domain": {"from": 20, "below": 60, "step": 10}},
    "job": {"role": "quasi-identifier", "values": JOBS},
    "sex": {"role": "quasi-identifier", "values": SEXES},
    "pay": {"role": "sensitive", "values": PAYS},
}
SIZES = (5, 6, 4, 2)  # with places of other values and of NULL
PAIRS = list(itertools.combinations(range(4), 2))
Places = tuple[int, ...]


def rows_of(count: int, seed: int) -> list[tuple[Any, ...]]:
    """Rows whose job depends on age, and whose pay on job."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        age = draw.randrange(18, 70)
        job = JOBS[min(3, (age - 18) // 13)] if draw.random() < 0.8 else draw.choice([*JOBS, None, "tailor"])
        pay = PAYS[job in JOBS[:2]] if draw.random() < 0.9 else "unknown"
        rows.append((draw.choice([age, age, None]), job, draw.choice(SEXES), pay))
    return rows


def place(row: Sequence[Any]) -> Places:
    age, job, sex, pay = row
    return (
        4 if age is None else min(3, max(0, (age - 20) // 10)),
        5 if job is None else JOBS.index(job) if job in JOBS else 4,
        SEXES.index(sex),
        PAYS.index(pay),
    )


def drawn_of(
    engine: Engine, rows: Sequence[Any], known: Known, **more: Any
) -> tuple[DrawnCounts, Any, accounting.Schedule]:
    """Draw a release, and stage it: its rows and violations."""
    with planned(
        engine,
        more.pop("columns", COLUMNS),
        rows,
        more.pop("attributes", ATTRIBUTES),
        **{"name": "mst", "target": "pay"} | more,
    ) as plan:
        workspace, schedule = PlainWorkspace(engine), schedule_of(plan)
        drawn = drawing.draw_counts(engine, workspace, plan, schedule, known, lambda _: None)
        workspace.drop(workspace.table("places"))
        return drawn, staged_rows(engine, drawn.counts), schedule


@pytest.mark.parametrize(("seed", "epsilon", "form"), [(0, 30, "rows"), (1, 100, "counts"), (2, 2, "rows")])
def test_trees_are_those_of_plain_python(engines: tuple[Engine, Engine], seed: int, epsilon: int, form: str) -> None:
    """Without noise, so that everything follows from the rows; small counts are merged all the same."""
    rows = rows_of(80, seed)
    known_rows = [place(row) for row in rows if row[-1] in PAYS]
    singles = [Counter(row[column] for row in known_rows) for column in range(4)]
    hidden = 3 * math.sqrt(2) * 12 / epsilon
    merged = [
        [one if singles[column][one] > hidden else -1 for one in range(size)] for column, size in enumerate(SIZES)
    ]
    groups = [[*sorted({*one} - {-1}), *([-1] if -1 in one else [])] for one in merged]
    grouped = [tuple(merged[column][one] for column, one in enumerate(row)) for row in known_rows]
    tables = {
        (a, b): [
            (
                sum(row[a] == one and row[b] == other for row in grouped),
                sum(row[a] == one for row in grouped) * sum(row[b] == other for row in grouped) / len(grouped),
            )
            for one in groups[a]
            for other in groups[b]
        ]
        for a, b in PAIRS
    }
    scores = {
        pair: sum(abs(1024 * n - round(1024 * expected)) for n, expected in cells)
        - round(1024 * len(cells) * 9 / epsilon)
        for pair, cells in tables.items()
    }
    for engine in engines:
        known = Known()
        drawn, (released, violations), schedule = drawn_of(engine, rows, known, epsilon=epsilon, **{"as": form})
        assert not any(violations.values())
        assert schedule.charges == [
            *[accounting.Charge(NOISE, Fraction(epsilon, 12), 1, Fraction(12, epsilon))] * 4,
            *[accounting.Charge(CHOICE, Fraction(epsilon, 9), 1024, Fraction(18 * 1024, epsilon))] * 3,
            *[accounting.Charge(NOISE, Fraction(epsilon, 9), 1, Fraction(9, epsilon))] * 3,
        ]
        shares = [*[Fraction(epsilon, 12)] * 4, *[Fraction(epsilon, 9)] * 3]
        assert [(share, sensitivity) for _, share, sensitivity in known.counted] == [(share, 1) for share in shares]
        for column, (counts, *_) in enumerate(known.counted[:4]):
            assert counts == [singles[column][one] for one in range(SIZES[column])]
        part, chosen = [{column} for column in range(4)], []
        for asked, share, sensitivity, monotone in known.asked:
            candidates = [(a, b) for a, b in PAIRS if not any({a, b} <= one for one in part)]
            assert (share, sensitivity, monotone) == (Fraction(epsilon, 9), 1024, False)
            assert asked == [scores[pair] for pair in candidates]
            chosen.append(candidates[greatest(asked)])
            joined = set().union(*(one for one in part if one & {*chosen[-1]}))
            part = [one for one in part if not one & joined] + [joined]
        trees = [tree for tree in itertools.combinations(PAIRS, 3) if _joins_all(tree)]
        assert sum(scores[pair] for pair in chosen) == max(sum(scores[pair] for pair in tree) for tree in trees)
        assert drawn.pairs == tuple(tuple(list(COLUMNS)[column] for column in pair) for pair in chosen)
        for pair, (counts, *_) in zip(chosen, known.counted[4:], strict=True):
            assert counts == [n for n, _ in tables[pair]]
        synthetic: Counter[Places] = Counter()
        for cell, n in drawn.counts.counts:
            synthetic[tuple(int(one) for one in np.unravel_index(cell, SIZES))] += n
        for a, b in chosen:
            sums: Counter[tuple[int, int]] = Counter()
            for row, n in synthetic.items():
                sums[merged[a][row[a]], merged[b][row[b]]] += n
            assert sums == Counter((row[a], row[b]) for row in grouped)
        for column in range(4):  # merged places too, as their counts are without noise
            assert (
                Counter({row[column]: 0 for row in synthetic})
                + Counter(one for row, n in synthetic.items() for one in [row[column]] * n)
                == +singles[column]
            )
        assert len(released) == (len(known_rows) if form == "rows" else len(drawn.counts.counts))


def _joins_all(tree: Sequence[tuple[int, ...]]) -> bool:
    part = set(tree[0])
    for _ in tree:
        part |= {column for pair in tree if part & {*pair} for column in pair}
    return len(part) == 4


def require_few_changes(engine: Engine, rows: list[Any], fewer: list[Any], **more: Any) -> None:
    """The same draws on both tables: the same questions, and changes within the sensitivities that are charged."""
    seen = []
    for part in (rows, fewer):
        draws = random.Random(7)
        known = Known(
            lambda scores, draws=draws: draws.randrange(len(scores)),  # type: ignore[misc]
            lambda counts, draws=draws: [draws.randrange(300) for _ in counts],  # type: ignore[misc]
        )
        drawn, (_, _), schedule = drawn_of(engine, part, known, **more)
        seen.append((known, schedule.charges, (drawn.pairs, drawn.counts.counts)))
    (one, *all_else), (other, *other_else) = seen
    assert all_else == other_else  # what is released follows from the draws alone
    charges = seen[0][1]
    noise, choices = ([charge for charge in charges if charge.mechanism == name] for name in (NOISE, CHOICE))
    for (counts, epsilon, sensitivity), (changed, *_), charge in zip(one.counted, other.counted, noise, strict=True):
        assert (epsilon, sensitivity) == (charge.epsilon, charge.sensitivity)
        assert sum(abs(here - there) for here, there in zip(counts, changed, strict=True)) <= sensitivity
    for (scores, epsilon, sensitivity, monotone), (changed, *_), charge in zip(
        one.asked, other.asked, choices, strict=True
    ):
        assert (epsilon, sensitivity) == (charge.epsilon, charge.sensitivity)
        assert charge.scale == (1 if monotone else 2) * sensitivity / epsilon
        assert max(abs(here - there) for here, there in zip(scores, changed, strict=True)) <= sensitivity
        assert not monotone or all(here >= there for here, there in zip(scores, changed, strict=True))


def require_few_changes_by_rows(engine: Engine) -> None:
    rows = [*rows_of(6, 5), *[(25, "clerk", "f", "high")] * 5, *[(45, "baker", "m", "low")] * 5]
    for omitted in (1, 4, 8, 13):
        require_few_changes(engine, rows, rows[:omitted] + rows[omitted + 1 :])


def test_one_row_changes_no_more_than_the_sensitivities(engines: tuple[Engine, Engine]) -> None:
    require_few_changes_by_rows(engines[0])


def test_one_person_changes_no_more_than_its_rows(engines: tuple[Engine, Engine]) -> None:
    columns, attributes = {"person": "INTEGER", **COLUMNS}, {"person": "identifier", **ATTRIBUTES}
    rows = [(number % 5, *row) for number, row in enumerate(rows_of(30, 2))]
    more = {"columns": columns, "attributes": attributes, "unit": {"column": "person", "rows": 2}}
    require_few_changes(engines[0], rows, [row for row in rows if row[0] != 3], **more)


def half_of_a_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "distance_score", lambda rows: DistanceFromExpected(512 * rows, False, True))


def a_choice_as_if_it_were_monotone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Known.choose
    monkeypatch.setattr(Known, "choose", lambda *given, monotone: whole(*given, monotone=not monotone))


def counts_of_all_that_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise: one more row may change the expected counts by more than one."""
    exact = DistanceFromExpected.of

    def of(score: DistanceFromExpected, counts: Any, _expected: Any, noise: float) -> int:
        return exact(score, counts, np.outer(counts.sum(1), counts.sum(0)) / max(1, counts.sum()), noise)

    monkeypatch.setattr(DistanceFromExpected, "of", of)


def places_merged_by_exact_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = marginals.add_noise

    def kept(columns: Any, exact: Any, *more: Any) -> NoisyMarginal:
        made = noisy(columns, exact, *more)
        return replace(made, counts=(exact * 1000).astype(float)) if len(columns) == 1 else made

    monkeypatch.setattr(spanning_tree, "add_noise", kept)


@pytest.mark.parametrize(
    "mutant",
    [
        half_of_a_sensitivity,
        a_choice_as_if_it_were_monotone,
        counts_of_all_that_is_expected,
        places_merged_by_exact_counts,
    ],
)
def test_mutants_are_found(engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch, mutant: Any) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        require_few_changes_by_rows(engines[0])


def test_scores_hold_whatever_noise_made_of_the_expected_counts() -> None:
    """Numbers of 64 bits: huge noise changes no difference between neighbours."""
    score = accounting.distance_score(1)
    for expected in (np.full((2, 2), 2.0**70), np.diag([2.0**70, 0]), np.zeros((2, 2)), np.full((2, 2), 0.3)):
        for counts in itertools.product(range(2), repeat=4):
            table = np.array(counts).reshape(2, 2)
            more = table + np.array([[1, 0], [0, 0]])
            one, other = (score.of(counted, expected, 2.0**60) for counted in (table, more))
            assert abs(one - other) <= score.sensitivity == 1024
            assert abs(one) < 2**62


def test_columns_are_counted_by_themselves_and_by_pairs(engines: tuple[Engine, Engine]) -> None:
    """Counts of a column with noise 9 and variance 36, and their sums in a pair without noise, of variance 2 * 9."""
    turns = iter((9, 9, 0))
    columns = dict.fromkeys("ab", "INTEGER NOT NULL")
    attributes = {name: {"role": "quasi-identifier", "domain": {"from": 0, "below": 2}} for name in columns}
    known = Known(noise=lambda counts: (np.array(counts) + next(turns)).tolist())
    rows = [(one, other) for one in (0, 1) for other in (0, 1)] * 10
    drawn, _, _ = drawn_of(
        engines[0], rows, known, columns=columns, attributes=attributes, target=None, epsilon=30, **{"as": "rows"}
    )
    assert [len(counts) for counts, *_ in known.counted] == [2, 2, 4]
    assert sum(n for _, n in drawn.counts.counts) == 2 * 23  # (29 / 36 + 20 / 18) / (1 / 36 + 1 / 18)


def test_merged_places_are_shared_out_at_random() -> None:
    merged = spanning_tree.Merged.of(NoisyMarginal((0,), np.array([90.0, 3.0, -5.0, 1.0]), 25.0))
    assert merged.groups.tolist() == [0, 1, 1, 1]
    assert (merged.marginal.counts.tolist(), np.asarray(merged.marginal.variance).tolist()) == ([90, -1], [25, 75])
    places = merged.places(np.ones(40, dtype=np.int64), np.random.default_rng(1)).tolist()
    assert sorted(places) == [1] * 30 + [3] * 10
    assert places != sorted(places)


def test_pairs_are_fitted_to_the_nearest_counts_with_the_sums_of_columns() -> None:
    noisy = NoisyMarginal((0, 1), np.array([[5.0, -3.0], [1.0, 1.0]]), 1.0)
    assert fit(noisy, [np.array([2.0, 2.0]), np.array([3.0, 1.0])]).counts.tolist() == [[2, 0], [1, 1]]


@pytest.mark.either_engine
def test_a_run_records_the_pairs_that_it_chose(database: Database) -> None:
    """And pays for all that it draws; report and summary name the pairs."""
    account = Ample()
    rows = rows_of(40, 3)
    policy = private_policy(database, database.create(COLUMNS, rows), ATTRIBUTES, epsilon=30, name="mst", target="pay")
    result = draw(policy, Known(), account)
    assert result.pairs is not None
    assert len(result.pairs) == 3
    assert sum(one.epsilon for one in account.charged[0]) == 30
    assert result.release.rows == len(database.sql(f"SELECT * FROM {policy.release.table}"))
    assert not any(check.violations for check in result.checks.values())
    again = read_record(write_record(result))
    assert again == result
    assert "The rows are synthetic" in page(result)
    for shown in (result_text(result), page(result)):
        assert all(" and ".join(pair) in shown for pair in result.pairs)
    assert database.leftovers() == []


def test_a_single_column_takes_the_whole_epsilon(engines: tuple[Engine, Engine]) -> None:
    rows = [(row[0],) for row in rows_of(40, 3)]
    columns, attributes = {"age": "INTEGER"}, {"age": ATTRIBUTES["age"]}
    more = {"columns": columns, "attributes": attributes, "target": None}
    drawn, _, schedule = drawn_of(engines[0], rows, Known(), **more)
    assert drawn.counts.counts == sorted(Counter(place((*row, "clerk", "f", "low"))[0] for row in rows).items())
    assert (drawn.pairs, [one.epsilon for one in schedule.charges]) == ((), [1])


def test_no_rows_make_none(engines: tuple[Engine, Engine]) -> None:
    drawn, (released, violations), _ = drawn_of(engines[0], [], Known())
    assert (drawn.counts.counts, released, any(violations.values())) == ([], [], False)


def test_trees_of_too_many_cells_or_columns_are_refused(engines: tuple[Engine, Engine]) -> None:
    def require(columns: dict[str, str], attributes: dict[str, Any], **more: Any) -> None:
        with planned(engines[0], columns, [], attributes, name="mst", **more) as plan:
            drawing.require_cells(plan)

    with pytest.raises(PolicyError, match=r"the marginals have 104 cells, and at most 100 .* .age, job. has"):
        require(COLUMNS, ATTRIBUTES, target="pay", cells=100)
    many = {f"c{number}": "INTEGER NOT NULL" for number in range(91)}
    declared = {name: {"role": "quasi-identifier", "domain": {"from": 0, "below": 2}} for name in many}
    with pytest.raises(PolicyError, match="4,095 marginals would be counted at once, and 4,000 are the most"):
        require(many, declared)
