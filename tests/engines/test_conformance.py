"""Both engines give the same release, whichever way the work is done, with a constant number of statements a round."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlanon.algorithms.tree import forest, growth, medians, task
from sqlanon.encoding import distinct_tuples as collapse
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.staging import recode
from sqlanon.staging import rows as released_rows
from tests import run_support
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database

MOST_STATEMENTS_A_ROUND = 20
WHERE_NODES_END = {"algorithms/tree/decide/record_leaves", "algorithms/tree/scan/retire_rows"}
SHORTCUTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "rows": lambda patch: patch.setattr(collapse, "WORTH_SHARE", 0.0),
    "tuples": lambda patch: patch.setattr(collapse, "WORTH_SHARE", 10.0),
    "few bins": lambda patch: patch.setattr(medians, "MOST_BIN_BITS", 4),
    "clustering": lambda patch: (
        patch.setattr(growth, "CLUSTERING_ROUND", 2),
        patch.setattr(task, "CLUSTERING_ROWS", 1),
    ),
    "sub-trees": lambda patch: (
        patch.setattr(forest, "PARALLEL_ROWS", 1),
        patch.setattr(run_support, "OPTIONS", EngineOptions(threads=4)),
    ),
}
COLUMNS = {
    "age": "INTEGER",
    "income": "DECIMAL(10,2)",
    "weight": "DOUBLE PRECISION",
    "born": "DATE",
    "zip": "VARCHAR(5)",
    "job": "VARCHAR(20)",
    "member": "BOOLEAN",
    "disease": "VARCHAR(20)",
    "cost": "INTEGER",
    "id": "INTEGER",
}
ROLES: dict[str, Any] = {
    "age": "quasi-identifier",
    "income": {"role": "quasi-identifier", "hierarchy": {"intervals": [500, 2000]}},
    "weight": "quasi-identifier",
    "born": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "year", "decade"]}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "job": "quasi-identifier",
    "member": "quasi-identifier",
    "disease": "sensitive",
    "cost": "sensitive",
    "id": "insensitive",
}
MODELS = [
    {"model": "k-anonymity", "k": 4},
    {"model": "entropy-l-diversity", "attribute": "disease", "l": 1.8},
    {"model": "variance-diversity", "attribute": "cost", "v": 50.0},
]


def table_of(rows: int, seed: int = 1) -> list[Row]:
    """People with some of everything: skew, ties, NULLs, and a few odd values."""
    rng = random.Random(seed)
    first = datetime.date(1930, 1, 1)
    jobs = ["clerk", "Clerk", "sales, retail", "élève", "nurse", None]
    return [
        (
            rng.choice([None, *range(18, 90)]),
            None if rng.random() < 0.1 else Decimal(rng.randrange(-500, 9000_00)) / 100,
            rng.choice([float("nan"), float("inf"), -0.0, 0.0, round(rng.gauss(70, 15), 1), rng.gauss(70, 15)]),
            first + datetime.timedelta(days=int(rng.random() ** 2 * 30_000)),
            None if rng.random() < 0.05 else f"{int(rng.random() ** 3 * 99999):05d}",
            rng.choice(jobs),
            rng.choice([True, False, None]),
            rng.choice(["flu", "flu", "asthma", "burn", None]),
            rng.choice([None, 0, 10, 20, 50]),
            number,
        )
        for number in range(rows)
    ]


def _released(database: Database, rows: list[Row], models: list[dict[str, Any]]) -> list[Row]:
    return database.release(database.create(COLUMNS, rows), ROLES, privacy=models)


@pytest.mark.parametrize("models", [MODELS[:1], MODELS], ids=["k", "k, l and variance"])
def test_the_engines_agree(tmp_path: Path, postgres_url: str, models: list[dict[str, Any]]) -> None:
    rows = table_of(600)
    with contextlib.ExitStack() as stack:
        urls = (duckdb_url(tmp_path / "test.duckdb"), postgres_url)
        first, second = (_released(stack.enter_context(open_database(url)), rows, models) for url in urls)
    assert first == second
    assert sorted(row[-1] for row in first) == list(range(600))


@pytest.mark.either_engine
def test_shortcuts_change_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table_of(240)
    plain = _released(database, rows, MODELS[:2])
    for name, take in SHORTCUTS.items():
        with monkeypatch.context() as patch:
            take(patch)
            assert _released(database, random.Random(name).sample(rows, len(rows)), MODELS[:2]) == plain, name


@pytest.mark.either_engine
@pytest.mark.parametrize("models", [MODELS[:1], MODELS], ids=["k", "k, l and variance"])
def test_statements_a_round_do_not_grow(database: Database, models: list[dict[str, Any]]) -> None:
    most = []
    for rows in (60, 1200):
        policy = database.policy(database.create(COLUMNS, table_of(rows)), ROLES, privacy=models)
        outcome = anonymize(policy)
        steps = database.sql(
            "SELECT name FROM sqlanon.steps WHERE run = ? AND phase = 'search' ORDER BY number", [outcome.run]
        )
        rounds = _rounds([name for (name,) in steps])
        assert len(rounds) == outcome.algorithm.rounds > 3
        assert outcome.algorithm.statements == len(steps)
        plain = [names for names in rounds[1:-1] if "algorithms/tree/decide/list_thresholds" not in names]
        most.append(max(sum(name not in WHERE_NODES_END for name in names) for names in plain))
    assert most[0] == most[1] <= MOST_STATEMENTS_A_ROUND


def _rounds(names: list[str]) -> list[list[str]]:
    """The statements of each round; a round begins by choosing what to try.

    What a search at every threshold adds is counted with the tests of thresholds.
    """
    rounds: list[list[str]] = []
    for name in names:
        if name == "algorithms/tree/decide/choose_attributes":
            rounds.append([])
        if rounds:
            rounds[-1].append(name)
    return rounds


def test_order_of_many_rows(tmp_path: Path) -> None:
    """Several threads write the rows of several blocks, of 122,880 rows each."""
    with open_database(duckdb_url(tmp_path / "test.duckdb")) as database:
        database.sql(
            "CREATE TABLE t AS SELECT hash(i) % 1000 AS q, (i * 104729) % 150000 AS id FROM range(150000) AS r(i)"
        )
        k = [{"model": "k-anonymity", "k": 22_000}]
        policy = database.policy("t", {"q": "quasi-identifier", "id": "insensitive"}, privacy=k)
        anonymize(policy, options=EngineOptions(threads=4))
        rows = database.sql("SELECT q, id FROM t_r")
    assert len({q for q, _ in rows}) > 2
    assert rows == sorted(rows, key=lambda row: (int(row[0][1:].partition("-")[0]), row[1]))


def test_equal_rows_are_counted_before_they_are_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large release of few different rows: the same rows in the same order, by other statements."""
    found: list[list[Row]] = []
    with open_database(duckdb_url(tmp_path / "test.duckdb")) as database:
        database.sql(
            "CREATE TABLE t AS SELECT hash(i) % 1000 AS q, (hash(i, 2) % 3)::INT AS n,"
            " CASE WHEN i % 7 <> 0 THEN 'class ' || hash(i, 1) % 5 END AS c FROM range(150000) AS r(i)"
        )
        k = [{"model": "k-anonymity", "k": 1_100}]
        roles = {"q": "quasi-identifier", "c": "sensitive", "n": "insensitive"}
        for few in (recode.FEW_ROWS, 37_500):
            monkeypatch.setattr(recode, "FEW_ROWS", few)
            monkeypatch.setattr(released_rows, "PARTS", 75_000)  # two blocks
            policy = database.policy("t", roles, privacy=k)
            outcome = anonymize(policy, options=EngineOptions(threads=4), replace=True)
            steps = database.sql("SELECT name FROM sqlanon.steps WHERE run = ?", [outcome.run])
            assert steps.count(("staging/divide_rows",)) == (few == 37_500)
            found.append(database.sql("SELECT q, c, n FROM t_r"))
    assert found[0] == found[1]
    assert len(found[0]) == 150_000


def test_a_server_counts_equal_rows_first(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(i * 7919 % 50, i * 31 % 3, ("a", "b", None, "x'y")[i * 17 % 4]) for i in range(3_000)]
    table = database.create({"n": "INTEGER", "times": "INTEGER", "copy": "VARCHAR(9)"}, rows)
    roles = {"n": "quasi-identifier", "times": "insensitive", "copy": "sensitive"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 400}])
    found: list[list[Row]] = []
    for least in (recode.LEAST_REPEATED, 0):
        monkeypatch.setattr(recode, "LEAST_REPEATED", least)
        monkeypatch.setattr(released_rows, "PARTS_OF_TASKS", 300)
        run = anonymize(policy, replace=True).run
        counting = database.sql(f"SELECT name FROM sqlanon.steps WHERE run = '{run}' AND name = 'staging/divide_rows'")
        assert bool(counting) == (least == 0)
        found.append(database.sql(f"SELECT * FROM {table}_r"))
    assert found[0] == found[1]
    assert len(found[0]) == 3_000


@pytest.mark.parametrize("few", [recode.FEW_ROWS, 37_500])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_has_the_rows_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, few: int
) -> None:
    """A file is written from the sorted rows, without a copy of the release between; its texts are plain texts."""
    monkeypatch.setattr(recode, "FEW_ROWS", few)
    monkeypatch.setattr(released_rows, "PARTS", 75_000)  # two blocks
    odd = "['x', '', NULL, 'a,\"b\"', 'é\n', ' x ', 'NULL']"
    with open_database(duckdb_url(tmp_path / "test.duckdb")) as database:
        database.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        database.sql(
            "CREATE TABLE t AS SELECT hash(i) % 1000 AS q, (hash(i, 2) % 3)::INT AS n,"
            f" {odd}[1 + (hash(i, 1) % 7)::INT] AS c, (['sad', 'ok'][1 + i % 2])::mood AS m FROM range(150000) AS r(i)"
        )
        more = {"privacy": [{"model": "k-anonymity", "k": 1_100}]}
        roles = {"q": "quasi-identifier", "c": "sensitive", "n": "insensitive", "m": "insensitive"}
        file = tmp_path / f"released.{ending}"
        anonymize(database.policy("t", roles, **more), options=EngineOptions(threads=4))
        to_file = database.policy("t", roles, release={"file": str(file)}, **more)
        outcome = anonymize(to_file, options=EngineOptions(threads=4))
        steps = [name for (name,) in database.sql("SELECT name FROM sqlanon.steps WHERE run = ?", [outcome.run])]
        assert ("staging/divide_rows" in steps) == (few == 37_500)
        assert "staging/stage_sorted_rows" not in steps
        assert steps.count("staging/create_texts") == steps.count("staging/drop_texts") > 0
        text = "all_varchar = true, nullstr = '', allow_quoted_nulls = false"
        read = f"read_parquet('{file}')" if ending == "parquet" else f"read_csv('{file}', {text})"
        released = database.sql(f"SELECT q, c, CAST(n AS TEXT), CAST(m AS TEXT) FROM {read}")
        assert released == database.sql("SELECT q, c, CAST(n AS TEXT), CAST(m AS TEXT) FROM t_r")
        if ending == "parquet":
            assert {kind for _, kind in database.columns(f"SELECT * FROM {read}")} == {"VARCHAR", "INTEGER"}
