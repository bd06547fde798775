"""Whole commands as people type them: wall time and processor time of the process, and the phases it tells of.

python benchmarks/commands.py                                  every command, three rounds
python benchmarks/commands.py --only check adult --rounds 9
python benchmarks/commands.py --program .venv/bin/sqlanon --program ../before/.venv/bin/sqlanon

`runs`, `check` and `small` are about a table of 1,000 rows in a DuckDB file; `adult` is the census table of 30,162 rows
(a file of text, with hierarchies in files) at k = 5 and 5 % left out; `census-5`, `census-5M` and `orders` are those of
full_domain.py, from Parquet to Parquet. Rounds go through all programs in turn, so that a slow minute of the machine
meets all of them alike; medians are shown, and the least processor time. `rest` is the wall time that no phase holds.
Compiled modules are kept (PYTHONDONTWRITEBYTECODE is unset), as an installed program has them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from adult import DATA
from full_domain import SCENARIOS, SENSITIVE, make

_SMALL = "SELECT i AS id, 18 + hash(i) % 60 AS age, 10000 + hash(i, 1) % 100 AS zip, hash(i, 2) % 4 AS disease"
_PHASES = ("start", "plan", "encode", "search", "recode", "verify", "publish", "finish")


@dataclass
class Spent:
    """Seconds of the calls of one command by one program."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)

    def line(self) -> str:
        """Medians, and the least processor time."""
        told = [phases for phases in self.phases if phases]
        shown = "".join(f"{statistics.median(one[name] for one in told):>8.2f}" for name in _PHASES) if told else ""
        pairs = zip(self.wall, self.phases, strict=True)
        rest = statistics.median(wall - phases["total"] for wall, phases in pairs) if told else None
        return (
            f"{statistics.median(self.wall):>8.2f}{statistics.median(self.processor):>8.2f}{min(self.processor):>8.2f}"
            f"{shown}{'' if rest is None else f'{rest:>8.2f}'}"
        )


def _roles(quasi_identifiers: dict[str, Any], sensitive: str) -> dict[str, Any]:
    attributes = {
        name: {"role": "quasi-identifier", **({} if hierarchy is None else {"hierarchy": hierarchy})}
        for name, hierarchy in quasi_identifiers.items()
    }
    return attributes | {sensitive: {"role": "sensitive"}}


def _small(directory: Path) -> dict[str, Any]:
    with duckdb.connect(str(directory / "small.duckdb")) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE small AS {_SMALL} FROM range(1000) AS r(i)")
    return {
        "source": {"url": f"duckdb:///{directory}/small.duckdb", "table": "small"},
        "release": {"table": "small_released"},
        "attributes": _roles({"age": None, "zip": None}, "disease") | {"id": {"role": "identifier"}},
        "privacy": [{"model": "k-anonymity", "k": 5}],
    }


def _adult(directory: Path) -> dict[str, Any]:
    names = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
    hierarchies = {name: {"csv": str(DATA / f"adult_hierarchy_{name}.csv")} for name in names}
    return {
        "source": {"file": str(DATA / "adult.csv")},
        "release": {"file": str(directory / "adult_released.csv")},
        "attributes": _roles(hierarchies, "salary-class"),
        "privacy": [{"model": "k-anonymity", "k": 5}],
        "algorithm": {"name": "optimal"},
        "suppression": 0.05,
    }


def _scenario(name: str, directory: Path, inputs: Path) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    return {
        "source": make(name, inputs, None),
        "release": {"file": str(directory / f"{name}_released.parquet")},
        "catalog": {"url": f"duckdb:///{directory}/{name}.duckdb"},
        "attributes": _roles({column.name: column.hierarchy for column in scenario.columns}, SENSITIVE.name),
        "privacy": [{"model": "k-anonymity", "k": scenario.k}],
        "algorithm": {"name": "optimal"},
        "suppression": scenario.suppression,
    }


def _policy(name: str, directory: Path, inputs: Path) -> dict[str, Any]:
    if name in SCENARIOS:
        return _scenario(name, directory, inputs)
    return _adult(directory) if name == "adult" else _small(directory)


COMMANDS = {
    "runs": ("runs", "--policy"),
    "check": ("check",),
    "small": ("run", "--replace", "--json"),
    "adult": ("run", "--replace", "--json"),
    "census-5": ("run", "--replace", "--json"),
    "census-5M": ("run", "--replace", "--json"),
    "orders": ("run", "--replace", "--json"),
}


def call(program: str, arguments: list[str]) -> tuple[float, float, dict[str, float]]:
    """Wall time and processor time of one process, and what it says of its phases (empty where it says nothing)."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{program} {' '.join(arguments)}:\n{done.stderr}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, spent, json.loads(done.stdout)["seconds"] if "--json" in arguments else {}


def measure(name: str, programs: list[str], rounds: int, inputs: Path) -> dict[str, Spent]:
    """Measure a command in each program; a first round, which compiles and fills caches, is not counted."""
    spent = {program: Spent() for program in programs}
    with tempfile.TemporaryDirectory(dir=inputs) as made:
        path = {}
        for place, program in enumerate(programs):
            directory = Path(made) / str(place)
            directory.mkdir()
            path[program] = str(directory / "policy.yml")
            Path(path[program]).write_text(json.dumps(_policy(name, directory, inputs)))
            if name == "runs":
                call(program, ["run", path[program]])
        for number in range(rounds + 1):
            for program in programs if number % 2 else reversed(programs):
                wall, processor, phases = call(program, [*COMMANDS[name], path[program]])
                if number:
                    spent[program].wall.append(wall)
                    spent[program].processor.append(processor)
                    spent[program].phases.append(phases)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", action="append", help="a sqlanon to call; this checkout's if none is given")
    arguments = parser.parse_args()
    programs = arguments.program or [str(Path(sys.executable).parent / "sqlanon")]
    print(f"{platform.machine()}, {os.cpu_count()} cores; seconds: medians of {arguments.rounds}")
    heads = ("wall", "cpu", "least", *_PHASES, "rest")
    print(f"{'command':<12}{'program':<10}" + "".join(f"{head:>8}" for head in heads))
    chosen = os.environ.get("SQLANON_BENCHMARK_DIRECTORY")
    with tempfile.TemporaryDirectory() as made:
        for name in arguments.only:
            for place, spent in enumerate(measure(name, programs, arguments.rounds, Path(chosen or made)).values(), 1):
                print(f"{name:<12}{place:<10}{spent.line()}", flush=True)


if __name__ == "__main__":
    main()
