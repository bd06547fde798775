"""check --sql and run --dry-run: every statement, and no change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot

from tests.cli.support import call, only_object, query, write_policy

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

DIALECTS = {"duckdb": "duckdb", "postgres": "postgres"}
PHASES = ["plan", "encode", "search", "recode", "verify", "publish"]


def _tables(url: str) -> list[tuple[str, str]]:
    tables = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2"
    return [row for row in query(url, tables) if row[0] not in ("pg_catalog", "information_schema")]


@pytest.mark.parametrize("command", [["check", "--sql"], ["run", "--dry-run"]])
def test_every_statement_is_printed_and_nothing_changes(
    policy: Path, patients_url: str, engine_name: str, command: list[str]
) -> None:
    before = _tables(patients_url)
    result = call(*command, policy)
    assert result.exit_code == 0, result.output
    assert _tables(patients_url) == before
    phases = list(dict.fromkeys(re.findall(r"^-- ([a-z]+): [\w/]+$", result.stdout, re.MULTILINE)))
    assert phases == [phase for phase in PHASES if phase in phases]
    assert {"encode", "search", "recode"} <= set(phases)
    assert "k-anonymity (k: 5)" in result.stdout
    assert "-- To be read, not to be run:" in result.stdout
    assert "-- search: algorithms/tree/scan/measure_nodes\n-- Size and tight range of every node.\n" in result.stdout
    script = re.sub(r"^LOCK .*;$", "", result.stdout, flags=re.MULTILINE)
    statements = sqlglot.parse(script, read=DIALECTS[engine_name])
    assert len([statement for statement in statements if statement is not None]) > 10


def test_a_dry_run_as_one_object(policy: Path) -> None:
    described = only_object(call("run", "--dry-run", policy, "--json").stdout)
    assert described["source"]["rows"] == 200
    assert {"phase", "name", "statement"} == set(described["statements"][0])
    assert only_object(call("check", "--sql", policy, "--json").stdout)["statements"]


def test_a_dry_run_finds_what_a_run_would(policy: Path) -> None:
    assert call("run", policy, "-q").exit_code == 0
    for command in (["run", "--dry-run"], ["check"], ["check", "--sql"]):
        told = call(*command, policy)
        assert told.exit_code == 0, told.output
        assert "exists: `sqlanon run` needs --replace" in told.output
        assert "needs --replace" not in call(*command, "--replace", policy).output
    assert call("run", policy).exit_code == 2


def test_a_dry_run_of_every_kind_of_hierarchy(patients_url: str, tmp_path: Path) -> None:
    closeness = "{model: t-closeness, attribute: disease, distance: hierarchical, t: 0.9}"
    age = "age:     {role: quasi-identifier, hierarchy: {intervals: [5, 20]}, show: bounds}"
    policy = write_policy(tmp_path, patients_url, diversity=closeness, age=age)
    text = policy.read_text().replace("disease: {role: sensitive}", "disease: {role: sensitive, hierarchy: suppress}")
    policy.write_text(text)
    result = call("check", "--sql", policy)
    assert result.exit_code == 0, result.output
    assert "verify: hierarchies/star_values" in result.stdout
