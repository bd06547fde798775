"""Numbers with a decimal comma or grouped thousands, and moments in all their forms: read, or said how to read."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import anonymize, verify_release
from sqlanon.api.calls import draft, draft_policy
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.read_options import CUSTOMARY, THOUSANDS, FileReading, NumberMarks, ReadOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.connecting import read_to_draft
from sqlanon.policy.loading import build_policy, load_policy, parse_source
from sqlanon.sql import Relation, Statement
from tests.cli.support import call
from tests.random_cases import many
from tests.run_support import OPTIONS, run

pytestmark = pytest.mark.slow

UTC = datetime.UTC


@pytest.fixture(scope="module")
def memory() -> Iterator[DuckDBEngine]:
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        yield engine


def write(path: Path, fields: list[str]) -> Path:
    path.write_text("who;x\n" + "".join(f"p{'ab'[n % 2] * n};{field}\n" for n, field in enumerate(fields)))
    return path


def values(engine: DuckDBEngine, reading: FileReading) -> list[Any]:
    return [row[1] for row in engine.fetch(Statement("test", f"SELECT * FROM {reading.relation}"))]


def read(engine: DuckDBEngine, path: Path, **options: Any) -> FileReading:
    return engine.read_file(Relation("t"), str(path), ReadOptions(delimiter=";", header=True, **options))


GERMAN = {"decimal": ",", "thousands": "."}


@pytest.mark.parametrize(
    ("fields", "marks", "type_", "expected"),
    [
        (["1,05", "2,50"], {"decimal": ","}, "DECIMAL(18,2)", [Decimal("1.05"), Decimal("2.50")]),
        (["1,5", "-2,25"], {"decimal": ","}, "DOUBLE", [1.5, -2.25]),
        (["4.210,50", "950,00"], GERMAN, "DECIMAL(18,2)", [Decimal("4210.50"), Decimal("950.00")]),
        (["-1.234", "950", "1.234.567"], GERMAN, "BIGINT", [-1234, 950, 1234567]),
        (["1'234.50", "12.00"], {"thousands": "'"}, "DECIMAL(18,2)", [Decimal("1234.50"), Decimal("12.00")]),
        (["1\u202f234,5", "2,5"], {"decimal": ",", "thousands": "\u202f"}, "DOUBLE", [1234.5, 2.5]),
        (["1 234", "2"], {"thousands": " "}, "BIGINT", [1234, 2]),
        (["1,234", "12"], {"thousands": ","}, "BIGINT", [1234, 12]),
        (["5", "1,5"], {"decimal": ","}, "VARCHAR", ["5", "1,5"]),
        (["1.5", "2.5"], GERMAN, "VARCHAR", ["1.5", "2.5"]),
        (["1.2345", "12.34"], GERMAN, "VARCHAR", ["1.2345", "12.34"]),
        (["1234.567", "2"], GERMAN, "VARCHAR", ["1234.567", "2"]),
        (["12.34.567", "2"], GERMAN, "VARCHAR", ["12.34.567", "2"]),
        (["1,5 %", "2,5 %"], GERMAN, "VARCHAR", ["1,5 %", "2,5 %"]),
        (["1,05 €", "2,00 €"], GERMAN, "VARCHAR", ["1,05 €", "2,00 €"]),
        (["00123", "4"], GERMAN, "VARCHAR", ["00123", "4"]),
        (["2020-01-31", ""], GERMAN, "DATE", [datetime.date(2020, 1, 31), None]),
    ],
)
def test_numbers_are_read_by_their_marks(
    memory: DuckDBEngine, tmp_path: Path, fields: list[str], marks: dict[str, str], type_: str, expected: list[Any]
) -> None:
    reading = read(memory, write(tmp_path / "c.csv", fields), **marks)
    assert (reading.columns[1].type, values(memory, reading)) == (type_, expected)
    is_marked = type_ != "VARCHAR" and any(mark in "".join(fields) for mark in marks.values())
    assert ("written with a point" in reading.columns[1].reason) == is_marked


def test_a_type_of_the_policy_is_read_by_the_marks(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "c.csv", ["5", " 1.234,5", "+2"])
    reading = read(memory, path, **GERMAN, types={"x": "double"})
    assert values(memory, reading) == [5.0, 1234.5, 2.0]
    assert "3 of its 3 values are written otherwise" in reading.columns[1].reason
    assert values(memory, read(memory, path, **GERMAN, types={"x": "decimal(9,1)"}))[1] == Decimal("1234.5")
    for kind in ("integer", "decimal(9,0)", "date"):
        with pytest.raises(PolicyError, match=r"source\.types"):
            read(memory, path, **GERMAN, types={"x": kind})
    with pytest.raises(PolicyError, match=r"2 of the 3 .*source\.decimal, source\.thousands"):
        read(memory, write(tmp_path / "d.csv", ["5", "1,5", "2.000,5"]), types={"x": "double"})


@settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.decimals(-(10**9), 10**9, places=2, allow_nan=False), min_size=1), st.sampled_from(CUSTOMARY))
def test_numbers_come_out_as_they_were_written(
    memory: DuckDBEngine, tmp_path: Path, numbers: list[Decimal], marks: NumberMarks
) -> None:
    written = [f"{n:,.2f}" if marks.thousands else f"{n:.2f}" for n in numbers]
    swap = str.maketrans({",": marks.thousands or "", ".": marks.decimal})
    path = write(tmp_path / "c.csv", [text.translate(swap) for text in written])
    reading = read(memory, path, decimal=marks.decimal, thousands=marks.thousands)
    assert [str(one) for one in values(memory, reading)] == [f"{n:.2f}" for n in numbers]


@pytest.mark.parametrize(
    ("fields", "hint", "drafted"),
    [
        (["1,05", "2,50"], 'numbers with decimal: ","', {"decimal": ","}),
        (["4.210,50", "950,00"], 'decimal: "," and thousands: "."', GERMAN),
        (["1.234.567", "5"], 'decimal: "," and thousands: "."', GERMAN),
        (["1,5", "2,25", "3"], 'decimal: ","', {"decimal": ",", "types": {"x": "double"}}),
        (["1\u00a0234", "2"], "(no-break space)", {"thousands": "\u00a0"}),
        (["1,050", "2,300"], 'decimal: "," or thousands: ","', {}),
        (["1,05", "k.A.", "2,5"], '1 of its 3 values are no numbers with decimal: ","', {}),
        ([" 12", " 13"], "source.types (integer)", {"types": {"x": "integer"}}),
        (["1", "1.5"], "source.types (double)", {}),
        (["192.168.100.200", "10.100.200.30"], None, {}),
        (["1,5 %", "2 %"], "write plain ones into the file", {}),
        (["($1,234.50)", "$3.00", "5"], "write plain ones into the file", {}),
        (["1.234,50 €", "-3,00 €"], "write plain ones into the file", {}),
        (["1,5", "2.5"], None, {}),
        (["ABC 123", "DEF 456"], None, {}),
        (["", "%"], None, {}),
        ([".87", "1.23"], "source.types (double)", {}),
        (["+0.5", "-.5"], "source.types (double)", {}),
        (["+3", "-2", "0"], "source.types (integer)", {"types": {"x": "integer"}}),
        (["+4915112345678", "+4930123456"], None, {}),
        (["Jan 2010", "Feb 2011"], "%b %Y: source.dates", {}),
        (["March-10", "April-11"], None, {}),
        (["Jan-10", "Feb-11"], "%b-%y: source.dates", {}),
        (["03.04.1980", "31.12.1999"], "%d.%m.%Y: source.dates", {"dates": ("%d.%m.%Y",)}),
        (["03.04.80", "31.12.99"], "%d.%m.%y: source.dates", {}),
        (["03/04/2024", "05/06/2024"], "%d/%m/%Y and %m/%d/%Y: source.dates", {}),
        (["31.12.1999 10:30"], "%d.%m.%Y %H:%M: source.dates", {"dates": ("%d.%m.%Y %H:%M",)}),
        (["31-Jan-2020"], "%d-%b-%Y: source.dates", {"dates": ("%d-%b-%Y",)}),
        (["2020-07", "2019-12"], "%Y-%m: source.dates", {}),
        (["07/2020", "12/2019"], "%m/%Y: source.dates", {}),
        (["12 Mar 2020", "1 Apr 2021"], "%d %b %Y: source.dates", {"dates": ("%d %b %Y",)}),
        (["12. March 2020", "13. April 2020"], "%d. %B %Y: source.dates", {"dates": ("%d. %B %Y",)}),
        (["March 12 2020", "April 3 2021"], "%B %d %Y: source.dates", {"dates": ("%B %d %Y",)}),
        (["12MAR2020", "13APR2020"], "%d%b%Y: source.dates", {"dates": ("%d%b%Y",)}),
        (["12 Mar 20", "13 Apr 21"], "%d %b %y: source.dates", {}),
        (["Thursday, March 12, 2020"], "%A, %B %d, %Y: source.dates", {"dates": ("%A, %B %d, %Y",)}),
        (["12 Mar 2020 10:30"], "%d %b %Y %H:%M: source.dates", {"dates": ("%d %b %Y %H:%M",)}),
        (["March 2020", "April 2021"], "%B %Y: source.dates", {}),
        (["2020-W07", "2020-W53"], "%G-W%V: source.dates", {}),
        (["2020-W07-1", "2020-W08-3"], "%G-W%V-%u: source.dates", {}),
        (["2020-Q1", "2021-Q4"], "quarters, which no format of dates reads", {}),
        (["Q1 2020", "q3 2021"], "quarters, which no format of dates reads", {}),
        (["2020Q1", "2020Q2"], "quarters, which no format of dates reads", {}),
        (["Monday", "tuesday"], "days of the week, which no format", {}),
        (["Mon", "Thu"], "days of the week, which no format", {}),
        (["Q1", "Q2"], None, {}),
        (["April", "June"], None, {}),
        (["Sunday Times", "Monday Club"], None, {}),
        (["MON-123", "TUE-456"], None, {}),
        (["X2020Q1", "X2020Q2"], None, {}),
        (["2020-X07", "2020-A1"], None, {}),
        (["W07", "W08"], None, {}),
        (["12ab345", "13cd456"], None, {}),
        (["Model 2020", "Model 2021"], None, {}),
        (["9999-Q1", "1234-Q2"], None, {}),
        (["10:30", "11:45"], "source.types (time)", {}),
        (["2020-01-01 12:00:00.123", "2020-01-01 12:00:00.120"], "(timestamp)", {"types": {"x": "timestamp"}}),
        (["2020-01-01 12:00", "2020-01-02 13:30"], "(timestamp)", {"types": {"x": "timestamp"}}),
        (["2020-01-01T12:00:00", "2020-01-01T12:00:01.5"], "(timestamp)", {"types": {"x": "timestamp"}}),
        (["2020-01-01T12:00:00+02:00", "2020-07-01T12:00Z"], "(timestamptz)", {"types": {"x": "timestamptz"}}),
        (["2020-01-01 12:00:00+0200", "2020-01-01 12:00:00.5-03:30"], "(timestamptz)", {"types": {"x": "timestamptz"}}),
        (["2020-01-01 12:00:00+00", "2020-01-01 12:00:00.25+00"], "(timestamptz)", {"types": {"x": "timestamptz"}}),
    ],
)
def test_what_would_make_more_of_a_text_is_said_and_drafted_where_it_is_the_only_way(
    memory: DuckDBEngine, tmp_path: Path, fields: list[str], hint: str | None, drafted: dict[str, Any]
) -> None:
    path = write(tmp_path / "c.csv", fields)
    told = read(memory, path)
    assert (told.columns[1].hint is None) == (hint is None)
    assert (hint or "text") in told.columns[1].reason
    reading = read_to_draft(memory, str(path), ReadOptions(delimiter=";", header=True))
    shown = {key: value for key, value in reading.options.given().items() if key not in ("delimiter", "header")}
    assert shown == drafted
    assert (reading.columns[1].type == "VARCHAR") == (not drafted)


NAMED_DAYS = (
    *("%d-%b-%Y", "%d %b %Y", "%d. %b %Y", "%b %d, %Y", "%b %d %Y", "%Y-%b-%d", "%Y %b %d"),
    *("%d-%B-%Y", "%d %B %Y", "%d. %B %Y", "%B %d, %Y", "%B %d %Y", "%Y-%B-%d", "%Y %B %d"),
    *("%d-%b-%y", "%d %b %y", "%d%b%Y"),
    *("%a, %d %b %Y", "%a, %b %d, %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)
NAMED_MOMENTS = ("%d %b %Y %H:%M", "%d %b %Y %H:%M:%S", "%a, %d %b %Y %H:%M:%S %z")
MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%m.%Y", "%m-%Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%Y-%b")
WEEKS = ("%G-W%V", "%G-W%V-%u")


def test_names_months_and_weeks_are_said_in_every_usual_form(memory: DuckDBEngine, tmp_path: Path) -> None:
    """By the formats they are read: a month is its first day, a week its Monday."""
    moments = [datetime.datetime(2020, 2, 13, 9, 5, 7, tzinfo=UTC), datetime.datetime(2021, 10, 24, 23, 59, tzinfo=UTC)]
    formats = (*NAMED_DAYS, *NAMED_MOMENTS, *MONTHS, *WEEKS)
    lines = [range(len(formats)), *([moment.strftime(form) for form in formats] for moment in moments)]
    (tmp_path / "c.csv").write_text(
        "".join(";".join(f"x{it}" if line is lines[0] else str(it) for it in line) + "\n" for line in lines)
    )
    told = {form: one.hint or "" for form, one in zip(formats, read(memory, tmp_path / "c.csv").columns, strict=True)}
    assert [form for form, hint in told.items() if f"fit the dates {form}: source.dates reads" not in hint] == []
    days = [moment.date() for moment in moments]
    for form in (*NAMED_DAYS, *MONTHS, *WEEKS):
        path = write(tmp_path / "one.csv", [moment.strftime(form) for moment in moments])
        first = [day.replace(day=1) for day in days] if form in MONTHS else days
        if form == "%G-W%V":
            first = [day - datetime.timedelta(day.weekday()) for day in days]
        assert values(memory, read(memory, path, dates=(form,))) == first, form


@pytest.mark.parametrize("odd", ["soon", "2020-Q5", "Q1"])
def test_quarters_and_days_of_the_week_are_said_where_all_values_are_such(
    memory: DuckDBEngine, tmp_path: Path, odd: str
) -> None:
    for kind, usual in (("quarters", "2020-Q1"), ("days of the week", "Monday")):
        (tmp_path / "c.csv").write_text("who;x\n" + f"p;{usual}\n" * 2_100)
        assert f"its values are {kind}" in (read(memory, tmp_path / "c.csv").columns[1].hint or "")
        (tmp_path / "c.csv").write_text("who;x\n" + f"p;{usual}\n" * 2_100 + f"p;{odd}\n")
        assert read(memory, tmp_path / "c.csv").columns[1].hint is None


@pytest.mark.parametrize(
    ("values_", "said"),
    [
        (["2020-W07", "2020-W53"], "its values fit the dates %G-W%V: source.dates reads them as dates"),
        (["March 2020", "April 2021"], "its values fit the dates %B %Y: source.dates reads them as dates"),
        (["12 Mar 20", "13 Apr 21"], "its values fit the dates %d %b %y: source.dates reads them as dates"),
        (["2020-Q1", "2021-Q4"], "its values are quarters, which no format of dates reads: a hierarchy (mapping)"),
        (["Mon", "Thu"], "its values are days of the week, which no format of dates reads: a hierarchy (mapping)"),
    ],
)
def test_init_and_check_say_how_times_are_read(tmp_path: Path, values_: list[str], said: str) -> None:
    path = write(tmp_path / "c.csv", values_ * 5)
    drafted = call("init", path, "--no-try", "--delimiter", ";")
    (line,) = [line for line in drafted.stdout.splitlines() if line.startswith("  x:")]
    assert said in line
    policy = {
        "source": {"file": str(path), "delimiter": ";"},
        "release": {"file": str(tmp_path / "out.csv")},
        "catalog": {"url": f"duckdb:///{tmp_path}/c.duckdb"},
        "attributes": {"who": {"role": "omit"}, "x": {"role": "quasi-identifier"}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    (tmp_path / "policy.yml").write_text(json.dumps(policy))
    checked = call("check", tmp_path / "policy.yml")
    assert checked.exit_code == 0, checked.output
    assert "x: text; " in " ".join(checked.stdout.split())
    assert said in " ".join(checked.stdout.split())


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("2{n:03d}-Q1", "its values are quarters"),
        ("2{n:03d}-W07", "%G-W%V"),
        ("March 2{n:03d}", "%B %Y"),
        ("Q{q} 20{n:02d}", "its values are quarters"),
    ],
)
def test_dates_that_are_read_as_text_are_no_identifiers_in_silence(tmp_path: Path, form: str, said: str) -> None:
    path = write(tmp_path / "c.csv", [form.format(n=n % 100, q=n % 4 + 1) for n in range(60)])
    (line,) = [line for line in draft_policy(None, str(path), trying=False).splitlines() if line.startswith("  x:")]
    assert said in line


def test_marks_are_drafted_only_where_they_fit_all_numbers(memory: DuckDBEngine, tmp_path: Path) -> None:
    def shown(*lines: str) -> tuple[str | None, str | None]:
        (tmp_path / "c.csv").write_text("a;b\n" + "".join(line + "\n" for line in lines))
        options = read_to_draft(memory, str(tmp_path / "c.csv"), ReadOptions()).options
        return options.decimal, options.thousands

    assert shown("4.210,50;-1.234", "1,00;2.500") == (",", ".")
    assert shown("1,50;-1.234", "1,00;2.500") == (",", ".")
    assert shown("1,50;52.5", "1,00;13.4") == (None, None)
    assert shown("1,050;3,5", "2,300;4,5") == (",", None)
    assert shown("1.234,5;1 234", "2,5;5 678") == (None, None)


def test_moments_with_an_offset_are_moments(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "c.csv", ["2020-01-01T12:00:00+02:00", "2020-07-01 12:00:00.5Z"])
    moments = [
        datetime.datetime(2020, 1, 1, 10, tzinfo=UTC),
        datetime.datetime(2020, 7, 1, 12, 0, 0, 500000, tzinfo=UTC),
    ]
    assert values(memory, read(memory, path, types={"x": "timestamptz"})) == moments
    with pytest.raises(PolicyError, match="1 of the 2 values"):  # its offset would be lost
        read(memory, path, types={"x": "timestamp"})
    write(path, ["2020-01-01 12:00"])
    with pytest.raises(PolicyError, match="1 of the 1 values"):
        read(memory, path, types={"x": "timestamptz"})
    write(path, ["1.2.2020 12:00 +0100"])
    reading = read(memory, path, dates=("%d.%m.%Y %H:%M %z",))
    assert values(memory, reading) == [datetime.datetime(2020, 2, 1, 11, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"decimal": ";"}, "decimal"),
        ({"thousands": "x"}, "thousands"),
        ({"thousands": "."}, "as decimal"),
        ({"decimal": ",", "thousands": ","}, "as decimal"),
    ],
)
def test_wrong_marks_are_refused(memory: DuckDBEngine, tmp_path: Path, options: dict[str, str], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        parse_source({"file": "x.csv", **options})
    with pytest.raises(PolicyError, match=problem):
        read(memory, write(tmp_path / "c.csv", ["1"]), **options)


def test_all_marks_are_taken(memory: DuckDBEngine, tmp_path: Path) -> None:
    for mark in THOUSANDS:
        source = parse_source({"file": "x.csv", "thousands": mark, "decimal": "," if mark == "." else "."})
        reading = read(memory, write(tmp_path / "c.csv", [f"1{mark}000"]), decimal=source.decimal, thousands=mark)
        assert reading.columns[1].type == "BIGINT"


def test_a_german_file_without_names_becomes_a_verified_release(tmp_path: Path) -> None:
    days = [f"{1 + n % 28:02d}.{1 + n % 12:02d}.{1950 + n % 40}" for n in range(120)]
    towns, pay = ["Bonn", "Köln", "Köln"], [f"{1 + n % 5}.{100 + n % 900},50" for n in range(120)]
    lines = [f"{day};{towns[n % 3]};{pay[n]};1,{60 + n % 40}" for n, day in enumerate(days)]
    (tmp_path / "leute.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    reading = ReadOptions(encoding="latin-1")
    text = draft(None, str(tmp_path / "leute.csv"), OPTIONS, relative_to=tmp_path, reading=reading, trying=False).text
    (tmp_path / "policy.yml").write_text(text + "catalog: {url: 'duckdb:///" + str(tmp_path / "c.duckdb") + "'}\n")
    policy = load_policy(tmp_path / "policy.yml")
    result = run(policy, options=OPTIONS)
    assert result.source.columns is not None
    assert [one.type for one in result.source.columns] == ["DATE", "VARCHAR", "DECIMAL(18,2)", "DECIMAL(18,2)"]
    assert verify_release(policy, options=OPTIONS).satisfied
    assert anonymize(tmp_path / "leute.csv", policy).result.source.rows == 120


def test_a_kept_number_is_written_with_a_point_and_all_its_digits(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age;pay;note\n30;4.210,50;1,5 %\n30;950,00;x\n")
    policy = {
        "source": {"file": str(tmp_path / "in.csv"), **GERMAN},
        "attributes": {
            "age": {"role": "quasi-identifier"},
            "pay": {"role": "insensitive"},
            "note": {"role": "insensitive"},
        },
        "privacy": [{"model": "k-anonymity", "k": 2}],
        "release": {"file": str(tmp_path / "out.csv")},
        "catalog": {"url": f"duckdb:///{tmp_path}/c.duckdb"},
    }
    run(build_policy(policy), options=OPTIONS)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert sorted(line[1:] for line in csv.reader(file))[:2] == [["4210.50", "1,5 %"], ["950.00", "x"]]


def test_a_column_that_lacks_a_hint_is_no_identifier_in_silence(tmp_path: Path) -> None:
    dates = [f"{1 + n % 9:02d}/{1 + n // 9:02d}/2024" for n in range(80)]
    path = write(tmp_path / "c.csv", dates)
    text = draft(None, str(path), OPTIONS, trying=False).text
    (line,) = [line for line in text.splitlines() if line.startswith("  x: ")]
    assert "identifier" in line
    assert "read as text; its values fit the dates %d/%m/%Y and %m/%d/%Y: source.dates reads them as dates" in line
