"""init, check, run: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlanon import load_policy
from sqlanon.results.run_result import PHASES
from tests.cli.support import call, execute, keys_of, make_patients, only_object, query, run_program, write_policy

pytestmark = pytest.mark.either_engine

RELEASE_KEYS = {"table", "rows", "suppressed", "classes", "min_class_size", "mean_class_size"}


def test_a_run_prints_one_object_with_every_documented_key(policy: Path, engine_name: str) -> None:
    result = call("run", policy, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    outcome = only_object(result.stdout)
    assert {
        "run",
        "engine",
        "source",
        "release",
        "models",
        "metrics",
        "risk",
        "algorithm",
        "seconds",
        "verified",
    } <= set(outcome)
    assert outcome["engine"] == engine_name
    assert outcome["source"]["rows"] == outcome["release"]["rows"] == 200
    assert set(keys_of(outcome, "release")) >= RELEASE_KEYS
    for model in outcome["models"]:
        assert set(model) >= {"model", "parameters", "satisfied", "worst", "violations"}
    assert [model["parameters"] for model in outcome["models"]] == [{"k": 5}, {"attribute": "disease", "l": 2}]
    assert set(keys_of(outcome, "metrics")) >= {"c_avg", "discernibility", "gcp"}
    assert set(keys_of(outcome, "risk")) >= {"prosecutor_max", "prosecutor_mean"}
    assert set(keys_of(outcome, "algorithm")) >= {"name", "rounds", "statements"}
    seconds = outcome["seconds"]
    assert list(seconds) == ["start", *PHASES, "finish", "total"]
    assert seconds["total"] == pytest.approx(sum(took for name, took in seconds.items() if name != "total"))
    assert min(seconds.values()) >= 0
    assert outcome["verified"] is True
    assert outcome["release"]["min_class_size"] >= 5


def test_a_run_tells_people_what_was_published(policy: Path, patients_url: str) -> None:
    result = call("run", policy)
    assert result.exit_code == 0, result.output
    assert "Published patients_released" in result.stdout
    assert "k-anonymity (k: 5)" in result.stdout
    assert "holds" in result.stdout
    assert "GCP" in result.stdout
    assert "What some classes show" in result.stdout
    assert "sqlanon verify" in result.stdout
    assert "searching" in result.stderr
    least = query(
        patients_url, "SELECT min(n) FROM (SELECT count(*) AS n FROM patients_released GROUP BY age, zipcode, sex) AS c"
    )
    assert least[0][0] >= 5


def test_quiet_runs_print_no_progress(policy: Path) -> None:
    result = call("run", policy, "-q")
    assert result.exit_code == 0
    assert result.stderr == ""


def test_the_summary_shows_no_identifier_and_no_raw_quasi_identifier(duckdb_url: str, tmp_path: Path) -> None:
    execute(
        duckdb_url,
        "CREATE TABLE people AS SELECT 'ID-' || i AS ssn, 'street ' || i AS street, i % 3 AS s FROM range(40) t(i)",
    )
    policy = tmp_path / "people.yml"
    policy.write_text(
        f'source: {{url: "{duckdb_url}", table: people}}\nrelease: {{table: people_released}}\n'
        "attributes:\n  ssn: {role: identifier}\n"
        "  street: {role: quasi-identifier, hierarchy: suppress}\n  s: {role: sensitive}\n"
        "privacy:\n  - {model: k-anonymity, k: 2}\n  - {model: distinct-l-diversity, attribute: s, l: 2}\n"
    )
    result = call("run", policy)
    assert result.exit_code == 0, result.output
    assert "ID-" not in result.output
    assert "street 1" not in result.output


def test_a_second_run_needs_leave_to_replace(policy: Path, patients_url: str) -> None:
    assert call("run", policy, "-q").exit_code == 0
    before = query(patients_url, "SELECT * FROM patients_released")
    refused = call("run", policy, "--json")
    assert refused.exit_code == 2
    assert "--replace" in only_object(refused.stdout)["error"]["message"]
    assert query(patients_url, "SELECT * FROM patients_released") == before
    assert call("run", policy, "--replace", "-q").exit_code == 0
    assert query(patients_url, "SELECT * FROM patients_released") == before


def test_a_policy_that_no_release_can_meet_ends_with_3(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url, l="l: 5")
    result = call("run", policy, "--json")
    assert result.exit_code == 3
    error = only_object(result.stdout)["error"]
    assert error["exit_code"] == 3
    assert "4" in error["message"]  # what is attainable
    assert "patients_released" not in str(query(patients_url, "SELECT table_name FROM information_schema.tables"))


@pytest.mark.parametrize(
    ("replaced", "words"),
    [
        ({"source": "table: patient}"}, ["'patient'", "patients"]),
        ({"age": "agee:    {role: quasi-identifier}"}, ["agee", "'age'", "without a role"]),
        ({"ward": ""}, ["without a role", "'ward'"]),
        ({"k": "k: 201"}, ["k is 201", "200 rows"]),
        ({"k": "k: 0"}, ["at least 1"]),
        ({"diversity": "{model: distinct-l-diversty, attribute: disease, l: 2}"}, ["distinct-l-diversity"]),
    ],
)
def test_wrong_policies_end_with_2_and_the_remedy(
    patients_url: str, tmp_path: Path, replaced: dict[str, str], words: list[str]
) -> None:
    policy = write_policy(tmp_path, patients_url, **replaced)
    for command in ("check", "run"):
        result = call(command, policy)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        for word in words:
            assert word in result.stderr


def test_all_problems_come_at_once(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url, age="agee:    {role: quasi-identifier}", ward="", k="k: 1000")
    result = call("check", policy, "--json")
    assert result.exit_code == 2
    assert len(only_object(result.stdout)["error"]["problems"]) >= 3


def test_an_empty_table_is_refused(database_url: str, tmp_path: Path) -> None:
    make_patients(database_url, 0)
    result = call("run", write_policy(tmp_path, database_url))
    assert result.exit_code == 2
    assert "no rows" in result.stderr


def test_init_writes_a_policy_that_runs(patients_url: str, tmp_path: Path) -> None:
    output = tmp_path / "drafted.yml"
    result = call("init", patients_url, "patients", "-o", output)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert set(load_policy(output).attributes) == {"ssn", "age", "zipcode", "sex", "disease", "ward"}
    again = call("init", patients_url, "patients", "-o", output)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert call("init", patients_url, "patients", "-o", output, "--force").exit_code == 0
    assert call("init", patients_url, "patients").stdout == output.read_text()
    assert call("run", output, "-q").exit_code == 0


def test_init_offers_the_nearest_table(patients_url: str) -> None:
    result = call("init", patients_url, "pateints")
    assert result.exit_code == 2
    assert "did you mean 'patients'" in result.stderr


def test_init_reads_the_url_from_the_environment(patients_url: str) -> None:
    result = call("init", "${HOSPITAL_URL}", "patients", environment={"HOSPITAL_URL": patients_url})
    assert result.exit_code == 0
    missing = call("init", "${HOSPITAL_URL_X}", "patients")
    assert missing.exit_code == 2
    assert "HOSPITAL_URL_X" in missing.stderr


def test_files_in_and_out(tmp_path: Path) -> None:
    lines = "".join(f"{i},{20 + i % 10},{'mf'[i % 2]},{'abc'[i % 3]}\n" for i in range(60))
    (tmp_path / "people.csv").write_text("id,age,sex,disease\n" + lines)
    output = tmp_path / "people.yml"
    assert call("init", tmp_path / "people.csv", "-o", output).exit_code == 0
    result = call("run", output, "--json")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "people_released.csv").exists()
    verified = call("verify", output, "--json")
    assert verified.exit_code == 0, verified.output
    assert only_object(verified.stdout)["rows"] == 60
    assert only_object(call("runs", "--policy", output, "--json").stdout)["runs"][0]["status"] == "published"


def test_check_lists_the_plan(policy: Path) -> None:
    result = call("check", policy)
    assert result.exit_code == 0
    for word in ("200 rows", "zipcode", "mask", "left out", "k-anonymity (k: 5)"):
        assert word in result.stdout
    described = only_object(call("check", policy, "--json").stdout)
    assert described["source"]["rows"] == 200
    assert {a["name"] for a in described["attributes"]} == {"age", "zipcode", "sex", "disease", "ward"}
    assert described["identifiers"] == ["ssn"]


def test_wrong_limits_are_usage_errors(policy: Path) -> None:
    assert call("run", policy, "--memory-limit", "much").exit_code == 2
    code, out, _ = run_program("run", policy, "--threads", "0", "--json")
    assert code == 2
    assert only_object(out)["error"]["exit_code"] == 2


def test_limits_reach_the_database(duckdb_policy: Path, tmp_path: Path) -> None:
    limits = ("--memory-limit", "500MB", "--threads", "1", "--temp-directory", tmp_path, "--statement-timeout", "60")
    assert call("run", duckdb_policy, "--json", *limits).exit_code == 0
    assert call("run", duckdb_policy, "--replace", "--statement-timeout", "0.001").exit_code in (0, 1)


def test_json_is_never_mixed_with_anything(policy: Path) -> None:
    code, out, err = run_program("run", policy, "--json")
    assert code == 0
    assert json.loads(out)["published"] is True
    assert err == ""
