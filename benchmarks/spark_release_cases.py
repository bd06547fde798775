"""Tables and policies whose releases on Spark are held against DuckDB's; see `spark_releases.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from adult import DATA, create_workload_table
from agrawal import QUASI_IDENTIFIERS, Wanted, query
from frozen_releases import COLUMNS, LATTICES, MODELS, TREES, cases, patients

from sqlanon.engines import connect
from sqlanon.sql import Statement
from tests.engines.test_spark_random import random_case
from tests.run_support import Database
from tests.spark_support import SparkTables

Tables = Database | SparkTables
QUASI, SENSITIVE, KEPT = {"role": "quasi-identifier"}, {"role": "sensitive"}, {"role": "insensitive"}
_ADULT_QUASI = ("age", "workclass", "marital-status", "race", "sex", "native-country")
_RENAMED = {"disease": "occupation", "days": "hours-per-week"}
_AGRAWAL_ROWS = 100_000


@dataclass(frozen=True)
class CaseSet:
    """A table and the policies of which each makes a release of it.

    create: makes the table in a database under its name; the other argument is a directory for files.
    """

    table: str
    cases: Mapping[str, Mapping[str, Any]]
    create: Callable[[Tables, Path], None]


def case_sets() -> Iterator[CaseSet]:
    """All policies of `frozen_releases.py`, random tables, Adult by all algorithms and models, a part of Agrawal's."""
    yield CaseSet("patients", cases(), lambda database, _: _create(database, "patients", COLUMNS, patients()))
    for seed in range(30):
        drawn = random_case(seed)
        yield CaseSet(
            drawn.table,
            {f"random {seed}": drawn.case},
            lambda database, _, drawn=drawn: _create(database, drawn.table, drawn.columns, drawn.rows),
        )
    if DATA.is_dir():
        yield CaseSet("adult", _adult_cases(), _create_adult)
    yield CaseSet("agrawal", _agrawal_cases(), _create_agrawal)


def _create(database: Tables, table: str, columns: Mapping[str, str], rows: Any) -> None:
    database.create(columns, rows, table)


def _create_adult(database: Tables, directory: Path) -> None:
    _create_of_query(database, directory, "adult", create_workload_table("adult").partition(" AS ")[2])


def _create_agrawal(database: Tables, directory: Path) -> None:
    _create_of_query(database, directory, "agrawal", query("duckdb", Wanted(_AGRAWAL_ROWS)).rstrip(";"))


def _create_of_query(database: Tables, directory: Path, table: str, rows: str) -> None:
    """Make a table of what DuckDB answers, in either database by the same file."""
    file = directory / f"{table}.parquet"
    if not file.exists():
        with connect("duckdb:///:memory:") as maker:
            maker.execute(Statement("make", f"COPY ({rows}) TO '{file}' (FORMAT parquet)"))
    if isinstance(database, SparkTables):
        database.sql(f"CREATE TABLE {table} USING PARQUET AS SELECT * FROM parquet.`{file}`")
    else:
        database.sql(f"CREATE TABLE {table} AS SELECT * FROM '{file}'")


def _adult_cases() -> dict[str, dict[str, Any]]:
    """Each algorithm, and each model with a tree and with a lattice."""
    made: dict[str, dict[str, Any]] = {}
    for name, algorithm in TREES.items():
        made[f"adult, {name}"] = _adult_case(algorithm=_of_adult(algorithm))
        made[f"adult, {name}, hierarchies"] = _adult_case(leveled=True, algorithm=_of_adult(algorithm))
    for name, algorithm in LATTICES.items():
        more = {} if algorithm["name"] == "top-down" else {"suppression": 0.05}
        made[f"adult, {name}"] = _adult_case(leveled=True, algorithm=_of_adult(algorithm), **more)
    for name, model in MODELS.items():
        made[f"adult, mondrian, {name}"] = _adult_case(_of_adult(model))
        made[f"adult, optimal, {name}"] = _adult_case(
            _of_adult(model), leveled=True, algorithm={"name": "optimal"}, suppression=0.1, suppressed="star"
        )
    return made


def _of_adult(part: Mapping[str, Any]) -> dict[str, Any]:
    """A model or an algorithm for patients, as one for Adult."""
    given = {name: _RENAMED.get(value, value) if isinstance(value, str) else value for name, value in part.items()}
    return given | ({"limits": {"age": [1, 3]}} if "limits" in given else {})


def _adult_case(*models: Mapping[str, Any], leveled: bool = False, **more: Any) -> dict[str, Any]:
    """A policy for Adult, k = 5; leveled: every quasi-identifier has a hierarchy."""
    quasi: dict[str, Any] = {name: QUASI | _hierarchy(name) if leveled else QUASI for name in _ADULT_QUASI}
    others = dict.fromkeys(("hours-per-week", "salary-class"), SENSITIVE)
    others |= dict.fromkeys(("education-num", "relationship"), KEPT)
    is_hierarchical = any(model.get("distance") == "hierarchical" for model in models)
    others["occupation"] = SENSITIVE | _hierarchy("occupation") if is_hierarchical else SENSITIVE
    attributes = quasi | others
    return {"attributes": attributes, "privacy": [{"model": "k-anonymity", "k": 5}, *models], **more}


def _hierarchy(name: str) -> dict[str, Any]:
    return {"hierarchy": {"csv": str(DATA / f"adult_hierarchy_{name}.csv")}}


def _agrawal_cases() -> dict[str, dict[str, Any]]:
    """Trees of nine attributes, and lattices of three."""
    sensitive = {"person": {"role": "identifier"}, "cls": {"role": "sensitive"}}
    trees = {"mondrian": {}, "gain": {"split": "information-gain", "target": "cls"}, "sampled": {"sample": 5000}}
    names = {"mondrian": "mondrian", "gain": "rothko-t", "sampled": "rothko-s"}
    made = {
        f"agrawal, {name}": {
            "attributes": dict.fromkeys(QUASI_IDENTIFIERS, QUASI) | sensitive,
            "algorithm": {"name": names[name]} | more,
        }
        for name, more in trees.items()
    }
    widths = {"age": [5, 20], "zipcode": [2], "car": [5]}
    leveled = {name: QUASI | {"hierarchy": {"intervals": listed}} for name, listed in widths.items()}
    left_out = {name: {"role": "identifier"} for name in QUASI_IDENTIFIERS}
    for name in ("optimal", "incognito", "datafly", "top-down"):
        made[f"agrawal, {name}"] = {"attributes": left_out | leveled | sensitive, "algorithm": {"name": name}}
    shared = {"privacy": [{"model": "k-anonymity", "k": 10}], "subject": "none"}  # columns that are left out repeat
    return {name: case | shared for name, case in made.items()}
