"""Ordered-set partitioning: held against all sets of cuts of small tables, on both engines, and applied to new rows."""

from __future__ import annotations

import datetime
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.results.run_result import RunResult
from sqlanon.results.search_facts import IntervalFacts
from sqlanon.verification.release import verify_release
from tests.rules_support import apply, listed
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = pytest.mark.slow

COLUMNS = {"a": "INTEGER", "b": "VARCHAR", "c": "INTEGER", "ill": "VARCHAR"}
ROLES: dict[str, Any] = {**dict.fromkeys("abc", "quasi-identifier"), "ill": "sensitive"}
QUASI = range(3)
DIVERSE = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
Cuts = dict[int, tuple[Any, ...]]  # for each column, the values below which it is cut


def anonymity(k: int) -> dict[str, Any]:
    return {"model": "k-anonymity", "k": k}


def ordered(**more: Any) -> dict[str, Any]:
    return {"name": "ordered-sets", **more}


def random_rows(seed: int, count: int = 40) -> list[Row]:
    rng = random.Random(seed)
    return [
        (rng.choice([None, 1, 2, 5, 9]), rng.choice("xyz"), rng.randint(0, 3), rng.choice(["flu", "cold", "cough"]))
        for _ in range(count)
    ]


def key(value: Any) -> tuple[bool, Any]:
    """The order of values: NULL is the least."""
    return (value is not None, value if value is not None else 0)


def places(rows: Sequence[Row]) -> list[tuple[int, Any]]:
    """List where columns may be cut: below each value but the least."""
    return [(c, value) for c in QUASI for value in sorted({row[c] for row in rows}, key=key)[1:]]


def divide(rows: Sequence[Row], cuts: Sequence[tuple[int, Any]]) -> list[list[Row]]:
    """Divide rows into classes: which cuts are not above them."""
    classes: dict[tuple[bool, ...], list[Row]] = {}
    for row in rows:
        classes.setdefault(tuple(key(row[c]) >= key(value) for c, value in cuts), []).append(row)
    return list(classes.values())


def is_protected(classes: Sequence[Sequence[Row]], k: int, values: int) -> bool:
    return all(len(one) >= k and len({row[3] for row in one}) >= values for one in classes)


def discernibility(classes: Sequence[Sequence[Row]]) -> int:
    return sum(len(one) ** 2 for one in classes)


def classification(classes: Sequence[Sequence[Row]]) -> int:
    return sum(len(one) - max(Counter(row[3] for row in one).values()) for one in classes)


def sets_of(cuts: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(cuts, size) for size in range(len(cuts) + 1))


def released_classes(database: Database, table: str) -> list[list[Row]]:
    classes: dict[Row, list[Row]] = {}
    for row in database.sql(f"SELECT * FROM {table}"):
        classes.setdefault(row[:3], []).append(row)
    return list(classes.values())


def run_on(database: Database, rows: list[Row], **more: Any) -> tuple[RunResult, IntervalFacts, str]:
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, **more))
    facts = result.algorithm.facts
    assert isinstance(facts, IntervalFacts)
    assert database.leftovers() == []
    return result, facts, f"{table}_r"


@pytest.mark.either_engine
@pytest.mark.parametrize(("seed", "values"), [(0, 1), (1, 3), (2, 3)])
def test_no_set_of_cuts_costs_less_than_that_of_the_exact_search(database: Database, seed: int, values: int) -> None:
    rows, k = random_rows(seed), 3
    models = [anonymity(k), *([{**DIVERSE, "l": values}] if values > 1 else [])]
    _, facts, table = run_on(database, rows, algorithm=ordered(search="exact"), privacy=models)
    allowed = (divide(rows, cuts) for cuts in sets_of(places(rows)))
    least = min(discernibility(one) for one in allowed if is_protected(one, k, values))
    released = released_classes(database, table)
    assert is_protected(released, k, values)
    assert discernibility(released) == least
    assert facts.proven
    assert facts.places == len(places(rows))
    assert facts.tried < 2**facts.places / 2


@pytest.mark.parametrize("seed", range(2))
def test_no_set_of_cuts_leaves_fewer_rows_out_of_the_majority(database: Database, seed: int) -> None:
    rows, k = random_rows(seed), 4
    algorithm = ordered(search="exact", quality="classification", target="ill")
    _, _, table = run_on(database, rows, algorithm=algorithm, privacy=[anonymity(k)])
    allowed = (divide(rows, cuts) for cuts in sets_of(places(rows)))
    least = min(classification(one) for one in allowed if is_protected(one, k, 1))
    assert classification(released_classes(database, table)) == least


def cut_greedily(rows: Sequence[Row], k: int, values: int) -> tuple[list[tuple[int, Any]], int]:
    """Make the cut by which the squared sizes fall most, as long as there is one; the cuts, and the cost."""
    cuts: list[tuple[int, Any]] = []
    cost = discernibility([list(rows)])
    while True:
        tried = [(discernibility(divide(rows, [*cuts, one])), place) for place, one in enumerate(places(rows))]
        better = [
            (new, place)
            for new, place in sorted(tried)
            if new < cost and is_protected(divide(rows, [*cuts, places(rows)[place]]), k, values)
        ]
        if not better:
            return cuts, cost
        cost, place = better[0]
        cuts.append(places(rows)[place])


@pytest.mark.either_engine
@pytest.mark.parametrize(("seed", "values"), [(0, 1), (1, 3), (2, 1), (3, 3)])
def test_the_greedy_search_makes_the_best_cut_each_time(database: Database, seed: int, values: int) -> None:
    rows, k = random_rows(seed, 60), 3
    models = [anonymity(k), *([{**DIVERSE, "l": values}] if values > 1 else [])]
    result, facts, table = run_on(database, rows, algorithm=ordered(), privacy=models)
    cuts, cost = cut_greedily(rows, k, values)
    assert discernibility(released_classes(database, table)) == cost
    assert facts.intervals == {name: 1 + sum(c == place for c, _ in cuts) for place, name in enumerate("abc")}
    assert result.algorithm.rounds == len(cuts)
    assert not facts.proven


@pytest.mark.either_engine
def test_a_value_is_shown_the_same_in_all_rows(database_url: str) -> None:
    columns = {"Odd \"name'": "DATE", "pay %": "NUMERIC(6,2)", "x": "DOUBLE PRECISION", "id": "INTEGER"}
    rng = random.Random(4)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=n) for n in range(9)]
    rows = [
        (rng.choice([None, *days]), Decimal(rng.randint(0, 99)) / 4, rng.choice([-0.5, 1e9, 2.25, None]), number)
        for number in range(60)
    ]
    quasi = {"role": "quasi-identifier"}
    roles = {"Odd \"name'": quasi, "pay %": quasi | {"show": "bounds", "nulls": "allow"}, "x": quasi}
    with open_database(database_url) as database:
        table = database.create(columns, rows)
        policy = database.policy(table, {**roles, "id": "insensitive"}, algorithm=ordered(), privacy=[anonymity(3)])
        anonymize(policy)
        shown = {row[-1]: row for row in database.sql(f"SELECT * FROM {table}_r")}
    assert verify_release(policy).satisfied
    for column, cells in ((0, slice(0, 1)), (1, slice(1, 3)), (2, slice(3, 4))):
        labels: dict[Any, set[Row]] = {}
        for row in rows:
            labels.setdefault(row[column], set()).add(shown[row[-1]][cells])
        assert all(len(one) == 1 for one in labels.values())
        assert len(set().union(*labels.values())) > 1


def test_both_engines_publish_the_same(tmp_path: Any, postgres_url: str) -> None:
    shown = []
    for url in (f"duckdb:///{tmp_path / 'a.duckdb'}", postgres_url):
        with open_database(url) as database:
            models = [anonymity(3), {"model": "t-closeness", "attribute": "ill", "t": 0.4}]
            _, facts, table = run_on(database, random_rows(5, 80), algorithm=ordered(cuts=2), privacy=models)
            assert facts.places == 6
            shown.append(sorted(database.sql(f"SELECT * FROM {table}"), key=str))
    assert shown[0] == shown[1]
    assert len(shown[0]) == 80


@pytest.mark.either_engine
def test_new_rows_show_the_same_by_apply_and_by_the_exported_select(database: Database) -> None:
    """One of the combinations of intervals has no rows, and a new one falls there; others are beyond all values."""
    rows: list[Row] = [(a, b, c, "flu") for a in (1, 2, 8, 9) for b in "xy" for c in (0, 5) for _ in range(3)]
    rows = [row for row in rows if row[0] < 5 or row[2] < 5]
    result, facts, table = run_on(database, rows, algorithm=ordered(), privacy=[anonymity(3)])
    source = table.removesuffix("_r")
    apply(database, result.run, source, f"{source}_again", "error")
    order = "ORDER BY 1, 2, 3, 4"
    assert database.sql(f"SELECT * FROM {source}_again {order}") == database.sql(f"SELECT * FROM {table} {order}")
    assert facts.intervals == {"a": 4, "b": 2, "c": 2}
    newer = database.create(COLUMNS, [(row[0], row[1], row[2], "cold") for row in [(9, "y", 7), (70, "y", 0)] * 3])
    apply(database, result.run, newer, f"{newer}_r", "error")
    applied = database.sql(f"SELECT * FROM {newer}_r {order}")
    assert {row[:3] for row in applied} == {("[9-*]", "y", "[5-*]"), ("[9-*]", "y", "[*-4]")}
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, result.run), catalog.run(result.run), newer)
    assert sorted(database.sql(text)) == applied
    assert sum(rule.rows == 0 for rule in listed(database, result.run)) > 0


@pytest.mark.either_engine
def test_a_table_that_no_cut_divides_is_one_class(database: Database) -> None:
    rows: list[Row] = [(n, "x", 0, "flu") for n in range(5)]
    result, facts, table = run_on(database, rows, algorithm=ordered(), privacy=[anonymity(3)])
    assert facts.intervals == {"a": 1, "b": 1, "c": 1}
    assert {row[0] for row in database.sql(f"SELECT * FROM {table}")} == {"*"}
    source = table.removesuffix("_r")
    apply(database, result.run, source, f"{source}_again", "error")


@pytest.mark.either_engine
def test_each_round_takes_the_same_statements(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query, asked = Engine.query, list[str]()

    def note(self: Engine, name: str, /, **given: Any) -> Any:
        asked.append(name)
        return query(self, name, **given)

    monkeypatch.setattr(Engine, "query", note)
    _, facts, _ = run_on(database, random_rows(1, 60), algorithm=ordered(), privacy=[anonymity(3)])
    assert asked.count("methods/intervals/score_cuts") == sum(facts.intervals.values()) - len(facts.intervals) + 1


EVENLY = {1: {50}, 2: {33, 67}, 3: {25, 50, 75}}  # where a hundred values are cut


@pytest.mark.either_engine
@pytest.mark.parametrize("cuts", EVENLY)
def test_few_cuts_divide_the_rows_evenly(database: Database, cuts: int) -> None:
    rows: list[Row] = [(n, "x", 0, "flu") for n in range(100)]
    _, facts, table = run_on(database, rows, algorithm=ordered(cuts=cuts))
    assert facts.places == cuts
    shown = {row[0] for row in database.sql(f"SELECT * FROM {table}")}
    assert {int(label[1:].split("-")[0]) for label in shown if label[1] != "*"} == EVENLY[cuts]


@pytest.mark.either_engine
@pytest.mark.parametrize("least", [True, False])
def test_a_column_of_which_most_rows_have_one_value_is_cut_where_it_can_be(database: Database, least: bool) -> None:
    rows: list[Row] = [(n if n < 3 else 9 * (not least), "x", 0, "flu") for n in [0, 0, 1, 1, 2, 2, *[3] * 60]]
    _, facts, _ = run_on(database, rows, algorithm=ordered(cuts=1))
    assert facts.intervals["a"] == 2


@pytest.mark.either_engine
@pytest.mark.parametrize("model", ["k-anonymity", "distinct-l-diversity"])
def test_a_search_that_cuts_too_far_is_caught(database: Database, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    query, query_one = Engine.query, Engine.query_one

    def cut_further(self: Engine, name: str, /, **given: Any) -> Any:
        return query(self, name, **{**given, **({"fewest": 1} if name == "methods/intervals/score_cuts" else {})})

    def see_no_failure(self: Engine, name: str, /, **given: Any) -> Any:
        return (0, 0) if name == "encoding/frequency/count_failing" else query_one(self, name, **given)

    if model == "k-anonymity":
        monkeypatch.setattr(Engine, "query", cut_further)
    else:
        monkeypatch.setattr(Engine, "query_one", see_no_failure)
    table = database.create(COLUMNS, random_rows(2, 60))
    models = [anonymity(4), *([{**DIVERSE, "l": 3}] if model != "k-anonymity" else [])]
    with pytest.raises(VerificationError, match=model):
        anonymize(database.policy(table, ROLES, algorithm=ordered(), privacy=models))
    assert database.leftovers() == []


REFUSED: Mapping[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "hierarchy": ({"c": {"hierarchy": {"intervals": [2]}}}, {}, r"attributes\.c: .* has no use for a hierarchy"),
    "mean": ({"c": {"show": "mean"}}, {}, r"attributes\.c: .* no mean of single classes"),
    "observed": ({}, {"ranges": "observed"}, "ranges: ordered-sets shows ranges from cut to cut"),
    "exact": ({}, {"algorithm": ordered(search="exact", cuts=30)}, r"at most 20 cuts, and there are 3\d \(a \d+, "),
    "table": ({}, {"privacy": [{"model": "average-risk", "risk": 0.5}]}, "ordered-sets decides class by class"),
}


@pytest.mark.either_engine
@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_carried_out_is_refused(database: Database, case: str) -> None:
    attributes, more, message = REFUSED[case]
    table = database.create(COLUMNS, [(n, "xyz"[n % 3], n % 4, "flu") for n in range(30)])
    roles = {**ROLES, **{name: {"role": "quasi-identifier"} | one for name, one in attributes.items()}}
    with pytest.raises(PolicyError, match=message):
        anonymize(database.policy(table, roles, **{"algorithm": ordered(), **more}))
    assert database.leftovers() == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"quality": "classification", "search": "exact"}, "must have a target with quality: classification"),
        ({"target": "ill"}, "must have a target with quality: classification, and only with that"),
        ({"quality": "classification", "target": "ill"}, "write search: exact"),
        ({"cuts": 0}, "cuts"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(
    database: Database, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        database.policy("t", ROLES, algorithm=ordered(**parameters))
