"""Write a catalog and results by the version that is installed, for the tests of all later ones.

python -m tests.recorded.write tests/recorded/v1

catalog.duckdb.xz: a database whose catalog holds published runs of several algorithms, an application of rules, a job
with a run, trials, a refused run, and one that was killed and left a checkpoint. Its URL is `${SQLANON_RECORDED}`.
record.json: the record of one of the runs.
results.json.xz: what `run --json` prints of the same policies on DuckDB and PostgreSQL, but for times, ids and places.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.jobs.freezing import Freezing, freeze
from sqlanon.jobs.running import run_by_rules
from sqlanon.report.queries import run_record
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from sqlanon.runs.tradeoffs.sweeping import sweep
from sqlanon.work.journal import Silent
from sqlanon.work.workspace import Workspace
from tests.postgres_server import find_binaries, start
from tests.recorded.runs import POLICIES, comparable, create_source, policy
from tests.run_support import OPTIONS, Database, duckdb_url, open_database, run

URL = "${SQLANON_RECORDED}"


class Killed(BaseException):
    """As by `kill -9`."""


class Killing(Silent):
    """Stops a run as it begins to verify."""

    def phase(self, name: str) -> None:
        if name == "verify":
            raise Killed


def write_runs(database: Database, url: str) -> dict[str, Any]:
    """Carry out every policy over a new table of the database, and apply the rules of one; results by name."""
    create_source(database)
    results = {}
    for name in POLICIES:
        try:
            results[name] = run(policy(name, url), options=OPTIONS).as_json()
        except (PolicyError, ProtectionError):
            assert name in ("refused", "failed")
    with connect(os.path.expandvars(url), OPTIONS) as engine, Catalog.open(engine) as catalog:
        origins = {name: catalog.run(results[name]["run"]) for name in ("mondrian", "optimal")}
    for name, found in origins.items():
        wanted = Application(found.id, "people", f"{name}_again", "suppress")
        applied = apply_rules(wanted, found, (os.path.expandvars(url), "sqlanon"), options=OPTIONS)
        results[f"apply {name}"] = applied.as_json()
    return results


def write_catalog(database: Database) -> None:
    """Fill the catalog of a DuckDB file."""
    results = write_runs(database, URL)
    place = os.environ["SQLANON_RECORDED"]
    with connect(place, OPTIONS) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(results["mondrian"]["run"])
        job = freeze(engine, catalog, found, Freezing("nightly", "suppress", 0.5))
    run_by_rules(job, found, (place, "sqlanon"), None, OPTIONS, Silent())
    sweep(policy("mondrian", URL), [2, 5, 1000], options=OPTIONS)
    close, finish = Workspace.close, Catalog.finish_run
    Workspace.close = Catalog.finish_run = lambda *_arguments, **_values: None  # type: ignore[method-assign]
    with contextlib.suppress(Killed):
        run(policy("gain", URL), replace=True, options=OPTIONS, observer=Killing())
    Workspace.close, Catalog.finish_run = close, finish  # type: ignore[method-assign]


def write_record(target: Path) -> None:
    """Write the record of the run that released a star, as `sqlanon record` does."""
    place = os.environ["SQLANON_RECORDED"]
    with connect(place, OPTIONS) as engine, Catalog.open(engine) as catalog:
        run = next(run.id for run in catalog.runs(None) if "star_r" in run.release)
    text = json.dumps(run_record(run, url=place, options=OPTIONS), ensure_ascii=False)
    (target / "record.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Write both files into the directory that is named."""
    target = Path(sys.argv[1])
    target.mkdir(exist_ok=True)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "recorded.duckdb"
        os.environ["SQLANON_RECORDED"] = duckdb_url(file)
        with open_database(duckdb_url(file)) as database:
            write_catalog(database)
            write_record(target)
        with lzma.open(target / "catalog.duckdb.xz", "wb") as packed:
            packed.write(file.read_bytes())
        with open_database(duckdb_url(Path(scratch) / "other.duckdb")) as database:
            results["duckdb"] = write_runs(database, database.url)
    binaries = find_binaries()
    assert binaries is not None
    with start(binaries) as server, open_database(server.url("postgres")) as database:
        results["postgres"] = write_runs(database, database.url)
    shown = {engine: {name: comparable(one) for name, one in found.items()} for engine, found in results.items()}
    with lzma.open(target / "results.json.xz", "wt", encoding="utf-8") as written:
        json.dump(shown, written, ensure_ascii=False)


if __name__ == "__main__":
    main()
