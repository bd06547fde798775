"""Shifted dates: all of a person moved by one secret number of days, the same on both engines as by Python."""

from __future__ import annotations

import datetime
import hashlib
import hmac
from collections import Counter
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.masking.verify import check_masked
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from tests.masking_support import mask, masked, masking_policy
from tests.run_support import Database

KEY = "a key of more than sixteen bytes"
WHO = 'Wh"o né'
SHIFTED = {"role": "insensitive", "show": "shifted", "key": "${SQLANON_TEST_KEY}", "person": WHO, "days": 40}
COLUMNS = {WHO: "VARCHAR(20)", "day": "DATE", "at": "TIMESTAMP", "seen": "TIMESTAMP WITH TIME ZONE", "n": "INTEGER"}
ROLES: dict[str, Any] = {WHO: "identifier", "day": SHIFTED, "at": SHIFTED, "seen": SHIFTED, "n": "insensitive"}
DAY, AT = datetime.date(2024, 2, 29), datetime.datetime(2024, 3, 31, 1, 30, 0, 123456)
SEEN = datetime.datetime(2024, 10, 27, 0, 30, tzinfo=datetime.UTC)
ROWS: list[tuple[Any, ...]] = [
    ("ann", DAY, AT, SEEN, 1),
    ("ann", DAY + datetime.timedelta(400), None, SEEN, 2),
    ("", DAY, AT, None, 3),
    ("Ünï 😀", None, AT, SEEN, 4),
    (None, DAY, AT, SEEN, 5),
    ("bob", datetime.date(1, 2, 10), datetime.datetime(9999, 11, 20), SEEN, 6),
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", KEY)


def days_of(person: str, most: int = 40, key: str = KEY) -> int:
    """Python's opinion of the days by which a person's dates are moved."""
    number = int(hmac.new(key.encode(), f"shifted: {person}".encode(), hashlib.sha256).hexdigest()[:15], 16)
    place = number % (2 * most)
    return place - most if place < most else place - most + 1


def expected(row: tuple[Any, ...], most: int = 40) -> tuple[Any, ...]:
    who, *dates, n = row
    moved = [None if who is None or one is None else one + datetime.timedelta(days_of(who, most)) for one in dates]
    return (*moved, n)


def in_utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        one.astimezone(datetime.UTC) if isinstance(one, datetime.datetime) and one.tzinfo else one for one in row
    )


def test_dates_of_a_person_are_moved_by_one_number_of_days(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    rows = masked(database, table, ROLES)
    assert Counter(map(in_utc, rows)) == Counter(map(expected, ROWS))
    assert database.columns(f"{table}_r") == [one for one in database.columns(table) if one[0] != WHO]
    assert database.leftovers() == []


def test_intervals_are_exact_where_the_session_has_another_zone(database: Database) -> None:
    database.sql("SET TimeZone = 'Europe/Berlin'")
    moments = [SEEN + datetime.timedelta(hours=12 * n) for n in range(20)]
    rows = [("ann", DAY, AT, moment, n) for n, moment in enumerate(moments)]
    shown = {row[-1]: in_utc(row)[2] for row in masked(database, database.create(COLUMNS, rows), ROLES)}
    assert all(shown[n] - shown[0] == moments[n] - moments[0] for n in shown)


@pytest.mark.parametrize("show", ["pseudonym", "surrogate"])
def test_the_person_may_be_shown_beside(database: Database, show: str) -> None:
    who = {"role": "identifier", "show": show} | ({"key": "${SQLANON_TEST_KEY}"} if show == "pseudonym" else {})
    table = database.create(COLUMNS, ROWS)
    rows = [in_utc(row)[1:] for row in masked(database, table, ROLES | {WHO: who})]
    assert Counter(rows) == Counter(map(expected, ROWS))


def test_one_key_moves_a_person_alike_in_all_tables(database: Database) -> None:
    first = database.create({WHO: "VARCHAR(9)", "day": "DATE"}, [("7", DAY)])
    second = database.create({WHO: "INTEGER", "at": "TIMESTAMP"}, [(7, AT)])
    ((day,),) = masked(database, first, {WHO: "identifier", "day": SHIFTED})
    ((at,),) = masked(database, second, {WHO: "identifier", "at": SHIFTED})
    assert day - DAY == at - AT == datetime.timedelta(days_of("7"))


def test_no_person_stays_and_every_other_number_of_days_comes(database: Database) -> None:
    rows = [(f"p{n}", DAY) for n in range(400)]
    table = database.create({WHO: "VARCHAR(9)", "day": "DATE"}, rows)
    roles = {WHO: "identifier", "day": SHIFTED | {"days": 2}}
    assert {(day - DAY).days for (day,) in masked(database, table, roles)} == {-2, -1, 1, 2}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", None]),
            st.dates(datetime.date(5, 1, 1), datetime.date(9990, 1, 1)),
            st.datetimes(datetime.datetime(5, 1, 1), datetime.datetime(9990, 1, 1)),
        ),
        min_size=1,
        max_size=8,
    ),
    most=st.integers(1, 1000),
)
def test_any_dates_are_moved_as_by_python(database: Database, rows: list[Any], most: int) -> None:
    table = database.create(
        {WHO: "VARCHAR(9)", "day": "DATE", "at": "TIMESTAMP", "n": "INTEGER"}, [(*r, 1) for r in rows]
    )
    roles = {WHO: "identifier", "n": "insensitive"} | dict.fromkeys(("day", "at"), SHIFTED | {"days": most})
    shown = masked(database, table, {name: roles[name] for name in (WHO, "day", "at", "n")})
    assert Counter(shown) == Counter(expected((*row, 1), most) for row in rows)


def test_who_is_singled_out_by_intervals_is_measured(database: Database) -> None:
    dates = {"a": [0, 5], "b": [0, 5], "c": [0, 9], "d": [0, 70], "e": [3], "f": [8]}
    rows = [(who, DAY + datetime.timedelta(day)) for who, days in dates.items() for day in days]
    table = database.create({WHO: "VARCHAR(9)", "day": "DATE"}, rows)
    warnings = " ".join(mask(masking_policy(database, table, {WHO: "identifier", "day": SHIFTED})).warnings)
    by = {band: [tuple((day - min(days)) // band for day in days) for days in dates.values()] for band in (1, 30)}
    alone = {band: sum(Counter(all_of)[one] == 1 for one in all_of) for band, all_of in by.items()}
    assert (alone[1], alone[30]) == (2, 1)
    assert (
        "Of 6 persons with dates, 2 (33.3%) are alone with their intervals in days, and 1 (16.7%) in bands" in warnings
    )
    assert "keeps about the season" in warnings
    assert [len(list(of)) for _, of in groupby(sorted(rows), key=lambda row: row[0])] == [2, 2, 2, 2, 1, 1]


BEYOND = {
    "the first days": ("DATE", "0001-01-20"),
    "the last days": ("DATE", "9999-12-01"),
    "infinity": ("DATE", "infinity"),
    "before all": ("TIMESTAMP", "-infinity"),
    "the last moments": ("TIMESTAMP WITH TIME ZONE", "9999-12-30 12:00:00+00"),
}


@pytest.mark.parametrize("case", BEYOND)
def test_dates_at_the_ends_of_the_calendar_are_refused_before_work(database: Database, case: str) -> None:
    type_, value = BEYOND[case]
    table = database.create({WHO: "VARCHAR(9)", "day": type_}, [("a", None)])
    database.sql(f"INSERT INTO {table} VALUES ('b', '{value}')")
    with pytest.raises(PolicyError, match=r"attributes\.day: 1 row.* out of the calendar"):
        masked(database, table, {WHO: "identifier", "day": SHIFTED})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no days": ({"day": {k: v for k, v in SHIFTED.items() if k != "days"}}, "needs person"),
    "no key": ({"day": {k: v for k, v in SHIFTED.items() if k != "key"}}, "no key"),
    "another role": ({"day": SHIFTED | {"role": "quasi-identifier"}}, "which is for columns that are kept"),
    "days of others": ({"day": {"role": "insensitive", "days": 3}}, "only show: shifted"),
    "0 days": ({"day": SHIFTED | {"days": 0}}, "days"),
    "no such person": ({"day": SHIFTED | {"person": "x"}}, "'x' is no attribute with role identifier"),
    "a person who is kept": ({"day": SHIFTED, WHO: {"role": "insensitive"}}, "is no attribute with role identifier"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    attributes, message = WRONG[case]
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {WHO: {"role": "identifier"}} | attributes,
        "algorithm": {"name": "masking"},
    }
    with pytest.raises(PolicyError, match=message):
        build_policy(data)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal", "microaggregation"])
def test_other_algorithms_refuse_it_by_name(algorithm: str) -> None:
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {WHO: {"role": "identifier"}, "day": SHIFTED, "age": {"role": "quasi-identifier"}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
        "algorithm": {"name": algorithm},
    }
    with pytest.raises(PolicyError, match=f"shifted is for algorithm: masking; {algorithm}"):
        build_policy(data)


def test_numbers_are_no_dates(database: Database) -> None:
    table = database.create({WHO: "VARCHAR(9)", "day": "INTEGER"}, [("a", 1)])
    with pytest.raises(PolicyError, match="show: shifted is for dates and moments"):
        masked(database, table, {WHO: "identifier", "day": SHIFTED})


TAMPERED = [
    "UPDATE {rows} SET day = day + 1 WHERE n = 1",
    "UPDATE {rows} SET \"at\" = '2024-03-31 01:30:00' WHERE n = 3",
]


@pytest.mark.parametrize("statement", TAMPERED)
def test_dates_that_were_moved_otherwise_are_not_published(
    database: Database, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tampered(engine: Any, workspace: Any, plan: Any, figures: Any, staged: Any, shifts: Any) -> Any:
        engine.execute(Statement("tamper", Markup(statement.format(rows=staged.final))))
        return check_masked(engine, workspace, plan, figures, staged, shifts)

    monkeypatch.setattr("sqlanon.methods.masking.source.check_masked", tampered)
    with pytest.raises(VerificationError, match="dates_shifted"):
        masked(database, database.create(COLUMNS, ROWS), ROLES)


@pytest.mark.parametrize("days", ["0", "41", "NULL"])
def test_shifts_that_the_policy_does_not_allow_are_not_published(
    database: Database, days: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlanon.methods.masking import source

    create = source.create_shifts

    def tampered(engine: Any, plan: Any, workspace: Any) -> Any:
        shifts = create(engine, plan, workspace)
        engine.execute(Statement("tamper", Markup(f"UPDATE {shifts[0].table} SET days = {days} WHERE value = 'ann'")))
        return shifts

    monkeypatch.setattr(source, "create_shifts", tampered)
    with pytest.raises(VerificationError, match="dates_shifted"):
        masked(database, database.create(COLUMNS, ROWS), ROLES)


def test_keys_and_shifts_are_in_no_statement(database: Database) -> None:
    result = mask(masking_policy(database, database.create(COLUMNS, ROWS), ROLES))
    texts = [repr(result), *map(str, database.sql("SELECT * FROM sqlanon.steps"))]
    assert any("create_shifts" in text for text in texts)
    assert not [text for text in texts if KEY in text or KEY.encode().hex() in text]
