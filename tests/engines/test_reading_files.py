"""Files as sources: what is read is what the file says, byte for byte, or the file is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.engines.columns import Kind
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from tests.cli.support import call
from tests.random_cases import many
from tests.run_support import OPTIONS, run

pytestmark = pytest.mark.slow


@pytest.fixture
def memory() -> Iterator[DuckDBEngine]:
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        yield engine


def read(engine: DuckDBEngine, path: Path | str, **options: Any) -> FileReading:
    return engine.read_file(Relation("t"), str(path), ReadOptions(**options))


def rows(engine: DuckDBEngine, reading: FileReading) -> list[tuple[Any, ...]]:
    return engine.fetch(Statement("test", f"SELECT * FROM {reading.relation}"))


def types(reading: FileReading) -> list[str]:
    return [column.type for column in reading.columns]


def column(engine: DuckDBEngine, path: Path, fields: list[str], **options: Any) -> tuple[str, list[Any]]:
    """The type and the values of a column that holds these fields."""
    path.write_text("x,n\n" + "".join(f"{field},{n}\n" for n, field in enumerate(fields)))
    reading = read(engine, path, **options)
    return reading.columns[0].type, [row[0] for row in rows(engine, reading)]


@pytest.mark.parametrize(
    ("fields", "type_"),
    [
        (["1", "20", "-3"], "BIGINT"),
        (["1", "", "3"], "BIGINT"),
        (["00123", "12345"], "VARCHAR"),
        (["+1", "2"], "VARCHAR"),
        (["-0", "1"], "VARCHAR"),
        (["1", "2.5"], "VARCHAR"),
        (["1.0", "2.5"], "DOUBLE"),
        (["1.50", "2.25"], "DECIMAL(18,2)"),
        (["1.50", "2.2"], "VARCHAR"),
        (["0.1", "12345678901234567.25"], "VARCHAR"),
        (["1e5", "2"], "VARCHAR"),
        (["NaN", "nan"], "VARCHAR"),
        (["nan", "nan"], "VARCHAR"),
        (["inf"], "VARCHAR"),
        (["9223372036854775807"], "BIGINT"),
        (["9223372036854775808"], "VARCHAR"),
        (["12345678901234567890123456789.10"], "DECIMAL(38,2)"),
        (["yes", "no"], "VARCHAR"),
        (["true", "false"], "BOOLEAN"),
        (["True", "False"], "VARCHAR"),
        (["t", "f"], "VARCHAR"),
        (["2024-02-29", "1999-12-31"], "DATE"),
        (["2024-2-9"], "VARCHAR"),
        (["03/04/2024"], "VARCHAR"),
        (["infinity"], "VARCHAR"),
        (["2024-02-29 10:00:00", "2024-02-29 10:00:00.5"], "TIMESTAMP"),
        (["2024-02-29T10:00:00"], "VARCHAR"),
        (["10:00:00"], "TIME"),
        ([" 1", "2"], "VARCHAR"),
        (["1 ", "2"], "VARCHAR"),
        (['""', "2"], "VARCHAR"),
        (["NA", "2"], "VARCHAR"),
        (["", ""], "VARCHAR"),
    ],
)
def test_a_type_is_one_that_all_values_survive(
    memory: DuckDBEngine, tmp_path: Path, fields: list[str], type_: str
) -> None:
    assert column(memory, tmp_path / "c.csv", fields)[0] == type_


def test_all_values_are_looked_at(memory: DuckDBEngine, tmp_path: Path) -> None:
    assert column(memory, tmp_path / "c.csv", ["1"] * 50_000 + ["01"])[0] == "VARCHAR"
    assert column(memory, tmp_path / "d.csv", ["1.25"] * 50_000 + ["1.500"])[0] == "VARCHAR"


def test_null_is_a_field_without_quotes(memory: DuckDBEngine, tmp_path: Path) -> None:
    fields = ["", '""', "NA", '"NA"', "null"]
    assert column(memory, tmp_path / "c.csv", fields)[1] == [None, "", "NA", "NA", "null"]
    assert column(memory, tmp_path / "c.csv", fields, null=("NA",))[1] == ["", "", None, "NA", "null"]
    assert column(memory, tmp_path / "c.csv", fields, null=("", "NA"))[1] == [None, "", None, "NA", "null"]
    assert column(memory, tmp_path / "c.csv", ["1", "NA"], null=("NA",)) == ("BIGINT", [1, None])
    assert column(memory, tmp_path / "c.csv", ["1", ""], null=()) == ("VARCHAR", ["1", ""])


def test_fields_are_as_they_are_written(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b'\xef\xbb\xbf"a ""1""",b,\r\n" x ","l1\r\nl2, ""q""",5" pipe\r\n\xc3\xa4,\t,\r\n')
    reading = read(memory, path)
    assert [one.name for one in reading.columns] == ['a "1"', "b", "column2"]
    assert rows(memory, reading) == [(" x ", 'l1\r\nl2, "q"', '5" pipe'), ("ä", "\t", None)]


def test_a_header_over_two_lines(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('"a\nb",c\n1,2\n')
    reading = read(memory, path)
    assert ([one.name for one in reading.columns], rows(memory, reading)) == (["a\nb", "c"], [(1, 2)])


@pytest.mark.parametrize(
    ("header", "delimiter"), [("a,b", ","), ("a;b", ";"), ("a\tb", "\t"), ("a|b", "|"), ('"x,y,z";b', ";"), ("a", ",")]
)
def test_the_header_shows_the_delimiter(memory: DuckDBEngine, tmp_path: Path, header: str, delimiter: str) -> None:
    path = tmp_path / "c.csv"
    path.write_text(f"{header}\n1{delimiter}2\n" if len(header) > 1 else "a\n1\n")
    assert read(memory, path).delimiter == delimiter
    path.write_text("a,b!c,d\n1,1!2,2\n")
    assert rows(memory, read(memory, path, delimiter="!")) == [("1,1", "2,2")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", "Line 3 of .* has 1 fields, and the header 2"),
        (b"a,b\n1,2\n3,4,5\n", "Line 3 of .* has 3 fields, and the header 2"),
        (b"a,b\n1,secret\n3,M\xfcller-secret\n", "Line 3 of .* is not utf-8: .*encoding: latin-1"),
        ("a,b\n1,2\n".encode("utf-16"), "is not utf-8: .*utf-16"),
        (b'a,b\n1,"x" secret\n', "Line 2 of .* has a quote"),
        (b"a,A\n1,2\n", "same name: A, a"),
        (b"", "is empty"),
        (b'"a,b\n', "is no header"),
    ],
)
def test_what_is_refused(memory: DuckDBEngine, tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(content)
    with pytest.raises(PolicyError, match=message) as failure:
        read(memory, path)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "shift-jis"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_other_encodings(memory: DuckDBEngine, tmp_path: Path, encoding: str, ending: str) -> None:
    name = "ソフト" if encoding == "shift-jis" else "Müller"
    content = f"name,n\n{name},1\n".encode(encoding)
    path = tmp_path / f"c{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert rows(memory, read(memory, path, encoding=encoding)) == [(name, 1)]


def test_bytes_that_are_not_of_the_named_encoding(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"a\nx\n\x81secret\n")
    with pytest.raises(PolicyError, match=r"Line 3 .* is not windows-1252") as failure:
        read(memory, path, encoding="windows-1252")
    assert "secret" not in str(failure.value)


def test_dates_by_a_format(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    found, values = column(memory, path, ["03/04/2024", "", "1/12/1999"], dates=("%d/%m/%Y",))
    assert (found, [str(value) for value in values]) == ("DATE", ["2024-04-03", "None", "1999-12-01"])
    assert column(memory, path, ["03/04/2024 10:30"], dates=("%d/%m/%Y", "%d/%m/%Y %H:%M"))[0] == "TIMESTAMP"
    assert column(memory, path, ["x"], dates=("%d/%m/%Y",))[0] == "VARCHAR"
    column(memory, path, ["03/04/2024", "05/06/2024"])
    (hint, *_) = read(memory, path).lines()[1:]
    assert "%d/%m/%Y and %m/%d/%Y: source.dates" in hint


@pytest.mark.parametrize(("delimiter", "name"), [(",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "'|'")])
def test_a_delimiter_is_said_in_words(memory: DuckDBEngine, tmp_path: Path, delimiter: str, name: str) -> None:
    path = tmp_path / "c.csv"
    path.write_text(f"a{delimiter}b\n1{delimiter}2\n")
    assert f"fields divided by {name}, NULL" in read(memory, path).lines()[0]


@pytest.mark.parametrize("place", [0, 60, 2_500, 4_999])
def test_every_value_counts_wherever_it_is(memory: DuckDBEngine, tmp_path: Path, place: int) -> None:
    path, numbers, dates = tmp_path / "c.csv", ["17"] * 5_000, [""] * 60 + ["03/04/2024"] * 4_940
    assert column(memory, path, numbers)[0] == "BIGINT"
    numbers[place] = "x"
    assert column(memory, path, numbers)[0] == "VARCHAR"
    assert "1 of its 5,000 values are no numbers" in str(read(memory, path).lines())
    column(memory, path, dates)
    assert "%d/%m/%Y and %m/%d/%Y: source.dates" in read(memory, path).lines()[1]
    dates[place] = "x"
    column(memory, path, dates)
    assert "source.dates" not in str(read(memory, path).lines())


def test_formats_of_dates_are_tried_where_texts_look_like_dates(memory: DuckDBEngine, tmp_path: Path) -> None:
    path, sent = tmp_path / "c.csv", list[str]()
    memory.listener = lambda statement, _seconds, _rows: sent.append(statement.text)
    column(memory, path, ["north", "south"])
    assert not any("try_strptime" in text for text in sent)
    column(memory, path, ["03/04/2024", "05/06/2024"])
    assert any("try_strptime" in text for text in sent)


def test_types_that_the_policy_names(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    assert column(memory, path, ["1", "2.5"], types={"x": "double"}) == ("DOUBLE", [1.0, 2.5])
    assert column(memory, path, ["1", "2"], types={"x": "text"}) == ("VARCHAR", ["1", "2"])
    assert column(memory, path, ["00123"], types={"x": "integer"}) == ("BIGINT", [123])
    assert column(memory, path, ["yes", "no"], types={"x": "boolean"}) == ("BOOLEAN", [True, False])
    assert column(memory, path, ["3/4/2024"], types={"x": "date"}, dates=("%d/%m/%Y",))[0] == "DATE"
    assert column(memory, path, ["", ""], types={"x": "integer"}) == ("BIGINT", [None, None])
    column(memory, path, ["1", "2.5"])
    assert "1 of its 2 values are written otherwise" in read(memory, path, types={"x": "double"}).lines()[1]


@pytest.mark.parametrize(
    ("fields", "type_"),
    [
        (["1.5"], "integer"),
        (["1.239"], "decimal(9,2)"),
        (["secret", "1"], "double"),
        (["nan"], "double"),
        (["3/4/24"], "date"),
    ],
)
def test_a_type_that_would_lose_values_is_refused(
    memory: DuckDBEngine, tmp_path: Path, fields: list[str], type_: str
) -> None:
    with pytest.raises(PolicyError, match=r'source\.types: 1 of the \d values of "x" are no') as failure:
        column(memory, tmp_path / "c.csv", fields, types={"x": type_})
    assert fields[0] not in str(failure.value)


def test_json_is_read_as_its_texts(memory: DuckDBEngine, tmp_path: Path) -> None:
    objects = [{"zip": "00123", "n": 1, "ok": True, "d": "2024-01-31"}, {"zip": "x", "n": None, "more": "", "d": None}]
    for name, text in (("a.json", json.dumps(objects)), ("a.ndjson", "\n".join(map(json.dumps, objects)))):
        (tmp_path / name).write_text(text)
        reading = read(memory, tmp_path / name)
        assert dict(zip([c.name for c in reading.columns], types(reading), strict=True)) == {
            "zip": "VARCHAR",
            "n": "BIGINT",
            "ok": "BOOLEAN",
            "d": "DATE",
            "more": "VARCHAR",
        }
        assert [row[0] for row in rows(memory, reading)] == ["00123", "x"]
    with gzip.open(tmp_path / "b.json.gz", "wt") as file:
        file.write(json.dumps(objects))
    assert len(rows(memory, read(memory, tmp_path / "b.json.gz"))) == 2


def test_zstandard(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zst"
    memory.execute(Statement("test", f"COPY (SELECT 'ä' AS a, 1 AS b) TO '{path}' (HEADER, COMPRESSION zstd)"))
    assert rows(memory, read(memory, path)) == [("ä", 1)]


@pytest.mark.parametrize("name", ["a.csv.zst", "A.CSV.ZST", "a.tsv.zst"])
def test_zstandard_that_nothing_reads_a_second_time(
    memory: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, delimiter = tmp_path / name, "\t" if "tsv" in name else ","
    options = f"HEADER, DELIMITER '{delimiter}', COMPRESSION zstd"
    memory.execute(Statement("test", f"COPY (SELECT 'ä' AS a, 1 AS b) TO '{path}' (FORMAT csv, {options})"))
    assert rows(memory, read(memory, path)) == [("ä", 1)]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    remedy = r"Install it \(pip install pyarrow\), or give the file as \.gz or as it is\."
    with pytest.raises(PolicyError, match=remedy):
        read(memory, path)
    for command in (("init", path), ("risk", path, "--qi", "a"), ("verify", path, "--qi", "a", "--k", "1")):
        refused = call(*command)
        assert (refused.exit_code, "pip install pyarrow" in refused.stderr) == (2, True)


def test_zstandard_is_decompressed_as_utf_8_alone(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zst"
    memory.execute(Statement("test", f"COPY (SELECT 'a' AS a, 1 AS b) TO '{path}' (HEADER, COMPRESSION zstd)"))
    with pytest.raises(PolicyError, match=r"give it as \.gz or as it is"):
        read(memory, path, encoding="latin-1")


def test_a_spreadsheet(memory: DuckDBEngine, tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    openpyxl = pytest.importorskip("openpyxl")
    import datetime

    book = openpyxl.Workbook()
    for line in [
        ["name", "age", "height", "member", "born", "zip"],
        ['Ann "A", B', 30, 1.5, True, datetime.date(1990, 1, 31), "00123"],
        [None, 31, 2, False, None, "00124"],
    ]:
        book.active.append(line)
    book.save(tmp_path / "p.xlsx")
    reading = read(memory, tmp_path / "p.xlsx")
    assert types(reading) == ["VARCHAR", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "VARCHAR"]
    assert rows(memory, reading)[1] == (None, 31, "2", False, None, "00124")


def test_parquet_files_by_a_pattern(memory: DuckDBEngine, tmp_path: Path) -> None:
    for number in (2, 1):
        memory.execute(Statement("test", f"COPY (SELECT {number} AS n, 'x' AS s) TO '{tmp_path}/p{number}.parquet'"))
    reading = read(memory, tmp_path / "p*.parquet")
    assert rows(memory, reading) == [(1, "x"), (2, "x")]
    memory.execute(Statement("test", f"COPY (SELECT 'y' AS s, 3 AS n) TO '{tmp_path}/p3.parquet'"))
    with pytest.raises(PolicyError, match="same columns"):
        read(memory, tmp_path / "p*.parquet")
    with pytest.raises(PolicyError, match="No file matches"):
        read(memory, tmp_path / "q*.parquet")


def test_standard_input(memory: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,yes\n")))
    for _ in range(2):  # it is kept for the sessions that follow
        assert rows(memory, read(memory, "-")) == [(1, "yes")]


def test_a_file_is_read_once(memory: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("a,b\n1,x\n")
    statements: list[str] = []
    memory.listener = lambda statement, _seconds, _rows: statements.append(statement.name)
    reading = read(memory, path)
    assert statements.count("engines/read_delimited_text") == 1
    path.unlink()
    assert rows(memory, reading) == [(1, "x")]
    assert memory.columns(reading.relation)[0].kind is Kind.INTEGER


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_many_columns_take_few_statements(memory: DuckDBEngine, tmp_path: Path, ending: str) -> None:
    """Columns that are tried with the same types are one column of a statement, whose planning costs most."""
    values = ["7", "x", "1.50", "2024-01-31", ""]
    fields = {f"c{n}": values[n % 5] for n in range(600)}
    path = tmp_path / f"wide.{ending}"
    path.write_text(
        f"{','.join(fields)}\n{','.join(fields.values())}\n"
        if ending == "csv"
        else json.dumps({name: value or None for name, value in fields.items()})
    )
    sent: list[tuple[str, int]] = []
    memory.listener = lambda statement, _seconds, _rows: sent.append((statement.name, statement.text.count("count(")))
    reading = read(memory, path)
    names = Counter(name for name, _ in sent)
    assert [one.type for one in reading.columns[:5]] == ["BIGINT", "VARCHAR", "DECIMAL(18,2)", "DATE", "VARCHAR"]
    assert [one.type for one in reading.columns] == 120 * [one.type for one in reading.columns[:5]]
    assert names["engines/count_first_texts"] <= 2 + 5  # 500 columns, and the rest; one for each kind of column
    assert names["engines/count_texts"] <= 2 * 600 / 50
    assert max(number for name, number in sent if name == "engines/count_read_values") <= 251


def test_numbers_that_other_marks_fit_are_counted_together(memory: DuckDBEngine, tmp_path: Path) -> None:
    """All fractions are held against marks, fifty columns a statement, once a column has marks of its own."""
    path = tmp_path / "c.csv"
    path.write_text(";".join(f"c{n}" for n in range(30)) + "\n" + "1,5;" + ";".join(["1.234"] * 29) + "\n")
    statements: list[str] = []
    memory.listener = lambda statement, _seconds, _rows: statements.append(statement.name)
    assert all(one.fits.marks for one in read(memory, path).columns)
    assert statements.count("engines/count_texts") <= 3


_FIELDS = st.one_of(
    st.sampled_from(
        ["", "yes", "no", "00123", "1.0", "1", "1e5", "NaN", "true", "2024-01-31", " x ", "NA", "03/04/24"]
    ),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
)


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Columns that mostly hold texts of one kind, and how they are written."""
    width = draw(st.integers(1, 4))
    kinds = [draw(st.sampled_from(_FIELDS_OF_ONE_KIND)) for _ in range(width)]
    lines = draw(st.lists(st.tuples(*kinds).map(list), min_size=2, max_size=12))
    return [f"c{place}" for place in range(width)], lines


_FIELDS_OF_ONE_KIND = [
    _FIELDS,
    st.sampled_from(["yes", "no"]),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.decimals(-(10**9), 10**9, allow_nan=False, places=3).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.sampled_from(["true", "false", ""]),
]


@settings(max_examples=many(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_tables(), st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_kept_columns_are_released_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[list[str], list[list[str]]], end: str, quoting: Any
) -> None:
    """Fields in any form come out as they went in; only what is quoted without need may differ."""
    directory = tmp_path_factory.mktemp("csv")
    names, lines = table
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=quoting)
    writer.writerows([["age", *names], *([str(30), *line] for line in lines)])
    (directory / "in.csv").write_bytes(text.getvalue().encode())
    policy = build_policy(
        {
            "source": {"file": str(directory / "in.csv")},
            "release": {"file": str(directory / "out.csv")},
            "catalog": {"url": f"duckdb:///{directory}/catalog.duckdb"},
            "attributes": {"age": {"role": "quasi-identifier"}, **{name: {"role": "insensitive"} for name in names}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    run(policy, options=OPTIONS)
    with (directory / "out.csv").open(encoding="utf-8", newline="") as file:
        released = [line[1:] for line in csv.reader(file)][1:]
    assert sorted(released) == sorted(lines)


def test_a_released_empty_text_stays_apart_from_null(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('age,x\n30,\n30,""\n30,yes\n')
    policy = build_policy(
        {
            "source": {"file": str(tmp_path / "in.csv")},
            "release": {"file": str(tmp_path / "out.csv")},
            "attributes": {"age": {"role": "quasi-identifier"}, "x": {"role": "insensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    run(policy, options=OPTIONS)
    assert sorted((tmp_path / "out.csv").read_text().splitlines()[1:]) == ["30,", '30,""', "30,yes"]


def test_a_policy_that_says_what_can_not_be(tmp_path: Path) -> None:
    def source(**more: Any) -> None:
        build_policy(
            {
                "source": {"file": str(tmp_path / "in.csv"), **more},
                "release": {"file": str(tmp_path / "out.csv")},
                "attributes": {"age": {"role": "quasi-identifier"}},
                "privacy": [{"model": "k-anonymity", "k": 2}],
            }
        )

    source(delimiter="tab", null=["", -9], dates="%d/%m/%Y", types={"age": "Decimal(9, 2)"}, encoding="latin-1")
    for wrong in ({"delimiter": ",,"}, {"encoding": "klingon"}, {"types": {"a": "varchar; DROP"}}, {"dates": "d/m/y"}):
        with pytest.raises(SqlanonError, match="source"):
            source(**wrong)
