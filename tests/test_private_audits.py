"""Audits of differential privacy: what neighbouring tables change, and how far the noise as it is drawn hides it."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from sqlanon.algorithms.private import accounting, counting, drawing, mechanisms, scoring
from sqlanon.algorithms.private.mechanisms import OpenDP
from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.plan.private import PrivatePlan
from sqlanon.plan.public_domain import NumberDomain
from sqlanon.policy import Policy
from sqlanon.releases import counts
from sqlanon.releases.counts import NoisyCounts
from sqlanon.runs import private_runs
from sqlanon.sql import RedactedValue, Relation, Statement
from tests.private_support import Ample, Known, draw, private_policy
from tests.run_support import Database
from tests.test_private import ATTRIBUTES, CLASSES, COLUMNS, rows_of

SAMPLES = 20_000
CERTAIN = 5.0  # standard errors


def check_neighbours(database: Database, rows: list[Any], fewer: list[Any], **more: Any) -> None:
    """The same draws on both tables: as many choices over as many candidates, and changes within the sensitivities."""
    seen = []
    for part in (rows, fewer):
        draws = random.Random(5)
        known = Known(lambda scores, draws=draws: draws.randrange(len(scores)))  # type: ignore[misc]
        account = Ample()
        columns, attributes = more.get("columns", COLUMNS), more.get("attributes", ATTRIBUTES)
        table = database.create(columns, part)
        options = {"target": "pay", "specializations": 4, **more.get("algorithm", {})}
        result = draw(private_policy(database, table, attributes, unit=more.get("unit"), **options), known, account)
        seen.append((known, account, result.labels))
    (one, account, labels), (other, _, other_labels) = seen
    assert labels == other_labels
    (*choices, noise) = account.charged[0]
    assert len(one.asked) == len(other.asked) <= len(choices)
    for (scores, epsilon, sensitivity, monotone), (changed, *_), charged in zip(
        one.asked, other.asked, choices, strict=False
    ):
        assert epsilon == charged.epsilon
        assert len(scores) == len(changed)
        assert all(abs(here - there) <= sensitivity for here, there in zip(scores, changed, strict=True))
        assert not monotone or all(here >= there for here, there in zip(scores, changed, strict=True))
    ((counts, epsilon, sensitivity),), ((fewer_counts, *_),) = one.counted, other.counted
    assert epsilon == noise.epsilon
    assert sum(abs(here - there) for here, there in zip(counts, fewer_counts, strict=True)) <= sensitivity


@pytest.mark.parametrize("algorithm", [{}, {"variant": "published"}, {"score": "information-gain"}])
def test_one_row_changes_no_more_than_the_sensitivities(database: Database, algorithm: dict[str, Any]) -> None:
    for seed in range(3):
        rows = rows_of(30, seed)
        left_out = random.Random(seed).randrange(len(rows))
        check_neighbours(database, rows, rows[:left_out] + rows[left_out + 1 :], algorithm=algorithm)


def test_one_person_changes_no_more_than_its_rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "secret_key", lambda: RedactedValue("one key for both"))  # it depends on no row
    columns, attributes = {"person": "INTEGER", **COLUMNS}, {"person": "identifier", **ATTRIBUTES}
    rows = [(None if number % 7 == 0 else number % 6, *row) for number, row in enumerate(rows_of(60, 2))]
    without = [row for row in rows if row[0] != 3]
    more = {"columns": columns, "attributes": attributes, "unit": {"column": "person", "rows": 2}}
    check_neighbours(database, rows, without, **more)


def test_a_person_in_both_parts_of_a_range_pays_for_the_cut_of_each(database: Database) -> None:
    """By information gain: the gain of each part may change by all that it can."""
    columns = {"person": "INTEGER", "age": "INTEGER", "pay": "VARCHAR"}
    attributes = {
        "person": "identifier",
        "age": {"role": "quasi-identifier", "domain": {"from": 0, "below": 64}},
        "pay": ATTRIBUTES["pay"],
    }
    rows = [(number % 20, number * 7 % 64, CLASSES[number % 3 % 2]) for number in range(40)]
    known = Known(lambda scores: len(scores) // 2)
    account = Ample()
    policy = private_policy(
        database,
        database.create(columns, rows),
        attributes,
        unit={"column": "person", "rows": 2},
        target="pay",
        specializations=3,
        score="information-gain",
        variant="published",
    )
    draw(policy, known, account)
    ((*choices, _),) = account.charged
    assert len(known.asked) == len(choices) == 1 + 3 * 3
    assert sum(one.epsilon for one in choices) == Fraction(1, 2)


def lower_bound(sample: Callable[[bool], int]) -> float:
    """Bound from below, with great certainty, the epsilon of a draw on a table and its neighbour."""
    drawn = [Counter(sample(more) for _ in range(SAMPLES)) for more in (False, True)]
    best = 0.0
    for threshold in range(-8, 9):
        for sign in (1, -1):
            shares = [
                sum(n for value, n in counts.items() if sign * value >= sign * threshold) / SAMPLES for counts in drawn
            ]
            errors = [math.sqrt(max(share * (1 - share), 1 / SAMPLES) / SAMPLES) for share in shares]
            for high, low in ((0, 1), (1, 0)):
                least, most = shares[high] - CERTAIN * errors[high], shares[low] + CERTAIN * errors[low]
                if least > 0:
                    best = max(best, math.log(least / most))
    return best


def check_noise() -> None:
    mechanism = OpenDP()
    drawn = {more: iter(mechanism.add_noise([int(more)] * SAMPLES, Fraction(1), 1)) for more in (False, True)}
    assert 0.7 < lower_bound(lambda more: next(drawn[more])) <= 1


def check_choice() -> None:
    choose, _ = OpenDP()._noisy_max(Fraction(1), 1, True)  # made once, which takes longer than all draws
    scores = {False: [0, 0], True: [1, 0]}
    assert lower_bound(lambda more: int(choose(scores[more]))) <= 1


def check_freshness() -> None:
    first, second = (OpenDP().add_noise([0] * 200, Fraction(1), 1) for _ in range(2))
    assert first != second


def test_no_mechanism_costs_more_than_its_share_by_the_account_of_the_library() -> None:
    """Scales are doubles: one that is rounded down would cost too much."""
    mechanism = OpenDP()
    for parts in (*range(1, 12), *range(12, 200, 17)):
        share = Fraction(1, 3 * parts)
        assert Fraction(mechanism._laplace(share, 3)[0].map(3)) <= share
        assert all(Fraction(mechanism._noisy_max(share, 3, monotone)[0].map(3)) <= share for monotone in (True, False))


def test_noise_hides_one_row_and_no_more_than_that() -> None:
    check_noise()


def test_choices_hide_one_row() -> None:
    check_choice()


def test_each_draw_is_fresh() -> None:
    check_freshness()


def test_half_of_the_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mechanisms._measurement

    def half(make: Any, epsilon: Fraction, sensitivity: int, scale: Fraction) -> tuple[Any, Fraction]:
        return whole(make, 2 * epsilon, sensitivity, scale / 2)

    monkeypatch.setattr(mechanisms, "_measurement", half)
    with pytest.raises(AssertionError):
        check_noise()


def test_noise_that_is_reused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []

    def reused(_self: OpenDP, counts: Sequence[int], *_: Any) -> list[int]:
        kept.extend(random.choices((-1, 0, 1), k=len(counts)) if not kept else ())
        return [count + noise for count, noise in zip(counts, kept, strict=False)]

    monkeypatch.setattr(OpenDP, "add_noise", reused)
    with pytest.raises(AssertionError):
        check_freshness()


def test_a_fixed_seed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def seeded(_self: OpenDP, counts: Sequence[int], *_: Any) -> list[int]:
        draws = random.Random(7)
        return [count + draws.choice((-1, 0, 1)) for count in counts]

    monkeypatch.setattr(OpenDP, "add_noise", seeded)
    with pytest.raises(AssertionError):
        check_freshness()


def test_half_of_a_sensitivity_is_found(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "score_of", lambda *_: scoring.MostFrequent(scoring._GRAIN // 2, True, True))
    rows = [(30, "clerk", CLASSES[0])] * 5
    with pytest.raises(AssertionError):
        check_neighbours(database, rows, rows[1:])


def test_a_domain_that_is_looked_up_is_found(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ends, the least and the greatest value, show in the labels, and are the values of single rows."""
    resolve = private_runs.resolve_private

    def look_up(policy: Policy, engine: Engine, **more: Any) -> PrivatePlan:
        plan = resolve(policy, engine, **more)
        ((least, greatest),) = engine.fetch(Statement("test", f"SELECT min(age), max(age) FROM {plan.source}"))
        age = plan.domains["age"]
        assert isinstance(age, NumberDomain)
        width = (greatest - least) // age.steps + 1
        return replace(plan, domains={**plan.domains, "age": replace(age, first=least, width=width)})

    monkeypatch.setattr(private_runs, "resolve_private", look_up)
    rows = [(age, "clerk", CLASSES[0]) for age in (20, 35, 59, 110)]
    with pytest.raises(AssertionError):
        check_neighbours(database, rows, rows[:-1])


def test_empty_cells_that_are_left_out_are_found(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawing._all_cells
    monkeypatch.setattr(drawing, "_all_cells", lambda *given: [one for one in whole(*given) if one[1]])
    table = database.create(COLUMNS, rows_of(20, 1))
    with pytest.raises(VerificationError, match="cells_complete"):
        draw(private_policy(database, table, ATTRIBUTES, target="pay"))
    assert database.leftovers() == []


@pytest.mark.parametrize(
    "labels",
    [
        ("[30-39]", "[*-29]", "[40-49]", "[50-*]"),
        ("[*-29]", "[40-49]", "[50-*]"),
        ("[*-29]", "[40-49]", "[30-39]", "[50-*]"),
        ("[*-29]", "[30-39]", "[30-39]", "[40-49]", "[50-*]"),
    ],
)
def test_labels_that_do_not_cover_the_domain_are_found(
    database: Database, monkeypatch: pytest.MonkeyPatch, labels: tuple[str, ...]
) -> None:
    """Exchanged, left out, out of their order, twice: whatever the cells under them say."""
    wrong = {"age": (*labels, "NULL")}
    monkeypatch.setattr(NoisyCounts, "labels", property(lambda _: {**wrong, "pay": CLASSES}))
    columns, attributes = ({name: one[name] for name in ("age", "pay")} for one in (COLUMNS, ATTRIBUTES))
    rows = [(row[0], row[2]) for row in rows_of(20, 1)]
    policy = database.policy(
        database.create(columns, rows),
        attributes,
        privacy=[{"model": "differential-privacy", "epsilon": 1}],
        algorithm={"name": "contingency", "target": "pay"},
    )
    with pytest.raises(VerificationError, match="labels_public"):
        draw(policy)


@pytest.mark.parametrize("exchanged", ["age", "pay"])
@pytest.mark.either_engine
def test_counts_under_exchanged_labels_are_found(
    database: Database, monkeypatch: pytest.MonkeyPatch, exchanged: str
) -> None:
    """The staged table has all cells once, in whatever order: the counts are those of others."""
    staging = counts.load_labels

    def exchange(engine: Engine, table: Relation, labels: Sequence[Sequence[str]]) -> None:
        place = ["age", "pay"].index(exchanged)
        staging(engine, table, [one[::-1] if number == place else one for number, one in enumerate(labels)])

    monkeypatch.setattr(counts, "load_labels", exchange)
    columns, attributes = ({name: one[name] for name in ("age", "pay")} for one in (COLUMNS, ATTRIBUTES))
    policy = database.policy(
        database.create(columns, [(25, "low"), (35, "high"), (35, "high")]),
        attributes,
        privacy=[{"model": "differential-privacy", "epsilon": 1}],
        algorithm={"name": "contingency", "target": "pay"},
    )
    with pytest.raises(VerificationError, match="counts_drawn"):
        draw(policy)


def test_the_account_is_charged_before_the_source_is_read(database: Database) -> None:
    class Refusing:
        def spend(self, *_: Any) -> Any:
            raise VerificationError("exhausted")

    table, known = database.create(COLUMNS, rows_of(20, 1)), Known()
    with pytest.raises(VerificationError, match="exhausted"):
        draw(private_policy(database, table, ATTRIBUTES, target="pay"), known, Refusing())
    assert not known.asked
    assert not known.counted
