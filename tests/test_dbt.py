"""A recoding as a dbt project, built by dbt itself on both engines: it gives what applying the rules gives."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from jinja2 import Environment
from ruamel.yaml import YAML

from sqlanon.errors import PolicyError
from sqlanon.jobs.dbt.project import escaped, sayable
from sqlanon.policy.loading import build_policy
from tests.cli.support import call, execute, only_object, query
from tests.run_support import Row, anonymize, open_database

pytestmark = pytest.mark.slow

COLUMNS = {
    "n": "INTEGER",
    "t {{ x }}": "VARCHAR(20)",
    "d": "DATE",
    "at": "TIMESTAMP WITH TIME ZONE",
    "z": "VARCHAR(4)",
    "s {% raw %}": "VARCHAR(9)",
    "x": "INTEGER",
}
ROLES: dict[str, Any] = {
    "n": "quasi-identifier",
    "t {{ x }}": "quasi-identifier",
    "d": {"role": "quasi-identifier", "show": "bounds"},
    "at": "quasi-identifier",
    "z": {"role": "quasi-identifier", "hierarchy": {"mapping": {"10x": "1", "10y": "1", "20x": "2", "it's": "2"}}},
    "s {% raw %}": "sensitive",
    "x": "sensitive",
}
S = "s {% raw %}"
PLAIN = [{"model": "k-anonymity", "k": 9}, {"model": "distinct-l-diversity", "attribute": S, "l": 2}]
ALL = [
    {"model": "k-anonymity", "k": 20},
    {"model": "entropy-l-diversity", "attribute": S, "l": 1.5},
    {"model": "recursive-l-diversity", "attribute": S, "c": 3, "l": 2},
    {"model": "t-closeness", "attribute": S, "t": 0.6},
    {"model": "t-closeness", "attribute": "x", "distance": "ordered", "t": 0.5},
    {"model": "t-closeness", "attribute": S, "distance": "kl", "t": 3.0},
    {"model": "beta-likeness", "attribute": S, "beta": 9.0, "form": "basic"},
    {"model": "variance-diversity", "attribute": "x", "v": 0.5},
]


def table(seed: int, rows: int) -> list[Row]:
    """Rows whose texts would mean something to Jinja."""
    source = random.Random(seed)
    return [
        (
            source.choice([None, *range(30)]),
            source.choice(["{{ 1 }}", "{% endraw %}", "{#", "it's", '"', "{{{", "}}", "plain"]),
            f"2024-01-{source.randint(1, 28):02}",
            f"2024-01-01 {source.randint(0, 23):02}:00:00+03",
            source.choice(["10x", "10y", "20x", "it's"]),
            source.choice(["{{ a }}", "b", "c"]),
            source.randint(0, 9),
        )
        for _ in range(rows)
    ]


@pytest.fixture
def dbt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """dbt's runner."""
    if importlib.util.find_spec("dbt") is None:
        if os.environ.get("SQLANON_REQUIRE_DBT") == "1" and sys.version_info < (3, 14):
            pytest.fail("dbt is not installed")
        pytest.skip("dbt is not installed: pip install '.[dbt]'")
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    from dbt.cli.main import dbtRunner

    return dbtRunner()


def profile(url: str, *projects: str) -> str:
    """A profiles.yml for the database of a URL."""
    parts = urlsplit(url)
    target = f"{{type: duckdb, path: '{url.removeprefix('duckdb:///')}'}}"
    if parts.scheme == "postgresql":
        (host,) = parse_qs(parts.query)["host"]
        target = f"{{type: postgres, host: '{host}', port: 5432, user: postgres, pass: '-', schema: public"
        target += f", dbname: '{parts.path[1:]}', threads: 1}}"
    return "".join(f"{name}: {{target: t, outputs: {{t: {target}}}}}\n" for name in projects)


def built(dbt: Any, project: Path) -> dict[str, str]:
    """Run `dbt build`, and return the status of each model and test."""
    result = dbt.invoke(["--quiet", "build", "--project-dir", str(project), "--profiles-dir", str(project)])
    assert result.exception is None
    nodes = [one.node for one in result.result]
    for test in (node for node in nodes if node.resource_type == "test"):
        read = {name.split(".")[-1] for name in test.depends_on_nodes if name.startswith("model.")}
        (model,) = (name.removesuffix("_staged") for name in read if name.endswith("_staged"))
        assert model not in read
        assert test.name.startswith(model)
    return {one.node.name: str(one.status) for one in result.result}


def failed(statuses: dict[str, str]) -> set[str]:
    """Select the models and tests that were neither built nor passed."""
    return {name for name, status in statuses.items() if status not in ("pass", "success")}


def shown(url: str, name: str) -> list[Row]:
    """The rows of a table, after its columns."""
    columns = query(
        url,
        "SELECT column_name, data_type FROM information_schema.columns"
        f" WHERE table_name = '{name}' ORDER BY ordinal_position",
    )
    return [*columns, *sorted(query(url, f"SELECT * FROM {name}"), key=repr)]


@pytest.mark.either_engine
def test_dbt_builds_what_applying_the_rules_gives(dbt: Any, database_url: str, tmp_path: Path) -> None:
    project, where = tmp_path / "project", ("--url", database_url)
    with open_database(database_url) as database:
        name = database.create(COLUMNS, table(1, 80))
        plain = anonymize(database.policy(name, ROLES, privacy=PLAIN)).run
        strict = anonymize(database.policy(name, ROLES, privacy=ALL, release={"table": "strict_r"})).run
    suppress = ("--on-violation", "suppress", "--budget", "0.9")
    for run, model, choice in ((plain, "people", suppress), (strict, "strict", ())):
        made = call("export", run, "--as", "dbt", "--name", model, "-o", project, *choice, *where)
        assert made.exit_code == 0, made.output
    (project / "profiles.yml").write_text(profile(database_url, "people"))
    assert failed(built(dbt, project)) == set()
    assert len(shown(database_url, "strict")) == 80 + len(COLUMNS) + 1
    before = shown(database_url, "strict")

    # a class of one, and a value that the mapping lacks: the one leaves their rows out, the other keeps its old rows
    execute(database_url, f"DELETE FROM {name}")
    with open_database(database_url) as database:
        database.insert(name, [*table(2, 60), (None, "new", "2030-01-01", "2030-01-01 00:00:00+00", "10x", "b", 1)])
    execute(database_url, f"UPDATE {name} SET z = '99' WHERE n = 7")
    found = failed(built(dbt, project))
    assert {"strict", "strict_1_k_anonymity", "strict_rows"} <= found
    assert not {one for one in found if one.startswith("people")}
    apply = ("apply", plain, "--to", name, "--out", "applied", "--on-violation", "suppress", "--replace", "-q", *where)
    assert only_object(call(*apply, "--json").stdout)["release"]["suppressed"] > 0
    assert shown(database_url, "people") == shown(database_url, "applied")
    assert shown(database_url, "strict") == before


@pytest.mark.either_engine
def test_a_model_of_the_project_is_read_by_ref(dbt: Any, database_url: str, tmp_path: Path) -> None:
    project, where = tmp_path / "project", ("--url", database_url)
    with open_database(database_url) as database:
        name = database.create(COLUMNS, table(3, 60))
        run = anonymize(database.policy(name, ROLES, privacy=PLAIN)).run
    (project / "models").mkdir(parents=True)
    (project / "models" / "cleaned.sql").write_text(f"SELECT * FROM {name} WHERE x < 9\n")
    made = call("export", run, "--as", "dbt", "--name", "own", "-o", project, "--source-model", "cleaned", *where)
    assert made.exit_code == 0, made.output
    (project / "profiles.yml").write_text(profile(database_url, "own"))
    statuses = built(dbt, project)
    assert "cleaned" in statuses
    assert not failed(statuses) - {"own", "own_1_k_anonymity", "own_2_distinct_l_diversity"}
    ((staging,),) = query(
        database_url, "SELECT table_schema FROM information_schema.tables WHERE table_name = 'own_staged'"
    )
    assert staging == ("main_staging" if database_url.startswith("duckdb") else "public_staging")
    assert query(database_url, f"SELECT count(*) FROM {staging}.own_staged") == query(
        database_url, f"SELECT count(*) FROM {name} WHERE x < 9"
    )


def test_readers_see_no_rows_that_are_not_tested(dbt: Any, postgres_url: str, tmp_path: Path) -> None:
    """Default privileges let a reader read all new tables; rows on their way are in a schema that he can't use."""
    project = tmp_path / "project"
    suppress = ("--on-violation", "suppress", "--budget", "0.9")
    with open_database(postgres_url) as database:
        name = database.create(COLUMNS, table(4, 60))
        run = anonymize(database.policy(name, ROLES, privacy=PLAIN)).run
        database.sql("CREATE ROLE reader_of_dbt; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader_of_dbt")
        try:
            for model, choice in (("own", ()), ("other", suppress)):
                export = ("export", run, "--as", "dbt", "--name", model, "-o", project, "--url", postgres_url)
                made = call(*export, *choice)
                assert made.exit_code == 0, made.output
            (project / "profiles.yml").write_text(profile(postgres_url, "own"))
            assert failed(built(dbt, project)) == set()
            staged = database.sql("SELECT schemaname, tablename FROM pg_tables WHERE tablename LIKE '%\\_staged'")
            assert sorted(staged) == [("public_staging", "other_staged"), ("public_staging", "own_staged")]
            database.sql("SET ROLE reader_of_dbt")
            for model in ("own", "other"):
                assert database.sql(f"SELECT count(*) FROM public.{model}") == [(60,)]
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    database.sql(f"SELECT count(*) FROM public_staging.{model}_staged")
        finally:
            database.sql("RESET ROLE")
            database.sql("DROP OWNED BY reader_of_dbt; DROP ROLE reader_of_dbt")


def test_every_column_is_described_and_a_model_is_named(duckdb_patients: tuple[str, str], tmp_path: Path) -> None:
    url, run = duckdb_patients
    export = ("export", run, "--as", "dbt", "--name", "people", "-o", tmp_path / "p", "--url", url)
    for wrong in ("people", "people_staged", "a b", "a.b.c", "x')", ""):
        refused = call(*export, "--source-model", wrong)
        assert (refused.exit_code, "model" in refused.stderr) == (2, True), wrong
    assert call("export", run, "--as", "sql", "--source-model", "m", "--url", url).exit_code == 2
    assert call(*export, "--source-model", "staging.patients").exit_code == 0
    models = tmp_path / "p" / "models"
    assert "FROM {{ ref('staging', 'patients') }}" in (models / "people_staged.sql").read_text()
    assert "ref('staging', 'patients')" in (tmp_path / "p" / "tests" / "people_rows.sql").read_text()
    declared = YAML(typ="safe").load((models / "people.yml").read_text())
    assert "sources" not in declared
    (published,) = [one for one in declared["models"] if one["name"] == "people"]
    described = {one["name"]: one["description"] for one in published["columns"]}
    columns = query(url, "SELECT column_name FROM information_schema.columns WHERE table_name LIKE '%_r'")
    assert set(described) == {name for (name,) in columns}
    assert all(len(text) > 20 for text in described.values())


def test_what_is_written_and_what_is_refused(
    duckdb_patients: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, run = duckdb_patients
    first = ("export", run, "--as", "dbt", "--name", "people", "-o", tmp_path / "p", "--url", url)
    files = only_object(call(*first, "--json").stdout)["files"]
    assert {str(Path(file).relative_to(tmp_path / "p")) for file in files} == {
        "dbt_project.yml",
        "models/people.sql",
        "models/people_staged.sql",
        "models/people.yml",
        "tests/people_rows.sql",
        "tests/people_1_k_anonymity.sql",
    }
    again = call(*first)
    assert (again.exit_code, "another --name" in again.stderr) == (2, True)
    for wrong in (
        ["--name", "Odd name"],
        ["--name", "b", "--on-violation", "suppress"],
        ["--name", "b", "--budget", "1"],
    ):
        assert call("export", run, "--as", "dbt", "-o", tmp_path / "q", "--url", url, *wrong).exit_code == 2
    assert call("export", run, "--as", "dbt", "--name", "b", "--url", url).exit_code == 2
    assert call("export", run, "--as", "sql", "-o", tmp_path / "q", "--url", url).exit_code == 2
    monkeypatch.setattr("sqlanon.releases.rules.export_sql.MOST_RULES", 1)
    many = call("export", run, "--as", "dbt", "--name", "b", "-o", tmp_path / "q", "--url", url)
    assert (many.exit_code, "sqlanon apply" in many.stderr) == (2, True)
    assert not (tmp_path / "q").exists()


def test_a_run_of_a_file_is_exported_for_a_table_of_the_same_columns(tmp_path: Path) -> None:
    url, file = f"duckdb:///{tmp_path / 'one.duckdb'}", tmp_path / "people.csv"
    file.write_text("n,s\n" + "".join(f"{n % 5},{'ab'[n % 2]}\n" for n in range(40)))
    data = {
        "source": {"file": str(file)},
        "release": {"url": url, "table": "people_r"},
        "attributes": {"n": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    run = anonymize(build_policy(data)).run
    execute(url, f"CREATE TABLE people AS SELECT * FROM '{file}'")
    export = ("export", run, "--as", "dbt", "--name", "own", "-o", tmp_path / "p", "--url", url)
    refused = call(*export)
    assert (refused.exit_code, "--source" in refused.stderr) == (2, True)
    assert call(*export, "--source", "people").exit_code == 0
    assert "source('own_source', 'people')" in (tmp_path / "p" / "models" / "own_staged.sql").read_text()


@pytest.fixture
def duckdb_patients(tmp_path: Path) -> tuple[str, str]:
    """A database and the id of a run in it."""
    url = f"duckdb:///{tmp_path / 'one.duckdb'}"
    with open_database(url) as database:
        name = database.create({"n": "INTEGER", "s": "VARCHAR"}, [(n % 5, "ab"[n % 2]) for n in range(40)])
        run = anonymize(database.policy(name, {"n": "quasi-identifier", "s": "sensitive"})).run
    return url, run


@pytest.mark.parametrize("text", ["{{ x }}", "{% raw %}{% endraw %}", "{# c #}", "{{{{%", "{{%#}", "{", "a { b", "'"])
def test_escaped_texts_are_given_by_jinja_as_they_were(text: str) -> None:
    assert Environment(autoescape=False).from_string(escaped(text)).render() == text


@pytest.mark.parametrize("name", ['a"b', "a{{b", "a\\b", "a\nb"])
def test_names_that_dbt_would_misread_are_refused(name: str) -> None:
    assert sayable("it's plain") == "it's plain"
    with pytest.raises(PolicyError):
        sayable(name)
