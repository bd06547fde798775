"""Reconstruction against true distributions that are known, and rounds against the same rounds in Python."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest

from sqlanon.api.reconstructing import reconstruct
from sqlanon.cli.reconstruct import reconstruction_csv
from sqlanon.errors import PolicyError
from sqlanon.measures.reconstruction.bins import Bins
from sqlanon.measures.reconstruction.estimating import estimate, invert
from sqlanon.models.randomization.changes import Response
from sqlanon.policy import Policy
from sqlanon.report.drawing.distribution import draw_reconstruction
from sqlanon.results.reconstruction import Reconstruction
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import OPTIONS, Database

VALUES = tuple("abcdefghij")


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Total variation."""
    return sum(abs(left - right) for left, right in zip(one, other, strict=True)) / 2


def rounds_in_python(
    counts: Mapping[int, int], places: int, cells: Sequence[tuple[int, int, float]], rounds: int
) -> list[float]:
    """Make the Bayes update so many times."""
    shares, total = [1.0 / places] * places, sum(counts.values())
    for _ in range(rounds):
        likelihood: Counter[int] = Counter()
        for place, shown, probability in cells:
            likelihood[shown] += shares[place] * probability  # type: ignore[assignment]
        factors = [0.0] * places
        for place, shown, probability in cells:
            factors[place] += counts.get(shown, 0) / total * probability / likelihood[shown]
        shares = [share * factor for share, factor in zip(shares, factors, strict=True)]
    return shares


@pytest.mark.parametrize("seed", range(3))
def test_rounds_are_those_of_plain_python(seed: int) -> None:
    draw = random.Random(seed)
    places, shown = 5, 8
    matrix = [[draw.random() for _ in range(shown)] for _ in range(places)]
    cells = [(a, b, p / sum(row)) for a, row in enumerate(matrix) for b, p in enumerate(row)]
    groups = [{b: draw.randrange(1, 500) for b in range(shown)} for _ in range(3)]
    for counts, made in zip(groups, estimate(groups, range(places), cells), strict=True):
        expected = rounds_in_python(counts, places, cells, made.rounds)
        assert [made.shares[place] for place in range(places)] == pytest.approx(expected)
        assert sum(made.shares.values()) == pytest.approx(1)


def test_the_inverse_matrix_gives_back_the_shares() -> None:
    change = Response("x", VALUES[:4], 1.5)
    true = [0.5, 0.3, 0.2, 0.0]
    shown = [sum(t * row[b] for t, row in zip(true, change.matrix, strict=True)) for b in range(4)]
    shares = invert({place: round(share * 10**9) for place, share in enumerate(shown)}, change.matrix)
    assert [shares[place] for place in range(4)] == pytest.approx(true, abs=1e-6)


def test_bins_of_whole_numbers_hold_whole_numbers() -> None:
    bins = Bins.over(0, 99, 50, 1.0)
    assert bins.count == 50
    assert [point for place in range(50) for point in bins.points(place)] == list(range(100))
    assert bins.edges(0) == (-0.5, 1.5)
    assert Bins.over(1, 3, 50, 1.0).count == 3


def reconstructed(database: Database, policy: Policy, column: str, **more: Any) -> Reconstruction:
    """Reconstruct with no other session of a DuckDB file open."""
    if database.engine == "postgres":
        return reconstruct(policy, column, options=OPTIONS, **more)
    database._connection.close()
    try:
        return reconstruct(policy, column, options=OPTIONS, **more)
    finally:
        database._connection = duckdb.connect(database.url.removeprefix("duckdb:///"))


def two_humps(database: Database, rows: int) -> str:
    """A table of two humps of numbers from 0 to 99."""
    parts = [f"CAST(hash(i + {place}) % 1000 AS INTEGER)" for place in (0, 7, 31)]
    value = f"CASE WHEN i % 10 < 6 THEN ({' + '.join(parts)}) / 60 ELSE 52 + ({parts[0]} + {parts[1]}) / 45 END"
    database.sql(
        f"CREATE TABLE humps AS SELECT CAST(floor({value}) AS INTEGER) AS x, CAST(i % 2 AS VARCHAR) AS side"
        f" FROM range({rows}) AS t(i)"
    )
    return "humps"


@pytest.mark.parametrize("method", ["em", "bayes"])
def test_a_distribution_comes_back_through_strong_noise(database: Database, method: Any) -> None:
    """Of 100,000 rows, a range of 100 and a deviation of 20 the total variation is 0.20 at most."""
    if database.engine == "postgres":
        pytest.skip("both engines release the same rows, and rounds are made in DuckDB")
    table = two_humps(database, 100_000)
    changes = {"x": {"noise": "gaussian", "deviation": 20, "range": [0, 99]}}
    policy = randomized_policy(database, table, {"x": "quasi-identifier", "side": "insensitive"}, changes)
    randomize(policy, replace=True)
    true = dict(database.sql(f"SELECT x // 2, count(*) / 100000.0 FROM {table} GROUP BY x // 2"))
    result = reconstructed(database, policy, "x", method=method)
    (group,) = result.groups
    originals = [float(true.get(place, 0)) for place in range(50)]
    near = distance([share.share for share in group.shares], originals)
    assert near <= 0.20
    assert near < distance([share.released for share in group.shares], originals)
    assert group.ended in ("settled", "held-out")
    drawn = draw_reconstruction(result, originals)
    assert drawn.startswith("<svg")
    rows = list(csv.reader(reconstruction_csv(result).splitlines()))
    assert rows[0] == ["low", "high", "share", "released_share"]
    assert len(rows) == 51


@pytest.mark.parametrize("method", ["em", "inversion"])
def test_responses_come_back(database: Database, method: Any) -> None:
    """Of 100,000 responses with an epsilon of 1 over 10 values the total variation is 0.03 at most."""
    if database.engine == "postgres":
        pytest.skip("both engines release the same rows, and rounds are made in DuckDB")
    database.sql(
        "CREATE TABLE answers AS SELECT chr(CAST(97 + least(9, (i * i) % 17 % 10) AS INTEGER)) AS job"
        " FROM range(100000) AS t(i)"
    )
    changes = {"job": {"response": "keep", "epsilon": 1, "values": list(VALUES)}}
    policy = randomized_policy(database, "answers", {"job": "sensitive"}, changes)
    randomize(policy)
    true = dict(database.sql("SELECT job, count(*) / 100000.0 FROM answers GROUP BY job"))
    (group,) = reconstructed(database, policy, "job", method=method).groups
    assert distance([one.share for one in group.shares], [float(true.get(value, 0)) for value in VALUES]) <= 0.03


def test_groups_have_distributions_of_their_own(database: Database) -> None:
    rows = [(20 if number % 2 else 60, "right" if number % 2 else "left") for number in range(2000)]
    table = database.create({"x": "INTEGER", "side": "VARCHAR(9)"}, rows)
    changes = {"x": {"noise": "uniform", "half-width": 15, "range": [0, 80]}}
    policy = randomized_policy(database, table, {"x": "quasi-identifier", "side": "insensitive"}, changes)
    randomize(policy)
    result = reconstructed(database, policy, "x", by="side", bins=9)
    assert [group.group for group in result.groups] == ["left", "right"]
    means = [sum((s.low + s.high) / 2 * s.share for s in g.shares) for g in result.groups if g.shares]  # type: ignore[operator]
    assert means == pytest.approx([60, 20], abs=5)
    for wrong, problem in (({"column": "side"}, "was not randomized"), ({"column": "x", "by": "x"}, "randomized too")):
        with pytest.raises(PolicyError, match=problem):
            reconstructed(database, policy, **wrong)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="inversion is for categories"):
        reconstructed(database, policy, "x", method="inversion")
    database.sql(f"DROP TABLE {table}_r_noise")
    with pytest.raises(PolicyError, match="which tells what was added"):
        reconstructed(database, policy, "x")
