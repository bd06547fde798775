"""A table larger than memory, from a Parquet file to a verified Parquet file: how long, how much memory, how much disk.

python benchmarks/large.py --rows 100000000 --k 1000 --memory-limit 4GB
python benchmarks/large.py --rows 50000000 --k 1000 --memory-limit 2GB --algorithm mondrian

The file is the table of the Rothko evaluation (see agrawal.py), with nine quasi-identifiers.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import tempfile
import threading
from pathlib import Path
from typing import Any

import duckdb
from agrawal import QUASI_IDENTIFIERS, Wanted, parquet_statement

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from tests.run_support import run


class Disk(threading.Thread):
    """Watches how large a directory grows, in bytes, looking twice a second."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.directory, self.peak = directory, 0
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.5):
            self.peak = max(self.peak, sum(_size(path) for path in self.directory.rglob("*")))

    def end(self) -> int:
        self._ended.set()
        self.join()
        return self.peak


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a spill file that has been used up
        return 0


def make_file(path: Path, rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(parquet_statement(path, Wanted(rows)))


def policy(source: Path, release: Path, k: int, algorithm: dict[str, Any]) -> dict[str, Any]:
    attributes = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    return {
        "source": {"file": str(source)},
        "release": {"file": str(release)},
        "attributes": attributes | {"cls": {"role": "sensitive"}, "person": {"role": "identifier"}},
        "privacy": [{"model": "k-anonymity", "k": k}],
        "algorithm": algorithm,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=200_000)
    parser.add_argument("--algorithm", choices=["rothko-s", "mondrian"], default="rothko-s")
    parser.add_argument("--memory-limit", default="4GB")
    arguments = parser.parse_args()
    more = {"sample": arguments.sample, "seed": 7} if arguments.algorithm == "rothko-s" else {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        source, work = Path(directory) / "source.parquet", Path(directory) / "work"
        work.mkdir()
        make_file(source, arguments.rows)
        given = policy(source, work / "released.parquet", arguments.k, {"name": arguments.algorithm, **more})
        disk = Disk(work)
        disk.start()
        options = EngineOptions(memory_limit=arguments.memory_limit, temp_directory=str(work / "spilled"))
        result = run(build_policy(given), options=options).as_json()
        peak = disk.end()
        print(f"{platform.machine()}, {os.cpu_count()} cores, {arguments.rows:,} rows, k={arguments.k}, {more}")
        print(", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in result["seconds"].items()))
        released, memory = result["release"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"classes {released['classes']:,}, smallest {released['min_class_size']}; {result['algorithm']}")
        print(f"peak memory {memory / 1e6:.2f} GB (limit {arguments.memory_limit}), peak disk {peak / 1e9:.2f} GB")
        print(f"source {source.stat().st_size / 1e9:.2f} GB, release {_size(work / 'released.parquet') / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
