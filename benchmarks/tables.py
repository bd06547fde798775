"""A release of people and their visits together, beside a run over the visits alone.

python benchmarks/tables.py --people 1000000
python benchmarks/tables.py --people 100000 --url postgresql://…

Patients with three quasi-identifiers, and ten visits a patient with two and a diagnosis, drawn by hashes of their
numbers. The policy of both asks for k = 50 of persons, any two visits within these of five persons, three diagnoses;
the run over visits alone asks for the same of visits. Printed are seconds by the clock, and of DuckDB those of the
processor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from sqlanon import EngineOptions, build_policy, run, run_tables
from sqlanon.policy.dividing import build_tables
from sqlanon.policy.document import Document

QUASI = {"role": "quasi-identifier"}
KEY = {"role": "identifier", "show": "pseudonym", "key": "drawn"}
OF_VISITS = {"admitted": QUASI, "age": QUASI, "diagnosis": {"role": "sensitive"}, "visit_id": {"role": "identifier"}}


def main() -> None:
    """Release both tables, and then the visits alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--memory-limit", default="4GB", help="of DuckDB")
    parser.add_argument("--url", help="of a PostgreSQL database; DuckDB by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.duckdb"
        url = arguments.url or f"duckdb:///{path}"
        make(url, path, arguments.people)
        options = EngineOptions(memory_limit=None if arguments.url else arguments.memory_limit)
        together = build_tables(Document(policy_of_tables(url)), None)
        timed("people and visits", lambda: run_tables(together, replace=True, options=options))
        alone = build_policy(policy_of_visits(url))
        timed("visits alone", lambda: run(alone, replace=True, options=options))


def timed(what: str, work: Any) -> None:
    """Print how long work takes."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    print(f"{what}: {time.perf_counter() - clock:.1f} s, {time.process_time() - processor:.1f} s of this process")


def make(url: str, path: Path, people: int) -> None:
    """Make the tables, with numbers that look drawn and are the same each time."""
    is_postgres = url.startswith("postgres")
    drawn = "abs(hashint8({}))" if is_postgres else "CAST(hash({}) % 2147483648 AS BIGINT)"

    def of(number: int, most: int) -> str:
        return f"CAST({drawn.format(f'CAST(i * {number} AS BIGINT)')} % {most} AS INTEGER)"

    statements = [
        *(f"DROP SCHEMA IF EXISTS {name} CASCADE" for name in ("tables_source", "tables_released")),
        *(f"CREATE SCHEMA {name}" for name in ("tables_source", "tables_released")),
        "CREATE TABLE tables_source.patients AS"
        f" SELECT i AS patient_id, {of(3, 30_000)} AS birth, {of(7, 90_000)} AS zip, {of(5, 2)} AS sex"
        f" FROM generate_series(1, {people}) AS g(i)",
        "CREATE TABLE tables_source.visits AS"
        f" SELECT i AS visit_id, 1 + {of(11, people)} AS patient_id, {of(17, 1000)} AS admitted, {of(19, 90)} AS age,"
        f" {of(23, 8)} AS diagnosis FROM generate_series(1, {10 * people}) AS g(i)",
    ]
    connection: Any = psycopg.connect(url, autocommit=True) if is_postgres else duckdb.connect(str(path))
    with connection:
        for statement in statements:
            connection.execute(statement)


def policy_of_tables(url: str) -> dict[str, Any]:
    """The policy of both tables."""
    return {
        "source": {"url": url, "schema": "tables_source"},
        "release": {"schema": "tables_released"},
        "people": {"table": "patients", "key": "patient_id"},
        "tables": {
            "patients": {
                "attributes": {"patient_id": {"role": "identifier"}, "birth": QUASI, "zip": QUASI, "sex": QUASI}
            },
            "visits": {"references": {"patient_id": "patients"}, "suppression": 0.1, "attributes": OF_VISITS},
        },
        "privacy": [
            {"model": "k-anonymity", "k": 50},
            {"model": "km-anonymity", "k": 5, "m": 2, "of": ["visits"]},
            {"model": "distinct-l-diversity", "attribute": "visits.diagnosis", "l": 3},
        ],
    }


def policy_of_visits(url: str) -> dict[str, Any]:
    """The policy of the visits alone."""
    return {
        "source": {"url": url, "table": "tables_source.visits"},
        "release": {"table": "tables_released.alone"},
        "subject": "patient_id",
        "attributes": {"patient_id": KEY, **OF_VISITS},
        "privacy": [
            {"model": "km-anonymity", "k": 5, "m": 2},
            {"model": "distinct-l-diversity", "attribute": "diagnosis", "l": 3},
        ],
    }


if __name__ == "__main__":
    main()
