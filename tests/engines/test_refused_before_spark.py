"""Policies that can't be carried out on Spark, so far as the policy itself tells: refused before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon.api.calls import check_policy
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from tests.run_support import run

URL = "spark+local://1"
QUASI = {"role": "quasi-identifier"}


class StartedError(Exception):
    """Raised in place of a start of Spark."""


@pytest.fixture(autouse=True)
def spark_never_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any) -> None:
        raise StartedError

    monkeypatch.setattr("sqlanon.engines.spark.engine.open_session", start)


def policy(release: dict[str, Any], **more: Any) -> Policy:
    places: dict[str, Any] = {"source": {"url": URL, "file": "/data/people.parquet"}, "release": release}
    recoding = {"attributes": {"age": QUASI}, "privacy": [{"model": "k-anonymity", "k": 2}]}
    return build_policy(places | {"catalog": {"url": "duckdb:///:memory:"}} | recoding | more)


def problems_of(refused: Policy, **more: Any) -> list[str]:
    """The problems that both `run` and `check` tell of a policy."""
    with pytest.raises(PolicyError) as of_run:
        run(refused, **more)
    with pytest.raises(PolicyError) as of_check:
        check_policy(refused)
    assert of_run.value.problems == of_check.value.problems
    return list(of_run.value.problems)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A directory with what releases can't take the place of."""
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    (tmp_path / "file.parquet").write_text("")
    (tmp_path / "ours.parquet").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere/released", "no directory"),
        ("foreign", "Parquet files alone"),
        ("file.parquet", "Parquet files alone"),
        ("released.csv", "has no ending"),
        ("s3a://bucket/released", "of this machine"),
        ("a*b", "does not read"),
    ],
)
def test_a_wrong_place_of_a_release(places: Path, name: str, problem: str) -> None:
    file = name if "://" in name else str(places / name)
    (said,) = problems_of(policy({"file": file}))
    assert said.startswith("release.file: ")
    assert problem in said


def test_places_without_rights(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may do all, so that the answers of the system are given here."""

    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr("os.access", lambda *_: False)
    (said,) = problems_of(policy({"file": str(places / "released")}))
    assert "can't be written" in said
    monkeypatch.setattr(Path, "iterdir", refuse)
    (said,) = problems_of(policy({"file": str(places / "foreign")}))
    assert "may not look at" in said


def test_a_release_over_its_source(places: Path) -> None:
    source = {"url": URL, "file": str(places / "ours.parquet" / "part.parquet")}
    (said,) = problems_of(policy({"file": str(places / "ours.parquet")}, source=source))
    assert "overwrite its source" in said


def test_files_of_a_cluster() -> None:
    for url in ("spark://master:7077", "sc://server"):
        (said,) = problems_of(policy({"file": "/tmp/released"}, source={"url": url, "file": "/data/people.parquet"}))
        assert "where its executors are" in said


def test_a_release_that_exists_is_replaced_only_where_that_is_allowed(places: Path) -> None:
    there = policy({"file": str(places / "ours.parquet")})
    with pytest.raises(PolicyError, match="--replace"):
        run(there)
    with pytest.raises(StartedError):
        run(there, replace=True)
    with pytest.raises(StartedError):
        check_policy(there)


def test_all_that_is_wrong_is_said_at_once(places: Path) -> None:
    wrong = policy({"file": str(places / "foreign")}, algorithm={"name": "r-gather"})
    assert [said.partition(":")[0] for said in problems_of(wrong)] == ["algorithm", "release.file"]


def test_another_database_for_the_release() -> None:
    (said,) = problems_of(policy({"url": "duckdb:///:memory:", "table": "released"}))
    assert "not carried over" in said


def test_a_catalog_that_spark_would_keep() -> None:
    for file in ("/tmp/released", None):
        release = {"table": "released"} if file is None else {"file": file}
        for catalog in ({}, {"url": URL}):
            with pytest.raises(PolicyError, match="cannot keep the catalog"):
                check_policy(policy(release, catalog=catalog))
            with pytest.raises(PolicyError, match="cannot keep the catalog"):
                run(policy(release, catalog=catalog))
