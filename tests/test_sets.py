"""Sets of many texts, shown by their first and last."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.inquiries.profile.draft import propose_policy
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.sql import Relation
from tests.jobs_support import carry_out, frozen
from tests.rules_support import apply
from tests.run_support import Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"street": "TEXT", "age": "INTEGER", "id": "INTEGER"}
ODD = ['Main, "Old"', "{x}", "NULL", " ", "a-b", "*", "Ä"]
K = [{"model": "k-anonymity", "k": 30}]


def _roles(sets: str | None) -> dict[str, Any]:
    street = {"role": "quasi-identifier"} | ({"sets": sets} if sets else {})
    return {"street": street, "age": "quasi-identifier", "id": "insensitive"}


def _rows(streets: int, nulls: bool = True) -> list[tuple[Any, ...]]:
    draw = random.Random(5)
    names = [*(f"Street {n:03}" for n in range(streets)), *ODD, *([None] if nulls else [])]
    return [(draw.choice(names), draw.randrange(20, 60), n) for n in range(600)]


def _members(label: str) -> int:
    """The members that a label lists; 0 of an interval."""
    return 0 if re.search(r'"-"', label) else len(re.findall(r'"(?:[^"]|"")*"|[^",{} ][^",{}]*', label))


@pytest.mark.parametrize("streets", [40, 300])
@pytest.mark.parametrize(("sets", "most"), [("auto", 12), ("range", 1), ("list", 100), (None, 100)])
def test_larger_sets_show_their_ends(database: Database, sets: str | None, most: int, streets: int) -> None:
    table = database.create(COLUMNS, _rows(streets))
    released = database.release(table, _roles(sets), privacy=K)
    labels = {row[0] for row in released}
    assert all(_members(label) <= most + ("NULL" in label) for label in labels)
    if most < 100:
        assert any('"-"' in label for label in labels)
        assert all(len(label) < 300 for label in labels)


@pytest.mark.parametrize("sets", ["auto", "range"])
@pytest.mark.parametrize("streets", [40, 300])
def test_later_releases_show_the_same(database: Database, sets: str, streets: int) -> None:
    table = database.create(COLUMNS, _rows(streets))
    run = anonymize(database.policy(table, _roles(sets), privacy=K, ranges="cuts")).run
    first = database.sql(f"SELECT * FROM {table}_r")
    assert any('"-"' in row[0] or row[0] == "*" for row in first)
    apply(database, run, table, f"{table}_again", "error")
    assert database.sql(f"SELECT * FROM {table}_again") == first
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        select = rules_select(catalog.store, read_rules(catalog, run), catalog.run(run))
    assert sorted(database.sql(select), key=repr) == sorted(first, key=repr)
    frozen(database, run)
    carry_out(database)
    assert sorted(database.sql(f"SELECT * FROM {table}_r"), key=repr) == sorted(first, key=repr)


def test_an_interval_that_leaves_values_out_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, _rows(40))
    wrong = Markup("'\"M\"'")  # between which no street lies
    monkeypatch.setattr("sqlanon.staging.recode.quote_member", lambda *_, **__: wrong)
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, _roles("range"), privacy=K))


@pytest.mark.parametrize(
    ("type_", "said", "problem"),
    [
        ("INTEGER", {"sets": "auto"}, "sets is for texts without a hierarchy"),
        ("TEXT", {"sets": "auto", "hierarchy": {"mask": "right"}}, "sets is for texts without a hierarchy"),
        ("TEXT", {"sets": "auto", "role": "sensitive"}, "which only labels of quasi-identifiers have"),
        ("INTEGER", {"sets": "auto", "show": "bounds"}, "which only labels of quasi-identifiers have"),
    ],
)
def test_sets_of_others_are_refused(database: Database, type_: str, said: dict[str, Any], problem: str) -> None:
    table = database.create({"q": type_, "p": "INTEGER"}, [(None, 1), (None, 2)])
    with pytest.raises(PolicyError, match=problem):
        anonymize(database.policy(table, {"q": {"role": "quasi-identifier", **said}, "p": "quasi-identifier"}))


def test_a_draft_shows_many_texts_by_their_ends(database: Database) -> None:
    table = database.create({"city": "TEXT", "sex": "TEXT"}, [(f"City {n % 200}", "mf"[n % 2]) for n in range(800)])
    with connect(database.url) as engine:
        relation = engine.resolve(Relation.parse(table))
        assert relation is not None
        draft = propose_policy(profile(engine, relation), database.url, table)
    assert "city: {role: quasi-identifier, sets: auto}" in draft
    assert "sex: {role: quasi-identifier}" in draft
