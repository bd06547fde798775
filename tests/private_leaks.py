"""All that a differentially private run leaves, gathered as one text in which runs and times have no names."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog.tables import TABLE_NAMES
from sqlanon.methods.differential_privacy import check as private_check
from sqlanon.methods.differential_privacy import source as private_runs
from sqlanon.methods.differential_privacy.mechanism_audit.own_database import nameless
from sqlanon.methods.differential_privacy.mechanism_audit.recording import ConstantDraws
from sqlanon.sql import Relation
from tests.cli.support import call
from tests.run_support import Database, Row

COLUMNS = {"person": "INTEGER", "age": "INTEGER", "job": "VARCHAR(9)", "pay": "VARCHAR(9)"}
POLICY: dict[str, Any] = {
    "attributes": {
        "person": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "domain": {"from": 20, "below": 60, "step": 10}},
        "job": {"role": "quasi-identifier", "values": ["clerk", "smith"]},
        "pay": {"role": "sensitive", "values": ["low", "high"]},
    },
    "privacy": [{"model": "differential-privacy", "epsilon": 1, "unit": {"column": "person", "rows": 2}}],
    "algorithm": {"name": "diffgen", "target": "pay", "specializations": 3},
    "budget": {"ledger": "people"},
}
FEW: list[Row] = [(1, 35, "clerk", "low")]
MANY: list[Row] = [
    *((number % 7, 20 + number, "smith", "high") for number in range(30)),
    *((8, 987654321, "spy", "low") for _ in range(5)),
    *((None, None, None, None) for _ in range(3)),
]


def _lines(database: Database, query: str) -> list[str]:
    return [nameless(" | ".join(map(str, row))) for row in database.sql(query)]


def left_behind(
    database: Database,
    rows: Sequence[Row],
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: pytest.LogCaptureFixture,
) -> str:
    """Run over a table of these rows with draws that don't depend on it, and gather all that is left in the end.

    The table, the catalog and the release before are dropped first.
    """
    for one in (private_runs, private_check):
        monkeypatch.setattr(one, "OpenDP", ConstantDraws)
    for dropped in ("SCHEMA IF EXISTS sqlanon CASCADE", "TABLE IF EXISTS people", "TABLE IF EXISTS people_dp"):
        database.sql(f"DROP {dropped}")
    database.create(COLUMNS, rows, "people")
    policy = directory / "policy.yml"
    places = {"source": {"url": database.url, "table": "people"}, "release": {"table": "people_dp"}}
    policy.write_text(json.dumps(POLICY | places))
    where = ("--policy", policy)
    with log.at_level(logging.DEBUG):
        outputs = [
            call("budget", "grant", "people", "--epsilon", "2", "--reason", "a test", *where),
            call("check", policy, "--json"),
            call("run", policy, "--progress", "json"),
            call("run", policy, "--replace", "--json"),
            call("run", policy, "--replace"),  # which is refused
        ]
        assert [one.exit_code for one in outputs] == [0, 0, 0, 0, 3], [one.output for one in outputs]
        outputs += [call(*words, *where) for words in (["runs", "--json"], ["budget", "show", "people", "--json"])]
        run = json.loads(outputs[3].stdout)["run"]
        outputs.append(call("report", run, *where))
        outputs += [call("show", run, "--steps", *words, *where) for words in ([], ["--json"])]
    kept = [one.output for one in outputs]
    kept += [f"{record.name} {record.getMessage()}" for record in log.records]
    log.clear()
    for name in TABLE_NAMES:
        kept += [name, *sorted(_lines(database, f"SELECT * FROM {Relation(name, 'sqlanon')}"))]
    kept += _lines(database, "SELECT * FROM people_dp")
    kept += sorted(_lines(database, "SELECT table_schema, table_name FROM information_schema.tables"))
    kept += sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))
    return re.sub(r"\d\d:\d\d UTC", "TIME UTC", nameless("\n".join(kept)))  # of a report
