"""Differentially private runs on Spark: the releases of DuckDB, draw by draw; one state of the source; the ledger."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.mechanisms.mechanisms import secret_key
from sqlanon.methods.differential_privacy.charging import LedgerAccount
from sqlanon.methods.differential_privacy.drawing.counting import Places
from sqlanon.methods.differential_privacy.plan import resolve_private
from sqlanon.methods.differential_privacy.source import PrivateDraw
from sqlanon.runs.flow import carry_out
from sqlanon.runs.sink import Publish
from sqlanon.sql import Relation
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_session
from sqlanon.work.workspace import TemporaryWorkspace
from tests.cli.support import call
from tests.private_support import DOMAINS, Ample, Known, draw, place_of, steps_of, values_near
from tests.run_support import Database, open_database
from tests.spark_support import SparkTables, needs_spark, work_tables_left

pytestmark = [needs_spark, pytest.mark.slow]
QUASI = {"role": "quasi-identifier"}
NAME = 'Jöb "%s"'
ROWS = {
    "age": "INTEGER",
    "cost": "DECIMAL(12,3)",
    "income": "DOUBLE PRECISION",
    NAME: "VARCHAR",
    "day": "DATE",
    "person": "VARCHAR",
    "pay": "VARCHAR",
}
JOBS = {"clerk": ["office", "*"], "läwyer 😀": ["office", "*"], "it's \\": ["shop", "*"], "": ["shop", "*"]}
ATTRIBUTES: dict[str, Any] = {
    "age": QUASI | {"domain": {"from": 0, "below": 90, "step": 10}},
    "cost": QUASI | {"domain": {"from": 0.1, "below": 2.3, "step": 0.5}},
    "income": QUASI | {"domain": {"from": -1.1, "below": 1.3, "step": 0.3}},
    NAME: QUASI | {"hierarchy": {"mapping": JOBS, "unknown": "OTHER"}},
    "day": QUASI | {"values": ["2024-02-29", "1582-10-10"]},
    "person": {"role": "identifier"},
    "pay": {"role": "sensitive", "values": ["low", "high"]},
}
HIDDEN = {name: {"role": "identifier"} for name in ("cost", "income", "day")}


def rows(number: int = 300) -> Iterator[tuple[Any, ...]]:
    """Yield rows at the bounds of domains and beyond them, with NULLs and undeclared values."""
    choose = random.Random(7).choice
    for _ in range(number):
        yield (
            choose([None, -5, 0, 9, 10, 45, 89, 90, 2**31 - 1]),
            choose([None, "0.1", "0.599", "0.6", "999999999.999"]),
            choose([None, -1.1, -0.8, 0.1, float("nan"), float("inf"), float("-inf"), -0.0, 1e300]),
            choose([None, *JOBS, "Clerk", " clerk"]),
            choose([None, "2024-02-29", "1582-10-10", "2020-01-01"]),
            choose([None, *"abcdefgh", ""]),
            choose([None, "low", "high", "none"]),
        )


@pytest.fixture(scope="module")
def databases(
    tmp_path_factory: pytest.TempPathFactory, spark_tables: SparkTables
) -> Iterator[tuple[Database, SparkTables]]:
    """A database of DuckDB, and a session with Spark, each with the same table."""
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('rows')}/rows.duckdb") as duckdb:
        for database in (duckdb, spark_tables):
            database.create(ROWS, list(rows()), "people")
        yield duckdb, spark_tables


@pytest.fixture
def spark(databases: tuple[Database, SparkTables]) -> SparkTables:
    return databases[1]


def asking(algorithm: dict[str, Any], unit: Any = "row", **more: Any) -> dict[str, Any]:
    """The sections of a policy but for its source and its release."""
    privacy = [{"model": "differential-privacy", "epsilon": 1.0, "unit": unit}]
    return {"attributes": ATTRIBUTES, "privacy": privacy, "algorithm": algorithm} | more


def known(seed: int = 5) -> Known:
    """Draws that are random, but for their seed."""
    generator = random.Random(seed)

    def pick(scores: Sequence[int]) -> int:
        return generator.choice([place for place, score in enumerate(scores) if score >= max(scores) - 2_000])

    return Known(pick=pick, noise=lambda counts: [count + generator.randint(-2, 2) for count in counts])


DIFFGEN = {"name": "diffgen", "specializations": 5, "target": "pay"}
READS_PEOPLE = re.compile(r'\A(?!EXPLAIN).*(FROM|JOIN) ("\w+"\.)*"people"', re.DOTALL)
CASES: dict[str, dict[str, Any]] = {
    "diffgen": asking(DIFFGEN | {"variant": "published", "score": "information-gain"}),
    "diffgen, persons, rows": asking(DIFFGEN | {"as": "rows"}, {"column": "person", "rows": 2}),
    "contingency, threshold": asking(
        {"name": "contingency", "target": "pay", "threshold": 2}, attributes=ATTRIBUTES | HIDDEN
    ),
    "marginals": asking(
        {
            "name": "marginals",
            "target": "pay",
            "marginals": [[NAME, "pay"], ["age", "cost", "pay"], ["day"], ["income"]],
        }
    ),
    "mst": asking({"name": "mst", "target": "pay", "as": "counts"}, {"column": "person", "rows": 3}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_release_is_that_of_duckdb(databases: tuple[Database, SparkTables], name: str) -> None:
    """So is all that noise is drawn for: scores and counts; and nothing is left behind."""
    outcomes = []
    for database in databases:
        drawn = known()
        result = draw(database.policy("people", **CASES[name]), drawn, options=None)
        assert not any(check.violations for check in result.checks.values())
        released = [tuple(row) for row in database.sql("SELECT * FROM people_r")]
        outcomes.append((released, drawn.asked, drawn.counted, result.labels, result.choices, result.pairs))
    assert outcomes[0] == outcomes[1]
    assert work_tables_left(databases[1]) == []


def test_places_are_exact_in_any_number_of_columns(spark: SparkTables) -> None:
    """GROUPING SETS of Spark have 64 columns at most."""
    domains = DOMAINS * 6
    columns = {f"x{number}": domain[0] for number, domain in enumerate(domains)}
    filled = list(zip_longest(*(values_near(*domain) for domain in domains)))
    attributes, expected = {}, Counter[tuple[int, int, int]]()
    for number, (_, first, below, step) in enumerate(domains):
        attributes[f"x{number}"] = QUASI | {"domain": {"from": first, "below": below, "step": step}}
        steps = steps_of(first, below, step)
        expected.update((number, place_of(row[number], str(first), str(step), steps), 0) for row in filled)
    table = spark.create(columns, filled)
    plan = resolve_private(spark.policy(table, **asking({"name": "contingency"}, attributes=attributes)), spark.engine)
    with TemporaryWorkspace(spark.engine) as workspace:
        assert len(columns) > 64
        assert Counter(Places.of(spark.engine, workspace, plan, secret_key()).count_places()) == expected


def test_cells_are_numbered_beyond_32_bits(spark: SparkTables) -> None:
    names, size = "abcd", 300
    table = spark.create(dict.fromkeys(names, "INTEGER"), [(0,) * 4, (size,) * 4])
    attributes = {name: QUASI | {"domain": {"from": 0, "below": size, "step": 1}} for name in names}
    algorithm = {"name": "contingency", "threshold": "auto"}
    result = draw(spark.policy(table, **asking(algorithm, attributes=attributes)), Sure(), options=None)
    assert result.release.cells == 301**4 > 2**32
    low, high = "[*-0]", f"[{size - 1}-*]"
    assert spark.sql(f"SELECT * FROM {table}_r") == [(*(low,) * 4, 101), (*(high,) * 4, 101)]


class Sure(Known):
    """Draws that raise every count by 100, of which no empty cell reaches a threshold."""

    def __init__(self) -> None:
        super().__init__(noise=lambda counts: [count + 100 for count in counts])

    def reach(self, threshold: int, cells: int, epsilon: Fraction, sensitivity: int) -> list[tuple[int, int]]:
        del threshold, cells, epsilon, sensitivity
        return []


def test_all_counts_are_of_one_state_of_the_source(spark: SparkTables, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.create(ROWS, list(rows(60)), "changing")
    policy = spark.policy("changing", **asking(DIFFGEN))
    draw(policy, options=None)
    before, count = spark.sql("SELECT * FROM changing_r"), Places.count_places

    def then_others_write(places: Places) -> dict[tuple[int, int, int], int]:
        counted = count(places)
        # in the run's own session: what others write, one that has listed the files of a table may not see
        places.engine.driver_connection.sql("INSERT INTO changing SELECT * FROM people")
        return counted

    monkeypatch.setattr(Places, "count_places", then_others_write)
    draw(policy, options=None)
    assert spark.sql("SELECT * FROM changing_r") == before


def test_the_source_is_read_by_one_statement_after_the_charge(spark: SparkTables) -> None:
    """All other statements that name it ask for its name and types alone."""
    policy = spark.policy("people", **asking(DIFFGEN))
    with open_session(policy, EngineOptions()) as session:
        naming: list[str] = []
        session.engine.listener = lambda statement, *_: naming.extend(
            [statement.name] if READS_PEOPLE.search(statement.text) else []
        )

        class Noting(LedgerAccount):
            def spend(self, *_: Any) -> Any:
                naming.append("charged")
                return Ample().spend(*_)

        carry_out(session, policy, PrivateDraw(policy, Noting(), known()), Publish(replace=True), Silent())
    assert naming == ["charged", "methods/differential_privacy/create_placed"]


def test_what_persons_are_told_apart_by_is_compared(spark: SparkTables) -> None:
    spark.sql("CREATE TABLE maps USING PARQUET AS SELECT 1 AS age, map('a', 1) AS person")
    attributes = {"age": ATTRIBUTES["age"], "person": {"role": "identifier"}}
    policy = spark.policy(
        "maps", **asking({"name": "contingency"}, {"column": "person", "rows": 1}, attributes=attributes)
    )
    account = Ample()
    with pytest.raises(PolicyError, match=r"'person' .* can't be compared"):
        draw(policy, account=account, options=None)
    assert account.charged == []


def test_a_source_is_known_by_its_name_and_by_its_directory(spark: SparkTables) -> None:
    """Another table over the same files has the same budget; a view that shows a column `Location` has none yet."""
    spark.sql("CREATE TABLE owned USING PARQUET AS SELECT 'here' AS \"Location\"")
    (place,) = [value for name, value, _ in spark.sql("DESCRIBE TABLE EXTENDED owned") if value.startswith("file:")]
    spark.sql(f"CREATE TABLE other (\"Location\" STRING) USING PARQUET LOCATION '{place.replace('file:', 'file://')}/'")
    spark.sql("CREATE VIEW seen AS SELECT * FROM owned")
    with Catalog.open(spark.engine, url=spark.catalog) as catalog:

        def identities(name: str) -> tuple[str, ...]:
            found = spark.engine.resolve(Relation(name))
            return catalog.identities(str(found), found)

        catalog.grant_budget("owned", Fraction(1), "a test", identities("owned"))
        assert identities("OWNED") == identities("owned")
        assert len(identities("seen")) == 1
        with pytest.raises(PolicyError, match="has the budget 'owned' already"):
            catalog.grant_budget("another", Fraction(1), "a test", identities("other"))
        spark.sql("DROP TABLE owned")
        spark.sql("CREATE TABLE owned USING PARQUET AS SELECT 1 AS age")
        with pytest.raises(PolicyError, match="has the budget 'owned' already"):
            catalog.grant_budget("again", Fraction(1), "a test", identities("owned"))


def test_a_run_that_fails_has_spent_and_the_next_is_refused_before_it_looks(
    spark: SparkTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the grant to the audit, by the commands."""
    spark.create(ROWS, list(rows(60)), "paid")
    path = tmp_path / "policy.yml"
    places = {"source": {"url": spark.url, "table": "paid"}, "release": {"table": "paid_r"}}
    policy = asking(DIFFGEN, budget={"ledger": "paid"}, catalog={"url": spark.catalog})
    path.write_text(json.dumps(places | policy))
    assert call("budget", "grant", "paid", "--epsilon", "2", "--reason", "a test", "--policy", path).exit_code == 0
    checked = call("check", path)
    assert (checked.exit_code, "would be refused" in checked.output) == (0, False), checked.output
    with monkeypatch.context() as broken:
        broken.setattr("sqlanon.methods.differential_privacy.source.draw_counts", fail)
        failed = call("run", path)
    assert failed.exit_code == 1, failed.output
    assert "consumed 1 of budget paid all the same" in failed.output
    ran = call("run", path, "--json")
    assert ran.exit_code == 0, ran.output
    audited = call("verify", path)
    assert audited.exit_code == 0, audited.output
    assert "no order in which rows are stored" in audited.output
    run = json.loads(ran.stdout)["run"]
    for command in (["show", run], ["report", run, "--output", tmp_path / "report.html"], ["budget", "show", "paid"]):
        assert call(*command, "--policy", path).exit_code == 0
    before = spark.sql("SELECT * FROM paid_r")
    monkeypatch.setattr("sqlanon.methods.differential_privacy.source.draw_counts", fail)
    refused = call("run", path, "--replace")
    assert refused.exit_code == 3, refused.output
    assert "0 of 2 are left" in refused.output
    assert spark.sql("SELECT * FROM paid_r") == before


def fail(*_: Any) -> None:
    raise AssertionError("broken on purpose")
