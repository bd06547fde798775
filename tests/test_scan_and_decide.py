"""Rows in one DuckDB, decisions in another that holds none: trees and lattices come out the same."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from sqlanon.algorithms import algorithm_of
from sqlanon.algorithms.base import SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.algorithms.tree.forest import grow_share
from sqlanon.algorithms.tree.growth import Frontier, Growth
from sqlanon.algorithms.tree.partitioning import build_task
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.encoding.coded_table import encode
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.models import models_of
from sqlanon.plan.plan import resolve_source
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace
from tests.random_cases import many

LATTICE = (
    "create_first_candidates",
    "create_first_edges",
    "join_candidates",
    "prune_candidates",
    "create_edges",
    "list_candidates",
    "list_edges",
    "remove_candidates",
)
"""The decisions of Incognito; those of the other searches of lattices are made in Python."""
DECISIONS = (
    "algorithms/tree/decide/",
    "methods/partitioning/gain/decide/",
    "methods/partitioning/sampling/decide/",
    "count_rows",
    *(f"methods/generalization/lattice/{name}" for name in LATTICE),
)
OF_ROWS = {"p0", "k_0"}
"""A table of rows has a word of codes, or a key of its attribute's bin."""

_NAMED = re.compile(r'"?temp"?\."?main"?\."?(w_\w+)"?')
_WRITTEN = re.compile(r"\s*(?:CREATE (?:OR REPLACE )?TEMP\w* TABLE|INSERT INTO|DELETE FROM)\s+")

QUASI = {"role": "quasi-identifier"}
POLICY: dict[str, Any] = {
    "source": {"url": "duckdb:///:memory:", "table": "people"},
    "release": {"table": "released"},
    "attributes": {"age": QUASI, "zip": QUASI, "pay": QUASI, "job": {"role": "sensitive"}},
    "privacy": [{"model": "k-anonymity", "k": 5}],
}
DIVERSE = [{"model": "k-anonymity", "k": 5}, {"model": "entropy-l-diversity", "l": 2.5, "attribute": "job"}]
NESTED = {**POLICY["attributes"], "zip": QUASI | {"hierarchy": {"intervals": [5, 20]}}}
LEVELED = {**NESTED, "age": QUASI | {"hierarchy": {"intervals": [10, 40]}}, "pay": {"role": "identifier"}}
GAIN = {"name": "rothko-t", "split": "information-gain", "target": "job", "least_gain": 0.001}
CASES: dict[str, dict[str, Any]] = {
    "Mondrian": {"algorithm": {"name": "mondrian"}},
    "Mondrian, other models": {"algorithm": {"name": "mondrian"}, "privacy": DIVERSE},
    "Mondrian, hierarchies": {"algorithm": {"name": "mondrian"}, "attributes": NESTED, "privacy": DIVERSE},
    "Rothko-T": {"algorithm": GAIN},
    "Rothko-T, other models": {"algorithm": GAIN, "attributes": NESTED, "privacy": DIVERSE},
    "Rothko-S": {"algorithm": {"name": "rothko-s", "split": "median", "sample": 400, "exact_below": 100}},
    "Rothko-S, gain": {"algorithm": GAIN | {"name": "rothko-s", "sample": 400, "exact_below": 100}},
    "Incognito": {"algorithm": {"name": "incognito"}, "attributes": LEVELED},
}
USUAL = (
    "Mondrian",
    "Mondrian, hierarchies",
    "Rothko-T, other models",
    "Rothko-S, gain",
    "Incognito",
)  # have every part


class DividedEngine(DuckDBEngine):
    """An engine that carries out decisions in a second instance, and copies there what they read: never rows.

    decided: the statements that were carried out there.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.decider = DuckDBEngine.connect("duckdb:///:memory:", EngineOptions(threads=1))
        self.decided: list[str] = []
        self._latest: dict[str, DuckDBEngine | None] = {}  # where a table is; on both sides if it is not listed

    def _execute(self, statement: Statement) -> int:
        return int(self._carried_out(statement, fetched=False))

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._carried_out(statement, fetched=True)
        return rows

    def _carried_out(self, statement: Statement, *, fetched: bool) -> Any:
        decides = statement.name.startswith(DECISIONS)
        names = dict.fromkeys(_NAMED.findall(statement.text))
        written = _NAMED.search(statement.text) if _WRITTEN.match(statement.text) else None
        made = written[1] if written and not statement.text.lstrip().startswith(("INSERT", "DELETE")) else None
        for name in names:
            if name != made and self._latest.get(name, self.decider if decides else self) is not self._at(decides):
                self._copy(name, to_decider=decides)
        if decides:
            self.decided.append(statement.name)
            result = self.decider.fetch(statement) if fetched else self.decider.execute(statement)
        else:
            result = super()._fetch(statement) if fetched else super()._execute(statement)
        if written:
            self._latest[written[1]] = self._at(decides)
        return result

    def _at(self, decides: bool) -> DuckDBEngine:
        return self.decider if decides else self

    def _copy(self, name: str, *, to_decider: bool) -> None:
        source, target = (self, self.decider) if to_decider else (self.decider, self)
        columns = described(source, name)
        assert not (to_decider and OF_ROWS & {column for column, _ in columns}), f"a decision reads the rows of {name}"
        load(target, name, columns, fetched(source, f"FROM temp.main.{name}"))
        self._latest.pop(name)


def fetched(engine: DuckDBEngine, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, whatever sends an engine's statements elsewhere."""
    return engine.driver_connection.execute(query).fetchall()


def described(engine: DuckDBEngine, name: str) -> list[tuple[str, str]]:
    """The columns of a work table, with their types."""
    return [(column, kind) for column, kind, *_ in fetched(engine, f"DESCRIBE temp.main.{name}")]


def load(engine: DuckDBEngine, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> None:
    """Create a work table with these rows, in this order."""
    connection = engine.driver_connection
    shape = ", ".join(f'"{column}" {kind}' for column, kind in columns)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({shape})")
    lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for _, kind in columns)
    values = [list(column) for column in zip(*rows, strict=True)]
    connection.execute(f"INSERT INTO temp.main.{name} SELECT {lists}", values or [[] for _ in columns])


@pytest.fixture
def engines() -> Iterator[tuple[DuckDBEngine, DividedEngine]]:
    """A whole engine and a divided one, each with the same table."""
    made = [cls.connect("duckdb:///:memory:", EngineOptions(threads=1)) for cls in (DuckDBEngine, DividedEngine)]
    for engine in made:
        engine.driver_connection.execute(
            "CREATE TABLE people AS SELECT i * 37 % 89 AS age, i * 101 % 97 % 60 AS zip, i * i % 211 AS pay,"
            " CASE WHEN i * 37 % 89 < 30 THEN 'nurse' WHEN i % 7 < 3 THEN 'clerk' WHEN i % 5 = 0 THEN 'baker'"
            " ELSE 'smith' END AS job FROM range(1500) AS t (i)"
        )
    whole, divided = made
    assert isinstance(divided, DividedEngine)
    yield whole, divided
    for engine in (whole, divided, divided.decider):
        engine.close()


def search(engine: DuckDBEngine, case: dict[str, Any]) -> list[Any]:
    """Search a release; the tables that it consists of."""
    policy, workspace = build_policy(POLICY | case), TemporaryWorkspace(engine)
    plan = resolve_source(policy, engine)
    with engine.transaction():
        coded = encode(engine, plan, workspace)
    algorithm = algorithm_of(policy.algorithm)
    request = SearchRequest(
        engine, workspace, coded, models_of(policy), policy, SearchOptions(), lambda _progress: None
    )
    decision = algorithm.search(request.with_tuples(algorithm))
    tables = [getattr(decision, name) for name in ("leaves", "assigned", "tree")]
    texts = [engine.render.written(table) for table in tables if table]
    return [sorted(engine.fetch(Statement("look", f"SELECT * FROM {text}")), key=repr) for text in texts]


@pytest.mark.parametrize("name", CASES if many(1) > 1 else USUAL)
def test_decisions_need_no_rows(engines: tuple[DuckDBEngine, DividedEngine], name: str) -> None:
    whole, divided = engines
    assert search(divided, CASES[name]) == search(whole, CASES[name])
    assert len(set(divided.decided)) > 4


Tables = dict[str, tuple[list[tuple[str, str]], list[tuple[Any, ...]]]]


def grow_in_process(task: Task, trunk: Frontier, number: int, shares: int, tables: Tables) -> list[list[Any]]:
    """Grow one share of a tree in a session of this process, which is given rows and a task."""
    with DuckDBEngine.connect("duckdb:///:memory:", EngineOptions(threads=1)) as engine:
        for name, (columns, rows) in tables.items():
            load(engine, name, columns, rows)
        growth = Growth(Branch(engine, TemporaryWorkspace(engine), task, f"_{number}_"))
        grow_share(growth, trunk, number, shares, lambda _progress: None)
        return [fetched(engine, f"FROM {table}") for table in (growth.leaves, growth.done, growth.tree)]


def test_sub_trees_grow_in_other_processes(engines: tuple[DuckDBEngine, DividedEngine]) -> None:
    engine, _ = engines
    policy, workspace = build_policy(POLICY | CASES["Mondrian, hierarchies"]), TemporaryWorkspace(engine)
    plan = resolve_source(policy, engine)
    with engine.transaction():
        coded = encode(engine, plan, workspace)
    task = build_task(engine, workspace, coded, models_of(policy))

    def grown(rounds: int | None) -> tuple[Growth, Frontier | None]:
        copy = workspace.table("copy")
        engine.execute(Statement("copy", f"CREATE OR REPLACE TEMP TABLE {copy} AS FROM {coded.rows}"))
        growth = Growth(Branch(engine, workspace, task))
        growth.prepare()
        return growth, growth.grow(growth.root(copy), lambda _progress: None, rounds)

    def gathered(growth: Growth) -> list[list[Any]]:
        growth.finish()
        return [fetched(engine, f"FROM {table}") for table in (growth.leaves, growth.done, growth.tree)]

    whole = gathered(grown(None)[0])
    trunk, frontier = grown(3)
    assert frontier is not None
    trunk.remember(frontier)
    needed = [
        *frontier.tables,
        *(one.domain for one in task.sensitive),
        *(a.dimension for a in task.axes if a.dimension),
    ]
    names = [str(table).replace('"', "").rpartition(".")[2] for table in needed]
    tables = {name: (described(engine, name), fetched(engine, f"FROM temp.main.{name}")) for name in names}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(grow_in_process, *zip(*((task, frontier, n, 2, tables) for n in range(2)), strict=True)))
    parts.append(gathered(trunk))
    assert all(leaves for leaves, *_ in parts[:2])
    joined = [sorted((row for part in parts for row in part[place]), key=repr) for place in range(3)]
    regions = [sorted(leaf[1:] for leaf in leaves) for leaves in (joined[0], whole[0])]
    assert regions[0] == regions[1]
    assert len(joined[1]) == len(whole[1]) == 1500
    assert len(joined[2]) == len(whole[2])
