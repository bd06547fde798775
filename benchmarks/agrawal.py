"""The synthetic table of the Rothko evaluation, made inside the database by SQL.

Nine attributes as Agrawal, Imielinski and Swami define them (IEEE TKDE 5(6), 1993) and LeFevre and DeWitt use them
(TR 1590, section 5): salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan; and a sensitive class. Rows
are a function of their number and a seed, through the engine's own hash, so that a table of any size can be made again.

With targets there are also classes by the functions 2, 7 and 10 of the same paper (1 is its group A, 0 its group B):
`c2`, `c7`, `c10`; the disposable income whose sign the last two take: `r7`, `r10`; and its fifths: `r7_fifth`, 1 to 5.
Noise is the share of rows whose classes are replaced by another one, the same rows for all classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

QUASI_IDENTIFIERS = ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")

GROUP_A_OF_2 = (
    "(age < 40 AND salary BETWEEN 50000 AND 100000 OR age BETWEEN 40 AND 59 AND salary BETWEEN 75000 AND 125000"
    " OR age >= 60 AND salary BETWEEN 25000 AND 75000)"
)
HUNDREDTHS_OF_7 = "(67 * (salary + commission) - 20 * loan - 2000000)"
"""0.67 (salary + commission) - 0.2 loan - 20,000, in hundredths: a whole number."""
HUNDREDTHS_OF_10 = "(67 * (salary + commission) - 500000 * elevel + 2 * hvalue * greatest(hyears - 20, 0) - 1000000)"
"""0.67 (salary + commission) - 5,000 elevel + 0.2 equity - 10,000; equity is 0.1 hvalue (hyears - 20), at least 0."""
FIFTHS = (-3_200_000, -1_100_000, 900_000, 3_020_000)
"""Ends of the fifths of `r7`, in hundredths: of the distribution, not of a table, so a row's class is its own."""


@dataclass(frozen=True)
class Wanted:
    """Specification of a table's content.

    realistic: car is text, hvalue a double, commission and hyears have NULLs, the class is text, and the identifier
        too; otherwise all nine are integers.
    targets: whether the targets are there, and noise the share of rows whose classes are replaced.
    normal: whether salary is normal, with the mean and the variance that it has otherwise (none is negative).
    """

    rows: int
    realistic: bool = False
    targets: bool = False
    noise: float = 0.0
    seed: int = 0
    normal: bool = False


@dataclass(frozen=True)
class Spelling:
    """An engine's words for the table.

    rows: numbers from 0 to one less than `{rows}`. hash: of the number `{number}` and the attribute `{n}`, as a
    remainder by `{prime}` that is not negative.
    """

    create: str
    text: str
    rows: str
    hash: str


SPELLINGS = {
    "duckdb": Spelling("CREATE OR REPLACE", "VARCHAR", "range({rows})", "(hash({number}, {n}) % {prime})::INT"),
    "postgres": Spelling(
        "CREATE",
        "TEXT",
        "generate_series(0, {rows} - 1)",
        "(((hashint8extended({number}, {n}) % {prime}) + {prime}) % {prime})::INT",
    ),
}


def create_statement(dialect: str, table: str, wanted: Wanted) -> str:
    """The statement that makes the table, in `duckdb` (where it replaces one) or `postgres`."""
    return f"{SPELLINGS[dialect].create} TABLE {table} AS\n{query(dialect, wanted)}"


def parquet_statement(path: Path, wanted: Wanted) -> str:
    """DuckDB's statement that writes the table to a Parquet file, in memory that does not depend on the rows."""
    escaped = str(path).replace("'", "''")
    return f"COPY (\n{query('duckdb', wanted)}\n) TO '{escaped}' (FORMAT parquet)"


def query(dialect: str, wanted: Wanted) -> str:
    """The rows of the table."""
    shown = _shown(dialect) if wanted.realistic else _PLAIN
    columns = [f"{shown.get(name, name)} AS {name}" for name in (*QUASI_IDENTIFIERS, "cls", "person")]
    if wanted.targets:
        columns += [f"{value} AS {name}" for name, value in targets(wanted.noise).items()]
    return f"SELECT {', '.join(columns)}\nFROM ({_attributes(dialect, wanted)}) AS t"


def targets(noise: float = 0.0) -> dict[str, str]:
    """The targets as expressions over the attributes; with noise also over `flip` and `other`, uniform numbers."""
    fifth = " + ".join(["1", *(f"CASE WHEN {HUNDREDTHS_OF_7} > {end} THEN 1 ELSE 0 END" for end in FIFTHS)])
    classes = {"c2": GROUP_A_OF_2, "c7": f"{HUNDREDTHS_OF_7} > 0", "c10": f"{HUNDREDTHS_OF_10} > 0"}
    flips = f"(flip < {round(noise * _PRIME)})"
    binary = {
        name: f"CASE WHEN ({value}) {f'<> {flips} ' if noise else ''}THEN 1 ELSE 0 END"
        for name, value in classes.items()
    }
    if noise:
        fifth = f"({fifth} + CASE WHEN {flips} THEN other % 4 ELSE 4 END) % 5 + 1"
    reals = {"r7": f"{HUNDREDTHS_OF_7} / 100.0", "r10": f"{HUNDREDTHS_OF_10} / 100.0"}
    return binary | {"r7_fifth": fifth} | {name: f"CAST({value} AS DOUBLE PRECISION)" for name, value in reals.items()}


_PRIME = 1_000_000_007
_PLAIN = {"cls": "(loan % 5)", "person": "i"}


def _shown(dialect: str) -> dict[str, str]:
    text = SPELLINGS[dialect].text
    return {
        "commission": "CASE WHEN salary < 75000 THEN commission END",
        "car": f"'make ' || (car % 5)::{text} || ' model ' || car::{text}",
        "hvalue": "(hvalue / 8.0)::DOUBLE PRECISION",
        "hyears": "CASE WHEN loan % 100 <> 0 THEN hyears END",
        "cls": f"'class ' || (loan % 5)::{text}",
        "person": f"'person ' || i::{text}",
    }


def _attributes(dialect: str, wanted: Wanted) -> str:
    """The nine attributes as integers, from hashes of the row's number."""
    u = _uniform(dialect, wanted.seed)
    salary = _normal(u(1), u(12), 85_000.0, 37_528.0) if wanted.normal else f"20000 + {u(1)} % 130001"
    numbers = SPELLINGS[dialect].rows.format(rows=wanted.rows)
    return f"""
    SELECT i, salary, CASE WHEN salary >= 75000 THEN 0 ELSE commission END AS commission, age, elevel, car, zipcode,
        CAST(floor(zipcode * 100000 * (0.5 + level / 1000000.0)) AS INT) AS hvalue, hyears, loan, flip, other
    FROM (
        SELECT i,
            {salary} AS salary, 10000 + {u(2)} % 65001 AS commission, 20 + {u(3)} % 61 AS age,
            {u(4)} % 5 AS elevel, 1 + {u(5)} % 20 AS car, 1 + {u(6)} % 9 AS zipcode, {u(7)} % 1000001 AS level,
            1 + {u(8)} % 30 AS hyears, {u(9)} % 500001 AS loan, {u(10)} AS flip, {u(11)} AS other
        FROM {numbers} AS r(i)
    ) AS d"""


def _normal(first: str, second: str, mean: float, deviation: float) -> str:
    """A whole number that is normal, from two uniform ones (Box, Muller), and 0 where it would be less."""
    radius = f"sqrt(-2 * ln(({first} + 1) / {_PRIME + 1}.0))"
    return f"CAST(greatest(0, {mean} + {deviation} * {radius} * cos(2 * pi() * {second} / {_PRIME}.0)) AS INT)"


def _uniform(dialect: str, seed: int) -> Callable[[int], str]:
    number = f"i + {seed << 40}" if seed else "i"
    return lambda n: SPELLINGS[dialect].hash.format(number=number, n=n, prime=_PRIME)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the synthetic table to a Parquet file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--noise", type=float, default=0.0, help="share of rows whose classes are replaced")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    wanted = Wanted(arguments.rows, targets=True, noise=arguments.noise, seed=arguments.seed)
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(parquet_statement(arguments.file, wanted))


if __name__ == "__main__":
    main()
