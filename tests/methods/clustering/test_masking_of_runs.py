"""Loss and risk that every run of centres measures: those of `loss`, for the released table beside its source."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from sqlanon import run_report
from sqlanon.cli.summary import result_text
from sqlanon.engines import connect
from sqlanon.measures.masking.all_measures import measure_masking
from sqlanon.measures.masking.compared import compare
from sqlanon.results.masking import Masking
from sqlanon.runs.dry_run.running import run_dry
from sqlanon.sql import Relation
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

QUASI = "quasi-identifier"
COLUMNS = {
    "id": "INTEGER",
    "a": "INTEGER",
    "b": "DOUBLE PRECISION",
    "d": "DECIMAL(8,2)",
    "c": "VARCHAR",
    "g": "VARCHAR",
    "s": "VARCHAR",
}
ORDER = ["low", "mid", "high"]
ROLES: dict[str, Any] = {
    "id": "insensitive",
    "a": QUASI,
    "b": QUASI,
    "d": QUASI,
    "c": QUASI,
    "g": {"role": QUASI, "order": ORDER},
    "s": "sensitive",
}
CLUSTERS = {"name": "microaggregation"}


def rows_of(count: int, seed: int) -> list[Row]:
    draw = random.Random(seed)
    return [
        (
            number,
            draw.randrange(40),
            draw.choice([0.0, draw.gauss(0, 1)]),
            draw.randrange(10_000) / 100,
            draw.choice(["x", "y", None]),
            draw.choice(ORDER),
            draw.choice("pq"),
        )
        for number in range(count)
    ]


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


@pytest.mark.either_engine
@pytest.mark.parametrize("more", [{}, {"keep": "variance"}], ids=["means", "rescaled"])
def test_a_run_measures_what_loss_measures(database: Database, more: dict[str, Any]) -> None:
    table = database.create(COLUMNS, rows_of(90, 3))
    result = anonymize(database.policy(table, ROLES, algorithm=CLUSTERS | more, privacy=anonymity(4)))
    with connect(database.url) as engine:
        tables = (engine.resolve(Relation.parse(name)) for name in (table, f"{table}_r"))
        columns = ["a", "b", "d", "c", "g"]
        compared = compare(engine, *tables, by=["id"], columns=columns, orders={"g": ORDER})  # type: ignore[arg-type]
        measured = measure_masking(compared)
    found = result.masking
    assert found is not None
    assert found.numbers is not None
    assert found.categories is not None
    assert (found.source_rows, found.release_rows, found.paired_rows) == (90, 90, 90)
    assert found == replace(measured, only_in_source=(), only_in_release=())


def test_both_engines_measure_the_same(databases: tuple[Database, Database]) -> None:
    found: list[Masking | None] = []
    for database in databases:
        table = database.create(COLUMNS, rows_of(500, 1))
        found.append(anonymize(database.policy(table, ROLES, algorithm=CLUSTERS, privacy=anonymity(3))).masking)
    assert found[0] is not None
    assert found[0] == found[1]


@pytest.mark.either_engine
def test_small_clusters_of_two_columns_are_not_called_safe(database: Database) -> None:
    draw = random.Random(7)
    table = database.create(
        {"a": "DOUBLE PRECISION", "b": "DOUBLE PRECISION", "s": "VARCHAR"},
        [(n // 3 % 20 + draw.gauss(0, 0.1), n // 60 + draw.gauss(0, 0.1), draw.choice("pq")) for n in range(600)],
    )
    algorithm = {"name": "microaggregation", "blocks": "exact", "refine": True}
    policy = database.policy(
        table, {"a": QUASI, "b": QUASI, "s": "sensitive"}, algorithm=algorithm, privacy=anonymity(3)
    )
    result = anonymize(policy)
    assert result.masking is not None
    assert result.masking.risk is not None
    linkage = result.masking.risk.linkage
    assert linkage is not None
    assert linkage.rows == 500
    assert linkage.nearest > 0.9
    assert linkage.picked == pytest.approx(1 / 3, abs=0.05)
    written = result_text(result, policy)
    assert "Masking: Nearly every row finds the numbers released for it" in written
    page = run_report(result.run, policy=policy)
    assert "Nearly every row finds the numbers released for it" in page
    assert f"{100 * linkage.nearest:.1f}".removesuffix(".0") in page
    assert "it is no verdict" in page
    assert "safe" not in page.replace("safe-", "")


@pytest.mark.either_engine
@pytest.mark.parametrize("algorithm", ["mondrian", "r-gather"])
def test_releases_without_centres_of_rows_measure_none(database: Database, algorithm: str) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(n * 7 % 40, n * 11 % 40) for n in range(40)])
    policy = database.policy(table, {"a": QUASI, "b": QUASI}, algorithm={"name": algorithm}, privacy=anonymity(4))
    assert anonymize(policy).masking is None


@pytest.mark.either_engine
def test_synthetic_rows_are_measured_by_their_groups(database: Database) -> None:
    rows = [(n % 2 * 1000 + n * 7 % 11, n * 5 % 13, "xy"[n % 2]) for n in range(40)]
    table = database.create({"a": "INTEGER", "b": "INTEGER", "c": "VARCHAR"}, rows)
    policy = database.policy(
        table, {"a": QUASI, "b": QUASI, "c": QUASI}, algorithm={"name": "condensation"}, privacy=anonymity(20)
    )
    result = anonymize(policy)
    assert result.masking is not None
    assert (result.masking.paired_rows, result.masking.risk) == (None, None)
    assert result.masking.groups is not None
    assert (result.masking.groups.rows, result.masking.groups.nearest) == (40, 1)
    assert result.masking.groups.blind == pytest.approx(1 / 20)
    assert "Nearly every row finds a synthetic row of the own group" in result_text(result, policy)
    page = run_report(result.run, policy=policy)
    assert "Nearly every row finds a synthetic row of the own group" in page
    assert "IL5" in page


@pytest.mark.either_engine
def test_a_dry_run_shows_what_is_measured(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(60, 2))
    policy = database.policy(table, ROLES, algorithm=CLUSTERS, privacy=anonymity(4))
    names = {step.name for step in run_dry(policy).steps}
    assert names >= {
        "measures/masking/link_rows",
        "measures/masking/measure_intervals",
        "measures/masking/compare_categories",
    }
    numbers = {name: ROLES[name] for name in ("a", "b", "d")} | dict.fromkeys(("id", "c", "g", "s"), "insensitive")
    assert "measures/masking/link_rows" in {
        step.name for step in run_dry(database.policy(table, numbers, algorithm=CLUSTERS)).steps
    }
    texts = {"c": QUASI} | dict.fromkeys(("id", "a", "b", "d", "g", "s"), "insensitive")
    assert "measures/masking/compare_categories" in {
        step.name for step in run_dry(database.policy(table, texts, algorithm=CLUSTERS)).steps
    }
