"""Odd names of tables, columns and schemas, and as many columns as can be searched."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.errors import PolicyError
from tests.run_support import Database, anonymize, open_database, quoted

pytestmark = pytest.mark.either_engine

TABLE_NAMES = ["group", 'say "hi". {{ n }} {% if %}', "UPPER 100% %s :x $1", "n" * 62 + "m", "名前😀"]


NAMES = [
    "select",
    "group",
    'say "hi"',
    "a.b",
    "two  spaces ",
    "UPPER Case",
    "100%",
    "%s %(x)s",
    ":x :1 $1 ?",
    "{{ n }} {% if %}",
    "it's",
    "back\\slash",
    "-- /*",
    "n" * 59,  # with _min it has 63 bytes
    "ä" * 29 + "x",
    "名前😀",
    "n",
    "leaf",
    "q0",
    "p0",
    "value",
    "code",
    "region",
    "part",
]


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_names_of_tables(database: Database, name: str) -> None:
    table, release = quoted(name), quoted(name[:30] + "r")
    database.create({name: "INTEGER", name[:20] + "2": "INTEGER"}, [(n, n) for n in range(6)], name=table)
    policy = database.policy(
        table, {name: "quasi-identifier", name[:20] + "2": "insensitive"}, release={"table": release}
    )
    assert anonymize(policy).published
    assert anonymize(policy, replace=True).published
    assert database.columns(release)[0][0] == name
    assert database.sql(f"SELECT count(*) FROM {release}") == [(6,)]


@pytest.mark.parametrize("turn", range(3))
def test_names_of_columns(database: Database, turn: int) -> None:
    """Every name is that of a quasi-identifier, of a sensitive and of an insensitive column in turn."""
    kinds: list[Any] = [
        ("INTEGER", ("quasi-identifier", {"show": "bounds"}), lambda n: n),
        ("VARCHAR(5)", ("quasi-identifier", {"hierarchy": {"mask": "right"}}), lambda n: f"1{n:02}"),
        ("VARCHAR(5)", ("sensitive", {}), lambda n: "xy"[n % 2]),
        ("DECIMAL(5, 2)", ("insensitive", {}), lambda n: n),
    ]
    taken = [kinds[(place + turn) % len(kinds)] for place in range(len(NAMES))]
    columns = {name: kind[0] for name, kind in zip(NAMES, taken, strict=True)}
    roles = {name: {"role": kind[1][0], **kind[1][1]} for name, kind in zip(NAMES, taken, strict=True)}
    models = [
        {"model": "distinct-l-diversity", "attribute": name, "l": 2}
        for name, attribute in roles.items()
        if attribute["role"] == "sensitive"
    ]
    table = database.create(columns, [tuple(kind[2](n) for kind in taken) for n in range(8)])
    assert len(database.release(table, roles, privacy=models)) == 8
    released = [name for name, _ in database.columns(f"{table}_r")]
    bounds = [name for name, kind in zip(NAMES, taken, strict=True) if kind is kinds[0]]
    assert len(released) == len(NAMES) + len(bounds)
    assert {name for name in released if name in NAMES} == set(NAMES) - set(bounds)


def test_a_schema_with_an_odd_name(database: Database) -> None:
    database.sql('CREATE SCHEMA "Odd.schema 100%"')
    table = database.create({"q": "INTEGER"}, [(n,) for n in range(6)], name='"Odd.schema 100%"."T t"')
    policy = database.policy(table, {"q": "quasi-identifier"}, release={"table": '"Odd.schema 100%"."R r"'})
    assert anonymize(policy).as_json()["release"]["rows"] == 6


def test_columns_that_differ_only_in_case(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        columns = {"age": "INTEGER", "Age": "INTEGER", "AGE": "INTEGER", "aGe": "VARCHAR(3)"}
        table = database.create(columns, [(n, -n, n * 2, "x") for n in range(8)])
        roles = {"age": "quasi-identifier", "Age": "quasi-identifier", "AGE": "sensitive", "aGe": "insensitive"}
        assert len(database.release(table, roles)) == 8
        assert [name for name, _ in database.columns(f"{table}_r")] == list(columns)


def test_62_quasi_identifiers(database: Database) -> None:
    columns = {f"q{i}": "INTEGER" for i in range(62)}
    table = database.create(columns, [tuple((n * (i + 1)) % 13 for i in range(62)) for n in range(12)])
    assert len(database.release(table, dict.fromkeys(columns, "quasi-identifier"))) == 12


def test_more_quasi_identifiers_than_can_be_searched(database: Database) -> None:
    columns = {f"q{i}": "INTEGER" for i in range(63)}
    table = database.create(columns, [tuple(range(63))] * 3)
    with pytest.raises(PolicyError, match="63 quasi-identifiers"):
        anonymize(database.policy(table, dict.fromkeys(columns, "quasi-identifier")))
