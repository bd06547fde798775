"""Subsets, SUDA and association rules on DuckDB: seconds, and seconds of the processor, of a million rows.

python benchmarks/singling.py --rows 1000000 --subsets 4 --suda 3
python benchmarks/singling.py --rows 1000000 --only columns9 --rules 3 --support 100

`evaluation` is the nine columns of the Rothko evaluation (agrawal.py); `columns15` fifteen independent columns of 2 to
1,000 values each, the hardest case: hardly a row repeats, and few subsets end the walk; `columns9`
nine such columns of 2 to 500. Fifteen columns have 1,940 subsets of up to four, nine 129 of up to three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

from agrawal import Wanted, query

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.inquiries.risk.association_mining import AssociationOptions, mine_associations
from sqlanon.inquiries.risk.coded_columns import code_columns
from sqlanon.inquiries.risk.measured_table import risk_source
from sqlanon.inquiries.risk.subsets import ENOUGH, measure_subsets
from sqlanon.inquiries.risk.suda import measure_suda
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.work.workspace import TemporaryWorkspace

_T = TypeVar("_T")
FIFTEEN = (2, 2, 3, 5, 7, 9, 12, 16, 20, 30, 50, 74, 100, 500, 1000)
NINE = (2, 3, 5, 9, 16, 30, 74, 100, 500)


def _independent(values: tuple[int, ...]) -> Callable[[int], str]:
    columns = ", ".join(f"hash(CAST(i * 17 + {n} AS VARCHAR)) % {of} AS c{n}" for n, of in enumerate(values))
    return lambda rows: f"SELECT {columns} FROM range({rows}) AS r(i)"


TABLES: dict[str, Callable[[int], str]] = {
    "evaluation": lambda rows: f"SELECT * EXCLUDE (person, cls) FROM ({query('duckdb', Wanted(rows))})",
    "columns9": _independent(NINE),
    "columns15": _independent(FIFTEEN),
}


def main() -> None:
    """Time the tables and measures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--subsets", type=int)
    parser.add_argument("--suda", type=int)
    parser.add_argument("--rules", type=int, help="the columns of left sides; the last column of the table is right")
    parser.add_argument("--support", type=int, default=1)
    parser.add_argument("--enough", type=float, default=ENOUGH)
    arguments = parser.parse_args()
    for name in arguments.only:
        _measure(name, arguments)


def _measure(name: str, arguments: argparse.Namespace) -> None:
    with connect("duckdb:///:memory:") as engine:
        engine.execute(Statement("table", f"CREATE TABLE t AS {TABLES[name](arguments.rows)}"))
        table = engine.resolve(Relation("t"))
        assert table is not None
        if arguments.rules:
            _mine(name, engine, table, arguments)
        if not arguments.subsets and not arguments.suda:
            return
        workspace = TemporaryWorkspace(engine)
        with engine.transaction():
            coded = _timed(f"{name}: code", lambda: code_columns(engine, workspace, table, engine.columns(table)))
            if arguments.subsets:
                found = _timed(
                    f"{name}: subsets",
                    lambda: measure_subsets(engine, workspace, coded, arguments.subsets, arguments.enough),
                )
                print(f"{name}: {len(found):,} subsets were looked at")
            if arguments.suda:
                _timed(f"{name}: SUDA", lambda: measure_suda(engine, workspace, coded, arguments.suda))


def _mine(name: str, engine: Engine, table: Relation, arguments: argparse.Namespace) -> None:
    """Time the mining of all rules to the last column beside one GROUP BY of all columns."""
    *left, right = engine.columns(table)
    columns = ", ".join(str(Identifier(column.name)) for column in [*left, right])
    grouped = Statement("group", f"CREATE TABLE g AS SELECT {columns}, count(*) AS n FROM {table} GROUP BY {columns}")
    _timed(f"{name}: GROUP BY of all columns", lambda: engine.execute(grouped))
    asked = AssociationOptions(5, arguments.support, 0.8, None, arguments.rules)
    source = risk_source(engine, table, [column.name for column in left])
    mined = _timed(f"{name}: rules", lambda: mine_associations(source, [right], asked))
    print(f"{name}: {mined.total:,} rules, {mined.singling_out:,} single out, {mined.giving_away:,} give away")


def _timed(what: str, work: Callable[[], _T]) -> _T:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    print(f"{what}: {time.perf_counter() - wall:.1f} s, processor {time.process_time() - processor:.1f} s", flush=True)
    return result


if __name__ == "__main__":
    main()
