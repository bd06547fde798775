"""Release files of Spark beside those of DuckDB, by their Parquet types, and by what readers elsewhere make of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlanon.engines import connect
from sqlanon.policy.loading import build_policy
from tests.cli.support import call
from tests.run_support import Database, run
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]
COUNT = 600
NAMES = ("duckdb", "spark")
SETTINGS = {
    "spark.sql.files.maxRecordsPerFile": "40",  # so that each release has more than ten files
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.charVarcharAsString": "true",
}
"""Settings of a user; the program sets all but the first otherwise, or heeds them nowhere."""
ATTRIBUTES = {"age": {"role": "quasi-identifier"}, "zip": {"role": "quasi-identifier"}}
WIDER = {"u8": "int16", "u16": "int32", "u32": "int64", "u64": "decimal128(20, 0)"}
"""Types without a sign, of which Spark has none, as a release of Spark has them."""


@dataclass(frozen=True)
class Releases:
    """The releases of one source: the file of DuckDB, and the directory of Spark; and the runs that made them."""

    duckdb: Path
    spark: Path
    runs: tuple[str, ...] = ()

    def pattern(self, name: str) -> str:
        """The path of a release as readers take it."""
        return str(self.duckdb) if name == "duckdb" else f"{self.spark}/*.parquet"

    def schema(self, name: str) -> Any:
        """The Parquet schema of a release, of whose files all have the same."""
        from pyarrow.parquet import ParquetFile

        files = [self.duckdb] if name == "duckdb" else sorted(self.spark.glob("part-*.parquet"))
        schemas = [ParquetFile(file).schema for file in files]
        assert all(one.equals(schemas[0]) for one in schemas)
        return schemas[0]

    def rows(self, name: str) -> list[tuple[str, ...]]:
        """The rows in the order of the files' names, as texts of a session in Berlin."""
        with duckdb.connect(config={"threads": 1}) as session:
            session.execute("SET TimeZone = 'Europe/Berlin'")
            files = [self.duckdb] if name == "duckdb" else sorted(self.spark.glob("part-*.parquet"))
            query = "SELECT COLUMNS(*)::VARCHAR FROM '{}'"
            return [row for file in files for row in session.execute(query.format(file)).fetchall()]


def kept_columns() -> dict[str, Any]:
    """The kept columns of the source, of every type that Parquet and Spark have, with NULLs."""
    import pyarrow as pa

    def some(value: Callable[[int], Any]) -> list[Any]:
        return [None if n % 7 == 3 else value(n) for n in range(COUNT)]

    def moment(n: int) -> datetime.datetime:
        return datetime.datetime(1500, 1, 1, 2, 30) + datetime.timedelta(days=300 * n, microseconds=n)

    def instant(n: int) -> datetime.datetime:
        start = datetime.datetime(1900, 3, 31, 1, 30, tzinfo=datetime.UTC)
        return start + datetime.timedelta(days=60 * n, microseconds=n)

    def amount(n: int) -> Decimal:
        return Decimal(n - 300) / 100

    zoned = pa.timestamp("us", "UTC")
    whole = {"i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64()}
    unsigned = {"u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64()}
    decimals = {"d4": (4, 2), "d9": (9, 2), "d18": (18, 4), "d20": (20, 2), "d38": (38, 10)}
    return {
        "flag": pa.array(some(lambda n: n % 2 == 0)),
        **{name: pa.array(some(lambda n: n % 100 - 50), kind) for name, kind in whole.items()},
        **{name: pa.array(some(lambda n: n % 100), kind) for name, kind in unsigned.items()},
        "f32": pa.array(some(lambda n: n / 3), pa.float32()),
        "f64": pa.array(some(lambda n: n / 3), pa.float64()),
        **{
            name: pa.array(some(lambda n: amount(n % 600)), pa.decimal128(*digits)) for name, digits in decimals.items()
        },
        "name": pa.array(some(lambda n: f"ä{n}")),
        "raw": pa.array(some(lambda n: bytes([n % 256, 0])), pa.binary()),
        "day": pa.array(some(lambda n: moment(n).date()), pa.date32()),
        "moment": pa.array(some(moment), pa.timestamp("us")),
        "milli": pa.array(some(lambda n: moment(n).replace(microsecond=1000 * n)), pa.timestamp("ms")),
        "instant": pa.array(some(instant), zoned),
        "milli_instant": pa.array(some(lambda n: instant(n).replace(microsecond=0)), pa.timestamp("ms", "UTC")),
        "tags": pa.array(some(lambda n: ["a", None, str(n)]), pa.list_(pa.string())),
        "visits": pa.array(some(lambda n: [instant(n), None]), pa.list_(zoned)),
        "home": pa.array(
            some(lambda n: {"city": str(n), "since": instant(n), "moved": moment(n)}),
            pa.struct([("city", pa.string()), ("since", zoned), ("moved", pa.timestamp("us"))]),
        ),
        "scores": pa.array(some(lambda n: [("k", amount(n))]), pa.map_(pa.string(), pa.decimal128(9, 2))),
    }


@pytest.fixture(scope="module")
def spark(spark_tables: SparkTables) -> Iterator[SparkTables]:
    """Spark with settings that a user may have, which all sessions that are opened now begin with."""
    known = spark_tables.engine.driver_connection._jsparkSession.sharedState().conf()
    for name, value in SETTINGS.items():
        known.set(name, value)
    yield spark_tables
    for name in SETTINGS:
        known.remove(name)


@pytest.fixture(scope="module")
def releases(spark: SparkTables, tmp_path_factory: pytest.TempPathFactory) -> Releases:
    from pyarrow import array, int32, table
    from pyarrow.parquet import write_table

    home = tmp_path_factory.mktemp("released")
    kept = kept_columns()
    codes = {"age": array([n * 37 % 89 for n in range(COUNT)], int32())}
    codes["zip"] = array([n * 101 % 97 for n in range(COUNT)], int32())
    write_table(table(codes | kept), home / "people.parquet")
    made = Releases(home / "duckdb.parquet", home / "spark.parquet")
    runs = []
    for url, release in ((None, made.duckdb), (spark.url, made.spark)):
        places: dict[str, Any] = {
            "source": {"file": str(home / "people.parquet")} | ({} if url is None else {"url": url}),
            "release": {"file": str(release)},
            "catalog": {"url": f"duckdb:///{home}/catalog.duckdb"},
        }
        outcome = run(build_policy(places | asked(kept)))
        assert outcome.published
        runs.append(outcome.run)
    return replace(made, runs=tuple(runs))


def asked(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A policy, but for its places, that keeps columns."""
    attributes = ATTRIBUTES | {name: {"role": "insensitive"} for name in kept}
    return {"attributes": attributes, "privacy": [{"model": "k-anonymity", "k": 5}], "subject": "none"}


def test_the_settings_are_those_of_a_new_session_but_for_what_the_program_sets(spark: SparkTables) -> None:
    with connect(spark.url) as engine:
        conf = engine.driver_connection.conf
        assert conf.get("spark.sql.files.maxRecordsPerFile") == "40"
        assert conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"
        assert conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"


def test_every_kept_type_is_the_one_that_duckdb_writes(releases: Releases) -> None:
    """But for numbers without a sign. Physical types too, and whether times are of UTC, of parts of values as well."""
    one, other = (releases.schema(name) for name in NAMES)
    types = {field.name: field.type for field in one.to_arrow_schema()}
    for field in other.to_arrow_schema():
        assert str(field.type) == WIDER.get(field.name, str(types[field.name])), field.name
    leaves = [{schema.column(n).path: schema.column(n) for n in range(len(schema.names))} for schema in (one, other)]
    assert list(leaves[0]) == list(leaves[1])
    for path in leaves[0].keys() - WIDER.keys():
        physical, there = (columns[path].physical_type for columns in leaves)
        assert physical == there, path
        assert physical != "INT96"
        is_time = leaves[0][path].logical_type.type == "TIMESTAMP"
        texts = [str(columns[path].logical_type) for columns in leaves]
        assert not is_time or texts[0] == texts[1], path


def test_the_rows_are_the_same_in_the_order_of_the_files_for_readers_in_another_zone(releases: Releases) -> None:
    assert len(list(releases.spark.glob("part-*.parquet"))) > 10
    assert releases.rows("duckdb") == releases.rows("spark")


def test_rows_that_are_recoded_later_are_in_the_order_of_the_files(releases: Releases, tmp_path: Path) -> None:
    applied = Releases(tmp_path / "duckdb.parquet", tmp_path / "spark.parquet")
    source, url = releases.duckdb.with_name("people.parquet"), f"duckdb:///{releases.duckdb.parent}/catalog.duckdb"
    for one, release in zip(releases.runs, (applied.duckdb, applied.spark), strict=True):
        called = call("apply", one, "--to", source, "--out", release, "--on-violation", "suppress", "--url", url)
        assert called.exit_code == 0, called.output
    assert len(list(applied.spark.glob("part-*.parquet"))) > 10
    assert applied.rows("duckdb") == applied.rows("spark")


def test_pyarrow_reads_the_same_values(releases: Releases) -> None:
    """By the files' names, as it takes a directory."""
    from pyarrow.parquet import read_table

    one, other = read_table(releases.duckdb), read_table(releases.spark)
    assert one.equals(other.cast(one.schema))


def test_postgresql_is_given_the_same_values(releases: Releases, postgres_database: Database, tmp_path: Path) -> None:
    """Of the types that it has, by DuckDB, which reads files for it; a session there is in another zone."""
    kept = ["flag", "i16", "i64", "f64", "d9", "d38", "name", "day", "moment", "milli", "instant", "milli_instant"]
    shown = []
    for name in NAMES:
        files = tmp_path / f"{name}.parquet"
        with duckdb.connect() as session:
            session.execute(f"COPY (SELECT age, zip, {', '.join(kept)} FROM '{releases.pattern(name)}') TO '{files}'")
        places = {"source": {"file": str(files)}, "release": {"url": postgres_database.url, "table": f"of_{name}"}}
        policy = build_policy(places | asked(dict.fromkeys(kept)))
        assert run(policy).published
        postgres_database.sql("SET TimeZone = 'Europe/Berlin'")
        texts = ", ".join(f'CAST("{column}" AS text)' for column in kept)
        shown.append(sorted(map(str, postgres_database.sql(f"SELECT {texts} FROM of_{name}"))))
    assert shown[0] == shown[1]
