"""Sources as budgets know them: by name, by number, by path."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation
from tests.budgets_support import spending, sql


def people(engine: Engine, name: str = "people") -> Relation:
    found = engine.resolve(Relation.parse(name))
    assert found is not None
    return found


def known(catalog: Catalog, engine: Engine, name: str = "people") -> tuple[str, ...]:
    return catalog.identities(str(people(engine, name)), people(engine, name))


def test_a_renamed_table_gets_no_new_budget(engine: Engine, catalog: Catalog, engine_name: str) -> None:
    """PostgreSQL knows the table by its number still. DuckDB keeps none, so that somebody has to say what it is."""
    sql(engine, "CREATE TABLE people (a INTEGER)")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    catalog.spend(spending("1"), known(catalog, engine))
    sql(engine, "ALTER TABLE people RENAME TO folk")
    renamed = known(catalog, engine, "folk")
    with pytest.raises(PolicyError):
        catalog.spend(spending("1", budget="folk"), renamed)
    if engine_name == "postgres":
        with pytest.raises(PolicyError, match="has the budget 'people' already, perhaps under an earlier name"):
            catalog.grant_budget("folk", Fraction(3), "again", renamed)
        assert catalog.spend(spending("1"), renamed).consumed == 2
    else:
        with pytest.raises(PolicyError, match="granted for another source, or this one was renamed"):
            catalog.spend(spending("1"), renamed)
        catalog.grant_budget("people", Fraction(0), "it was renamed", renamed)
        assert catalog.spend(spending("1"), renamed).consumed == 2


def test_a_table_that_is_made_anew_every_night_keeps_its_budget(engine: Engine, catalog: Catalog) -> None:
    sql(engine, "CREATE TABLE people (a INTEGER)")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    for night in range(2):
        sql(engine, "DROP TABLE people")
        sql(engine, "CREATE TABLE people (a INTEGER)")
        assert catalog.spend(spending("1"), known(catalog, engine)).consumed == night + 1
    sql(engine, "ALTER TABLE people RENAME TO folk")
    with pytest.raises(PolicyError):  # the number that it got in the last night is known, too
        catalog.spend(spending("1", budget="folk"), known(catalog, engine, "folk"))


def test_a_copy_of_a_table_needs_a_grant(engine: Engine, catalog: Catalog) -> None:
    sql(engine, "CREATE TABLE people (a INTEGER)")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    sql(engine, "CREATE TABLE copied AS SELECT * FROM people")
    with pytest.raises(PolicyError, match="granted for another source"):
        catalog.spend(spending("1"), known(catalog, engine, "copied"))


def test_a_view_has_the_budget_of_the_tables_beneath(engine: Engine, catalog: Catalog) -> None:
    for table in ("people", "visits"):
        sql(engine, f"CREATE TABLE {table} AS SELECT CAST(g.a AS INTEGER) AS a FROM generate_series(1, 9) AS g (a)")
    sql(engine, "CREATE VIEW older AS SELECT a + 1 AS years FROM people WHERE a > 1")
    sql(engine, "CREATE VIEW shown AS SELECT o.years FROM older AS o JOIN visits AS v ON v.a = o.years")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    for spent, view in enumerate(("older", "shown"), start=1):
        assert catalog.spend(spending("1"), known(catalog, engine, view)).consumed == spent
        with pytest.raises(PolicyError, match="has the budget 'people' already"):
            catalog.grant_budget("view", Fraction(3), "a test", known(catalog, engine, view))
    with pytest.raises(PolicyError, match="has the budget 'people' already"):  # by the view that reads it
        catalog.grant_budget("visits", Fraction(3), "a test", known(catalog, engine, "visits"))
    sql(engine, "CREATE TABLE apart (a INTEGER)")
    catalog.grant_budget("apart", Fraction(3), "a test", known(catalog, engine, "apart"))


def test_parts_of_a_table_have_its_budget(postgres_url: str) -> None:
    with contextlib.closing(connect(postgres_url)) as engine, Catalog.open(engine) as catalog:
        sql(engine, "CREATE TABLE people (a INTEGER) PARTITION BY RANGE (a)")
        sql(engine, "CREATE TABLE young PARTITION OF people FOR VALUES FROM (0) TO (30)")
        catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
        assert catalog.spend(spending("1"), known(catalog, engine, "young")).consumed == 1


@pytest.mark.either_engine
def test_files_are_known_by_their_whole_paths(
    catalog: Catalog, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("files")
    (place / "people.csv").write_text("a\n1\n")
    (place / "link.csv").symlink_to(place / "people.csv")
    monkeypatch.chdir(place)
    whole = catalog.identities(str(place / "people.csv"), None)
    assert catalog.identities("people.csv", None) == catalog.identities("link.csv", None) == whole
    assert str(place) not in str(whole)
    with pytest.raises(PolicyError, match="a new one each time"):
        catalog.identities("-", None)
