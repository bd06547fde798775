"""Rules of every kind of tree, split by gain, grown on samples or pruned: each row falls under one, on both engines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.algorithms.tree import forest
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.partitioning.gain import scanning
from sqlanon.releases.rules import route_rows
from tests.methods.partitioning.mondrian_oracle import FLAVOURS, JOBS, Attribute, satisfies
from tests.random_cases import many
from tests.rules_support import classes, opened, recoded
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

SOME = settings(
    max_examples=many(2),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ALGORITHMS: dict[str, dict[str, Any]] = {
    "information": {"name": "rothko-t", "split": "information-gain", "target": "s", "least_gain": 0.05},
    "regression": {"name": "rothko-t", "split": "regression", "target": "y", "least_gain": 0.05},
    "samples": {"name": "rothko-s", "sample": 7, "alpha": 0.4, "seed": 5, "exact_below": 0},
}
_OTHERS = {"s": "VARCHAR(1)", "y": "INTEGER", "id": "INTEGER"}
ALGORITHMS["gain of samples"] = {**ALGORITHMS["samples"], "split": "information-gain", "target": "s"}


@pytest.fixture(autouse=True)
def few_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small trees are deeper than the levels that rows go down in one statement."""
    monkeypatch.setattr(route_rows, "LEVELS", 2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Attribute, ...], list[Row], list[Row], int]:
    """Attributes, source rows `(q0, …, s, y, id)`, new rows of the whole domain, and k."""
    flavours = draw(st.lists(st.sampled_from(FLAVOURS), min_size=1, max_size=3))

    def rows(least: int, pools: Sequence[Sequence[Any]]) -> list[Row]:
        cells = st.tuples(*(st.sampled_from(pool) for pool in pools), st.sampled_from("xyz"), st.integers(0, 9))
        return [(*row, place) for place, row in enumerate(draw(st.lists(cells, min_size=least, max_size=40)))]

    seen = [draw(st.lists(st.sampled_from(a.pool), min_size=2, max_size=9)) for a in flavours]
    source = rows(8, seen)
    return tuple(flavours), source, rows(3, [a.pool for a in flavours]), draw(st.integers(1, 3))


@pytest.mark.parametrize("name", ALGORITHMS)
@SOME
@given(case=cases())
def test_rules_divide_their_source_as_released_and_new_rows_alike(
    databases: tuple[Database, Database], name: str, case: tuple[tuple[Attribute, ...], list[Row], list[Row], int]
) -> None:
    attributes, source, new, k = case
    policy = {"privacy": [{"model": "k-anonymity", "k": k}], "algorithm": ALGORITHMS[name]}
    found = [recoded(d, attributes, source, new, _OTHERS, **policy) for d in databases]
    assert found[0] == found[1], "the engines differ"
    width = len(found[0].released[0]) - len(_OTHERS)
    released, again, newer = (classes(rows or [], width) for rows in found[0][1:])
    assert released == again, "the source is divided otherwise than it was released"
    members = {row[-1]: row for row in new}
    for ids in newer:
        assert satisfies(policy["privacy"], [members[n] for n in ids], new)


# --- one rule for every row

_COLUMNS = {"n": "INTEGER", "m": "INTEGER", "j": "VARCHAR(9)", "s": "VARCHAR(1)", "y": "INTEGER", "id": "INTEGER"}
_JOB = {"role": "quasi-identifier", "hierarchy": {"mapping": {job: list(path) for job, path in JOBS.items()}}}
_ROLES: dict[str, Any] = {
    "n": "quasi-identifier",
    "m": "quasi-identifier",
    "j": _JOB,
    "s": "sensitive",
    "y": "insensitive",
    "id": "insensitive",
}
_TREES: dict[str, dict[str, Any]] = {
    "information": {**ALGORITHMS["information"], "least_gain": 0.01},
    "few bins": {**ALGORITHMS["regression"], "bins": 4},
    "samples": {"name": "rothko-s", "sample": 100, "alpha": 0.05, "seed": 3, "exact_below": 0},
    "lying samples": {"name": "rothko-s", "sample": 20, "alpha": 0.49, "seed": 2, "exact_below": 0},
}
_TREES["gain of samples"] = {**_TREES["samples"], "split": "information-gain", "target": "s"}
_TREES["gain of lying samples"] = {**_TREES["lying samples"], "split": "regression", "target": "y"}


def _people(number: int) -> list[Row]:
    jobs = [*JOBS, None]
    return [
        (i * 7919 % 61, None if i % 11 == 0 else i * i % 37, jobs[i * 31 % 97 % 5], "xyz"[i * 13 % 61 // 25], i % 50, i)
        for i in range(number)
    ]


@pytest.mark.either_engine
@pytest.mark.parametrize("sessions", [1, 3])
@pytest.mark.parametrize("name", _TREES)
def test_every_row_falls_under_one_rule(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, sessions: int
) -> None:
    """The rules' boxes, looked at from outside: every point of the domain is in one, and rows of one class are too."""
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 0)
    monkeypatch.setattr(scanning, "FINE_BINS", ((0, 4),))
    rows = _people(400)
    table = database.create(_COLUMNS, rows)
    k = [{"model": "k-anonymity", "k": 6}]
    policy = database.policy(table, _ROLES, privacy=k, algorithm=_TREES[name])
    outcome = anonymize(policy, options=EngineOptions(threads=sessions))
    if name == "lying samples":
        assert outcome.algorithm.facts.pruned > 0
        assert outcome.algorithm.facts.samplings > 1
    with opened(database, outcome.run) as (engine, stored):
        assert stored.tables is not None
        leaves = engine.query("releases/rules/read_table", table=stored.tables.leaves)
        segments = engine.query("releases/rules/read_segments", segments=stored.tables.segments)
        heights = [attribute.height for attribute in stored.attributes]
    assert len(leaves) >= outcome.release.classes > 4
    places = [_places(segments, number, height) for number, height in enumerate(heights)]
    by_leaf: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        point = [place[row[i]] for i, place in enumerate(places)]
        by_leaf[_only(leaves, point)].append(row[-1])
    assert sorted(map(sorted, by_leaf.values())) == classes(database.sql(f"SELECT * FROM {table}_r"), 3)
    assert {leaf: n for leaf, n, *_ in leaves if n} == {leaf: len(ids) for leaf, ids in by_leaf.items()}
    for point in _corners(places):
        _only(leaves, point)


def _only(leaves: Sequence[Row], point: Sequence[int]) -> int:
    inside = [
        leaf
        for leaf, _, *box in leaves
        if all(lo <= p <= hi for p, lo, hi in zip(point, box[::2], box[1::2], strict=True))
    ]
    assert len(inside) == 1, "a gap or an overlap"
    return int(inside[0])


class _Cut(dict[Any, int]):
    """The segment of every value of an attribute that is cut at values."""

    def __init__(self, cuts: Sequence[int]) -> None:
        super().__init__({None: 0})
        self.cuts = cuts

    def __missing__(self, value: int) -> int:
        return 1 + sum(cut <= value for cut in self.cuts)


def _places(segments: Sequence[Row], number: int, height: int | None) -> dict[Any, int]:
    """The segment that a value is in: of a hierarchy that of the lowest group that rules name."""
    mine = [row[1:] for row in segments if row[0] == number]
    if height is None:
        return _Cut([int(value) for _, _, _, value in mine if value is not None])
    named = {(level, label): segment for segment, _, level, label in mine if level is not None}
    places = {None: 0}
    for job, path in JOBS.items():
        groups = [*enumerate((job, *path, "*"))]
        places[job] = next(named[group] for group in groups if group in named)
    return places


def _corners(places: Sequence[dict[Any, int]]) -> Iterator[list[int]]:
    """Points of all parts of the domain, also where no row is."""
    for n in range(-5, 70, 5):
        for m in (None, -1, 3, 11, 20, 99):
            for job in (None, *JOBS):
                value = (n, m, job)
                yield [place[v] for place, v in zip(places, value, strict=True)]
