"""runs, show, gc, db, hierarchy."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from sqlanon.cli.layout import place_text
from tests.cli.support import call, only_object, query, write_policy

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def test_the_history_of_a_database(policy: Path, patients_url: str) -> None:
    nothing = call("runs", "--url", patients_url)
    assert nothing.exit_code == 0
    assert "No run" in nothing.stderr
    assert call("run", policy, "-q").exit_code == 0
    assert call("run", policy, "-q", "--replace").exit_code == 0
    listed = only_object(call("runs", "--policy", policy, "--json").stdout)["runs"]
    assert [run["status"] for run in listed] == ["published", "published"]
    assert len(only_object(call("runs", "--url", patients_url, "--limit", "1", "--json").stdout)["runs"]) == 1
    by_environment = call("runs", environment={"SQLANON_URL": patients_url})
    assert listed[0]["run"] in by_environment.stdout
    assert "patients_released" in by_environment.stdout


def test_all_runs_name_a_table_alike(policy: Path, patients_url: str) -> None:
    for _ in range(2):  # the second fails before the table is looked up, as the release exists
        call("run", policy, "-q")
    lines = call("runs", "--url", patients_url).stdout.splitlines()[1:]
    places = {tuple(place.rpartition(".")[2] for place in line.split()[-2:]) for line in lines}
    assert (len(lines), places) == (2, {("patients", "patients_released")})
    run = lines[-1].split()[0]
    assert '"' not in call("show", run, "--url", patients_url).stdout.splitlines()[1]


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ('"hospital"."main"."patients"', "main.patients"),
        ('"public"."patients"', "public.patients"),
        ('"main"."odd name"', 'main."odd name"'),
        ('"a"."b.c"."d""e"', '"b.c"."d""e"'),
        ("main.patients", "main.patients"),
        ("/home/me/a.b.c.csv", "/home/me/a.b.c.csv"),
        ('"quoted.csv', '"quoted.csv'),
    ],
)
def test_places_are_named_as_people_write_them(recorded: str, shown: str) -> None:
    assert place_text(recorded) == shown


def test_showing_a_run(policy: Path, patients_url: str) -> None:
    run = only_object(call("run", policy, "--json").stdout)["run"]
    shown = only_object(call("show", run, "--url", patients_url, "--json", "--steps").stdout)
    assert shown["run"] == run
    assert shown["result"]["release"]["rows"] == 200
    assert shown["releases"][0]["row_count"] == 200
    assert {"plan", "encode", "search", "recode", "verify", "publish"} <= {step["phase"] for step in shown["steps"]}
    text = call("show", run[-4:], "--policy", policy, "--steps")
    assert text.exit_code == 0
    assert "-- plan: " in text.stdout
    assert "statement 0, " in text.stdout
    assert "k-anonymity (k: 5): holds" in text.stdout
    assert "steps" not in only_object(call("show", run, "--url", patients_url, "--json").stdout)


def test_a_refused_run_is_in_the_history(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url, l="l: 5")
    assert call("run", policy).exit_code == 3
    (run,) = only_object(call("runs", "--url", patients_url, "--json").stdout)["runs"]
    assert run["status"] == "refused"
    assert run["error"]["type"] == "ProtectionError"
    assert "ProtectionError" in call("show", run["run"], "--url", patients_url).stdout


def test_unknown_runs_and_no_catalog(policy: Path, patients_url: str) -> None:
    assert call("show", "nonesuch", "--url", patients_url).exit_code == 2
    assert call("run", policy, "-q").exit_code == 0
    assert call("show", "nonesuch", "--url", patients_url).exit_code == 2
    without = call("runs")
    assert without.exit_code == 2
    assert "SQLANON_URL" in without.stderr


def test_gc_with_nothing_to_do(policy: Path, patients_url: str) -> None:
    assert only_object(call("gc", "--url", patients_url, "--json", *_temp(policy, patients_url)).stdout) == {"done": []}
    assert call("run", policy, "-q").exit_code == 0
    assert only_object(call("gc", "--policy", policy, "--json", *_temp(policy, patients_url)).stdout) == {"done": []}


def _temp(policy: Path, url: str) -> list[object]:
    return ["--temp-directory", policy.parent] if url.startswith("duckdb") else []


def test_the_catalog_goes_up_and_down(patients_url: str) -> None:
    assert only_object(call("db", "current", "--url", patients_url, "--json").stdout)["revision"] is None
    up = call("db", "upgrade", "--url", patients_url)
    assert up.exit_code == 0
    assert call("db", "current", "--url", patients_url).stdout == up.stdout
    assert up.stdout.strip() != "none"
    for where, revision in itertools.product(("upgrade", "downgrade"), ("nope", "")):
        unknown = call("db", where, revision, "--url", patients_url)
        assert unknown.exit_code == 2
        assert "0001, 0002" in unknown.stderr
    assert call("db", "current", "--url", patients_url).stdout == up.stdout
    down = call("db", "downgrade", "base", "--url", patients_url)
    assert down.exit_code == 0
    assert down.stdout.strip() == "none"


def test_looking_at_hierarchies(policy: Path, tmp_path: Path) -> None:
    shown = only_object(call("hierarchy", "show", policy, "zipcode", "--json").stdout)
    assert (shown["kind"], shown["leaves"], shown["height"]) == ("mask", 90, 5)
    assert [level["groups"] for level in shown["levels"]] == [9, 1, 1, 1, 1]
    assert "1000*" in call("hierarchy", "show", policy, "zipcode").stdout
    lines = call("hierarchy", "export", policy, "zipcode").stdout.splitlines()
    assert len(lines) == 90
    assert lines[0] == "10000;1000*;100**;10***;1****;*"
    output = tmp_path / "zip.csv"
    assert call("hierarchy", "export", policy, "zipcode", "-o", output).exit_code == 0
    assert output.read_text().splitlines() == lines
    none = call("hierarchy", "show", policy, "age")
    assert none.exit_code == 2
    assert "zipcode" in none.stderr
    assert "did you mean 'zipcode'" in call("hierarchy", "show", policy, "zipcod").stderr


def test_importing_a_hierarchy(patients_url: str, tmp_path: Path) -> None:
    file = tmp_path / "job.csv"
    file.write_text("clerk;office;*\nsales;office;*\nnurse;ward;*\n")
    assert call("hierarchy", "list", patients_url, "--json").stdout == '{\n  "hierarchies": []\n}\n'
    result = call("hierarchy", "import", patients_url, "job", file, "--json")
    assert result.exit_code == 0, result.output
    assert only_object(result.stdout)["values"] == 3
    assert call("hierarchy", "export", patients_url, "job").stdout == file.read_text()
    assert "job" in call("hierarchy", "list", patients_url).stdout
    assert call("hierarchy", "import", patients_url, "job", file).exit_code == 0
    assert len(query(patients_url, "SELECT name FROM sqlanon.hierarchies")) == 1
    file.write_text("clerk;office;*\n")
    assert call("hierarchy", "import", patients_url, "job", file).exit_code == 2
    assert call("hierarchy", "export", patients_url, "jobs").exit_code == 2


def test_hierarchies_of_runs_are_listed(policy: Path, patients_url: str) -> None:
    assert call("run", policy, "-q").exit_code == 0
    (found,) = only_object(call("hierarchy", "list", patients_url, "--json").stdout)["hierarchies"]
    assert (found["name"], found["kind"], found["values"]) == ("zipcode", "mask", 90)
    refused = call("hierarchy", "export", patients_url, "zipcode")
    assert refused.exit_code == 2
    assert "zipcode" in refused.stderr


def test_hierarchies_with_faults_are_refused(duckdb_url: str, tmp_path: Path) -> None:
    faults = {
        "ragged": "a;b;*\nc;*\n",
        "torn": "a;b;x;*\nc;b;y;*\n",
        "twice": "a;b;*\na;c;*\n",
        "empty": "",
        "void": "a;;*\n",
    }
    for name, text in faults.items():
        file = tmp_path / f"{name}.csv"
        file.write_text(text)
        result = call("hierarchy", "import", duckdb_url, name, file)
        assert result.exit_code == 2, name
        assert name in result.stderr
    assert call("hierarchy", "import", duckdb_url, "none", tmp_path / "none.csv").exit_code == 2
