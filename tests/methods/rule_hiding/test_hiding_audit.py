"""verify of releases with hidden rules, changed by hand in every way and not, on both engines; and their page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sqlanon import run_report
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.rule_hiding.audit import audit_hidden_rules
from sqlanon.methods.rule_hiding.page import others_text
from sqlanon.policy import Policy
from sqlanon.results.measures import Check
from tests.cli.support import call_main
from tests.hiding_support import hide, hiding_policy
from tests.methods.rule_hiding.test_hiding_commands import write_policy
from tests.run_support import Database

pytestmark = pytest.mark.slow

COLUMNS = {"basket": "INTEGER", "item": "VARCHAR(9)", "paid": "NUMERIC(5,2)"}
CHANGED = {
    "an item that makes a rule": (
        "INSERT INTO {t} SELECT basket, '<b>', paid FROM {t} WHERE item = 'canary'",
        {"rules_hidden", "rules_recorded", "rows_equal", "contents_equal"},
    ),
    "an item of a rule less": (
        "UPDATE {t} SET item = 'd' WHERE item = 'canary' AND basket = 1",
        {"rules_recorded", "contents_equal"},
    ),
    "another item": ("UPDATE {t} SET item = 'd' WHERE item = 'e'", {"contents_equal"}),
    "another value": ("UPDATE {t} SET paid = paid + 1 WHERE item = 'e'", {"contents_equal"}),
    "a row less": ("DELETE FROM {t} WHERE item = 'e'", {"rows_equal", "contents_equal"}),
    "a column more": ("ALTER TABLE {t} ADD COLUMN ssn INTEGER", {"columns_equal"}),
    "a column of another type": ("ALTER TABLE {t} ALTER COLUMN paid TYPE NUMERIC(9,2)", {"columns_equal"}),
}


def release(database: Database, **more: object) -> Policy:
    items = [(basket, item) for basket in range(6) for item in ("canary", "<b>", "c")[: 2 + basket % 2]]
    rows = [(basket, item, 10 + basket / 4) for basket, item in [*items, (2, "e"), (7, "c")]]
    table = database.create(COLUMNS, rows)
    rules = [{"if": ["canary"], "then": ["<b>"]}, {"if": ["c"], "then": ["canary"], "support": 5}]
    policy = hiding_policy(database, table, COLUMNS, rules, 3, 0.5, **more)
    hide(policy)
    return policy


def violated(policy: Policy, table: str | None = None) -> set[str]:
    return {name for name, check in audit_hidden_rules(policy, table).checks.items() if check.violations}


def test_a_release_that_was_changed_is_said_to_be(database: Database) -> None:
    policy = release(database)
    audit = audit_hidden_rules(policy)
    assert (audit.satisfied, audit.unchecked) == (True, {})
    assert audit.checks["rules_hidden"] == Check(0, 2)
    name = policy.release.table
    for number, (change, checks) in enumerate(CHANGED.values()):
        database.sql(f"CREATE TABLE {name}{number} AS SELECT * FROM {name} ORDER BY item DESC")
        assert violated(policy, f"{name}{number}") == set()  # in another order
        database.sql(change.format(t=f"{name}{number}"))
        assert violated(policy, f"{name}{number}") == checks, change


def test_rules_that_came_to_the_policy_are_mined_too(database: Database) -> None:
    policy = release(database)
    rules = [*policy.privacy[0].model_dump(by_alias=True)["rules"], {"if": ["canary"], "then": ["canary2"]}]
    rules[2] = {"if": ["c"], "then": ["canary"], "support": 1, "confidence": 0.1}
    more = hiding_policy(database, str(policy.source.table), COLUMNS, rules, 3, 0.5)
    audit = audit_hidden_rules(more)
    assert {name for name, one in audit.checks.items() if one.violations} == {"rules_hidden"}
    assert "is not that of the run" in audit.unchecked["rules_recorded"]


def test_hashes_are_of_a_version_and_digests_of_all(database: Database) -> None:
    policies = [release(database), release(database, digest="run")]
    database.sql("UPDATE sqlanon.runs SET engine_version = 'another one'")
    audit = audit_hidden_rules(policies[0])
    assert audit.satisfied
    assert "another version" in audit.unchecked["contents_equal"]
    database.sql(f"UPDATE {policies[1].release.table} SET item = 'd' WHERE item = 'e'")
    assert violated(policies[1]) == {"contents_equal"}
    database.sql(f"DELETE FROM sqlanon.runs WHERE release LIKE '%{policies[0].release.table}%'")
    with pytest.raises(PolicyError, match="No run is recorded"):
        audit_hidden_rules(policies[0])


def test_the_command_says_what_was_checked(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_policy(tmp_path, database)
    assert call_main(capsys, "associations", "hide", file, "-q")[0] == 0
    code, told, _ = call_main(capsys, "verify", file)
    assert (code, "none of the policy's rules can be mined: passed" in told) == (0, True)
    release = json.loads(file.read_text())["release"]["table"]
    database.sql(f"INSERT INTO {release} VALUES (0, 'b'), (1, 'b')")
    code, told, _ = call_main(capsys, "verify", file, "--json")
    audit = json.loads(told)
    assert (code, audit["satisfied"], audit["checks"]["rules_hidden"]["violations"]) == (3, False, 1)
    assert "epsilon_verified" not in audit
    assert "canary" not in told
    code, _, said = call_main(capsys, "verify", file, "--no-source")
    assert (code, "the source is not read" in said) == (2, True)


def test_the_page_shows_figures_and_no_item(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = release(database)
    run = audit_hidden_rules(policy).run
    page = run_report(run, policy=policy)
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    for text in (
        "2 rules, none of which can be mined",
        "4 items taken out, of 4 transactions",
        "13 rows, of 17 of the source",
        "1 3 50 % 6 2 100 % 33.3 %",
        "2 could not be mined before either 5 50 % 3 3 75 % 75 %",
        "(ghosts)",
        "passed",
        "Sign-off",
        "2 values, not shown",
        "This page holds no value of the data.",
    ):
        assert text in shown, text
    assert not re.search("canary|&lt;b|<b>", page)
    with pytest.raises(PolicyError, match="hidden rules has none: leave it out"):
        run_report(run, policy=policy, population=1000)
    monkeypatch.setattr("sqlanon.methods.rule_hiding.source.check_hidden", lambda *_: {"rules_hidden": Check(1, 1)})
    with pytest.raises(VerificationError):
        hide(policy, replace=True)
    failed = database.sql("SELECT id FROM sqlanon.runs WHERE status <> 'published'")[0][0]
    with pytest.raises(PolicyError, match="released nothing"):
        run_report(failed, policy=policy)
    assert "most: 1" in others_text(None)
