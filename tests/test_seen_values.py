"""Classes are what a reader sees; sensitive values are what the column takes for different."""

from __future__ import annotations

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.models import DistinctLDiversity, KAnonymity
from sqlanon.sql import Relation, Statement
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table
from tests.run_support import Database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

LAX = {"duckdb": "VARCHAR COLLATE NOCASE", "postgres": "TEXT COLLATE lax"}
COLLATION = "CREATE COLLATION lax (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


def verify(engine: Engine, columns: str, rows: str, *, sensitive: bool = False) -> Verification:
    """Verify k = 4 and l = 2 of a table `(q, s)`, or k = 4 alone."""
    if "lax" in columns:
        engine.execute(Statement("test", COLLATION))
    engine.execute(Statement("test", f"CREATE TABLE t ({columns})"))
    engine.execute(Statement("test", f"INSERT INTO t VALUES {rows}"))
    found = engine.resolve(Relation("t"))
    assert found is not None
    models = [KAnonymity(4), *([DistinctLDiversity("s", 2)] if sensitive else [])]
    return verify_table(engine, found, ["q"], models, sensitive=["s"] if sensitive else ())


@pytest.mark.parametrize("engine_name", ["postgres"], indirect=True)
def test_numbers_that_print_differently_are_classes_of_their_own(engine: Engine) -> None:
    found = verify(engine, "q NUMERIC", "(1), (1.0), (1.00), (1.000)")
    assert (found.satisfied, found.statistics.classes) == (False, 4)


@pytest.mark.parametrize("engine_name", ["postgres"], indirect=True)
def test_numbers_with_a_scale_print_alike(engine: Engine) -> None:
    assert verify(engine, "q NUMERIC(8, 2)", "(1), (1.0), (1.00), (1.000)").satisfied


@pytest.mark.parametrize("type_", ["FLOAT8", "REAL"])
def test_two_zeros_are_two_classes(engine: Engine, type_: str) -> None:
    zeros = [f"(CAST('{zero}' AS {type_}))" for zero in ("0", "-0", "0", "-0")]
    found = verify(engine, f"q {type_}", ", ".join(zeros))
    assert (found.satisfied, found.statistics.sizes) == (False, ((2, 2),))


def test_texts_in_other_cases_are_classes_of_their_own(engine: Engine) -> None:
    found = verify(engine, f"q {LAX[engine.name]}", "('bob'), ('BOB'), ('Bob'), ('boB')")
    assert (found.satisfied, found.statistics.classes) == (False, 4)


def test_what_a_column_takes_for_equal_is_one_sensitive_value(engine: Engine) -> None:
    columns = f"q INTEGER, s {LAX[engine.name]}"
    found = verify(engine, columns, "(1, 'bob'), (1, 'BOB'), (1, 'Bob'), (1, 'bob')", sensitive=True)
    assert [result.worst for result in found.models] == [4.0, 1.0]
    assert found.disclosure[0].one_value == 4


def test_equal_numbers_are_one_sensitive_value(engine: Engine) -> None:
    zeros = "(1, CAST('0' AS FLOAT8)), (1, CAST('-0' AS FLOAT8)), (1, CAST('0' AS FLOAT8)), (1, CAST('0' AS FLOAT8))"
    assert [result.worst for result in verify(engine, "q INTEGER, s FLOAT8", zeros, sensitive=True).models] == [4, 1]


@pytest.mark.parametrize("engine_name", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("type_", "values", "distinct"),
    [
        ("NUMERIC", ["1", "1.0", "1.00", "1"], 1),
        ("JSONB", ["1", "1.0", "1.00", "1"], 1),
        ("NUMERIC[]", ["{1}", "{1.0}", "{1.00}", "{1}"], 1),
        ("INTERVAL", ["1 day", "24:00", "1 day", "24:00"], 1),
        ("JSON", ["1", "1.0", "1.00", "1"], 3),  # has no equality but that of texts
        ("XML", ["<a/>", "<b/>", "<a/>", "<b/>"], 2),
        ("POINT[]", ['{"(1,2)"}'] * 4, 1),
    ],
)
def test_types_with_an_equality_of_their_own(engine: Engine, type_: str, values: list[str], distinct: int) -> None:
    rows = ", ".join(f"(1, '{value}')" for value in values)
    found = verify(engine, f"q INTEGER, s {type_}", rows, sensitive=True)
    assert [result.worst for result in found.models] == [4, distinct]


def test_a_run_counts_sensitive_values_so_too(database: Database) -> None:
    if database.engine == "postgres":
        database.sql(COLLATION)
    asked = {"privacy": [{"model": "distinct-l-diversity", "attribute": "s", "l": 2}]}
    roles = {"q": {"role": "quasi-identifier"}, "s": "sensitive"}
    columns = {"q": "INTEGER", "s": LAX[database.engine]}
    rows = [(1, "bob"), (1, "BOB"), (2, "bob"), (2, "al")]
    released = database.release(database.create(columns, rows), roles, **asked)
    assert sorted(released) == [("[1-2]", s) for s in ("BOB", "al", "bob", "bob")]
    alike = database.create(columns, rows[:2])
    with pytest.raises(ProtectionError):
        database.release(alike, roles, **asked)


def test_suppressed_rows_are_known_beside_numbers(engine: Engine) -> None:
    engine.execute(Statement("test", "CREATE TABLE t (n FLOAT8, q VARCHAR(9), m FLOAT8)"))
    engine.execute(
        Statement("test", "INSERT INTO t VALUES (NULL, '*', NULL), (0, '*', NULL), (0, 'a', 1), (0, 'a', 1)")
    )
    found = engine.resolve(Relation("t"))
    assert found is not None
    statistics = verify_table(engine, found, ["n", "q", "m"], [], suppressed_label="*").statistics
    assert (statistics.suppressed, statistics.sizes) == (1, ((1, 2), (2, 1)))
