"""A federated release of Adult: three sites with a third of the rows each, as commands of this machine.

python benchmarks/federation.py [decision [MOST_NODES]]

Eight quasi-identifiers, k = 5, 1 % suppression. Over the raw values there are a billion cells, NULL a label of
each column, so ages are searched from bands of five years on, education and countries from their first groups on: 14.7
million cells. Printed are the seconds from the first command to the end of the last, and of one database that releases
all rows by the same policy; the levels must be equal.

With `decision`, decisions alone are opened, of 40 generalizations or MOST_NODES at most, by precision; where
not as many as it takes are asked, the levels may differ, and the scores of both are printed.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from adult import DATA, PAPER_ORDER
from ruamel.yaml import YAML

SITES = ("north", "south", "west")
QUASI, K, SUPPRESSION = PAPER_ORDER[:8], 5, 0.01
LIMITS = {"age": [1, 4], "education": [1, 3], "native-country": [1, 2]}
QUALITIES = {"counts": "discernibility", "decision": "precision"}
PROGRAM = [sys.executable, "-c", "from sqlanon.cli import main; main()"]


def main() -> None:
    """Release together, and from one database."""
    reveal, nodes = [*sys.argv[1:], *("counts", "40")[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for place, site in enumerate((*SITES, "union")):
            _create(directory, site, None if site == "union" else place, QUALITIES[reveal])
        for site in SITES:
            _certify(directory, site)
        _plan(directory, reveal, int(nodes))
        began = time.perf_counter()
        together = _serve(directory)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        alone = _facts(_called(directory, "run", "union.yml", "--json"))
        print(f"three sites {seconds:.1f} s, one database {time.perf_counter() - began:.1f} s")
        for what, facts in (("together", together[0]), ("one database", alone)):
            print(what, {name: facts[name] for name in ("levels", "score", "proven", "checked")})
        same = [one["levels"] == together[0]["levels"] for one in together]
        print(f"the same at all sites: {all(same)}; as in one database: {alone['levels'] == together[0]['levels']}")


def _create(directory: Path, site: str, place: int | None, quality: str) -> None:
    """Make the database and the policy of a site, which has every third row, or of all rows."""
    chosen = "" if place is None else f"WHERE rowid % {len(SITES)} = {place}"
    with duckdb.connect(str(directory / f"{site}.duckdb")) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{DATA / 'adult.csv'}', delim = ';')")
        connection.execute(f"CREATE TABLE people AS SELECT * FROM rows {chosen}")
    attributes: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": {"csv": str(DATA / f"adult_hierarchy_{name}.csv")}}
        for name in QUASI
    }
    policy = {
        "source": {"url": f"duckdb:///{directory / f'{site}.duckdb'}", "table": "people"},
        "release": {"table": "released"},
        "attributes": {**attributes, PAPER_ORDER[8]: {"role": "insensitive"}},
        "privacy": [{"model": "k-anonymity", "k": K}],
        "algorithm": {"name": "optimal", "quality": quality, "limits": LIMITS},
        "suppression": SUPPRESSION,
    }
    YAML(typ="safe").dump(policy, directory / f"{site}.yml")


def _certify(directory: Path, site: str) -> None:
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={site}"]
    files = ["-keyout", f"{site}.key", "-out", f"{site}.crt"]
    subprocess.run(["openssl", "req", "-x509", *kind, *files], cwd=directory, check=True, capture_output=True)
    (directory / f"{site}.key").chmod(0o600)


def _plan(directory: Path, reveal: str, nodes: int) -> None:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in SITES]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    sites = {
        site: {"address": f"127.0.0.1:{port}", "certificate": f"{site}.crt"}
        for site, port in zip(SITES, ports, strict=True)
    }
    plan = {"sites": sites, "most_cells": 20_000_000, "reveal": reveal, "most_nodes": nodes}
    YAML(typ="safe").dump(plan, directory / "plan.yml")


def _serve(directory: Path) -> list[dict[str, Any]]:
    """Start every site, and wait for what each came to."""
    commands = [
        _called(
            directory, "federate", "serve", "plan.yml", f"{site}.yml", "--site", site, "--key", f"{site}.key", "--json"
        )
        for site in SITES
    ]
    return [_facts(command) for command in commands]


def _facts(command: subprocess.Popen[str]) -> dict[str, Any]:
    printed, _ = command.communicate()
    if command.returncode:
        sys.exit(printed)
    facts: dict[str, Any] = json.loads(printed)["algorithm"]
    return facts


def _called(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *arguments], cwd=directory, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    main()
