"""Classifiers from reconstructed distributions: rows and splits as by brute force, and the published behaviour."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlanon import Classification, compare_classifiers
from sqlanon.engines import connect
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.bins import Bins
from sqlanon.methods.randomization.reconstruction.classifying.by_class import (
    match_in_order,
    quotas_of_groups,
    share_out,
)
from sqlanon.methods.randomization.reconstruction.classifying.features import Feature
from sqlanon.methods.randomization.reconstruction.classifying.growing import Trees, leaves_of
from sqlanon.models.randomization.changes import Response, Transition
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.work.workspace import TemporaryWorkspace
from tests.cli.support import call_main, execute
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import OPTIONS, Database

pytestmark = pytest.mark.slow


def test_least_rows_get_the_least_originals() -> None:
    """As by sorting the rows, and giving originals in their order."""
    draw = random.Random(1)
    for _ in range(20):
        counts = {shown: draw.randrange(0, 9) for shown in range(-2, 6)}
        shares = {code: draw.choice([0.0, draw.random()]) + (code == 2) for code in range(4)}
        rows, total = sum(counts.values()), sum(shares.values())
        ends = [round(rows * sum(shares[code] for code in range(upto + 1)) / total) for upto in range(4)]
        ordered = [shown for shown in sorted(counts) for _ in range(counts[shown])]
        expected = Counter((shown, next(c for c in range(4) if place < ends[c])) for place, shown in enumerate(ordered))
        made = list(match_in_order(counts, shares))
        assert Counter({(shown, code): upto - above for shown, code, above, upto in made}) == expected
        for shown, quotas in itertools.groupby(sorted(made), key=lambda quota: quota[0]):
            bounds = [quota[2:] for quota in quotas]
            assert [above for above, _ in bounds] == [0, *[upto for _, upto in bounds[:-1]]]
            assert bounds[-1][1] == counts[shown]


def test_categories_get_originals_by_the_rule_of_bayes() -> None:
    change = Response("x", ("a", "b", "c"), 1.0)
    counts, shares = {0: 1000, 2: 500}, {0: 0.7, 1: 0.3, 2: 0.0}
    made = Counter(
        {(shown, code): upto - above for shown, code, above, upto in share_out(counts, shares, change.matrix)}
    )
    for shown, n in counts.items():
        posterior = [shares[code] * change.matrix[code][shown] for code in range(3)]
        for code in range(3):
            assert made[shown, code] == pytest.approx(n * posterior[code] / sum(posterior), abs=1)


def best_score(rows: Sequence[tuple[int, ...]], features: Sequence[Feature], least: int) -> float:
    """The greatest score of all splits of rows (class, code, code, …), by trying all."""
    scores = [0.0]
    for one in features:
        for code in {row[one.number + 1] for row in rows}:
            is_left = [row[one.number + 1] <= code if one.bins else row[one.number + 1] == code for row in rows]
            parts = [
                [row[0] for row, left in zip(rows, is_left, strict=True) if left is side] for side in (True, False)
            ]
            if min(map(len, parts)) >= least:
                scores.append(sum(sum(n * n for n in Counter(part).values()) / len(part) for part in parts))
    return max(scores)


def test_splits_are_the_best_of_all(engine_name: str, request: pytest.FixtureRequest) -> None:
    """At the root of each of several trees of small random tables; rows for testing do not count."""
    url = "duckdb:///:memory:" if engine_name == "duckdb" else request.getfixturevalue("postgres_url")
    draw = random.Random(2)
    number, text = Column("n", "INTEGER", Kind.INTEGER), Column("t", "TEXT", Kind.TEXT)
    features = [Feature(0, number, Bins(0.0, 1.0, 6, 1.0), (), None), Feature(1, text, None, ("a", "b", "c"), None)]
    tables = {root: [(draw.randrange(3), draw.randrange(6), draw.randrange(3)) for _ in range(60)] for root in range(4)}
    with connect(url, OPTIONS) as engine:
        workspace = TemporaryWorkspace(engine)
        training, listed = workspace.table("given"), [one.listed(engine) for one in features]
        engine.run("methods/randomization/classification/create_training", training=training, features=listed)
        rows = [(root, False, *row) for root, of_root in tables.items() for row in of_root]
        noise = [(root, True, *(draw.randrange(3) for _ in range(3))) for root in tables for _ in range(50)]
        engine.load(training, ["node", "is_test", "s", "b0", "b1"], rows + noise)
        trees = Trees(engine, workspace, features, list(tables))
        trees.grow(training)
    for root, node in trees.roots.items():
        assert node.rows == Counter(class_ for class_, *_ in tables[root])
        assert node.children is not None
        score = sum(sum(n * n for n in child.rows.values()) / sum(child.rows.values()) for child in node.children)
        assert score == pytest.approx(best_score(tables[root], features, 5))
        assert sum(sum(leaf.tested.values()) for leaf in leaves_of(node)) == 50
        assert min(sum(leaf.rows.values()) for leaf in leaves_of(node)) >= 5


GROUPS = {
    "F1": lambda age, salary, level: age < 40 or age >= 60,  # noqa: ARG005
    "F2": lambda age, salary, level: low_of(age) <= salary <= low_of(age) + 50_000,  # noqa: ARG005
    "F3": lambda age, salary, level: (
        (level <= 1 and 25_000 <= salary <= 75_000) or (level in (2, 3) and 50_000 <= salary <= 100_000)
        if age < 40
        else (level in (1, 2, 3) and 50_000 <= salary <= 100_000) or (level == 4 and 75_000 <= salary <= 125_000)
        if age < 60
        else (level >= 2 and 50_000 <= salary <= 100_000) or (level == 1 and 25_000 <= salary <= 75_000)
    ),
}
"""Functions of Agrawal and Srikant (SIGMOD 2000, section 5.1) that say which persons are in group A."""


def low_of(age: int) -> int:
    return 50_000 if age < 40 else 75_000 if age < 60 else 25_000


def classified(
    database: Database, groups: Sequence[str], rows: int = 6000
) -> tuple[Policy, str, dict[str, Classification]]:
    """Accuracies for persons with noise of a privacy of 100 %, by the function that gave them their group."""
    draw = random.Random(3)
    people = [(draw.randint(20, 80), draw.randint(20_000, 150_000), draw.randrange(5)) for _ in range(rows)]
    listed = [(*person, *("A" if group(*person) else "B" for group in GROUPS.values())) for person in people]
    noise = {"noise": "gaussian", "interval-privacy": 1.0}
    columns: dict[str, Any] = {
        "age": {**noise, "range": [20, 80]},
        "salary": {**noise, "range": [20_000, 150_000]},
        "level": {"response": "keep", "epsilon": 2.0, "values": list("01234")},
    }
    names = {"age": "INTEGER", "salary": "INTEGER", "level": "INTEGER", **dict.fromkeys(GROUPS, "VARCHAR(1)")}
    table = database.create(names, [])
    for first in range(0, rows, 1000):
        database.sql(f"INSERT INTO {table} VALUES {', '.join(map(str, listed[first : first + 1000]))}")
    policies = {}
    for name in groups:
        roles = dict.fromkeys(columns, "quasi-identifier") | {
            other: "sensitive" if other == name else "identifier" for other in GROUPS
        }
        policies[name] = randomized_policy(database, table, roles, columns, release={"table": f"noisy_{name}"})
    results = {}
    for name, policy in policies.items():
        randomize(policy)
        results[name] = compare_classifiers(policy, name, bins=20, options=OPTIONS)
    return policies[groups[0]], table, results


def test_reconstruction_wins_back_what_noise_takes(
    databases: tuple[Database, Database], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With a privacy of 100 %, as published: far more right than the noise as it is, and F1 near the rows without.

    Both engines come to the same, of which one tries all functions.
    """
    _, _, in_duckdb = classified(databases[0], ["F1"])
    policy, table, results = classified(databases[1], list(GROUPS))
    assert replace(in_duckdb["F1"], release="") == replace(results["F1"], release="")
    for one in results.values():
        assert one.noise_free is not None
        assert (one.tested_on, one.trained + one.tested > 5900) == ("source", True)
        assert one.features == ("age", "salary", "level")
        assert one.noise_free.tree > one.reconstructed.tree - 0.01
        assert one.reconstructed.tree >= one.as_is.tree
    first = results["F1"]
    assert first.noise_free is not None
    assert first.reconstructed.tree > first.noise_free.tree - 0.05
    assert first.reconstructed.tree > first.as_is.tree + 0.1
    assert first.reconstructed.naive_bayes > first.as_is.naive_bayes + 0.1
    with pytest.raises(PolicyError, match="'age' was randomized too"):
        compare_classifiers(policy, "age")
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    assert call_main(capsys, "reconstruct", file, "--classify", "F1", "--by", "level")[0] == 2
    assert call_main(capsys, "reconstruct", file)[0] == 2
    execute(databases[1].url, f"DROP TABLE {table}")
    code, printed, _ = call_main(capsys, "reconstruct", file, "--classify", "F1", "--bins", "20", "--json")
    left = json.loads(printed)
    assert (code, left["tested_on"], left["noise_free"]) == (0, "release", None)
    assert "there is no table" in left["unread"].lower()
    code, printed, _ = call_main(capsys, "reconstruct", file, "--classify", "F1", "--bins", "20")
    assert "Rows without noise can't be compared" in printed


MATRIX = "true;clerk;agent;baker\nclerk;0.8;0;0.2\nagent;0.5;0;0.5\nbaker;0.1;0;0.9\n"
"""A matrix of which one value, the first in their order, is never released."""


def test_swapped_moved_and_uncertain_columns(database: Database, tmp_path: Path) -> None:
    """Swapped values are taken as they are, moved ones by the matrix, and those with noise of own sizes not at all."""
    draw, file = random.Random(4), tmp_path / "matrix.csv"
    file.write_text(MATRIX, encoding="utf-8")
    jobs = {"A": ["clerk", "clerk", "agent"], "B": ["baker", "baker", "clerk"]}
    people = [(draw.choice(jobs[g]), draw.randrange(9) + (g == "B") * 4, draw.randrange(500), g) for g in "AB" * 600]
    table = database.create({"job": "VARCHAR(9)", "age": "INTEGER", "pay": "INTEGER", "g": "VARCHAR(1)"}, people)
    columns = {
        "job": {"transition": str(file)},
        "age": {"swap": 0.2},
        "pay": {"condition": "uncertain", "k": 2},
    }
    policy = randomized_policy(
        database, table, dict.fromkeys(columns, "quasi-identifier") | {"g": "insensitive"}, columns
    )
    randomize(policy)
    result = compare_classifiers(policy, "g", bins=13, options=OPTIONS)
    assert (result.features, result.omitted, result.tested_on) == (("job", "age"), ("pay",), "source")
    assert result.noise_free is not None
    assert min(one.naive_bayes for one in (result.noise_free, result.as_is, result.reconstructed)) > 0.8


def test_values_that_are_never_released_have_originals() -> None:
    """Places of released values are others than those of true ones where a value is never released."""
    change = Transition("job", ("a", "b", "c"), {(0, 0): 0.8, (0, 2): 0.2, (1, 0): 0.5, (1, 2): 0.5, (2, 2): 1.0}, None)
    text = Column("job", "TEXT", Kind.TEXT)
    feature = Feature(0, text, None, change.values, change)
    (quotas,) = quotas_of_groups(feature, [{0: 60, 2: 40}])
    assert Counter(shown for shown, *_ in quotas).keys() == {0, 2}
    assert sum(upto - above for _, _, above, upto in quotas) == 100
    assert {code for shown, code, above, upto in quotas if shown == 0 and upto > above} <= {0, 1}
    with pytest.raises(PolicyError, match="5 rows hold a value of 'job' that its change never gives"):
        list(quotas_of_groups(feature, [{1: 5}]))
