"""Releases as views that one can compute with: what SQL reads of labels is what `read_labels` reads of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sqlanon.api.labels.parsing import LabelKind, parse_label
from tests.cli.support import call
from tests.random_cases import many
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

COLUMNS = {
    "i": "INTEGER",
    "n": "DECIMAL(9,2)",
    "f": "DOUBLE PRECISION",
    "d": "DATE",
    "moment": "TIMESTAMP",
    "z": "TIMESTAMP WITH TIME ZONE",
    "w": "INTEGER",
    "p": "DATE",
    "wk": "DATE",
    "code": "TEXT",
    "name": "TEXT",
}
KINDS: dict[str, LabelKind] = {
    **dict.fromkeys(("i", "n", "f", "w"), "number"),
    **dict.fromkeys(("d", "p", "wk"), "date"),
    **dict.fromkeys(("moment", "z"), "timestamp"),
}
ROLES: dict[str, Any] = {
    **dict.fromkeys(("i", "n", "f", "d", "moment", "z", "name"), "quasi-identifier"),
    "w": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20, 100], "origin": -3}, "top": 60},
    "p": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "quarter", "year", "decade"]}},
    "wk": {"role": "quasi-identifier", "hierarchy": {"date": ["week"]}},
    "code": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
}
STARTS = datetime(1969, 12, 28, 23, 59, 58)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.sampled_from([-(2**31), -7, -1, 0, 3, 2**31 - 1]),
    "n": st.sampled_from([Decimal(n) for n in ("-9999999.99", "-0.05", "0", "1.10", "77.7")]),
    "f": st.sampled_from([-1.5e-7, -2.0, 0.0, 0.1, 1e15, 2.5e20, 1e300, float("inf"), float("-inf")]),
    "d": st.sampled_from([date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]),
    "moment": st.sampled_from([STARTS, STARTS + timedelta(microseconds=10), STARTS + timedelta(9000, 5)]),
    "z": st.sampled_from([(STARTS + timedelta(n, microseconds=n)).replace(tzinfo=UTC) for n in (0, 1, 9000)]),
    "w": st.integers(-9, 99),
    "p": st.sampled_from([date(1, 1, 1), date(2020, 12, 31), date(2024, 2, 29), date(9999, 6, 1), date(1999, 12, 31)]),
    "wk": st.sampled_from([date(1, 1, 1), date(2020, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]),
    "code": st.sampled_from(["10", "11", "29"]),
    "name": st.sampled_from(["NULL", "[1-2]", "*", "7"]),
}
SEARCHES: tuple[dict[str, Any], ...] = (
    {"ranges": "observed"},
    {"ranges": "cuts"},
    {"algorithm": {"name": "datafly"}, "suppression": 0.5, "suppressed": {"star": "unprotected"}},
)


def view_of(database: Database, run: str, table: str, *more: str) -> str:
    """The view of a run's labels, made; its name."""
    made = call("export", run, "--as", "labels", "--name", f"{table}_v", "--url", database.url, *more)
    assert made.exit_code == 0, made.stderr
    database.sql(made.stdout.rstrip().removesuffix(";"))
    return f"{table}_v"


def plain(value: Any, kind: LabelKind) -> Any:
    """A value as `read_labels` gives it."""
    if value is None or kind == "number":
        return None if value is None else float(value)
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def agrees(database: Database, view: str, names: list[str]) -> None:
    """Every row of the view says what its labels say."""
    for name in names:
        kind = KINDS[name]
        for label, low, high in database.sql(f'SELECT "{name}", "{name}_min", "{name}_max" FROM {view}'):
            region = parse_label(label, kind)
            assert (plain(low, kind), plain(high, kind)) == (region.low, region.high), (name, label)


@settings(
    max_examples=many(2),
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
@pytest.mark.parametrize("search", range(len(SEARCHES)))
def test_the_view_says_what_read_labels_says(
    databases: tuple[Database, Database], data: st.DataObject, search: int
) -> None:
    shown = [name for name in COLUMNS if search < 2 or name in ("w", "p", "wk", "code")]
    cells = st.tuples(*(st.one_of(st.none(), VALUES[name]) if name != "code" else VALUES[name] for name in shown))
    rows = data.draw(st.lists(cells, min_size=4, max_size=25))
    for database in databases:
        table = database.create({name: COLUMNS[name] for name in shown}, rows)
        run = anonymize(database.policy(table, {name: ROLES[name] for name in shown}, **SEARCHES[search])).run
        view = view_of(database, run, table)
        read = [name for name in shown if name in KINDS]
        added = [f"{name}_{end}" for name in read for end in ("min", "max")]
        assert [name for name, _ in database.columns(view)] == [*shown, *added]
        assert sorted(database.sql(f"SELECT {', '.join(shown)} FROM {view}"), key=repr) == sorted(
            database.sql(f"SELECT * FROM {table}_r"), key=repr
        )
        agrees(database, view, read)
        database.sql(f"DROP VIEW {view}")


LABELS = {
    "i": ["*", None, "NULL", "-5", "[-5--1]", "{NULL, -5--1}", "{NULL, 7}", "[*--3]", "[3-*]", "[*-*]", "{NULL, *-*}"],
    "n": ["[-0.05-1.1]", "{NULL, *--9999999.99}", "77.7"],
    "f": ["[-1.5e-07-2.5e+20]", "{NULL, 1e-300-1e+300}", "[-Infinity-Infinity]", "-2.5e+20"],
    "d": ["0001-01-01", "[2024-02-29-9999-12-31]", "{NULL, *-1969-12-31}"],
    "moment": ["[1969-12-28 23:59:58-2024-02-29 00:00:00.000001]", "2024-02-29 10:00:00.5"],
    "z": ["[1969-12-28 23:59:58+00-*]", "{NULL, 2024-02-29 10:00:00.5+00}"],
    "w": ["[-3-2)", "[60-*]", "[*-10)", "7", "[2147483640-2147483650)"],
    "p": ["0000s", "9990s", "2020s", "2024", "9999", "2024-Q4", "9999-Q4", "2024-12", "2020-W53", "2024-02-29"],
}


@pytest.mark.either_engine
def test_labels_of_every_form_are_read(database: Database) -> None:
    table = database.create(
        COLUMNS, [(1, 1, 1, "2024-01-01", *["2024-01-01 00:00:00"] * 2, 1, "2024-01-01", "2024-01-01", "11", "a")] * 3
    )
    run = anonymize(database.policy(table, ROLES)).run
    longest = max(map(len, LABELS.values()))
    padded = {name: (LABELS.get(name, []) + ["*"] * longest)[:longest] for name in COLUMNS}
    others = database.create(dict.fromkeys(COLUMNS, "TEXT"), list(zip(*padded.values(), strict=True)))
    view = view_of(database, run, table, "--source", others)
    agrees(database, view, list(KINDS))
    types = dict(database.columns(view))
    own = dict(database.columns(table))
    assert {name: types[f"{name}_min"] for name in KINDS if name != "w"} == {
        name: own[name] for name in KINDS if name != "w"
    }
    assert database.sql(f"SELECT count(*) FROM {view} WHERE i_max < 0") == [(4,)]


@pytest.mark.either_engine
def test_a_day_of_timestamps_reaches_to_the_next(database: Database) -> None:
    table = database.create({"moment": "TIMESTAMP"}, [(f"2024-02-29 0{n}:00:00",) for n in range(6)])
    roles = {"moment": {"role": "quasi-identifier", "hierarchy": {"date": ["day", "month"]}}}
    view = view_of(database, anonymize(database.policy(table, roles, algorithm={"name": "optimal"})).run, table)
    assert set(database.sql(f"SELECT * FROM {view}")) == {
        ("2024-02-29", datetime(2024, 2, 29), datetime(2024, 3, 1)),
    }
    region = parse_label("2024-02-29", "timestamp")
    assert (region.low, region.high) == (datetime(2024, 2, 29), datetime(2024, 3, 1))


@pytest.mark.either_engine
def test_what_cannot_be_read_is_refused_and_no_cell_is_in_the_statement(database: Database) -> None:
    rows = [(700_000 + n, "secret" if n else "x") for n in range(4)]
    table = database.create({"age": "INTEGER", "AGE_max": "TEXT"}, rows)
    colliding = anonymize(database.policy(table, {"age": "quasi-identifier", "AGE_max": "sensitive"})).run
    export = ("--as", "labels", "--url", database.url)
    refused = call("export", colliding, *export, "--name", "v")
    assert (refused.exit_code, "'age_max' already" in refused.stderr) == (2, True)
    assert call("export", colliding, *export).exit_code == 2
    texts = database.create({"t": "TEXT"}, [(text,) for _, text in rows])
    nothing = call("export", anonymize(database.policy(texts, {"t": "quasi-identifier"})).run, *export, "--name", "v")
    assert (nothing.exit_code, "no labels of numbers or dates" in nothing.stderr) == (2, True)
    numbers = database.create({"age": "INTEGER"}, [(number,) for number, _ in rows])
    run = anonymize(database.policy(numbers, {"age": "quasi-identifier"}, ranges="cuts")).run
    statement = call("export", run, *export, "--name", "v").stdout
    assert "CREATE VIEW" in statement
    assert "70000" not in statement
