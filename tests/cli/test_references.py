"""`${NAME}` in a policy is kept as it was written, and replaced again where it is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import call, execute, make_patients, query

pytestmark = pytest.mark.slow

SECRET = "zzcanaryzz"
POLICY: dict[str, Any] = {
    "attributes": {
        "ssn": {"role": "identifier"},
        "age": {"role": "quasi-identifier"},
        "zipcode": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "sex": {"role": "quasi-identifier", "hierarchy": {"csv": "${PLACE}/sex.csv"}},
        "disease": {"role": "sensitive"},
        "ward": {"role": "insensitive"},
    },
    "privacy": [{"model": "k-anonymity", "k": 5}],
}
TABLES = ("runs", "steps", "releases", "rule_sets", "hierarchies", "work_tables", "jobs", "live", "checkpoints")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose name comes from the environment, with a hierarchy in it."""
    directory = tmp_path / SECRET
    directory.mkdir()
    (directory / "sex.csv").write_text("F;*\nM;*\n")
    monkeypatch.setenv("PLACE", str(directory))
    return directory


def write(directory: Path, **parts: Any) -> Path:
    path = directory / "policy.yml"
    path.write_text(json.dumps(POLICY | parts), encoding="utf-8")
    return path


def done(*arguments: object) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, (arguments, result.output)
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def kept(url: str) -> dict[str, str]:
    """All that a catalog holds, as text."""
    return {table: str(query(url, f"SELECT * FROM sqlanon.{table}")) for table in TABLES}


def go_through(policy: Path, directory: Path, source: str) -> str:
    """Every command that reads a stored policy; the run."""
    run, where, record = done("run", policy)["run"], ("--policy", policy), directory / "record.json"
    assert call("record", run, "-o", record, *where).exit_code == 0
    assert done("verify", "--record", record)["satisfied"] is True
    assert done("verify", policy)["satisfied"] is True
    done("freeze", run, "--name", "nightly", "--no-procedure", *where)
    again = done("job", "run", "nightly", *where)["run"]
    assert done("diff", run, again, *where)["same_source"] is True
    done("apply", run, "--to", source, "--out", str(directory / "again.csv"), *where)
    assert call("report", again, "-o", directory / "report.html", *where).exit_code == 0
    assert call("schedule", "nightly", "--at", "1 2 * * *", "--engine", "print", *where).exit_code == 0
    assert SECRET not in record.read_text() + (directory / "report.html").read_text()
    return str(run)


def refused_without(name: str, *arguments: object) -> None:
    """Check that a command whose variable is not set is refused, with the variable's name."""
    result = call(*arguments)
    assert (result.exit_code, f"The environment variable '{name}' is not set" in result.stderr) == (2, True), result


def test_files(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_patients(f"duckdb:///{place}/p.duckdb")
    rows = f"COPY (SELECT * FROM patients) TO '{place}/p.csv'"
    execute(f"duckdb:///{place}/p.duckdb", rows, rows.replace(f"{SECRET}/", ""))
    url = f"duckdb:///{tmp_path}/catalog.duckdb"
    parts = {"source": {"file": "${PLACE}/p.csv"}, "release": {"file": "${PLACE}/r.parquet"}}
    policy = write(tmp_path, **parts, catalog={"url": url})
    run = go_through(policy, tmp_path, f"{tmp_path}/p.csv")
    assert [name for name, text in kept(url).items() if SECRET in text] == []
    ((text, source),) = query(url, f"SELECT policy, source FROM sqlanon.runs WHERE id = '{run}'")
    assert source == "${PLACE}/p.csv"
    stored = json.loads(text)
    assert (stored["source"], stored["release"]) == (parts["source"], parts["release"])
    monkeypatch.delenv("PLACE")
    assert done("runs", "--url", url)["runs"][-1]["source"] == "${PLACE}/p.csv"
    assert call("report", run, "-o", tmp_path / "report.html", "--url", url).exit_code == 0
    refused_without("PLACE", "job", "run", "nightly", "--url", url)
    refused_without("PLACE", "apply", run, "--to", f"{place}/p.csv", "--url", url)
    refused_without("PLACE", "verify", "--record", tmp_path / "record.json")


def test_sources_that_differ_by_the_environment_alone_are_told_apart(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_patients(f"duckdb:///{place}/p.duckdb")
    for name in ("may", "june"):
        execute(f"duckdb:///{place}/p.duckdb", f"COPY (SELECT * FROM patients) TO '{place}/{name}.csv'")
    url = f"duckdb:///{tmp_path}/catalog.duckdb"
    release = {"file": "${PLACE}/r.parquet"}
    place_of_runs: dict[str, Any] = {"release": release, "catalog": {"url": url}, "republish": "same-recoding"}
    monthly = write(tmp_path, source={"file": "${PLACE}/${MONTH}.csv"}, **place_of_runs)
    runs = []
    for month in ("may", "june"):
        monkeypatch.setenv("MONTH", month)
        runs.append(done("run", monthly, "--replace")["run"])
    assert done("diff", *runs, "--url", url)["same_source"] is False
    refused = call("run", monthly, "--replace")
    assert (refused.exit_code, f"run {runs[1]} released" in refused.stderr) == (2, True)
    (tmp_path / "plainly").mkdir()
    plainly = write(tmp_path / "plainly", source={"file": str(place / "may.csv")}, **place_of_runs)
    refused = call("run", plainly, "--replace")
    assert (refused.exit_code, f"run {runs[0]} released" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("place")
def test_urls(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_patients(postgres_url)
    base, _, parameters = postgres_url.partition("?")
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setenv("BASE", base)
    written = f"${{BASE}}?{parameters}{'&' if parameters else ''}options=-c%20application_name%3D${{TOKEN}}"
    policy = write(tmp_path, source={"url": written, "table": "patients"}, release={"table": "released"})
    run = go_through(policy, tmp_path, "patients")
    assert [name for name, text in kept(postgres_url).items() if SECRET in text] == []
    ((text,),) = query(postgres_url, f"SELECT policy FROM sqlanon.runs WHERE id = '{run}'")
    assert json.loads(text)["source"]["url"] == written
    by_url = call("schedule", "nightly", "--at", "1 2 * * *", "--engine", "print", "--url", postgres_url)
    assert "TOKEN" in by_url.stdout  # which the job needs, whoever starts it
    monkeypatch.delenv("TOKEN")
    assert call("report", run, "-o", tmp_path / "report.html", "--url", postgres_url).exit_code == 0
    refused_without("TOKEN", "job", "run", "nightly", "--url", postgres_url)
    refused_without("TOKEN", "apply", run, "--to", "patients", "--out", "x", "--url", postgres_url)
    refused_without("TOKEN", "verify", "--record", tmp_path / "record.json")


@pytest.mark.usefixtures("place")
def test_what_went_wrong_is_recorded_without_what_a_variable_holds(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/catalog.duckdb"
    parts = {"source": {"file": "${PLACE}/none.csv"}, "release": {"file": "${PLACE}/r.parquet"}}
    policy = write(tmp_path, **parts, catalog={"url": url})
    assert call("run", policy).exit_code != 0
    assert [name for name, text in kept(url).items() if SECRET in text] == []


@pytest.mark.parametrize("place", ["source", "release", "catalog"])
def test_a_database_without_an_engine_is_told_what_to_do(tmp_path: Path, place: str) -> None:
    known = f"duckdb:///{tmp_path}/x.duckdb"
    make_patients(known)
    parts = {"source": {"url": known, "table": "patients"}, "release": {"table": "r"}, "catalog": {}}
    parts[place] = {**parts[place], "url": "mysql://ann:S3cret@host/db"}
    for command in ("check", "run"):
        told = call(command, write(tmp_path, **parts, attributes={"age": {"role": "quasi-identifier"}}))
        assert told.exit_code == 2
        assert f"{place}.url: There is no engine for 'mysql://' URLs" in told.stderr
        assert "to a Parquet file" in told.stderr
        assert "S3cret" not in told.stderr


def test_init_of_such_a_database_says_so_before_it_asks_for_a_table() -> None:
    for given in (["snowflake://ann:S3cret@host/db"], ["snowflake://ann:S3cret@host/db", "patients"]):
        told = call("init", *given)
        assert told.exit_code == 2
        assert "to a Parquet file" in told.stderr
        assert "S3cret" not in told.stderr


def test_a_draft_keeps_the_variable_of_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_URL", f"duckdb:///{tmp_path}/x.duckdb")
    make_patients(f"duckdb:///{tmp_path}/x.duckdb")
    assert call("init", "${SQLANON_URL}", "patients", "-o", tmp_path / "policy.yml").exit_code == 0
    text = (tmp_path / "policy.yml").read_text()
    assert 'url: "${SQLANON_URL}"' in text
    assert str(tmp_path) not in text
    assert call("check", tmp_path / "policy.yml").exit_code == 0
