"""Jobs in tests: a table, its policy, freezing its run, carrying the job out."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable
from typing import Any

from sqlanon.catalog import Catalog, Job, Run
from sqlanon.engines import connect
from sqlanon.jobs.freezing import Freezing, freeze
from sqlanon.jobs.running import run_by_rules, run_procedure
from sqlanon.work.journal import Observer, Silent
from tests.rules_support import CODED, CODED_ROLES, GENERALIZATIONS, coded
from tests.run_support import OPTIONS, Database, Row, anonymize

COLUMNS = {"n": "INTEGER", "t": "VARCHAR(9)", "d": "DATE", "z": "VARCHAR(3)", "s": "VARCHAR(1)", "x": "INTEGER"}
ROLES: dict[str, Any] = {
    "n": "quasi-identifier",
    "t": "quasi-identifier",
    "d": {"role": "quasi-identifier", "show": "bounds"},
    "z": {"role": "quasi-identifier", "hierarchy": {"mask": "right", "length": 3}},
    "s": "sensitive",
    "x": "sensitive",
}
K = {"model": "k-anonymity", "k": 3}
ALONE: Row = (1000, "zz", datetime.date(2030, 1, 1), "99z", "a", 1)


def table(seed: int, rows: int, wide: int) -> list[Row]:
    source = random.Random(seed)
    day = datetime.date(2024, 1, 1)
    return [
        (
            source.choice([None, *range(-wide, 30 + wide)]),
            source.choice([None, "a", "b", "C", "dd", "e,f", *(["zz"] if wide else [])]),
            day + datetime.timedelta(days=source.randint(-wide, 60)),
            f"{source.randint(10, 30)}{source.choice('xy')}",
            source.choice("aaabc"),
            source.randint(0, 9),
        )
        for _ in range(rows)
    ]


def frozen(database: Database, run: str, **wanted: Any) -> Job:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        return freeze(engine, catalog, catalog.run(run), Freezing(**{"name": "nightly", **wanted}))


def frozen_table(database: Database) -> str:
    """A table whose recoding is the job `nightly`."""
    name, run = simple(database)
    frozen(database, run)
    return name


def carry_out(database: Database, job: str = "nightly", observer: Observer | None = None) -> Any:
    with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        found = catalog.job(job)
        if found.routine is not None:
            return run_procedure(engine, catalog, found).as_json()
        run = catalog.run(found.run)
    return run_by_rules(found, run, (database.url, "sqlanon"), None, OPTIONS, observer or Silent()).as_json()


def runs(database: Database, job: str = "nightly") -> list[Run]:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        return catalog.runs_of_job(job)


def replaced(database: Database, name: str, rows: list[Row]) -> None:
    database.sql(f"DELETE FROM {name}")
    database.insert(name, rows)


def released(database: Database, name: str) -> list[Row]:
    return sorted(database.sql(f"SELECT * FROM {name}"), key=repr)


def linked(warnings: Iterable[str]) -> list[str]:
    """Select the warnings about earlier releases by other rules."""
    return [told for told in warnings if "by other rules" in told]


def simple(database: Database, **more: Any) -> tuple[str, str]:
    """A table, and a run of it that is 3-anonymous."""
    name = database.create(COLUMNS, table(1, 120, 0))
    return name, anonymize(database.policy(name, ROLES, **{"privacy": [K], **more})).run


def fulldomain(database: Database, **more: Any) -> tuple[str, str]:
    """A table, and a run of it that generalizes whole domains."""
    name = database.create(CODED, coded(1, 150, 90))
    policy = {**GENERALIZATIONS["optimal"], "privacy": [K], **more}
    return name, anonymize(database.policy(name, CODED_ROLES, **policy)).run


def assert_order_is_of_what_rows_show(database: Database, name: str, rows: list[Row]) -> None:
    orders = []
    for seed in range(2):
        random.Random(seed).shuffle(rows)
        orders.append(order_of_release(database, name, rows))
    assert [str(row) for row in orders[0]] == [str(row) for row in orders[1]]
    assert len(orders[0]) > 100


def order_of_release(database: Database, name: str, rows: list[Row]) -> list[Row]:
    replaced(database, name, rows)
    database.sql(f"TRUNCATE {name}_r")  # where rows lie among old ones depends on what was there
    carry_out(database)
    return database.sql(f"SELECT * FROM {name}_r ORDER BY ctid")


def tamper(database: Database, change: str) -> None:
    """Change statements of the job `nightly`, and the digests in its procedure too, as if they had been frozen so."""
    columns = ("inspection", "recoding", "assigning", "showing")
    digests = ", ".join(f"encode(sha256(convert_to({column}, 'UTF8')), 'hex')" for column in columns)
    before = database.sql(f"SELECT {digests} FROM sqlanon.jobs")[0]
    database.sql(f"UPDATE sqlanon.jobs SET {change}")
    after = database.sql(f"SELECT {digests} FROM sqlanon.jobs")[0]
    ((text,),) = database.sql("SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'job_nightly'")
    for one, other in zip(before, after, strict=True):
        if one is not None and other is not None:
            text = text.replace(one, other)
    database.sql(text)
