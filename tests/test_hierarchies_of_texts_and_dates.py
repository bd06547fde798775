"""Hierarchies of masks and of dates, against plain Python and the calendar."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.policy import Hierarchy
from tests.hierarchy_support import (
    SETTINGS,
    assert_labels_without_the_table,
    build,
    build_on_both,
    content,
    labels,
    left_behind,
)

pytestmark = pytest.mark.slow

# --- masks


@SETTINGS
@given(
    side=st.sampled_from(["left", "right"]),
    values=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6), max_size=12),
)
def test_masks_replace_characters_from_one_side(engines: Any, side: str, values: set[str]) -> None:
    rows = build_on_both(engines, "TEXT", sorted(values), mask=side)
    height = max([1, *map(len, values)])
    for value, masks in labels(rows).items():
        for level, mask in enumerate(masks[:-1], start=1):
            kept = height - level
            stars = "*" * level
            masked = value[:kept] + stars if side == "right" else stars + value[-kept:]
            assert mask == (masked if value else '""')


@SETTINGS
@given(
    side=st.sampled_from(["left", "right"]),
    values=st.sets(st.text(")*+ab\u00e9\u4e2d", max_size=5), max_size=40),
    length=st.sampled_from([None, 5, 7]),
)
def test_masks_are_in_the_order_of_their_labels(engines: Any, side: str, values: set[str], length: int | None) -> None:
    """Ends of short values are masked too, so they lie among characters, before or after `*`."""
    height = length or max([1, *map(len, values)])

    def label(value: str, level: int) -> bytes:
        kept = height - level
        shown = value[:kept] + "*" * level if side == "right" else "*" * level + (value[-kept:] if kept else "")
        return shown.encode()

    rows = build_on_both(engines, "TEXT", sorted(values), mask=side, length=length)
    ordered = sorted(values, key=lambda value: ([label(value, n) for n in range(height - 1, 0, -1)], value.encode()))
    assert [row["l0"] for row in rows] == ordered


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_masked_empty_text_is_not_everything(engines: Any, side: str) -> None:
    rows = build_on_both(engines, "TEXT", ["", "a", "abc", '""'], mask=side)
    assert labels(rows)[""] == ['""', '""', "*"]
    assert labels(rows)['""'][:1] == (['""*'] if side == "right" else ['*""'])


def test_values_of_a_mask_that_are_numbers_are_in_their_order(engines: Any) -> None:
    rows = build_on_both(engines, "INTEGER", [-13, -12, 5, 41, 40, 120], mask="right")
    assert [row["l0"] for row in rows] == ["-13", "-12", "120", "40", "41", "5"]


def test_masks_of_numbers_and_uuids(engines: Any) -> None:
    rows = build_on_both(engines, "INTEGER", [12345, -7, 12399, 0], mask="right")
    assert labels(rows)["12345"] == ["1234*", "123**", "12***", "1****", "*"]
    rows = build_on_both(engines, "UUID", ["00000000-0000-0000-0000-00000000000a"], mask="left")
    assert len(labels(rows)["00000000-0000-0000-0000-00000000000a"]) == 36


def test_a_mask_of_a_very_long_value_is_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match=r"1048576 characters.*at most 64.*csv, mapping or suppress"):
        build(engine, "TEXT", ["x" * 2**20, "y"], mask="right")


# --- dates


def expected_dates(day: datetime.date) -> dict[str, str]:
    week = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{week.year:04}-W{week.week:02}",
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
        "decade": f"{day.year // 10 * 10:04}s",
    }


@SETTINGS
@given(
    type_name=st.sampled_from(["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"]),
    values=st.sets(st.datetimes(datetime.datetime(1, 1, 3), datetime.datetime(9998, 12, 30)), max_size=8),
    spec=st.one_of(
        st.sets(st.sampled_from(["day", "month", "quarter", "year", "decade"]), min_size=1),
        st.just({"week"}),
        st.just({"day", "week"}),
    ),
)
def test_dates_fall_into_their_periods(
    engines: Any, type_name: str, values: set[datetime.datetime], spec: set[str]
) -> None:
    order = [level for level in ("day", "week", "month", "quarter", "year", "decade") if level in spec]
    moments: list[Any] = sorted({value.date() for value in values} if type_name == "DATE" else values)
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    stored = [moment.replace(tzinfo=zone) for moment in moments] if type_name.endswith("ZONE") else moments
    rows = build_on_both(engines, type_name, stored, date=tuple(order))
    for engine in engines:
        assert_labels_without_the_table(engine, Hierarchy(date=tuple(order)))
    for row, moment in zip(rows, stored, strict=True):
        utc = moment.astimezone(datetime.UTC) if type_name.endswith("ZONE") else moment
        day = utc if type_name == "DATE" else utc.date()
        for level, name in enumerate(order, start=1):
            assert row[f"l{level}"] == expected_dates(day)[name]
            assert row[f"lower{level}"] <= day.isoformat() < row[f"upper{level}"]
            if level > 1:
                assert row[f"lower{level}"] <= row[f"lower{level - 1}"]
                assert row[f"upper{level}"] >= row[f"upper{level - 1}"]


def test_dates_outside_four_digit_years(engines: Any) -> None:
    values = ["infinity", "-infinity", "0001-01-01", "0009-12-31", "9999-12-31", "10000-01-01"]
    rows = build_on_both(engines, "DATE", values, date=("month", "decade"))
    for engine in engines:
        assert_labels_without_the_table(engine, Hierarchy(date=("month", "decade")))
    assert [row["l2"] for row in rows] == ["before 0001", "0000s", "0000s", "9990s", "after 9999", "after 9999"]
    assert [row["lower2"] for row in rows][1:3] == ["0001-01-01", "0001-01-01"]
    assert [row["upper2"] for row in rows][1:4] == ["0010-01-01", "0010-01-01", "10000-01-01"]


def test_timestamps_of_nanoseconds(engines: Any) -> None:
    duckdb, _ = engines
    values = [datetime.datetime(1969, 12, 31, 23, 59), datetime.datetime(2262, 4, 11)]
    rows = content(duckdb, build(duckdb, "TIMESTAMP_NS", values, date=("month",)))
    assert [row["l1"] for row in rows] == ["1969-12", "2262-04"]


def test_weeks_do_not_nest_in_months(engine: Engine) -> None:
    days = ["2020-01-31", "2020-02-01", "2020-03-10"]
    with pytest.raises(PolicyError, match=r"two months.*leave week or month out.*concerns 1 weeks"):
        build(engine, "DATE", days, date=("day", "week", "month"))
    with pytest.raises(PolicyError, match=r"two decades.*concerns 0 weeks"):
        build(engine, "DATE", days, date=("week", "decade"))
    assert left_behind(engine) == []


def test_kinds_that_do_not_fit_the_column_are_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match="'the \"column\"': intervals need a numeric column"):
        build(engine, "TEXT", ["a"], intervals=[5])
    with pytest.raises(PolicyError, match="date needs a date or timestamp"):
        build(engine, "INTEGER", [1], date=("year",))
