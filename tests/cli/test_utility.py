"""utility, on tables and on files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import call, execute, only_object, write_policy

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def test_a_release_is_measured_against_its_source(policy: Path) -> None:
    assert call("run", policy, "-q").exit_code == 0
    found = call("utility", policy, "--target", "ward", "--tree", "--json")
    assert found.exit_code == 0, found.output
    told = only_object(found.stdout)
    assert list(told) == [*("source", "release", "target", "rows", "omitted", "conditional_entropy", "rmse", "tree")]
    for measure in (told["conditional_entropy"], told["rmse"]):
        assert 0 <= measure["source"] <= measure["release"] <= measure["baseline"]
    assert told["conditional_entropy"]["baseline"] == pytest.approx(2.321928)  # five wards of 40: log2 5
    assert told["rmse"]["baseline"] == pytest.approx(2**0.5)
    assert list(told["tree"]) == ["predicts", "accuracy", "rows", "suppressed", "folds"]
    text = call("utility", policy, "--target", "disease", "--tree").stdout
    assert "to predict 'disease' (200 rows)" in text
    assert "rows a tree predicts rightly" in text
    assert "RMSE" not in text


def test_a_run_says_what_its_target_lost(policy: Path) -> None:
    text = policy.read_text().replace("quasi-identifier}", "quasi-identifier, hierarchy: suppress}")
    policy.write_text(text + "algorithm: {name: top-down, quality: information-gain, target: ward}\n", encoding="utf-8")
    told = call("run", policy, "-q").stdout
    assert "conditional entropy of 'ward' " in told
    assert "RMSE of 'ward' " in told


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--target", "age"], 2, "'age': it must be sensitive or insensitive, not quasi-identifier"),
        (["--target", "ssn"], 2, "not identifier"),
        (["--target", "desease"], 2, "did you mean 'disease'"),
        (["--target", "ward"], 2, "no table 'patients_released'"),
        ([], 2, "--target"),
    ],
)
def test_what_can_not_be_predicted(policy: Path, options: list[str], code: int, message: str) -> None:
    result = call("utility", policy, *options)
    assert result.exit_code == code
    assert message in result.stderr


def test_files_are_measured_too(tmp_path: Path) -> None:
    url, source = f"duckdb:///{tmp_path / 'one.duckdb'}", tmp_path / "patients.parquet"
    columns = "i AS ssn, i % 40 AS age, 'z' || i % 9 AS zipcode, 'F' AS sex, 'd' || i % 4 AS disease, i % 5 AS ward"
    execute(url, f"CREATE TABLE t AS SELECT {columns} FROM range(300) t(i)", f"COPY t TO '{source}'")
    written = write_policy(tmp_path, url, release="{file: released.parquet}")
    text = written.read_text().replace(f'{{url: "{url}", table: patients}}', "{file: patients.parquet}")
    written.write_text(text)
    assert call("run", written, "-q").exit_code == 0
    found = call("utility", written, "--target", "disease", "--tree", "--json")
    assert found.exit_code == 0, found.output
    assert only_object(found.stdout)["tree"]["suppressed"] == 0


def test_numbers_of_many_digits_are_text_in_a_csv(tmp_path: Path) -> None:
    url, source = f"duckdb:///{tmp_path / 'one.duckdb'}", tmp_path / "patients.csv"
    columns = "i AS ssn, i % 40 AS age, 'z' || i % 9 AS zipcode, 'F' AS sex, 'd' || i % 4 AS disease"
    ward = "(i % 5)::HUGEINT * 34028236692093846346337460743176821145 AS ward"
    execute(url, f"CREATE TABLE t AS SELECT {columns}, {ward} FROM range(300) t(i)", f"COPY t TO '{source}'")
    written = write_policy(tmp_path, url, release="{file: released.csv}")
    text = written.read_text().replace(
        f'{{url: "{url}", table: patients}}', "{file: patients.csv, types: {ward: hugeint}}"
    )
    written.write_text(text)
    assert call("run", written, "-q").exit_code == 0
    refused = call("utility", written, "--target", "ward")
    assert (refused.exit_code, "The target 'ward' is a number" in refused.stderr) == (2, True), refused.output
