"""verify of releases with noise, changed by hand in every way and not, on both engines; and their page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines import connect
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.audit import audit_randomized
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.work.session import open_existing_catalog
from tests.cli.support import call_main
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import open_database

pytestmark = pytest.mark.slow

COLUMNS = {"age": "INTEGER", "x": "DOUBLE PRECISION", "job": "VARCHAR(9)", "Town": "VARCHAR(9)", "pay": "INTEGER"}
ROLES = {
    "age": "quasi-identifier",
    "x": "quasi-identifier",
    "job": "sensitive",
    "Town": "insensitive",
    "pay": "sensitive",
}
JOBS = ["clerk", "smith", "<baker>"]
CHANGES: dict[str, Any] = {
    "age": {"noise": "laplace", "epsilon": 1, "range": [0, 9]},
    "x": {"noise": "gaussian", "deviation": 400},
    "job": {"response": "keep", "epsilon": 1, "values": JOBS},
    "pay": {"swap": 0.5},
}

CHANGED = {
    "a kept value": ("UPDATE {t} SET \"Town\" = 'west' WHERE age = (SELECT min(age) FROM {t})", {"contents_equal"}),
    "a value of nobody": ("UPDATE {t} SET job = 'lawyer' WHERE job = 'clerk'", {"values_possible", "contents_equal"}),
    "a number that can't be": ("UPDATE {t} SET age = 99999 WHERE age > 4", {"values_possible", "contents_equal"}),
    "no multiple": ("UPDATE {t} SET x = 0.3000001 WHERE x > 0", {"values_possible", "contents_equal"}),
    "NaN": ("UPDATE {t} SET x = CAST('NaN' AS FLOAT8) WHERE x > 0", {"values_possible", "contents_equal"}),
    "two values that change rows": (
        "UPDATE {t} SET pay = CASE pay WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE pay END",
        {"contents_equal"},
    ),
    "a row less": ("DELETE FROM {t} WHERE age = (SELECT min(age) FROM {t})", {"rows_equal", "contents_equal"}),
    "a column more": ("ALTER TABLE {t} ADD COLUMN ssn INTEGER", {"columns_equal"}),
    "another amount": (
        "UPDATE {t}_noise SET amount = 9 WHERE parameter = 'deviation'",
        {"changes_told", "changes_recorded"},
    ),
    "a value that is not told": ("DELETE FROM {t}_noise WHERE true_value = 'clerk'", {"changes_told"}),
}


def release(url: str, **more: Any) -> Policy:
    with open_database(url) as database:
        rows = [(n % 10, n * 70 / 9, JOBS[n % 3], f"town {n % 4}", n % 6) for n in range(300)]
        policy = randomized_policy(database, database.create(COLUMNS, rows), ROLES, CHANGES, **more)
    randomize(policy)
    return policy


def violated(policy: Policy, table: str | None = None) -> set[str]:
    return {name for name, check in audit_randomized(policy, table).checks.items() if check.violations}


def test_a_release_that_was_changed_is_said_to_be(
    database_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    policy = release(database_url)
    audit = audit_randomized(policy)
    assert audit.satisfied
    assert not audit.unchecked
    assert len(audit.checks) == 6
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    name = policy.release.table
    with open_database(database_url) as database:
        for number, change in enumerate(["", *(change for change, _ in CHANGED.values())]):
            database.sql(f"CREATE TABLE c{number} AS SELECT * FROM {name} ORDER BY age DESC")
            database.sql(f"CREATE TABLE c{number}_noise AS SELECT * FROM {name}_noise")
            if change:
                database.sql(change.format(t=f"c{number}"))
    assert violated(policy, "c0") == set()  # in another order
    for number, (change, checks) in enumerate(CHANGED.values(), 1):
        assert violated(policy, f"c{number}") == checks, change
    code, printed, _ = call_main(capsys, "verify", file)
    assert (code, "rows are those that were released, whatever their order: passed" in printed) == (0, True)
    code, printed, _ = call_main(capsys, "verify", file, "--table", "c1", "--json")
    assert (code, json.loads(printed)["satisfied"]) == (3, False)
    code, _, notes = call_main(capsys, "verify", file, "--no-source")
    assert (code, "the source is not read" in notes) == (2, True)


def test_what_can_not_be_held_against_a_record_is_said(database_url: str) -> None:
    """Hashes are of a version of an engine; a digest of the run is the same for all."""
    policies = [release(database_url), release(database_url, digest="run")]
    with open_database(database_url) as database:
        database.sql("UPDATE sqlanon.runs SET engine_version = 'another one'")
        database.sql(f"UPDATE {policies[1].release.table} SET pay = 1 - pay WHERE pay < 2")
    audit = audit_randomized(policies[0])
    assert audit.satisfied
    assert "another version" in audit.unchecked["contents_equal"]
    assert violated(policies[1]) == {"contents_equal"}
    with open_database(database_url) as database:
        database.sql(f"DROP TABLE {policies[1].release.table}_noise")
        database.sql(f"DELETE FROM sqlanon.runs WHERE release LIKE '%{policies[0].release.table}%'")
    with pytest.raises(PolicyError, match="tells readers what was added"):
        audit_randomized(policies[1])
    with pytest.raises(PolicyError, match="No run is recorded"):
        audit_randomized(policies[0])


def test_the_page_shows_changes_and_no_value(database_url: str) -> None:
    policy = release(database_url)
    with connect(database_url) as engine, open_existing_catalog(policy, engine, None) as catalog:
        assert catalog is not None
        material = collect(catalog, catalog.runs(None)[0].id)
        page = render(material)
        with pytest.raises(PolicyError, match="has none: leave it out"):
            render(material, 1000)
    for text in ("Laplace noise", "values swapped between rows", "No epsilon bounds", "passed", "Sign-off"):
        assert text in page
    for value in ("clerk", "baker", "town 1"):
        assert value not in page
