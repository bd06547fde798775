"""The synthetic table of the Rothko evaluation, made inside the database by SQL.

Nine attributes as Agrawal, Imielinski and Swami define them (IEEE TKDE 5(6), 1993) and LeFevre and DeWitt use them
(TR 1590, section 5): salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan; and a sensitive class. Rows
are a function of their number, through a hash, so that a table of any size can be made again.
"""

from __future__ import annotations

QUASI_IDENTIFIERS = ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")

_DUCKDB = """
CREATE OR REPLACE TABLE {table} AS
SELECT salary, CASE WHEN salary >= 75000 THEN {no_commission} ELSE commission END AS commission,
    age, elevel, {car} AS car, zipcode, {hvalue} AS hvalue,
    CASE WHEN {missing} THEN NULL ELSE hyears END AS hyears, loan,
    {cls} AS cls, {identifier}
FROM (
    SELECT i,
        20000 + {u1} % 130001 AS salary, 10000 + {u2} % 65001 AS commission, 20 + {u3} % 61 AS age, {u4} % 5 AS elevel,
        1 + {u5} % 20 AS car, 1 + {u6} % 9 AS zipcode, {u7} % 1000001 AS level, 1 + {u8} % 30 AS hyears,
        {u9} % 500001 AS loan
    FROM {numbers}
) AS t
"""


def create_statement(dialect: str, table: str, rows: int, *, realistic: bool) -> str:
    """The statement that makes the table.

    realistic: car is text, hvalue a double, commission and hyears have NULLs, the class is text, and there is an
        identifier; otherwise all nine are integers.
    """
    if dialect == "duckdb":
        u = {f"u{n}": f"(hash(i, {n}) % 1000000007)::INT" for n in range(1, 10)}
        numbers = f"range({rows}) AS r(i)"
        integer, text, double = "INT", "VARCHAR", "DOUBLE"
    else:
        positive = "(((hashint8extended(i, {n}) % 1000000007) + 1000000007) % 1000000007)::INT"
        u = {f"u{n}": positive.format(n=n) for n in range(1, 10)}
        numbers = f"generate_series(0, {rows - 1}) AS r(i)"
        integer, text, double = "INT", "TEXT", "FLOAT8"
    hvalue = "floor(zipcode * 100000 * (0.5 + level / 1000000.0))"
    if realistic:
        parts = {
            "no_commission": "NULL",
            "car": f"'make ' || (car % 5)::{text} || ' model ' || car::{text}",
            "hvalue": f"({hvalue} / 8)::{double}",
            "missing": "loan % 100 = 0",
            "cls": f"'class ' || (loan % 5)::{text}",
            "identifier": f"'person ' || i::{text} AS person",
        }
    else:
        parts = {
            "no_commission": "0",
            "car": "car",
            "hvalue": f"{hvalue}::{integer}",
            "missing": "FALSE",
            "cls": f"(loan % 5)::{integer}",
            "identifier": "i AS person",
        }
    statement = _DUCKDB.format(table=table, numbers=numbers, **u, **parts)
    return statement if dialect == "duckdb" else statement.replace("CREATE OR REPLACE TABLE", "CREATE TABLE")
