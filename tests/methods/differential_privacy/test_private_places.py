"""Places of values in declared domains, against exact arithmetic; rows of persons; releases as rows. Both engines."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.mechanisms.mechanisms import secret_key
from sqlanon.methods.differential_privacy.drawing.counting import Places
from sqlanon.methods.differential_privacy.drawing.drawing import require_cells
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import Node
from sqlanon.methods.differential_privacy.release import NoisyCounts
from tests.private_support import DOMAINS, place_of, planned, staged_rows, steps_of, values_near
from tests.run_support import PlainWorkspace

NUMBER = {"role": "quasi-identifier"}
Row = tuple[Any, ...]


def counted_places(engine: Engine, plan: PrivatePlan) -> Counter[tuple[int, int, int]]:
    workspace = PlainWorkspace(engine)
    try:
        return Counter(Places.of(engine, workspace, plan, secret_key()).count_places())
    finally:
        workspace.drop(workspace.table("places"))


@pytest.mark.parametrize(("type_", "first", "below", "step"), DOMAINS)
def test_numbers_have_the_place_of_their_step(
    engines: tuple[Engine, Engine], type_: str, first: float, below: float, step: float
) -> None:
    """On the bounds of steps, beside them, and beyond the domain."""
    steps = steps_of(first, below, step)
    values = values_near(type_, first, below, step)
    attributes = {"x": {**NUMBER, "domain": {"from": first, "below": below, "step": step}}}
    expected = Counter((0, place_of(value, str(first), str(step), steps), 0) for value in values)
    for engine in engines:
        with planned(engine, {"x": type_}, [(value,) for value in values], attributes) as plan:
            assert plan.domains["x"].size == steps + 1
            assert counted_places(engine, plan) == expected


def test_cells_are_numbered_beyond_32_bits(engines: tuple[Engine, Engine]) -> None:
    """A row in the last group of all attributes is counted as one in the first: no row decides whether a run ends."""
    names, size = "abcd", 500
    attributes = {name: {**NUMBER, "domain": {"from": 0, "below": size, "step": 1}} for name in names}
    columns = dict.fromkeys(names, "INTEGER NOT NULL")
    for engine in engines:
        with planned(engine, columns, [(0,) * 4, (size - 1,) * 4], attributes) as plan:
            groups = tuple(Node("", low, low + 2) for low in range(0, size, 2))
            workspace = PlainWorkspace(engine)
            cells = Places.of(engine, workspace, plan, secret_key()).count_cells((groups,) * 4)
            workspace.drop(workspace.table("places"))
            assert (cells.cells.tolist(), cells.rows.tolist()) == ([0, len(groups) ** 4 - 1], [1, 1])


def test_unsigned_numbers_have_no_domain_below_0(engines: tuple[Engine, Engine]) -> None:
    """DuckDB compares 2^128 - 1 with no number below 0: such a row would decide whether a run ends."""
    attributes = {"x": {**NUMBER, "domain": {"from": 0, "below": 25, "step": 5}}}
    with planned(engines[0], {"x": "UHUGEINT"}, [(2**128 - 1,)], attributes) as plan:
        assert counted_places(engines[0], plan) == {(0, 4, 0): 1}
    attributes = {"x": {**NUMBER, "domain": {"from": -5, "below": 25, "step": 3}}}
    with pytest.raises(PolicyError, match="begin it at 0"), planned(engines[0], {"x": "UHUGEINT"}, [], attributes):
        pass


JOBS = {"clerk": ["office", "*"], "lawyer": ["office", "*"], "smith": ["shop", "*"]}


def test_undeclared_values_have_the_place_of_others_and_null_one_of_its_own(engines: tuple[Engine, Engine]) -> None:
    columns = {"job": "VARCHAR(9)", "known": "VARCHAR(9) NOT NULL", "yes": "BOOLEAN", "day": "DATE", "pay": "VARCHAR"}
    attributes = {
        "job": {**NUMBER, "hierarchy": {"mapping": JOBS, "unknown": "OTHER"}},
        "known": {**NUMBER, "hierarchy": {"mapping": JOBS, "unknown": "smith"}},
        "yes": {**NUMBER, "values": [True, False]},
        "day": {**NUMBER, "values": ["2024-02-29", "2025-01-01"]},
        "pay": {"role": "sensitive", "values": ["low", "high"]},
    }
    rows = [
        ("clerk", "clerk", True, datetime.date(2024, 2, 29), "low"),
        ("smith", "tailor", False, datetime.date(2025, 1, 1), "high"),
        ("CLERK", "smith", None, datetime.date(2025, 1, 2), "low"),
        (None, "lawyer", True, None, "low"),
        ("clerk ", "lawyer", True, None, "high"),
        ("clerk", "clerk", True, None, None),  # rows of no declared class are left out
        ("clerk", "clerk", True, None, "unknown"),
    ]
    places = [  # of each column, in the order of the rows
        (0, 2, 3, 4, 3),
        (0, 2, 2, 1, 1),
        (0, 1, 2, 0, 0),
        (0, 1, 2, 3, 3),
    ]
    classes = (0, 1, 0, 0, 1)
    expected = Counter(
        (number, place, one) for number, column in enumerate(places) for place, one in zip(column, classes, strict=True)
    )
    for engine in engines:
        with planned(engine, columns, rows, attributes, target="pay") as plan:
            assert [domain.size for domain in plan.domains.values()] == [5, 3, 3, 4]
            assert counted_places(engine, plan) == expected


def test_as_many_rows_of_a_person_count_as_the_policy_says(engines: tuple[Engine, Engine]) -> None:
    """The rest is left out, and so are rows of nobody and of no declared class, which count for no person."""
    draw = random.Random(4)
    rows = [
        (draw.choice([None, *range(8)]), draw.randrange(40), draw.choice(["low", "low", "none"])) for _ in range(120)
    ]
    columns = {"person": "INTEGER", "age": "INTEGER", "pay": "VARCHAR"}
    attributes = {
        "person": "identifier",
        "age": {**NUMBER, "domain": {"from": 0, "below": 40}},
        "pay": {"role": "sensitive", "values": ["low", "high"]},
    }
    candidates = Counter(person for person, _, pay in rows if person is not None and pay == "low")
    ages = Counter(age for person, age, pay in rows if person is not None and pay == "low")
    for engine in engines:
        unit = {"column": "person", "rows": 3}
        with planned(engine, columns, rows, attributes, target="pay", unit=unit) as plan:
            first, second = (counted_places(engine, plan) for _ in range(2))
        for counted in (first, second):
            assert sum(counted.values()) == sum(min(3, rows) for rows in candidates.values())
            assert all(n <= ages[place] for (_, place, _), n in counted.items())
        assert first != second  # as the key is drawn anew, so are the rows of each person


def test_cells_are_repeated_by_their_counts_in_the_order_of_cells(
    engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlanon.methods.differential_privacy.release._MOST_COPIES", 2)
    columns = {"age": "INTEGER NOT NULL", "pay": "VARCHAR"}
    attributes = {
        "age": {**NUMBER, "domain": {"from": 0, "below": 3}},
        "pay": {"role": "sensitive", "values": ["low", "high"]},
    }
    counts = (2, -1, 0, 3, 1, -7)
    labels = [("[*-0]", "low"), ("[*-0]", "high"), ("1", "low"), ("1", "high"), ("[2-*]", "low"), ("[2-*]", "high")]
    as_rows = [cell for cell, count in zip(labels, counts, strict=True) for _ in range(count)]
    as_counts = [(*cell, count) for cell, count in zip(labels, counts, strict=True)]
    for engine in engines:
        for form, expected in (("rows", as_rows), ("counts", as_counts)):
            with planned(engine, columns, [], attributes, target="pay", **{"as": form}) as plan:
                assert plan.target is not None
                cut = (plan.domains["age"].leaves(), plan.target[1].leaves())
                released = NoisyCounts(plan, cut, list(enumerate(counts)))
                assert released.rows == len(expected)
                rows, violations = staged_rows(engine, released)
            assert rows == expected
            assert not any(violations.values())


def test_more_rows_than_a_table_holds_are_refused_where_noise_makes_them(engines: tuple[Engine, Engine]) -> None:
    attributes = {"age": {**NUMBER, "domain": {"from": 0, "below": 3}}}
    for form, refused in (("rows", True), ("counts", False)):
        with (
            planned(engines[0], {"age": "INTEGER"}, [], attributes, epsilon=1e-9, **{"as": form}) as plan,
            pytest.raises(PolicyError, match="some 2,000,000,000 rows") if refused else nullcontext(),
        ):
            require_cells(plan)


def test_a_search_refuses_more_places_than_it_can_hold(engines: tuple[Engine, Engine]) -> None:
    columns = {"n": "INTEGER", "m": "INTEGER", "pay": "INTEGER"}
    attributes = {
        "n": {**NUMBER, "domain": {"from": 0, "below": 100_000}},
        "m": {**NUMBER, "domain": {"from": 0, "below": 100}},
        "pay": {"role": "sensitive", "values": list(range(60))},
    }
    with (
        pytest.raises(PolicyError, match=r"'n' has the most, 100,001: .* longer steps"),
        planned(engines[0], columns, [], attributes, target="pay", name="diffgen"),
    ):
        pass


def test_values_that_cannot_be_listed_are_refused_with_a_remedy(engines: tuple[Engine, Engine]) -> None:
    with (
        pytest.raises(PolicyError, match='COLLATE "C"'),
        planned(engines[0], {"x": "VARCHAR COLLATE NOCASE"}, [], {"x": {**NUMBER, "values": ["a", "A"]}}),
    ):
        pass
    for type_, declared in (("DATE", {"domain": {"from": 0, "below": 9}}), ("TIMESTAMP", {"values": ["2024-01-01"]})):
        attributes = {"x": {**NUMBER, **declared}}
        with (
            pytest.raises(PolicyError, match="in a view"),
            planned(engines[0], {"x": type_}, [], attributes),
        ):
            pass
