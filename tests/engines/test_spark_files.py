"""Files that Spark reads and writes: nothing malformed is read as something else, nothing half-written is released."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import os
import shutil
import stat
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines import connect
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.first_line import UndecidedHeader
from sqlanon.engines.read_options import ReadOptions
from sqlanon.engines.spark.dialect import SparkAddress
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.engines.written_files import aside_of
from sqlanon.errors import EngineError, PolicyError
from sqlanon.sql import Relation, Statement
from sqlanon.values.digest import file_digest
from sqlanon.work.publish.release_files import (
    FileRelease,
    is_file_name,
    leftover_parts,
    open_file,
    put_back_or_remove,
    release_problems,
)
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]
READ = Relation("read_file")


@pytest.fixture(scope="module")
def spark(spark_tables: SparkTables) -> SparkEngine:
    return spark_tables.engine


def rows(spark: SparkEngine, path: Path | str, options: ReadOptions | None = None) -> list[tuple[Any, ...]]:
    read = spark.read_file(READ, str(path), options).relation
    return [tuple(row) for row in spark.driver_connection.sql(f"SELECT * FROM {read} ORDER BY 1").collect()]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_parquet(spark: SparkEngine, path: Path, query: str) -> Path:
    spark.driver_connection.sql(query).coalesce(1).write.parquet(str(path))
    return path


def test_text_stays_as_it_is(spark: SparkEngine, tmp_path: Path) -> None:
    text = 'zip,job\n00123,"a ""b"" \\ c, d"\n" 1",\n2,""\n3,NA\r\n4,5" pipe is not\n'
    with pytest.raises(PolicyError, match="lines with more or fewer"):
        rows(spark, write(tmp_path / "pipe.csv", text))
    path = write(tmp_path / "people.csv", text.replace('5" pipe is not', "🐘"))
    assert rows(spark, path) == [(" 1", None), ("00123", 'a "b" \\ c, d'), ("2", ""), ("3", "NA"), ("4", "🐘")]
    assert rows(spark, write(tmp_path / "other.csv", "zip;job\n1;a,b\n"), ReadOptions(delimiter=";")) == [("1", "a,b")]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3\n",
        "a,b\n1,2,3\n",
        'a,b\n1,"2\n3,4\n',
        'a,b\n1,"2\n3",4\n',
        'a,b\n1,"2"3\n',
        "a,b\n1,2\n\n3,4\n",
        "a\n1\n  \n2\n",
        b"a,b\n1,\xff\n",
    ],
    ids=["fewer", "more", "open quote", "line end in quotes", "after quote", "blank line", "blank value", "bytes"],
)
def test_malformed_lines_are_refused(spark: SparkEngine, tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(PolicyError, match=r"lines (with more or fewer|that are not UTF-8).*: [12][.;]"):
        rows(spark, write(tmp_path / "people.csv", text))


def test_the_first_line_is_names_or_data_as_the_policy_says(spark: SparkEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "30,M,7\n41,F,7\n52,M,7\n")
    with pytest.raises(UndecidedHeader):
        rows(spark, path)
    assert rows(spark, path, ReadOptions(header=False)) == [("30", "M", "7"), ("41", "F", "7"), ("52", "M", "7")]
    named = ReadOptions(header=False, names=("age", "sex", "n"), types={"age": "integer"})
    assert rows(spark, path, named)[0] == (30, "M", "7")
    assert [column.name for column in spark.columns(READ)] == ["age", "sex", "n"]
    write(path, "a,b\n2,M\n")
    assert rows(spark, path, ReadOptions(header=True, names=("x", "y"), types={"x": "integer"})) == [(2, "M")]
    with pytest.raises(PolicyError, match="3 names, and 2 fields"):
        rows(spark, path, ReadOptions(header=True, names=("x", "y", "z")))


@pytest.mark.parametrize(
    "options", [{"decimal": ","}, {"decimal": ",", "thousands": "."}, {"dates": ("%d",)}, {"null": ()}]
)
def test_what_spark_does_not_take_is_refused_by_name(
    spark: SparkEngine, tmp_path: Path, options: dict[str, Any]
) -> None:
    path = write(tmp_path / "people.csv", "a,b\n1,2\n")
    with pytest.raises(PolicyError, match=f"leave out .*{list(options)[-1]}"):
        rows(spark, path, ReadOptions(**options))
    files = write_parquet(spark, tmp_path / "people.parquet", "SELECT 1 AS a")
    with pytest.raises(PolicyError, match=f"{next(iter(options))}.* can't be said of"):
        rows(spark, files, ReadOptions(**options))


def test_a_long_field_is_no_trouble_to_the_pattern_of_lines(spark: SparkEngine, tmp_path: Path) -> None:
    field = '""' * 100_000
    path = write(tmp_path / "people.csv", f'a,b\n1,"{field}"\n')
    assert rows(spark, path) == [("1", '"' * 100_000)]


def test_types_are_those_that_the_policy_names(spark: SparkEngine, tmp_path: Path) -> None:
    head = "n,wide,price,share,day,moment,member\n"
    types = {
        "n": "integer",
        "wide": "hugeint",
        "price": "decimal(5,2)",
        "share": "double",
        "day": "date",
        "moment": "timestamp",
        "member": "boolean",
    }
    text = f"{head}1,{10**37},1.5,.1,2024-02-29,2024-02-29 01:02:03.5,true\n,,,,,,\n"
    assert rows(spark, write(tmp_path / "typed.csv", text), ReadOptions(types=types)) == [
        (None,) * 7,
        (
            1,
            Decimal(10**37),
            Decimal("1.50"),
            0.1,
            datetime.date(2024, 2, 29),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 500000),
            True,
        ),
    ]
    wrong = write(tmp_path / "wrong.csv", f"{head}{2**63},1.5,1.555,1d,2024-02-30,2024-02-29,yes\n" + ",,,,,,\n")
    with pytest.raises(PolicyError) as refused:
        rows(spark, wrong, ReadOptions(types=types))
    assert [name for name in types if f'"{name}"' in str(refused.value)] == list(types)
    with pytest.raises(PolicyError, match="time of day"):
        rows(spark, wrong, ReadOptions(types={"n": "time"}))
    with pytest.raises(PolicyError, match="no column"):
        rows(spark, wrong, ReadOptions(types={"N": "integer"}))


def test_what_spark_cannot_read_is_refused_by_name(spark: SparkEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "a,b\n1,2\n")
    for options in (ReadOptions(encoding="latin-1"), ReadOptions(null=("NA",)), ReadOptions(dates=("%d/%m/%Y",))):
        with pytest.raises(PolicyError, match="UTF-8"):
            rows(spark, path, options)
    for name in ("people.json", "people.csv.zst", "-"):
        with pytest.raises(PolicyError, match="not a kind of file"):
            rows(spark, name)
    for name in ("nothing.parquet", "nothing", "no*thing.parquet"):
        with pytest.raises(PolicyError, match="no file"):
            rows(spark, tmp_path / name)


def test_columns_that_differ_in_case_alone_are_refused_by_name(spark: SparkEngine, tmp_path: Path) -> None:
    """Of Parquet, and of a table that somebody made with `spark.sql.caseSensitive`."""
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.table({"age": [1], "AGE": [2]}), tmp_path / "cased.parquet")
    with pytest.raises(PolicyError, match="name `age`, but for case"):
        rows(spark, tmp_path / "cased.parquet")
    session = spark.driver_connection
    session.conf.set("spark.sql.caseSensitive", "true")
    session.read.parquet(str(tmp_path / "cased.parquet")).write.saveAsTable("cased")
    session.conf.set("spark.sql.caseSensitive", "false")
    with pytest.raises(PolicyError, match="name `age`, but for case"):
        spark.query("engines/select_table", table=Relation("cased"))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("Name,age,name", 'columns "Name" and "name" have one name'),
        ("name,name,age", 'columns "name" and "name" have one name'),
        ("a,,age", "column 2 has no name"),
    ],
)
def test_headers_that_spark_would_change_are_refused_by_name(
    spark: SparkEngine, tmp_path: Path, header: str, problem: str
) -> None:
    path = write(tmp_path / "people.csv", f"{header}\nx,1,y\n")
    with pytest.raises(PolicyError, match=problem):
        rows(spark, path, ReadOptions(header=True))
    named = ReadOptions(header=True, names=("one", "two", "three"))
    assert rows(spark, path, named) == [("x", "1", "y")]


def test_numbered_names_of_a_header_are_names(spark: SparkEngine, tmp_path: Path) -> None:
    assert rows(spark, write(tmp_path / "people.csv", "a0,A1,_c2\nx,1,y\n")) == [("x", "1", "y")]


def test_files_of_text_of_other_columns_are_refused(spark: SparkEngine, tmp_path: Path) -> None:
    for number, header in enumerate(("age,job", "job,age")):
        write(tmp_path / "all" / f"{number}.csv", f"{header}\n1,2\n")
    with pytest.raises(PolicyError, match="same columns in the same order"):
        rows(spark, tmp_path / "all" / "*.csv")


def test_parquet_is_read_from_files_directories_and_patterns(spark: SparkEngine, tmp_path: Path) -> None:
    one = write_parquet(spark, tmp_path / "one", "SELECT 1 AS age, 'a' AS job")
    write_parquet(spark, tmp_path / "days" / "day=01", "SELECT 2 AS age, 'b' AS job")
    (file,) = one.glob("*.parquet")
    assert rows(spark, one) == rows(spark, file) == rows(spark, f"{one}/*.parquet") == [(1, "a")]
    assert rows(spark, tmp_path / "days") == [(2, "b", "01")]


@pytest.mark.parametrize("other", ["1 AS age", "1 AS age, 'a' AS work", "CAST(1 AS BIGINT) AS age, 'a' AS job"])
def test_files_of_other_columns_are_refused(spark: SparkEngine, tmp_path: Path, other: str) -> None:
    for number, query in enumerate(("1 AS age, 'a' AS job", other)):
        (file,) = write_parquet(spark, tmp_path / f"made_{number}", f"SELECT {query}").glob("*.parquet")
        write(tmp_path / "all" / f"{number}.parquet", file.read_bytes())
    with pytest.raises(PolicyError, match="same columns"):
        rows(spark, tmp_path / "all")


def test_the_version_of_files_changes_with_each_of_them(spark: SparkEngine, tmp_path: Path) -> None:
    one = write(tmp_path / "all" / "one.csv", "a,b\n1,2\n")
    assert spark.file_version(str(tmp_path / "nothing")) is None
    before = spark.file_version(str(tmp_path / "all"))
    assert before == spark.file_version(str(tmp_path / "all"))
    os.utime(one, (1, 1))
    touched = spark.file_version(str(tmp_path / "all"))
    write(tmp_path / "all" / "two.csv", "a,b\n1,2\n")
    assert len({before, touched, spark.file_version(str(tmp_path / "all"))}) == 3


@pytest.fixture
def made(spark: SparkEngine) -> Relation:
    table = Relation("made")
    spark.driver_connection.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW {table} AS SELECT id AS age, 'a' AS job FROM range(9)"
    )
    return table


def released(spark: SparkEngine, target: Path, table: Relation, *, replace: bool = True) -> str:
    """Release a table as a directory; the digest of what was verified."""
    with FileRelease(spark, target, replace=replace) as file:
        file.write(table)
        opened = open_file(spark, file.part, spark.columns(table))
        assert spark.columns(opened) == [dataclasses.replace(one, nullable=True) for one in spark.columns(table)]
        assert rows_of(spark, opened) == rows_of(spark, table)
        digest = file.digest()
        file.commit()
    return digest


def rows_of(spark: SparkEngine, relation: Relation) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.driver_connection.sql(f"SELECT * FROM {relation} ORDER BY 1").collect()]


def modes(target: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in (target, *target.iterdir())}


def test_a_release_is_a_directory_that_is_replaced_whole(spark: SparkEngine, made: Relation, tmp_path: Path) -> None:
    target = tmp_path / "it's 100% od d" / "people"
    target.parent.mkdir()
    first = released(spark, target, made)
    assert first == file_digest(target)
    assert modes(target) == {0o700, 0o600}
    assert {path.suffix for path in target.iterdir()} == {".parquet"}
    with pytest.raises(PolicyError, match="--replace"):
        released(spark, target, made, replace=False)
    target.chmod(0o750)
    spark.driver_connection.sql("CREATE OR REPLACE TEMPORARY VIEW made AS SELECT id AS age, 'b' AS job FROM range(5)")
    assert released(spark, target, made) == file_digest(target) != first
    assert modes(target) == {0o750, 0o640}
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    with connect(MEMORY_URL) as duckdb:
        read = duckdb.read_file(Relation("read"), str(target)).relation
        assert duckdb.fetch(Statement("count", f"SELECT count(*), min(job) FROM {read}")) == [(5, "b")]


def test_an_unpublished_directory_is_removed(spark: SparkEngine, made: Relation, tmp_path: Path) -> None:
    target = tmp_path / "people.parquet"
    with FileRelease(spark, target) as file:
        file.write(made)
        assert leftover_parts(target) == [file.part]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at", [0, 1])
def test_a_rename_that_fails_leaves_the_old_directory(
    spark: SparkEngine, made: Relation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    target = tmp_path / "people.parquet"
    digest = released(spark, target, made)
    rename, calls = os.rename, itertools.count()

    def fail(*names: Any) -> None:
        if next(calls) == at:
            raise OSError(28, "No space left on device")
        rename(*names)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(EngineError, match="No space left"):
        released(spark, target, made)
    assert file_digest(target) == digest
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_process_that_died_while_publishing_is_made_up_for(
    spark: SparkEngine, made: Relation, tmp_path: Path
) -> None:
    target = tmp_path / "people.parquet"
    digest = released(spark, target, made)
    left = tmp_path / "people.parquet.part-0123abcd"
    shutil.copytree(target, left)
    os.rename(target, aside_of(target))
    done = put_back_or_remove(target)
    assert done == [f"put directory {target} back", f"removed directory {left}"]
    assert file_digest(target) == digest
    shutil.copytree(target, aside_of(target))
    assert released(spark, target, made) == file_digest(target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert put_back_or_remove(target) == []


def test_a_recorded_name_tells_files_from_tables(tmp_path: Path) -> None:
    """`gc` puts back what a dead run left of a file, whatever its ending, and looks for no file named as a table."""
    assert is_file_name(str(tmp_path / "released"))
    assert is_file_name("${HOME}/released.csv")
    assert not is_file_name(str(Relation("odd.parquet", "clinic")))


def test_places_that_cannot_hold_a_directory_are_refused(spark: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "mixed.parquet" / "notes").mkdir(parents=True)
    write(tmp_path / "file.parquet", "")
    for name, problem in {
        "people.csv": "has no ending",
        'people"': "has no ending",
        "s3a://people.parquet": "of this machine",
        "a[b].parquet": "does not read",
        "_people.parquet": "does not read",
        "nowhere/people.parquet": "no directory",
        "mixed.parquet": "Parquet files alone",
        "file.parquet": "Parquet files alone",
    }.items():
        path = name if "://" in name else str(tmp_path / name)
        (found,) = release_problems(spark, path, replace=True)
        assert problem in found
    remote = SparkAddress(remote="sc://somewhere")
    assert not remote.is_local
    assert not SparkAddress("spark://somewhere:7077").is_local
