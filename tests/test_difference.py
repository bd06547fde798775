"""Differences between two releases, and warnings that the two can be held against each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon import build_policy, diff_runs
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy.shown_policy import flattened
from sqlanon.report.difference import RecodingDifference
from sqlanon.runs.tradeoffs.sweeping import with_k
from tests.cli.support import call, only_object
from tests.run_support import Database, anonymize
from tests.test_report import CANARY, IMPOSSIBLE, made

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal", "top-down"])
def test_the_same_rows_recoded_alike_and_otherwise(database: Database, algorithm: str) -> None:
    policy = made(database, algorithm)
    first = anonymize(policy).run
    again = anonymize(policy, replace=True).run
    same = diff_runs(first, again, policy=policy)
    assert (same.recoding, same.same_source, same.policy) == (RecodingDifference.SAME, True, ())
    assert not [change for change in (*same.figures, *same.columns) if change.changed]
    assert [warning for warning in same.warnings if "share their recoding" in warning]
    coarser = anonymize(with_k(policy, 20), replace=True)
    other = diff_runs(first, coarser.run, policy=policy)
    assert other.recoding is RecodingDifference.DIFFERENT
    assert [(change.before, change.after) for change in other.policy] == [("4", "20")]
    changed = {change.name: change.after for change in other.figures if change.changed}
    assert changed["classes"] == coarser.as_json()["release"]["classes"]
    assert changed["gcp"] == coarser.metrics.gcp
    assert [warning for warning in other.warnings if "differ in their recoding" in warning]
    assert CANARY not in json.dumps(other.as_json())


def test_the_same_levels_of_another_hierarchy_are_another_recoding(database: Database) -> None:
    table = database.create({"zip": "VARCHAR(3)"}, [("111",), ("121",)] * 3)

    def release(side: str) -> str:
        attribute = {"role": "quasi-identifier", "hierarchy": {"mask": side}}
        policy = database.policy(table, {"zip": attribute}, algorithm={"name": "optimal"})
        return anonymize(policy, replace=True, levels={"zip": 1}).run

    runs = [release(side) for side in ("right", "right", "left")]
    policy = database.policy(table, {"zip": "quasi-identifier"})
    assert diff_runs(runs[0], runs[1], policy=policy).recoding is RecodingDifference.SAME
    assert diff_runs(runs[0], runs[2], policy=policy).recoding is RecodingDifference.DIFFERENT


def test_rows_recoded_by_the_rules_of_a_run_have_its_recoding(database: Database, tmp_path: Path) -> None:
    policy = made(database, "mondrian")
    first = anonymize(policy).run
    path = tmp_path / "policy.yml"
    path.write_text(json.dumps(policy.model_dump(mode="json", by_alias=True, exclude_unset=True)), encoding="utf-8")
    done = call("apply", first, "--to", policy.source.table, "--out", "again", "--policy", path, "--json")
    assert done.exit_code == 0, done.output
    assert diff_runs(first, only_object(done.stdout)["run"], policy=policy).recoding is RecodingDifference.SAME


def test_a_recoding_that_is_not_recorded_is_not_known_and_warned_of(database: Database) -> None:
    policy = made(database, "mondrian")
    first, second = anonymize(policy).run, anonymize(policy, replace=True).run
    database.sql("UPDATE sqlanon.releases SET digest = 'of an older version'")
    found = diff_runs(first, second, policy=policy)
    assert found.recoding is RecodingDifference.UNKNOWN
    assert "may differ in their recoding" in found.warnings[0]


def test_other_sources_are_not_linked(database: Database) -> None:
    one, other = made(database, "mondrian"), made(database, "mondrian")
    found = diff_runs(anonymize(one).run, anonymize(other).run, policy=one)
    assert not found.same_source
    assert "different sources" in found.warnings[0]


def test_a_run_that_published_nothing_has_no_release_to_compare(database: Database) -> None:
    policy = made(database, "mondrian")
    first = anonymize(policy).run
    with pytest.raises(ProtectionError):
        anonymize(build_policy(policy.model_dump(exclude_unset=True) | {"privacy": IMPOSSIBLE}), replace=True)
    refused = only_object(call("runs", "--url", database.url, "--json").stdout)["runs"][0]["run"]
    with pytest.raises(PolicyError, match="published nothing"):
        diff_runs(first, refused, policy=policy)


def test_the_command_says_what_differs(database: Database) -> None:
    policy = made(database, "optimal")
    first, second = anonymize(policy).run, anonymize(with_k(policy, 9), replace=True).run
    text = call("diff", first, second, "--url", database.url).stdout
    for expected in ("Recoding: different", "privacy.k-anonymity.k", "classes", "level", "Warning: Two releases"):
        assert expected in text
    found = only_object(call("diff", first, second, "--url", database.url, "--json").stdout)
    assert found["recoding"] == "different"
    assert {change["name"] for change in found["columns"]} >= {"age: level", "age: loss", "age: labels"}


def test_mappings_are_compared_without_their_values() -> None:
    def policy(values: dict[str, str]) -> dict[str, Any]:
        return {
            "attributes": {"job": {"hierarchy": {"mapping": values}}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }

    one, other = flattened(policy({CANARY: "a"})), flattened(policy({"x": "a"}))
    assert one != other
    assert CANARY not in str(one)
    assert one["privacy.k-anonymity.k"] == "2"


def test_centres_are_no_labels(database: Database) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(n * 7 % 60, n * 11 % 60) for n in range(60)])
    policies = {
        name: database.policy(table, dict.fromkeys("ab", "quasi-identifier"), algorithm={"name": name})
        for name in ("microaggregation", "mondrian", "condensation")
    }
    runs = [anonymize(policy, replace=True).run for policy in policies.values()]
    clusters, boxes, synthetic = runs
    labels = diff_runs(clusters, boxes, policy=policies["mondrian"]).labels
    assert (labels.before, labels.after) == ("centres", "observed")
    found = diff_runs(clusters, synthetic, policy=policies["mondrian"])
    assert (found.labels.after, [one for one in found.warnings if "labels" in one]) == ("synthetic", [])
    told = call("diff", clusters, boxes, "--url", database.url)
    assert "centres of clusters, in place of labels in the first" in told.stdout
