"""sqlanon beside two independent programs: pycanon measures how anonymous a table is, anjana anonymizes it.

python benchmarks/peers.py                  figures of random tables and of Adult; releases of Adult
python benchmarks/peers.py --repeat 3       each release made three times: seconds are medians

Both want certain versions of packages: `pip install pycanon==1.3.5 anjana==1.2.3 .` in an environment of its own.
`SQLANON_TEST_DATA` says where adult/ is. anjana's seconds are of its search alone, on a data frame in memory, sqlanon's
of the whole run, from a CSV file to a verified Parquet file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from adult import DATA, PAPER_ORDER, create_workload_table
from anjana.anonymity import k_anonymity
from anjana.anonymity.utils.utils import get_transformation
from peer_figures import Asked, Figure, by_pycanon, by_sqlanon, certainty_penalty, compare, judged, random_tables, same

from sqlanon import KAnonymity, build_policy, check_table, run

ALGORITHMS: dict[str, dict[str, Any]] = {
    "datafly": {"name": "datafly"},
    "optimal, loss": {"name": "optimal", "quality": "loss"},
    "optimal, discernibility": {"name": "optimal", "quality": "discernibility"},
    "incognito, loss": {"name": "incognito", "quality": "loss"},
    "mondrian": {"name": "mondrian"},
}
QUASI = ("age", "sex", "race", "marital-status", "native-country", "workclass")
"""The quasi-identifiers of the tables whose figures are compared."""
SENSITIVE = ("occupation", "hours-per-week")


def hierarchy(name: str) -> str:
    """The file of an attribute's hierarchy."""
    return str(DATA / f"adult_hierarchy_{name}.csv")


def attributes(quasi: tuple[str, ...], **others: str) -> dict[str, Any]:
    """The attributes of a policy: quasi-identifiers with their hierarchies, and the roles of others."""
    found: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": {"csv": hierarchy(name)}} for name in quasi
    }
    return found | {name: {"role": role} for name, role in others.items()}


def timed(work: Callable[[], Any], times: int) -> tuple[Any, float, float]:
    """The result, and the medians of wall-clock and of processor seconds."""
    taken = []
    for _ in range(times):
        clock, cpu = time.perf_counter(), time.process_time()
        found = work()
        taken.append((time.perf_counter() - clock, time.process_time() - cpu))
    wall, processor = zip(*taken, strict=True)
    return found, statistics.median(wall), statistics.median(processor)


def document(url: str, release: str, models: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A policy over the table `adult` of a database."""
    unused = dict.fromkeys(("education-num", "relationship", "salary-class"), "identifier")
    return {
        "source": {"url": url, "table": "adult"},
        "release": {"table": release},
        "attributes": attributes(QUASI, **dict.fromkeys(SENSITIVE, "sensitive"), **unused),
        "privacy": models,
        **more,
    }


def adult_tables(directory: Path) -> Iterator[Asked]:
    """Adult by five quasi-identifiers, and releases of it by six."""
    path = directory / "adult.duckdb"
    url = f"duckdb:///{path}"
    with duckdb.connect(str(path)) as connection:
        connection.execute(create_workload_table("adult"))
    made = {"adult": QUASI[1:]}
    for name, k in (("optimal", 10), ("mondrian", 10), ("mondrian", 100)):
        wanted = [{"model": "k-anonymity", "k": k}]
        run(build_policy(document(url, f"{name}_{k}", wanted, algorithm={"name": name}, suppression=0.02)))
        made[f"{name}_{k}"] = QUASI
    for table, quasi in made.items():
        with duckdb.connect(str(path), read_only=True) as connection:
            frame = connection.execute(f"FROM {table}").df()
        yield Asked(frame, url, table, list(quasi), *SENSITIVE)


def command(*words: str) -> list[float | None]:
    """The worst measures that `sqlanon verify … --json` prints."""
    program = [sys.executable, "-c", "from sqlanon.cli import main; main()", "verify", *words, "--json"]
    printed = subprocess.run(program, check=False, capture_output=True, text=True)
    found = json.loads(printed.stdout)
    assert printed.returncode == (0 if found["satisfied"] else 3), printed.stderr
    return [model["worst"] for model in found["models"]]


def by_command(asked: Asked, directory: Path) -> dict[str, Figure]:
    """The figures of one release by the command with a policy of all models, which must agree with its options'."""
    text = {"attribute": asked.text}
    models = [
        {"model": "k-anonymity", "k": 10},
        {"model": "distinct-l-diversity", **text, "l": 2},
        {"model": "t-closeness", **text, "t": 0.5},
        {"model": "t-closeness", "attribute": asked.number, "t": 0.5, "distance": "ordered"},
        {"model": "entropy-l-diversity", **text, "l": 2},
        {"model": "recursive-l-diversity", **text, "c": 2, "l": 2},
    ]
    path = directory / "policy.yml"
    path.write_text(json.dumps(document(asked.url, asked.table, models)))
    measured = command(str(path))
    about = (asked.url, asked.table, "--qi", ",".join(asked.quasi))
    options = command(*about, "--k", "10", "--l", "2", "--t", "0.5", "--sensitive", asked.text)
    options += command(*about, "--t", "0.5", "--distance", "ordered", "--sensitive", asked.number)
    options += command(*about, "--l", "2", "--entropy", "--sensitive", asked.text)
    options += command(*about, "--l", "2", "--c", "2", "--sensitive", asked.text)
    assert options == measured
    return dict(zip(("k", "distinct l", "t, equal", "t, ordered"), measured, strict=False))


def show_adult(directory: Path) -> None:
    """The figures of Adult by both programs, and their seconds."""
    for asked in adult_tables(directory):
        theirs, theirs_taken, _ = timed(lambda asked=asked: by_pycanon(asked), 1)
        ours, taken, _ = timed(lambda asked=asked: by_sqlanon(asked), 3)
        if asked.table != "adult":
            assert all(ours[name] == figure for name, figure in by_command(asked, directory).items())
        print(
            f"\n{asked.table}, {len(asked.frame):,} rows, {asked.frame.groupby(asked.quasi).ngroups:,} classes;",
            end=" ",
        )
        print(f"pycanon {theirs_taken:.2f} s, sqlanon {taken:.2f} s; judged rightly: {judged(asked, ours)}\n")
        print("| figure | pycanon | sqlanon | |\n| --- | ---: | ---: | --- |")
        for name, figure in ours.items():
            print(f"| {name} | {theirs[name]} | {figure} | {'' if same(theirs[name], figure) else 'differs'} |")


def release(algorithm: dict[str, Any], k: int, suppression: float, path: Path, levels: Any = None) -> dict[str, Any]:
    """Run a policy to a Parquet file, and return the run's result."""
    wanted = {
        "source": {"file": str(DATA / "adult.csv")},
        "release": {"file": str(path)},
        "catalog": {"url": "duckdb:///:memory:"},
        "attributes": attributes(PAPER_ORDER),
        "privacy": [{"model": "k-anonymity", "k": k}],
        "algorithm": algorithm,
        "suppression": suppression,
    }
    return run(build_policy(wanted), replace=True, levels=levels).as_json()


def read(file: str, header: int | None) -> pd.DataFrame:
    """A file as anjana wants it: all text."""
    return pd.read_csv(file, sep=";", header=header, dtype=str, keep_default_na=False)


def tell(k: int, who: str, seconds: tuple[float, float], path: Path, gcp: float, rows: int) -> None:
    """A line about a release, measured on its file."""
    found = check_table(None, str(path), PAPER_ORDER, [KAnonymity(k)])
    assert found.satisfied
    classes, omitted = found.statistics, rows - found.statistics.rows
    print(f"| {k} | {who} | {seconds[0]:.1f} | {seconds[1]:.1f} | {omitted:,} | {classes.classes:,} |", end=" ")
    print(f"{classes.c_avg(k):,.1f} | {classes.discernibility(omitted) / 1e6:,.1f} | {gcp:.3f} |", flush=True)


def show_anjana(k: int, suppression: float, repeat: int, directory: Path) -> None:
    """Its release, measured by sqlanon: at the levels that it chose, sqlanon releases the same table."""
    names, path, again = list(PAPER_ORDER), directory / "anjana.parquet", directory / "again.parquet"
    source, files = read(str(DATA / "adult.csv"), 0), {name: read(hierarchy(name), None) for name in PAPER_ORDER}
    hierarchies = {name: {level: file[level] for level in file} for name, file in files.items()}
    made, *seconds = timed(lambda: k_anonymity(source, [], names, k, 100 * suppression, hierarchies), repeat)
    shown = made[names]  # without the column `index`: the places of the rows in the source
    levels = dict(zip(names, get_transformation(shown, names, hierarchies), strict=True))
    gcp = release(ALGORITHMS["datafly"], k, suppression, again, levels)["metrics"]["gcp"]
    assert same(gcp, certainty_penalty(shown, hierarchies, len(source)))
    with duckdb.connect() as connection:
        connection.register("shown", shown)
        connection.execute(f"COPY shown TO '{path}'")
        columns = ", ".join(f'"{name}"' for name in names)
        one, other = (f"SELECT {columns} FROM '{file}'" for file in (path, again))
        assert not connection.execute(f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})").fetchall()
    tell(k, "anjana", (seconds[0], seconds[1]), path, gcp, len(source))


def show_releases(suppression: float, repeat: int, directory: Path) -> None:
    """Releases of Adult with nine quasi-identifiers, by both programs."""
    print(f"\nAt most {suppression:.0%} of the rows suppressed\n")
    print("| k | search | s | CPU s | suppressed | classes | C_AVG | discernibility, millions | GCP |")
    print("| ---: | --- " + "| ---: " * 7 + "|")
    for k in (2, 5, 10, 50):
        show_anjana(k, suppression, repeat, directory)
        for who, algorithm in ALGORITHMS.items():
            path = directory / "ours.parquet"
            found, *seconds = timed(lambda a=algorithm, k=k, p=path: release(a, k, suppression, p), repeat)
            tell(k, who, (seconds[0], seconds[1]), path, found["metrics"]["gcp"], found["source"]["rows"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200, help="random tables, and as many with NULLs")
    parser.add_argument("--repeat", type=int, default=1, help="how often each release is made")
    arguments = parser.parse_args()
    packages = ("sqlanon", "pycanon", "anjana", "duckdb", "numpy", "pandas")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {versions}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as made:
        directory = Path(made)
        compare("Random tables", random_tables(directory, arguments.tables, nulls=False))
        compare("Random tables with NULLs", random_tables(directory, arguments.tables, nulls=True))
        show_adult(directory)
        for suppression in (0.02, 0.0):
            show_releases(suppression, arguments.repeat, directory)


if __name__ == "__main__":
    main()
