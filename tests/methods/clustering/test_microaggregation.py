"""Microaggregation: clusters against a plain one, releases on both engines, and what is refused."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import run_report
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.clustering.policy import Microaggregation
from sqlanon.methods.clustering.search import microaggregation
from sqlanon.methods.clustering.search.microaggregation import gather
from sqlanon.results.search_facts import ClusterFacts
from tests.adult import DATA
from tests.methods.clustering.point_support import clusters_of, load_points
from tests.oracle import clusters as oracle
from tests.random_cases import many
from tests.run_support import Database, PlainWorkspace, Row, anonymize, duckdb_url, open_database

CENSUS = DATA / "casc" / "census.csv"
QUASI = "quasi-identifier"
EXACT = {"name": "microaggregation", "blocks": "exact", "refine": False}


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


def shown_clusters(released: list[Row], centres: int) -> list[list[int]]:
    """The numbers in the last column of released rows, by their centres: sorted, as centres need not be different."""
    members = defaultdict(list)
    for row in released:
        members[row[:centres]].append(row[-1])
    return sorted(sorted(one) for one in members.values())


METHODS = st.sampled_from([("mdav",), ("v-mdav", 0.2), ("v-mdav", 1.1), ("v-mdav", 5)])


def draw_points(seed: int, rows: int) -> list[tuple[int, int]]:
    """Draw by a seed, as a search for small examples comes to distances that are equal but for rounding."""
    draw = random.Random(seed)
    return sorted((draw.randrange(10**6), draw.randrange(-(10**6), 10**6)) for _ in range(rows))


def search_plainly(points: Sequence[oracle.Point], k: int, method: tuple[Any, ...]) -> list[list[int]]:
    plain_search = oracle.mdav if method == ("mdav",) else oracle.v_mdav
    return sorted(sorted(one) for one in plain_search(points, k, *method[1:]))


def algorithm_of(method: tuple[Any, ...]) -> dict[str, Any]:
    return EXACT | dict(zip(("method", "gamma"), method, strict=False))


@settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rows=st.integers(8, 40), k=st.integers(2, 4), method=METHODS)
def test_clusters_are_those_of_a_plain_search(
    engine: Engine, seed: int, rows: int, k: int, method: tuple[Any, ...]
) -> None:
    points, workspace = draw_points(seed, rows), PlainWorkspace(engine)
    algorithm = Microaggregation.model_validate(algorithm_of(method))
    clustered = gather(engine, workspace, load_points(engine, points), k, algorithm)
    assert sorted(map(sorted, clusters_of(engine, clustered).values())) == search_plainly(points, k, method)
    workspace.drop(clustered)


@pytest.mark.either_engine
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rows=st.integers(8, 40), k=st.integers(2, 4), method=METHODS)
def test_runs_release_the_means_of_the_clusters_of_a_plain_search(
    database: Database, seed: int, rows: int, k: int, method: tuple[Any, ...]
) -> None:
    """Of whole runs; `test_clusters_are_those_of_a_plain_search` has more tables."""
    points = draw_points(seed, rows)
    released = database.release_once(
        {"a": "INTEGER", "b": "INTEGER", "number": "INTEGER"},
        [(*point, number) for number, point in enumerate(points)],
        {"a": QUASI, "b": QUASI, "number": "insensitive"},
        algorithm=algorithm_of(method),
        privacy=anonymity(k),
    )
    assert released is not None
    expected = search_plainly(oracle.standardized(points), k, method)
    assert shown_clusters(released, 2) == expected
    for row in released:
        mates = next(one for one in expected if row[-1] in one)
        assert row[0] == pytest.approx(sum(points[mate][0] for mate in mates) / len(mates), rel=1e-14)


@settings(max_examples=many(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(6, 20), min_size=1, max_size=4),
    k=st.integers(2, 5),
    method=st.sampled_from([("mdav",), ("v-mdav", 0.2), ("v-mdav", 5), ("k-member",)]),
)
def test_equal_points_are_divided_as_the_method_divides_them(
    engine: Engine, seed: int, sizes: list[int], k: int, method: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of some blocks all points are equal; clusters have the same points and the same names with and without it."""
    draw, workspace = random.Random(seed), PlainWorkspace(engine)
    blocks = [block for block, size in enumerate(sizes) for _ in range(size)]
    ways = [draw.choice([1, 1, 3]) for _ in sizes]
    rows = [(100 * block + draw.randrange(ways[block]), block) for block in blocks]
    asked = dict(zip(("method", "gamma"), method, strict=False)) | {"name": "microaggregation"}
    found = []
    for large in (10**9, 1):
        monkeypatch.setattr(microaggregation, "LARGE", large)
        points = load_points(engine, rows, blocks=blocks)
        clustered = gather(engine, workspace, points, k, Microaggregation.model_validate(asked))
        found.append(clusters_of(engine, clustered))
        workspace.drop(clustered)
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["mdav", "v-mdav", "k-member"])
def test_many_equal_points_beside_others_are_divided_first(
    engine: Engine, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of 40 have 30 equal points; clusters have k points or more, and those of equal points hold no others."""
    monkeypatch.setattr(microaggregation, "LARGE", 10)
    monkeypatch.setattr(microaggregation, "KEPT", 6)
    workspace = PlainWorkspace(engine)
    rows = [(7, block) if place % 4 else (place, block) for block in range(3) for place in range(40)]
    points = load_points(engine, rows, blocks=[block for block in range(3) for _ in range(40)])
    algorithm = Microaggregation.model_validate({"name": "microaggregation", "method": method})
    groups = clusters_of(engine, gather(engine, workspace, points, 3, algorithm))
    assert sorted(point for group in groups.values() for point in group) == list(range(120))
    assert all(len(group) >= 3 and len({rows[point][1] for point in group}) == 1 for group in groups.values())
    alone = [group for group in groups.values() if {rows[point][0] for point in group} == {7}]
    assert len(alone) >= 3 * 6


@pytest.mark.parametrize("keep", [None, "variance"])
@pytest.mark.parametrize("method", ["mdav", "v-mdav", "k-member"])
def test_small_numbers_beside_great_ones_have_their_own_mean(database: Database, method: str, keep: str | None) -> None:
    """Units of a column with 2^53 are too coarse for 1 and 2; nor is a release refused that has them."""
    values = [2.0**53, 2.0**53 - 1, 1, 2, 1, 2, 0.5, 0.25, 2.0**53 - 2, 3]
    table = database.create({"a": "DOUBLE PRECISION", "n": "INTEGER"}, [(v, n) for n, v in enumerate(values)])
    algorithm = {"name": "microaggregation", "method": method, "blocks": "exact", "keep": keep}
    released = database.release(table, {"a": QUASI, "n": "insensitive"}, algorithm=algorithm, privacy=anonymity(2))
    assert len(released) == len(values)
    if keep is None:
        for shown in {row[0] for row in released}:
            mates = [values[row[1]] for row in released if row[0] == shown]
            assert shown == pytest.approx(sum(mates) / len(mates), rel=1e-9)


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
    columns, rows, roles = (COLUMNS, numbers(200), ROLES) if table_of == "numbers" else (MIXED, mixed(150), MIXED_ROLES)
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


@pytest.mark.either_engine
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


MODELS = [
    [{"model": "distinct-l-diversity", "attribute": "ill", "l": 3}],
    [{"model": "entropy-l-diversity", "attribute": "ill", "l": 2.5}],
    [{"model": "t-closeness", "attribute": "ill", "t": 0.3, "distance": "equal"}],
    [{"model": "beta-likeness", "attribute": "ill", "beta": 0.7, "form": "enhanced"}],
    [{"model": "recursive-l-diversity", "attribute": "ill", "c": 2, "l": 2}],
]


@pytest.mark.either_engine
@pytest.mark.parametrize("models", MODELS, ids=lambda models: models[0]["model"])
@pytest.mark.parametrize("blocks", ["exact", 20])
def test_clusters_that_violate_a_model_are_merged(
    database: Database, models: list[dict[str, Any]], blocks: Any
) -> None:
    rows = numbers(100)
    table = database.create(COLUMNS, rows)
    algorithm = {"name": "microaggregation", "blocks": blocks}
    result = anonymize(database.policy(table, ROLES, algorithm=algorithm, privacy=[*anonymity(3), *models]))
    assert result.published
    assert all(model.satisfied for model in result.models)
    facts = result.algorithm.facts
    assert isinstance(facts, ClusterFacts)
    assert 1 < facts.clusters < len(rows) // 3
    released = database.sql(f"SELECT * FROM {table}_r")
    assert sorted(row[-2:] for row in released) == sorted(row[-2:] for row in rows)


@pytest.mark.either_engine
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
        (
            "INTEGER",
            [1, 2, 3, 4, 5],
            {"hierarchy": {"intervals": [5]}},
            "attributes.q: .* takes a hierarchy with method: k-member",
        ),
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


@pytest.mark.either_engine
@pytest.mark.parametrize("blocks", ["exact", 20])
def test_categories_have_medians_and_modes(database: Database, blocks: Any) -> None:
    rows = mixed(60)
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


@pytest.mark.either_engine
def test_the_report_says_that_centres_are_shown_and_what_they_tell(database: Database) -> None:
    table = database.create({"a": "INTEGER", "s": "INTEGER"}, [(n, n % 3) for n in range(12)])
    policy = database.policy(table, {"a": QUASI, "s": "sensitive"}, algorithm=EXACT, privacy=anonymity(3))
    page = run_report(anonymize(policy).run, policy=policy)
    assert page.count("the centre of its cluster (mean, median or mode)") == 3
    assert "ranges or sets of values" not in page
    assert "look for the nearest ones in the release" in page
