"""verify, with a policy and without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlanon.encoding import coded_table
from tests.cli.support import call, execute, only_object, run_program, write_policy

pytestmark = pytest.mark.either_engine


def test_a_release_holds_and_its_source_does_not(policy: Path) -> None:
    assert call("run", policy, "-q").exit_code == 0
    assert call("verify", policy).exit_code == 0
    source = call("verify", policy, "--table", "patients", "--json")
    assert source.exit_code == 3
    found = only_object(source.stdout)
    assert found["satisfied"] is False
    assert found["models"][0]["violations"] > 0
    assert found["rows"] == 200


def test_bounds_are_two_columns(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url, age="age:     {role: quasi-identifier, show: bounds}")
    assert call("run", policy, "-q").exit_code == 0
    assert call("verify", policy).exit_code == 0
    assert call("verify", policy, "--table", "patients").exit_code == 3
    known = call("verify", patients_url, "patients_released", "--qi", "age_min,age_max,zipcode,sex", "--k", "5")
    assert known.exit_code == 0, known.output


def test_a_release_that_was_tampered_with_is_found(policy: Path, patients_url: str) -> None:
    assert call("run", policy, "-q").exit_code == 0
    execute(
        patients_url, "INSERT INTO patients_released SELECT '99', zipcode, sex, disease, ward FROM patients LIMIT 1"
    )
    result = call("verify", policy)
    assert result.exit_code == 3
    assert "violated by 1" in result.stdout


def test_hierarchical_closeness_builds_the_hierarchy_of_the_table(patients_url: str, tmp_path: Path) -> None:
    closeness = "{model: t-closeness, attribute: disease, distance: hierarchical, t: 0.9}"
    policy = write_policy(tmp_path, patients_url, diversity=closeness)
    text = policy.read_text().replace("disease: {role: sensitive}", "disease: {role: sensitive, hierarchy: suppress}")
    policy.write_text(text)
    assert call("run", policy, "-q").exit_code == 0
    assert call("verify", policy).exit_code == 0
    result = call("verify", policy, "--table", "patients", "--json")
    assert result.exit_code == 3
    assert [model["model"] for model in only_object(result.stdout)["models"]] == ["k-anonymity", "t-closeness"]


@pytest.mark.parametrize(
    ("options", "models"),
    [
        (["--k", "2"], ["k-anonymity"]),
        (["--l", "2", "--sensitive", "disease"], ["distinct-l-diversity"]),
        (["--l", "2", "--c", "3", "--sensitive", "disease"], ["recursive-l-diversity"]),
        (["--l", "1.5", "--entropy", "--sensitive", "disease"], ["entropy-l-diversity"]),
        (["--t", "0.9", "--sensitive", "disease"], ["t-closeness"]),
        (["--t", "0.9", "--distance", "ordered", "--sensitive", "ward"], ["t-closeness"]),
        (["--v", "0.1", "--sensitive", "ward"], ["variance-diversity"]),
        (
            ["--k", "2", "--l", "2", "--sensitive", "disease", "--sensitive", "ward"],
            ["k-anonymity", *["distinct-l-diversity"] * 2],
        ),
    ],
)
def test_any_table_without_a_policy(patients_url: str, options: list[str], models: list[str]) -> None:
    result = call("verify", patients_url, "patients", "--qi", "sex", *options, "--json")
    assert result.exit_code == 0, result.output
    found = only_object(result.stdout)
    assert [model["model"] for model in found["models"]] == models
    assert found["classes"] == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--qi", "sex"],
        ["--k", "2"],
        ["--qi", "sex", "--l", "2"],
        ["--qi", "sex", "--c", "2", "--k", "2"],
        ["--qi", "sex", "--k", "2", "--distance", "ordered"],
        ["--qi", "sex", "--k", "2", "--entropy"],
        ["--qi", "sex", "--l", "2.5", "--sensitive", "disease"],
        ["--qi", "sex", "--l", "inf", "--sensitive", "disease"],
        ["--qi", "sex", "--l", "1e400", "--sensitive", "disease"],
        ["--qi", "sex", "--l", "inf", "--entropy", "--sensitive", "disease"],
        ["--qi", "sex", "--l", "2", "--c", "inf", "--sensitive", "disease"],
        ["--qi", "sex", "--t", "inf", "--sensitive", "disease"],
        ["--qi", "sex", "--v", "inf", "--sensitive", "ward"],
        ["--qi", "sex", "--l", "2", "--c", "2", "--entropy", "--sensitive", "disease"],
        ["--qi", "sex", "--t", "0.1", "--distance", "hierarchical", "--sensitive", "disease"],
        ["--qi", "sex,", "--k", "2"],
        ["--qi", "sex", "--k", "2", "--table", "patients"],
        ["--qi", "sexx", "--k", "2"],
        ["--qi", "sex", "--v", "2", "--sensitive", "diseases"],
    ],
)
def test_what_can_not_be_meant_is_a_usage_error(patients_url: str, options: list[str]) -> None:
    result = call("verify", patients_url, "patients", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_a_wrong_column_gets_the_nearest(patients_url: str) -> None:
    result = call("verify", patients_url, "patients", "--qi", "agee,zip", "--k", "2")
    assert result.exit_code == 2
    assert "did you mean 'age'" in result.stderr
    assert "'zipcode'" in result.stderr


def test_columns_with_commas(duckdb_url: str) -> None:
    execute(duckdb_url, """CREATE TABLE odd AS SELECT 1 AS "a,b", 2 AS "c""d" FROM range(4)""")
    result = call("verify", duckdb_url, "odd", "--qi", "a,b", "--qi", 'c"d', "--k", "4", "--json")
    assert result.exit_code == 0, result.output


def test_suppressed_rows_are_no_class(duckdb_url: str) -> None:
    execute(duckdb_url, "CREATE TABLE starred AS SELECT CASE WHEN i = 0 THEN '*' ELSE 'x' END AS q FROM range(9) t(i)")
    assert call("verify", duckdb_url, "starred", "--qi", "q", "--k", "2").exit_code == 3
    found = call("verify", duckdb_url, "starred", "--qi", "q", "--k", "2", "--suppressed-label", "*", "--json")
    assert found.exit_code == 0
    assert only_object(found.stdout)["suppressed"] == 1


def test_a_policy_takes_no_models(policy: Path) -> None:
    result = call("verify", policy, "--k", "3", "--qi", "age")
    assert result.exit_code == 2
    assert "--k" in result.stderr


def test_no_release_yet(policy: Path) -> None:
    result = call("verify", policy)
    assert result.exit_code == 2
    assert "patients_released" in result.stderr


def test_the_database_is_opened_for_reading_only(duckdb_url: str, tmp_path: Path) -> None:
    file = Path(duckdb_url.removeprefix("duckdb:///"))
    before = file.stat().st_mtime_ns
    code, _, err = run_program("verify", duckdb_url, "patients", "--qi", "sex", "--k", "2")
    assert code == 0, err
    assert file.stat().st_mtime_ns == before
    assert not (tmp_path / (file.name + ".wal")).exists()


def test_a_file_without_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("age,sex\n" + "30,f\n" * 3 + "31,m\n" * 2)
    assert call("verify", file, "--qi", "age,sex", "--k", "2").exit_code == 0
    assert call("verify", file, "--qi", "age,sex", "--k", "3").exit_code == 3
    assert call("verify", file, "people", "--qi", "age", "--k", "3").exit_code == 2
    assert call("verify", tmp_path / "none.csv", "--qi", "age", "--k", "3").exit_code == 2


def test_what_was_checked_against_the_source_is_said(policy: Path, patients_url: str) -> None:
    assert call("run", policy, "-q").exit_code == 0
    result = call("verify", policy)
    assert "kept columns hold the source's values: yes" in result.stdout
    assert "NOT checked" not in result.stdout
    without = call("verify", policy, "--no-source")
    assert without.exit_code == 0
    assert "NOT checked, for the source was not to be read (--no-source)" in without.stdout
    execute(patients_url, "UPDATE patients_released SET disease = 'plague'")
    altered = call("verify", policy, "--json")
    assert altered.exit_code == 3
    found = only_object(altered.stdout)
    assert found["checks"]["values_equal"]["violations"] == 400
    assert (found["satisfied"], found["same_source"], found["unchecked"]) == (False, True, {})
    assert call("verify", patients_url, "patients", "--qi", "sex", "--k", "2", "--no-source").exit_code == 2


def test_the_size_of_a_sample_is_said(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("run", policy, "-q").exit_code == 0
    monkeypatch.setattr(coded_table, "WITNESS_ROWS", 10)
    monkeypatch.setattr(coded_table, "WITNESS_SAMPLE", 100)
    told, listed = call("verify", policy), only_object(call("verify", policy, "--json").stdout)
    assert re.search(r"raw values \(a random sample of \d+ rows; --all looks at every row\): yes", told.stdout)
    assert 0 < listed["checks"]["regions_contain"]["rows"] < 200 == listed["checks"]["values_equal"]["rows"]
    assert [listed["checks"][name]["sample"] for name in ("regions_contain", "values_equal")] == [True, False]
    every = call("verify", policy, "--all")
    assert (every.exit_code, "sample" in every.stdout, "NOT checked" in every.stdout) == (0, False, False)


def test_all_rows_are_of_a_policy_s_release(policy: Path, patients_url: str) -> None:
    for arguments in (
        [policy, "--no-source"],
        [patients_url, "patients", "--qi", "sex", "--k", "2"],
        ["--record", "x"],
    ):
        refused = call("verify", *arguments, "--all")
        assert (refused.exit_code, "--all" in refused.stderr) == (2, True), refused.output


def test_a_source_that_changed_is_said(policy: Path, patients_url: str) -> None:
    assert call("run", policy, "-q").exit_code == 0
    execute(patients_url, "DELETE FROM patients WHERE ssn = 1")
    result = call("verify", policy)
    assert result.exit_code == 0
    assert "NOT checked, for the source has changed since run " in result.stdout


@pytest.mark.parametrize("kind", ["view", "materialized view"])
def test_what_took_the_release_s_place_is_refused(policy: Path, patients_url: str, kind: str) -> None:
    """With and without the source; one that is named by itself is looked at."""
    if kind != "view" and patients_url.startswith("duckdb"):
        pytest.skip("DuckDB has no materialized views")
    assert call("run", policy, "-q").exit_code == 0
    execute(patients_url, "ALTER TABLE patients_released RENAME TO away")
    execute(patients_url, f"CREATE {kind} patients_released AS SELECT * FROM away")
    for more in ([], ["--no-source"]):
        refused = call("verify", policy, *more)
        assert (refused.exit_code, f"is a {kind} now" in refused.stderr) == (3, True), refused.output
    assert f"is a {kind} now" in call("utility", policy, "--target", "disease").stderr
    assert call("verify", policy, "--table", "away").exit_code == 0
    assert call("verify", policy, "--table", "patients_released").exit_code == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT {c} FROM {r}_rows AS r JOIN {r}_classes AS c ON c.class_number = r.class_number LIMIT 1000",
        "SELECT {c} FROM {r}_rows AS r JOIN {r}_classes AS c ON c.class_number = r.class_number WHERE ward = ward",
        "SELECT * FROM (SELECT {c} FROM {r}_rows AS r JOIN {r}_classes AS c ON c.class_number = r.class_number)"
        " AS x WHERE '{r}_rows' <> '{r}_classes'",
    ],
)
def test_a_star_s_view_is_looked_at_as_long_as_it_is_ours(patients_url: str, tmp_path: Path, query: str) -> None:
    policy = write_policy(tmp_path, patients_url)
    text = policy.read_text(encoding="utf-8")
    assert "{table: patients_released" in text
    starred = text.replace("{table: patients_released", "{layout: star, table: patients_released")
    policy.write_text(starred, encoding="utf-8")
    assert call("run", policy, "-q").exit_code == 0
    assert call("verify", policy).exit_code == 0
    assert call("verify", policy, "--no-source").exit_code == 0
    columns = "c.age, c.zipcode, c.sex, r.disease, r.ward"
    execute(patients_url, "DROP VIEW patients_released")
    execute(patients_url, "CREATE VIEW patients_released AS " + query.format(r="patients_released", c=columns))
    refused = call("verify", policy)
    assert (refused.exit_code, "is a view now" in refused.stderr) == (3, True), refused.output
