"""Local suppression: what is published, held row by row against the definition of rows that fit, on both engines."""

from __future__ import annotations

import csv
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.methods.cells.search import sequence, suppressing
from sqlanon.models import models_of
from sqlanon.policy import Policy
from sqlanon.results.run_result import RunResult
from sqlanon.results.search_facts import CellFacts
from sqlanon.sql import Relation
from sqlanon.verification.matching import _packed
from sqlanon.verification.release import verify_release, verify_rows
from tests.adult import ADULT, ATTRIBUTES, needs_adult
from tests.cli.support import call
from tests.oracle.matching import (
    STAR,
    groups,
    least_matching,
    least_values,
    suppress_greedily,
    suppress_row_by_row,
)
from tests.run_support import Database, Row, anonymize, open_database

NAMES = ("a", "b", "c", "d")
COLUMNS = {"a": "INTEGER", "b": "VARCHAR", "c": "VARCHAR", "d": "INTEGER", "ill": "VARCHAR", "row_id": "INTEGER"}
ROLES = {**dict.fromkeys(NAMES, "quasi-identifier"), "ill": "sensitive", "row_id": "insensitive"}
QUASI = range(len(NAMES))


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


def suppression(**more: Any) -> dict[str, Any]:
    return {"name": "local-suppression", **more}


def texts(row: Row) -> Row:
    """Write what a row shows without stars."""
    return tuple("NULL" if value is None else str(value) for value in row[: len(NAMES)])


def released_rows(database: Database, policy: Policy) -> list[Row]:
    return sorted(database.sql(f"SELECT * FROM {policy.release.table}"), key=lambda row: row[-1])


def random_rows(rng: random.Random, count: int) -> list[Row]:
    return [
        (
            rng.choice([None, 1, 2, 3, 4]),
            rng.choice(["x", "y", "z"]),
            rng.choice([None, "p", "q"]),
            rng.randint(0, 6),
            rng.choice(["flu", "cold", "cough", None]),
            number,
        )
        for number in range(count)
    ]


def run_on(database: Database, rows: list[Row], **more: Any) -> tuple[RunResult, Policy, list[Row]]:
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, **more)
    result = anonymize(policy)
    return result, policy, released_rows(database, policy)


def require_true(rows: list[Row], shown: list[Row]) -> None:
    """Every cell is the value of its row or a star, and what is kept is as it was."""
    for row, one in zip(rows, shown, strict=True):
        assert one[len(NAMES) :] == row[len(NAMES) :]
        assert all(cell in (value, STAR) for value, cell in zip(texts(row), one, strict=False))


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 4])
def test_enough_rows_fit_every_row(database: Database, seed: int, k: int) -> None:
    rows = random_rows(random.Random(seed), 40)
    result, _, shown = run_on(database, rows, algorithm=suppression(), privacy=anonymity(k))
    require_true(rows, shown)
    least = least_matching(shown, QUASI)
    assert least >= k
    assert result.models[0].worst == result.release.min_class_size == least
    facts = result.algorithm.facts
    assert isinstance(facts, CellFacts)
    assert facts.cells == sum(row[c] == STAR for row in shown for c in QUASI)
    assert facts.starred_rows == sum(STAR in row[: len(NAMES)] for row in shown)
    assert database.leftovers() == []


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", range(4))
def test_the_rows_that_fit_have_enough_sensitive_values(database: Database, seed: int) -> None:
    rows = random_rows(random.Random(seed), 40)
    diverse = {"model": "distinct-l-diversity", "attribute": "ill", "l": 3}
    roles = {**ROLES, "ill": {"role": "sensitive", "nulls": "nothing"}}
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, roles, algorithm=suppression(), privacy=[*anonymity(3), diverse])
    result = anonymize(policy)
    shown = released_rows(database, policy)
    require_true(rows, shown)
    assert least_matching(shown, QUASI) >= 3
    values = least_values(shown, QUASI, lambda row: row[len(NAMES)])
    assert result.models[1].worst == values >= 3


@pytest.mark.parametrize("seed", range(2))
def test_two_sensitive_columns_are_judged_by_their_own_values(database: Database, seed: int) -> None:
    """Round after round: the values of one must not stand in for those of the other."""
    rows = [(*row[:3], row[3] % 3, *row[4:]) for row in random_rows(random.Random(seed), 60)]
    table = database.create(COLUMNS, rows)
    roles = ROLES | {"d": {"role": "sensitive"}, "ill": {"role": "sensitive", "nulls": "nothing"}}
    diverse = [{"model": "distinct-l-diversity", "attribute": name, "l": 3} for name in ("ill", "d")]
    policy = database.policy(table, roles, algorithm=suppression(), privacy=[*anonymity(4), *diverse])
    result = anonymize(policy)
    shown = released_rows(database, policy)
    assert least_matching(shown, range(3)) >= 4
    for model, place in ((result.models[1], len(NAMES)), (result.models[2], 3)):
        assert model.worst == least_values(shown, range(3), lambda row, place=place: row[place]) >= 3


@pytest.mark.either_engine
def test_persons_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, random_rows(random.Random(1), 10))
    roles = ROLES | {"row_id": {"role": "identifier", "show": "surrogate"}}
    policy = database.policy(table, roles, algorithm=suppression(), privacy=anonymity(2), subject="row_id")
    with pytest.raises(PolicyError, match="local-suppression counts the rows that fit a row, and not their persons"):
        anonymize(policy)


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", range(3))
def test_every_combination_of_columns_is_checked_alone(database: Database, seed: int) -> None:
    rows = random_rows(random.Random(seed), 50)
    algorithm = suppression(subsets={2: 9, 3: 5})
    result, _, shown = run_on(database, rows, algorithm=algorithm, privacy=anonymity(2))
    require_true(rows, shown)
    for size, k in ((2, 9), (3, 5)):
        least = min(least_matching(shown, columns) for columns in itertools.combinations(QUASI, size))
        assert least >= k
        assert any(m.parameters == {"k": k, "columns": size} and m.worst == least for m in result.models)
    assert least_matching(shown, QUASI) >= 2


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["local-suppression", "cell-generalization"])
def test_a_subset_may_be_all_columns(database: Database, name: str) -> None:
    """It may ask for more rows than the models do, beside which it is met."""
    rows, diverse = random_rows(random.Random(4), 40), {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
    result, _, shown = run_on(
        database, rows, algorithm={"name": name, "subsets": {4: 6, 2: 9}}, privacy=[*anonymity(2), diverse]
    )
    require_true(rows, shown)
    least = least_matching(shown, QUASI)
    assert least >= 6
    assert any(one.parameters == {"k": 6, "columns": 4} and one.worst == least for one in result.models)
    assert all(least_matching(shown, pair) >= 9 for pair in itertools.combinations(QUASI, 2))


def test_combinations_that_are_met_change_no_tuples(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run, stated = Engine.run, list[str]()

    def note(self: Engine, name: str, /, **given: Any) -> Any:
        stated.append(name)
        return run(self, name, **given)

    monkeypatch.setattr(Engine, "run", note)
    algorithm = suppression(subsets={2: 2, 3: 2})
    run_on(database, random_rows(random.Random(1), 40), algorithm=algorithm, privacy=anonymity(2))
    assert stated.count("methods/cells/project_states") == 10
    assert stated.count("methods/cells/apply_stars") == 0


def hold_sizes_against_brute_force(database: Database, names: tuple[str, ...], rows: list[Row]) -> None:
    table = database.create(dict.fromkeys(names, "VARCHAR"), rows)
    policy = database.policy(
        table, dict.fromkeys(names, "quasi-identifier"), algorithm=suppression(), privacy=anonymity(2)
    )
    with connect(database.url) as engine:
        verification = verify_rows(engine, Relation.parse(table), names, models_of(policy), policy, {}, None)
    sizes = Counter(len(group) for group in groups(rows, range(len(names))))
    assert verification.statistics.sizes == tuple(sorted(sizes.items()))


@pytest.mark.either_engine
def test_many_values_of_many_columns_are_compared_in_several_words(database: Database) -> None:
    """Verification packs the numbers of values: twelve columns of some fifty values are more than a word holds."""
    rng, names = random.Random(2), tuple(f"q{place}" for place in range(12))
    rows: list[Row] = []
    for _ in range(120):
        near = rng.choice(rows) if rows and rng.random() < 0.8 else tuple(str(rng.randint(0, 60)) for _ in names)
        rows.append(tuple(STAR if rng.random() < 0.2 else cell for cell in near))
    hold_sizes_against_brute_force(database, names, rows)
    assert _packed([7, 55, 6, 56, 62, 1]) == [range(2), range(2, 4), range(4, 5), range(5, 6)]


@pytest.mark.either_engine
def test_null_is_one_more_value_of_a_column(database: Database) -> None:
    """A release shows none, but any table may be verified: with NULL, x, y and * need three bits."""
    rng, names = random.Random(3), tuple(f"q{place}" for place in range(12))
    base = [tuple(rng.choice([None, "x", "y"]) for _ in names) for _ in range(20)]
    rows: list[Row] = [tuple(STAR if rng.random() < 0.3 else cell for cell in row) for row in base * 2]
    hold_sizes_against_brute_force(database, names, rows)


@pytest.mark.either_engine
def test_a_dictionary_of_stars_is_one_statement_a_column(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run, stated = Engine.run, list[str]()

    def note(self: Engine, name: str, /, **given: Any) -> Any:
        stated.append(name)
        return run(self, name, **given)

    monkeypatch.setattr(Engine, "run", note)
    run_on(database, random_rows(random.Random(1), 30), algorithm=suppression(), privacy=anonymity(2))
    assert [name for name in stated if name.startswith("hierarchies/")] == ["hierarchies/star_values"] * len(NAMES)
    assert stated.count("methods/cells/create_subsets") == 1


@pytest.mark.either_engine
def test_whole_columns_show_no_star_and_heavy_ones_fewer(database: Database) -> None:
    rows = random_rows(random.Random(11), 60)
    _, _, plain = run_on(database, rows, algorithm=suppression(), privacy=anonymity(3))
    _, _, spared = run_on(database, rows, algorithm=suppression(importance={"d": 10}), privacy=anonymity(3))
    _, _, whole = run_on(database, rows, algorithm=suppression(whole=["b"]), privacy=anonymity(3))
    count = lambda shown, column: sum(row[column] == STAR for row in shown)  # noqa: E731
    assert count(spared, 3) < count(plain, 3)
    assert count(plain, 1) > 0
    assert count(whole, 1) == 0
    assert least_matching(spared, QUASI) >= 3
    assert least_matching(whole, QUASI) >= 3


@pytest.mark.either_engine
def test_rows_that_whole_columns_tell_apart_are_refused(database: Database) -> None:
    rows = [(1, "x", "p", n, "flu", n) for n in range(5)] + [(1, "y", "p", 9, "flu", 9)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, algorithm=suppression(whole=["b"]), privacy=anonymity(3))
    with pytest.raises(ProtectionError, match=r"1 row is equal to too few others .*\(b\)"):
        anonymize(policy)
    assert database.leftovers() == []


def test_both_engines_publish_the_same(tmp_path: Any, postgres_url: str) -> None:
    rows = random_rows(random.Random(3), 60)
    shown = []
    for url in (f"duckdb:///{tmp_path / 'a.duckdb'}", postgres_url):
        with open_database(url) as database:
            algorithm = suppression(subsets={2: 6}, importance={"a": 3})
            _, policy, released = run_on(database, rows, algorithm=algorithm, privacy=anonymity(3))
            shown.append(released)
        verification = verify_release(policy)
        assert verification.satisfied
        assert [one.parameters for one in verification.models] == [{"k": 3}, {"k": 6, "columns": 2}]
    assert shown[0] == shown[1]


CHOICES: dict[str, tuple[dict[str, Any], list[int], list[int]]] = {
    "plain": ({}, [1, 1, 1, 1], []),
    "important columns": ({"importance": {"a": 3, "d": 2}}, [3, 1, 1, 2], []),
    "whole columns": ({"whole": ["b"]}, [1, 1, 1, 1], [1]),
}


@pytest.mark.either_engine
@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 5), (3, 3)])
@pytest.mark.parametrize("choice", CHOICES)
def test_no_more_cells_than_row_by_row(database: Database, choice: str, seed: int, k: int) -> None:
    """Of small tables; nor more than by the rounds that large ones get."""
    asked, weights, whole = CHOICES[choice]
    rows = random_rows(random.Random(seed), 60)
    _, _, shown = run_on(database, rows, algorithm=suppression(**asked), privacy=anonymity(k))
    weight = sum(weights[column] for row in shown for column in QUASI if row[column] == STAR)
    plain = [texts(row) for row in rows]
    assert weight <= min(suppress_row_by_row(plain, k, weights, whole, most=most) for most in (False, True))
    assert least_matching(shown, QUASI) >= k
    require_true(rows, shown)


@pytest.mark.either_engine
def test_blocks_that_no_star_joins_get_the_best_order_each(database: Database) -> None:
    """One order for all blocks of a column that stays whole stars more, as the best order of each is another."""
    draw = random.Random(4)
    rows = [(draw.randrange(30), f"v{draw.randrange(8)}", None, draw.randrange(30), None, n) for n in range(120)]
    _, _, shown = run_on(database, rows, algorithm=suppression(whole=["b"]), privacy=anonymity(2))
    assert least_matching(shown, QUASI) >= 2
    require_true(rows, shown)
    stars = sum(row[column] == STAR for row in shown for column in QUASI)
    blocks = [[texts(row) for row in rows if row[1] == f"v{block}"] for block in range(8)]
    orders = [[draw.sample(block, len(block)) for _ in range(8)] for block in blocks]
    assert stars <= sum(min(suppress_row_by_row(order, 2, whole=[1]) for order in one) for one in orders)


@pytest.mark.either_engine
@pytest.mark.parametrize("more", [{}, {"subsets": {2: 6}}, {"values": 2}])
def test_small_tables_get_no_more_stars_than_large_ones(
    database: Database, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random_rows(random.Random(5), 60)
    privacy = [*anonymity(4), *([DIVERSE] if "values" in more else [])]
    algorithm = suppression(**{name: value for name, value in more.items() if name != "values"})
    stars = []
    for most in (sequence.MOST_ROWS, 0):
        monkeypatch.setattr(suppressing, "MOST_ROWS", most)
        _, _, shown = run_on(database, rows, algorithm=algorithm, privacy=privacy)
        stars.append(sum(row[column] == STAR for row in shown for column in QUASI))
        assert least_matching(shown, QUASI) >= 4
    assert stars[0] < stars[1]


@pytest.mark.either_engine
@needs_adult
def test_no_more_cells_than_a_published_greedy_search_stars(database: Database) -> None:
    quasi = ATTRIBUTES[:8]
    with (ADULT / "adult.csv").open() as file:
        rows = [tuple(line[name] for name in quasi) for line in csv.DictReader(file, delimiter=";")][:300]
    _, greedy = suppress_greedily(rows, 5)
    table = database.create(dict.fromkeys(quasi, "VARCHAR"), rows)
    policy = database.policy(
        table, dict.fromkeys(quasi, "quasi-identifier"), algorithm=suppression(), privacy=anonymity(5)
    )
    facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, CellFacts)
    assert facts.cells <= greedy
    assert least_matching(database.sql(f"SELECT * FROM {table}_r"), range(8)) >= 5


DIVERSE = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("more", "template", "values", "message"),
    [
        ({"privacy": anonymity(5)}, "methods/cells/create_candidates", {"least": 4}, "k-anonymity"),
        ({"privacy": [*anonymity(2), DIVERSE]}, "methods/cells/star_tuples", {"measures": []}, "distinct-l-diversity"),
        ({"algorithm": suppression(subsets={1: 9})}, "methods/cells/create_candidates", {"least": 2}, "k-anonymity"),
    ],
)
def test_a_search_that_stars_too_little_is_caught(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    more: dict[str, Any],
    template: str,
    values: dict[str, Any],
    message: str,
) -> None:
    """Each guarantee has a check of its own on what is published."""
    rows = [(number % 5, "x", "p", number % 2, "flu" if number % 5 else "cold", number) for number in range(40)]
    run = Engine.run

    def break_search(self: Engine, name: str, /, **given: Any) -> Any:
        return run(self, name, **{**given, **(values if name == template else {})})

    monkeypatch.setattr(Engine, "run", break_search)
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, **{"algorithm": suppression(), "privacy": anonymity(2), **more})
    with pytest.raises(VerificationError, match=message):
        anonymize(policy)
    assert database.leftovers() == []


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"algorithm": suppression(whole=["e"])}, r"algorithm\.whole\.e: it is not a quasi-identifier"),
        ({"algorithm": suppression(importance={"ill": 2})}, r"algorithm\.importance\.ill: it is not a quasi"),
        ({"algorithm": suppression(whole=list(NAMES))}, "every quasi-identifier is to stay whole"),
        ({"algorithm": suppression(subsets={5: 3})}, "there are only 4 quasi-identifiers"),
        (
            {"algorithm": suppression(subsets={2: 11})},
            r"algorithm\.subsets\.2: 11 rows can't fit a row, as the table holds 10; ask for less",
        ),
        (
            {"privacy": [{"model": "t-closeness", "attribute": "ill", "t": 0.5}]},
            "with local-suppression more rows fit a row",
        ),
    ],
)
def test_what_can_not_be_carried_out_is_refused_before_any_work(
    database: Database, more: dict[str, Any], message: str
) -> None:
    table = database.create(COLUMNS, random_rows(random.Random(1), 10))
    policy = database.policy(table, ROLES, **{"algorithm": suppression(), "privacy": anonymity(2), **more})
    with pytest.raises(PolicyError, match=message):
        anonymize(policy)


@pytest.mark.either_engine
@pytest.mark.parametrize("setting", [{"hierarchy": {"intervals": [2, 4]}}, {"show": "bounds"}])
def test_hierarchies_and_numbers_are_refused(database: Database, setting: dict[str, Any]) -> None:
    table = database.create(COLUMNS, random_rows(random.Random(1), 10))
    roles = {**ROLES, "d": {"role": "quasi-identifier", **setting}}
    policy = database.policy(table, roles, algorithm=suppression(), privacy=anonymity(2))
    with pytest.raises(PolicyError, match=r"attributes\.d: local-suppression shows"):
        anonymize(policy)


@pytest.mark.either_engine
def test_a_value_that_looks_like_a_star_is_refused(database: Database) -> None:
    rows = [*random_rows(random.Random(1), 10), (1, STAR, "p", 1, "flu", 10)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, algorithm=suppression(), privacy=anonymity(2))
    with pytest.raises(PolicyError, match=r"attributes\.b: 1 row holds the text `\*`"):
        anonymize(policy)


def test_a_file_whose_column_shows_no_star_is_verified(tmp_path: Path) -> None:
    """All ages have rows enough, so that the released column is read as numbers."""
    table = tmp_path / "people.csv"
    table.write_text("age,city\n" + "".join(f"{20 + i % 2},{('Rome', 'Oslo', 'Ulm')[i % 3]}\n" for i in range(11)))
    policy = tmp_path / "policy.yml"
    policy.write_text(
        f"source: {{file: {table}}}\nrelease: {{file: {tmp_path}/released.csv}}\n"
        f'catalog: {{url: "duckdb:///{tmp_path}/catalog.duckdb"}}\n'
        "attributes: {age: {role: quasi-identifier}, city: {role: quasi-identifier}}\n"
        "privacy: [{model: k-anonymity, k: 2}]\nalgorithm: {name: local-suppression}\n"
    )
    assert call("run", policy).exit_code == 0
    assert "*" not in {line.partition(",")[0] for line in (tmp_path / "released.csv").read_text().splitlines()}
    verified = call("verify", policy)
    assert verified.exit_code == 0, verified.output
