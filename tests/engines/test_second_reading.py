"""Readings of files are held against the files: columns by their names, rows, and the values of each column."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.duckdb import second_reading
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.read_options import ReadOptions
from sqlanon.errors import AccessError, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Relation
from tests.cli.support import call
from tests.engines.publish_support import rows, run
from tests.random_cases import many
from tests.sheets import write_sheet


@pytest.fixture
def memory() -> Iterator[DuckDBEngine]:
    with connect("duckdb:///:memory:") as engine:
        assert isinstance(engine, DuckDBEngine)
        yield engine


@pytest.fixture(scope="module")
def shared() -> Iterator[DuckDBEngine]:
    with connect("duckdb:///:memory:") as engine:
        assert isinstance(engine, DuckDBEngine)
        yield engine


def read(engine: DuckDBEngine, path: Path, **options: object) -> list[tuple[object, ...]]:
    engine.read_file(Relation("f"), str(path), ReadOptions(**options))  # type: ignore[arg-type]
    return rows(engine, "SELECT * FROM f")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"UserUPN": "a", "UserUpn": "b"}\n', ["UserUPN", "UserUpn"]),
        ('{"UserUPN": "a"}\n' * 30_000 + '{"UserUpn": "b"}\n', ["UserUPN", "UserUpn"]),
        ('[{"a": 1}, {"b": 1, "A": 2}]', ["A", "a"]),
        ('{"É": 1, "é": 2}\n', ["É", "é"]),
        ('{"a": 1, "a": 2}\n', ["a"]),
        ('{"a": 1}\n{"b": 1, "a": 1, "b": null}\n', ["b"]),
        ('{"": 1, "b": 2}\n', ["no name"]),
        ("[1, 2]", ["no objects"]),
    ],
)
def test_names_of_json_that_collide_are_refused(
    memory: DuckDBEngine, tmp_path: Path, text: str, named: list[str]
) -> None:
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(PolicyError) as refused:
        read(memory, tmp_path / "f.json")
    assert all(name in str(refused.value) for name in named)


def test_objects_of_other_keys_are_read_by_their_keys(memory: DuckDBEngine, tmp_path: Path) -> None:
    """Names that differ in more than case are columns of their own, nested ones stay in the text of their object."""
    text = '{"a": 1, "b/c": null}\n{" a": "x", "x~y": {"k": 1, "K": 2}}\n{"a ": "é", "e\u0301": "", "é": 0}\n{}\n'
    (tmp_path / "f.ndjson").write_text(text)
    found = read(memory, tmp_path / "f.ndjson")
    assert [column.name for column in memory.columns(Relation("f"))] == [
        *("a", "b/c", " a", "x~y", "a ", "e\u0301", "é"),
    ]
    assert [sum(value is not None for value in column) for column in zip(*found, strict=True)] == [1, 0, 1, 1, 1, 1, 1]
    assert '{"k":1,"K":2}' in str(found).replace(" ", "")


@pytest.mark.parametrize("header", ["a,A", "a,a", '"Straße","STRASSE"', "column1,", "x,X,y"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx"])
def test_names_of_a_header_that_collide_are_refused(
    memory: DuckDBEngine, tmp_path: Path, header: str, ending: str
) -> None:
    path = tmp_path / f"f.{ending}"
    names = [name.strip('"') for name in header.split(",")]
    if ending == "xlsx":
        write_sheet(path, {f"{'ABC'[n]}1": name for n, name in enumerate(names) if name} | {"A2": 1, "B2": 2, "C2": 3})
        names += [""] * (3 - len(names))
    else:
        divided = "," if ending == "csv" else "\t"
        path.write_text(divided.join(names) + "\n" + divided.join("1" * len(names)) + "\n")
    with pytest.raises(PolicyError, match="same name"):
        read(memory, path)


@pytest.mark.parametrize("names", [("a", "A"), ("É", "é"), ("a", "b")])
@pytest.mark.parametrize("files", [1, 2])
def test_names_of_parquet(memory: DuckDBEngine, tmp_path: Path, names: tuple[str, str], files: int) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    nested = pyarrow.array([{"x": 1, "X": [2]}, None])
    table = pyarrow.table([pyarrow.array([1, None]), pyarrow.array([3, 4]), nested], names=[*names, "nested"])
    for number in range(files):
        parquet.write_table(table, tmp_path / f"f{number}.parquet")
    if names == ("a", "b"):
        assert len(read(memory, tmp_path / "f*.parquet")) == 2 * files
        return
    with pytest.raises(PolicyError, match=f"same name: {', '.join(sorted(names))}"):
        read(memory, tmp_path / "f*.parquet")


fields = st.sampled_from(
    [
        *("", "a", "1", " ", '""', '"NA"', '"x,y"', '"q""r"', '"l\nm"', '"l\r\nm"', "NA", "é", '"'),
        'a"b',
        "\u2028",
        "\\N",
        ' "x,y"',
        ' ""',
        '"x" ',
    ]
)


@pytest.mark.parametrize("by_arrow", [True, False])
@settings(deadline=None, max_examples=many(40))
@given(
    st.lists(st.lists(fields, min_size=3, max_size=3), max_size=6),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["\n", "\r\n", ",\n", ", \n"]),
    st.sampled_from([("",), ("", "NA"), ()]),
)
def test_what_is_read_rightly_is_not_refused(
    shared: DuckDBEngine,
    tmp_path_factory: pytest.TempPathFactory,
    by_arrow: bool,
    table: list[list[str]],
    width: int,
    end: str,
    null: tuple[str, ...],
) -> None:
    """Whatever the reader takes is read alike by the second reader, and what one refuses is never half read."""
    path = tmp_path_factory.getbasetemp() / "any.csv"
    lines = [",".join("abc"[:width]), *(",".join(row[:width]) for row in table)]
    path.write_bytes("".join(line + end for line in lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        if not by_arrow:
            patch.setitem(sys.modules, "pyarrow", None)
        try:
            read(shared, path, null=null, is_checked=False)
        except SqlanonError:
            return
        read(shared, path, null=null)


@pytest.mark.parametrize("ending", ["csv", "ndjson", "xlsx", "parquet"])
@pytest.mark.parametrize("lost", ["a row", "a value"])
def test_a_reading_that_loses_something_is_refused(
    memory: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, lost: str
) -> None:
    """The first reader leaves something out: here by another file in the place of the second reader's."""
    path = tmp_path / f"f.{ending}"
    write_rows(path, 3)
    real = DuckDBEngine.run

    def losing(self: DuckDBEngine, name: str, **values: object) -> object:
        done = real(self, name, **values)
        table = values.get("table", values.get("view"))
        if name in ("engines/read_delimited_text", "engines/read_json_text", "engines/create_parquet_view"):
            kept = "* FROM {} LIMIT 2" if lost == "a row" else "a, CASE WHEN a = '2' THEN NULL ELSE b END AS b FROM {}"
            run(self, f"CREATE OR REPLACE TEMP TABLE lossy AS SELECT {kept.format(table)}")
            run(self, f"DROP {'VIEW' if 'view' in values else 'TABLE'} {table}")
            run(self, f"CREATE TEMP TABLE {table} AS FROM lossy")
        return done

    monkeypatch.setattr(DuckDBEngine, "run", losing)
    with pytest.raises(EngineError, match="rows" if lost == "a row" else r"number of values of b\b"):
        read(memory, path)


def write_rows(path: Path, count: int) -> None:
    if path.suffix == ".xlsx":
        cells = {
            f"{column}{row + 1}": value for row in range(1, count + 1) for column, value in (("A", row), ("B", "x"))
        }
        write_sheet(path, {"A1": "a", "B1": "b"} | cells)
        return
    form = {".csv": "csv", ".ndjson": "json", ".parquet": "parquet"}[path.suffix]
    duckdb.sql(f"COPY (SELECT i AS a, 'x' AS b FROM range(1, {count + 1}) AS r(i)) TO '{path}' (FORMAT {form})")


@pytest.mark.parametrize("far", ["XFD1048576", "CV1048576", "B1048576", "XFD400"])
def test_a_sheet_with_far_cells_is_refused(tmp_path: Path, far: str) -> None:
    """In a process of its own memory would run out: the command ends with a sentence that says where to look."""
    write_sheet(tmp_path / "f.xlsx", {"A1": "age", far: 1})
    refused = call("init", tmp_path / "f.xlsx", "-o", tmp_path / "p.yml")
    if far == "B1048576":  # two million cells are read
        assert refused.exit_code in (0, 2)
        return
    assert (refused.exit_code, "filled cells" in " ".join(refused.output.split())) == (2, True), refused.output


def test_a_sheet_is_read_by_its_filled_cells(memory: DuckDBEngine, tmp_path: Path) -> None:
    """The area that it claims, empty cells with a format and errors are nothing."""
    cells = {
        "A1": "age",
        "B1": "city",
        "A2": 1,
        "B2": "x",
        "A3": 2,
        "B3": '<c r="B3" t="e"><v>#N/A</v></c>',
        "A4": '<c r="A4" t="s"><v>0</v></c>',
        "B4": '<c r="B4" t="s"><v>1</v></c>',
        "A5": '<c t="b"><v>1</v></c>',
        "B5": '<c t="str"><f>A1</f><v></v></c>',
        "XFD1048576": '<c r="XFD1048576" s="1"/>',
    }
    path = write_sheet(tmp_path / "f.xlsx", cells, ["", "y"], dimension="A1:XFD1048576")
    assert read(memory, path) == [("1", "x"), ("2", None), (None, "y"), ("true", None)]


@pytest.mark.parametrize(
    "before",
    ['<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>', "<?xml version='1.0'?><broken>"],
)
def test_a_broken_sheet_is_refused(memory: DuckDBEngine, tmp_path: Path, before: str) -> None:
    path = write_sheet(tmp_path / "f.xlsx", {"A1": "age", "A2": 1}, before=before)
    with pytest.raises(SqlanonError, match="spreadsheet"):
        read(memory, path)


def test_a_full_sheet_is_refused_by_its_area(
    memory: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sheet(tmp_path / "f.xlsx", {"A1": "age", **{f"A{row}": row for row in range(2, 201)}})
    monkeypatch.setattr("sqlanon.engines.duckdb.sheets.MOST_CELLS", 200)
    assert len(read(memory, path)) == 199
    monkeypatch.setattr("sqlanon.engines.duckdb.sheets.MOST_CELLS", 199)
    with pytest.raises(PolicyError, match="reaches over 200 rows and 1 columns, with 200 filled cells"):
        read(memory, path)


def test_a_sheet_too_large_to_be_kept_is_refused(
    memory: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sheet(tmp_path / "f.xlsx", {"A1": "age", **{f"A{row}": row for row in range(2, 200)}})
    monkeypatch.setattr("sqlanon.engines.duckdb.sheets._MOST_BYTES", 5_000)
    with pytest.raises(PolicyError, match="too large"):
        read(memory, path)


def test_counts_of_texts(tmp_path: Path) -> None:
    """Without Arrow Python counts the same."""
    path = tmp_path / "f.csv"
    path.write_text('a,b\n1,\n"",x\nNA,"y\nz"\n')
    wanted = second_reading.Counts(3, (1, 2))
    for by_arrow in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not by_arrow:
                patch.setitem(sys.modules, "pyarrow", None)
            assert second_reading.count_delimited(path, ["a", "b"], ",", ["", "NA"], True, wanted) == wanted


@pytest.mark.parametrize("by_arrow", [True, False])
@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (["1,x,", "2,y,"], ["x", "y"]),
        (["1,x,,", "2,y", "3,z,"], ["x", "y", "z"]),
        (['1, "x,y"', '2, "l\nm"', "3, z"], ["x,y", "l\nm", " z"]),
        (['1, ""', '2," "', "3, "], ["", " ", " "]),
        (['1,"x,y" ', ' "2" ,z'], ["x,y", "z"]),
        (['1,6" x', '2,"6"" y"'], ['6" x', '6" y']),
    ],
)
def test_text_that_the_reader_is_lenient_with(
    memory: DuckDBEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_arrow: bool,
    lines: list[str],
    values: list[str],
) -> None:
    """Delimiters at the end of lines and blanks beside quotes are no difference."""
    (tmp_path / "f.csv").write_text("\n".join(["a,b", *lines]))
    if not by_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert [row[1] for row in read(memory, tmp_path / "f.csv", header=True)] == values


@pytest.mark.parametrize("by_arrow", [True, False])
def test_a_damaged_file_is_refused(
    memory: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_arrow: bool
) -> None:
    """The first reader takes text whose check sum is wrong."""
    damaged = bytearray(gzip.compress(b"a,b\n" + b"1,x\n" * 5_000))
    damaged[-6] ^= 255
    (tmp_path / "f.csv.gz").write_bytes(damaged)
    if not by_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AccessError, match="damaged"):
        read(memory, tmp_path / "f.csv.gz")


def test_fields_that_no_reader_agrees_on(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("a,b\n1,x,y\n")
    with pytest.raises(EngineError, match="fields of a line"):
        second_reading.count_delimited(
            tmp_path / "f.csv", ["a", "b"], ",", [""], True, second_reading.Counts(1, (1, 1))
        )
