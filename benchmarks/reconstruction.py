"""Reconstruction of distributions from noise on DuckDB: how far from the truth, and how long it takes.

python benchmarks/reconstruction.py --rows 100000 --repeat 5
python benchmarks/reconstruction.py --rows 10000000 --times
python benchmarks/reconstruction.py --rows 10000000 --estimates

The distance is the total variation, half the sum of absolute differences of shares, from the true distribution: of
whole numbers from 0 to 99 in 50 bins with gaussian noise of deviation 20, and of ten values with responses of epsilon
1. Times are of the randomizing of four columns, and of one estimate over 100 bins, each beside one statement of the
database. With --estimates the release is written by plain SQL, so that estimates alone take time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from sqlanon import reconstruct, run
from sqlanon.methods.randomization.reconstruction.result import ReconstructedShare
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy

_T = TypeVar("_T")
DEVIATION, EPSILON, BINS = 20, 1.0, 50
JOBS = [f"job {number}" for number in range(10)]
NUMBERS = {
    "two hills": "CASE WHEN i % 3 = 0 THEN 25 + 7 * z ELSE 65 + 10 * z END",
    "plateau": "20 + 50 * u",
    "slope": "-25 * ln(1 - u)",
}
"""Expressions over a uniform number `u` and a normal one `z`, as shapes of distributions between 0 and 100."""


def main() -> None:
    """Measure the distances, or the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--estimates", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory) / "people.duckdb"
        _create(database, arguments.rows)
        if arguments.estimates:
            _estimates(database, arguments.repeat)
        elif arguments.times:
            _times(database, arguments.repeat)
        else:
            _distances(database, arguments.repeat)


def _create(database: Path, rows: int) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute("SELECT setseed(0.5)")
        columns = ", ".join(
            f'CAST(least(99, greatest(0, floor({shape}))) AS INTEGER) AS "{name}"' for name, shape in NUMBERS.items()
        )
        normal = "sqrt(-2 * ln(1 - random())) * cos(6.283185307 * random())"
        drawn = f"SELECT i, random() AS u, {normal} AS z FROM range({rows}) AS r(i)"
        job = "'job ' || CAST(least(9, floor(-2.5 * ln(1 - u))) AS INTEGER)"
        connection.execute(f"CREATE TABLE people AS SELECT {columns}, {job} AS job FROM ({drawn})")


def _policy(database: Path) -> Policy:
    noise: dict[str, Any] = {"noise": "gaussian", "deviation": DEVIATION, "range": [0, 99]}
    columns = {**dict.fromkeys(NUMBERS, noise), "job": {"response": "keep", "epsilon": EPSILON, "values": JOBS}}
    return build_policy(
        {
            "source": {"url": f"duckdb:///{database}", "table": "people"},
            "release": {"table": "noisy"},
            "attributes": {name: {"role": "quasi-identifier"} for name in columns},
            "privacy": [{"model": "randomization"}],
            "algorithm": {"name": "randomize", "columns": columns},
        }
    )


def _distances(database: Path, repeat: int) -> None:
    """Print the median and the greatest distance of several releases, each drawn anew."""
    policy, found = _policy(database), {name: ([], []) for name in (*NUMBERS, "job")}
    for _ in range(repeat):
        run(policy, replace=True)
        for name in found:
            shares = reconstruct(policy, name, bins=BINS).groups[0].shares
            true = _true(database, name, shares)
            found[name][0].append(_variation([one.share for one in shares], true))
            found[name][1].append(_variation([one.released for one in shares], true))
    for name, (estimated, released) in found.items():
        print(
            f"{name}: reconstructed {statistics.median(estimated):.3f} (at most {max(estimated):.3f}),"
            f" released {statistics.median(released):.3f}"
        )


def _true(database: Path, name: str, shares: tuple[ReconstructedShare, ...]) -> list[float]:
    with duckdb.connect(str(database)) as connection:
        counted = connection.execute(f'SELECT "{name}", count(*) FROM people GROUP BY ALL').fetchall()
    rows = sum(count for _, count in counted)
    return [sum(count for value, count in counted if _lies_in(value, share)) / rows for share in shares]


def _lies_in(value: Any, share: ReconstructedShare) -> bool:
    if share.low is None or share.high is None:
        return bool(value == share.value)
    return share.low <= value < share.high


def _variation(one: list[float], other: list[float]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2


def _times(database: Path, repeat: int) -> None:
    policy = _policy(database)
    for _ in range(repeat):
        with duckdb.connect(str(database)) as connection:
            copied = _timed(lambda: connection.execute("CREATE OR REPLACE TABLE copied AS SELECT * FROM people"))
            grouped = _timed(lambda: connection.execute('SELECT "slope", count(*) FROM people GROUP BY ALL').fetchall())
        randomized = _timed(lambda: run(policy, replace=True))
        estimated = _timed(lambda: reconstruct(policy, "slope", bins=100))
        print(
            f"CREATE TABLE AS {copied:.1f} s, randomized {randomized:.1f} s = {randomized / copied:.1f} x;"
            f" GROUP BY {grouped:.2f} s, estimate {estimated:.2f} s"
        )


def _estimates(database: Path, repeat: int) -> None:
    """Print the medians of a GROUP BY of the released column, and of an estimate over 100 bins."""
    noise = f"sqrt(-2 * ln(1 - random())) * cos(6.283185307 * random()) * {DEVIATION}"
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            f'CREATE TABLE noisy AS SELECT CAST(round("slope" + {noise}) AS INTEGER) AS "slope" FROM people'
        )
        facts = ", ".join(
            f"('slope', 'gaussian', '{parameter}', NULL, NULL, {amount:.1f})"
            for parameter, amount in (("deviation", DEVIATION), ("unit", 1))
        )
        names = "attribute, method, parameter, true_value, released_value, amount"
        connection.execute(f"CREATE TABLE noisy_noise AS SELECT * FROM (VALUES {facts}) AS v({names})")
    policy, grouped, estimated = _policy(database), [], []
    for _ in range(repeat):
        with duckdb.connect(str(database)) as connection:
            grouped.append(_timed(connection.sql('SELECT "slope", count(*) FROM noisy GROUP BY ALL').fetchall))
        estimated.append(_timed(lambda: reconstruct(policy, "slope", bins=100)))
    print(f"GROUP BY {statistics.median(grouped):.2f} s, estimate {statistics.median(estimated):.2f} s")


def _timed(work: Callable[[], _T]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
