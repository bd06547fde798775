"""Jobs: procedures that give what applying the rules gives, the choice about violations, what they leave alone."""

from __future__ import annotations

import datetime
import random
from typing import Any

import psycopg
import pytest

from sqlanon.catalog import Catalog, Job, Run
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, PolicyError, ProtectionError, SqlanonError
from sqlanon.jobs.freezing import Freezing, freeze
from sqlanon.jobs.running import run_by_rules, run_procedure
from sqlanon.journal import Silent
from sqlanon.rules.applying import Application, apply_rules
from sqlanon.sql import Relation
from sqlanon.workspace import release_lock
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database

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
MODELS: list[list[dict[str, Any]]] = [
    [K],
    [K, {"model": "t-closeness", "attribute": "s", "t": 0.4}, {"model": "distinct-l-diversity", "attribute": "x", "l": 2}],
    [{"model": "t-closeness", "attribute": "x", "distance": "ordered", "t": 0.3}],
    [K, {"model": "t-closeness", "attribute": "s", "distance": "kl", "t": 0.5}],
    [
        {"model": "entropy-l-diversity", "attribute": "s", "l": 1.5},
        {"model": "recursive-l-diversity", "attribute": "x", "c": 2, "l": 2},
    ],
    [K, {"model": "variance-diversity", "attribute": "x", "v": 2.0}],
]


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


def carry_out(database: Database, job: str = "nightly") -> Any:
    with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        found = catalog.job(job)
        if found.routine is not None:
            return run_procedure(engine, catalog, found)
        run = catalog.run(found.run)
    return run_by_rules(found, run, (database.url, "sqlanon"), None, OPTIONS, Silent())


def runs(database: Database, job: str = "nightly") -> list[Run]:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        return catalog.runs_of_job(job)


def replaced(database: Database, name: str, rows: list[Row]) -> None:
    database.sql(f"DELETE FROM {name}")
    database.insert(name, rows)


def released(database: Database, name: str) -> list[Row]:
    return sorted(database.sql(f"SELECT * FROM {name}"), key=repr)


# --- the procedure


@pytest.mark.parametrize("models", MODELS, ids=lambda models: "+".join(m["model"] + m.get("distance", "") for m in models))
def test_a_procedure_releases_what_applying_the_rules_does(postgres_url: str, models: list[dict[str, Any]]) -> None:
    with open_database(postgres_url) as database:
        name = database.create(COLUMNS, table(1, 200, 0))
        run = anonymize(database.policy(name, ROLES, privacy=models)).run
        frozen(database, run, on_violation="suppress", budget=0.9)
        for seed, rows in ((2, 200), (3, 90), (4, 250)):
            replaced(database, name, table(seed, rows, 3))
            try:
                applied = apply(database, run, name, f"{name}_{seed}").as_json()
            except ProtectionError:
                with pytest.raises(ProtectionError):
                    carry_out(database)
                continue
            result = carry_out(database)
            assert database.columns(f"{name}_r") == database.columns(f"{name}_{seed}")
            assert released(database, f"{name}_r") == released(database, f"{name}_{seed}")
            for part in ("risk",):
                assert result[part] == applied[part]
            same = {"table": None}
            assert {**result["release"], **same} == {**applied["release"], **same}
            assert [m["worst"] for m in result["models"]] == pytest.approx([m["worst"] for m in applied["models"]])
            assert result["metrics"]["discernibility"] == applied["metrics"]["discernibility"]
        assert database.leftovers() == []


def apply(database: Database, run: str, to: str, out: str) -> Any:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(run)
    wanted = Application(run, to, out, "suppress", replace=True, budget=0.9)
    return apply_rules(wanted, found, (database.url, "sqlanon"), options=OPTIONS)
