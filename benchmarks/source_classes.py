"""Accuracy and cost of estimates of a source's classes, against their counts; tables of two codes, in DuckDB.

python benchmarks/source_classes.py --rows 10000000
"""

from __future__ import annotations

import argparse
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.measures import before
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.sql import Identifier, Relation, Statement

TABLES = {  # the class of row i
    "all different": "i",
    "pairs": "i // 2",
    "half alone, half in pairs": "CASE WHEN i % 4 < 2 THEN i ELSE i - i % 2 END",
    "one class of half the rows": "CASE WHEN i % 2 = 0 THEN -1 ELSE i END",
    "sizes as 1/rank, half alone": "CASE WHEN i % 2 = 0 THEN i ELSE -CAST(floor(exp(random() * 13)) AS BIGINT) END",
    "classes of 200, half alone": "CASE WHEN i % 2 = 0 THEN i ELSE -(i // 400) END",
    "few classes of 40": "CASE WHEN i < 250000 THEN -(i // 40) - 1 ELSE i END",
    "few classes of 150": "CASE WHEN i < 60000 THEN -(i // 150) - 1 ELSE i END",
    "classes of 1 to 260": "CAST(floor(300 * sqrt(i / 150)) AS BIGINT)",
}


def statistics(engine: Engine, rows: int, exact: bool) -> tuple[ClassStatistics, float]:
    """The class sizes, and the seconds that it took."""
    fields = [SimpleNamespace(word=word, mask=2**62 - 1) for word in range(2)]
    coded: Any = SimpleNamespace(rows=Relation("coded"), source_rows=rows, words=2, quasi_identifiers=fields)
    coded.word_columns = tuple(Identifier(f"p{word}") for word in range(2))
    coded.witness_is_sample = False
    with mock.patch.object(before, "MOST_EXACT", rows if exact else 0):
        started = time.perf_counter()
        found = before.source_statistics(engine, coded, None)
        return found, time.perf_counter() - started


def beside(true: int, estimate: int) -> str:
    """A figure, and how far the estimate of it is off."""
    return f"{true:>18,} {estimate / true - 1 if true else float(estimate):+.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with connect("duckdb:///:memory:") as engine:
        for name, value in TABLES.items():
            text = (
                "CREATE OR REPLACE TABLE coded AS SELECT CAST(hash(v) >> 2 AS BIGINT) AS p0, "
                f"CAST(hash(v, 1) >> 30 AS BIGINT) AS p1 FROM (SELECT {value} AS v FROM range({rows}) AS r(i))"
            )
            engine.execute(Statement("create", text))
            true, slow = statistics(engine, rows, exact=True)
            found, quick = statistics(engine, rows, exact=False)
            print(
                f"{name:28} classes {beside(true.classes, found.classes)}, "
                f"discernibility {beside(true.discernibility(), found.discernibility())}, "
                f"alone {beside(*(dict(s.sizes).get(1, 0) for s in (true, found)))}, "
                f"largest {true.max_class_size:,} {found.max_class_size:,}; {slow:.2f} s, {quick:.2f} s"
            )


if __name__ == "__main__":
    main()
