"""record, and verify --record: a run's record tells of every change of the release, and of its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon import load_policy, read_record, run_record
from sqlanon.hierarchies.digests import describe_hierarchies
from sqlanon.report.run_record.record import document_digest
from tests.cli.support import call, execute, only_object, write_policy

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def run_of(policy: Path) -> str:
    """The id of a new run of a policy."""
    result = call("run", policy, "-q", "--replace", "--json")
    assert result.exit_code == 0, result.output
    return str(only_object(result.stdout)["run"])


def record_of(policy: Path, to: Path) -> dict[str, Any]:
    """The record of a new run, written to a file."""
    assert call("record", run_of(policy), "--policy", policy, "-o", to).exit_code == 0
    return only_object(to.read_text(encoding="utf-8"))


def checked(*arguments: object, exit_code: int) -> dict[str, Any]:
    """Run `verify --record`, check its exit code, and parse its JSON."""
    result = call("verify", *arguments, "--json")
    assert result.exit_code == exit_code, result.output
    return only_object(result.stdout)


def digesting(policy: Path) -> Path:
    """The policy, of which runs digest what they release."""
    policy.write_text(policy.read_text(encoding="utf-8") + "digest: run\n", encoding="utf-8")
    return policy


def test_a_record_tells_of_every_change(policy: Path, patients_url: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    digesting(policy)
    record = record_of(policy, file)
    assert record["release"]["rows"] == record["source"]["rows"] == 200
    assert (record["verification"]["verified"], record["version"]) == (True, 1)
    assert [(one["attribute"], one["levels"]) for one in record["hierarchies"]] == [("zipcode", 5)]
    assert checked("--record", file, exit_code=0)["satisfied"] is True
    assert "as it was recorded" in call("verify", "--record", file).stdout

    execute(patients_url, "CREATE TABLE other AS SELECT * FROM patients_released ORDER BY ward DESC, disease")
    assert checked("--record", file, "--table", "other", exit_code=0)["unchanged"] is True

    execute(patients_url, "UPDATE patients_released SET ward = ward + 1 WHERE ward = 4")
    found = checked("--record", file, exit_code=3)
    assert (found["intact"], found["there"], found["unchanged"]) == (True, True, False)
    assert all(model["satisfied"] for model in found["models"])
    assert "has been changed since it was recorded" in call("verify", "--record", file).stdout

    later = applied_records(policy, str(record["run"]["id"]), file)
    assert all(one["recoding"] == record["recoding"] for one in later)
    assert all(one["hierarchies"] == record["hierarchies"] for one in later)
    assert later[-1]["run"]["job"] == "nightly"
    assert checked(patients_url, "--record", file, exit_code=0)["satisfied"] is True

    execute(patients_url, "ALTER TABLE patients_released DROP COLUMN disease")
    assert "disease" in checked("--record", file, exit_code=3)["note"]
    execute(patients_url, "DROP TABLE patients_released")
    assert checked("--record", file, exit_code=3)["there"] is False
    assert "no longer there" in call("verify", "--record", file).stdout


def applied_records(policy: Path, run: str, to: Path) -> list[dict[str, Any]]:
    """The records of `apply` and of a job by the rules of a run; the last one is written to a file."""
    applied = call("apply", run, "--to", "patients", "--replace", "-q", "--json", "--policy", policy)
    assert applied.exit_code == 0, applied.output
    assert call("freeze", run, "--name", "nightly", "--policy", policy).exit_code == 0
    job = call("job", "run", "nightly", "-q", "--json", "--policy", policy)
    records = []
    for result in (applied, job):
        assert call("record", only_object(result.stdout)["run"], "--policy", policy, "-o", to).exit_code == 0
        records.append(only_object(to.read_text(encoding="utf-8")))
    return records


def test_a_file_has_a_record_and_an_edited_record_is_noticed(duckdb_url: str, tmp_path: Path) -> None:
    released, file = tmp_path / "released.parquet", tmp_path / "record.json"
    policy = digesting(write_policy(tmp_path, duckdb_url, release=f'{{file: "{released}"}}'))
    record = record_of(policy, file)
    assert run_record(record["run"]["id"], policy=load_policy(policy)) == read_record(file) == record
    assert record["release"]["digest"] == "sha256:" + hashlib.sha256(released.read_bytes()).hexdigest()
    assert checked("--record", file, exit_code=0)["satisfied"] is True
    moved = tmp_path / "moved.parquet"
    released.rename(moved)
    assert checked("--record", file, exit_code=3)["there"] is False
    assert checked("--record", file, "--table", moved, exit_code=0)["unchanged"] is True
    with moved.open("ab") as end:
        end.write(b"\n")
    assert checked("--record", file, "--table", moved, exit_code=3)["unchanged"] is False

    rest = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert record["digest"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps(record, sort_keys=True), encoding="utf-8")  # laid out otherwise, the same contents
    assert checked("--record", file, "--table", moved, exit_code=3)["intact"] is True
    record["policy"]["privacy"][0]["k"] = 2
    file.write_text(json.dumps(record), encoding="utf-8")
    found = checked("--record", file, exit_code=3)
    assert (found["intact"], found["models"]) == (False, None)
    assert "altered" in call("verify", "--record", file).stdout


def test_a_release_is_not_judged_by_other_costs_than_its_run_measured_by(policy: Path, tmp_path: Path) -> None:
    """Changed or gone, the file is named; with its old content, wherever it was written again, all is well."""
    costs, file = tmp_path / "costs.csv", tmp_path / "record.json"
    lines = "".join(f"{pair};1\n" for pair in ("flu;cold", "flu;asthma", "flu;none", "cold;asthma", "cold;none"))
    costs.write_text(lines + "asthma;none;1\n", encoding="utf-8")
    closeness = "{model: t-closeness, attribute: disease, distance: {csv: costs.csv}, t: 0.4}"
    text = policy.read_text(encoding="utf-8").replace(
        "{model: distinct-l-diversity, attribute: disease, l: 2}", closeness
    )
    policy.write_text(text, encoding="utf-8")
    record = record_of(digesting(policy), file)
    (used,) = record["costs"]
    assert (used["place"], used["attribute"], Path(used["file"]).name) == (1, "disease", "costs.csv")
    assert used["file_digest"] == "sha256:" + hashlib.sha256(costs.read_bytes()).hexdigest()
    assert checked("--record", file, exit_code=0)["changed_costs"] == []

    costs.write_text(lines + "asthma;none;0.5\n", encoding="utf-8")
    refused = checked("--record", file, exit_code=3)
    assert (refused["unchanged"], refused["models"], len(refused["changed_costs"])) == (True, None, 1)
    assert "costs.csv" in refused["note"]
    assert "not judged" in refused["note"]
    audited = call("verify", policy, "--json")
    assert only_object(audited.stdout)["changed_costs"] == refused["changed_costs"], audited.output
    assert "costs have changed since the run" in call("verify", policy, "--no-source").stdout
    costs.unlink()
    assert checked("--record", file, exit_code=3)["changed_costs"] == refused["changed_costs"]

    costs.write_text(lines + "asthma;none;1\n", encoding="utf-8")
    assert checked("--record", file, exit_code=0)["satisfied"] is True
    earlier = {name: value for name, value in record.items() if name not in ("costs", "digest")}
    file.write_text(json.dumps({**earlier, "digest": document_digest(earlier)}), encoding="utf-8")
    unpinned = checked("--record", file, exit_code=0)
    assert "no digest of" in unpinned["note"]


def test_digests_tell_what_a_hierarchy_says_wherever_its_file_is(tmp_path: Path) -> None:
    found = []
    for name, text in (("a.csv", "F;*\nM;*\n"), ("b.csv", "F;*\nM;*\n"), ("a.csv", "F;*\nM;*\nX;*\n")):
        (tmp_path / name).write_text(text)
        policy = write_policy(tmp_path, "duckdb:///none.duckdb")
        sex = f"sex:     {{hierarchy: {{csv: {name}}}, role: q"
        policy.write_text(policy.read_text().replace("sex:     {role: q", sex))
        described = describe_hierarchies(load_policy(policy))
        assert described["sex"]["file_digest"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        found.append(described["sex"]["digest"])
    assert found[0] == found[1] != found[2]


def test_a_record_holds_no_password_and_a_url_says_where_the_release_is(
    duckdb_url: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_URL", postgres_url.replace("//postgres@", "//postgres:hunter2canary@"))
    release = '{url: "${SECRET_URL}", table: patients_released}'
    policy, file = write_policy(tmp_path, duckdb_url, release=release), tmp_path / "record.json"
    record_of(policy, file)
    assert "hunter2canary" not in file.read_text()
    for place in (policy, "${SECRET_URL}"):
        assert checked(place, "--record", file, exit_code=0)["satisfied"] is True


def test_what_has_no_record_says_why(policy: Path, patients_url: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    refused = write_policy(tmp_path, patients_url, k="k: 500")
    assert call("run", refused, "-q").exit_code != 0
    (found,) = only_object(call("runs", "--policy", refused, "--json").stdout)["runs"]
    assert call("record", found["run"], "--policy", refused, "-o", file).exit_code == 2
    write_policy(tmp_path, patients_url)
    run = run_of(policy)
    later = run_of(policy)
    replaced = call("record", run, "--policy", policy, "-o", file)
    assert (replaced.exit_code, "A later run replaced the release" in replaced.stderr) == (2, True)
    execute(patients_url, "DROP TABLE patients_released")
    gone = call("record", later, "--policy", policy, "-o", file)
    assert (gone.exit_code, "no longer there" in gone.stderr) == (2, True)
    assert not file.exists()


def test_a_run_that_took_no_digest_is_recorded_as_it_is_now(policy: Path, patients_url: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    record = record_of(policy, file)
    assert record["release"]["digested"] == "record"
    assert checked("--record", file, exit_code=0)["satisfied"] is True
    execute(patients_url, "UPDATE patients_released SET ward = ward + 1 WHERE ward = 4")
    assert checked("--record", file, exit_code=3)["unchanged"] is False


def test_what_is_no_record_is_refused(policy: Path, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    assert call("verify", "--record", file).exit_code == 2
    for text in ("{", "[]", '{"format": "sqlanon record", "version": 99}'):
        file.write_text(text)
        assert call("verify", "--record", file).exit_code == 2
    assert call("verify").exit_code == 2
    assert call("verify", policy, "--record", file, "--k", "3").exit_code == 2


def test_doubled_keys_make_no_record(policy: Path, tmp_path: Path) -> None:
    """A person reads the first, a program the last: its digest is that of the last."""
    file = tmp_path / "record.json"
    record = record_of(digesting(policy), file)
    k = record["policy"]["privacy"][0]["k"]
    text = file.read_text(encoding="utf-8")
    for place in (f'"k": {k}', '"format": '):
        doubled = place.replace(str(k), "50") if place.startswith('"k"') else '"format": "x"'
        assert place in text
        file.write_text(text.replace(place, f"{doubled}, {place}", 1), encoding="utf-8")
        refused = call("verify", "--record", file)
        assert (refused.exit_code, "given twice" in refused.stderr) == (2, True)


@pytest.mark.either_engine
@pytest.mark.parametrize("kind", ["view", "materialized view"])
def test_what_took_the_release_s_place_is_named_and_not_read(
    policy: Path, patients_url: str, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "record.json"
    record = record_of(policy, file)
    if kind != "view" and patients_url.startswith("duckdb"):
        pytest.skip("DuckDB has no materialized views")
    execute(patients_url, "ALTER TABLE patients_released RENAME TO away")
    execute(patients_url, f"CREATE {kind} patients_released AS SELECT * FROM away")
    found = checked("--record", file, exit_code=3)
    assert (found["intact"], found["unchanged"], found["models"]) == (True, False, None)
    assert f"patients_released is a {kind} now" in found["note"]
    assert f"patients_released is a {kind} now" in call("verify", "--record", file).stdout
    assert checked("--record", file, "--table", "away", exit_code=0)["unchanged"] is True
    again = call("record", record["run"]["id"], "--policy", policy)
    assert (again.exit_code, f"is a {kind} now" in again.stderr) == (2, True)


def test_a_record_without_a_part_is_none(policy: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    whole = record_of(policy, file)
    for part in ("run", "release", "policy"):
        record = {name: value for name, value in whole.items() if name != part}
        record["digest"] = document_digest(record)
        file.write_text(json.dumps(record), encoding="utf-8")
        refused = call("verify", "--record", file)
        assert (refused.exit_code, f"{part}" in refused.stderr) == (2, True)
