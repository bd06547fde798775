"""A catalog that an earlier version wrote: all commands that read it do what they did."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog, Run
from sqlanon.engines import connect
from sqlanon.runs.choices import choices_of
from sqlanon.runs.resuming import resume_run
from tests.cli.support import call, only_object
from tests.recorded.runs import policy
from tests.run_support import OPTIONS, duckdb_url

pytestmark = pytest.mark.slow

WRITTEN = Path(__file__).parent.parent / "recorded" / "v1"
CATALOG, RECORD = WRITTEN / "catalog.duckdb.xz", WRITTEN / "record.json"
PUBLISHED = ("mondrian", "gain", "sampled", "optimal", "star", "starred", "passes", "attributes", "top_down")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the database."""
    file = tmp_path / "recorded.duckdb"
    file.write_bytes(lzma.decompress(CATALOG.read_bytes()))
    monkeypatch.setenv("SQLANON_RECORDED", duckdb_url(file))
    return duckdb_url(file)


@pytest.fixture
def runs(url: str) -> Iterator[dict[str, Run]]:
    """Its runs by the name of the released table, the first of each."""
    with connect(url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        listed = catalog.runs(None)
    return {run.release.replace('"', "").split(".")[-1].removesuffix("_r"): run for run in listed}


def shown(*arguments: object) -> str:
    """Run a command that must succeed, and return its output."""
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_runs_and_show(url: str, runs: dict[str, Run]) -> None:
    listed = only_object(shown("runs", "--url", url, "--limit", 99, "--json"))["runs"]
    with_result = [one for one in listed if one["result"] is not None]
    assert len(with_result) == len(PUBLISHED) + 7
    assert {one["status"] for one in listed} == {"published", "dry", "refused", "failed", "running"}
    for name in PUBLISHED:
        one = only_object(shown("show", runs[name].id, "--url", url, "--json"))
        assert one["result"] == json.loads(runs[name].recorded or "")
        assert ": holds\n" in shown("show", runs[name].id, "--url", url)
    assert "ProtectionError" in shown("show", runs["refused"].id, "--url", url)


@pytest.mark.parametrize("name", ["mondrian", "starred", "top_down", "mondrian_again", "refused"])
def test_report(url: str, runs: dict[str, Run], name: str) -> None:
    page = shown("report", runs[name].id, "--url", url)
    assert ("did not record" in page) == (name == "refused")


def test_diff(url: str, runs: dict[str, Run]) -> None:
    compared = only_object(shown("diff", runs["optimal"].id, runs["starred"].id, "--url", url, "--json"))
    figures = {one["name"]: (one["before"], one["after"]) for one in compared["figures"]}
    assert figures["rows"] == (158, 160)
    assert compared["recoding"] == "same"


@pytest.mark.parametrize("name", ["gain", "star"])
def test_a_record_is_made_and_verified(url: str, runs: dict[str, Run], name: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    shown("record", runs[name].id, "--url", url, "-o", path)
    assert only_object(shown("verify", "--record", path, "--json"))["satisfied"]
    if name == "star":
        assert json.loads(path.read_text()) == json.loads(RECORD.read_text())


@pytest.mark.usefixtures("url")
def test_a_record_that_was_made_then_is_verified() -> None:
    assert only_object(shown("verify", "--record", RECORD, "--json"))["satisfied"]


def test_rules_are_applied(url: str, runs: dict[str, Run]) -> None:
    for name in ("mondrian", "optimal", "passes", "top_down"):
        arguments = ("apply", runs[name].id, "--to", "people", "--out", f"{name}_anew", "--url", url, "--json")
        result = only_object(shown(*arguments))
        assert result["algorithm"]["applied"] == runs[name].id
        assert result["verified"]


def test_a_frozen_job_runs(url: str) -> None:
    assert only_object(shown("job", "show", "nightly", "--url", url, "--json"))["disclosure"]
    result: dict[str, Any] = only_object(shown("job", "run", "nightly", "--url", url, "--json"))
    assert result["algorithm"]["job"] == "nightly"
    with connect(url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        choices = choices_of(catalog, catalog.run(result["run"]))
    assert choices is not None
    assert (choices.version, choices.on_violation, choices.budget) == (1, "suppress", 0.5)


def test_a_checkpoint_is_read(url: str, runs: dict[str, Run]) -> None:
    """And left alone where the version of the program is another; here it is the same."""
    with connect(url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        killed = next(run for run in catalog.runs(None) if run.status.value == "running")
        assert catalog.checkpoint(killed.id) is not None
    result = resume_run(killed.id, policy("gain", "${SQLANON_RECORDED}"), replace=True, options=OPTIONS)
    assert result.published
    assert result.resumed is not None
    assert runs["gain"].result is not None
    assert result.algorithm.facts == runs["gain"].result.algorithm.facts
