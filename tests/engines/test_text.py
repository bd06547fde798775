"""The text of values and the other macros of the dialects: the same on both engines."""

from __future__ import annotations

import contextlib
import hashlib
import math
import struct
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.sql import Expression, Relation, Statement
from sqlanon.values.expressions import text_of
from tests.postgres_server import PostgresServer
from tests.random_cases import many

V = Markup("v")


@pytest.fixture(scope="module")
def both(postgres_server: PostgresServer) -> Iterator[tuple[Engine, Engine]]:
    """A session of each engine for the whole module: hypothesis runs many examples on it."""
    with contextlib.ExitStack() as stack:
        urls = ("duckdb://", postgres_server.url("postgres"))
        yield tuple(stack.enter_context(connect(url)) for url in urls)  # type: ignore[misc]


@pytest.fixture
def session(engine_name: str, both: tuple[Engine, Engine]) -> Engine:
    """The module's session of each engine in turn."""
    return next(engine for engine in both if engine.name == engine_name)


def texts(engine: Engine, type_name: str, literals: Sequence[str], kind: Kind) -> list[str | None]:
    """The texts of values given as SQL literals of a type."""
    rows = ", ".join(f"({i}, CAST({literal} AS {type_name}))" for i, literal in enumerate(literals))
    text = engine.traits.renderer().written(text_of(engine.render, V, kind, type_name))
    found = engine.fetch(Statement("test", f"SELECT i, {text} FROM (VALUES {rows}) AS t (i, v) ORDER BY i"))
    return [row[1] for row in found]


CASES = {
    ("BIGINT", Kind.INTEGER): {"-9223372036854775808": "-9223372036854775808", "0": "0", "NULL": None},
    ("DECIMAL(10,3)", Kind.DECIMAL): {"1.5": "1.500", "-0.001": "-0.001", "0": "0.000", "1234567.891": "1234567.891"},
    ("DECIMAL(4,4)", Kind.DECIMAL): {"0.5": "0.5000", "-0.0001": "-0.0001"},
    ("DECIMAL(5,0)", Kind.DECIMAL): {"100": "100", "-7": "-7"},
    ("BOOLEAN", Kind.BOOLEAN): {"TRUE": "true", "FALSE": "false", "NULL": None},
    ("DATE", Kind.DATE): {
        "'1969-12-31'": "1969-12-31",
        "'0001-01-01'": "0001-01-01",
        "'12345-06-07'": "12345-06-07",
        "'infinity'": "infinity",
        "'-infinity'": "-infinity",
        "NULL": None,
    },
    ("TIMESTAMP", Kind.TIMESTAMP): {
        "'1969-12-31 23:59:59.999999'": "1969-12-31 23:59:59.999999",
        "'2020-01-01 00:00:00.120000'": "2020-01-01 00:00:00.12",
        "'2020-01-01'": "2020-01-01 00:00:00",
        "'-infinity'": "-infinity",
    },
    ("TIMESTAMP WITH TIME ZONE", Kind.TIMESTAMPTZ): {
        "'2020-01-01 00:00:00.5+02'": "2019-12-31 22:00:00.5+00",
        "'1969-07-20 20:17:40+00'": "1969-07-20 20:17:40+00",
        "'infinity'": "infinity",
    },
    ("TIME", Kind.TIME): {"'01:02:03.500'": "01:02:03.5", "'24:00:00'": "24:00:00", "'00:00:00'": "00:00:00"},
    ("VARCHAR", Kind.TEXT): {"'a''b%s \"ü😀'": "a'b%s \"ü😀", "''": "", "' x '": " x ", "NULL": None},
    ("UUID", Kind.UUID): {"'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
    ("DOUBLE PRECISION", Kind.FLOAT): {
        "100": "100",
        "'-0.0'": "0",
        "0.1": "0.1",
        "0.0001": "0.0001",
        "0.00001": "1e-05",
        "1e14": "100000000000000",
        "1e15": "1e+15",
        "1234567890123456": "1.234567890123456e+15",
        "1e16": "1e+16",
        "2.003485544858745e+16": "2.003485544858745e+16",
        "1e23": "1e+23",
        "5e-324": "5e-324",
        "1.7976931348623157e308": "1.7976931348623157e+308",
        "'NaN'": "NaN",
        "'Infinity'": "Infinity",
        "'-Infinity'": "-Infinity",
        "NULL": None,
    },
    ("REAL", Kind.FLOAT): {
        "100": "100",
        "0.1": "0.1",
        "1000000": "1000000",
        "16777216": "16777216",
        "1929902.75": "1929902.8",
        "346027616": "346027620",
        "999999986991104": "1e+15",
        "1e-5": "1e-05",
        "3.4028235e38": "3.4028235e+38",
        "'-0'": "0",
        "'NaN'": "NaN",
        "'-Infinity'": "-Infinity",
        "NULL": None,
    },
}


@pytest.mark.parametrize(
    ("column", "expected"), CASES.items(), ids=lambda case: case[0] if isinstance(case, tuple) else ""
)
def test_text_of_nasty_values(session: Engine, column: tuple[str, Kind], expected: dict[str, str | None]) -> None:
    type_name, kind = column
    assert dict(zip(expected, texts(session, type_name, list(expected), kind), strict=True)) == expected


def test_text_of_years_before_christ(both: tuple[Engine, Engine]) -> None:
    spelled = {"duckdb": "'0044-03-15 (BC){}'", "postgres": "'0044-03-15{} BC'"}
    for engine in both:
        literal = spelled[engine.name]
        assert texts(engine, "DATE", [literal.format("")], Kind.DATE) == ["0044-03-15 BC"]
        moment = literal.format(" 10:00:00.5")
        assert texts(engine, "TIMESTAMP", [moment], Kind.TIMESTAMP) == ["0044-03-15 10:00:00.5 BC"]
        zoned = literal.format(" 10:00:00+00")
        assert texts(engine, "TIMESTAMP WITH TIME ZONE", [zoned], Kind.TIMESTAMPTZ) == ["0044-03-15 10:00:00+00 BC"]


def test_text_of_enums(session: Engine) -> None:
    session.execute(Statement("test", "CREATE TYPE mood AS ENUM ('so so', 'Ok')"))
    assert texts(session, "mood", ["'Ok'", "'so so'", "NULL"], Kind.ENUM) == ["Ok", "so so", None]


def test_numbers_without_a_scale_have_one_text(both: tuple[Engine, Engine]) -> None:
    literals = ["1.50", "1.5", "100", "0.00", "'NaN'"]
    assert texts(both[1], "numeric", literals, Kind.DECIMAL) == ["1.5", "1.5", "100", "0", "NaN"]


def float_texts(engine: Engine, type_name: str, values: list[float]) -> list[str]:
    literals = [f"'{value!r}'" for value in values]
    return [str(text) for text in texts(engine, type_name, literals, Kind.FLOAT)]


DOUBLES = st.one_of(
    st.floats(),
    st.integers(2**50, 2**53).map(lambda quarters: quarters / 4),  # ties between decimals
    st.integers(2**52, 2**67).map(float),  # decimals between two doubles
    st.integers(-1074, 1023).map(lambda exponent: 2.0**exponent),
    st.integers(-323, 308).map(lambda exponent: float(f"1e{exponent}")),
)
SINGLES = st.one_of(
    st.floats(width=32),
    st.tuples(st.integers(1, 2**24), st.integers(1, 30)).map(lambda pair: pair[0] / 2.0 ** pair[1]),
    st.integers(-149, 127).map(lambda exponent: 2.0**exponent),
)
MANY = settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(values=st.lists(DOUBLES, min_size=1, max_size=60))
def test_text_of_doubles_is_the_same_and_reads_back(both: tuple[Engine, Engine], values: list[float]) -> None:
    duckdb, postgres = (float_texts(engine, "DOUBLE PRECISION", values) for engine in both)
    assert duckdb == postgres
    for value, text in zip(values, duckdb, strict=True):
        assert math.isnan(value) if text == "NaN" else float(text) == value


@MANY
@given(values=st.lists(SINGLES, min_size=1, max_size=60))
def test_text_of_singles_is_the_same_and_reads_back(both: tuple[Engine, Engine], values: list[float]) -> None:
    duckdb, postgres = (float_texts(engine, "REAL", values) for engine in both)
    assert duckdb == postgres
    for value, text in zip(values, duckdb, strict=True):
        assert math.isnan(value) if text == "NaN" else struct.unpack("f", struct.pack("f", float(text)))[0] == value


def values_of(engine: Engine, expression: Expression, rows: str) -> list[object]:
    written = engine.traits.renderer().written(expression)
    found = engine.fetch(Statement("test", f"SELECT {written} FROM (VALUES {rows}) AS t (i, v) ORDER BY i"))
    return [row[0] for row in found]


def test_bit_length(session: Engine) -> None:
    numbers = (0, 1, 2, 255, 256, 2**62, 2**63 - 1)
    rows = ", ".join(f"({i}, CAST({number} AS BIGINT))" for i, number in enumerate(numbers))
    assert values_of(session, session.render.macro("bit_length", V), rows) == [n.bit_length() for n in numbers]


def test_hash64_is_the_start_of_the_md5(session: Engine) -> None:
    words = ("", "a", "ü😀", "it''s")
    rows = ", ".join(f"({i}, '{word}')" for i, word in enumerate(words))
    expected = [int(hashlib.md5(word.replace("''", "'").encode()).hexdigest()[:15], 16) for word in words]
    assert values_of(session, session.render.macro("hash64", V), rows) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 100])
def test_median_is_the_lower_of_two(session: Engine, count: int) -> None:
    rows = ", ".join(f"({i}, {i * 10})" for i in range(count))
    median = session.traits.renderer().written(session.render.macro("median", V))
    (found,) = session.fetch_one(Statement("test", f"SELECT {median} FROM (VALUES {rows}, (0, NULL)) AS t (i, v)"))
    assert found == (count - 1) // 2 * 10


def test_collate_orders_and_groups_by_bytes(session: Engine) -> None:
    collation = {"duckdb": "NOCASE", "postgres": '"en-US-x-icu"'}[session.name]
    session.execute(Statement("test", f"CREATE TEMP TABLE words (v VARCHAR COLLATE {collation})"))
    words = ["b", "B", "a", "Z", "é", "e", "_", "", " x", "😀", "\uffff"]
    table = session.resolve(Relation("words"))
    assert table is not None
    session.load(table, ["v"], [[word] for word in words])
    key = session.traits.renderer().written(session.render.macro("collate", V))
    rows = session.fetch(Statement("test", f"SELECT min({key}), count(*) FROM words GROUP BY {key} ORDER BY {key}"))
    assert rows == [(word, 1) for word in sorted(words, key=str.encode)]
