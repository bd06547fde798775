"""The parts of Rothko-S: what is drawn, how a split is tested, what is pruned."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.algorithms.tree.allowable import NEVER
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.encoding.axes import Axis
from sqlanon.encoding.fields import Coding, Field
from sqlanon.engines.base import Engine
from sqlanon.methods.partitioning.sampling.draw import Draw, draw
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence, Hypotheses
from sqlanon.methods.partitioning.sampling.repartition import Repartition, SampleTree
from sqlanon.models import EntropyLDiversity, Groups, KAnonymity, PrivacyModel, RecursiveLDiversity, VarianceDiversity
from sqlanon.models.alpha_k import AlphaK
from sqlanon.models.closeness import EqualTCloseness, KlTCloseness
from sqlanon.models.confidence_bound import ConfidenceBound
from sqlanon.sql import Relation, Statement
from tests.oracle import brute_force
from tests.random_cases import many
from tests.run_support import PlainWorkspace

pytestmark = pytest.mark.slow

BITS = 16  # of a code; two words of one code each


def _branch(engine: Engine, models: tuple[PrivacyModel, ...], rows: int, *, weighted: bool = False) -> Branch:
    codings = [Coding(None, BITS, 1 << BITS, 0) for _ in range(2)]  # type: ignore[arg-type]
    axes = tuple(Axis(n, Field(n, coding, n, 0)) for n, coding in enumerate(codings))
    task = Task(axes, 2, weighted, models, (), rows, 2)
    return Branch(engine, PlainWorkspace(engine), task)


def _load(engine: Engine, name: str, columns: str, rows: Sequence[tuple[int | None, ...]]) -> None:
    named = ", ".join(f"{column} BIGINT" for column in columns.split())
    engine.execute(Statement("create", f"CREATE TABLE {name} ({named})"))
    for start in range(0, len(rows), 1000):
        values = ", ".join(str(row).replace("None", "NULL") for row in rows[start : start + 1000])
        engine.execute(Statement("insert", f"INSERT INTO {name} VALUES {values}"))


def _fetch(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    return engine.fetch(Statement("query", query))


# --- the draw

CODES = [(n * 40503 % 65521, n // 3) for n in range(3000)] + [(7, 7)] * 600


def _drawn(engine: Engine, rows: list[tuple[int, ...]], size: int, seed: str, name: str) -> list[tuple[int, ...]]:
    """The sample of a table of rows, or of tuples where there are three columns."""
    weighted = len(rows[0]) == 3
    _load(engine, name, "p0 p1 w" if weighted else "p0 p1", rows)
    total = sum(row[2] for row in rows) if weighted else len(rows)
    branch = _branch(engine, (KAnonymity(2),), total, weighted=weighted)
    nodes = Markup("(SELECT CAST(0 AS BIGINT) AS root, CAST({} AS BIGINT) AS population, FALSE AS median_only)").format(
        total
    )
    source = Markup("(SELECT CAST(0 AS BIGINT) AS node, t.* FROM {} AS t)").format(Markup(name))
    roots, table, _ = draw(branch, Draw(nodes, source, size, seed), weighted=weighted)
    found = [(p, q) for p, q in _fetch(engine, f"SELECT p0, p1 FROM {table} ORDER BY 1, 2")]
    branch.workspace.drop(roots, table)
    return found


def test_a_sample_is_the_same_whatever_the_order_of_rows(engine: Engine) -> None:
    shuffled = random.Random(5).sample(CODES, len(CODES))
    first = _drawn(engine, CODES, 500, "7:0", "a")
    assert len(first) == 500
    assert not Counter(first) - Counter(CODES), "drawn without replacement"
    assert first == _drawn(engine, shuffled, 500, "7:0", "b")
    assert first != _drawn(engine, CODES, 500, "8:0", "c")
    assert sum(p for p, _ in first) == 16_400_493, "the engines draw alike"


def test_all_rows_but_one_can_be_drawn(engine: Engine) -> None:
    found = _drawn(engine, CODES, len(CODES) - 1, "7:0", "a")
    assert len(found) == len(CODES) - 1
    assert not Counter(found) - Counter(CODES)


def test_tuples_are_drawn_as_the_rows_that_they_stand_for(engine: Engine) -> None:
    tuples = [(p, q, n) for (p, q), n in Counter(CODES).items()]
    found = Counter(_drawn(engine, tuples, 900, "7:0", "a"))
    assert sum(found.values()) == 900
    assert not found - Counter(CODES)
    expected = 900 * 600 / len(CODES)
    assert abs(found[7, 7] - expected) < 4 * math.sqrt(expected), "each row has the same chance"


def test_rows_of_a_pattern_are_drawn_as_often_as_others() -> None:
    """Chi-square over the parts of tables whose codes are as regular as can be, a few hundred samples each."""
    from sqlanon.engines import connect

    with connect("duckdb:///:memory:") as engine:
        branch = _branch(engine, (KAnonymity(2),), 4096)
        rows = Markup("(SELECT 0::BIGINT AS node, r.i % 64 AS p0, (r.i // 64) << 20 AS p1 FROM range(4096) AS r(i))")
        nodes = Markup("(SELECT 0::BIGINT AS root, 4096::BIGINT AS population, FALSE AS median_only)")
        by_value: Counter[tuple[str, int]] = Counter()
        each: list[int] = []
        for seed in range(200):
            roots, table, _ = draw(branch, Draw(nodes, rows, 256, str(seed)), weighted=False)
            drawn = _fetch(engine, f"SELECT p0, p1 >> 20 FROM {table}")
            by_value.update(("p0", p) for p, _ in drawn)
            by_value.update(("p1", q) for _, q in drawn)
            each.append(sum(p < 32 and q < 32 for p, q in drawn))  # a quarter of the rows
            branch.workspace.drop(roots, table)
    for name in ("p0", "p1"):
        counts = [by_value[name, value] for value in range(64)]
        chi = sum((n - 800) ** 2 / 800 for n in counts)
        assert 25 < chi < 115, f"chi-square of {name} with 63 degrees of freedom"
    variance = sum((n - 64) ** 2 for n in each) / len(each)
    assert 30 < variance < 65, "of a hypergeometric count: 256 * 1/4 * 3/4 * 15/16 = 45"


# --- the tests


def _violates(engine: Engine, model: PrivacyModel, counts: list[int], z: float, correction: float) -> bool:
    """Tell whether the test of one child holds it possible that the child violates the model."""
    values = ", ".join(f"({place}, {n})" for place, n in enumerate(counts, start=1))
    listed = Markup("(VALUES {}) AS v (s, n)").format(Markup(values))
    avs = Markup("(SELECT 0 AS class, v.s, CAST(v.n AS BIGINT) AS n FROM {})").format(listed)
    columns = "v.s, v.s AS position, CAST(v.s AS FLOAT8) AS value, CAST(100 AS BIGINT) AS n"
    domain = Markup("(SELECT {} FROM {})").format(Markup(columns), listed)
    classes = Markup("(SELECT 0 AS class, CAST({} AS BIGINT) AS n)").format(sum(counts))
    branch = _branch(engine, (model,), 100 * len(counts))
    candidate_splits = branch.table("candidate_splits")
    create = engine.traits.renderer().written(engine.render.macro("create_work", candidate_splits))
    engine.execute(
        Statement(
            "candidate_splits",
            f"{create} AS SELECT 0 AS split, CAST({z!r} AS FLOAT8) AS z, CAST({correction!r} AS FLOAT8) AS correction",
        )
    )
    hypotheses = Hypotheses(Confidence(0.05), candidate_splits, candidate_splits)
    test = hypotheses.measure(branch, model, Groups(classes, avs, domain, 100 * len(counts)))
    ((_, violates),) = _fetch(engine, f"SELECT class, violates FROM ({test.text}) AS t")
    branch.workspace.drop(candidate_splits)
    return bool(violates)


def _entropy_bound(counts: list[int], z: float, correction: float) -> float:
    n = sum(counts)
    mean = sum(c / n * math.log(n / c) for c in counts)
    square = sum(c / n * math.log(n / c) ** 2 for c in counts)
    return mean - z * math.sqrt(correction * (square - mean * mean) / n)


def _divergence_bound(counts: list[int], z: float, correction: float) -> float:
    n, q = sum(counts), 1 / len(counts)
    mean = sum(c / n * math.log(c / n / q) for c in counts)
    square = sum(c / n * math.log(c / n / q) ** 2 for c in counts)
    return mean + z * math.sqrt(correction * (square - mean * mean) / n)


def _share_bound(share: float, n: int, z: float, correction: float) -> float:
    """The alpha whose deviation lies between it and a share of the sample, by halving."""
    low, high = share, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        passes = middle - share >= z * math.sqrt(correction * middle * (1 - middle) / n)
        low, high = (low, middle) if passes else (middle, high)
    return high


def _variance_bound(counts: list[int], z: float, correction: float) -> float:
    n = sum(counts)
    mean = sum(v * c for v, c in enumerate(counts)) / n
    spread = sum(c * (v - mean) ** 2 for v, c in enumerate(counts))
    f = n - 1
    chi = (1 - 2 / (9 * f) + z * math.sqrt(2 / (9 * f))) ** 3
    return spread / f / (1 + (chi - 1) * math.sqrt(correction))


@pytest.mark.parametrize(("z", "correction"), [(1.96, 0.98), (2.5, 0.3), (1.96, 0.0)])
def test_each_test_is_its_formula(engine: Engine, z: float, correction: float) -> None:
    """Models whose parameter is just on either side of the bound that the formula gives."""
    counts, n = [12, 30, 18, 5], 65
    tail = n - 30
    critical = next(c / 1000 for c in range(1, 5000) if _recursive_holds(c / 1000, 30, tail, z, correction))
    distance = sum(abs(c / n - 1 / 4) for c in counts) / 2 + z * math.sqrt(correction / (4 * n))
    bounds: list[tuple[Any, float, bool]] = [
        (lambda c: RecursiveLDiversity("s", c, 2), critical, False),
        (lambda h: EntropyLDiversity("s", math.exp(h)), _entropy_bound(counts, z, correction), True),
        (lambda t: EqualTCloseness("s", t), distance, False),
        (lambda t: KlTCloseness("s", t), _divergence_bound(counts, z, correction), False),
        (lambda a: ConfidenceBound("s", a), _share_bound(30 / n, n, z, correction), False),
        (lambda a: AlphaK("s", a, 1000), _share_bound(30 / n, n, z, correction), False),
        (lambda v: VarianceDiversity("s", v), _variance_bound(counts, z, correction), True),
    ]
    for model, bound, above_violates in bounds:
        low, high = bound * 0.995, bound * 1.005
        assert _violates(engine, model(high), counts, z, correction) is above_violates, model(high)
        assert _violates(engine, model(low), counts, z, correction) is not above_violates, model(low)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=12))
@settings(max_examples=many(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_groups_are_completed_by_nulls(engine: Engine, rows: list[tuple[int, int]]) -> None:
    """As rows of the most frequent known value of their class; 0 is NULL."""
    values = Markup(", ").join(Markup("({}, {}, {})").format(c, s, n) for (c, s), n in Counter(rows).items())
    avs = Markup("(SELECT v.class, v.s, CAST(v.n AS BIGINT) AS n FROM (VALUES {}) AS v (class, s, n))").format(values)
    completed = engine.render("models/complete_groups", avs=avs).text
    found = sorted((c, int(n)) for c, n in _fetch(engine, f"SELECT g.class, g.n FROM {completed} AS g"))
    expected = [
        (c, n)
        for c in (0, 1)
        for n in Counter(brute_force.completed([s or None for of, s in rows if of == c])).values()
    ]
    assert found == sorted(expected)


def _recursive_holds(c: float, most: int, tail: int, z: float, correction: float) -> bool:
    return c * tail > most and c * tail - most >= z * math.sqrt(correction * (c * c * tail + most))


def test_the_quantile_shares_alpha_among_the_tests() -> None:
    assert Confidence(0.05).quantile(1) == pytest.approx(NormalDist().inv_cdf(0.95))
    assert Confidence(0.05).quantile(4) == pytest.approx(NormalDist().inv_cdf(0.9875))
    assert Confidence(None).quantile(4) == 0


def test_a_child_needs_more_sampled_rows_the_smaller_the_sample() -> None:
    sure = Confidence(0.05)
    assert sure.least_sampled(100, 1000, 10_000, 2) == 10 + 7  # 9.9 + 1.96 * sqrt(9.9 * 0.99 * 0.9) + 0.38 + 0.5
    assert sure.least_sampled(100, 10_000, 10_000, 2) == 100, "the definition, where the sample is all"
    assert sure.least_sampled(3, 9000, 10_000, 2) == 3, "rows that are seen are certain"
    assert Confidence(None).least_sampled(100, 1000, 10_000, 2) == 10


@pytest.mark.parametrize("tests", [2, 4, 40])
def test_a_child_that_is_too_small_passes_as_seldom_as_alpha_says(tests: int) -> None:
    """The exact chance of a child of k - 1 rows, which is hypergeometric, however few sampled rows decide."""
    sure, asked_too_many = Confidence(0.05), []
    for population, share, k in itertools.product((1000, 100_000), (0.002, 0.01, 0.1, 0.5, 0.95), (2, 5, 25, 250)):
        sample = int(population * share)
        least = sure.least_sampled(k, sample, population, tests)
        assert _chance(least, population, k - 1, sample) <= 0.05 / tests, (population, sample, k)
        enough = next(n for n in range(1, k + 1) if _chance(n, population, k - 1, sample) <= 0.05 / tests)
        asked_too_many.append(least - enough)
    assert max(asked_too_many) <= 1


def _chance(least: int, population: int, marked: int, sample: int) -> float:
    """Compute the chance that a sample has at least `least` of the marked rows."""
    first, last = max(least, sample + marked - population), min(marked, sample)
    ways = [_log_ways(marked, n) + _log_ways(population - marked, sample - n) for n in range(first, last + 1)]
    return sum(math.exp(way - _log_ways(population, sample)) for way in ways)


def _log_ways(rows: int, chosen: int) -> float:
    return math.lgamma(rows + 1) - math.lgamma(chosen + 1) - math.lgamma(rows - chosen + 1)


@pytest.mark.parametrize("alpha", [0.05, None])
def test_the_database_asks_for_as_many_rows(engine: Engine, alpha: float | None) -> None:
    """By node and number of children; naive checks (no alpha) take the sample for the whole."""
    sure, populations = Confidence(alpha), (1001, 4000, 90_000, 10_000_000)
    rows = " UNION ALL ".join(
        f"SELECT {n} AS root, CAST({p} AS BIGINT) AS population, CAST({p - 1000} AS FLOAT8) / {p - 1} AS correction"
        for n, p in enumerate(populations)
    )
    values: dict[str, Any] = {"roots": Markup("({})").format(Markup(rows)), "sample": 1000, "k": 200}
    values |= {"exact_below": 8000, "tested": alpha is not None, "quantiles": sure.quantiles(9, 3)}
    engine.run("methods/partitioning/sampling/decide/create_min_counts", min_counts=Relation("min_counts"), **values)
    found = _fetch(engine, "SELECT root, few, most, fewest, smallest FROM min_counts ORDER BY 1, 2")
    engine.execute(Statement("drop", "DROP TABLE min_counts"))
    steps = [(2, 2), (3, 4), (5, 8), (9, 16)]
    assert found == [
        (n, few, most, sure.least_sampled(200, 1000, p, 3 * most), math.ceil(8000 * 1000 / p))
        for n, p in enumerate(populations)
        for few, most in steps
    ]


# --- pruning


def _random_tree(source: random.Random) -> list[tuple[int, int | None, int, int | None, int, int, int]]:
    """Routes `(node, parent, first, size, threshold, mask_0, mask_1)` of a random binary tree over codes 0..99."""
    routes: list[Any] = []
    open_nodes: list[tuple[int, int | None, list[list[int]]]] = [(0, None, [[0, 100], [0, 100]])]
    following = 1
    while open_nodes:
        node, parent, box = open_nodes.pop(0)
        axis = source.randrange(2)
        low, high = box[axis]
        if following > 40 or high - low < 2 or (node and source.random() < 0.25):
            routes.append((node, parent, node, None, NEVER, 0, 0))
            continue
        cut = source.randrange(low + 1, high)
        masks = [0, 0]
        masks[axis] = (1 << BITS) - 1
        routes.append((node, parent, following, 2, cut, *masks))
        for place, side in enumerate(([low, cut], [cut, high])):
            open_nodes.append((following + place, node, [side if a == axis else box[a] for a in range(2)]))
        following += 2
    return routes


def _pruned(
    routes: list[tuple[Any, ...]], rows: list[tuple[int, int]], k: int
) -> tuple[dict[tuple[int, int], int], set[int]]:
    """The final node of every distinct row, and the nodes that are pruned, by the definition."""
    by_node = {route[0]: route for route in routes}
    ways = {row: _way(by_node, row) for row in set(rows)}
    sizes = Counter(node for row in rows for node in ways[row])
    tops = {route[1] for route in routes if 0 < sizes[route[0]] < k and route[1] is not None}
    final = {row: next((node for node in way if node in tops), way[-1]) for row, way in ways.items()}
    gone = {route[0] for route in routes if _ancestors(by_node, route[0]) & tops}
    return final, gone


def _way(by_node: dict[int, tuple[Any, ...]], row: tuple[int, int]) -> list[int]:
    way = [0]
    while by_node[way[-1]][3] is not None:
        _, _, first, _, cut, *masks = by_node[way[-1]]
        value = row[0] if masks[0] else row[1]
        way.append(first + (value >= cut))
    return way


def _ancestors(by_node: dict[int, tuple[Any, ...]], node: int) -> set[int]:
    found, parent = set(), by_node[node][1]
    while parent is not None:
        found.add(parent)
        parent = by_node[parent][1]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_subtrees_of_parents_of_violating_nodes_are_merged(engine: Engine, seed: int) -> None:
    source = random.Random(seed)
    rows = [(source.randrange(100), int(source.triangular(0, 99, 10))) for _ in range(400)]
    k = source.choice([3, 8, 20])
    routes = _random_tree(source)
    branch = _branch(engine, (KAnonymity(k),), len(rows))
    _load(engine, "t", "p0 p1", rows)
    columns = "node parent first size threshold mask_0 mask_1"
    _load(engine, "routes", columns, routes)
    tree = SampleTree(
        Relation("routes"), 0, 1, max(len(_ancestors({r[0]: r for r in routes}, r[0])) for r in routes), 0, 99
    )
    whole = Markup("(SELECT CAST(0 AS BIGINT) AS node, t.* FROM t)")
    settled = Repartition(branch, tree, whole, 0).carry_out()
    expected, gone = _pruned(routes, rows, k)
    union = " UNION ALL ".join(f"SELECT node, p0, p1 FROM {table}" for table in settled.rows)
    inside = f"SELECT u.* FROM ({union}) AS u JOIN {settled.ranges} AS m ON m.node = u.node"
    found = _fetch(engine, f"SELECT node, p0, p1 FROM ({inside}) AS x")
    assert Counter((node // 4, p, q) for node, p, q in found) == Counter((expected[row], *row) for row in rows)
    assert settled.pruned == len(gone)
    sizes = Counter(expected[row] for row in rows)
    ranges = _fetch(engine, f"SELECT node, n, lo_0, hi_0, lo_1, hi_1 FROM {settled.ranges}")
    assert {node // 4: n for node, n, *_ in ranges} == sizes
    for node, _, *bounds in ranges:
        inner = [row for row in rows if expected[row] == node // 4]
        tight = [f(row[a] for row in inner) for a in range(2) for f in (min, max)]
        assert bounds == tight
