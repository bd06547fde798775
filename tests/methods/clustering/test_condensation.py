"""Condensation: synthetic rows on both engines, what is claimed of them, and what is refused."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import check_policy
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.results.search_facts import CondensedFacts
from sqlanon.sql import Identifier, Relation, Statement
from tests.cli.support import call_main
from tests.random_cases import many
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

QUASI = "quasi-identifier"
CONDENSED = {"name": "condensation"}
COLUMNS = {"a": "INTEGER", "b": "DOUBLE PRECISION", "c": "VARCHAR", "s": "VARCHAR", "id": "INTEGER"}
ROLES = {"a": QUASI, "b": QUASI, "c": QUASI, "s": "sensitive", "id": "insensitive"}


def rows_of(count: int, seed: int = 0) -> list[Row]:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        wealth = draw.gauss(0, 1)
        rows.append(
            (round(1000 * wealth), 3 * wealth + draw.gauss(0, 1), draw.choice("xyz"), draw.choice("pq"), number)
        )
    return rows


def covariance(rows: list[Row], one: int, other: int) -> float:
    means = [sum(row[place] for row in rows) / len(rows) for place in (one, other)]
    return sum((row[one] - means[0]) * (row[other] - means[1]) for row in rows) / len(rows)


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", range(3))
def test_synthetic_rows_keep_covariances_categories_and_kept_values(database: Database, seed: int) -> None:
    rows = rows_of(600, seed)
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, algorithm=CONDENSED, privacy=anonymity(10))
    result = anonymize(policy)
    released = database.sql(f"SELECT * FROM {table}_r")
    assert len(released) == len(rows)
    assert Counter(row[2] for row in released) == Counter(row[2] for row in rows)
    assert sorted(row[3:] for row in released) == sorted(row[3:] for row in rows)
    for one, other in ((0, 0), (0, 1), (1, 1)):
        assert covariance(released, one, other) == pytest.approx(covariance(rows, one, other), rel=0.15)
    facts = result.algorithm.facts
    assert isinstance(facts, CondensedFacts)
    assert facts.smallest >= 10
    assert {row[:2] for row in released}.isdisjoint(row[:2] for row in rows)
    assert database.leftovers() == []


@pytest.mark.either_engine
def test_each_run_draws_anew(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(60))
    drawn = [database.release(table, ROLES, algorithm=CONDENSED) for _ in range(2)]
    assert drawn[0] != drawn[1]


@pytest.mark.either_engine
def test_scale_makes_groups_larger(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(100))
    policy = database.policy(table, ROLES, algorithm=CONDENSED | {"scale": 2.5}, privacy=anonymity(3))
    facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, CondensedFacts)
    assert facts.smallest >= 8


@pytest.mark.either_engine
def test_a_number_that_all_rows_of_a_group_have_is_widened(database: Database) -> None:
    rows = [(1000 * (number // 10), float(number), "x", "p", number) for number in range(40)]
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, algorithm=CONDENSED, privacy=anonymity(5)))
    facts = result.algorithm.facts
    assert isinstance(facts, CondensedFacts)
    assert facts.widened > 0
    assert all(row[0] not in (0, 1000, 2000, 3000) for row in database.sql(f"SELECT * FROM {table}_r"))


@pytest.mark.either_engine
def test_groups_satisfy_other_models(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(120))
    privacy = [*anonymity(3), {"model": "distinct-l-diversity", "l": 2, "attribute": "s"}]
    result = anonymize(database.policy(table, ROLES, algorithm=CONDENSED, privacy=privacy))
    assert all(model.satisfied for model in result.models)


@pytest.mark.either_engine
def test_a_column_of_one_number_stays_as_it_is(database: Database) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(number, 7) for number in range(12)])
    released = database.release(table, {"a": QUASI, "b": QUASI}, algorithm=CONDENSED, privacy=anonymity(4))
    assert {row[1] for row in released} == {7}


@pytest.mark.either_engine
def test_groups_whose_rows_are_drawn_alike_are_refused(database: Database) -> None:
    """Beside 2^53 numbers below 4 are drawn as one, however often; no run refuses its own release for it."""
    rows = [(float(n % 4), n) for n in range(20)] + [(2.0**53, 20 + n) for n in range(2)]
    table = database.create({"b": "DOUBLE PRECISION", "id": "INTEGER"}, rows)
    policy = database.policy(
        table, {"b": QUASI, "id": "insensitive"}, algorithm=CONDENSED | {"groups": "nearest"}, privacy=anonymity(2)
    )
    with pytest.raises(
        ProtectionError, match=r"still equal after 11 draws \(b\): numbers of a column lie too close together"
    ):
        anonymize(policy)
    assert database.leftovers() == []


def normal(draw: random.Random) -> float:
    return draw.gauss(0, 1)


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("type_", "value", "count", "k"),
    [
        ("DOUBLE PRECISION", normal, 6_000, 20),
        ("INTEGER", lambda draw: round(draw.gauss(40, 15)), 6_000, 20),  # many equal rows, in several groups
        ("INTEGER", lambda draw: draw.choice([0] * 11 + [round(math.exp(draw.gauss(8, 1)))]), 3_000, 20),
        ("DOUBLE PRECISION", lambda draw: draw.paretovariate(1.2), 3_000, 20),  # of which a few are very large
        ("BIGINT", lambda draw: 10**12 + draw.randrange(3_000), 3_000, 5),  # far from 0
        ("BIGINT", lambda draw: 10**15 + draw.randrange(600), 600, 20),  # so far that doubles have few points between
        ("NUMERIC(12, 2)", lambda draw: round(draw.gauss(3_000, 900), 2), 1_000, 2),
    ],
)
def test_ordinary_columns_are_condensed(
    database: Database, type_: str, value: Callable[[random.Random], Any], count: int, k: int
) -> None:
    """Equal draws of several groups are drawn anew, and no number is on the grid of the source's."""
    draw = random.Random(count)
    rows = [(value(draw),) for _ in range(count)]
    table = database.create({"a": type_}, rows)
    result = anonymize(database.policy(table, {"a": QUASI}, algorithm=CONDENSED, privacy=anonymity(k)))
    assert [check.violations for check in result.checks.values()] == [0] * len(result.checks)
    released = [row[0] for row in database.sql(f"SELECT * FROM {table}_r")]
    assert len(released) == count
    assert not set(released) & {float(a) for (a,) in rows}


@pytest.mark.either_engine
@pytest.mark.parametrize("categories", [1, 2])
def test_rows_that_several_groups_show_are_drawn_anew(database: Database, categories: int) -> None:
    """Beside one large number some draws of neighbouring groups are equal, in every first draw but one of 10^9."""
    draw = random.Random(categories)
    numbers = [2_000 * draw.random() for _ in range(2_000)] + [2e8]
    rows: list[Row] = [(number, "xy"[place % categories], place) for place, number in enumerate(numbers)]
    table = database.create({"a": "DOUBLE PRECISION", "c": "VARCHAR", "s": "INTEGER"}, rows)
    roles = {"a": QUASI, "c": QUASI, "s": "sensitive"}
    result = anonymize(database.policy(table, roles, algorithm=CONDENSED, privacy=anonymity(20)))
    assert all(check.violations == 0 for check in result.checks.values())
    released = database.sql(f"SELECT * FROM {table}_r")
    assert sorted(row[2] for row in released) == list(range(len(rows)))
    assert Counter(row[1] for row in released) == Counter(row[1] for row in rows)


NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e3, 1e3),
    st.integers(10**12, 10**12 + 50).map(float),
    st.floats(-1e60, 1e60),
)


@pytest.mark.either_engine
@settings(max_examples=many(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), groups=st.sampled_from(["mdav", "nearest"]))
def test_a_small_table_is_condensed_or_refused_for_a_reason(
    database: Database, data: st.DataObject, groups: str
) -> None:
    """No release fails its own check, whatever the numbers."""
    row = st.tuples(NUMBERS, st.integers(-2, 2), st.sampled_from(["x", "y", None]), st.integers(0, 9))
    rows = data.draw(
        st.lists(st.sampled_from(data.draw(st.lists(row, min_size=1, max_size=20))), min_size=8, max_size=60)
    )
    columns = {"a": "DOUBLE PRECISION", "b": "INTEGER", "c": "VARCHAR", "s": "INTEGER"}
    roles = {"a": QUASI, "b": QUASI, "c": QUASI, "s": "sensitive"}
    algorithm = CONDENSED | {"groups": groups}
    released = database.release_once(columns, rows, roles, algorithm=algorithm, privacy=anonymity(3))
    assert released is None or sorted(one[3] for one in released) == sorted(one[3] for one in rows)


@pytest.mark.parametrize("rows", [[(5e-324, 0)] * 9 + [(0.0, 2)] * 9, [(5e-324, 1)] * 400 + [(1e-323, 2)] * 400])
def test_the_least_numbers_of_doubles_are_condensed(database: Database, rows: list[tuple[float, int]]) -> None:
    table = database.create({"a": "DOUBLE PRECISION", "b": "INTEGER"}, rows)
    policy = database.policy(table, {"a": QUASI, "b": QUASI}, algorithm=CONDENSED, privacy=anonymity(3))
    assert anonymize(policy).published


def test_equal_numbers_are_refused(database: Database) -> None:
    table = database.create({"a": "INTEGER"}, [(5,)] * 20)
    policy = database.policy(table, {"a": QUASI}, algorithm=CONDENSED)
    with pytest.raises(ProtectionError, match="All rows have the same numbers"):
        anonymize(policy)
    plan = check_policy(policy)
    assert any("all rows have the same numbers" in warning for warning in plan.warnings)


@pytest.mark.parametrize("numbers", [[(5, 1), (5, 2)], [(5, 1), (6, 1)]])
def test_numbers_that_differ_in_one_column_are_no_reason_to_refuse(
    database: Database, numbers: list[tuple[int, int]]
) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, numbers * 20)
    policy = database.policy(table, {"a": QUASI, "b": QUASI}, algorithm=CONDENSED)
    assert not any("refused" in warning for warning in check_policy(policy).warnings)
    assert anonymize(policy).published


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("type_", "values", "more", "problem"),
    [
        ("VARCHAR", ["a", "b"] * 3, {}, "condensation draws numbers, and no quasi-identifier is one"),
        ("INTEGER", [1, 2, 3, 4, 5, None], {}, "attributes.q: 1 row holds NULL"),
        ("INTEGER", [1, 2, 3, 4, 5, 6], {"scale": 2}, "needs at least 8 rows for clusters of 4"),
        ("INTEGER", [1, 2, 3, 4, 5, 6], {"scale": 0.5}, "scale"),
        ("INTEGER", [1, 2, 3, 4, 5, 6], {"groups": "nearby"}, "groups"),
    ],
)
def test_what_cannot_be_condensed_is_refused(
    database: Database, type_: str, values: list[Any], more: dict[str, Any], problem: str
) -> None:
    table = database.create({"q": type_}, [(value,) for value in values])
    with pytest.raises(PolicyError, match=problem):
        anonymize(database.policy(table, {"q": QUASI}, algorithm=CONDENSED | more))


def test_the_command_line_condenses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, release = tmp_path / "source.csv", tmp_path / "release.csv"
    lines = [",".join(map(str, row)) for row in rows_of(80)]
    source.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n", encoding="utf-8")
    policy = tmp_path / "policy.yml"
    roles = "".join(f"  {name}: {{role: {role}}}\n" for name, role in ROLES.items())
    policy.write_text(
        f"source: {{file: {source}}}\nrelease: {{file: {release}}}\nattributes:\n{roles}"
        "privacy: [{model: k-anonymity, k: 5}]\nalgorithm: {name: condensation}\n"
        f"catalog: {{url: 'duckdb:///{tmp_path}/catalog.duckdb'}}\n",
        encoding="utf-8",
    )
    code, printed, _ = call_main(capsys, "run", policy, "--json")
    assert code == 0
    result = json.loads(printed)
    assert result["checks"]["rows_new"]["violations"] == 0
    assert len(release.read_text(encoding="utf-8").splitlines()) == 81


def test_staged_rows_join_their_groups_by_hashes(engine: Engine) -> None:
    """Rows x rows comparisons would take hours for a large table: so few are left to each number."""
    for table in ("regions", "staged"):
        engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
    engine.execute(Statement("test", "CREATE TABLE staged (a FLOAT8, c TEXT)"))
    engine.execute(Statement("test", "CREATE TABLE regions (grouped BIGINT, c0 FLOAT8, c1 TEXT)"))
    cells = [
        {"name": Identifier("a"), "cell": Identifier("c0"), "is_number": True},
        {"name": Identifier("c"), "cell": Identifier("c1"), "is_number": False},
    ]
    rendered = engine.render(
        "methods/clustering/condensation/create_staged",
        grouped=Relation("grouped"),
        staged=Relation("staged"),
        regions=Relation("regions"),
        cells=cells,
        group=Identifier("group_number"),
    )
    plan = str(engine.fetch(Statement("test", f"EXPLAIN {rendered.text}"))).lower()
    assert "hash" in plan or "merge" in plan
    assert "nested" not in plan
