"""Sweeps: several k are tried, measured like releases, recorded, and nothing is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon import run_report, sweep
from sqlanon.cli.layout import percent
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.runs.tradeoffs.sweeping import TradeoffPoint, frontier, with_k
from tests.cli.support import call, only_object
from tests.run_support import OPTIONS, Database, anonymize
from tests.test_report import made

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def _write(policy: Any, directory: Path) -> Path:
    path = directory / "policy.yml"
    path.write_text(json.dumps(policy.model_dump(mode="json", by_alias=True, exclude_unset=True)), encoding="utf-8")
    return path


@pytest.mark.parametrize("algorithm", ["mondrian", "incognito"])
def test_a_trial_measures_what_a_run_would_publish(database: Database, algorithm: str) -> None:
    policy = made(database, algorithm)
    found = sweep(policy, [500, 3, 3], options=OPTIONS)
    assert [one.k for one in found.runs] == [3, 500]
    assert database.leftovers() == []
    tables = [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")]
    assert policy.release.table not in tables
    assert found.runs[-1].result is None
    assert "holds 120 rows" in str(found.runs[-1].refusal)
    for one in found.runs[:-1]:
        assert one.result is not None
        tried, done = one.result.as_json(), anonymize(with_k(policy, one.k), replace=True).as_json()
        done["source"].pop("digest")  # of what is published
        assert tried["release"].pop("table") != done["release"].pop("table")
        for part in ("release", "metrics", "risk", "quasi_identifiers", "source"):
            assert tried[part] == done[part], part
        assert (tried["verified"], tried["published"]) == (False, False)


def test_trials_are_recorded_and_drawn_in_the_report_of_their_policy_alone(database: Database) -> None:
    policy = made(database, "mondrian")
    run = anonymize(policy).run
    assert "No other k was tried" in run_report(run, policy=policy)
    found = sweep(policy, [8], options=OPTIONS)
    page = run_report(run, policy=policy)
    assert "Privacy against utility" in page
    assert "k 4 (released)" in page
    for one in found.runs:
        assert one.result is not None
        assert f"k {one.k}: " in page
        assert "Tried, not published" in run_report(one.result.run, policy=policy)
    stricter = policy.model_copy(update={"privacy": policy.privacy[:1]})
    other = anonymize(stricter, replace=True).run
    assert "No other k was tried" in run_report(other, policy=policy)


def test_the_command_prints_a_table_an_object_and_a_picture(database: Database, tmp_path: Path) -> None:
    path, svg = _write(made(database, "mondrian"), tmp_path), tmp_path / "frontier.svg"
    done = call("sweep", path, "--k", "2,500", "--svg", svg, "--quiet")
    assert done.exit_code == 0, done.output
    assert "k = 500 can't be met" in done.stdout
    assert "nothing was published" in done.stdout
    assert "Privacy against utility" in svg.read_text(encoding="utf-8")
    found = only_object(call("sweep", path, "--k", "2,500", "--json").stdout)
    assert [(one["k"], one["met"], one["frontier"]) for one in found["trials"]] == [
        (2, True, True),
        (500, False, False),
    ]
    for options in ((), ("--json",)):
        none = call("sweep", path, "--k", "500", "--quiet", *options)
        assert (none.exit_code, "None of these k" in none.stderr) == (3, not options)
    assert [one["met"] for one in only_object(none.stdout)["trials"]] == [False]
    assert call("sweep", path, "--k", "2,x").exit_code == 2


def _of_numbers(database: Database, algorithm: str) -> Policy:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(n * 7 % 60, n * 11 % 60) for n in range(60)])
    return database.policy(table, dict.fromkeys("ab", "quasi-identifier"), algorithm={"name": algorithm})


def test_centres_are_compared_by_the_variance_that_they_lose(database: Database, tmp_path: Path) -> None:
    policy, svg = _of_numbers(database, "microaggregation"), tmp_path / "lost.svg"
    found = sweep(policy, [2, 5], options=OPTIONS)
    losses = []
    for one in found.runs:
        done = anonymize(with_k(policy, one.k), replace=True).as_json()
        losses.append(done["masking"]["numbers"]["sse"] / 100)
    assert [round(point.loss, 5) for point in found.points] == [round(loss, 5) for loss in losses]
    assert 0 < losses[0] < losses[1]
    told = call("sweep", _write(policy, tmp_path), "--k", "2,5", "-q", "--svg", svg)
    assert "lost (variance)" in told.stdout
    assert percent(losses[1]) in told.stdout
    assert "information lost (variance)" in svg.read_text(encoding="utf-8")


def test_trials_whose_loss_is_unknown_are_beaten_by_none(database: Database, tmp_path: Path) -> None:
    policy = _of_numbers(database, "condensation")
    found = sweep(policy, [2, 5, 500], options=OPTIONS)
    assert [one["frontier"] for one in found.as_json()["trials"]] == [None, None, False]
    told = call("sweep", _write(policy, tmp_path), "--k", "2,5", "-q")
    assert told.exit_code == 0, told.output
    assert "beaten" not in told.stdout


def test_k_is_a_whole_number_from_1(database: Database) -> None:
    policy = made(database, "mondrian")
    for ks in ([], [0, 5]):
        with pytest.raises(PolicyError, match="whole numbers"):
            sweep(policy, ks)


def test_k_joins_models_that_lack_it(database: Database) -> None:
    policy = made(database, "mondrian")
    lacking = policy.model_copy(update={"privacy": policy.privacy[1:]})
    assert [model.model for model in with_k(lacking, 7).privacy] == ["k-anonymity", "distinct-l-diversity"]
    assert [getattr(model, "k", None) for model in with_k(policy, 7).privacy] == [7, None]


def test_the_frontier_is_what_nothing_beats() -> None:
    def point(k: int, least: int, loss: float) -> TradeoffPoint:
        return TradeoffPoint(k, least, 1, 0, loss, 0.5)

    a, b, c, d = point(2, 2, 0.1), point(3, 5, 0.3), point(5, 5, 0.2), point(9, 9, 0.2)
    assert frontier([a, b, c, d]) == (a, d)
    assert frontier([a, a]) == (a, a)
    assert frontier([]) == ()
