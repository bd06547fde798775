"""A staged release that was tampered with is never published: each check finds what it is there for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.models import DistinctLDiversity, Groups
from sqlanon.sql import Renderer, Statement
from sqlanon.staging.recode import Recoding, create_regions
from sqlanon.staging.rows import stage
from sqlanon.work.journal import Silent
from tests.rules_support import apply
from tests.run_support import Database, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"q": "INTEGER", "b": "INTEGER", "p": "VARCHAR(3)", "s": "VARCHAR(3)", "id": "INTEGER"}
ROLES = {
    "q": "quasi-identifier",
    "b": {"role": "quasi-identifier", "show": "bounds"},
    "p": "quasi-identifier",
    "s": "sensitive",
    "id": "insensitive",
}
ROWS = [(n, 1, "ab"[n % 2], "xyz"[n % 3], n) for n in range(12)]
MODELS = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "s", "l": 2}]
OTHER_CLASS = "(SELECT min(q) FROM {staged} WHERE q <> (SELECT q FROM {staged} WHERE id = 0))"
OTHER_ROW = "(SELECT min(id) FROM {staged} WHERE q <> (SELECT q FROM {staged} WHERE id = 0) AND s <> 'x')"
EXCHANGE = (
    "UPDATE {staged} SET s = CASE WHEN id = 0 THEN (SELECT s FROM {staged} WHERE id = " + OTHER_ROW + ") ELSE 'x' END,"
    " id = CASE WHEN id = 0 THEN " + OTHER_ROW + " ELSE 0 END WHERE id IN (0, " + OTHER_ROW + ")"
)
TAMPERING = {
    "a row is lost": ("DELETE FROM {staged} WHERE id = 0", "rows_add_up"),
    "a row is there twice": ("INSERT INTO {staged} SELECT * FROM {staged} WHERE id = 0", "rows_add_up"),
    "a kept value is altered": ("UPDATE {staged} SET id = 99 WHERE id = 0", "values_equal"),
    "a sensitive value is hidden": ("UPDATE {staged} SET s = NULL WHERE id = 0", "values_equal"),
    "a type is altered": ("ALTER TABLE {staged} ALTER COLUMN id TYPE BIGINT", "columns_equal"),
    "a column too many": ("ALTER TABLE {staged} ADD COLUMN ssn VARCHAR(9)", "columns_equal"),
    "a column is elsewhere": (
        "ALTER TABLE {staged} ADD COLUMN t VARCHAR(3); UPDATE {staged} SET t = s;"
        " ALTER TABLE {staged} DROP COLUMN s; ALTER TABLE {staged} RENAME COLUMN t TO s",
        "columns_equal",
    ),
    "a cell is of another type": ("ALTER TABLE {staged} ALTER COLUMN b_min TYPE BIGINT", "columns_equal"),
    "a row is in another class": (f"UPDATE {{staged}} SET q = {OTHER_CLASS} WHERE id = 0", "classes_equal"),
    "two rows of different classes exchange their kept values": (EXCHANGE, "classes_equal"),
    "a class is split": ("UPDATE {staged} SET q = '[0-1]' WHERE id = 0", "k-anonymity"),
    "a class is of one value": ("UPDATE {staged} SET s = 'x'", "distinct-l-diversity"),
    "a class lacks a row": ("DELETE FROM {staged} WHERE id = 0", "classes_equal"),
    "a class has a row too many": ("INSERT INTO {staged} SELECT * FROM {staged} WHERE id = 0", "classes_equal"),
}


class Tampering(Silent):
    """An observer that alters the staged release when its verification begins."""

    def __init__(self, database: Database, statement: str) -> None:
        self.database = database
        self.statement = statement

    def phase(self, name: str) -> None:
        if name == "verify":
            (staged,) = (table for table in self.database.leftovers() if table.startswith("sqlanon_staging"))
            self.database.sql(self.statement.format(staged=staged))


def forge(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """Alter what the classes show before the release is staged, so that all that is staged agrees with it."""

    def create(engine: Engine, *arguments: Any) -> Recoding:
        recoding = create_regions(engine, *arguments)
        engine.execute(Statement("test", statement.format(regions=recoding.regions)))
        return recoding

    monkeypatch.setattr("sqlanon.releases.generalized.create_regions", create)


NUMBERS = {
    "a mean is of other values": ("mean", "UPDATE {regions} SET c0 = c0 + 0.5 WHERE region = 1"),
    "a mean is beyond its region": ("mean", "UPDATE {regions} SET c0 = 1000 WHERE region = 1"),
    "a mean is missing": ("mean", "UPDATE {regions} SET c0 = NULL WHERE region = 1"),
    "a mean's region is another": ("mean", "UPDATE {regions} SET c0 = c0 + 99, e0 = e0 + 99, e1 = e1 + 99"),
    "a midpoint is another": ("midpoint", "UPDATE {regions} SET c0 = c0 + 0.5 WHERE region = 1"),
    "a midpoint is missing": ("midpoint", "UPDATE {regions} SET c0 = NULL WHERE region = 1"),
    "a midpoint's region is another": ("midpoint", "UPDATE {regions} SET c0 = c0 + 99, e0 = e0 + 99, e1 = e1 + 99"),
}


SAMPLED = ("a mean is beyond its region", "a midpoint is another")


@pytest.mark.parametrize(("name", "is_sample"), [*((name, False) for name in NUMBERS), *((n, True) for n in SAMPLED)])
def test_no_number_is_published_that_is_not_of_its_region(
    database: Database, name: str, is_sample: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    show, statement = NUMBERS[name]
    if is_sample:
        monkeypatch.setattr("sqlanon.encoding.coded_table.WITNESS_ROWS", 1)
        monkeypatch.setattr("sqlanon.encoding.coded_table.WITNESS_SAMPLE", len(ROWS) * (1 - 1e-9))  # all, but by chance
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, {**ROLES, "q": {"role": "quasi-identifier", "show": show}}, privacy=MODELS)
    forge(monkeypatch, statement)
    with pytest.raises(VerificationError, match="regions_contain"):
        anonymize(policy)
    assert not database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"])
    assert database.leftovers() == []


MISPLACED = [name for name, (_, check) in TAMPERING.items() if check == "classes_equal"]


@pytest.mark.parametrize(("name", "counted"), [*((name, False) for name in TAMPERING), *((n, True) for n in MISPLACED)])
def test_nothing_is_published(database: Database, name: str, counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    statement, check = TAMPERING[name]
    if counted:  # equal rows, before they are sorted and compared
        monkeypatch.setattr("sqlanon.staging.recode.LEAST_REPEATED", 0)
    table = database.create(COLUMNS, ROWS)
    database.sql(f"CREATE TABLE {table}_r AS SELECT 1 AS old")
    policy = database.policy(table, ROLES, privacy=MODELS)
    with pytest.raises(VerificationError, match=check) as raised:
        anonymize(policy, replace=True, observer=Tampering(database, statement))
    assert raised.value.exit_code == 3
    assert database.sql(f"SELECT * FROM {table}_r") == [(1,)]
    assert database.leftovers() == []
    ends = database.sql("SELECT status, error_class FROM sqlanon.runs ORDER BY started")
    assert ends == [("refused", "VerificationError")]


def lax(self: DistinctLDiversity, render: Renderer, groups: Groups) -> Statement:
    """Distinct diversity by a wrong comparison."""
    return render("models/measure_distinct_diversity", avs=groups.avs, l=self.l - 1, counts_null=False)


def test_a_mistake_in_a_model_publishes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search judges by the model's SELECT as verification does: what is wrong in it passes both."""
    table = database.create(COLUMNS, ROWS)
    before = database.release(table, ROLES, privacy=MODELS)
    database.sql(f"UPDATE {table} SET s = 'x'")
    monkeypatch.setattr(DistinctLDiversity, "measure", lax)
    with pytest.raises(VerificationError, match="distinct-l-diversity contradicts itself"):
        anonymize(database.policy(table, ROLES, privacy=MODELS), replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == before
    assert database.leftovers() == []


def test_rules_publish_no_column_too_many(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    run = anonymize(database.policy(table, ROLES, privacy=MODELS)).run
    statement, check = TAMPERING["a column too many"]
    with pytest.raises(VerificationError, match=check):
        apply(database, run, table, f"{table}_again", "error", observer=Tampering(database, statement))
    assert not database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_again"])


def test_no_column_too_many_is_carried_elsewhere(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one of the staged rows, whose copy would have it too, nor one of the copy alone."""
    statement, check = TAMPERING["a column too many"]

    def stage_more(engine: Engine, *arguments: Any) -> None:
        stage(engine, *arguments)
        engine.execute(Statement("test", statement.format(staged=arguments[-1])))

    with open_database(postgres_url) as database, open_database(duckdb_url(tmp_path / "r.duckdb")) as elsewhere:
        table = database.create(COLUMNS, ROWS)
        copy = {"url": elsewhere.url, "table": "r"}
        with pytest.raises(VerificationError, match=check):
            anonymize(
                database.policy(table, ROLES, privacy=MODELS, release=copy), observer=Tampering(elsewhere, statement)
            )
        monkeypatch.setattr("sqlanon.staging.staging.stage", stage_more)
        for release in (copy, {"file": str(tmp_path / "r.parquet")}):
            with pytest.raises(VerificationError, match=check):
                anonymize(database.policy(table, ROLES, privacy=MODELS, release=release))
        assert list(tmp_path.glob("r.parquet*")) == []
        assert elsewhere.leftovers() == database.leftovers() == []
