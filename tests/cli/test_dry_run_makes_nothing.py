"""A dry run makes nothing, not even the database file that a release would go to."""

from __future__ import annotations

from pathlib import Path

import duckdb

from sqlanon.policy.loading import build_policy
from sqlanon.runs.dry_run import run_dry


def test_a_missing_release_database_is_not_made(tmp_path: Path) -> None:
    source, target = tmp_path / "source.duckdb", tmp_path / "target.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE people AS SELECT i % 50 AS age, 'flu' AS disease FROM range(100) AS r(i)")
    policy = build_policy(
        {
            "source": {"url": f"duckdb:///{source}", "table": "people"},
            "release": {"url": f"duckdb:///{target}", "table": "released"},
            "attributes": {"age": {"role": "quasi-identifier"}, "disease": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    steps = run_dry(policy).steps
    assert {step.phase for step in steps} >= {"encode", "search", "recode", "verify", "publish"}
    here, there = [], []
    for step in steps:
        (there if step.statement.startswith("-- In the release's database") else here).append(step)
    assert [s.name for s in there if s.phase == "publish"] == [
        "engines/begin",
        "work/publish/rename_table",
        "engines/commit",
        "work/publish/checkpoint",
        "catalog/unlock",
    ]
    assert all('"sqlanon_staging' not in step.statement for step in here if not step.statement.startswith("-- "))
    assert not target.exists()
