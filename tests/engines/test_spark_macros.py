"""The macros of Spark give what DuckDB's give, byte for byte, on odd values of every kind."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jinja2 import Environment, nodes
from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.columns import Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.engines.duckdb.dialect import DuckDB
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.sql import DialectRenderer, Expression, Spelling, Text
from sqlanon.staging.labels import MEMBER, OPEN_SPAN, PLAIN
from sqlanon.support.template_files import template_directory
from sqlanon.values.expressions import double_of, text_of
from tests.random_cases import many
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]
V = Markup("v")
Build = Callable[[DialectRenderer], Expression]

# Macros of DuckDB that Spark lacks, with the reason.
LACKING = {
    "bound": "the catalog is never on Spark",
    "moment_type": "the catalog is never on Spark",
    "exact_time": "Spark has no TIME",
    "first_bits": "no account is kept on Spark",
    "place_of_row": "rows of a table have no order",
    "scientific": "`text_of_double` and `text_of_single` are written as a whole",
    "reads_back": "`text_of_double` and `text_of_single` are written as a whole",
    "plain_float": "`text_of_double` and `text_of_single` are written as a whole",
    "special_float": "`text_of_double` and `text_of_single` are written as a whole",
}


def macros_of(dialect: str) -> set[str]:
    text = (template_directory() / "dialects" / f"{dialect}.sql.j2").read_text(encoding="utf-8")
    return {macro.name for macro in Environment().parse(text).find_all(nodes.Macro)}


def test_spark_has_the_macros_of_duckdb() -> None:
    assert macros_of("duckdb") - macros_of("spark") - macros_of("common") == set(LACKING)


class Session:
    """A session of the engine itself, and the renderer of its dialect."""

    def __init__(self, dialect: type[Dialect], fetch: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self.render = dialect.renderer()
        self.stored = "USING PARQUET " if dialect is SparkSQL else ""
        self._spelling = Spelling(tuple(dialect.spellings.items()), dialect.raw_literals)
        self._fetch = fetch

    def send(self, text: str) -> list[tuple[Any, ...]]:
        """Send a statement, which has the words of DuckDB."""
        return self._fetch(self._spelling.apply(text))


@pytest.fixture(scope="module")
def both(spark_tables: SparkTables) -> Iterator[tuple[Session, Session]]:
    """A session of Spark and one of DuckDB, for the whole module."""
    with connect("duckdb://") as duckdb:
        by_spark, by_duckdb = spark_tables.engine.driver_connection, duckdb.driver_connection
        by_spark.conf.set("spark.sql.shuffle.partitions", "1")
        by_spark.conf.set("spark.sql.adaptive.enabled", "false")
        yield (
            Session(SparkSQL, lambda text: [tuple(row) for row in by_spark.sql(text).collect()]),
            Session(DuckDB, lambda text: by_duckdb.execute(text).fetchall()),
        )


_numbers = itertools.count()


def assert_same_values(
    both: tuple[Session, Session], type_name: str, literals: Sequence[str], build: dict[str, Build]
) -> None:
    """Compare each expression's value of each literal, which is read as a column `v` of a type in DuckDB's words."""
    found = [values_of(session, type_name, literals, build) for session in both]
    for name, by_spark, by_duckdb in zip(build, *found, strict=True):
        differ = {
            literal: (one, other)
            for literal, one, other in zip(literals, by_spark, by_duckdb, strict=True)
            if (one != other and repr(one) != repr(other)) or isinstance(one, str) != isinstance(other, str)
        }
        assert differ == {}, name


def values_of(session: Session, type_name: str, literals: Sequence[str], build: dict[str, Build]) -> list[list[Any]]:
    """The values of each expression; Spark compiles what it reads from a table, and interprets a list of values."""
    table = f"odd_{next(_numbers)}"
    rows = ", ".join(f"({i}, {literal})" for i, literal in enumerate(literals))
    typed = f"SELECT i, CAST(v AS {type_name}) AS v FROM (VALUES {rows}) AS t(i, v)"
    session.send(f"CREATE TABLE {table} {session.stored}AS {typed}")
    expressions = ", ".join(
        f"{session.render.written(one(session.render))} AS c{i}" for i, one in enumerate(build.values())
    )
    found = sorted(session.send(f"SELECT i, {expressions} FROM {table}"), key=itemgetter(0))
    return [list(column) for column in zip(*(row[1:] for row in found), strict=True)]


def named(*names: str) -> dict[str, Build]:
    """Macros that take a value alone."""
    return {name: lambda render, name=name: render.macro(name, V) for name in names}  # type: ignore[misc]


def with_arguments(name: str, *arguments: Any) -> dict[str, Build]:
    return {f"{name} {arguments}": lambda render: render.macro(name, V, *arguments)}


def texts(kind: Kind, type_name: str = "") -> dict[str, Build]:
    return {"text": lambda render: text_of(render, V, kind, type_name)}


def quoted(values: Sequence[str]) -> list[str]:
    return ["NULL", *(str(Text(value)) for value in values)]


DOUBLES = ["NaN", "Infinity", "-Infinity", "0", "-0.0", "5e-324", "1.7976931348623157e308", "1.797693134862315e308"]
DOUBLES += ["0.1", "1e15", "999999999999999.9", "1e23", "2.003485544858745e16", "2.2250738585072014e-308", "1e-9"]
DOUBLES += ["562949953421312.25", "562949953421312.75", "0.0001", "0.00001", "-123456789012345678", "9007199254740993"]
DOUBLES += [repr(2.0**power) for power in range(-1074, 1024, 113)] + [f"1e{power}" for power in range(-323, 309, 71)]
SINGLES = ["NaN", "Infinity", "-Infinity", "0", "-0.0", "0.1", "16777216", "1929902.75", "346027616", "1e-45", "1e-5"]
SINGLES += ["999999986991104", "3.4028235e38", "-1.17549435e-38"] + [repr(2.0**power) for power in range(-149, 128, 13)]


def test_doubles(both: tuple[Session, Session]) -> None:
    build = named("exact_double") | texts(Kind.FLOAT) | with_arguments("is_a_number", "float")
    build |= with_arguments("is_finite_number", "float") | with_arguments("equal_values", V)
    build |= {"double_of": lambda render: double_of(render, V, Kind.FLOAT)}
    assert_same_values(both, "FLOAT8", quoted(DOUBLES), build)


def test_singles(both: tuple[Session, Session]) -> None:
    assert_same_values(both, "REAL", quoted(SINGLES), named("exact_single") | texts(Kind.FLOAT, "FLOAT"))


def test_numbers_as_units(both: tuple[Session, Session]) -> None:
    """The nearest whole number, of two the even one."""
    literals = quoted(["0.5", "1.5", "2.5", "-0.5", "-1.5", "0.1", "1234567.891", "0.49999999999999994", "-0.0"])
    build = with_arguments("units", 1) | with_arguments("units", 10) | with_arguments("units", 10**6)
    assert_same_values(both, "FLOAT8", literals, build)
    assert_same_values(both, "DECIMAL(18, 3)", literals[:-2], build)


FLOATS = st.one_of(
    st.floats(),
    st.integers(2**50, 2**53).map(lambda quarters: quarters / 4),  # ties between decimals
    st.integers(2**52, 2**67).map(float),  # decimals between two doubles
    st.integers(1, 2**20).map(lambda number: number * 5e-324),
    st.integers(-1074, 1023).map(lambda exponent: 2.0**exponent),
)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
FEW = settings(max_examples=many(1), deadline=None, suppress_health_check=SLOW)


@FEW
@given(values=st.lists(FLOATS, min_size=100, max_size=100))
def test_texts_of_any_doubles(both: tuple[Session, Session], values: list[float]) -> None:
    literals = [f"'{value!r}'" for value in values]
    assert_same_values(both, "FLOAT8", literals, named("exact_double", "text_of_double"))


@FEW
@given(values=st.lists(st.integers(0, 2**32 - 1), min_size=100, max_size=100))
def test_texts_of_any_singles(both: tuple[Session, Session], values: list[int]) -> None:
    literals = [f"'{struct.unpack('f', struct.pack('I', value))[0]!r}'" for value in values]
    assert_same_values(both, "REAL", literals, named("exact_single", "text_of_single"))


INTEGERS = ["0", "1", "-1", "2", "255", "256", "4611686018427387904", "9223372036854775807", "-9223372036854775808"]
INTEGERS += ["9007199254740993", "-9007199254740993", "7", "-7"]


def test_integers(both: tuple[Session, Session]) -> None:
    build = named("exact_plain", "bit_count", "nearest_double", "double", "text", "trim_scale") | texts(Kind.INTEGER)
    build |= with_arguments("xor", 5) | with_arguments("quotient64", 2) | with_arguments("quotient64", -3)
    build |= with_arguments("quotient", 7) | with_arguments("quotient", -2) | with_arguments("equal_values", 7)
    assert_same_values(both, "BIGINT", quoted(INTEGERS), build)
    assert_same_values(both, "BIGINT", quoted([one for one in INTEGERS if one[0] != "-"]), named("bit_length"))
    assert_same_values(both, "BOOLEAN", quoted(["true", "false"]), named("exact_plain"))


def test_wide_integers(both: tuple[Session, Session]) -> None:
    most = "9" * 38
    wide = [most, "-" + most, "1", "0", "-1", "18446744073709551617", "9007199254740993", str(2**100 + 1)]
    build = named("nearest_double", "text")
    for divisor in (1, 7, -(10**18)):
        build |= with_arguments("quotient", divisor)
    assert_same_values(both, "HUGEINT", quoted(wide), build)


def test_sums_of_hashes_leave_64_bits(both: tuple[Session, Session]) -> None:
    """A digest adds up 60 bits of each row."""
    total = "CAST(sum(CAST({} AS HUGEINT) * 3) AS VARCHAR)"
    summed = {
        "sum": lambda render: Markup(total.format(render.written(render.macro("hash64", Markup("CAST(v AS VARCHAR)")))))
    }
    found = {grouped(session, "BIGINT", [str(i) for i in range(100)], summed)[0] for session in both}
    assert len(found) == 1
    assert int(found.pop()) > 2**64


DECIMALS = ["0", "0.0000000001", "-0.0000000001", "1.5", "0.1", "-12.3400000000"]
MOST_DECIMAL = "9999999999999999999999999999.9999999999"


def test_decimals(both: tuple[Session, Session]) -> None:
    build = named("text_of_decimal", "text_of_number", "nearest_double", "scaled", "exact_plain")
    build |= texts(Kind.DECIMAL, "DECIMAL(38,10)") | with_arguments("exact_decimal", Markup("DECIMAL(38, 12)"))
    assert_same_values(both, "DECIMAL(38, 10)", quoted(DECIMALS), build)
    assert_same_values(both, "DECIMAL(38, 10)", quoted([MOST_DECIMAL]), named("text_of_decimal", "nearest_double"))
    floored = with_arguments("floor_of_product", 1) | with_arguments("floor_of_product", 100)
    assert_same_values(both, "DECIMAL(38, 10)", quoted([*DECIMALS, "1.9999999999", "-1.9999999999", "-2"]), floored)
    assert_same_values(both, "DECIMAL(10, 0)", quoted(["100", "-7", "0"]), named("text_of_decimal", "exact_plain"))
    assert_same_values(both, "DECIMAL(4, 4)", quoted(["0.5", "-0.0001", "0"]), named("text_of_decimal"))


@FEW
@given(values=st.lists(st.tuples(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38)), min_size=60, max_size=60))
def test_doubles_of_any_decimals(both: tuple[Session, Session], values: list[tuple[int, int]]) -> None:
    """Both round once, of whatever scale the number is."""
    for scale in (0, 12, 38):
        literals = [str(Text(f"{decimal(number // 10**less, scale):f}")) for number, less in values]
        assert_same_values(both, f"DECIMAL(38, {scale})", literals, named("nearest_double", "text_of_decimal"))


def decimal(number: int, scale: int) -> Decimal:
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


DAYS = ["1969-12-31", "1970-01-01", "0001-01-01", "2000-02-29", "9999-12-31"]
FAR_DAYS = {"0044-03-15 BC": ("-0043-03-15", "0044-03-15 (BC)"), "0001-12-31 BC": ("0000-12-31", "0001-12-31 (BC)")}
FAR_DAYS |= {"12345-06-07": ("+12345-06-07", "12345-06-07"), "5001-01-01 BC": ("-5000-01-01", "5001-01-01 (BC)")}
FAR = list(zip(*FAR_DAYS.values(), strict=True))  # as Spark reads them, and as DuckDB does


def test_dates(both: tuple[Session, Session]) -> None:
    build = named("exact_date", "text_of_day")
    assert_same_values(both, "DATE", quoted(DAYS), build | texts(Kind.DATE))
    shown = [values_of(session, "DATE", quoted(days), build) for session, days in zip(both, FAR, strict=True)]
    assert shown[0] == shown[1]
    assert shown[0][1] == [None, *FAR_DAYS]
    assert_same_values(both, "VARCHAR", quoted(list(FAR_DAYS)), read_as("DATE"))
    assert values_of(both[0], "VARCHAR", quoted(list(FAR_DAYS)), read_as("DATE")) == shown[0][1:]


def read_as(type_name: str) -> dict[str, Build]:
    """The text of the day that is read out of a text."""

    def build(render: DialectRenderer) -> Expression:
        day = render.written(render.macro("read_day", V))
        return render.macro("text_of_day", Markup(f"CAST({day} AS {type_name})"))

    return {"read": build}


TIMES = ["1969-12-31 23:59:59.999999", "2020-01-01 00:00:00.12", "2020-01-01 00:00:00", "0001-01-01 00:00:00.000001"]


def test_timestamps(both: tuple[Session, Session]) -> None:
    build = named("exact_timestamp", "text_of_day")
    assert_same_values(both, "TIMESTAMP", quoted([*TIMES, "9999-12-31 23:59:59.999999"]), build)
    zoned = [f"{time}{zone}" for time in TIMES[:3] for zone in ("+00", "+02:00", "-11:30")]
    build |= {"utc": lambda render: render.macro("text_of_day", render.macro("utc_timestamp", V))}
    assert_same_values(both, "TIMESTAMP WITH TIME ZONE", quoted(zoned), build)
    assert_same_values(both, "VARCHAR", quoted(zoned), read_as("TIMESTAMPTZ"))


@pytest.mark.parametrize(("type_name", "zone"), [("TIMESTAMP", ""), ("TIMESTAMPTZ", "+00")])
def test_far_timestamps(both: tuple[Session, Session], type_name: str, zone: str) -> None:
    days = [day.partition(" ") for day in FAR_DAYS]
    shown = [f"{digits} 10:00:00.5{zone}{blank}{era}" for digits, blank, era in days]
    for session, spelled in zip(both, FAR, strict=True):
        moments = quoted([f"{day} 10:00:00.5{zone}" for day in spelled])
        assert values_of(session, type_name, moments, named("text_of_day")) == [[None, *shown]]
        assert values_of(session, "VARCHAR", quoted(shown), read_as(type_name)) == [[None, *shown]]


WORDS = ["", "a", " x ", "ü😀", "it's", '"q"', "a\\b", "\\d", "%", "NULL", "\n"]
CELLS = ["{Clerk, Sales}", '{NULL, "a, b"}', "[1-5]", "[*-5]", "{NULL, *-5}", "[12-345]", "{NULL, 1-*}"]


def test_texts(both: tuple[Session, Session]) -> None:
    build = named("exact_text", "text", "hash64", "collate", "trim_scale") | texts(Kind.TEXT)
    build |= {
        f"bits {start} {count}": lambda render, start=start, count=count: render.macro(  # type: ignore[misc]
            "bits_of", render.macro("digest", V), start, count
        )
        for start, count in ((0, 32), (32, 32), (64, 31), (96, 32), (8, 1), (0, 48))
    }
    assert_same_values(both, "VARCHAR", quoted(WORDS), build)


PATTERNS = [
    *(r"^[\[{](NULL, )?[*]-|-[*][\]}]$", r"^([^\[{]*)$", r"^\[([0-9]+)-([0-9]+)\]$", "'"),
    rf"^(?:\[{OPEN_SPAN}\]|[{{]NULL, {OPEN_SPAN}[}}])$",
    *(MEMBER, f"^{PLAIN}$", OPEN_SPAN),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(both: tuple[Session, Session], pattern: str) -> None:
    literals = quoted([*WORDS, *CELLS])
    build = with_arguments("matches", Text(pattern)) | with_arguments("tokens", Text(pattern))
    if "([0-9]" in pattern:
        build = with_arguments("capture", Text(pattern), 1) | with_arguments("capture", Text(pattern), 2)
    assert_same_values(both, "VARCHAR", literals, build)


def grouped(session: Session, type_name: str, literals: Sequence[str], build: dict[str, Build]) -> tuple[Any, ...]:
    """The values of aggregates."""
    rows = ", ".join(f"({literal})" for literal in literals)
    listed = ", ".join(session.render.written(one(session.render)) for one in build.values())
    typed = f"SELECT CAST(v AS {type_name}) AS v FROM (VALUES {rows}) AS t(v)"
    return session.send(f"SELECT {listed} FROM ({typed}) AS t")[0]


@pytest.mark.parametrize(
    ("type_name", "literals"),
    [
        ("BIGINT", quoted(["9223372036854775807", "9223372036854775806", "1", "9223372036854775807"])),
        ("FLOAT8", quoted(["NaN", "1.5", "-Infinity", "0.1"])),
        ("DECIMAL(38, 2)", quoted(["123456789012345678901234567890123456.78", "0.01"])),
        ("VARCHAR", quoted(["b", "B", "é", "😀"])),
        ("BIGINT", quoted([])),
    ],
)
def test_order_statistics_keep_their_type(both: tuple[Session, Session], type_name: str, literals: list[str]) -> None:
    build = (
        named("median")
        | with_arguments("kth_least", 2)
        | with_arguments("kth_least", 9)
        | with_arguments("least_ones", 2)
    )
    by_spark, by_duckdb = (list(map(str, grouped(session, type_name, literals, build))) for session in both)
    assert [text.replace("[]", "None") for text in by_spark] == by_duckdb


def test_sums_in_order_and_wide_sums(both: tuple[Session, Session]) -> None:
    """A sum of doubles depends on their order; one of whole numbers may leave 64 bits."""
    doubles = ["1e16", "1", "-1e16", "0.1", "1e-9", "3.3", "1e16"]
    build: dict[str, Build] = {
        "sum": lambda render: render.macro("ordered_sum", V, V),
        "of some": lambda render: render.macro("ordered_sum", Markup("v * 2"), Markup("-v"), Markup("v > 0")),
        "of none": lambda render: render.macro("ordered_sum", V, V, Markup("v > 1e300")),
        "quantiles": lambda render: render.macro("quantiles", V, [0.025, 0.5, 0.975]),
    }
    by_spark, by_duckdb = (grouped(session, "FLOAT8", quoted(doubles)[1:], build) for session in both)
    assert by_spark == by_duckdb
    most = quoted(["9223372036854775807", "9223372036854775807", "-1"])
    wide = {"sum": lambda render: Markup(f"CAST({render.written(render.macro('wide_sum', V))} AS VARCHAR)")}
    assert [grouped(session, "BIGINT", most, wide) for session in both] == [("18446744073709551613",)] * 2


def test_texts_are_joined_in_order(both: tuple[Session, Session]) -> None:
    order = Markup("v IS NOT NULL, v")
    build = {"all": lambda render: render.macro("joined_texts", Markup("coalesce(v, '-')"), Text(", "), order)}
    assert [grouped(session, "VARCHAR", quoted(["b", "", "B", "é"]), build) for session in both] == [
        ("-, , B, b, é",)
    ] * 2


def test_members_and_finite_days(both: tuple[Session, Session]) -> None:
    def is_member(render: DialectRenderer) -> Expression:
        return render.macro("is_member", V, render.macro("tokens", V, Text("[a-z]+")))

    assert_same_values(both, "VARCHAR", quoted(["a", "a b", "", "1", "abc"])[1:], {"is_member": is_member})
    assert_same_values(both, "DATE", quoted(DAYS), named("is_finite_day"))
    assert_same_values(both, "TIMESTAMP", quoted(TIMES), named("is_finite_day"))


def test_rows_are_numbered_from_one(both: tuple[Session, Session]) -> None:
    for session in both:
        number = session.render.written(session.render.macro("number_of_row"))
        text = f"SELECT {number} AS n FROM (VALUES ('a'), ('b'), ('c')) AS t(v)"
        assert sorted(session.send(text)) == [(1,), (2,), (3,)]


def test_records_are_compared_with_their_nulls(both: tuple[Session, Session]) -> None:
    for session in both:
        written = session.render.written
        record = written(session.render.macro("record", [Markup("v"), Markup("nullif(v, v)")]))
        text = f"SELECT count(DISTINCT {record}), count(DISTINCT v) FROM (VALUES (1), (2), (1)) AS t(v)"
        assert session.send(text) == [(2, 2)]
        assert written(session.render.macro("record", [Markup("v")])) == "v"


def test_numbers_count_up_to_the_last(both: tuple[Session, Session]) -> None:
    for session in both:
        numbers = session.render.written(session.render.macro("numbers_to", Markup("t.v")))
        found = session.send(f"SELECT t.v, {numbers} AS n FROM (VALUES (3), (0), (1)) AS t(v)")
        assert sorted(found) == [(1, 1), (3, 1), (3, 2), (3, 3)]


def test_hashes_choose_parts_of_all_rows(both: tuple[Session, Session]) -> None:
    """Each part is about as large as it should be, and every row is in one of them."""
    spark = both[0]
    keys = [Markup("id"), Markup("id % 7")]
    bounds = [(0, 1024), (1024, 4095), (4095, 4096)]
    lies = [spark.render.written(spark.render.macro("hash_lies", keys, *ends)) for ends in bounds]
    parts = ", ".join(f"count(CASE WHEN {one} THEN 1 END)" for one in lies)
    zero = spark.render.written(spark.render.macro("hashes_to_zero", keys, 16))
    *found, chosen = spark.send(f"SELECT {parts}, count(CASE WHEN {zero} THEN 1 END) FROM range(40000)")[0]
    assert sum(found) == 40000
    assert 9500 < found[0] < 10500
    assert 2200 < chosen < 2800


def test_rows_that_differ_have_other_hashes(both: tuple[Session, Session]) -> None:
    """The engine's own hash passes over NULLs, so that (1, NULL) and (NULL, 1) would have the same."""
    spark = both[0]
    hashed = spark.render.macro("hash_of_row", [spark.render.macro("hashable_wide", Markup("a")), Markup("b")])
    rows = "(VALUES (1, NULL), (NULL, 1), (1, 1), (NULL, NULL)) AS t(a, b)"
    text = "SELECT count(DISTINCT {0}), sum({0}) IS NOT NULL FROM " + rows
    assert spark.send(text.format(spark.render.written(hashed))) == [(4, True)]


def test_work_tables_are_parquet() -> None:
    from sqlanon.sql import Relation

    render = SparkSQL.renderer()
    assert render.written(render.macro("create_work", Relation("w"))) == 'CREATE TABLE "w" USING PARQUET'
    assert render.written(render.macro("create_table", Relation("w"))) == 'CREATE TABLE "w" USING PARQUET'
    assert render.written(render.macro("create_view", Relation("w"), True)) == 'CREATE OR REPLACE VIEW "w"'
