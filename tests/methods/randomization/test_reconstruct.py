"""Rounds against the same rounds in Python, the inverse matrix, bins of numbers, and the distributions of releases."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlanon import measure_noise_filter, reconstruct
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import EngineError, PolicyError
from sqlanon.methods.randomization.audit import audit_randomized
from sqlanon.methods.randomization.reconstruct_command import reconstruction_csv
from sqlanon.methods.randomization.reconstruction.bins import Bins
from sqlanon.methods.randomization.reconstruction.estimating import estimate, invert
from sqlanon.methods.randomization.reconstruction.result import ReconstructedGroup, ReconstructedShare, Reconstruction
from sqlanon.models.randomization.changes import Response
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.sql import Relation
from tests.cli.support import call_main, execute, query
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import open_database

pytestmark = pytest.mark.slow

VALUES = ("a", "b", "c", "d")


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
    change = Response("x", VALUES, 1.5)
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


ROWS = 3000
POLICY: dict[str, Any] = {
    "attributes": {
        "Age (years)": {"role": "quasi-identifier"},
        "job": {"role": "quasi-identifier"},
        "town": {"role": "insensitive"},
    },
    "privacy": [{"model": "randomization"}],
    "algorithm": {
        "name": "randomize",
        "columns": {
            "Age (years)": {"noise": "gaussian", "deviation": 8, "range": [0, 99]},
            "job": {"response": "keep", "epsilon": 2.0, "values": list(VALUES)},
        },
    },
}


def people() -> list[tuple[Any, ...]]:
    """Rows of which ages depend on the town."""
    draw = random.Random(5)
    towns = [draw.choice(["Ulm", "Linz"]) for _ in range(ROWS)]
    hills = {"Ulm": 30, "Linz": 70}
    return [
        (min(99, max(0, round(draw.gauss(hills[town], 6)))), draw.choices(VALUES, [6, 3, 1, 0])[0], town)
        for town in towns
    ]


def variation(shares: Sequence[ReconstructedShare], values: Sequence[Any]) -> float:
    """The total variation of estimated shares from those of the true values."""

    def lies_in(value: Any, share: ReconstructedShare) -> bool:
        return value == share.value if share.low is None else share.low <= value < (share.high or 0.0)

    true = [sum(lies_in(value, share) for value in values) / len(values) for share in shares]
    assert sum(true) == pytest.approx(1)
    return sum(abs(one.share - share) for one, share in zip(shares, true, strict=True)) / 2


def test_a_release_gives_back_the_distributions_of_its_source(
    database_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of numbers by the town and of categories; from the release and what it says was added, alone."""
    rows = people()
    with open_database(database_url) as database:
        table = database.create({"Age (years)": "INTEGER", "job": "VARCHAR(9)", "town": "VARCHAR(9)"}, rows)
        parts = {key: POLICY[key] for key in ("privacy", "algorithm")}
        policy = database.policy(table, POLICY["attributes"], **parts)
    randomize(policy)
    with open_database(database_url) as database:
        database.sql(f"DROP TABLE {table}")
    ages = reconstruct(policy, "Age (years)", by="town", bins=20, table='"The ages"')
    assert (ages.method, [group.group for group in ages.groups]) == ("em", ["Linz", "Ulm"])
    for group in ages.groups:
        of_town = [age for age, _, town in rows if town == group.group]
        assert group.rows == len(of_town)
        assert variation(group.shares, of_town) < 0.2
    jobs = reconstruct(policy, "job", table="jobs")
    assert query(database_url, 'SELECT * FROM "The ages" ORDER BY town, low') == list(ages.rows())
    assert query(database_url, "SELECT value, share, released_share FROM jobs ORDER BY 1") == list(jobs.rows())
    with pytest.raises(PolicyError, match="exists, and --table replaces nothing"):
        reconstruct(policy, "job", by="town", table="jobs")
    assert len(query(database_url, "SELECT * FROM jobs")) == len(VALUES)
    assert jobs.method == "inversion"
    assert variation(jobs.groups[0].shares, [job for _, job, _ in rows]) < 0.08
    assert reconstruct(policy, "job", method="em").groups[0].rounds
    with pytest.raises(PolicyError, match="bayes is for numbers"):
        reconstruct(policy, "job", method="bayes")
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    code, printed, _ = call_main(capsys, "reconstruct", file, "--column", "job", "--json")
    assert (code, json.loads(printed)["method"]) == (0, "inversion")
    code, printed, notes = call_main(capsys, "reconstruct", file, "--column", "job", "--table", "once_more")
    assert (code, printed) == (0, "")
    assert "Wrote once_more." in notes
    assert len(query(database_url, "SELECT * FROM once_more")) == len(VALUES)


def small_release(url: str, **columns: str) -> Policy:
    """A release of a randomized column `job`, beside others that are released as they are."""
    with open_database(url) as database:
        rows = [(VALUES[n % 4], *["x"] * len(columns)) for n in range(200)]
        table = database.create({"job": "VARCHAR(9)", **columns}, rows)
        response = {"job": {"response": "keep", "epsilon": 2.0, "values": list(VALUES)}}
        policy = randomized_policy(
            database, table, {"job": "sensitive", **dict.fromkeys(columns, "insensitive")}, response
        )
    randomize(policy)
    return policy


def test_a_table_that_can_not_be_written_leaves_nothing(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = small_release(database_url, Low="VARCHAR(9)")
    for match, given in {
        "'Low' has the name of a column": {"by": "Low", "table": "new_one"},
        "There is no schema": {"table": "nowhere.new_one"},
    }.items():
        with pytest.raises(PolicyError, match=match):
            reconstruct(policy, "job", **given)

    def fail(_self: Engine, table: Relation, *_: object) -> None:
        if table.name == "new_one":
            raise EngineError("The disk is full.")

    with connect(database_url) as engine:
        monkeypatch.setattr(type(engine), "load", fail)
    with pytest.raises(EngineError, match="full"):
        reconstruct(policy, "job", table="new_one")
    assert not query(database_url, "SELECT 1 FROM information_schema.tables WHERE table_name = 'new_one'")


def test_what_no_distribution_comes_of_is_refused(database_url: str) -> None:
    """A range that is none, or that nothing released came from; a release that was emptied, or holds NULL."""
    with open_database(database_url) as database:
        table = database.create({"age": "INTEGER", "x": "FLOAT8"}, [(n % 9, n / 4) for n in range(150)])
        noise = {name: {"noise": "uniform", "half-width": 3} for name in ("age", "x")}
        policy = randomized_policy(database, table, dict.fromkeys(noise, "quasi-identifier"), noise)
    randomize(policy)
    for range_ in ((0.0, float("inf")), (float("nan"), 9.0), (9.0, 0.0)):
        with pytest.raises(PolicyError, match="two finite numbers"):
            reconstruct(policy, "age", range_=range_)
    with pytest.raises(PolicyError, match="No number in the range becomes"):
        reconstruct(policy, "age", range_=(500.0, 600.0))
    for wrong in ("NaN", "Infinity", "1e30", "1e308", "-1e308"):
        execute(database_url, f"UPDATE {table}_r SET x = CAST('{wrong}' AS FLOAT8) WHERE x > 20 OR x < -20")
        for range_ in (None, (0.0, 40.0)):
            with pytest.raises(PolicyError, match="x is NULL, NaN, infinite or too great in"):
                reconstruct(policy, "x", bins=5, range_=range_)
        with pytest.raises(PolicyError, match="too great a number in a column of"):
            measure_noise_filter(policy)
        assert audit_randomized(policy).checks["values_possible"].violations > 0
    execute(database_url, f"UPDATE {table}_r SET x = 1e8 WHERE x < -20")
    with pytest.raises(PolicyError, match=r"Released numbers of x are in .* bins, .* ask for fewer bins"):
        reconstruct(policy, "x", bins=5, range_=(0.0, 40.0))
    execute(database_url, f"UPDATE {table}_r SET age = NULL WHERE age > 4")
    with pytest.raises(PolicyError, match="age is NULL, NaN, infinite or too great in"):
        reconstruct(policy, "age")
    execute(database_url, f"DELETE FROM {table}_r")
    with pytest.raises(PolicyError, match="holds no numbers in age"):
        reconstruct(policy, "age")


def test_a_changed_table_of_changes_is_refused(database_url: str) -> None:
    """Sizes and units that no noise has: there would be nothing to divide by."""
    with open_database(database_url) as database:
        table = database.create({"age": "INTEGER"}, [(n % 9,) for n in range(50)])
        noise = {"age": {"noise": "laplace", "scale": 3}}
        policy = randomized_policy(database, table, {"age": "quasi-identifier"}, noise)
    randomize(policy)
    for parameter, amount in (("scale", "0"), ("unit", "-1"), ("unit", "CAST('NaN' AS FLOAT8)")):
        execute(database_url, f"UPDATE {table}_r_noise SET amount = {amount} WHERE parameter = '{parameter}'")
        for call in (lambda: reconstruct(policy, "age"), lambda: measure_noise_filter(policy)):
            with pytest.raises(PolicyError, match=f"a {parameter} of age that is no positive number"):
                call()
        execute(database_url, f"UPDATE {table}_r_noise SET amount = 1 WHERE parameter = '{parameter}'")


def test_groups_of_null_and_of_empty_texts_are_two_in_a_file() -> None:
    shares = (ReconstructedShare(1.0, 1.0, "a"),)
    groups = tuple(ReconstructedGroup(group, 1, shares) for group in (None, "", 'x"y'))
    lines = reconstruction_csv(Reconstruction("r", "job", "response", "inversion", "town", groups)).splitlines()
    assert lines[1:] == [",a,1.0,1.0", '"",a,1.0,1.0', '"x""y",a,1.0,1.0']


def test_nobody_else_may_read_the_table(postgres_url: str) -> None:
    """Whatever default privileges give."""
    policy = small_release(postgres_url)
    execute(postgres_url, "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    reconstruct(policy, "job", table="mine")
    execute(postgres_url, "CREATE TABLE seen (n integer)")
    seen = "SELECT has_table_privilege('public', '{}', 'SELECT')"
    assert [query(postgres_url, seen.format(name)) for name in ("mine", "seen")] == [[(False,)], [(True,)]]
