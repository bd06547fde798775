"""The examples of the project run as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from ruamel.yaml import YAML

from sqlanon import PolicyError, RunResult, connect, explore, load_policy, run
from sqlanon.engines.columns import Column
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from tests.adult import ADULT, DATA, needs_adult

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"


def _adult(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("SQLANON_TEST_DATA", str(DATA))
    document: dict[str, Any] = YAML(typ="safe").load((EXAMPLES / "adult.yml").read_text())
    return document


def _as_published(outcome: RunResult) -> None:
    result = outcome.as_json()
    assert result["verified"]
    assert result["release"]["classes"] >= 2000
    assert result["metrics"]["c_avg"] <= 1.51
    assert result["release"]["min_class_size"] >= 10


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@needs_adult
def test_adult_is_as_good_as_published_figures_and_the_same_on_both_engines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres_url: str
) -> None:
    policy = _adult(monkeypatch)
    policy["release"] = {"file": str(tmp_path / "duckdb.csv")}
    policy["catalog"] = {"url": f"duckdb:///{tmp_path}/catalog.duckdb"}  # by itself it is beside the source
    on_duckdb = run(build_policy(policy))
    _as_published(on_duckdb)
    _load_adult(postgres_url)
    policy["source"] = {"url": postgres_url, "table": "adult"}
    policy["release"] = {"file": str(tmp_path / "postgres.csv")}
    policy["catalog"] = {"url": postgres_url}
    on_postgres = run(build_policy(policy))
    _as_published(on_postgres)
    assert (tmp_path / "duckdb.csv").read_bytes() == (tmp_path / "postgres.csv").read_bytes()
    assert on_duckdb.as_json()["metrics"] == on_postgres.as_json()["metrics"]


@needs_adult
def test_adult_in_full_domain_generalization(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SQLANON_TEST_DATA", str(DATA))
    document = YAML(typ="safe").load((EXAMPLES / "adult-full-domain.yml").read_text())
    places = {"release": {"file": f"{tmp_path}/released.csv"}, "catalog": {"url": f"duckdb:///{tmp_path}/c.duckdb"}}
    result = run(build_policy(document | places)).as_json()
    assert result["verified"]
    assert result["algorithm"]["proven"]
    assert list(result["algorithm"]["levels"].values()) == [0, 4, 0, 1, 3, 1, 0, 2]
    assert result["release"]["suppressed"] == 585


@needs_adult
def test_all_generalizations_of_adult_are_as_many_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_TEST_DATA", str(DATA))
    document = YAML(typ="safe").load((EXAMPLES / "adult-full-domain.yml").read_text())
    hierarchy = {"csv": "${SQLANON_TEST_DATA}/adult/adult_hierarchy_salary-class.csv"}
    document["attributes"]["salary-class"] = {"role": "quasi-identifier", "hierarchy": hierarchy}
    for k, anonymous, minimal in ((5, 87, 27), (100, 22, 7)):
        given = {**document, "privacy": [{"model": "k-anonymity", "k": k}], "suppression": 0.0}
        found = explore(build_policy(given), everything=True)
        assert (found.lattice.size, len(found.anonymous), len(found.minimal)) == (12_960, anonymous, minimal)
        if k == 5:
            assert found.optimum.levels == (0, 4, 1, 1, 3, 2, 2, 1, 0)
            assert found.optimum.score == pytest.approx(0.5731509656, abs=1e-9)


def _load_adult(url: str) -> None:
    header, *lines = _lines(ADULT / "adult.csv")
    names = header.split(";")
    columns = ", ".join(f'"{name}" {"bigint" if name == "age" else "text"}' for name in names)
    with connect(url) as engine:
        engine.execute(Statement("test", f"CREATE TABLE adult ({columns})"))
        found = engine.resolve(Relation("adult"))
        assert found is not None
        engine.load(found, names, (line.split(";") for line in lines))


def test_an_example_without_its_data_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLANON_TEST_DATA", raising=False)
    with pytest.raises(PolicyError, match="SQLANON_TEST_DATA"):
        load_policy(EXAMPLES / "adult.yml")


def test_the_compose_file_is_valid_and_seeds_what_is_there() -> None:
    compose = YAML(typ="safe").load((EXAMPLES.parent / "docker-compose.yml").read_text())
    (service,) = compose["services"].values()
    seeds = [EXAMPLES.parent / volume.split(":")[0] for volume in service["volumes"]]
    assert sorted(seeds) == sorted(EXAMPLES.glob("*.sql"))
    assert service["healthcheck"]["test"][0] == "CMD-SHELL"
    assert service["ports"][0].startswith("127.0.0.1:")


def test_the_seeded_patients_are_released(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str, postgres_connection: psycopg.Connection[Any]
) -> None:
    postgres_connection.execute((EXAMPLES / "patients.sql").read_bytes())
    monkeypatch.setenv("SQLANON_URL", postgres_url)
    result = run(load_policy(EXAMPLES / "patients.yml")).as_json()
    assert result["verified"]
    assert result["release"]["rows"] == 50_000
    assert result["release"]["classes"] > 500
    columns = {column.name for column in _columns(postgres_url, "patients_released")}
    assert {"income_min", "income_max"} < columns
    assert not columns & {"patient_id", "insurance_number", "income"}


def _columns(url: str, table: str) -> list[Column]:
    with connect(url) as engine:
        return engine.columns(Relation(table))
