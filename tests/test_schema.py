"""The JSON Schema of policies: it takes what the reader takes, and refuses what only the reader could mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sqlanon import PolicyError, draft_policy, parse_policy
from sqlanon.api.demo import policy_text
from sqlanon.policy import Policy
from sqlanon.policy.document import read_document
from sqlanon.policy.schema import DIALECT, ONE_TABLE, policy_schema
from tests.cli.support import call, make_patients, only_object

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))
VALIDATOR = jsonschema.Draft202012Validator(policy_schema())
BASE = """\
source:  {file: people.csv}
release: {file: released.csv}
attributes: {a: {role: quasi-identifier}}
privacy: [{model: k-anonymity, k: 2}]
"""


def wrong(text: str) -> list[str]:
    """List the errors that the schema finds in a policy in YAML."""
    return [error.message for error in VALIDATOR.iter_errors(read_document(text).data)]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(policy_schema())
    assert policy_schema()["$schema"] == DIALECT


def test_the_command_prints_it(tmp_path: Path) -> None:
    assert only_object(call("schema").stdout) == policy_schema()
    assert call("schema", "-o", tmp_path / "policy.schema.json").exit_code == 0
    assert only_object((tmp_path / "policy.schema.json").read_text()) == policy_schema()


def test_every_key_is_explained() -> None:
    parts = policy_schema()["$defs"]
    assert parts[ONE_TABLE]["description"] == Policy.__doc__
    for name, part in parts.items():
        for key, its in part.get("properties", {}).items():
            is_tag = "const" in its
            assert is_tag or its.get("description"), f"{name}.{key}"


@pytest.mark.parametrize("policy", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(policy: Path) -> None:
    assert wrong(policy.read_text(encoding="utf-8")) == []


def test_policies_of_the_documentation_are_valid() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert wrong(block) == []
    assert wrong(policy_text(Path("demo.duckdb"))) == []


@pytest.mark.either_engine
def test_drafts_name_it_and_are_valid(database_url: str, tmp_path: Path) -> None:
    make_patients(database_url)
    draft = draft_policy(database_url, "patients")
    assert draft.startswith("# yaml-language-server: $schema=policy.schema.json\n")
    assert wrong(draft) == []
    (tmp_path / "people.csv").write_text(
        "zip;born\n" + "".join(f"{10000 + i};{1950 + i % 50}-01-02\n" for i in range(90))
    )
    assert wrong(draft_policy(None, str(tmp_path / "people.csv"))) == []


SHORT = [
    "attributes: {a: {role: quasi-identifier, hierarchy: suppress}}",
    "attributes: {a: {role: quasi-identifier, hierarchy: {date: month}}}",
    "attributes: {a: {role: quasi-identifier, hierarchy: {intervals: 10}}}",
    "attributes: {a: {role: quasi-identifier, hierarchy: {mapping: {x: 1, y: [2, 3]}, unknown: 0}}}",
    "source: {file: p.csv, 'null': NA, dates: '%d/%m/%Y', delimiter: tab, types: {a: text}}",
    "source: {file: p.csv, 'null': ['', 0]}",
    "algorithm: {name: rothko-t, split: regression, target: a, bins: 16}",
]
REFUSED = [
    "attributes: {a: {role: quasi-identifier, hierarchy: supress}}",
    "attributes: {a: {role: quasi}}",
    "attributes: {a: {role: sensitive, hirarchy: suppress}}",
    "privacy: [{model: k-anonymity, k: 0}]",
    "privacy: [{model: k-anonymity, k: 2.5}]",
    "privacy: []",
    "source: {file: p.csv, url: 'duckdb:///x.duckdb', table: t}",
    "source: {url: 'duckdb:///x.duckdb'}",
    "algorithm: {name: mondrain}",
    "algorithm: {}",
    "algorithm: {name: rothko-t, split: regression, target: a, bins: 1}",
    "suppression: 1",
    "k: 5",
]


def changed(line: str) -> str:
    """The policy with one key replaced."""
    key = line.partition(":")[0]
    return "".join(f"{kept}\n" for kept in BASE.splitlines() if not kept.startswith(f"{key}:")) + line


@pytest.mark.parametrize("line", SHORT)
def test_short_forms_are_valid(line: str) -> None:
    assert wrong(changed(line)) == []


@pytest.mark.parametrize("line", REFUSED)
def test_what_it_refuses_the_reader_refuses_too(line: str) -> None:
    assert wrong(changed(line))
    with pytest.raises(PolicyError):
        parse_policy(changed(line))


def test_it_misses_no_key_of_the_grammar() -> None:
    schema: dict[str, Any] = policy_schema()
    assert set(schema["$defs"][ONE_TABLE]["properties"]) >= {
        "source",
        "release",
        "attributes",
        "privacy",
        "algorithm",
        "catalog",
    }
    assert all(part["additionalProperties"] is False for part in schema["$defs"].values() if "properties" in part)
