"""Names that hold everything a name can hold go through every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cli.support import call, execute, only_object

pytestmark = pytest.mark.either_engine

TABLE = 'Odd "table".%s'
COLUMNS = {
    'q"1': "i % 20",
    "Größe.:x {{ y }}": "CAST(10000 + i % 30 AS VARCHAR(5))",
    "select": "CASE WHEN i % 2 = 0 THEN 'a;b' WHEN i % 5 = 0 THEN NULL ELSE '{{ x }}' END",
    "100%": "i % 4",
    "null": "i",
}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _make(url: str) -> str:
    """The table; its name as SQL writes it."""
    schema = "Odd schema; --"
    table = f"{_quoted(schema)}.{_quoted(TABLE)}"
    series = "range(120)" if url.startswith("duckdb") else "generate_series(0, 119)"
    columns = ", ".join(f"{value} AS {_quoted(name)}" for name, value in COLUMNS.items())
    execute(url, f"CREATE SCHEMA {_quoted(schema)}", f"CREATE TABLE {table} AS SELECT {columns} FROM {series} AS t(i)")
    return table


def test_odd_names(database_url: str, tmp_path: Path) -> None:
    table, policy = _make(database_url), tmp_path / "odd policy.yml"
    assert call("init", database_url, table, "-o", policy).exit_code == 0
    document = YAML(typ="safe").load(policy.read_text())
    assert set(document["attributes"]) == set(COLUMNS)
    roles = ["quasi-identifier", "quasi-identifier", "quasi-identifier", "sensitive", "identifier"]
    document["attributes"] = {name: {"role": role} for name, role in zip(COLUMNS, roles, strict=True)}
    document["attributes"]["Größe.:x {{ y }}"]["hierarchy"] = {"mask": "right"}
    document["attributes"]['q"1']["show"] = "bounds"
    document["privacy"] = [{"model": "k-anonymity", "k": 6}, {"model": "t-closeness", "attribute": "100%", "t": 0.9}]
    with policy.open("w") as file:
        YAML(typ="safe").dump(document, file)
    for command in (["check"], ["run", "-q"], ["verify"]):
        result = call(*command, policy)
        assert result.exit_code == 0, result.output
    assert call("hierarchy", "show", policy, "Größe.:x {{ y }}").exit_code == 0
    released = _quoted("Odd schema; --") + "." + _quoted(TABLE + "_released")
    options = ["--qi", 'q"1_min', "--qi", 'q"1_max', "--qi", "Größe.:x {{ y }}", "--qi", "select"]
    found = call("verify", database_url, released, *options, "--k", "6", "--l", "2", "--sensitive", "100%", "--json")
    assert only_object(found.stdout)["models"][0]["satisfied"], found.output
    run = only_object(call("runs", "--policy", policy, "--json").stdout)["runs"][0]
    assert _quoted(TABLE) in run["source"]
    assert call("show", run["run"], "--policy", policy, "--steps").exit_code == 0
