"""Risk of whoever knows some items of a person, against loops over all sets; long tables and arrays, both engines."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon import item_risk, policy_item_risk
from sqlanon.inquiries.risk import item_sets
from sqlanon.results.risk import KnownItems
from tests.cli.support import call, execute
from tests.persons_support import ORACLE
from tests.run_support import Row, anonymize, duckdb_url, open_database

COLUMNS = {"who": "VARCHAR(9)", "item": "VARCHAR(9)"}
Baskets = dict[Any, set[Any]]


def brute_force(baskets: Baskets, known: int) -> KnownItems:
    """For each person with items, the fewest persons who have the same set of up to so many of them."""
    fewest = [
        min(
            sum(set(chosen) <= other for other in baskets.values())
            for size in range(1, known + 1)
            for chosen in itertools.combinations(sorted(items, key=str), size)
        )
        for items in baskets.values()
        if items
    ]
    alone = fewest.count(1)
    return KnownItems(known, alone, alone / len(fewest), min(fewest), sum(fewest) / len(fewest))


items_of_persons = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from([None, "", *"aabbcdef"]), max_size=6)), min_size=1, max_size=9
).filter(lambda arrays: any(arrays))


@ORACLE
@given(arrays=items_of_persons)
def test_arrays_and_rows_of_items_single_the_same_persons_out(
    database_url: str, arrays: list[list[str | None] | None]
) -> None:
    baskets = {person: set(items or ()) for person, items in enumerate(arrays)}
    rows = [(f"p{person}", item) for person, items in enumerate(arrays) for item in items or ()]
    with open_database(database_url) as database:
        table = database.create({"items": "VARCHAR(9)[]"}, [(items,) for items in arrays])
        long = database.create(COLUMNS, rows)
        named = database.create({"who": "INTEGER", "items": "VARCHAR(9)[]"}, list(enumerate(arrays)))
    of_arrays = item_risk(database_url, table, "items", known=[3, 1, 2, 2])
    of_rows = item_risk(database_url, long, "item", subject="who", known=[1, 2, 3])
    assert of_arrays.known == of_rows.known == tuple(brute_force(baskets, known) for known in (1, 2, 3))
    assert of_arrays.persons == of_rows.persons == sum(map(bool, baskets.values()))
    assert of_arrays.items == of_rows.items == len(set().union(*baskets.values()))
    assert item_risk(database_url, named, "items", subject="who").known == of_arrays.known


def test_a_person_may_have_several_arrays(database_url: str) -> None:
    rows = [(1, [1, 2]), (1, [3, 2]), (2, [1, 3]), (3, [])]
    with open_database(database_url) as database:
        table = database.create({"who": "INTEGER", "items": "INTEGER[]"}, rows)
    measured = item_risk(database_url, table, "items", subject="who", known=[2])
    assert measured.known == (brute_force({1: {1, 2, 3}, 2: {1, 3}}, 2),)


def test_items_of_a_release_are_those_of_k_persons(database_url: str) -> None:
    rows: list[Row] = [(f"p{n}", f"i{(n * step) % 9}") for n in range(40) for step in range(1, 4)]
    roles = {
        "who": {"role": "identifier", "show": "surrogate", "nulls": "each"},
        "item": {"role": "quasi-identifier", "hierarchy": {"mapping": {f"i{n}": [f"g{n // 3}"] for n in range(9)}}},
    }
    privacy = [{"model": "km-anonymity", "k": 6, "m": 2}]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, roles, privacy=privacy, subject="who", algorithm={"name": "mondrian"})
    assert policy_item_risk(policy, "item").release is None
    anonymize(policy)
    both = policy_item_risk(policy, "item", known=[1, 2])
    baskets: Baskets = {}
    for who, item in rows:
        baskets.setdefault(who, set()).add(item)
    assert both.source.known == (brute_force(baskets, 1), brute_force(baskets, 2))
    assert both.release is not None
    assert all((one.least or 0) >= 6 for one in both.release.known)


def test_sets_of_too_many_items_are_not_counted(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_sets, "MOST_SETS", 20)
    with open_database(database_url) as database:
        table = database.create({"items": "INTEGER[]"}, [(list(range(7)),), ([1],)])
    measured = item_risk(database_url, table, "items", known=[1, 2, 3])
    assert [one.alone for one in measured.known] == [1, None, None]


def test_tables_without_items(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create({"items": "INTEGER[]"}, [(None,), ([],)])
    measured = item_risk(database_url, table, "items")
    assert (measured.persons, measured.items, measured.known) == (0, 0, ())


@pytest.fixture
def duckdb_items(tmp_path: Path) -> str:
    """A database with a table of three persons and three items."""
    url = duckdb_url(tmp_path / "t.duckdb")
    execute(
        url,
        "CREATE TABLE t AS SELECT *, CASE WHEN who > 1 THEN who END AS nobody, [[item]] AS deep"
        " FROM (VALUES (1, 'a'), (1, 'b'), (2, 'b'), (2, 'c'), (3, 'c'), (3, 'a')) AS x (who, item)",
    )
    return url


WRONG: list[tuple[list[str], str]] = [
    (["--items", "item"], "name that column with --subject"),
    (["--items", "other", "--subject", "who"], "other"),
    (["--items", "item", "--subject", "item"], "named twice"),
    (["--items", "item", "--subject", "who", "--known", "0"], "from 1 to 10"),
    (["--items", "item", "--subject", "who", "--known", "two"], "such as --known 1,2,3"),
    (["--items", "item", "--subject", "who", "--suda", "2"], "leave --suda out"),
    (["--items", "item", "--subject", "who", "--qi", "who"], "leave --qi out"),
    (["--items", "deep"], "arrays of arrays"),
    (["--known", "2"], "--known is of --items"),
    (["--items", "item", "--subject", "nobody"], "NULL in some rows"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_what_can_not_be_measured_is_refused(duckdb_items: str, given: list[str], message: str) -> None:
    result = call("risk", duckdb_items, "t", *given)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_the_command_tells_text_and_json(duckdb_items: str) -> None:
    text = call("risk", duckdb_items, "t", "--items", "item", "--subject", "who", "--known", "1,2").stdout
    assert "t: 3 persons with 3 different items in item." in text
    assert "3 (100 %)" in text
    text = call("risk", duckdb_items, "t", "--items", "item", "--subject", "who", "--known", "2", "--json").stdout
    assert json.loads(text)["known"] == [{"known": 2, "alone": 3, "share": 1.0, "least": 1, "mean": 1.0}]
