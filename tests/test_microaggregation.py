"""Microaggregation: clusters against a plain one, releases on both engines, and what is refused."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import run_report
from sqlanon.algorithms.clusters import searching
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.results.facts import ClusterFacts
from tests.adult import DATA
from tests.oracle import clusters as oracle
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database

CENSUS = DATA / "casc" / "census.csv"
QUASI = "quasi-identifier"
EXACT = {"name": "microaggregation", "blocks": "exact", "refine": False}


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


def clusters_of(released: list[Row], centres: int) -> list[list[int]]:
    """The numbers in the last column of released rows, by their centres: sorted, as centres need not be different."""
    members = defaultdict(list)
    for row in released:
        members[row[:centres]].append(row[-1])
    return sorted(sorted(one) for one in members.values())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(8, 40),
    k=st.integers(2, 4),
    method=st.sampled_from([("mdav",), ("v-mdav", 0.2), ("v-mdav", 1.1), ("v-mdav", 5)]),
)
def test_clusters_are_those_of_a_plain_search(
    database: Database, seed: int, rows: int, k: int, method: tuple[Any, ...]
) -> None:
    """Rows are drawn by a seed, as a search for small examples comes to distances that are equal but for rounding."""
    draw = random.Random(seed)
    points = sorted((draw.randrange(10**6), draw.randrange(-(10**6), 10**6)) for _ in range(rows))
    columns = {"a": "INTEGER", "b": "INTEGER", "number": "INTEGER"}
    numbered = [(*point, number) for number, point in enumerate(points)]
    algorithm = EXACT | dict(zip(("method", "gamma"), method, strict=False))
    released = database.release_once(
        columns, numbered, {"a": QUASI, "b": QUASI, "number": "insensitive"}, algorithm=algorithm, privacy=anonymity(k)
    )
    assert released is not None
    plain_search = oracle.mdav if method == ("mdav",) else oracle.v_mdav
    expected = plain_search(oracle.standardized(points), k, *method[1:])
    assert clusters_of(released, 2) == sorted(sorted(one) for one in expected)
    for row in released:
        mates = next(one for one in expected if row[-1] in one)
        assert row[0] == pytest.approx(sum(points[mate][0] for mate in mates) / len(mates), rel=1e-14)


def test_equal_rows_may_be_in_several_clusters(database: Database) -> None:
    table = database.create({"a": "INTEGER", "s": "INTEGER"}, [(7, 1)] * 8 + [(9, 2)] * 3)
    released = database.release(table, {"a": QUASI, "s": "insensitive"}, algorithm=EXACT, privacy=anonymity(2))
    assert Counter(row[1] for row in released) == {1: 8, 2: 3}
    assert all(7 <= row[0] <= 9 for row in released)


def numbers(rows: int) -> list[Row]:
    draw = random.Random(rows)
    made = []
    for number in range(rows):
        wealth = draw.gauss(0, 1)
        made.append(
            (
                round(40 + 10 * wealth + draw.gauss(0, 5)),
                round(1000 * 2 ** (wealth + draw.gauss(0, 0.3)), 2),
                draw.random() * 1e-3,
                draw.choice("abcd"),
                number,
            )
        )
    return made


COLUMNS = {
    "age": "INTEGER",
    "income": "DECIMAL(12,2)",
    "share": "DOUBLE PRECISION",
    "ill": "VARCHAR",
    "number": "INTEGER",
}
ROLES = {"age": QUASI, "income": QUASI, "share": QUASI, "ill": "sensitive", "number": "insensitive"}


@pytest.mark.parametrize("table_of", ["numbers", "mixed"])
@pytest.mark.parametrize(
    ("blocks", "refine", "method"),
    [("exact", False, "mdav"), (60, False, "mdav"), (60, True, "mdav"), (60, False, "v-mdav")],
)
def test_engines_release_the_same_bytes(
    tmp_path: Path, postgres_url: str, blocks: Any, refine: bool, method: str, table_of: str
) -> None:
    digests, facts = [], []
    columns, rows, roles = (COLUMNS, numbers(400), ROLES) if table_of == "numbers" else (MIXED, mixed(300), MIXED_ROLES)
    for url in (duckdb_url(tmp_path / "a.duckdb"), postgres_url):
        with open_database(url) as database:
            table = database.create(columns, rows)
            algorithm = {"name": "microaggregation", "blocks": blocks, "refine": refine, "method": method}
            policy = database.policy(table, roles, algorithm=algorithm, privacy=anonymity(3))
            result = anonymize(policy)
            digests.append([tuple(map(repr, map(plain, row))) for row in database.sql(f"SELECT * FROM {table}_r")])
            facts.append(result.algorithm.facts)
    assert digests[0] == digests[1]
    assert facts[0] == facts[1]


def test_gamma_is_of_v_mdav(database: Database) -> None:
    with pytest.raises(PolicyError, match="has gamma, which method: mdav does not use; v-mdav does"):
        database.policy("t", {"q": QUASI}, algorithm=EXACT | {"gamma": 0.5})


def plain(value: Any) -> Any:
    return float(value) if isinstance(value, float) else value


def test_refinement_loses_less_and_keeps_k(database: Database) -> None:
    table = database.create(COLUMNS, numbers(300))
    losses = []
    for refine in (False, True):
        algorithm = {"name": "microaggregation", "blocks": 60, "refine": refine}
        facts = anonymize(
            database.policy(table, ROLES, algorithm=algorithm, privacy=anonymity(4)), replace=True
        ).algorithm.facts
        assert isinstance(facts, ClusterFacts)
        assert facts.smallest == 4
        losses.append(facts.variance_loss)
    assert losses[1] < 0.97 * losses[0]


@pytest.mark.parametrize(("k", "loss"), [(3, 5.692), (5, 9.088), (10, 14.156)])
def test_the_loss_of_the_census_is_the_published_one(tmp_path: Path, k: int, loss: float) -> None:
    if not CENSUS.exists():
        pytest.skip("the test tables of the field are not here")
    with CENSUS.open() as file:
        header, *rows = list(csv.reader(file))
    with open_database(duckdb_url(tmp_path / "census.duckdb")) as database:
        table = database.create(dict.fromkeys(header, "INTEGER"), [tuple(map(int, row)) for row in rows])
        policy = database.policy(table, dict.fromkeys(header, QUASI), algorithm=EXACT, privacy=anonymity(k))
        facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, ClusterFacts)
    assert round(facts.variance_loss, 3) == loss
    assert facts.smallest == k


def mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """Mean and variance, exactly, of the doubles."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return float(mean), float(sum((one - mean) ** 2 for one in exact) / len(exact))


RESCALED = {"name": "microaggregation", "refine": False, "keep": "variance"}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rows=st.integers(12, 40))
def test_columns_keep_mean_and_variance(database: Database, seed: int, rows: int) -> None:
    draw = random.Random(seed)
    values = [
        (draw.randrange(-(10**6), 10**6), 1e9 + draw.gauss(0, 10), Decimal(draw.randrange(10**5)) / 100, 7)
        for _ in range(rows)
    ]
    types = {"a": "INTEGER", "b": "DOUBLE PRECISION", "c": "DECIMAL(9,2)", "d": "INTEGER"}
    released = database.release_once(types, values, dict.fromkeys(types, QUASI), algorithm=RESCALED)
    assert released is not None
    for before, after in zip(zip(*values, strict=True), zip(*released, strict=True), strict=True):
        (mean, variance), (kept_mean, kept_variance) = mean_and_variance(before), mean_and_variance(after)
        slack = 1e-15 * max(map(abs, map(float, before)))
        assert abs(kept_mean - mean) <= 4 * slack
        assert math.sqrt(kept_variance) == pytest.approx(math.sqrt(variance), rel=1e-9, abs=4 * slack)


def test_rescaled_centres_are_those_of_the_formula(database: Database) -> None:
    rows = numbers(60)
    plain, rescaled = (
        database.release_once(COLUMNS, rows, ROLES, algorithm={**RESCALED, "keep": keep}, privacy=anonymity(4))
        for keep in (None, "variance")
    )
    assert plain is not None
    assert rescaled is not None
    of_row = {row[-1]: row for row in plain}
    for column in range(3):
        (mean, variance), (shown_mean, shown) = (
            mean_and_variance([row[column] for row in table]) for table in (rows, plain)
        )
        for row in rescaled:
            centre = of_row[row[-1]][column]
            expected = mean + (centre - shown_mean) * math.sqrt(variance / shown)
            assert row[column] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_engines_rescale_to_the_same_bytes(tmp_path: Path, postgres_url: str) -> None:
    released = []
    for url in (duckdb_url(tmp_path / "a.duckdb"), postgres_url):
        with open_database(url) as database:
            table = database.create(COLUMNS, numbers(200))
            result = anonymize(database.policy(table, ROLES, algorithm=RESCALED, privacy=anonymity(3)))
            assert isinstance(result.algorithm.facts, ClusterFacts)
            assert result.algorithm.facts.keep == "variance"
            assert result.checks is not None
            assert result.checks["variances_equal"].violations == 0
            released.append([tuple(map(repr, map(plain, row))) for row in database.sql(f"SELECT * FROM {table}_r")])
    assert released[0] == released[1]


def test_rescaling_needs_centres_that_differ(database: Database) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(a, b) for a in (1, 9) for b in (1, 2)] * 4)
    policy = database.policy(table, {"a": QUASI, "b": QUASI}, algorithm=RESCALED, privacy=anonymity(8))
    with pytest.raises(ProtectionError, match="All clusters have the same mean in column 'b'"):
        anonymize(policy)
    assert database.leftovers() == []


def test_rescaling_is_of_numbers(database: Database) -> None:
    table = database.create({"a": "VARCHAR"}, [("x",)] * 5)
    with pytest.raises(PolicyError, match=r"algorithm\.keep: variance is one of numbers"):
        anonymize(database.policy(table, {"a": QUASI}, algorithm=RESCALED))


def test_wrongly_rescaled_centres_are_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.releases.rescaling.FIXED", 2**59)
    table = database.create(COLUMNS, numbers(60))
    with pytest.raises(VerificationError, match=r"centres_true.*variances_equal"):
        anonymize(database.policy(table, ROLES, algorithm=RESCALED, privacy=anonymity(4)))


MODELS = [
    [{"model": "distinct-l-diversity", "attribute": "ill", "l": 3}],
    [{"model": "entropy-l-diversity", "attribute": "ill", "l": 2.5}],
    [{"model": "t-closeness", "attribute": "ill", "t": 0.3, "distance": "equal"}],
    [{"model": "recursive-l-diversity", "attribute": "ill", "c": 2, "l": 2}],
]


@pytest.mark.parametrize("models", MODELS, ids=lambda models: models[0]["model"])
@pytest.mark.parametrize("blocks", ["exact", 20])
def test_clusters_that_violate_a_model_are_merged(
    database: Database, models: list[dict[str, Any]], blocks: Any
) -> None:
    table = database.create(COLUMNS, numbers(200))
    algorithm = {"name": "microaggregation", "blocks": blocks}
    result = anonymize(database.policy(table, ROLES, algorithm=algorithm, privacy=[*anonymity(3), *models]))
    assert result.published
    assert all(model.satisfied for model in result.models)
    facts = result.algorithm.facts
    assert isinstance(facts, ClusterFacts)
    assert 5 < facts.clusters < 200 // 3
    released = database.sql(f"SELECT * FROM {table}_r")
    assert sorted(row[-2:] for row in released) == sorted(row[-2:] for row in numbers(200))


DISTINCT = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}


@pytest.mark.parametrize(("budget", "left_out"), [(0.0, set()), (0.25, {30, 31}), (0.5, {30, 31, 20, 21})])
def test_the_most_remote_violating_clusters_are_left_out_within_the_budget(
    database: Database, budget: float, left_out: set[int]
) -> None:
    rows = [
        (0, "a", 0),
        (1, "b", 1),
        (9, "a", 10),
        (10, "b", 11),
        (40, "c", 20),
        (41, "c", 21),
        (99, "d", 30),
        (100, "d", 31),
    ]
    table = database.create({"q": "INTEGER", "ill": "VARCHAR", "number": "INTEGER"}, rows)
    roles = {"q": QUASI, "ill": "sensitive", "number": "insensitive"}
    policy = database.policy(table, roles, algorithm=EXACT, privacy=[*anonymity(2), DISTINCT], suppression=budget)
    result = anonymize(policy)
    assert all(model.satisfied for model in result.models)
    assert result.release.suppressed == len(left_out)
    released = database.sql(f"SELECT * FROM {table}_r")
    assert {row[-1] for row in released} == {row[-1] for row in rows} - left_out


def test_clusters_without_which_the_rest_would_violate_a_model_are_merged(database: Database) -> None:
    rows = [(0, "a"), (1, "a"), (50, "b"), (51, "b"), (99, "a"), (100, "a")]
    table = database.create({"q": "INTEGER", "ill": "VARCHAR"}, rows)
    policy = database.policy(
        table, {"q": QUASI, "ill": "sensitive"}, algorithm=EXACT, privacy=[*anonymity(2), DISTINCT], suppression=0.7
    )
    result = anonymize(policy)
    assert result.release.suppressed == 0
    assert all(model.satisfied for model in result.models)


def test_more_rows_left_out_than_the_budget_allows_are_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(0, "a"), (1, "b"), (9, "a"), (10, "b"), (99, "d"), (100, "d")]
    table = database.create({"q": "INTEGER", "ill": "VARCHAR"}, rows)
    policy = database.policy(
        table, {"q": QUASI, "ill": "sensitive"}, algorithm=EXACT, privacy=[*anonymity(2), DISTINCT], suppression=0.2
    )
    suppress = searching.suppress_violating
    monkeypatch.setattr(searching, "suppress_violating", lambda *values: suppress(*values[:-1], 2))
    with pytest.raises(VerificationError, match="rows_add_up"):
        anonymize(policy)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"suppressed": "star"}, "suppressed: star shows `\\*` in place of values, and microaggregation shows centres"),
        ({"suppression": 0.1}, "suppression: microaggregation leaves no rows out under t-closeness"),
    ],
)
def test_suppression_that_clusters_do_not_have_is_refused(
    database: Database, more: dict[str, Any], problem: str
) -> None:
    table = database.create({"q": "INTEGER", "ill": "VARCHAR"}, [(number, "ab"[number % 2]) for number in range(9)])
    close = {"model": "t-closeness", "attribute": "ill", "t": 0.5, "distance": "equal"}
    policy = database.policy(
        table, {"q": QUASI, "ill": "sensitive"}, algorithm=EXACT, privacy=[*anonymity(2), close], **more
    )
    with pytest.raises(PolicyError, match=problem):
        anonymize(policy)


@pytest.mark.parametrize(
    ("type_", "values", "attribute", "problem"),
    [
        ("DOUBLE PRECISION", [1, None, 3, None, 5], {}, "attributes.q: 2 rows hold NULL"),
        ("DOUBLE PRECISION", [1, math.nan, math.inf, 4, 5], {}, "attributes.q: 2 rows hold NaN or an infinity"),
        ("DOUBLE PRECISION", [1, 2, 3, 4, -1e200], {}, "attributes.q: 1 row holds numbers beyond 1e\\+150"),
        ("VARCHAR", ["a", "b", "c", "d", None], {"order": ["a", "b", "c", "d"]}, "attributes.q: 1 row holds NULL"),
        (
            "VARCHAR",
            ["a", "b", "c", "d", "e"],
            {"order": ["a", "b", "c"]},
            "attributes.q: 2 rows hold values that order",
        ),
        ("DATE", ["2024-01-01"] * 5, {}, "attributes.q: microaggregation has no centre of values of type"),
        ("INTEGER", [1, 2, 3, 4, 5], {"show": "bounds"}, "attributes.q: .* shows this column by mean, not bounds"),
        ("VARCHAR", ["a"] * 5, {"show": "median"}, "by mode, not median; leave show out; categories have a median if"),
        ("INTEGER", [1, 2, 3, 4, 5], {"hierarchy": {"intervals": [5]}}, "attributes.q: .* uses no hierarchy"),
        ("INTEGER", [1, 2, 3, 4, 5], {"top": 4}, "attributes.q: microaggregation has no top"),
        ("INTEGER", [1, 2, 3], {}, "needs at least 4 rows for clusters of 2, and the table holds 3"),
    ],
)
def test_what_has_no_centre_is_refused_before_any_work(
    database: Database, type_: str, values: list[Any], attribute: dict[str, Any], problem: str
) -> None:
    table = database.create({"q": type_}, [(value,) for value in values])
    policy = database.policy(table, {"q": {"role": QUASI, **attribute}}, algorithm=EXACT)
    with pytest.raises(PolicyError, match=problem):
        anonymize(policy)
    assert database.leftovers() == []


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ({"order": ["1", "2"]}, "order is for microaggregation, and mondrian does not use it"),
        ({"show": "mode"}, "show: mode is the centre of a cluster"),
    ],
)
def test_other_algorithms_have_no_centres(database: Database, attribute: dict[str, Any], problem: str) -> None:
    table = database.create({"q": "INTEGER"}, [(1,), (2,)])
    with pytest.raises(PolicyError, match=problem):
        anonymize(database.policy(table, {"q": {"role": QUASI, **attribute}}))


MIXED = {"n": "INTEGER", "g": "VARCHAR", "c": "INTEGER", "b": "VARCHAR", "f": "BOOLEAN", "id": "INTEGER"}
MIXED_ROLES = {
    "n": QUASI,
    "g": {"role": QUASI, "order": ["low", "middle", "high", "top"]},
    "c": {"role": QUASI, "order": [1, 2, 3, 4, 5], "show": "convex-median"},
    "b": QUASI,
    "f": QUASI,
    "id": "insensitive",
}


def mixed(rows: int, seed: int = 0) -> list[Row]:
    draw = random.Random(seed)
    return [
        (
            draw.randrange(1000),
            draw.choice(["low", "middle", "high", "top"]),
            draw.choice([1, 1, 2, 4, 5, 5]),
            draw.choice(["x", "y", "z", None]),
            draw.random() < 0.3,
            number,
        )
        for number in range(rows)
    ]


@pytest.mark.parametrize("blocks", ["exact", 20])
def test_categories_have_medians_and_modes(database: Database, blocks: Any) -> None:
    rows = mixed(90)
    table = database.create(MIXED, rows)
    released = database.release(
        table, MIXED_ROLES, algorithm={"name": "microaggregation", "blocks": blocks}, privacy=anonymity(4)
    )
    types = dict(database.columns(f"{table}_r"))
    assert {types[name] for name in "gb"} == {dict(database.columns(table))["g"]}
    assert types["c"] == dict(database.columns(table))["c"]
    members = defaultdict(list)
    for row in released:
        members[row[:-1]].append(rows[row[-1]])
    for (n, g, c, b, f), cluster in members.items():
        assert len(cluster) >= 4
        columns = list(zip(*cluster, strict=True))
        if len(cluster) >= 8:
            continue  # clusters with the same centre are one class
        assert n == pytest.approx(sum(columns[0]) / len(cluster))
        assert g == oracle.median(columns[1], ["low", "middle", "high", "top"])
        assert c == oracle.median(columns[2], [1, 2, 3, 4, 5], convex=True)
        for mode, values in ((b, columns[3]), (f, columns[4])):
            assert values.count(mode) == max(map(values.count, values))


@pytest.mark.parametrize("blocks", [0, 9, "all", True, 2.5])
def test_blocks_are_auto_exact_or_a_number_of_rows(database: Database, blocks: Any) -> None:
    with pytest.raises(PolicyError, match="must be auto, exact, or a whole number of at least 10 rows"):
        database.policy("t", {"q": QUASI}, algorithm={"name": "microaggregation", "blocks": blocks})


@pytest.mark.parametrize("values", [[5] * 9, [0.1] * 9, [1e150, -1e150] * 4, [1e-200, 0.0] * 4], ids=str)
def test_odd_numbers_have_means(database: Database, values: list[float]) -> None:
    table = database.create({"q": "DOUBLE PRECISION", "c": "INTEGER"}, [(value, 7) for value in values])
    released = database.release(table, {"q": QUASI, "c": QUASI}, algorithm=EXACT)
    assert sorted(row[0] for row in released) == sorted(values)
    assert {row[1] for row in released} == {7.0}


def test_the_report_says_that_centres_are_shown_and_what_they_tell(database: Database) -> None:
    table = database.create({"a": "INTEGER", "s": "INTEGER"}, [(n, n % 3) for n in range(12)])
    policy = database.policy(table, {"a": QUASI, "s": "sensitive"}, algorithm=EXACT, privacy=anonymity(3))
    page = run_report(anonymize(policy).run, policy=policy)
    assert page.count("the centre of its cluster (mean, median or mode)") == 3
    assert "ranges or sets of values" not in page
    assert "look for the nearest ones in the release" in page


def test_the_report_says_that_variances_are_kept(database: Database) -> None:
    table = database.create({"a": "INTEGER", "s": "INTEGER"}, [(n, n % 3) for n in range(12)])
    policy = database.policy(table, {"a": QUASI, "s": "sensitive"}, algorithm=RESCALED, privacy=anonymity(3))
    page = run_report(anonymize(policy).run, policy=policy)
    assert "rescaled, so that each column has the mean and the variance of its source" in page
