"""Rules hidden from the command line: the command, and the commands that it refuses to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import call_main
from tests.hiding_support import BASKETS, baskets_of, counts_of
from tests.run_support import Database

BASKETS_BOUGHT = ("canary b", "canary b", "canary b c", "c")
BOUGHT = [(basket, item) for basket, items in enumerate(BASKETS_BOUGHT) for item in items.split()]
RULES = [{"if": ["canary"], "then": ["b"]}]


def write_policy(directory: Path, database: Database, **more: Any) -> Path:
    """The file of a policy that hides a rule of baskets, in a table that is made for it."""
    table = database.create({"basket": "INTEGER", "item": "VARCHAR(9)"}, BOUGHT)
    policy = {
        "source": {"url": database.url, "table": table},
        "release": {"table": f"{table}_r"},
        "attributes": {name: {"role": "insensitive"} for name in ("basket", "item")},
        "privacy": [{"model": "hidden-rules", "support": 2, "confidence": 0.5, "rules": RULES}],
        "algorithm": BASKETS,
    }
    file = directory / "hiding.yml"
    file.write_text(json.dumps(policy | more))
    return file


def test_rules_are_hidden_by_the_command_as_by_run(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_policy(tmp_path, database)
    code, told, said = call_main(capsys, "associations", "hide", file, "--json")
    assert code == 0, said
    hidden = json.loads(told)
    released = baskets_of(database.sql(f"SELECT basket, item FROM {hidden['release']}"))
    assert counts_of(released.values(), (frozenset({"canary"}), frozenset({"b"}))) == (1, 3)
    assert [one["released_support"] for one in hidden["rules"]] == [1]
    assert {"removed": 2, "changed": 2}.items() <= hidden.items()
    assert {"missing", "ghosts"} <= hidden["others"].keys()
    assert "canary" not in told
    code, _, said = call_main(capsys, "associations", "hide", file)
    assert (code, "--replace" in said) == (2, True)
    code, told, said = call_main(capsys, "associations", "hide", file, "--replace", "-q")
    assert (code, "Taken out: 2 items of 2 transactions" in told) == (0, True), said


def test_other_policies_are_refused_by_the_name_of_run(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"privacy": [{"model": "k-anonymity", "k": 2}], "algorithm": {"name": "mondrian"}}
    file = write_policy(tmp_path, database, **more, attributes={"item": {"role": "quasi-identifier"}})
    code, _, said = call_main(capsys, "associations", "hide", file)
    assert (code, f"sqlanon run {file}" in said) == (2, True)


def test_what_needs_classes_or_quasi_identifiers_refuses_the_policy(
    postgres_database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_policy(tmp_path, postgres_database)
    for words, message in {
        ("associations", file): "hidden-rules promises how a release is drawn",
        ("ask", file, "count(*)"): "hidden-rules promises how a release is drawn",
        ("risk", file): "No quasi-identifier is named",
    }.items():
        code, _, said = call_main(capsys, *words)
        assert (code, message in said) == (2, True), said


@pytest.mark.parametrize("word", [[], ["mine"]])
def test_mining_is_meant_where_no_command_is_named(word: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = call_main(capsys, "associations", *word, "no.yml", "--support", "0")
    assert (code, "associations mine [OPTIONS] [POLICY|URL|FILE] [TABLE]" in said) == (2, True)
    code, _, said = call_main(capsys, "associations", *word, "no.yml", "--support", "2")
    assert (code, "no.yml can't be read" in said) == (2, True)
