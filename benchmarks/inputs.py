"""Whole commands over inputs that are hard to code or to show: seconds of the command, and of its phases beside it.

python benchmarks/inputs.py                              every input, each in a process of its own
python benchmarks/inputs.py --only taxonomy --repeat 3
python benchmarks/inputs.py --only plain doubles --memory-limit 8GB

`taxonomy` has a file of 32,000 lines as hierarchy; `masks` texts of 12 characters that are all different; `plain` is
the table of the Rothko evaluation (agrawal.py), `doubles` and `texts` the same with two kept columns whose values are
nearly all different; `columns` has a hundred kept columns; `sets` shows 100,000 texts as sets, `ranges` large sets of
them by their first and last. The files are Parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from agrawal import QUASI_IDENTIFIERS, Wanted, query

_LINES = 32_000


@dataclass(frozen=True)
class Input:
    """A table and what is asked of it: rows as a SELECT, roles of columns, k, algorithm."""

    select: Callable[[int], str]
    attributes: dict[str, Any]
    rows: int
    k: int
    algorithm: dict[str, Any]


def _evaluation(more: str = "") -> Callable[[int], str]:
    return lambda rows: f"SELECT * EXCLUDE (person){more} FROM ({query('duckdb', Wanted(rows))})"


def _hashed(what: str) -> Callable[[int], str]:
    return lambda rows: f"SELECT {what} FROM range({rows}) AS r(i)"


def _kept(*names: str) -> dict[str, Any]:
    return {name: {"role": "insensitive"} for name in names}


_NINE: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
_NINE["cls"] = {"role": "sensitive"}
_DOUBLES = ", hash(person, 1) / 1e9 AS x, hash(person, 2) / 1e12 AS y"
_TEXTS = ", to_hex(hash(person, 1)) AS x, to_hex(hash(person, 2)) AS y"
_MONDRIAN = {"name": "mondrian"}
_TWO = {"zip": {"role": "quasi-identifier"}, "age": {"role": "quasi-identifier"}}
_PLACE = "lpad(CAST(hash(i) % 32000 AS VARCHAR), 5, '0')"
_AGE = "CAST(hash(i, 1) % 80 AS INTEGER) AS age"
_STREETS = _hashed(f"'street ' || hash(i, 2) % 100000 AS street, {_AGE}")


def _street(sets: str) -> dict[str, Any]:
    return {"street": {"role": "quasi-identifier", "sets": sets}, "age": {"role": "quasi-identifier"}}


INPUTS = {
    "taxonomy": Input(
        _hashed(f"{_PLACE} AS zip, {_AGE}"),
        _TWO | {"zip": {"role": "quasi-identifier", "hierarchy": {"csv": "zip.csv"}}},
        1_000_000,
        10,
        {"name": "mondrian"},
    ),
    "masks": Input(
        _hashed("lpad(CAST(i * 7919 % 5000000 * 199999 AS VARCHAR), 12, '0') AS phone"),
        {"phone": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}},
        5_000_000,
        10,
        _MONDRIAN,
    ),
    "plain": Input(_evaluation(), _NINE, 10_000_000, 1000, _MONDRIAN),
    "doubles": Input(_evaluation(_DOUBLES), _NINE | _kept("x", "y"), 10_000_000, 1000, _MONDRIAN),
    "texts": Input(_evaluation(_TEXTS), _NINE | _kept("x", "y"), 10_000_000, 1000, _MONDRIAN),
    "columns": Input(
        _hashed(", ".join([f"{_PLACE} AS zip", _AGE, *(f"hash(i, {n}) % {n} AS c{n}" for n in range(2, 102))])),
        _TWO | _kept(*(f"c{n}" for n in range(2, 102))),
        1_000_000,
        100,
        _MONDRIAN,
    ),
    "sets": Input(_STREETS, _street("list"), 1_000_000, 100, _MONDRIAN),
    "ranges": Input(_STREETS, _street("auto"), 1_000_000, 100, _MONDRIAN),
}


def make(name: str, rows: int, directory: Path) -> None:
    """Write the source, the file of a hierarchy if there is one, and the policy."""
    wanted = INPUTS[name]
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY ({wanted.select(rows)}) TO '{directory / 'source.parquet'}' (FORMAT parquet)")
    zips = (f"{line:05d}" for line in range(_LINES))
    lines = (f"{z};{z[:4]}*;{z[:3]}**;{z[:2]}***;{z[0]}****;*\n" for z in zips)
    (directory / "zip.csv").write_text("".join(lines))
    policy = {
        "source": {"file": str(directory / "source.parquet")},
        "release": {"file": str(directory / "released.parquet")},
        "catalog": {"url": f"duckdb:///{directory / 'catalog.duckdb'}"},
        "attributes": wanted.attributes,
        "privacy": [{"model": "k-anonymity", "k": wanted.k}],
        "algorithm": wanted.algorithm,
    }
    (directory / "policy.yml").write_text(json.dumps(policy))


def measure(directory: Path, memory_limit: str | None) -> dict[str, Any]:
    """Run the command; its own figures, and the seconds, processor time and peak of memory (GB) of its process."""
    command = [Path(sys.executable).with_name("sqlanon"), "run", "policy.yml", "--replace", "--json"]
    command += ["--memory-limit", memory_limit] if memory_limit else []
    clock = time.perf_counter()
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE)
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(told.decode())
    figures: dict[str, Any] = json.loads(told)
    figures["command"] = time.perf_counter() - clock
    figures["processor"] = usage.ru_utime + usage.ru_stime
    figures["memory"] = usage.ru_maxrss / 1e6
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(INPUTS), default=list(INPUTS))
    parser.add_argument("--rows", type=int, help="of every table, in place of its own number")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--memory-limit")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores; seconds, GB")
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as made:
        for name in arguments.only:
            (directory := Path(made) / name).mkdir()
            make(name, arguments.rows or INPUTS[name].rows, directory)
            for _ in range(arguments.repeat):
                figures = measure(directory, arguments.memory_limit)
                phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in figures["seconds"].items())
                print(
                    f"{name:<9} command {figures['command']:6.2f}, processor {figures['processor']:6.2f}, "
                    f"memory {figures['memory']:.2f}; {phases}; classes {figures['release']['classes']:,}, "
                    f"release {(directory / 'released.parquet').stat().st_size / 1e6:.1f} MB"
                )


if __name__ == "__main__":
    main()
