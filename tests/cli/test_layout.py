"""Commands on a release in two tables and a view."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import call, execute, only_object, query, write_policy

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

STAR = "{table: patients_released, layout: star}"


def test_a_star_is_run_recorded_verified_compared_and_reported(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url, release=STAR)
    told = call("check", policy)
    assert told.exit_code == 0, told.output
    first, second = (only_object(call("run", policy, "--replace", "--json").stdout)["run"] for _ in range(2))
    assert query(patients_url, "SELECT count(*) FROM patients_released") == [(200,)]
    record = tmp_path / "record.json"
    for command in (
        ["record", second, "--policy", policy, "-o", record],
        ["verify", "--record", record],
        ["verify", policy],
        ["diff", first, second, "--policy", policy],
        ["report", second, "--policy", policy, "-o", tmp_path / "report.html"],
        ["show", second, "--policy", policy],
        ["utility", policy, "--target", "disease"],
        ["run", policy, "--replace", "--dry-run"],
        ["sweep", policy, "--k", "5,7"],
    ):
        result = call(*command)
        assert result.exit_code == 0, f"{command[0]}: {result.output}"
    assert "classes are numbered by what they show" in (tmp_path / "report.html").read_text(encoding="utf-8")

    execute(patients_url, "UPDATE patients_released_classes SET sex = 'F'")
    assert call("verify", "--record", record).exit_code == 3
    assert call("verify", policy).exit_code == 3


def test_without_permission_to_replace_it_stays(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url, release=STAR)
    assert call("run", policy).exit_code == 0
    result = call("run", policy)
    assert result.exit_code == 2
    assert "--replace" in result.output
    assert "exists: `sqlanon run` needs --replace" in call("run", policy, "--dry-run").output


def test_exports_give_flat_rows(patients_url: str, tmp_path: Path, engine_name: str) -> None:
    """A SELECT, a view and a dbt model are of one relation; a procedure would have to publish two tables."""
    policy = write_policy(tmp_path, patients_url, release=STAR)
    policy.write_text(policy.read_text(encoding="utf-8") + "ranges: cuts\n", encoding="utf-8")
    run = only_object(call("run", policy, "--json").stdout)["run"]
    exported = call("export", run, "--as", "sql", "--policy", policy)
    assert exported.exit_code == 0, exported.output
    text = exported.stdout.rstrip().removesuffix(";")
    same = "(SELECT count(*) FROM (SELECT * FROM ({}) AS a EXCEPT ALL SELECT * FROM patients_released) AS d)"
    columns = "age, zipcode, sex, disease, ward"
    assert query(patients_url, f"SELECT {same.format(f'SELECT {columns} FROM ({text}) AS r')}") == [(0,)]
    if engine_name == "postgres":
        for command in (
            ["export", run, "--as", "procedure", "--name", "nightly"],
            ["freeze", run, "--name", "nightly"],
        ):
            refused = call(*command, "--policy", policy)
            assert refused.exit_code == 2, refused.output
            assert "layout: star" in refused.output
        assert query(patients_url, "SELECT count(*) FROM sqlanon.jobs") == [(0,)]
