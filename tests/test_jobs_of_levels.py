"""Procedures of rules that go by levels: rows are staged by hashes of what they show, where they have addresses."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from sqlanon.catalog import Job
from sqlanon.errors import EngineError, PolicyError, VerificationError
from tests.jobs_support import (
    K,
    assert_order_is_of_what_rows_show,
    carry_out,
    frozen,
    fulldomain,
    order_of_release,
    released,
    replaced,
    runs,
    tamper,
)
from tests.rules_support import GENERALIZATIONS, apply, coded
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = pytest.mark.slow


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with open_database(postgres_url) as opened:
        yield opened


def job_of(database: Database, run: str) -> Job:
    return frozen(database, run, on_violation="suppress", budget=0.9)


def test_they_release_what_applying_the_rules_does(database: Database) -> None:
    name, run = fulldomain(database)
    job = job_of(database, run)
    assert "ctid" in (job.assigning or "")
    replaced(database, name, coded(3, 200, 90))
    apply(database, run, name, f"{name}_again")
    carry_out(database)
    assert released(database, f"{name}_r") == released(database, f"{name}_again")


@pytest.mark.parametrize("level", [0, 1, 2])
def test_they_release_what_applying_the_rules_does_of_every_kind(database: Database, level: int) -> None:
    """Values of which keys stand for what is shown, and others; NULL beside a text that is written like it."""
    columns = {name: kind for name, (kind, _) in KINDS.items()} | {"s": "VARCHAR(1)"}
    roles: dict[str, Any] = {name: {"role": "quasi-identifier", "hierarchy": h} for name, (_, h) in KINDS.items()}
    name = database.create(columns, of_every_kind(150))
    policy = database.policy(name, roles | {"s": "sensitive"}, privacy=[K | {"k": 2}], algorithm={"name": "optimal"})
    run = anonymize(policy, levels=dict.fromkeys(KINDS, level) | {"flag": min(level, 1)}).run
    job_of(database, run)
    apply(database, run, name, f"{name}_again")
    carry_out(database)
    assert released(database, f"{name}_r") == released(database, f"{name}_again")
    assert len(released(database, f"{name}_r")) > 50


FOLDED = {
    "values": ("BIGINT", "suppress", 0, (-1, 2**32 - 1)),
    "values and their negatives": ("NUMERIC", "suppress", 0, (-1, 1)),
    "numbers of intervals": ("BIGINT", {"intervals": [10, 100]}, 1, (-1, 10 * 2**32 - 10)),
    "moments": ("TIMESTAMP", "suppress", 0, ("1999-12-31 23:59:59.999999", "2000-01-01 01:11:34.967295")),
}


@pytest.mark.parametrize(("type_", "hierarchy", "level", "values"), FOLDED.values(), ids=FOLDED)
def test_what_the_server_hashes_alike_is_told_apart(
    database: Database, type_: str, hierarchy: Any, level: int, values: tuple[Any, Any]
) -> None:
    """It folds 64 bits to 32, and leaves out signs of decimals: such values have one hash under every seed."""
    name = database.create({"q": type_, "s": "TEXT"}, [(value, "abc"[i % 3]) for value in values for i in range(6)])
    roles = {"q": {"role": "quasi-identifier", "hierarchy": hierarchy}, "s": "sensitive"}
    policy = database.policy(name, roles, privacy=[K], algorithm={"name": "optimal"})
    run = anonymize(policy, levels={"q": level}).run
    job_of(database, run)
    apply(database, run, name, f"{name}_again")
    carry_out(database)
    assert len({label for label, _ in released(database, f"{name}_r")}) == 2
    assert released(database, f"{name}_r") == released(database, f"{name}_again")


def test_everything_may_be_left_out(database: Database) -> None:
    name = database.create({"q": "TEXT", "s": "TEXT"}, [(f"v{i}", "abc"[i % 3]) for i in range(20)])
    roles = {"q": {"role": "quasi-identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    run = anonymize(database.policy(name, roles, privacy=[K], algorithm={"name": "optimal"})).run
    job_of(database, run)
    carry_out(database)
    assert [row[0] for row in released(database, f"{name}_r")] == ["*"] * 20


KINDS: dict[str, tuple[str, Any]] = {
    "n": ("INTEGER", {"intervals": [5, 20], "origin": 3}),
    "b": ("BIGINT", {"intervals": [7, 700]}),
    "f": ("DOUBLE PRECISION", {"intervals": [0.5, 5]}),
    "d": ("DATE", {"date": ["month", "decade"]}),
    "w": ("TIMESTAMP WITH TIME ZONE", {"date": ["day", "week"]}),
    "m": ("TEXT", {"mask": "left", "length": 4}),
    "t": ("TEXT", {"mapping": {"NULL": ["x", "y"], "a": ["y", "y"], "b": ["NULL", "z"]}}),
    "flag": ("BOOLEAN", "suppress"),
}


def of_every_kind(rows: int) -> list[Row]:
    """Each of some ten different rows many times."""
    days = [datetime.date(1, 1, 3), None, datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]
    zone = datetime.timezone(datetime.timedelta(hours=-9))
    moments = [datetime.datetime(2024, 12, day, 20, tzinfo=zone) for day in (29, 31)]
    return [
        (
            [-2, 3, None, 8, 23][i % 5],
            [-(2**63), -1, 0, 2**63 - 1, None][i % 5],
            [float("inf"), -0.0, 0.0, None, float("nan")][i % 5],
            days[i % 2 * 2 + i % 5 // 3],
            moments[i % 2],
            ["NULL", None, "abcd", "", "bcd"][i % 5],
            ["NULL", None, "a", "b", "a"][i % 5],
            [True, False, None, True, None][i % 5],
            "xyz"[i % 3],
        )
        for i in range(rows)
    ]


def test_the_order_of_rows_tells_nothing_of_the_sources(database: Database) -> None:
    name, run = fulldomain(database)
    job_of(database, run)
    assert_order_is_of_what_rows_show(database, name, coded(2, 250, 90))


def test_rows_without_addresses_are_released_too(database: Database) -> None:
    """A view has none, and of a table and its children they may be the same."""
    name, run = fulldomain(database)
    job_of(database, run)
    rows = coded(3, 200, 90)
    expected = sorted(order_of_release(database, name, rows), key=repr)
    tamper(database, "assigning = 'SELECT 1 / 0'")  # it is not executed
    database.sql(f"CREATE TABLE {name}_child () INHERITS ({name})")
    assert_order_is_of_what_rows_show(database, name, rows)
    assert released(database, f"{name}_r") == expected
    database.sql(f"DROP TABLE {name}_child")
    database.sql(f"ALTER TABLE {name} RENAME TO {name}_base")
    database.sql(f"CREATE VIEW {name} AS SELECT * FROM {name}_base")
    with pytest.raises(PolicyError, match="is not the table of role"):
        order_of_release(database, name, rows)
    job_of(database, run)
    assert sorted(order_of_release(database, name, rows), key=repr) == expected


def test_who_may_read_some_columns_may_not_read_addresses(database: Database) -> None:
    name, run = fulldomain(database)
    job_of(database, run)
    replaced(database, name, coded(3, 200, 90))
    apply(database, run, name, f"{name}_again")
    database.sql("CREATE ROLE sees_columns")
    try:
        for statement in PRIVILEGES:
            database.sql(statement.format(name=name))
        database.sql("SET ROLE sees_columns")
        database.sql("CALL sqlanon.job_nightly()")
    finally:
        database.sql("RESET ROLE")
        database.sql(f"ALTER TABLE {name}_r OWNER TO CURRENT_USER")
        database.sql("DROP OWNED BY sees_columns")
        database.sql("DROP ROLE sees_columns")
    assert released(database, f"{name}_r") == released(database, f"{name}_again")


PRIVILEGES = (
    "GRANT SELECT (c, z, s) ON {name} TO sees_columns",
    "GRANT USAGE ON SCHEMA sqlanon TO sees_columns",
    "GRANT ALL ON ALL TABLES IN SCHEMA sqlanon TO sees_columns",
    "GRANT EXECUTE ON PROCEDURE sqlanon.job_nightly TO sees_columns",
    "ALTER TABLE {name}_r OWNER TO sees_columns",
)


def test_the_order_of_rows_tells_nothing_of_many_that_are_suppressed(database: Database) -> None:
    """However many classes and rows of the join there seem to be."""
    rows: list[Row] = [((str(i // 3) * 99)[:99], i) for i in range(180)]
    name = database.create({"q": "TEXT", "x": "INTEGER"}, rows)
    roles = {"q": {"role": "quasi-identifier", "hierarchy": "suppress"}, "x": "insensitive"}
    run = anonymize(database.policy(name, roles, **GENERALIZATIONS["optimal"], privacy=[K])).run
    frozen(database, run, on_violation="suppress", budget=0.9999)
    alone = order_of_release(database, name, rows)
    assert len(alone) == 180
    database.sql(f"INSERT INTO {name} SELECT repeat(md5(CAST(g AS TEXT)), 3), g FROM generate_series(1000, 60000) AS g")
    database.sql(f"TRUNCATE {name}_r")
    carry_out(database)
    assert database.sql(f"SELECT * FROM {name}_r ORDER BY ctid") == alone


ADDRESS = 's.ctid = c."sqlanon_address"'
OTHERS = 's.ctid = (SELECT max(o."sqlanon_address") FROM pg_temp.sqlanon_chosen AS o)'
TAMPERED = {
    "a class is not shown": "showing = 'SELECT * FROM (' || showing || ') AS x LIMIT 1'",
    "a class is shown twice": "showing = '(' || showing || ') UNION ALL (' || showing || ' LIMIT 1)'",
    "classes show the same": """showing = replace(showing, ' AS "z"', ' || NULL AS "z"')""",
    "classes show a row of another": f"showing = replace(showing, '{ADDRESS}', '{OTHERS}')",
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_classes_show_what_their_rows_do(database: Database, change: str) -> None:
    name, run = fulldomain(database)
    job_of(database, run)
    old = released(database, f"{name}_r")
    tamper(database, change)
    with pytest.raises(VerificationError, match="do not show the same"):
        carry_out(database)
    assert released(database, f"{name}_r") == old
    assert runs(database)[0].status.value == "refused"


def test_two_classes_of_one_hash_are_noticed(database: Database) -> None:
    name, run = fulldomain(database)
    job = job_of(database, run)
    old = released(database, f"{name}_r")
    ((text,),) = database.sql(f"SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'job_{job.name}'")
    colliding = text.replace("), 1)", "), 1) & 1")
    assert colliding != text
    database.sql(colliding)
    with pytest.raises(VerificationError, match="do not show the same"):
        carry_out(database)
    assert released(database, f"{name}_r") == old


def test_two_classes_of_one_hash_are_noticed_without_addresses(database: Database) -> None:
    name, run = fulldomain(database)
    job = job_of(database, run)
    old = released(database, f"{name}_r")
    database.sql(f"CREATE TABLE {name}_child () INHERITS ({name})")
    ((text,),) = database.sql(f"SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'job_{job.name}'")
    database.sql(text.replace("), 1)", "), 1) & 1"))
    with pytest.raises(EngineError, match="23505"):
        carry_out(database)
    assert released(database, f"{name}_r") == old
    assert runs(database)[0].status.value == "failed"
