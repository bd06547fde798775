"""Seconds to decide on a question to a million rows of eight quasi-identifiers, with a thousand answered before.

PYTHONPATH=$PWD python benchmarks/output_questions.py [URL] [--rows N] [--known N]

Without a URL: DuckDB in memory. Beside the decision: the scan that digests the table and counts persons, and one
GROUP BY of the eight columns, as a measure of the machine.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.inquiries.questions.axes import spans_of
from sqlanon.inquiries.questions.question import Condition, parse_question
from sqlanon.inquiries.questions.question_audit import AskedTable, audit
from sqlanon.inquiries.questions.row_space import SumVerdict
from sqlanon.sql import Identifier, Relation, Statement

SIZES = {"age": 70, "zip": 100, "job": 15, "sex": 2, "edu": 16, "marital": 7, "country": 40, "race": 5}
NAMES = tuple(SIZES)
SHARE = 0.01  # of the table, that a question is about at least


def condition(name: str, draw: random.Random) -> str:
    """A condition that holds for a good part of the rows."""
    size = SIZES[name]
    low = draw.randrange(size)
    high = min(size - 1, low + draw.randrange(1 + size // 2))
    return f"{name} between {low} and {high}"


def question(draw: random.Random) -> str:
    return "count(*) where " + " and ".join(condition(name, draw) for name in draw.sample(NAMES, draw.randint(1, 3)))


def independent(count: int, draw: random.Random) -> list[str]:
    """Questions of which none follows from the others, modulo 2, of some thousand random rows;
    each is about one per cent of the table or more."""
    points = [{name: draw.randrange(size) for name, size in SIZES.items()} for _ in range(2 * count)]
    by_last = {(1 << len(points)).bit_length() - 1: (1 << len(points)) - 1}
    questions: list[str] = []
    while len(questions) < count:
        text = question(draw)
        conditions = parse_question(text).conditions
        row = int("".join("01"[holds(conditions, point)] for point in points), 2)
        share = math.prod((int(one.constants[1] - one.constants[0]) + 1) / SIZES[one.column] for one in conditions)  # type: ignore[operator]
        while row and (last := row.bit_length()) in by_last:
            row ^= by_last[last]
        if row and share >= SHARE:
            by_last[row.bit_length()] = row
            questions.append(text)
    return questions


def holds(conditions: Sequence[Condition], point: dict[str, int]) -> bool:
    """Tell whether a row meets conditions."""
    return all(one.constants[0] <= point[one.column] <= one.constants[1] for one in conditions)  # type: ignore[operator]


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", default="duckdb:///:memory:")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--known", type=int, default=1_000)
    given = parser.parse_args()
    draw = random.Random(7)
    with connect(given.url) as engine:
        numbers = "unnest(range(1, {0} + 1))" if engine.traits.is_embedded else "generate_series(1, {0})"
        columns = ", ".join(f"CAST(floor(random() * {size}) AS INTEGER) AS {name}" for name, size in SIZES.items())
        table = Relation("benchmark_people", *(("temp",) if engine.traits.is_embedded else ("pg_temp",)))
        engine.execute(
            Statement(
                "make",
                f"CREATE TEMP TABLE benchmark_people AS SELECT {columns}, CAST(random() * 100000 AS INTEGER) AS income"
                f" FROM (SELECT {numbers.format(given.rows)} AS n) AS t",
            )
        )
        engine.execute(Statement("analyze", "ANALYZE benchmark_people"))
        there = engine.columns(engine.resolve(table) or table)
        asked = AskedTable(engine, table, None, 5)
        known = [spans_of(parse_question(text), there, NAMES) for text in independent(given.known, draw)]
        listed = ", ".join(NAMES)
        grouped = f"SELECT count(*) FROM (SELECT {listed}, count(*) FROM benchmark_people GROUP BY {listed}) AS g"
        base, _ = seconds(lambda: engine.fetch(Statement("group", grouped)))
        print(f"one GROUP BY of eight columns: {base:.2f} s")
        for _ in range(5):
            spans = spans_of(parse_question(question(draw)), there, NAMES)
            scan, _ = seconds(
                lambda spans=spans: engine.query_one(
                    "inquiries/questions/measure_table",
                    source=table,
                    person=None,
                    spans=asked.span_values(spans),
                    columns=[Markup(Identifier(one.name)) for one in there],
                    value=None,
                    is_finite=True,
                )
            )
            took, verdict = seconds(lambda spans=spans: audit(asked, known, spans, given.rows))
            assert verdict in SumVerdict
            print(f"decision {took:.2f} s ({took / base:.1f} GROUP BYs): {verdict.value}; scan {scan:.2f} s")


if __name__ == "__main__":
    main()
